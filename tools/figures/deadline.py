#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a time-out that sets itself earns: gradients in sums per time, of real workers under `saina policy
control' of a job with policy timeout, beside a time-out set by hand, BSP, and fixed numbers of workers.

Computation is emulated by sleeping, packets are real.  Workers give up when their round is decided.  The
same stalls under all rules.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[1:1] = [HERE, os.path.join(HERE, "../lab")]
# pylint: disable=wrong-import-position
import fit
import models
import results
from lab import BUILD, TOP, BenchError
from workers import Jobs, Workers

SLOW = 10		# a run may take so many times as long as it should
POLL_S = 0.02
ELEMENTS = 256		# one segment


def draws(pattern: str, workers: int, rounds: int, seed: int) -> models.Draws:
    """In units of the base, for each worker."""
    if pattern == "change":
        parts = [draws(p, workers, rounds // 3, seed) for p in ("serene", "slow", "none")]
        return [sum((p[w] for p in parts), []) for w in range(workers)]
    return [list(worker(pattern, w, rounds, random.Random(f"{pattern} {seed} {w}"))) for w in range(workers)]


def worker(pattern: str, w: int, rounds: int, rng: random.Random):
    bad = False
    for _ in range(rounds):
        if pattern == "serene":
            yield models.serene(rng)
        elif pattern == "slow":
            yield 1 if w else 4
        elif pattern == "tail":
            yield .6 + .4 / 3 * rng.paretovariate(1.5)
        elif pattern == "periods":
            bad ^= rng.random() < (1 / 30 if bad else 1 / 90)
            yield 1 + (rng.uniform(.5, 2) if rng.random() < (.6 if bad else .02) else 0)
        else:
            yield 1


PATTERNS = ("none", "serene", "slow", "tail", "periods", "change")


def rules(a: argparse.Namespace) -> dict[str, str]:
    hand = f"timeout:{a.base * 100}us,kmin={a.workers // 2},late=drop"
    fixed = {f"k={k}": f"fastest:k={k},late=drop" for k in range(max(a.workers - a.fixed, 1), a.workers)}
    return {**fixed, "bsp": "bsp", "hand T": hand, "deadline": hand}


def measure(jobs: Jobs, a: argparse.Namespace, pattern: str, rule: str, folder: str) -> dict:
    own = draws(pattern, a.workers, a.rounds, a.seed)
    jobs.add("figure", a.workers, rules(a)[rule], ELEMENTS)
    controller = None
    try:
        with Workers(jobs.lab, "figure", folder) as workers:
            for w, times in enumerate(own):
                path = os.path.join(folder, f"draws.{w}")
                with open(path, "w", encoding="ascii") as f:
                    f.writelines(f"{x * a.base * 1000:.0f}\n" for x in times)
                workers.begin(w, "--rounds", str(a.rounds), "--elements", str(ELEMENTS), "--think-from", path, "--cancel")
            if rule == "deadline":
                # all gradients are worth the same, as they are counted here
                controller = subprocess.Popen(jobs.tool("-j", "policy", "control", "figure", "noise", "1000000", "interval", "200"),
                                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="ascii")
            limit = 60 + SLOW * sum(max(r) for r in zip(*own)) * a.base / 1000
            before = wait_for(workers, 1, limit)
            begin = time.monotonic()
            wait_for(workers, a.rounds, limit)
            seconds = time.monotonic() - begin
            ended = [workers.end(w, limit) for w in range(a.workers)]
            if any(e["wrong"] for e in ended):
                raise BenchError("a sum is wrong")
            counts = [line["count_max"] for line in workers.log(0)[before:]]
    finally:
        decisions = stop(controller)
        jobs.delete("figure")
    return {"pattern": pattern, "rule": rule, "seconds": seconds, "count": sum(counts) / len(counts),
            "round": seconds * 1000 / a.base / len(counts), "rate": sum(counts) / seconds, "decisions": decisions}


def wait_for(workers: Workers, rounds: int, limit: float) -> int:
    """Until worker 0 has the results of so many rounds; of how many it has them."""
    until = time.monotonic() + limit
    while True:
        with open(workers.path(0, "log"), "rb") as f:
            made = f.read().count(b"\n")
        if made >= rounds:
            return made
        if time.monotonic() > until:
            raise BenchError(f"{made} of {rounds} rounds when {SLOW} times their time was over")
        time.sleep(POLL_S)


def stop(controller: subprocess.Popen | None) -> list[str]:
    if not controller:
        return []
    controller.terminate()
    return controller.communicate()[0].splitlines()


def table(rows: list[dict], names: list[str], patterns: list[str]) -> str:
    lines = [f"{'gradients per time, best k = 1':<32}" + "".join(f"{n:>9}" for n in names)]
    for p in patterns:
        mine = {r["rule"]: r for r in rows if r["pattern"] == p}
        best = max((r["rate"] for n, r in mine.items() if n[:2] == "k=" or n == "bsp"), default=0)
        lines.append(f"{p:<32}" + "".join(f"{mine[n]['rate'] / best:9.2f}" if n in mine and best else f"{'-':>9}" for n in names))
    return "\n".join(lines)


def whole(least: int, most: int):
    def parse(text: str) -> int:
        if not text.isdigit() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"\"{text}\" is not a number from {least} to {most}")
        return int(text)
    return parse


def names_of(known):
    def parse(text: str) -> list[str]:
        for n in text.split(","):
            if n not in known:
                raise argparse.ArgumentTypeError(f"\"{n}\" is none of {', '.join(known)}")
        return text.split(",")
    return parse


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="tools/figures/deadline.py", description="Gradients per time under a time-out that sets itself, one set by "
                                "hand, BSP and fixed numbers of workers.  See Documentation/policies.rst, section 9.")
    p.add_argument("--workers", type=whole(2, 64), default=8, metavar="N", help="2 to 64 (8)")
    p.add_argument("--fixed", type=whole(1, 63), default=4, metavar="N", help="numbers of workers below all that are tried as k (4)")
    p.add_argument("--base", type=whole(10, 10000), default=60, metavar="MS", help="time that is computed (60)")
    p.add_argument("--rounds", type=whole(60, 100000), default=600, metavar="N", help="of a run (600)")
    p.add_argument("--seed", type=whole(0, 10 ** 9), default=1, metavar="N", help="of the stalls (1)")
    p.add_argument("--only", type=names_of(PATTERNS), default=list(PATTERNS), metavar="LIST", help=f"of {', '.join(PATTERNS)} (all)")
    p.add_argument("--out", default="result", metavar="DIR", help="where deadline.json goes (result)")
    return p.parse_args()


