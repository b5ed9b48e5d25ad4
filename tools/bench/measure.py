# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures one row of the table: all contenders take turns, several times."""

import os
import statistics
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from group import Group, Hung
from lab import BenchError
from strain import Strain, judge, percentile99

MOST_ROUNDS = 2000
MOST_HANGS = 1			# of a peer in one row; after one more it gets no more turns there
LATE = 10			# a peer hangs after this many seconds plus this many times the expected time
VERIFIED_ROUNDS = 2
WARM_UP = 10			# first all-reduces of libsaina: more than the job's ring has rounds
ETHERNET_IP_UDP = 14 + 20 + 8
BOTH = (False, True)


class Setting(NamedTuple):
    """gro: GRO at the workers' ends of the links.  bound: each worker has one processor, by its number; else all have all."""

    gro: bool
    bound: bool

    def __str__(self) -> str:
        return f"GRO {'on' if self.gro else 'off'}, {'bound' if self.bound else 'free'}"


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
    sent: int = 0			# messages of libsaina, in timed rounds
    resent: int = 0


@dataclass
class Series:
    """One contender with one algorithm, and what was measured of it in a row.

    gro, bound: of its settings, which are all combinations.  Each turn is divided among them, and the
        fastest counts."""

    name: str
    group: Group
    algorithm: str
    beside: bool = False		# a peer, through ports with SAINA's program
    strain: Strain | None = None	# around each of its turns
    gro: tuple[bool, ...] = (True,)
    bound: tuple[bool, ...] = (False,)
    taken: dict[Setting, Taken] = field(default_factory=dict)
    round_ns: int = 0			# of a verified round
    first_ns: int = 0			# the first all-reduce of a new job of libsaina, 0 if the job is not new
    cold_ns: int = 0			# median of the first WARM_UP all-reduces of libsaina, without the very first
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

    stamps: of each rank, START END END .. as serve.h says.  An all-reduce is complete when the last
    rank has its result.  The first one is left out: ranks do not begin it together, and memory and
    windows are cold."""
    done = [max(of_all) for of_all in zip(*stamps)][1:]
    return [b - a for a, b in zip(done, done[1:])]


class Cell:
    """A row that is being measured."""

    def __init__(self, place, row, series: list[Series], progress):
        self.place = place
        self.row = row
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
        """Returns False if the peer hung, so that nothing of the turn counts: Open MPI does so if there are more ranks
        than processors.  If libsaina hangs, raises Hung."""
        taken = deepcopy(s.taken)
        try:
            s.group.lab.set_gro(s.gro[0])
            s.group.bind(s.bound[0])
            s.group.command(f"prepare {s.algorithm} {self.row.size}")
            with s.strain or nullcontext():
                if not s.verified:
                    if s.ours:
                        stamps = s.group.command(f"time {WARM_UP + 1}")
                        if not s.group.warm:
                            s.first_ns = max(of[1] for of in stamps) - max(of[0] for of in stamps)
                        s.group.warm = True
                        s.cold_ns = int(statistics.median(durations(stamps)))
                    self.verify(s)
                for setting in s.settings:
                    s.group.lab.set_gro(setting.gro)
                    s.group.bind(setting.bound)
                    self.turn(s, taken.setdefault(setting, Taken(s.round_ns)), seconds / len(s.settings))
            s.group.command("rest")
            s.taken = taken
        except Hung:
            s.hangs += 1
            if s.ours:
                raise
            self.progress(f"{s.name} hung and is started again")
            s.group.restart()
            return False
        finally:
            s.group.lab.restore_gro()
        return True

    def verify(self, s: Series) -> None:
        """Lets all ranks compare each element of some rounds with the exact sum.  Raises BenchError if one is wrong."""
        answers = s.group.command(f"verify {VERIFIED_ROUNDS}")
        wanted = VERIFIED_ROUNDS * (self.row.size // 4)
        for rank, of in enumerate(answers):
            if of[-1] != wanted:
                raise BenchError(f"{s.name}, rank {rank}: {of[-1]} of {wanted} sums were verified")
        s.verified = sum(of[-1] for of in answers)
        s.round_ns = max(of[2] for of in answers) - max(of[1] for of in answers)

    def turn(self, s: Series, t: Taken, seconds: float) -> None:
        rounds = max(1, min(MOST_ROUNDS, int(seconds * 1e9 / max(1, t.round_ns)))) + 1
        ports, cpu = s.group.lab.port_bytes(), cpu_seconds()
        before = self.messages(s)
        stamps = s.group.command(f"time {rounds}", None if s.ours else LATE + LATE * rounds * t.round_ns / 1e9)
        sent, resent = self.messages(s)
        t.sent += sent - before[0]
        t.resent += resent - before[1]
        t.cpu += cpu_seconds() - cpu
        t.port_bytes += s.group.lab.port_bytes() - ports
        t.samples += durations(stamps)
        t.rounds += rounds
        t.round_ns = int(statistics.median(t.samples))
        if s.crosses:
            self.check_crossed(s, t)

    @staticmethod
    def messages(s: Series) -> tuple[int, int]:
        """Messages that all ranks have sent since they began, and those of them sent again; 0, 0 of peers."""
        if not s.ours:
            return 0, 0
        said = s.group.command("counts")
        return sum(of[0] for of in said), sum(of[1] for of in said)

    def check_crossed(self, s: Series, t: Taken) -> None:
        """Raises BenchError if too few bytes crossed the ports: a worker must send at least 1 - 1/N of its elements."""
        n = self.place.workers
        if t.port_bytes < 0.95 * t.rounds * self.row.size * s.group.wire_share * (n - 1):
            raise BenchError(f"{s.name}: only {t.port_bytes} bytes crossed the bridge's ports in {t.rounds} all-reduces "
                             f"of {self.row.size} bytes: {s.name} does not use these ports; `ip -s link' shows the counters")

    def result(self, s: Series) -> dict:
        medians = s.medians()
        setting, median = next(iter(medians.items()))
        t = s.taken[setting]
        samples = sorted(t.samples)
        quartiles = statistics.quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else samples * 3
        size = self.row.size
        return {
            "median_ns": int(median),
            "first_quartile_ns": int(quartiles[0]),
            "third_quartile_ns": int(quartiles[2]),
            "min_ns": samples[0],
            "max_ns": samples[-1],
            "p99_ns": int(percentile99(samples)),
            "first_ns": s.first_ns,
            "first_to_median": s.first_ns / median if s.first_ns else None,
            "cold_median_ns": s.cold_ns,
            "sent": t.sent,
            "resent": t.resent,
            "samples": len(samples),
            "goodput_gbps": size * 8 / median,
            "spread": (quartiles[2] - quartiles[0]) / 2 / median,
            "cpu_s_per_gb": t.cpu / (t.rounds * size / 1e9),
            "port_bytes_per_byte": t.port_bytes / (t.rounds * size * self.place.workers),
            "gro": setting.gro,
            "bound": setting.bound,
            "gbps_by_setting": {str(which): size * 8 / m for which, m in medians.items()},
            "verified": s.verified == VERIFIED_ROUNDS * (size // 4) * self.place.workers,
            "verified_sums": s.verified,
            "hangs": s.hangs,
            "ours": s.ours,
            "beside": s.beside,
        }


def bound_gbps(link: str, payload: int, header: int) -> float | None:
    """Gb/s of a tensor that a worker can receive on a limited link, None: unlimited.

    No all-reduce is faster, because each byte of the result arrives once.  payload, header: bytes of a message.
    Raises BenchError if @link is malformed."""
    if link == "unlimited":
        return None
    rate = link.split("/", maxsplit=1)[0]
    for unit, bits in (("gbit", 1), ("mbit", 1e-3)):
        if rate.endswith(unit):
            return float(rate[:-len(unit)]) * bits * payload / (payload + header + ETHERNET_IP_UDP)
    raise BenchError(f"link {link}: write RATE/BURST as tc does, in gbit or mbit: 1gbit/256kb")


def about(place, row) -> dict:
    """Which row of the report this is."""
    return {"bridge": place.bridge, "mtu": place.mtu, "workers": place.workers, "hook": place.hook, "link": row.link,
            "bytes": row.size, **({"strain": row.strain} if row.strain else {})}


def ratio(a: float | None, b: float | None) -> float | None:
    return a / b if a is not None and b else None


def summarize(cell: Cell, results: dict, hello: dict, strain: Strain | None, absent: dict[str, str]) -> dict:
    """A row of the report: the measurements, and the ratios that matter.

    absent: contenders that are not there, and why"""
    row = cell.row
    hung = {s.name: f"hung, turns that did not end: {s.hangs}" for s in cell.series if s.name not in results}
    out = {**about(cell.place, row), "payload_bytes": int(hello["payload"]), "series": results, "left_out": absent | hung}
    if strain:
        return out | judge(results["libsaina"], results[f"libsaina, {row.strain}"], strain)
    gbps = {n: r["goodput_gbps"] for n, r in results.items()}
    cpu = {n: r["cpu_s_per_gb"] for n, r in results.items()}
    ours, reference = gbps["libsaina"], gbps.get("libsaina, by reference")
    peers = [n for n, r in results.items() if not r["ours"] and not r["beside"]]
    beside = [n for n, r in results.items() if r["beside"]]
    best = max(peers, key=gbps.__getitem__, default=None)
    best_beside = max(beside, key=gbps.__getitem__, default=None)
    bound = bound_gbps(row.link, int(hello["payload"]), int(hello["header"]))
    return out | {
        "best_peer": best,
        "to_best_peer": ratio(ours, gbps.get(best)),
        "cpu_to_best_peer": ratio(cpu["libsaina"], cpu.get(best)),
        "cpu_to_gloo_ring": ratio(cpu["libsaina"], cpu.get("Gloo ring")),
        "reference_to_best_peer": ratio(reference, gbps.get(best)),
        "reference_cpu_to_best_peer": ratio(cpu.get("libsaina, by reference"), cpu.get(best)),
        "int16_to_int32": ratio(gbps.get("libsaina, int16"), ours),
        "bound_gbps": bound,
        "to_bound": ratio(ours, bound),
        "first_to_median": results.get("libsaina, by reference", {}).get("first_to_median"),
        "best_peer_beside": best_beside,
        "to_best_peer_beside": ratio(ours, gbps.get(best_beside)),
    }
