# SPDX-License-Identifier: GPL-2.0-or-later
"""Is the simulation of accuracy.py right?  Settings of its grid, each at one rate, trained by real workers as well.

Both have the same seeds, so the same stalls, data and model; in the simulation the clock is not real."""

import math
import os
import statistics
import tempfile
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import accuracy
import fit
import picture
import train_report
from accuracy_plan import OPTIMISERS, STALLS, WORKERS, Cell, Setting
from lab import BUILD, NET, BenchError, check_built, run
from series import RealSeries
from workers import Jobs, Workers

NAME = "real"
SEEDS = 3
TARGETS = (85, 90, 93, 95)
TARGET = TARGETS[-1]
NEAR = .1		# of the simulated time
POINTS = 6		# at least so many must be near
MORE = 1.5		# a run has so many times the rounds in which the simulation reaches the target
RUN_S, START_S, SLOW = 15, 120, 10		# of a run, roughly; workers start in so long; a run may take so many times as long
RING = 32		# a worker that waits for a processor may be some rounds behind
WORKER_MIB = 40
PROGRAM = os.path.join(BUILD, "saina-train")


@dataclass(frozen=True)
class Run:
    setting: Setting
    rate: float
    seed: int

    figure, workers = NAME, WORKERS

    @property
    def cell(self) -> Cell:
        return Cell(self.setting, self.seed)

    @property
    def key(self) -> str:
        return f"{self.cell.key}-r{self.rate:g}"

    def spec(self) -> dict:
        return {**self.cell.spec(), "rates": [self.rate], "targets": TARGETS, "more": MORE}

    def seconds(self) -> float:
        return RUN_S


def points(quick: bool) -> list[tuple[Setting, float]]:
    """With the rates that are the best ones of the simulation, and one that is not."""
    def of(policy: str, late: str, optimiser: str, rate: float, finish: bool = False) -> tuple[Setting, float]:
        kind = policy.split(":")[0]
        return Setting({"fastest": "fixed"}.get(kind, kind if kind in ("bsp", "sfcd", "timeout") else "steps"), policy, late, optimiser, finish=finish), rate

    k8 = f"fastest:k={WORKERS // 2}"
    if quick:
        return [of(k8, "drop", "momentum", .32)]
    return [
        of("bsp", "", "sgd", .8), of("bsp", "", "momentum", .64), of("bsp", "", "adam", .0256),
        of(k8, "residual", "sgd", .8), of(k8, "residual", "momentum", .08), of(k8, "residual", "momentum", .16), of(k8, "residual", "adam", .0128),
        of(k8, "drop", "sgd", .8), of(k8, "drop", "momentum", .32), of(k8, "drop", "adam", .0512),
        of(k8, "residual", "momentum", .08, True), of(k8, "residual", "adam", .0128, True),
        of(k8, "drop", "momentum", .32, True), of(k8, "drop", "adam", .0512, True),
        of("timeout:10ms,kmin=8", "residual", "sgd", .8), of("timeout:10ms,kmin=8", "drop", "momentum", .32),
        of("ssp:4", "", "sgd", .8), of("asp", "", "sgd", .8), of("grouped:g=4", "", "sgd", .8),
        of("sfcd:k0=8,sth=0.4,cth=5", "residual", "sgd", .8),
    ]


def runs(quick: bool, seeds: int) -> list[Run]:
    """Seed by seed, so that what is there is comparable at any time."""
    return [Run(setting, rate, seed) for seed in range(1, seeds + 1) for setting, rate in points(quick)]


def simulated(of: Run, digits: str) -> dict:
    found = accuracy.read(run(accuracy.SIMULATION, *of.cell.options(of.rate), "--data", digits))
    if any(found["times"][str(t)] is None for t in TARGETS):
        raise BenchError(f"the simulation does not reach {TARGET} %")
    return found


def train(jobs: Jobs, of: Run, rounds: int, digits: str, folder: str) -> dict:
    """The run of real workers, as the report of make demo has it."""
    s, cell = of.setting, of.cell
    words = ["--data", digits, "--seed", str(of.seed), "--workers", str(WORKERS), "--hidden", str(cell.hidden), "--batch", str(cell.batch),
             "--rate", repr(of.rate), "--base", str(cell.base_ms), *OPTIMISERS[s.optimiser], *STALLS[s.stalls]]
    parameters = int(run(PROGRAM, "--describe", *words).split("parameters=")[1].split()[0])
    job = jobs.add(NAME, WORKERS, s.text(), parameters, "ring", str(RING))
    try:
        with Workers(jobs.lab, NAME, folder) as workers:
            for w in range(WORKERS):
                workers.start(w, PROGRAM, *words, *(["--finish"] if s.finish else []), "--aggregator", f"{NET}.1", "--job", str(job), "--worker", str(w),
                              "--rounds", str(rounds), "--eval", str(cell.eval), "--progress", "0", "--policy", s.text(), "--run", NAME, "--out", folder)
            for w in range(WORKERS):
                workers.wait(w, START_S + SLOW * RUN_S)
    finally:
        jobs.delete(NAME)
    try:
        made = train_report.Run(folder, TARGET / 100)
    except train_report.ReadError as e:
        raise BenchError(str(e)) from e
    return made.json(made)


