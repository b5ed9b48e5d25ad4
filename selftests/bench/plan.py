# SPDX-License-Identifier: GPL-2.0-or-later
"""What is measured: places (a pair of labs each) and the rows measured there; and the bars, which a run must
reach.  A bar is about some rows of the whole plan; its figure is that of the worst of them.  It is reached
only if all of them were measured."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from measure import about

KIB, MIB = 1 << 10, 1 << 20
UNLIMITED = "unlimited"
LIMITED = "1gbit/256kb"


@dataclass(frozen=True)
class Row:
    """One tensor size on one kind of link.

    link: "unlimited", or RATE/BURST as tc writes them
    size: bytes of the tensor; 0 with strain "tcp"
    coexist: also measure the peers through ports with SAINA's program
    strain: libsaina alone, with and without "overload" or "loss" (strain.py); "tcp": other
        traffic, with and without SAINA's program (stream.py); "": none
    required: not left out before others, although no bar needs it
    extra: no bar needs it, so it is left out first when time runs out
    """

    link: str
    size: int
    coexist: bool = False
    strain: str = ""
    required: bool = False
    extra: bool = False

    def __str__(self) -> str:
        what = size_text(self.size) if self.size else "TCP"
        return f"{self.link}, {what}" + (f", {self.strain}" if self.strain and self.size else "")


@dataclass
class Place:
    """Workers on a bridge; what does not change while its rows are measured.

    hook: of the ports with SAINA's program, as `saina port set' names it
    """

    bridge: str
    mtu: int
    workers: int
    rows: list[Row] = field(default_factory=list)
    hook: str = "auto"

    def __str__(self) -> str:
        bridge = {"linux": "Linux bridge", "ovs": "Open vSwitch (userspace)"}[self.bridge]
        hook = "" if self.hook == "auto" else f", hook {self.hook}"
        return f"{bridge}, MTU {self.mtu}, {self.workers} workers{hook}"


def size_text(size: int) -> str:
    """A size in words: 64 KiB, 4 MiB."""
    return f"{size // MIB} MiB" if size % MIB == 0 else f"{size / KIB:g} KiB"


def rows(link: str, sizes, coexist=(), required=()) -> list[Row]:
    return [Row(link, s, s in coexist, required=s in required) for s in sizes]


def full() -> list[Place]:
    """The whole plan, under 30 minutes on 2 cores.  Marks the rows that no bar needs as extra."""
    places = [common(4), common(8), common(16), common(2), *xdp(), ovs(), jumbo(4), jumbo(8)]
    for place in places:
        place.rows = [replace(r, extra=not r.required and not any(b.rows(about(place, r)) for b in BARS)) for r in place.rows]
    return places


def common(n: int) -> Place:
    """A Linux bridge with tc, MTU 1500."""
    place = Place("linux", 1500, n)
    both = (64 * KIB, 16 * MIB) if n in (4, 8) else ()
    if n <= 8:
        place.rows += rows(LIMITED, (4 * MIB, 16 * MIB), (4 * MIB,) if n == 4 else ())
        place.rows.append(Row(LIMITED, 4 * MIB, strain="loss"))
    else:
        place.rows += rows(LIMITED, (4 * MIB,))
        place.rows.append(Row(UNLIMITED, 4 * MIB, strain="overload"))
    if n == 4:
        place.rows += rows(LIMITED, (64 * MIB,))
    if n == 2:
        place.rows.append(Row(UNLIMITED, 0, strain="tcp"))
    place.rows += rows(UNLIMITED, (16 * MIB, 64 * KIB, 4 * MIB, 64 * MIB, MIB), both, (4 * MIB,) if n == 4 else ())
    if n == 4:
        place.rows.append(Row("1gbit/32kb", 4 * MIB))
    place.rows += rows(LIMITED, (64 * KIB,))
    return place


def xdp() -> list[Place]:
    """The hook of network cards, and of a Linux bridge's ports where tc cannot be used."""
    places = []
    for mtu, n, sizes in (1500, 4, (16 * MIB, 4 * MIB)), (9000, 4, (16 * MIB, 4 * MIB)), (1500, 8, (16 * MIB,)):
        place = Place("linux", mtu, n, rows(UNLIMITED, sizes, sizes), hook="xdp")
        if (mtu, n) == (1500, 4):
            place.rows.append(Row(UNLIMITED, 0, strain="tcp"))
        places.append(place)
    return places


def ovs() -> Place:
    place = Place("ovs", 1500, 4, rows(UNLIMITED, (4 * MIB,), (4 * MIB,), (4 * MIB,)) + rows(LIMITED, (4 * MIB,), (), (4 * MIB,)))
    place.rows += rows(UNLIMITED, (16 * MIB, 64 * KIB))
    return place


