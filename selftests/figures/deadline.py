# SPDX-License-Identifier: GPL-2.0-or-later
"""The figure deadline: what a time-out that sets itself earns, in gradients in sums per time.

Real workers of a job with policy timeout under `saina policy control', compared with a time-out set by
hand, BSP, and fixed numbers of workers.  Computation is emulated by sleeping, packets are real.  Workers
give up when their round is decided.  All rules have the same stalls.
"""

import random
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import fit
import models
import picture
from lab import BenchError
from series import RealSeries
from workers import Jobs, Workers

NAME = "deadline"
SLOW = 10		# a run may take this many times its expected time
POLL_S = 0.02
ELEMENTS = 256		# one segment
RULE = "deadline"	# the controller's


@dataclass(frozen=True)
class Run:
    """Workers under one rule with one pattern of stalls; policy: with which the job starts."""

    pattern: str
    rule: str
    policy: str
    workers: int
    rounds: int
    base_ms: int
    seed: int

    figure = NAME

    @property
    def key(self) -> str:
        return f"{self.pattern}-{self.rule.replace('=', '')}"

    def spec(self) -> dict:
        return asdict(self)

    def draws(self) -> models.Draws:
        return draws(self.pattern, self.workers, self.rounds, self.seed)

    def seconds(self) -> float:
        """The expected time, at most: that of BSP."""
        return sum(map(max, zip(*self.draws()))) * self.base_ms / 1000


def draws(pattern: str, workers: int, rounds: int, seed: int) -> models.Draws:
    """The times of all computations, in units of the base: [worker][round]."""
    if pattern == "change":
        parts = [draws(p, workers, rounds // 3, seed) for p in ("serene", "slow", "none")]
        return [sum((p[w] for p in parts), []) for w in range(workers)]
    return [list(worker(pattern, w, rounds, random.Random(f"{pattern} {seed} {w}"))) for w in range(workers)]


def worker(pattern: str, w: int, rounds: int, rng: random.Random):
    """Yields the times of one worker."""
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


def runs(quick: bool, workers: int, base_ms: int, rounds: int, seed: int) -> list[Run]:
    hand = f"timeout:{base_ms * 100}us,kmin={workers // 2},late=drop"
    rules = {**{f"k={k}": f"fastest:k={k},late=drop" for k in range(max(workers - 2, 1), workers)}, "bsp": "bsp", "hand": hand, RULE: hand}
    return [Run(pattern, rule, policy, workers, rounds, base_ms, seed)
            for pattern in (("serene",) if quick else PATTERNS) for rule, policy in rules.items()]


def measure(jobs: Jobs, run: Run, folder: str) -> dict:
    jobs.add("figure", run.workers, run.policy, ELEMENTS)
    controller = None
    try:
        with Workers(jobs.lab, "figure", folder) as workers:
            for w, times in enumerate(run.draws()):
                workers.begin_with(w, (x * run.base_ms * 1000 for x in times), "--rounds", str(run.rounds), "--elements", str(ELEMENTS), "--cancel")
            if run.rule == RULE:
                # noise 1000000: all gradients are worth the same, as they are counted here.
                controller = subprocess.Popen(jobs.tool("-j", "policy", "control", "figure", "noise", "1000000", "interval", "200"),
                                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="ascii")
            limit = 60 + SLOW * run.seconds()
            before = wait_for(workers, 1, limit)
            begin = time.monotonic()
            wait_for(workers, run.rounds, limit)
            seconds = time.monotonic() - begin
            ended = [workers.end(w, limit) for w in range(run.workers)]
            if any(e["wrong"] for e in ended):
                raise BenchError("a sum is wrong")
            counts = [line["count_max"] for line in workers.log(0)[before:]]
    finally:
        decisions = stop(controller)
        jobs.delete("figure")
    return {"count": sum(counts) / len(counts), "round": seconds * 1000 / run.base_ms / len(counts), "rate": sum(counts) / seconds,
            "decisions": decisions}


def wait_for(workers: Workers, rounds: int, limit: float) -> int:
    """Waits until worker 0 has the results of so many rounds.  Returns how many it has."""
    until = time.monotonic() + limit
    while True:
        with open(workers.path(0, "log"), "rb") as f:
            made = f.read().count(b"\n")
        if made >= rounds:
            return made
        if time.monotonic() > until:
            raise BenchError(f"the workers have made only {made} of {rounds} rounds in more than {SLOW} times the expected time")
        time.sleep(POLL_S)


def stop(controller: subprocess.Popen | None) -> list[str]:
    if not controller:
        return []
    controller.terminate()
    return controller.communicate()[0].splitlines()


class Deadline(RealSeries):
    """The runs of the figure; to_best of a row: gradients per time, divided by that of the best fixed k with the same stalls."""

    @contextmanager
    def session(self, jobs: Jobs):
        with tempfile.TemporaryDirectory(prefix="saina-deadline-") as folder:
            yield lambda run: measure(jobs, run, folder)

    def summary(self, run: Run) -> str:
        m = self.made[run]
        return f"rounds of {m['round']:.2f} x base with {m['count']:.2f} gradients"

    def rows(self) -> list[dict]:
        best: dict[str, float] = {}
        for run, m in self.made.items():
            if run.policy == "bsp" or run.policy.startswith("fastest"):
                best[run.pattern] = max(best.get(run.pattern, 0), m["rate"])
        return [{**run.spec(), **{k: m[k] for k in ("count", "round", "rate", "decisions", "load_before")},
                 "to_best": m["rate"] / best[run.pattern] if run.pattern in best else None} for run, m in self.made.items()]

    def report(self) -> tuple[str, list[dict], dict[str, list[str]]]:
        rows = self.rows()
        rules = list(dict.fromkeys(r["rule"] for r in rows))
        found = {(r["pattern"], r["rule"]): r["to_best"] for r in rows}
        patterns = list(dict.fromkeys(r["pattern"] for r in rows))
        lines = [f"{'gradients per time, best k = 1':<32}" + "".join(f"{n:>9}" for n in rules)]
        lines += [f"{p:<32}" + "".join(f"{x:9.2f}" if (x := found.get((p, n))) else f"{'-':>9}" for n in rules) for p in patterns]
        return "\n".join(lines), rows, {
            f"{p}: gradients per time, best k = 1": [picture.point(i, n, x, x, x) for i, n in enumerate(rules) if (x := found.get((p, n)))]
            for p in patterns}


def scale(quick: bool) -> tuple[int, int, int]:
    """Number of workers, base (ms), number of rounds."""
    return (4, 40, 100) if quick else (8, 200, 240)


def check(quick: bool, base_ms: int | None) -> None:
    workers, base, _ = scale(quick)
    fit.check_here(workers, base_ms or base, Deadline.at_once)


def figure(out: str, quick: bool, fresh: bool, base_ms: int | None, rounds: int | None, seed: int) -> int:
    """Makes the figure.  Returns the exit status."""
    workers, base, n = scale(quick)
    series = Deadline(NAME, runs(quick, workers, base_ms or base, rounds or n, seed), fresh, quick)
    print(f"figures: {NAME}: {len(series.todo)} of {series.progress.total} runs to make, {series.left()}", flush=True)
    return series.present(out)
