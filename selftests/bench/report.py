# SPDX-License-Identifier: GPL-2.0-or-later
"""The table and the picture of `make bench'.  Documentation/bench.rst says how to read them."""

import os

import strain
import stream
from lab import run
from plan import size_text

PEERS = ("Gloo ring", "Gloo halving", "MPI default", "MPI ring")
HEAD = (f"{'':>15}{'':>9} | {'libsaina':^43} | {'Gloo':^17} {'Open MPI':^17} | {'beside':>8} | "
        f"{'libsaina to':^21} | {'by reference':^14} | {'CPU s per GB':^27}\n"
        f"{'link':>15}{'size':>9} | {'Gb/s':>6} {'spread':>8}{'advised':>8} {'GRO off':>9} {'int16':>8}  | {'ring':>6}   {'halv.':>6}   {'deflt':>6}   {'ring':>6}   | "
        f"{'best':>6}   | {'best':>6} {'beside':>7} {'bound':>6} | {'Gb/s':>6}  {'best':>6} | {'ours':>6} {'Gloo r':>6} {'best':>6} {'by ref':>6}")


def number(x, width: int = 6) -> str:
    if x is None:
        return f"{'-':>{width}}"
    return f"{x:{width}.{3 if x < 1 else 2 if x < 10 else 1 if x < 1000 else 0}f}"


def table_line(row: dict) -> str:
    s = row["series"]
    if row.get("strain") == "tcp":
        return f"{row['link']:>15}{'TCP':>9} | {stream.line(row)}"
    if "strain" in row:
        return f"{row['link']:>15}{size_text(row['bytes']):>9} | {strain.line(row)}"

    def of(name, key="goodput_gbps"):
        return s[name][key] if name in s else None

    def ours(name, width=6):
        return number(of(name), width) + ("^" if of(name, "bound") else " ")

    def peer(name):
        return number(of(name)) + ("*" if of(name, "gro") else " ") + ("^" if of(name, "bound") else " ")

    return (f"{row['link']:>15}{size_text(row['bytes']):>9} | {ours('libsaina')}{of('libsaina', 'spread'):>7.0%} "
            f"{ours('libsaina, advised', 7)} {ours('libsaina, GRO off', 8)} {ours('libsaina, int16', 7)}  | " + " ".join(map(peer, PEERS)) +
            f" | {peer(row['best_peer_beside'])} | {number(row['to_best_peer'])} {number(row['to_best_peer_beside'], 7)} "
            f"{number(row['to_bound'])} | {ours('libsaina, by reference')} {number(row['reference_to_best_peer'])} | "
            f"{number(of('libsaina', 'cpu_s_per_gb'))} {number(of('Gloo ring', 'cpu_s_per_gb'))} "
            f"{number(of(row['best_peer'], 'cpu_s_per_gb'))} {number(of('libsaina, by reference', 'cpu_s_per_gb'))}" +
            "".join(f"  {n} hung" for n, r in s.items() if r.get("hangs")) +
            "".join(f"  {n} left out" for n in row["left_out"]))


def table(rows: list[dict], place_text) -> str:
    lines, place = [], None
    for row in rows:
        here = (row["bridge"], row["mtu"], row["workers"], row["hook"])
        if here != place:
            lines += ["", place_text(*here), HEAD]
            place = here
        lines.append(table_line(row))
    return "\n".join(lines[1:])


def draw(folder: str, rows: list[dict]) -> str | None:
    """Draws bench.png: goodput by size, a panel for each place and kind of link that has more than one size.

    Returns its path, or None if there is nothing to draw."""
    panels: dict[str, list[dict]] = {}
    for row in rows:
        if "strain" in row:
            continue
        hook = "" if row["hook"] == "auto" else f", {row['hook']}"
        title = f"{row['bridge']}, MTU {row['mtu']}, N = {row['workers']}, {row['link']}{hook}"
        panels.setdefault(title, []).append(row)
    panels = {t: r for t, r in panels.items() if len(r) > 1}
    if not panels:
        return None
    data = os.path.join(folder, "bench.dat")
    with open(data, "w", encoding="utf-8") as f:
        for title, of_panel in panels.items():
            f.write(f'# {title}: bytes, libsaina, its quartiles, best peer, best beside our program\n')
            for row in sorted(of_panel, key=lambda r: r["bytes"]):
                s = row["series"]
                ours = s["libsaina"]
                gbps = [row["bytes"] * 8 / ours[k] for k in ("median_ns", "third_quartile_ns", "first_quartile_ns")]
                gbps += [s[n]["goodput_gbps"] if n else "NaN" for n in (row["best_peer"], row["best_peer_beside"])]
                f.write(" ".join(map(str, [row["bytes"], *gbps])) + "\n")
            f.write("\n\n")
    titles = "|".join(panels)
    picture = os.path.join(folder, "bench.png")
    script = os.path.join(os.path.dirname(os.path.realpath(__file__)), "plot.gp")
    run("gnuplot", "-e", f"data = '{data}'; out = '{picture}'; titles = '{titles}'; panels = {len(panels)}", script)
    return picture
