# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of time to accuracy: each setting at its best rate, SAINA's tables, what a gain is made of, the bars.

Documentation/figures.rst says how to read it."""

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

import picture
from accuracy_plan import COUNTS, FIXED, LATE, OPTIMISERS, SERENE, TARGETS, THRESHOLDS, WORKERS, Cell, Setting, late_rules, rates, sfcd

NEVER = float("inf")
TARGET = 95
FASTER = 1.7		# SAINA on VGG-16
HALF = WORKERS // 2


@dataclass(frozen=True)
class Row:
    """A setting at a rate: medians of the seeds that were made.

    times: seconds to each target, infinite if the median seed does not reach it
    edge: the rate is the smallest or largest of the grid
    least, most: seconds to TARGET of the fastest and the slowest seed
    final: accuracy at the end, per cent; late: share of late gradients, per cent
    """

    setting: Setting
    rate: float
    edge: bool
    times: dict[int, float]		# by target
    least: float
    most: float
    final: float
    round_ms: float
    late: float
    k: int
    seeds: int

    @property
    def time(self) -> float:
        return self.times[TARGET]

    @property
    def rounds(self) -> float:
        """Rounds to the target."""
        return 1000 * self.time / self.round_ms

    def plain(self) -> dict:
        times = {str(t): None if s == NEVER else s for t, s in self.times.items()}
        return {**asdict(self), "setting": asdict(self.setting), "times": times, "most": None if self.most == NEVER else self.most,
                "least": None if self.least == NEVER else self.least}


def at_rate(setting: Setting, i: int, results: list[dict]) -> Row:
    grid = rates(setting.optimiser)
    mine = [r["rates"][i] for r in results]

    def times(target: int) -> list[float]:
        return sorted(NEVER if m["times"][str(target)] is None else m["times"][str(target)] for m in mine)

    to_target = times(TARGET)
    return Row(setting, grid[i], i in (0, len(grid) - 1), {t: statistics.median_high(times(t)) for t in TARGETS}, to_target[0], to_target[-1],
               statistics.median(m["final"] for m in mine), statistics.median(1000 * m["seconds"] / m["rounds"] for m in mine),
               statistics.median(m["late"] for m in mine), statistics.median_low(m["k"] for m in mine), len(mine))


class Table:
    """Rows by setting: best() is at the rate with the shortest time to the target."""

    def __init__(self, made: dict[Cell, dict], seeds: Iterable[int]):
        by: dict[Setting, list[dict]] = {}
        wanted = set(seeds)
        for cell, result in made.items():
            if cell.seed in wanted:
                by.setdefault(cell.setting, []).append(result)
        self.rows = {s: [at_rate(s, i, r) for i in range(len(rates(s.optimiser)))] for s, r in by.items()}

    def best(self, setting: Setting) -> Row | None:
        return min(self.rows[setting], key=lambda r: (r.time, -r.final)) if setting in self.rows else None

    def at(self, setting: Setting, rate: float) -> Row | None:
        return next((r for r in self.rows.get(setting, []) if r.rate == rate), None)

    def groups(self) -> list[tuple]:
        return list(dict.fromkeys(s.group() for s in self.rows))

    def of(self, group: tuple, wanted: Callable[[Setting], bool] = lambda _: True) -> list[Row]:
        """The rows of a group at their best rates.  bsp is in groups with and without finish: its rounds wait for all."""
        return [self.best(s) for s in self.rows if wanted(s) and (s.group() == group or (s.kind == "bsp" and s.group() == (group[0], False, group[2])))]

    def fastest(self, group: tuple, wanted: Callable[[Setting], bool]) -> Row | None:
        return min(self.of(group, wanted), key=lambda r: (r.time, -r.final), default=None)


def number(x: float | None, width: int = 7, digits: int = 1) -> str:
    return f"{'-':>{width}}" if x is None or x in (NEVER, -NEVER) else f"{x:{width}.{digits}f}"


def ratio(a: Row | None, b: Row | None) -> float | None:
    """How many times faster b reaches the target than a; None if one of them does not, or was not trained."""
    return None if not a or not b or NEVER in (a.time, b.time) else a.time / b.time


def faster(other: Row | None, row: Row | None) -> float | None:
    """As ratio(), but one that does not reach the target is infinitely slower; None: neither does, or one was not trained."""
    if not other or not row or other.time == row.time == NEVER:
        return None
    return NEVER if other.time == NEVER else 0 if row.time == NEVER else other.time / row.time


def name_of(group: tuple) -> str:
    stalls, finish, optimiser = group
    return f"{optimiser}, {'stalls' if stalls == SERENE else stalls}" + (", finished" if finish else "")


ADAPTIVE = {"adaptive": ("sfcd", "dbw"), "deadline": ("deadline",)}		# kinds of settings that are judged


def of_kinds(*kinds: str) -> Callable[[Setting], bool]:
    return lambda s: s.kind in kinds


def fixed_k(k: int) -> Callable[[Setting], bool]:
    return lambda s: s.kind == "bsp" if k == WORKERS else s.policy == f"fastest:k={k}" and s.kind == "fixed"


def all_rows(table: Table, group: tuple) -> list[str]:
    bsp = table.fastest(group, fixed_k(WORKERS))
    lines = ["", f"accuracy: {name_of(group)}; seconds to an accuracy, each at its best rate",
             f"{'':<34}{'rate':>9}{'round ms':>9}" + "".join(f"{t:>6} %" for t in TARGETS) + f"  {f'to {TARGET} %, all seeds':<18}{'x bsp':>6}{'final':>8}"]
    for r in table.of(group):
        spread = f"{number(r.least, 0).strip()} .. {number(r.most, 0).strip()}"
        lines.append(f"{r.setting.text():<34}{r.rate:>9g}{r.round_ms:>9.0f}" + "".join(number(r.times[t], 8) for t in TARGETS) +
                     f"  {spread:<18}{number(ratio(bsp, r), 6, 2)}{r.final:>7.1f}%" + ("  at the edge of the grid" if r.edge and r.time < NEVER else ""))
    return lines


def saina_tables(table: Table, group: tuple) -> list[str]:
    """Tables in the form of those that SAINA's README published."""
    def time(policy: str, late: str) -> str:
        r = table.best(Setting("sfcd", policy, late, group[2], group[0], group[1]))
        return number(r and r.time, 8)

    lines = ["", f"SAINA's tables: {name_of(group)}; seconds to {TARGET} %",
             f"{'s_th (k0=1, c_th=5)':<28}" + "".join(f"{s:>7}%" for s in THRESHOLDS)]
    lines += [f"  late={late:<21}" + "".join(time(sfcd(1, s, "5"), late) for s in THRESHOLDS) for late in LATE]
    lines += [f"{'c_th (k0=1, s_th=50 %)':<28}" + "".join(f"{c if c != 'k' else 'k*':>8}" for c in COUNTS)]
    lines += [f"  late={late:<21}" + "".join(time(sfcd(1, 50, c), late) for c in COUNTS) for late in LATE]
    bsp = table.fastest(group, fixed_k(WORKERS))
    lines.append(f"{'scheme (best late rule)':<28}{'final':>8}{'to k=16':>9}{f'to {TARGET} %':>9}")
    for label, wanted in (*((f"k={k}", fixed_k(k)) for k in FIXED), ("adaptive, SFCD", of_kinds("sfcd")), ("adaptive, DBW", of_kinds("dbw")),
                          ("adaptive, deadline", of_kinds("deadline"))):
        r = table.fastest(group, wanted)
        if r:
            lines.append(f"  {label:<26}{r.final:>7.1f}%{number(ratio(bsp, r), 8, 2)}x{number(r.time, 9)}  {r.setting.text()}")
    return lines


