# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make bench' must reach: each bar is judged by the worst of the rows that it is about."""

from typing import NamedTuple

KIB, MIB = 1 << 10, 1 << 20
LIMITED, UNLIMITED = "1gbit/256kb", "unlimited"


class Bar(NamedTuple):
    """A limit of a figure of some rows of a Linux bridge, as rows() of __main__.py makes them.

    by: messages, reference (shared memory), int16, or a peer; figure: a key of the row; limit: of processor time (cpu_..)
    the most, else the least; workers: of the rows, sizes: of tensors, bytes"""

    link: str
    by: str
    workers: tuple[int, ...]
    sizes: tuple[int, ...]
    figure: str
    limit: float
    hook: str = "auto"
    mtu: int = 1500

    def about(self, row: dict) -> bool:
        return (row["bridge"] == "linux" and row.get(self.figure) is not None and row["workers"] in self.workers and row["size"] in self.sizes and
                all(row[k] == getattr(self, k) for k in ("link", "by", "hook", "mtu")))

    def judge(self, rows: list[dict]) -> dict:
        most = self.figure.startswith("cpu_")
        found = [r for r in rows if self.about(r)]
        row = (max if most else min)(found, key=lambda r: r[self.figure], default=None)
        verdict = "not measured"
        if row:
            verdict = "reached" if (row[self.figure] <= self.limit if most else row[self.figure] >= self.limit) else "MISSED"
        return {**self._asdict(), "value": row and row[self.figure], "worst": row and [row["workers"], row["size"]], "rows": len(found), "verdict": verdict}


LARGE = (4 * MIB, 16 * MIB)
BARS = (
    Bar(LIMITED, "messages", (2, 4, 8), LARGE, "to_bound", 0.98),
    Bar(LIMITED, "messages", (16,), LARGE, "to_bound", 0.85),
    Bar(LIMITED, "messages", (4,), LARGE, "to_best_peer", 1.44),
    Bar(LIMITED, "messages", (8,), LARGE, "to_best_peer", 1.68),
    Bar(LIMITED, "messages", (16,), LARGE, "to_best_peer", 1.5),
    Bar(LIMITED, "messages", (8,), LARGE, "cpu_to_gloo", 0.6),
    Bar(LIMITED, "int16", (2, 4, 8), LARGE, "to_messages", 1.9),
    Bar(UNLIMITED, "messages", (4,), (16 * MIB,), "to_best_peer", 0.65),
    Bar(UNLIMITED, "messages", (8, 16), (16 * MIB,), "to_best_peer", 1.1),
    Bar(UNLIMITED, "messages", (8,), (16 * MIB,), "cpu_to_best_peer", 0.8),
    Bar(UNLIMITED, "reference", (4,), (16 * MIB,), "to_best_peer", 1.2),
    Bar(UNLIMITED, "reference", (8, 16), (16 * MIB,), "to_best_peer", 1.6),
    Bar(UNLIMITED, "reference", (4,), (64 * KIB,), "to_best_peer", 1.0),
    Bar(UNLIMITED, "reference", (8,), (64 * KIB,), "to_best_peer", 1.5),
    Bar(UNLIMITED, "reference", (16,), (64 * KIB,), "to_best_peer", 2.0),
    Bar(UNLIMITED, "reference", (8,), (16 * MIB,), "cpu_to_best_peer", 0.55),
    Bar(UNLIMITED, "messages", (4, 8), LARGE, "to_best_beside", 1.5, "xdp"),
    Bar(UNLIMITED, "messages", (4,), LARGE, "to_best_beside", 3, "xdp", 9000),
    # What SAINA's program on the ports costs other traffic.
    Bar(UNLIMITED, "Gloo-beside", (4,), LARGE, "to_bare", 0.9),
)


def size_text(size: int) -> str:
    return f"{size // MIB} MiB" if size % MIB == 0 else f"{size / KIB:g} KiB"


def text(judged: list[dict]) -> str:
    """A line for each bar."""
    lines = ["What must be reached, and the worst row"]
    for j in judged:
        hook = "" if j["hook"] == "auto" else f", hook {j['hook']}, MTU {j['mtu']}"
        what = f"{j['link']}{hook}: {j['by']}, N = {', '.join(map(str, j['workers']))}, {', '.join(map(size_text, j['sizes']))}: {j['figure']}"
        worst = f"{j['value']:6.3f}  N = {j['worst'][0]}, {size_text(j['worst'][1])}" if j["rows"] else f"{'-':>6}"
        lines.append(f"{what:<72} {'<=' if j['figure'].startswith('cpu_') else '>='} {j['limit']:<5g} {worst:<22} {j['verdict']}")
    return "\n".join(lines)
