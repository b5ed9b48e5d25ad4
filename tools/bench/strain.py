# SPDX-License-Identifier: GPL-2.0-or-later
"""Strains under which libsaina is measured: lost messages, a busy host.

A strain starts before a turn and stops after it, so that turns with and without it
alternate."""

import os
import statistics
import subprocess
import sys
import time

from lab import LAB_TOOL, Lab, run

LOSS = "20%"
NAMES = ("overload", "loss", "tcp")


class Strain:
    """No strain: to be inherited from."""

    def __init__(self, lab: Lab):
        self.lab = lab

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_why) -> None:
        self.stop()

    def facts(self) -> dict:
        return {}


class Loss(Strain):
    """Messages to the switch, and frames from it (whole GSO batches), are lost with probability LOSS."""

    def start(self) -> None:
        run(LAB_TOOL, "set", self.lab.name, "loss", LOSS, "seed", "1")

    def stop(self) -> None:
        run(LAB_TOOL, "set", self.lab.name, "loss", "0")


class Overload(Strain):
    """A busy loop on each core."""

    def __init__(self, lab: Lab):
        super().__init__(lab)
        self.loops: list[subprocess.Popen] = []
        self.wall = 0.0
        self.taken = 0.0
        self.began = 0.0

    def start(self) -> None:
        for cpu in sorted(os.sched_getaffinity(0)):
            # pylint: disable=consider-using-with
            self.loops.append(subprocess.Popen(
                [sys.executable, "-c", f"import os\nos.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass",
                 self.lab.name],
                stdin=subprocess.DEVNULL, start_new_session=True))
        time.sleep(0.2)
        self.began = time.monotonic()
        self.taken -= self.spent()

    def spent(self) -> float:
        ticks = 0
        for p in self.loops:
            with open(f"/proc/{p.pid}/stat", encoding="ascii") as f:
                ticks += sum(map(int, f.read().rpartition(")")[2].split()[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        if self.loops and self.began:
            self.taken += self.spent()
            self.wall += time.monotonic() - self.began
        self.began = 0.0
        for p in self.loops:
            p.kill()
            p.wait()
        self.loops = []

    def facts(self) -> dict:
        """share_left: the share of all processor time that the loops did not take."""
        cpus = len(os.sched_getaffinity(0))
        return {"share_left": 1 - self.taken / (self.wall * cpus) if self.wall else None}


def make(name: str, lab: Lab) -> Strain:
    return {"overload": Overload, "loss": Loss}[name](lab)


def percentile99(samples: list[int]) -> float:
    return statistics.quantiles(samples, n=100, method="inclusive")[98] if len(samples) > 1 else samples[0]


def judge(clean: dict, strained: dict, strain: Strain) -> dict:
    """The ratios that the bars are about."""
    out = {**strain.facts(), "times": strained["median_ns"] / clean["median_ns"]}
    if out.get("share_left"):
        out["to_share"] = strained["goodput_gbps"] / (out["share_left"] * clean["goodput_gbps"])
    out["resent_share"] = strained["resent"] / strained["sent"] if strained["sent"] else None
    out["p99_to_median"] = strained["p99_ns"] / strained["median_ns"]
    return out


def line(row: dict) -> str:
    """The line of the table of a row with strain overload or loss."""
    s = row["series"]
    clean, strained = s["libsaina"], s[f"libsaina, {row['strain']}"]
    text = (f"libsaina {clean['goodput_gbps']:.3g} Gb/s without {row['strain']}, {strained['goodput_gbps']:.3g} with, "
            f"{row['times']:.2f} times as long")
    if row.get("to_share"):
        text += f"; {row['to_share']:.2f} of its share ({row['share_left']:.0%} of the processors were left)"
    return text + (f"; messages sent again {row['resent_share']:.1%}; 99th percentile {row['p99_to_median']:.1f} medians "
                   f"of {strained['samples']}")
