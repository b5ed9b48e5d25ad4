# SPDX-License-Identifier: GPL-2.0-or-later
"""The figure fashion: time to accuracy with Fashion-MNIST and DistributedDataParallel, by policy and optimiser.

Packets, gradients and rounds are real.  How long a gradient takes is emulated: after computing, fashion_rank.py sleeps
for the rest of the time that was drawn.  So other load on the machine does not change it, if the base is long enough."""

import json
import math
import os
import re
import select
import statistics
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import fit
import models
import picture
from lab import BUILD, BenchError, run
from series import RealSeries
from workers import Jobs

NAME = "fashion"
FOLDER = "/usr/share/datasets/fashion-mnist"
PYTHON = "/usr/bin/python3"		# Debian's, which has Debian's PyTorch
HERE = os.path.dirname(os.path.realpath(__file__))
WORKERS = 4
RANK_MIB = 400		# memory of a rank, roughly
ELEMENTS = 40000
TARGETS, TARGET = (65, 70, 75, 80), 75
ADAM = (0.002, 0.004, 0.008, 0.016, 0.032)
RATES = {"momentum": (0.01, 0.02, 0.04, 0.08, 0.16), "adam": ADAM, "adamw": ADAM}
NEVER = math.inf
LAST = 5		# tests whose mean is the final accuracy
START_S, SLOW = 120, 10		# seconds in which ranks start; a run may take this many times its expected time


@dataclass(frozen=True)
class Run:
    policy: str
    optimiser: str
    rate: float
    seed: int
    rounds: int
    base_ms: float

    figure, workers = NAME, WORKERS

    @property
    def key(self) -> str:
        policy = self.policy.replace(":", "-").replace("=", "").replace(",", "-")
        return f"{self.optimiser}-{policy}-r{self.rate:g}-s{self.seed}"

    def spec(self) -> dict:
        return {**asdict(self), "workers": WORKERS}

    def draws(self) -> models.Draws:
        return models.draw("serene", WORKERS, self.rounds, self.seed)

    def seconds(self) -> float:
        """The expected time, at most: that of BSP, and two seconds."""
        return models.finished(self.draws(), WORKERS) * self.rounds * self.base_ms / 1000 + 2

    def model_ms(self) -> float:
        """Milliseconds of a round with the same draws, if computing, packets and other work on the machine took no time."""
        least = re.search(r"k=(\d+)|kmin=(\d+)", self.policy)
        k = int(least[1] or least[2]) if least else WORKERS
        return self.base_ms * models.finished(self.draws(), k, .1 if self.policy.startswith("timeout") else None)


def runs(quick: bool, seeds: int, rounds: int, base_ms: float) -> list[Run]:
    """All runs, seed by seed, so that settings can be compared whenever the figure is stopped."""
    policies = ["bsp", "fastest:k=3", "fastest:k=3,late=drop", f"timeout:{base_ms * 100:.0f}us,kmin=2,late=drop"]
    if quick:
        return [Run("bsp", "momentum", .04, 1, rounds, base_ms), Run(policies[2], "momentum", .04, 1, rounds, base_ms),
                Run(policies[1], "adam", .004, 1, rounds, base_ms)]
    return [Run(p, o, rate, seed, rounds, base_ms) for seed in range(1, seeds + 1) for o, rates in RATES.items() for rate in rates for p in policies]


