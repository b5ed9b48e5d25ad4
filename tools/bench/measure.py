# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures one size: all contenders take turns, several times."""

import os
import statistics
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from group import Group, TimedOut
from lab import BenchError

MOST_ROUNDS = 2000
MOST_HANGS = 1			# of a peer with one size; after one more it gets no more turns there
LATE = 10			# a peer hangs after this many seconds plus this many times the expected time
VERIFIED_ROUNDS = 2
WARM_UP = 10			# first all-reduces of libsaina: more than the job's ring has rounds
BOTH = (False, True)


class WrongResult(BenchError):
    """What a contender did was no all-reduce over the bridge's ports."""


class Setting(NamedTuple):
    """gro: GRO at the workers' ends of the links.  bound: each worker has one processor, by its number; else all have all."""

    gro: bool
    bound: bool


def bindings() -> tuple[bool, ...]:
    """The values of Setting.bound that differ here: with one processor, binding changes nothing."""
    return BOTH if len(os.sched_getaffinity(0)) > 1 else (False,)


@dataclass
class Taken:
    """What was measured of a contender with one setting."""

    round_ns: int = 0			# expected, then the median so far
    samples: list[int] = field(default_factory=list)
    rounds: int = 0
    cpu: float = 0
    port_bytes: int = 0


@dataclass
class Series:
    """One contender, and what was measured of it with one size.

    gro, bound: of its settings, which are all combinations.  Each turn is divided among them, and the
        fastest counts."""

    name: str
    group: Group
    gro: tuple[bool, ...] = (True,)
    bound: tuple[bool, ...] = (False,)
    taken: dict[Setting, Taken] = field(default_factory=dict)
    round_ns: int = 0			# of a verified round
    verified: int = 0			# sums compared with the exact one, of all ranks
    hangs: int = 0

    @property
    def ours(self) -> bool:
        return self.group.name.startswith("saina")

    def goes_on(self) -> bool:
        return self.hangs <= MOST_HANGS

    @property
    def crosses(self) -> bool:
        return not getattr(self.group, "reference", False)

    @property
    def settings(self) -> list[Setting]:
        return [Setting(*s) for s in product(self.gro, self.bound)]

    def medians(self) -> dict[Setting, float]:
        """Median nanoseconds of an all-reduce by setting, the fastest first."""
        found = {setting: statistics.median(t.samples) for setting, t in self.taken.items() if t.samples}
        return dict(sorted(found.items(), key=lambda item: item[1]))


