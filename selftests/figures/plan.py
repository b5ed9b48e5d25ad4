# SPDX-License-Identifier: GPL-2.0-or-later
"""The figures: the runs that each needs, the values that it prints, the published values, and the bars.

The published values are from the papers of Serene and of Basu et al.  A value is a function of two outcomes
(models.Outcome), measured or simulated: that of a run, and that of the run with which it is compared."""

import functools
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import models
from models import Outcome

INFINITE = float("inf")
LONG = 20000			# iterations of a long simulated run
PROGRESSIVE = "progressive"
SERENE_N8 = 0.6			# "40 % less"; published for W = 10: .605; the model has .604
ROUND = 0.03			# of the base: allowed difference of the time of a round
FASTER = 0.05			# allowed difference of "times faster than BSP"


@dataclass(frozen=True)
class Run:
    """Workers of a job under one policy.

    key: name of the run in its figure
    policy: of the job; with groups, before a controller changes it
    pattern: one of models.PATTERNS, or "" if all workers compute equally long, except one that takes 1 + delay
    k, timeout, window: of the model; timeout in units of the base; -1: the run is not of this kind
    groups: of the model; 0: chosen by the controller; -1: the run is not of this kind
    """

    figure: str
    key: str
    workers: int
    iterations: int
    base_ms: float
    seed: int
    policy: str
    pattern: str = ""
    k: int = -1
    timeout: float = -1
    window: float = -1
    groups: int = -1
    delay: float = 0

    def draws(self, iterations: int | None = None) -> models.Draws:
        return models.draw(self.pattern, self.workers, iterations or self.iterations, self.seed if iterations is None else 0)

    @functools.cache		# pylint: disable=method-cache-max-size-none # runs are few, and live as long
    def simulate(self, long: bool) -> Outcome:
        """The outcome that the model predicts, with the draws of this run, or of a long run."""
        if self.groups >= 0:
            g = self.groups or models.progressive(self.workers, self.delay)
            return models.groups(self.workers, g, self.delay, LONG if long else self.iterations)
        draws = self.draws(LONG if long else None)
        if self.window >= 0:
            return models.window(draws, self.window)
        return models.rounds(draws, self.k, None if self.timeout < 0 else self.timeout)

    def seconds(self) -> float:
        """The expected time of the run, roughly."""
        of_work = self.simulate(False).iteration * self.iterations * self.base_ms / 1000
        return of_work + 2 + self.workers / 8 + (0.2 * self.base_ms * (1 + self.delay) if self.groups == 0 else 0)

    def spec(self) -> dict:
        return {k: str(v) if v == INFINITE else v for k, v in asdict(self).items()}


@dataclass(frozen=True)
class Value:
    """A printed value.

    panel, label: the panel of the picture, and the place there
    run, to: the run, and the one with which it is compared
    of: the value, from their outcomes
    """

    panel: str
    label: str
    run: Run
    to: Run | None
    of: Callable[[Outcome, Outcome | None], float]
    published: float | None = None


def iterations_to(run: Outcome, to: Outcome) -> float:
    return run.iteration / to.iteration


def faster_than(run: Outcome, to: Outcome) -> float:
    return to.iteration / run.iteration


def wait_to(run: Outcome, to: Outcome) -> float:
    return run.wait / to.wait


def iteration(run: Outcome, _to: None) -> float:
    return run.iteration


@dataclass(frozen=True)
class Scale:
    """How long runs are.

    iterations, pooled: iterations of runs with draws, and of runs with groups
    quick: few runs
    """

    base_ms: float
    iterations: int
    pooled: int
    seed: int
    quick: bool


FULL, QUICK = Scale(60, 1000, 60, 1, False), Scale(40, 60, 15, 1, True)

# Serene: {number of workers: {window: published value}}
SERENE = {
    4: {2: .777, 10: .736, 16: .740, 32: .723, 48: .719, INFINITE: .710},
    8: {2: None, 10: .605, 16: None, 32: None, 48: None, INFINITE: .577},
    16: {1: None, 2: None, 4: None, 10: None, INFINITE: None},
}
SERENE_QUICK = {4: (2, 10, INFINITE), 8: (10,)}
SERENE_OTHER = (2, 10, INFINITE)		# windows of other numbers of workers


def serene(s: Scale, workers: tuple[int, ...] = ()) -> list[Value]:
    """Staleness: time of an iteration, and time of waiting, relative to those with a barrier."""
    values = []
    for n in workers or (SERENE_QUICK if s.quick else SERENE):
        bsp = Run("serene", f"N{n}-bsp", n, s.iterations, s.base_ms, s.seed, "bsp", "serene", k=n)
        published = SERENE.get(n, dict.fromkeys(SERENE_OTHER))
        windows = SERENE_QUICK.get(n, SERENE_OTHER) if s.quick else published
        waits = []
        for w in windows:
            policy, label = ("asp", "async") if w == INFINITE else (f"ssp:{w}", f"W={w}")
            run = replace(bsp, key=f"N{n}-{policy.replace(':', '')}", policy=policy, k=-1, window=w)
            values.append(Value(f"N = {n}: time of an iteration, BSP = 1", label, run, bsp, iterations_to, published.get(w)))
            waits.append(Value(f"N = {n}: waiting, BSP = 1", label, run, bsp, wait_to))
        values += waits
    return values