class Ranks:
    """The ranks, each in a namespace, which make all runs.  Started for the first run, and again after one that failed."""

    def __init__(self, jobs: Jobs, folder: str):
        self.jobs, self.folder = jobs, folder
        self.running: list[subprocess.Popen] = []

    def start(self) -> None:
        env = {"PYTHONPATH": BUILD + "/python", "SAINA_LIBRARY": BUILD + "/libsaina.so.0", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
               "SAINA_AGGREGATOR": self.jobs.lab.aggregator, "SAINA_SHARE": self.jobs.lab.share}
        for rank in range(WORKERS):
            command = ["env", *(f"{k}={v}" for k, v in env.items()), f"SAINA_RANK={rank}",
                       PYTHON, os.path.join(HERE, "fashion_rank.py"), str(rank), str(WORKERS), FOLDER, self.folder]
            with open(self.log(rank), "wb") as err:
                self.running.append(subprocess.Popen(self.jobs.lab.inside(rank, *command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err,
                                                     start_new_session=True))

    def log(self, rank: int) -> str:
        return os.path.join(self.folder, f"rank-{rank}.log")

    def stop(self) -> None:
        for p in self.running:
            p.kill()
            p.communicate()
        self.running = []

    def measure(self, wanted: Run) -> dict:
        limit = SLOW * wanted.seconds() + (0 if self.running else START_S)
        if not self.running:
            self.start()
        job = self.jobs.add("figure", WORKERS, wanted.policy, ELEMENTS)
        try:
            results = self.results({**asdict(wanted), "job": job}, time.monotonic() + limit)
        except BenchError:
            self.stop()
            raise
        finally:
            self.jobs.delete("figure")
        if len({r["digest"] for r in results}) != 1:
            raise BenchError("the models of the ranks differ")
        curve = results[0].pop("curve")
        return {"curve": curve, "ranks": results}

    def results(self, job: dict, until: float) -> list[dict]:
        """Sends a run to all ranks.  Returns what each of them has printed, a line of JSON."""
        self.tell(json.dumps(job))
        found = {}
        while len(found) < WORKERS:
            waiting = {p.stdout: rank for rank, p in enumerate(self.running) if rank not in found}
            ready, _, _ = select.select(list(waiting), [], [], max(0, until - time.monotonic()))
            if not ready:
                raise BenchError(f"ranks {', '.join(map(str, waiting.values()))} have not ended after {SLOW} times the expected time")
            for f in ready:
                line = f.readline()
                if not line:
                    raise BenchError(self.ended(waiting[f]))
                found[waiting[f]] = json.loads(line)
        self.tell("")
        return [found[rank] for rank in range(WORKERS)]

    def tell(self, text: str) -> None:
        for rank, p in enumerate(self.running):
            try:
                p.stdin.write(f"{text}\n".encode())
                p.stdin.flush()
            except BrokenPipeError:
                raise BenchError(self.ended(rank)) from None

    def ended(self, rank: int) -> str:
        """Why a rank ended: the last error in its log."""
        with open(self.log(rank), encoding="utf-8", errors="replace") as f:
            lines = f.read().strip().splitlines()
        return f"rank {rank} ended: {next((x for x in reversed(lines) if 'Error' in x), ' '.join(lines)[-400:])}"


def first(curve: list, target: float) -> float:
    return next((t for t, _, a in curve if a >= target), NEVER)


def at_rate(results: list[dict]) -> dict:
    """The figures of a setting at a rate; results: of its seeds."""
    def times(target: float) -> list[float]:
        return sorted(first(r["curve"], target) for r in results)

    return {"times": {t: statistics.median_high(times(t)) for t in TARGETS}, "least": times(TARGET)[0], "most": times(TARGET)[-1],
            "final": statistics.median(statistics.mean(a for *_, a in r["curve"][-LAST:]) for r in results),
            "round_ms": statistics.median(1000 * r["ranks"][0]["seconds"] / r["ranks"][0]["rounds"] for r in results),
            "to_model": max(1000 * r["ranks"][0]["seconds"] / r["ranks"][0]["rounds"] / r["model_ms"] for r in results),
            "late": statistics.mean(w["late"] for r in results for w in r["ranks"]),
            "skipped": statistics.mean(w["skipped"] / w["rounds"] for r in results for w in r["ranks"]),
            "over_ms": statistics.mean(w["computed_over_ms"] for r in results for w in r["ranks"]),
            "longest_ms": max(r["ranks"][0]["longest_ms"] for r in results), "seeds": len(results)}


class Fashion(RealSeries):
    @contextmanager
    def session(self, jobs: Jobs):
        with tempfile.TemporaryDirectory(prefix="saina-fashion-") as folder:
            ranks = Ranks(jobs, folder)
            try:
                yield ranks.measure
            finally:
                ranks.stop()

    def summary(self, of: Run) -> str:
        curve = self.made[of]["curve"]
        return f"{curve[-1][2]:.1f} % after {curve[-1][0]:.1f} s"

    def rows(self) -> list[dict]:
        """Each setting at its best rate: with the shortest median time to the target, then the highest final accuracy."""
        by: dict[tuple, dict[float, list[dict]]] = {}
        for r, result in self.made.items():
            by.setdefault((r.optimiser, r.policy), {}).setdefault(r.rate, []).append({**result, "model_ms": r.model_ms()})
        rows = []
        for (optimiser, policy), rates in by.items():
            of_rates = {rate: at_rate(results) for rate, results in rates.items()}
            best = min(of_rates, key=lambda r: (of_rates[r]["times"][TARGET], -of_rates[r]["final"]))
            rows.append({"optimiser": optimiser, "policy": policy, "rate": best, "rates": sorted(of_rates),
                         "edge": len(of_rates) > 1 and best in (min(of_rates), max(of_rates)), **of_rates[best]})
        for row in rows:
            bsp = next((r["times"][TARGET] for r in rows if (r["optimiser"], r["policy"]) == (row["optimiser"], "bsp")), NEVER)
            row["faster"] = bsp / row["times"][TARGET] if NEVER not in (bsp, row["times"][TARGET]) else None
        return rows

    def report(self) -> tuple[str, list[dict], dict[str, list[str]]]:
        rows = self.rows()
        lines = []
        panels = {}
        for optimiser in dict.fromkeys(r["optimiser"] for r in rows):
            mine = [r for r in rows if r["optimiser"] == optimiser]
            lines += [*([""] if lines else []), f"fashion: {optimiser}; seconds to an accuracy, each at its best rate",
                      f"{'':<32}{'rate':>8}{'round ms':>9}{'x model':>8}" + "".join(f"{t:>6} %" for t in TARGETS) +
                      f"  {f'to {TARGET} %, all seeds':<18}{'seeds':>6}{'x bsp':>7}{'final':>7}{'late':>7}{'skipped':>8}{'over ms':>8}"]
            lines += [line(r) for r in mine]
            panels[f"{optimiser}: seconds to {TARGET} % (median, all seeds)"] = [
                picture.point(i, r["policy"], r["times"][TARGET], r["least"], math.nan if r["most"] == NEVER else r["most"])
                for i, r in enumerate(sorted(mine, key=lambda r: -r["times"][TARGET])) if r["times"][TARGET] < NEVER]
        plain = [{k: None if v == NEVER else {str(t): None if s == NEVER else s for t, s in v.items()} if k == "times" else v for k, v in r.items()}
                 for r in rows]
        return "\n".join(lines), plain, panels


def seconds(x: float) -> str:
    return "-" if x == NEVER else f"{x:.1f}"


def line(r: dict) -> str:
    spread = f"{seconds(r['least'])} .. {seconds(r['most'])}"
    return f"{r['policy']:<32}{r['rate']:>8g}{r['round_ms']:>9.0f}{r['to_model']:>8.2f}" + "".join(f"{seconds(r['times'][t]):>8}" for t in TARGETS) + \
        f"  {spread:<18}{r['seeds']:>6}" + (f"{r['faster']:>7.2f}" if r["faster"] else f"{'-':>7}") + \
        f"{r['final']:>6.1f}%{r['late']:>7.1%}{r['skipped']:>8.1%}{r['over_ms']:>8.1f}" + ("  at the edge of the grid" if r["edge"] else "")


def missing() -> str:
    """What is not installed, with the command that installs it; "" if nothing is missing."""
    if not os.path.exists(os.path.join(FOLDER, "train-images-idx3-ubyte.gz")):
        what = "Fashion-MNIST"
    elif run(PYTHON, "-c", "import importlib.util; print(bool(importlib.util.find_spec('torch')))").strip() != "True":
        what = "PyTorch"
    else:
        return ""
    return f"{what} is not installed: run `tools/install-deps fashion'"


def scale(quick: bool) -> tuple[int, int]:
    """Base (ms), number of rounds."""
    return (60, 40) if quick else (100, 200)


def check(quick: bool, base_ms: float | None) -> None:
    fit.check_here(WORKERS, base_ms or scale(quick)[0], Fashion.at_once, RANK_MIB)


def figure(out: str, quick: bool, seeds: int | None, fresh: bool, base_ms: float | None, rounds: int | None) -> int:
    """Makes the figure.  Returns the exit status."""
    base, n = scale(quick)
    series = Fashion(NAME, runs(quick, seeds or 3, rounds or n, base_ms or base), fresh, quick)
    print(f"figures: {NAME}: {len(series.todo)} of {series.progress.total} runs to make, {series.left()}", flush=True)
    return series.present(out)
