# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of `saina bench', and the verdict: does SAINA pay on this bridge?"""

import json

OURS = ("messages", "reference", "int16")
INSTALL = {"Gloo": "not installed: apt install python3-torch", "MPI": "not installed: apt install python3-mpi4py openmpi-bin"}
BESIDE = "-beside"	# behind the name of a peer that is also measured on other ports, without SAINA's program
SAME = 1.1		# times as fast; smaller ratios count as equal
BOUND = "^"
LINE = "{:>12} {:>10} {:>11} {:>11} {:>9} {:>9} {:>7} {:>9} {:>8}"


def gain_of_binding(medians: dict) -> float | None:
    """How many times as fast workers are that are bound to one processor each; None if not both were measured.

    medians: nanoseconds of an all-reduce by Setting, as Series.medians() returns them"""
    best = {bound: min((ns for setting, ns in medians.items() if setting.bound is bound), default=None) for bound in (False, True)}
    return best[False] / best[True] if None not in best.values() else None


def pays_to_bind(row: dict) -> bool:
    return (row["bound_to_free"] or 0) >= SAME


def rows_of(cell, results: dict) -> list[dict]:
    """A row for each way; results: by name, as Cell.result() returns them.

    Bandwidths are those of nccl-tests, in 10^9 bytes a second."""
    size, n = cell.size, cell.place.workers
    peers = [r["median_ns"] for name, r in results.items() if name not in OURS and not name.endswith(BESIDE)]
    best = min(peers, default=None)
    rows = []
    for s in cell.series:
        r = results.get(s.name)
        if not r:
            continue
        alg = size / r["median_ns"]
        rows.append({"size": size, "count": size // 4, "type": "float", "by": s.name, "time_us": r["median_ns"] / 1000,
                     "algbw_gbs": alg, "busbw_gbs": alg * 2 * (n - 1) / n, "wrong": 0 if r["verified"] else None,
                     "spread": r["spread"], "rounds": r["samples"], "cpu_s_per_gb": r["cpu_s_per_gb"], "hangs": r["hangs"],
                     "bound": r["bound"], "bound_to_free": gain_of_binding(s.medians()),
                     "to_best_peer": best / r["median_ns"] if best and s.name in OURS else None})
    return rows


def is_loaded(about: dict) -> bool:
    return about["load"] > 0.3 * about["cpus"]


def print_head(about: dict) -> None:
    print(f"# {about['place']}, {about['workers']} workers, policy {about['policy']}, {about['cpus']} processors")
    if is_loaded(about):
        print(f"# this host has other work (load {about['load']:g}): only large ratios mean anything")
    print_columns()


def print_columns() -> None:
    print("#" + LINE.format("size", "count", "by", "time ", "algbw", "busbw", "#wrong", "cpu", "to best")[1:])
    print("#" + LINE.format("(B)", "(float)", "", "(us) ", "(GB/s)", "(GB/s)", "", "(s/GB)", "peer")[1:])


def print_rows(rows: list[dict]) -> None:
    for r in rows:
        print(LINE.format(r["size"], r["count"], r["by"], f"{r['time_us']:.1f}{BOUND if pays_to_bind(r) else ' '}",
                          f"{r['algbw_gbs']:.3f}", f"{r['busbw_gbs']:.3f}", "N/A" if r["wrong"] is None else r["wrong"], f"{r['cpu_s_per_gb']:.2f}",
                          f"{r['to_best_peer']:.2f}" if r["to_best_peer"] else "-"), flush=True)


def size_text(n: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if n >= unit:
            return f"{n / unit:.3g} {name}"
    return f"{n} bytes"


def span(sizes: list[int]) -> str:
    return ", ".join(size_text(n) for n in sizes)


def times(ratios: list[float]) -> str:
    low, high = f"{min(ratios):.1f}", f"{max(ratios):.1f}"
    return low if low == high else f"{low} to {high}"


def way_text(name: str) -> str:
    return "by shared memory" if name == "reference" else "by messages"


def verdict(rows: list[dict]) -> str:
    """One sentence: does SAINA pay here, for which sizes, by messages or by shared memory?"""
    compared = [r for r in rows if r["to_best_peer"]]
    if not compared:
        return "Whether it pays here cannot be said without a peer: apt install python3-torch (Gloo), or python3-mpi4py openmpi-bin"
    sizes = sorted({r["size"] for r in compared})
    best = {n: max((r for r in compared if r["size"] == n), key=lambda r: r["to_best_peer"]) for n in sizes}
    pays = [n for n in sizes if best[n]["to_best_peer"] >= SAME]
    loses = [n for n in sizes if best[n]["to_best_peer"] <= 1 / SAME]
    ways = " or ".join(dict.fromkeys(way_text(best[n]["by"]) for n in pays))
    rest = (f"; at {span(loses)} the best peer is "
            f"{times([1 / best[n]['to_best_peer'] for n in loses])} times as fast") if loses else ""
    if not pays:
        return ("It does not pay here without stragglers" + (rest or ": it is about as fast as the best peer") +
                "; a policy that does not wait for them may (saina-job(8))")
    where = "at every size" if len(pays) == len(sizes) else f"at {span(pays)}"
    return f"It pays here {where}, {ways}: {times([best[n]['to_best_peer'] for n in pays])} times as fast as the best peer{rest}"


def finish(about: dict, rows: list[dict], left_out: dict[str, str], as_json: bool, pretty: bool) -> None:
    sentence = verdict(rows) + ("; but this host had other work: run it again when it is idle" if is_loaded(about) else "")
    if as_json:
        print(json.dumps([{**about, "rows": rows, "left_out": left_out, "verdict": sentence}], indent=2 if pretty else None))
        return
    gains = [r["bound_to_free"] for r in rows if pays_to_bind(r)]
    if gains:
        print(f"# {BOUND} with each worker bound to one processor (taskset; podman run --cpuset-cpus): {times(gains)} times as fast as free")
    for name, reason in left_out.items():
        print(f"# without {name}: {reason}")
    print(f"{sentence}.")
