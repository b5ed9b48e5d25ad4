#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What becomes of late gradients, by optimiser: time to an accuracy under late=residual, late=drop, and
between them (half of what is late is kept, and half of that when it is late again), beside bsp.

By simulation (saina-train --simulate) of workers that finish every gradient, as a backward pass in PyTorch does: the
gradients, the model and the data are the real ones, the clock is not.  Every rule has its own best rate from one grid for all; a best one at the grid's edge is marked.
"""

import argparse
import csv
import os
import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
sys.path.insert(1, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lab"))
# pylint: disable=wrong-import-position
import results
from accuracy import LAST, data
from accuracy_plan import OPTIMISERS
from arguments import whole
from lab import BUILD, BenchError, check_built, run

RATES = {"sgd": (0.025, 9), "momentum": (0.0025, 10), "adam": (0.0002, 11)}	# smallest, and how often doubled
RULES = {"bsp": "bsp", "residual": "fastest:k={k}", "half": "fastest:k={k},keep=0.5", "drop": "fastest:k={k},late=drop"}


def grid(optimiser: str) -> list[float]:
    least, times = RATES[optimiser]
    return [least * 2 ** i for i in range(times)]


def lines(path: str) -> list[dict]:
    with open(path, encoding="utf-8") as f:
        return list(csv.DictReader(f))


def train(a: argparse.Namespace, data: str, optimiser: str, rule: str, rate: float, seed: int) -> dict:
    with tempfile.TemporaryDirectory(prefix="saina-late-") as folder:
        run(os.path.join(BUILD, "saina-train"), "--simulate", "--data", data, "--workers", str(a.workers), "--rounds", str(a.rounds),
            "--hidden", "128", "--rate", repr(rate), "--net", "1", "--jitter", "0.01", "--finish", "--seed", str(seed), "--eval", "2", "--progress", "0",
            "--policy", RULES[rule].format(k=a.k), "--out", folder, *OPTIMISERS[optimiser])
        decided = {r["round"]: int(r["decided_us"]) / 1e6 for r in lines(os.path.join(folder, "worker-0.csv"))}
        tests = [(decided[r["round"]], 100 * float(r["accuracy"])) for r in lines(os.path.join(folder, "accuracy.csv"))]
    return {"optimiser": optimiser, "rule": rule, "rate": rate, "seed": seed,
            "target_s": next((t for t, accuracy in tests if accuracy >= a.target), None),
            "final": statistics.mean(accuracy for _, accuracy in tests[-LAST:])}


def best(rows: list[dict], optimiser: str, rule: str) -> dict:
    """Of the rates: that with the least median of time to the target; a seed that does not reach it counts as infinite."""
    found = None
    for rate in grid(optimiser):
        mine = [r for r in rows if (r["optimiser"], r["rule"], r["rate"]) == (optimiser, rule, rate)]
        times = sorted(r["target_s"] or float("inf") for r in mine)
        median = statistics.median_low(times)
        if median < float("inf") and (not found or median < found["median_s"]):
            found = {"rate": rate, "median_s": median, "least_s": times[0], "most_s": times[-1], "final": statistics.median(r["final"] for r in mine)}
    return found or {"rate": None}


def line(b: dict) -> str:
    if b["rate"] is None:
        return "  no rate reaches the target"
    spread = f"({b['least_s']:.1f} .. {b['most_s']:.1f})"
    faster = f"{b['faster']:.2f}x" if b["faster"] else ""
    return f"{b['rate']:>10g}{b['median_s']:>10.1f} {spread:<16}{faster:>8}{b['final']:>7.1f}%" + ("  at the edge of the grid" if b["edge"] else "")


def summary(rows: list[dict]) -> list[dict]:
    found = []
    for optimiser in RATES:
        of_bsp = best(rows, optimiser, "bsp").get("median_s")
        for rule in RULES:
            b = best(rows, optimiser, rule)
            edge = b["rate"] in (grid(optimiser)[0], grid(optimiser)[-1])
            faster = of_bsp / b["median_s"] if of_bsp and b["rate"] else None
            found.append({"optimiser": optimiser, "rule": rule, **b, "edge": edge, "faster": faster})
    return found


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="tools/figures/late_rule.py", description="Time to an accuracy by what becomes of late gradients, for "
                                "gradient descent, momentum 0.9 and Adam, by simulation.  See Documentation/figures.rst, section 4.")
    p.add_argument("--workers", type=whole(1, 10 ** 6), default=16, metavar="N", help="number of workers, 2 to 64 (16)")
    p.add_argument("--k", type=whole(1, 10 ** 6), metavar="K", help="gradients in a sum (half of the workers)")
    p.add_argument("--rounds", type=whole(1, 10 ** 6), default=400, metavar="N", help="rounds of each run (400)")
    p.add_argument("--seeds", type=whole(1, 10 ** 6), default=5, metavar="N",
                   help="number of seeds, of the model, the order of the data and the stalls (5)")
    p.add_argument("--target", type=float, default=95, metavar="PERCENT", help="accuracy to reach (95)")
    p.add_argument("--out", default="result", metavar="DIR", help="where late_rule.json goes (result)")
    a = p.parse_args()
    a.k = a.k or max(a.workers // 2, 1)
    if not 2 <= a.workers <= 64 or a.k > a.workers:
        p.error("--workers must be from 2 to 64, and --k at most the number of workers")
    return a


def main() -> int:
    a = arguments()
    try:
        check_built("saina-train")
        digits = data()
        os.makedirs(a.out, exist_ok=True)
        todo = [(o, rule, rate, seed) for seed in range(1, a.seeds + 1) for o in RATES for rate in grid(o) for rule in RULES]
        rows = []
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for row in pool.map(lambda job: train(a, digits, *job), todo):
                rows.append(row)
                if sys.stdout.isatty():
                    print(f"\r{len(rows)} of {len(todo)} runs", end="\r", flush=True)
    except KeyboardInterrupt:
        print("\nlate_rule: interrupted: no results are written")
        return 130
    except (BenchError, OSError) as e:
        print(f"late_rule: {e}", file=sys.stderr)
        return 1
    found = summary(rows)
    print(f"{'':<20}{'best rate':>10}{f's to {a.target:g} %':>10} {'(all seeds)':<16}{'to bsp':>8}{'final':>8}")
    for b in found:
        print(f"{b['optimiser']:<10}{b['rule']:<10}{line(b)}")
    path = os.path.join(a.out, "late_rule.json")
    results.write_json(path, {**results.machine(), **vars(a), "best": found, "rows": rows})
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
