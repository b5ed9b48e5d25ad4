# SPDX-License-Identifier: GPL-2.0-or-later
"""Time to accuracy: the settings that are compared.

A setting is a policy for workers with an optimiser and stalls.  All settings of an optimiser are trained at
every rate of one grid, with the same seeds (of the model, the order of the data, the stalls)."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

WORKERS = 16
FIXED = (1, WORKERS // 2, WORKERS)	# numbers of gradients that SAINA's tables compare
THRESHOLDS = (30, 40, 50, 60, 70)	# s_th, per cent
COUNTS = ("1", "3", "5", "7", "9", "k")	# c_th
TARGETS = (85, 90, 93, 95, 96)
OPTIMISERS = {"sgd": [], "momentum": ["--momentum", "0.9"], "adam": ["--adam"]}
RATES = {"sgd": (0.0125, 9), "momentum": (0.00125, 11), "adam": (0.0002, 11)}	# the smallest, and how many: each is twice the one before
SERENE, EXPONENTIAL = "serene", "exponential"
TROUBLES = ("slow", "tail", "periods", "none")
STALLS = {SERENE: [], "none": ["--delay", "0"], **{s: ["--stalls", s] for s in (EXPONENTIAL, "slow", "tail", "periods")}}
SECONDS = dict.fromkeys(STALLS, 40) | {EXPONENTIAL: 80}	# simulated time of a training
LATE = ("residual", "drop")


def rates(optimiser: str) -> list[float]:
    least, n = RATES[optimiser]
    return [least * 2 ** i for i in range(n)]


@dataclass(frozen=True)
class Setting:
    """A policy for workers with an optimiser and stalls.

    kind: bsp, fixed, sfcd, dbw, timeout, deadline (a time-out with a controller), steps, or probe, which only the simulation has
    policy: as the simulation names it, without the rule for late gradients
    late: that rule, or "" if no gradient can be late
    finish: workers finish every gradient, as a backward pass in PyTorch does; else they give up when the round is over
    """

    kind: str
    policy: str
    late: str
    optimiser: str
    stalls: str = SERENE
    finish: bool = False

    def text(self) -> str:
        mark = "," if ":" in self.policy else ":"
        return self.policy + (f"{mark}late={self.late}" if self.late not in ("", "residual") else "")

    def group(self) -> tuple[str, bool, str]:
        return self.stalls, self.finish, self.optimiser


@dataclass(frozen=True)
class Cell:
    """A setting with one seed, at each rate: the unit that is made and kept.  spec(): all that its result depends on."""

    setting: Setting
    seed: int
    rounds: int = 100000		# in effect no limit: SECONDS ends the training
    base_ms: float = 100
    net_ms: float = 1
    jitter: float = 0.01
    batch: int = 24
    hidden: int = 128
    eval: int = 2

    figure = "accuracy"

    @property
    def key(self) -> str:
        s = self.setting
        words = (s.stalls, "finish" if s.finish else "", s.optimiser, s.text().replace(":", "-").replace("=", "").replace(",", "-"), f"s{self.seed}")
        return "-".join(filter(None, words))

    def spec(self) -> dict:
        return {**asdict(self), "workers": WORKERS, "rates": rates(self.setting.optimiser), "seconds": SECONDS[self.setting.stalls],
                "targets": TARGETS}

    def options(self, *rates_: float) -> list[str]:
        s = self.setting
        return ["--workers", str(WORKERS), "--rounds", str(self.rounds), "--seconds", str(SECONDS[s.stalls]), "--hidden", str(self.hidden),
                "--batch", str(self.batch), "--base", str(self.base_ms), "--net", str(self.net_ms), "--jitter", str(self.jitter), "--eval", str(self.eval),
                "--seed", str(self.seed), "--progress", "0", "--rate", ",".join(map(repr, rates_)), "--policy", s.text(),
                *OPTIMISERS[s.optimiser], *(["--finish"] if s.finish else []), *STALLS[s.stalls]]


def sfcd(k0: int, s_th: float, c_th: str) -> str:
    return f"sfcd:k0={k0},sth={s_th / 100:g},cth={c_th}"


def saina() -> list[str]:
    """The policies of SAINA's published tables, which start at k = 1."""
    return list(dict.fromkeys([*(sfcd(1, s, "5") for s in THRESHOLDS), *(sfcd(1, 50, c) for c in COUNTS)]))


def both(kind: str, policies: list[str], optimiser: str) -> Iterator[Setting]:
    for p in policies:
        for late in LATE:
            yield Setting(kind, p, late, optimiser)


def fixed(*ks: int) -> list[str]:
    return [f"fastest:k={k}" for k in ks]


