# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures one row: all contenders take turns, several times."""

import os
import statistics
from contextlib import nullcontext
from dataclasses import dataclass, field

from group import Group, Hung
from lab import BenchError
from strain import Strain, judge, percentile99

MOST_ROUNDS = 2000
MOST_HANGS = 1			# of a peer in one row of the table: the next one ends its turns there
ETHERNET_IP_UDP = 14 + 20 + 8


@dataclass
class Series:
    """One contender with one algorithm, and what was measured of it in a row."""

    name: str
    group: Group
    algorithm: str
    beside: bool = False		# a peer, through ports that carry our program
    strain: Strain | None = None	# around each of its turns
    round_ns: int = 0			# estimated
    samples: list[int] = field(default_factory=list)
    rounds: int = 0
    cpu: float = 0
    port_bytes: int = 0
    hangs: int = 0
    sent: int = 0			# messages of libsaina, in timed rounds
    resent: int = 0

    @property
    def ours(self) -> bool:
        return self.group.name.startswith("saina")

    def goes_on(self) -> bool:
        return self.hangs <= MOST_HANGS

    @property
    def crosses(self) -> bool:
        return not getattr(self.group, "reference", False)


def cpu_seconds() -> float:
    """Spent by the whole machine since it booted, whoever it was for."""
    with open("/proc/stat", encoding="ascii") as f:
        user, nice, system, _idle, _iowait, irq, softirq = map(int, f.readline().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def durations(stamps: list[list[int]]) -> list[int]:
    """Nanoseconds from each all-reduce's completion to that of the next.

    Complete is what is complete at the last rank.  The first is left out: ranks do not
    begin it together, and memory and windows are cold."""
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
        """seconds: of all-reduces by each contender, in so many turns.

        A peer that hangs too often has what it reached until then; nothing, perhaps."""
        for turn in range(turns):
            for s in filter(Series.goes_on, self.series):
                done = False
                while s.goes_on() and not done:
                    self.progress(f"{s.name}, turn {turn + 1} of {turns}")
                    done = self.take_turn(s, not turn, seconds / turns)
        return {s.name: self.result(s) for s in self.series if s.samples}

    def take_turn(self, s: Series, first: bool, seconds: float) -> bool:
        """False if it hung: Open MPI does, with more ranks than processors.  Ours may not."""
        try:
            s.group.command(f"prepare {s.algorithm} {self.row.size}")
            with s.strain or nullcontext():
                if first:
                    self.verify(s)
                self.turn(s, seconds)
            s.group.command("rest")
        except Hung:
            s.hangs += 1
            if s.ours:
                raise
            self.progress(f"{s.name} hung and is started again")
            s.group.restart()
            return False
        return True

    def verify(self, s: Series) -> None:
        stamps = s.group.command("verify 2")
        s.round_ns = max(of[2] for of in stamps) - max(of[1] for of in stamps)

    def turn(self, s: Series, seconds: float) -> None:
        rounds = max(1, min(MOST_ROUNDS, int(seconds * 1e9 / max(1, s.round_ns)))) + 1
        ports, cpu = s.group.lab.port_bytes(), cpu_seconds()
        before = self.messages(s)
        stamps = s.group.command(f"time {rounds}")
        sent, resent = self.messages(s)
        s.sent += sent - before[0]
        s.resent += resent - before[1]
        s.cpu += cpu_seconds() - cpu
        s.port_bytes += s.group.lab.port_bytes() - ports
        s.samples += durations(stamps)
        s.rounds += rounds
        s.round_ns = int(statistics.median(s.samples))
        if s.crosses:
            self.check_crossed(s)

    @staticmethod
    def messages(s: Series) -> tuple[int, int]:
        """Sent by all ranks since they began, and sent again; peers do not say."""
        if not s.ours:
            return 0, 0
        said = s.group.command("counts")
        return sum(of[0] for of in said), sum(of[1] for of in said)

    def check_crossed(self, s: Series) -> None:
        """A worker has to send at least 1 - 1/N of its tensor; less is not the network."""
        n = self.place.workers
        if s.port_bytes < 0.95 * s.rounds * self.row.size * (n - 1):
            raise BenchError(f"{s.name}: only {s.port_bytes} bytes crossed the bridge's ports in {s.rounds} all-reduces "
                             f"of {self.row.size} bytes: it does not use them; the counters are in `ip -s link'")

    def result(self, s: Series) -> dict:
        samples = sorted(s.samples)
        quartiles = statistics.quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else samples * 3
        median = statistics.median(samples)
        size = self.row.size
        return {
            "median_ns": int(median),
            "first_quartile_ns": int(quartiles[0]),
            "third_quartile_ns": int(quartiles[2]),
            "min_ns": samples[0],
            "max_ns": samples[-1],
            "p99_ns": int(percentile99(samples)),
            "sent": s.sent,
            "resent": s.resent,
            "samples": len(samples),
            "goodput_gbps": size * 8 / median,
            "spread": (quartiles[2] - quartiles[0]) / 2 / median,
            "cpu_s_per_gb": s.cpu / (s.rounds * size / 1e9),
            "port_bytes_per_byte": s.port_bytes / (s.rounds * size * self.place.workers),
            "verified": True,
            "hangs": s.hangs,
            "ours": s.ours,
            "beside": s.beside,
        }


def bound_gbps(link: str, payload: int, header: int) -> float | None:
    """What a worker can receive of a tensor on a limited link: no all-reduce is faster
    that has each byte of the result arrive once."""
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
            "bytes": row.size}


def summarize(cell: Cell, results: dict, hello: dict, strain: Strain | None) -> dict:
    """A row of the report: the measurements, and the ratios that matter."""
    row = cell.row
    out = {
        **about(cell.place, row),
        "payload_bytes": int(hello["payload"]), "series": results,
        "left_out": [s.name for s in cell.series if s.name not in results],
    }
    if strain:
        return out | judge(row.strain, results["libsaina"], results[f"libsaina, {row.strain}"], strain)
    ours = results["libsaina"]["goodput_gbps"]
    peers = {n: r for n, r in results.items() if not r["ours"] and not r["beside"]}
    beside = {n: r for n, r in results.items() if r["beside"]}
    best = max(peers, key=lambda n: peers[n]["goodput_gbps"]) if peers else None
    out["best_peer"] = best
    out["to_best_peer"] = ours / peers[best]["goodput_gbps"] if best else None
    out["cpu_to_best_peer"] = results["libsaina"]["cpu_s_per_gb"] / peers[best]["cpu_s_per_gb"] if best else None
    reference = results.get("libsaina, by reference")
    out["reference_to_best_peer"] = reference["goodput_gbps"] / peers[best]["goodput_gbps"] if reference and best else None
    out["bound_gbps"] = bound_gbps(row.link, int(hello["payload"]), int(hello["header"]))
    out["to_bound"] = ours / out["bound_gbps"] if out["bound_gbps"] else None
    out["best_peer_beside"] = max(beside, key=lambda n: beside[n]["goodput_gbps"]) if beside else None
    out["to_best_peer_beside"] = ours / beside[out["best_peer_beside"]]["goodput_gbps"] if beside else None
    return out