def main() -> int:
    a = arguments()
    rows: list[dict] = []
    jobs = Jobs()

    def measure_all() -> None:
        for pattern in a.only:
            for rule in rules(a):
                rows.append(measure(jobs, a, pattern, rule, folder))
                r = rows[-1]
                print(f"{pattern}, {rule}: rounds of {r['round']:.2f} x base with {r['count']:.2f} gradients", flush=True)
                for decision in r["decisions"]:
                    print(f"    {decision}", flush=True)

    try:
        if os.geteuid() != 0:
            raise BenchError("needs root for network namespaces")
        if not os.access(os.path.join(BUILD, "saina-allreduce"), os.X_OK):
            raise BenchError(f"{BUILD}/saina-allreduce is missing: run `make' in {TOP}")
        fit.check_here(a.workers, a.base)
        os.makedirs(a.out, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="saina-deadline-") as folder:
            jobs.with_lab(a.workers, measure_all)
    except KeyboardInterrupt:
        print("\ndeadline: stopped")
        return 130
    except (BenchError, OSError) as e:
        print(f"deadline: {e}", file=sys.stderr)
        return 1
    print("\n" + table(rows, list(rules(a)), a.only))
    path = os.path.join(a.out, "deadline.json")
    results.write_json(path, {**results.machine(), **vars(a), "rows": rows})
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