def cpu_seconds() -> float:
    """Processor time that all processes of the machine have used since it booted."""
    with open("/proc/stat", encoding="ascii") as f:
        user, nice, system, _idle, _iowait, irq, softirq = map(int, f.readline().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def durations(stamps: list[list[int]]) -> list[int]:
    """Nanoseconds from the completion of each all-reduce to that of the next.

    stamps: of each rank, START END END .. as saina.c says.  An all-reduce is complete when the last
    rank has its result.  The first one is left out: ranks do not begin it together, and memory and
    windows are cold."""
    done = [max(of_all) for of_all in zip(*stamps)][1:]
    return [b - a for a, b in zip(done, done[1:])]


class Cell:
    """A size, in bytes of the tensor, that is being measured."""

    def __init__(self, place, size: int, series: list[Series], progress):
        self.place = place
        self.size = size
        self.series = series
        self.progress = progress

    def measure(self, seconds: float, turns: int) -> dict:
        """Measures all contenders.  Returns what result() returns of each, by name.

        seconds: of all-reduces by each contender, divided among the turns.  Of a peer that hangs too often,
        the turns before that count; it is left out if there are none."""
        for turn in range(turns):
            for s in filter(Series.goes_on, self.series):
                done = False
                while s.goes_on() and not done:
                    self.progress(f"{s.name}, turn {turn + 1} of {turns}")
                    done = self.take_turn(s, seconds / turns)
        return {s.name: self.result(s) for s in self.series if s.medians()}

    def take_turn(self, s: Series, seconds: float) -> bool:
        """Returns False if the peer did not return, so that nothing of the turn counts: Open MPI does so if there are more ranks
        than processors.  If libsaina hangs, raises TimedOut."""
        taken = deepcopy(s.taken)
        try:
            s.group.command(f"prepare {self.size}")
            for setting in s.settings:
                s.group.lab.set_gro(setting.gro)
                s.group.bind(setting.bound)
                self.turn(s, taken.setdefault(setting, Taken(s.round_ns)), seconds / len(s.settings))
            s.group.command("rest")
            s.taken = taken
        except TimedOut:
            if s.ours:
                raise
            self.restart(s)
            return False
        finally:
            s.group.lab.restore_gro()
        return True

    def restart(self, s: Series) -> None:
        """Starts a peer again that did not return."""
        s.hangs += 1
        self.progress(f"{s.name} did not return and is started again")
        s.group.restart()

    def check(self, s: Series) -> None:
        """Checks the sums of @s, before its turns.  A peer that hangs too often gets none.  If libsaina hangs, raises TimedOut."""
        while s.goes_on() and not s.verified:
            self.progress(s.name)
            try:
                s.group.command(f"prepare {self.size}")
                self.verify(s)
                s.group.command("rest")
            except TimedOut:
                if s.ours:
                    raise
                self.restart(s)

    def verify(self, s: Series) -> None:
        """Lets all ranks compare each element of some rounds with the exact sum.  Raises WrongResult if one is wrong."""
        if s.ours:
            s.group.command(f"time {WARM_UP}")
        try:
            answers = s.group.command(f"verify {VERIFIED_ROUNDS}")
        except TimedOut:
            raise
        except BenchError as e:
            raise WrongResult(str(e)) from e
        wanted = VERIFIED_ROUNDS * (self.size // 4)
        for rank, of in enumerate(answers):
            if of[-1] != wanted:
                raise WrongResult(f"{s.name}, rank {rank}: {of[-1]} of {wanted} sums were verified")
        s.verified = sum(of[-1] for of in answers)
        s.round_ns = max(of[2] for of in answers) - max(of[1] for of in answers)

    def turn(self, s: Series, t: Taken, seconds: float) -> None:
        rounds = max(1, min(MOST_ROUNDS, int(seconds * 1e9 / max(1, t.round_ns)))) + 1
        ports, cpu = s.group.lab.port_bytes(), cpu_seconds()
        stamps = s.group.command(f"time {rounds}", None if s.ours else LATE + LATE * rounds * t.round_ns / 1e9)
        t.cpu += cpu_seconds() - cpu
        t.port_bytes += s.group.lab.port_bytes() - ports
        t.samples += durations(stamps)
        t.rounds += rounds
        t.round_ns = int(statistics.median(t.samples))
        if s.crosses:
            self.check_crossed(s, t)

    def check_crossed(self, s: Series, t: Taken) -> None:
        """Raises WrongResult if too few bytes crossed the ports: a worker must send at least 1 - 1/N of its elements."""
        n = self.place.workers
        if t.port_bytes < 0.95 * t.rounds * self.size * s.group.wire_share * (n - 1):
            raise WrongResult(f"{s.name}: only {t.port_bytes} bytes crossed the bridge's ports in {t.rounds} all-reduces "
                             f"of {self.size} bytes: {s.name} does not use these ports; `ip -s link' shows the counters")

    def result(self, s: Series) -> dict:
        medians = s.medians()
        setting, median = next(iter(medians.items()))
        t = s.taken[setting]
        samples = sorted(t.samples)
        quartiles = statistics.quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else samples * 3
        size = self.size
        return {
            "median_ns": int(median),
            "samples": len(samples),
            "spread": (quartiles[2] - quartiles[0]) / 2 / median,
            "cpu_s_per_gb": t.cpu / (t.rounds * size / 1e9),
            "gro": setting.gro,
            "bound": setting.bound,
            "verified": s.verified == VERIFIED_ROUNDS * (size // 4) * self.place.workers,
            "hangs": s.hangs,
        }