def parts(table: Table, group: tuple) -> list[tuple[str, float | None, float | None]]:
    """What fastest:k=N/2,late=residual gains over bsp, as factors: (label, at the best rate of bsp, each at its own).

    The product of the factors of a column is the gain.  Between bsp and the policy: its rounds, but with all gradients; only those in
    time (drop); the late ones as well, without staleness, in a mean (fresh, mean=all), in a sum by k (fresh); and
    as they are (residual)."""
    stalls, finish, optimiser = group

    def chain(rate: float | None) -> list[Row] | None:
        wanted = [Setting("bsp", "bsp", "", optimiser, stalls)] + [Setting(kind, f"fastest:k={HALF}{mean}", late, optimiser, stalls, finish) for kind, mean, late in
                                                                  (("fixed", "", "drop"), ("probe", ",mean=all", "fresh"), ("probe", "", "fresh"), ("fixed", "", "residual"))]
        rows = [table.best(s) if rate is None else table.at(s, rate) for s in wanted]
        return None if None in rows else rows

    bsp = table.best(Setting("bsp", "bsp", "", optimiser, stalls))
    chains = [chain(bsp.rate), chain(None)] if bsp else [None]
    if None in chains:
        return []

    def factor(a: float, b: float) -> float | None:
        return None if NEVER in (a, b) else a / b

    found = [("shorter rounds", *(factor(c[0].round_ms, c[1].round_ms) for c in chains))]
    for i, label in enumerate(("without what is late", "late gradients without staleness, in a mean", "larger steps", "staleness")):
        found.append((label, *(factor(c[i].rounds, c[i + 1].rounds) for c in chains)))
    return [*found, ("all", *(factor(c[0].time, c[-1].time) for c in chains))]


def parts_table(table: Table, group: tuple) -> list[str]:
    found = parts(table, group)
    if not found:
        return []
    return ["", f"what fastest:k={HALF} gains over bsp: {name_of(group)}; factors of the time to {TARGET} %",
            f"{'':<46}{'at the rate of bsp':>20}{'each at its own':>18}",
            *(f"{label:<46}{number(a, 20, 2)}{number(b, 18, 2)}" for label, a, b in found)]