def jumbo(n: int) -> Place:
    place = Place("linux", 9000, n, rows(LIMITED, (4 * MIB,)))
    place.rows += rows(UNLIMITED, (16 * MIB, 4 * MIB, 64 * KIB), (16 * MIB,) if n == 4 else ())
    return place


def quick() -> list[Place]:
    """The plan of --quick, under 3 minutes."""
    return [
        Place("linux", 1500, 4, rows(UNLIMITED, (64 * KIB, 4 * MIB, 16 * MIB), (16 * MIB,)) + rows(LIMITED, (4 * MIB,))),
        Place("linux", 1500, 8, rows(UNLIMITED, (64 * KIB, 4 * MIB, 16 * MIB)) + rows(LIMITED, (4 * MIB,))),
    ]


def chosen(bridges, hooks, mtus, workers, links, sizes, strains) -> list[Place]:
    """Every combination of the lists on the command line."""
    return [
        Place(b, m, n, [Row(link, s, not strains, x) for link in links for s in sizes for x in strains or [""]], h)
        for b in bridges for h in hooks for m in mtus for n in workers
    ]


# The bars

REACHED, MISSED, INCOMPLETE, UNMEASURED, REPORTED = "reached", "MISSED", "incomplete", "not measured", "reported"


def among(link: str, workers, sizes: Callable[[int], bool] = lambda _: True, *, mtu: int = 1500, hook: str = "auto",
          strain: str | None = None) -> Callable[[dict], bool]:
    """A condition on rows of a Linux bridge, by what measure.about() returns, which is known before they are measured."""
    return lambda row: (row["bridge"] == "linux" and row["link"] == link and row["mtu"] == mtu and row["hook"] == hook and
                        row.get("strain") == strain and (not workers or row["workers"] in workers) and sizes(row["bytes"]))


def least_size(least: int) -> Callable[[int], bool]:
    return lambda size: size >= least


def just(size: int) -> Callable[[int], bool]:
    return lambda other: other == size


def where(row: dict) -> str:
    return f"N = {row['workers']}" + (f", {size_text(row['bytes'])}" if row["bytes"] else "")


@dataclass(frozen=True)
class Bar:
    """What a run must reach in the rows that rows() chooses.

    least, most, below: the limit, at most one of them; without one, the figure is only reported
    """

    text: str
    rows: Callable[[dict], bool]
    figure: str				# a ratio in the row, or the name of a series, which means its goodput
    least: float | None = None
    most: float | None = None
    below: float | None = None
    fewest: int = 1			# number of rows without which there is no figure

    def figure_of(self, row: dict) -> float | None:
        if self.figure in row.get("series", {}):
            return row["series"][self.figure]["goodput_gbps"]
        return row.get(self.figure)

    def worst(self, rows: list[dict]) -> tuple[float, str]:
        pick = max if self.least is None else min
        row = pick(rows, key=self.figure_of)
        return self.figure_of(row), where(row)

    def limit(self) -> str:
        for sign, limit in (">=", self.least), ("<=", self.most), ("<", self.below):
            if limit is not None:
                return f"{sign} {limit:g}"
        return ""

    def holds(self, figure: float) -> bool:
        return ((self.least is None or figure >= self.least) and (self.most is None or figure <= self.most) and
                (self.below is None or figure < self.below))

    def judge(self, rows: list[dict], whole: list[dict]) -> dict:
        """The verdict on the measured rows; whole: measure.about() of all rows of the whole plan."""
        wanted = sum(map(self.rows, whole))
        found = [r for r in rows if self.rows(r) and self.figure_of(r) is not None]
        figure, at = self.worst(found) if len(found) >= self.fewest else (None, "")
        if figure is None:
            verdict = UNMEASURED
        elif not self.limit():
            verdict = REPORTED
        elif not self.holds(figure):
            verdict = MISSED
        else:
            verdict = REACHED if len(found) >= wanted else INCOMPLETE
        return {"bar": self.text, "limit": self.limit(), "figure": figure, "at": at, "rows": len(found), "rows_wanted": wanted,
                "verdict": verdict}


class Flat(Bar):
    """A bar about the difference of goodput among the rows, relative to the largest."""

    def worst(self, rows: list[dict]) -> tuple[float, str]:
        low, high = (f(map(self.figure_of, rows)) for f in (min, max))
        return (high - low) / high, ", ".join(sorted({f"N = {r['workers']}" for r in rows}))


def limited(n: int, least: float) -> Bar:
    return Bar(f"links 1 Gb/s, 4 MiB and above, N = {n}: to the best peer", among(LIMITED, (n,), least_size(4 * MIB)), "to_best_peer",
               least=least)


def messages(n: int, least: float) -> Bar:
    return Bar(f"links unlimited, 16 MiB and above, N = {n}: to the best peer", among(UNLIMITED, (n,), least_size(16 * MIB)),
               "to_best_peer", least=least)