def measure(jobs: Jobs, of: Run) -> dict:
    digits = accuracy.data()
    model = simulated(of, digits)
    rounds = math.ceil(MORE * model["rounds"] * model["times"][str(TARGET)] / model["seconds"]) + 10
    with tempfile.TemporaryDirectory(prefix="saina-real-") as folder:
        made = train(jobs, of, rounds, digits, folder)
    if made["models_identical"] is False:
        raise BenchError("the models of the workers differ")
    times = {str(t): next((p["s"] for p in made["curve"] if 100 * p["accuracy"] >= t), None) for t in TARGETS}
    return {"times": times, "simulated": {str(t): model["times"][str(t)] for t in TARGETS}, "rounds": rounds, "k": made["k_last"],
            "round_ms": 1000 * made["seconds"] / made["rounds"], "round_ms_simulated": 1000 * model["seconds"] / model["rounds"], "late": made["late_share"]}


def median(values: list[float | None]) -> float | None:
    """Of times, None if the median seed does not get there."""
    middle = statistics.median_high(math.inf if v is None else v for v in values)
    return None if middle == math.inf else middle


def compared(setting: Setting, rate: float, results: list[dict]) -> dict:
    """A point, by its seeds.  Ratio: simulated by real time to the target, of medians; ratios: over all targets, the
    geometric mean of the seeds that reach them, and its standard error."""
    real, simulation = (median([r[of][str(TARGET)] for r in results]) for of in ("times", "simulated"))
    logs = [statistics.mean(math.log(r["simulated"][str(t)] / r["times"][str(t)]) for t in TARGETS)
            for r in results if None not in r["times"].values()]
    ratio = simulation / real if real and simulation else None
    ratios = math.exp(statistics.mean(logs)) if logs else None
    return {"setting": asdict(setting), "policy": setting.text(), "rate": rate, "seeds": len(results), "real": real, "simulated": simulation, "ratio": ratio,
            "near": ratio is not None and abs(ratio - 1) <= NEAR, "ratios": ratios,
            "error": ratios * statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else None,
            "slower": statistics.median(r["round_ms"] / r["round_ms_simulated"] for r in results)}


class Real(RealSeries):
    @contextmanager
    def session(self, jobs: Jobs):
        yield lambda of: measure(jobs, of)

    def summary(self, of: Run) -> str:
        m = self.made[of]
        real, simulation = m["times"][str(TARGET)], m["simulated"][str(TARGET)]
        return f"{seconds(real)} s to {TARGET} %, simulated {seconds(simulation)}"

    def rows(self) -> list[dict]:
        by: dict[tuple[Setting, float], list[dict]] = {}
        for r, m in self.made.items():
            by.setdefault((r.setting, r.rate), []).append(m)
        return [compared(*point, results) for point, results in by.items()]

    def report(self) -> tuple[str, list[dict], dict[str, list[str]]]:
        rows = self.rows()
        near = sum(r["near"] for r in rows)
        lines = [f"{f'real: seconds to {TARGET} %':<44}{'rate':>8}{'seeds':>7}{'real':>8}{'simul.':>8}{'ratio':>8}  {'four targets':<16}{'round':>7}", *map(line, rows),
                 f"simulated within {NEAR:.0%} of real: {near} of {len(rows)} points; at least {POINTS}: {self.verdict(near)}"]
        return "\n".join(lines), rows, {"simulated / real, four targets": [
            picture.point(i, f"{r['setting']['optimiser']}, {r['policy']}", r["ratios"], r["ratios"] - (r["error"] or 0), r["ratios"] + (r["error"] or 0))
            for i, r in enumerate(rows) if r["ratios"]]}

    def verdict(self, near: int) -> str:
        return "reached" if near >= POINTS else "MISSED" if self.complete() and not self.quick else "incomplete"


def seconds(x: float | None) -> str:
    return "-" if x is None else f"{x:.1f}"


def line(r: dict) -> str:
    s = r["setting"]
    name = f"{s['optimiser']}{', finished' if s['finish'] else ''}, {r['policy']}"
    ratio, ratios = (f"{x:.2f}" if x else "-" for x in (r["ratio"], r["ratios"]))
    error = f" +- {r['error']:.2f}" if r["error"] is not None else ""
    return f"{name:<44}{r['rate']:>8g}{r['seeds']:>7}{seconds(r['real']):>8}{seconds(r['simulated']):>8}{ratio:>8}  {ratios + error:<16}{r['slower']:>7.2f}" + \
        ("" if r["near"] else "  not near")


def check() -> None:
    accuracy.check()
    check_built("saina-train")
    fit.check_here(WORKERS, Cell.base_ms, Real.at_once, WORKER_MIB)


def figure(out: str, quick: bool, seeds: int | None, fresh: bool) -> int:
    """The exit status."""
    series = Real(NAME, runs(quick, 1 if quick else seeds or SEEDS), fresh, quick)
    print(f"figures: {NAME}: {len(series.todo)} of {series.progress.total} runs to make, {series.left()}", flush=True)
    return series.present(out)