def deadlines() -> list[str]:
    """`saina policy control' of a job with a time-out: gradients lose value as they become more, or all are worth the same."""
    return [f"timeout:10ms,kmin={WORKERS // 2},noise={noise}" for noise in (WORKERS, 1000000)]


def main_settings(o: str) -> list[Setting]:
    """All policies with one optimiser."""
    half = WORKERS // 2
    return [
        Setting("bsp", "bsp", "", o),
        *both("fixed", fixed(8, 1, 12, 14, 15, 4, 2), o),
        *both("sfcd", saina(), o),
        *both("sfcd", [sfcd(1, s, c) for s in (10, 20, 25, 35, 45) for c in ("1", "5")], o),
        *both("sfcd", [sfcd(half, s, c) for s in (30, 35, 40, 45, 50) for c in ("1", "5")], o),
        *both("dbw", [f"external:k0={WORKERS},noise={n}" for n in (4, 16, 64)], o),
        *both("timeout", [f"timeout:{t}ms,kmin={half}" for t in (5, 10, 25, 50)], o),
        *both("deadline", deadlines(), o),
        *(Setting("steps", p, "", o) for p in ("ssp:1", "ssp:4", "ssp:10", "asp", "grouped:g=2", "grouped:g=4", "grouped:g=8")),
    ]


def short_settings(o: str, *ks: int) -> list[Setting]:
    half = WORKERS // 2
    return [
        Setting("bsp", "bsp", "", o),
        *both("fixed", fixed(*ks), o),
        *both("sfcd", [*(sfcd(1, s, "5") for s in (10, 20, 30, 40)), *(sfcd(half, s, "5") for s in (35, 40, 45))], o),
        *both("dbw", [f"external:k0={WORKERS},noise=16"], o),
        *both("timeout", [f"timeout:10ms,kmin={half}"], o),
        *both("deadline", deadlines(), o),
    ]


def trouble_settings(o: str, stalls: str) -> list[Setting]:
    """Settings with other stalls.  Workers finish every gradient where it can be late.  Steps only with plain gradient descent."""
    late = [*both("fixed", fixed(15, 12), o), *both("timeout", [f"timeout:10ms,kmin={WORKERS // 2}"], o)]
    steps = [Setting("steps", p, "", o) for p in (("asp", "grouped:g=8") if o == "sgd" else ())]
    return [replace(s, stalls=stalls) for s in (Setting("bsp", "bsp", "", o), *(replace(s, finish=True) for s in late), *steps)]


def probes(o: str, k: int) -> list[Setting]:
    """Settings that show what a gain is made of: late gradients without staleness, in larger steps and in steps of the
    same size."""
    return [Setting("probe", f"fastest:k={k}{mean}", "fresh", o) for mean in ("", ",mean=all")]


def late_rules(o: str) -> dict[str, Setting]:
    """What can become of late gradients, by name; workers finish every gradient.  half: half of a late gradient is
    kept, and half of that when it is late again, which no job can have."""
    def rule(kind: str, k: int, kept: str, late: str) -> Setting:
        return Setting(kind, f"fastest:k={k}{kept}", late, o, finish=True)

    half = WORKERS // 2
    return {f"k={half}, residual": rule("fixed", half, "", "residual"), "half": rule("probe", half, ",keep=0.5", ""), "drop": rule("fixed", half, "", "drop"),
            "k=12, residual": rule("fixed", 12, "", "residual"), "k=12, drop": rule("fixed", 12, "", "drop")}


def settings(quick: bool) -> list[Setting]:
    if quick:
        found = [s for o in ("sgd", "momentum") for s in (Setting("bsp", "bsp", "", o), *both("fixed", fixed(8), o),
                                                          Setting("sfcd", sfcd(8, 40, "5"), "drop", o))]
        return [*found, *late_rules("momentum").values()]
    found = []
    for o in "sgd", "momentum":
        found += main_settings(o)
        found += probes(o, 8)
        found += [replace(s, finish=True) for s in (*short_settings(o, 1, 8, 12, 14), *probes(o, 8)) if s.kind != "bsp"]
        found += [replace(s, stalls=EXPONENTIAL) for s in (*short_settings(o, 1, 2, 4, 8, 12), Setting("steps", "asp", "", o))]
    found += short_settings("adam", 1, 8, 12)
    found += [s for o in OPTIMISERS for s in late_rules(o).values()]
    for stalls in TROUBLES:
        found += [s for o in ("sgd", "momentum") for s in trouble_settings(o, stalls)]
    return list(dict.fromkeys(found))


def cells(quick: bool, seeds: int) -> list[Cell]:
    """All cells, seed by seed, so that settings can be compared whenever the run is stopped."""
    return [Cell(s, seed) for seed in range(1, seeds + 1) for s in settings(quick)]