def reference(n: int, size: int, least: float) -> Bar:
    return Bar(f"by reference, {size_text(size)}, N = {n}: to the best peer", among(UNLIMITED, (n,), just(size)), "reference_to_best_peer",
               least=least)


OVERLOAD = among(UNLIMITED, (16,), just(4 * MIB), strain="overload")
BARS = (
    *(Bar(f"links 1 Gb/s, 4 MiB and above, N = {n}: to the payload bound", among(LIMITED, (n,), least_size(4 * MIB)), "to_bound", least=0.98)
      for n in (2, 4, 8)),
    Flat("links 1 Gb/s, 4 MiB and above, N = 2, 4, 8: goodput differs by", among(LIMITED, (2, 4, 8), least_size(4 * MIB)), "libsaina", most=0.03,
         fewest=2),
    limited(4, 1.44), limited(8, 1.68), limited(16, 1.5),
    Bar("links 1 Gb/s, 4 MiB, N = 16: to the payload bound", among(LIMITED, (16,), least_size(4 * MIB)), "to_bound", least=0.85),
    *(Bar(f"links 1 Gb/s, 4 MiB and above, N = {n}: 16 bits to 32", among(LIMITED, (n,), least_size(4 * MIB)), "int16_to_int32", least=1.9)
      for n in (2, 4, 8)),
    Bar("links 1 Gb/s, 4 MiB, N = 16: 16 bits to 32", among(LIMITED, (16,), least_size(4 * MIB)), "int16_to_int32"),
    messages(4, 0.65), messages(8, 1.1), messages(16, 1.1),
    Bar("links unlimited, 4 MiB, N = 16: to the best peer", among(UNLIMITED, (16,), just(4 * MIB)), "to_best_peer"),
    *(Bar(f"links unlimited, 64 KiB, N = {n}: to the best peer", among(UNLIMITED, (n,), just(64 * KIB)), "to_best_peer") for n in (4, 8)),
    *(reference(n, 16 * MIB, least) for n, least in ((4, 1.2), (8, 1.6), (16, 1.6))),
    *(reference(n, 64 * KIB, least) for n, least in ((4, 1.0), (8, 1.5), (16, 2.0))),
    Bar("XDP hook, links unlimited, MTU 1500: to the best peer beside", among(UNLIMITED, (), hook="xdp"), "to_best_peer_beside", least=1.5),
    Bar("XDP hook, links unlimited, MTU 9000: to the best peer beside", among(UNLIMITED, (), mtu=9000, hook="xdp"), "to_best_peer_beside",
        least=3),
    Bar("links unlimited, 16 MiB, N = 8: CPU to the best peer's", among(UNLIMITED, (8,), just(16 * MIB)), "cpu_to_best_peer", most=0.8),
    Bar("by reference, 16 MiB, N = 8: CPU to the best peer's", among(UNLIMITED, (8,), just(16 * MIB)), "reference_cpu_to_best_peer", most=0.55),
    Bar("links 1 Gb/s, 4 MiB and above, N = 8: CPU to Gloo ring's", among(LIMITED, (8,), least_size(4 * MIB)), "cpu_to_gloo_ring", most=0.6),
    Bar("by reference, 16 MiB: first all-reduce of a new job to the median", among(UNLIMITED, (4, 8, 16), just(16 * MIB)), "first_to_median", most=1.5),
    Bar("tc hook, a TCP stream: to one without SAINA's program", among(UNLIMITED, (), strain="tcp"), "to_bare", least=0.9),
    Bar("overload, N = 16, 4 MiB: goodput to the share of it", OVERLOAD, "to_share", least=0.7),
    Bar("overload, N = 16, 4 MiB: messages sent again", OVERLOAD, "resent_share", below=0.05),
    Bar("overload, N = 16, 4 MiB: 99th percentile to median", OVERLOAD, "p99_to_median", most=5),
    *(Bar(f"20 % loss, 4 MiB, links 1 Gb/s, N = {n}: time to that without", among(LIMITED, (n,), just(4 * MIB), strain="loss"), "times", most=2.5)
      for n in (2, 4, 8)),
)


def judge(rows: list[dict]) -> list[dict]:
    whole = [about(place, row) for place in full() for row in place.rows]
    return [b.judge(rows, whole) for b in BARS]


def verdicts(judged: list[dict]) -> str:
    """The text of the verdicts, a line for each bar."""
    lines = ["What must be reached: the figure of the worst row, and which one that is"]
    for j in judged:
        figure = "-" if j["figure"] is None else f"{j['figure']:.3f}"
        rows = f" ({j['rows']} of {j['rows_wanted']} rows)" if j["verdict"] == INCOMPLETE else ""
        lines.append(f"{j['bar']:<72}{j['limit']:>8} {figure:>8}  {j['at']:<18} {j['verdict']}{rows}")
    return "\n".join(lines)