def late_table(table: Table) -> list[str]:
    """The rules for late gradients, by optimiser."""
    lines = []
    for optimiser in OPTIMISERS:
        bsp = table.best(Setting("bsp", "bsp", "", optimiser))
        rules = {name: table.best(s) for name, s in late_rules(optimiser).items()}
        if bsp and any(rules.values()):
            lines.append(f"{optimiser:<12}{number(bsp.time, 8)}" + "".join(f"{number(r and r.time, 9)} {f'({number(ratio(bsp, r), 0, 2)})':<8}" for r in rules.values()))
    head = f"{'':<12}{'bsp':>8}" + "".join(f"{name:>18}" for name in late_rules("sgd"))
    return ["", f"Late gradients, every gradient is finished; seconds to {TARGET} % (times faster than bsp)", head, *lines] if lines else []


def judge_group(group: tuple, name: str, table: Table, chosen: Table, held: Table) -> list[dict]:
    """The bars of a group for ADAPTIVE[name].  table: all seeds; chosen: the seeds by which settings and rates are chosen; held: the others."""
    def pair(wanted: Callable[[Setting], bool]) -> tuple[Row | None, Row | None]:
        by_half = chosen.fastest(group, wanted)
        return table.fastest(group, wanted), by_half and held.at(by_half.setting, by_half.rate)

    best = pair(of_kinds(*ADAPTIVE[name]))
    if not best[0]:
        return []
    bars = []
    for k in reversed(FIXED):
        other = pair(fixed_k(k))
        values = [faster(o, b) for o, b in zip(other, best)]
        bars.append((f"best {name} to k={k}: times faster", FASTER if k == WORKERS else 1, *values))
    half = pair(fixed_k(HALF))
    bars.append((f"best {name}: final accuracy to that of k={HALF}, points", 0, *(b and o and b.final - o.final for o, b in zip(half, best))))
    # Equal times are not faster, so with least = 1 the value must be above it.
    return [{"bar": f"{name_of(group)}: {text}", "least": least, "value": v if v != NEVER else "never", "held_out": h if h != NEVER else "never",
             "at": best[0].setting.text(), "verdict": verdict(v, h, least, "faster" in text and least == 1)} for text, least, v, h in bars]


def verdict(value: float | None, held: float | None, least: float, strict: bool) -> str:
    def good(x: float | None) -> bool:
        return x is not None and (x > least if strict else x >= least)
    if value is None:
        return "not measured"
    if not good(value):
        return "MISSED"
    return "incomplete" if held is None else "reached" if good(held) else "MISSED by other seeds"


def judge(made: dict[Cell, dict]) -> list[dict]:
    seeds = sorted({c.seed for c in made})
    half = len(seeds) // 2
    tables = Table(made, seeds), Table(made, seeds[:half]), Table(made, seeds[half:])
    return [b for group in tables[0].groups() for name in ADAPTIVE for b in judge_group(group, name, *tables)]


def verdicts(bars: list[dict]) -> list[str]:
    def value(x) -> str:
        return f"{x:>8}" if isinstance(x, str) else number(x, 8, 2)
    return ["", "What must be reached: judged by all seeds; and, with settings and rates chosen by one half of the seeds, judged by the other half",
            *(f"{b['bar']:<74}{'>' if b['least'] == 1 else '>='} {b['least']:<4g}{value(b['value'])}{value(b['held_out'])}  {b['verdict']:<22} {b['at']}" for b in bars)]


def text(made: dict[Cell, dict]) -> tuple[str, list[Row], list[dict]]:
    table = Table(made, {c.seed for c in made})
    lines: list[str] = []
    for group in sorted(table.groups(), key=lambda g: (g[0] != SERENE, g[1], list(OPTIMISERS).index(g[2]))):
        lines += all_rows(table, group)
        if any(s.kind == "sfcd" and sfcd(1, 50, "k") == s.policy and s.group() == group for s in table.rows):
            lines += saina_tables(table, group)
        lines += parts_table(table, group)
    lines += late_table(table)
    bars = judge(made)
    rows = [table.best(s) for s in table.rows]
    return "\n".join([*lines[1:], *verdicts(bars)]) + "\n", rows, bars


PICTURE = (("bsp", ""), *((f"fastest:k={k}", late) for k in (1, 4, 8, 12, 14) for late in LATE), ("timeout:10ms,kmin=8", "drop"), ("ssp:4", ""), ("asp", ""),
           ("grouped:g=4", ""))


def draw(folder: str, rows: list[Row]) -> list[str]:
    """Draws the time to the target of the settings in PICTURE and of the best of each adaptive kind, a panel for each optimiser."""
    panels = {}
    for optimiser in OPTIMISERS:
        mine = [r for r in rows if r.setting.group() == (SERENE, False, optimiser) and r.time < NEVER]
        shown = [r for p in PICTURE for r in mine if (r.setting.policy, r.setting.late) == p]
        shown += [min(of, key=lambda r: r.time) for kind in ("sfcd", "dbw", "deadline") if (of := [r for r in mine if r.setting.kind == kind])]
        panels[f"{optimiser}: seconds to {TARGET} % (median, all seeds)"] = [
            picture.point(i, r.setting.text(), r.time, r.least, math.nan if r.most == NEVER else r.most)
            for i, r in enumerate(sorted(shown, key=lambda r: -r.time))]
    return picture.draw(folder, "accuracy", "points.gp", panels)