def order(s: Scale, _workers=()) -> list[Value]:
    """Order statistics: a round that ends with the k-th of N gradients, in units of the base."""
    values = []
    for n, pattern, title, ks in ((16, "serene", "stalls of Serene", (16, 12) if s.quick else (16, 15, 14, 12)),
                                  (8, "exponential", "exponential computation", (8, 4) if s.quick else (8, 6, 4, 2, 1))):
        for k in ks:
            run = Run("order", f"N{n}-k{k}", n, s.iterations // 2, s.base_ms, s.seed, f"fastest:k={k}", pattern, k=k)
            values.append(Value(f"N = {n}, {title}: a round, in units of the base", f"k={k}", run, None, iteration))
    return values


def timeout(s: Scale, _workers=()) -> list[Value]:
    """A round ends T after its first gradient: how many times faster than with a barrier."""
    bsp = Run("timeout", "bsp", 6, s.iterations // 2, s.base_ms, s.seed, "bsp", "serene", k=6)
    values = []
    for t in (.1, .5) if s.quick else (.1, .25, .5, 1):
        policy = f"timeout:{t * s.base_ms * 1000:.0f}us,kmin=1"
        run = replace(bsp, key=f"T{t:g}", policy=policy, timeout=t)
        values.append(Value("N = 6: times faster than BSP", f"T={t:g} base", run, bsp, faster_than))
    return values


def basu(s: Scale, _workers=()) -> list[Value]:
    """Groups with one delayed worker: time for the same work, relative to that without delay."""
    without = Run("basu", "d0-g1", 16, s.pooled, s.base_ms, s.seed, "grouped:g=1", groups=1)
    values = []
    for delay in (3,) if s.quick else (1, 3, 6):
        panel = f"N = 16, one delayed by {delay:.0%}: time of the work, without delay = 1"
        for g in (1, 4) if s.quick else (1, 2, 4, 8):
            run = replace(without, key=f"d{delay}-g{g}", policy=f"grouped:g={g}", groups=g, delay=delay)
            values.append(Value(panel, f"g={g}", run, without, iterations_to))
        run = replace(without, key=f"d{delay}-{PROGRESSIVE}", groups=0, delay=delay)
        values.append(Value(panel, PROGRESSIVE, run, without, iterations_to, 1.2 if delay == 3 else None))
    return values


FIGURES: dict[str, Callable[..., list[Value]]] = {"serene": serene, "order": order, "timeout": timeout, "basu": basu}


def runs_of(values: list[Value]) -> list[Run]:
    """The runs that the values need, each once; those with the same number of workers together, which share a lab."""
    found = dict.fromkeys(r for v in values for r in (v.to, v.run) if r)
    sizes = list(dict.fromkeys(r.workers for r in found))
    return sorted(found, key=lambda r: sizes.index(r.workers))


# The bars

@dataclass(frozen=True)
class Bar:
    """What a figure must reach: value() of the worst of the rows that wanted() chooses is at most @most."""

    text: str
    figure: str
    most: float
    wanted: Callable[[dict], bool]
    value: Callable[[dict], float]

    def judge(self, rows: list[dict]) -> dict:
        mine = [r for r in rows if r["figure"] == self.figure and self.wanted(r)]
        measured = [r for r in mine if r["measured"] is not None]
        worst = max(measured, key=self.value, default=None)
        value = None if worst is None else round(self.value(worst), 3)
        verdict = "not measured" if value is None else "MISSED" if value > self.most else \
            "reached" if len(mine) == len(measured) else "incomplete"
        return {"bar": self.text, "most": self.most, "value": value, "at": worst and f"{worst['label']}", "rows": len(measured),
                "rows_wanted": len(mine), "verdict": verdict}


def off(row: dict) -> float:
    return abs(row["measured"] - row["simulated"])


def off_same(row: dict) -> float:
    return abs(row["measured"] - row["same_draws"])


def measured(row: dict) -> float:
    return row["measured"]


def of_iterations(n: int, least: float = 0) -> Callable[[dict], bool]:
    return lambda r: r["workers"] == n and "iteration" in r["panel"] and (least == 0 or (r["window"] or 0) >= least)


BARS = (
    Bar("Serene, N = 4: measured to simulated, difference", "serene", .03, of_iterations(4), off),
    Bar("Serene, N = 8: measured to simulated, difference", "serene", .03, of_iterations(8), off),
    Bar("Serene, N = 8, W >= 10: time of an iteration to BSP's", "serene", SERENE_N8, of_iterations(8, 10), measured),
    Bar("order statistics: measured to the same draws', difference", "order", ROUND, lambda _: True, off_same),
    Bar("time-outs: measured to the same draws', difference", "timeout", FASTER, lambda _: True, off_same),
    Bar("Basu: delay 300 %, groups chosen by the controller: to no delay", "basu", 1.2,
        lambda r: r["label"] == PROGRESSIVE and r["delay"] == 3, measured),
)


def judge(rows: list[dict], figures: list[str]) -> list[dict]:
    return [b.judge(rows) for b in BARS if b.figure in figures]
