# SPDX-License-Identifier: GPL-2.0-or-later
"""saina bench: what an all-reduce costs on this bridge, by messages, by shared memory, and by peers.

The saina command starts this program and names the bridge of its agent.  host_lab.py makes the workers;
the programs, turns and checks are those of `make bench'."""

import argparse
import importlib.util
import math
import os
import shutil
import sys
import tempfile
import time
from dataclasses import replace

sys.dont_write_bytecode = True
# For the source tree: where it is installed, all modules are in one folder.
sys.path.insert(1, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lab"))
# pylint: disable=wrong-import-position
import host_report as report
import interrupt
from host_lab import HostLab, without_command
from lab import BenchError, Lab
from measure import BOTH, Cell, Series, bindings
from peers import Gloo, OpenMPI
from saina import Saina

TURNS = 2
WAYS = ("messages", "reference")
PEERS = (("Gloo", "torch", None, Gloo), ("MPI", "mpi4py", "mpirun", OpenMPI))
STEPS = ("ssp", "asp", "grouped")
KEYS = ("workers", "policy", "seconds")


class Progress:
    """Prints the progress to stderr: on a terminal, one line that is overwritten; elsewhere nothing."""

    def __init__(self):
        self.where, self.began = "", time.monotonic()

    def __call__(self, what: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\033[K[{time.monotonic() - self.began:.0f} s] {self.where}{what}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


class Bench:
    """A measurement on one bridge: what it has made (undo), measured (rows) and left out.

    lab: of the workers, with the agent
    sizes: of the tensors, bytes, ascending
    """

    def __init__(self, lab: Lab, sizes: list[int], policy: str = "bsp"):
        self.lab, self.sizes, self.policy = lab, sizes, policy
        self.progress = Progress()
        self.undo: list = []
        self.left_out: dict[str, str] = {}
        self.rows: list[dict] = []

    def start(self, thing):
        self.undo.append(thing)
        thing.start()
        return thing

    def stop_all(self) -> None:
        self.progress("removing workers and jobs")
        while self.undo:
            self.undo.pop().stop()
        self.progress.clear()

    def start_series(self, name: str, make) -> list[Series]:
        self.progress(f"{name} starts")
        try:
            return [Series(name, self.start(make()),
                           gro=(True,) if name in report.OURS else BOTH, bound=bindings())]
        except BenchError as e:
            self.undo.pop().stop()
            self.left_out[name] = " ".join(without_command(e).split())
            return []

    def start_ours(self, folder: str, ways=WAYS) -> list[Series]:
        """The first of the ways must start."""
        self.progress("creating workers on the bridge")
        self.start(self.lab)
        series = []
        for way in ways:
            series += self.start_series(way, lambda way=way: Saina(self.lab, folder, self.sizes[-1] // 4, way, self.policy))
            if not series:
                raise BenchError(self.left_out[way])
        return series

    def start_peers(self, folder: str, lab: Lab, suffix: str = "") -> list[Series]:
        """The peers in @lab, that of this measurement or another one; suffix: behind their names."""
        series = []
        for name, module, program, make in PEERS:
            if importlib.util.find_spec(module) and (not program or shutil.which(program)):
                series += self.start_series(name + suffix, lambda make=make: make(lab, folder))
            else:
                self.left_out[name + suffix] = report.INSTALL[name]
        return series

    def set_policy(self, series: list[Series], policy: str) -> None:
        for s in series:
            if s.name in report.OURS and self.policy != "bsp":
                self.lab.saina("policy", "set", s.group.job_name, policy)

    def measure(self, series: list[Series], seconds: float, turns: int, begin, show) -> None:
        """Measures all sizes.  begin: called when all sums have been checked; show: called with the rows of each size."""
        cells = [Cell(self.lab.place, size, [replace(s, taken={}) for s in series], self.progress) for size in self.sizes]
        # Sums are checked first, under bsp: the policy of the command line may leave workers out.
        self.set_policy(series, "bsp")
        for cell in cells:
            self.progress.where = f"{cell.size} bytes, sums are checked: "
            for s in cell.series:
                cell.check(s)
        self.set_policy(series, self.policy)
        self.progress.clear()
        begin()
        for cell in cells:
            self.progress.where = f"{cell.size} bytes, "
            found = report.rows_of(cell, cell.measure(seconds, turns))
            self.left_out.update({s.name: f"did not return with {cell.size} bytes, {s.hangs} times" for s in cell.series if not s.medians()})
            self.rows += found
            self.progress.clear()
            show(found)


class HostBench(Bench):
    """On the user's bridge.

    a: the options, as arguments() returns them
    """

    def __init__(self, a: argparse.Namespace):
        super().__init__(HostLab(a.bridge, a.workers, [a.tool], a.control, a.ovsdb), a.sizes, a.policy)
        self.a = a
        self.load = round(os.getloadavg()[0], 2)

    def run(self, folder: str) -> None:
        try:
            series = self.start_ours(folder)
        except BenchError as e:
            raise BenchError(f"{e}; -e SIZE makes smaller tensors" if "the limit is" in str(e) else str(e)) from e
        series += self.start_peers(folder, self.lab)
        about = {"bridge": self.lab.bridge, "place": self.lab.text(), "hook": self.lab.hook, "mtu": self.lab.mtu,
                 "workers": self.a.workers, "policy": self.a.policy, "cpus": os.cpu_count(), "load": self.load}
        said = not self.a.json
        self.measure(series, self.a.seconds, TURNS, lambda: said and report.print_head(about), lambda rows: said and report.print_rows(rows))
        report.finish(about, self.rows, self.left_out, self.a.json, self.a.pretty)


def number(text: str) -> float:
    """Parses a number of bytes; a suffix K, M or G means a power of 1024, as for saina-allreduce."""
    unit = 1024 ** ("KMG".index(text[-1].upper()) + 1) if text[-1:].upper() in ("K", "M", "G") else 1
    return float(text[:-1] if unit > 1 else text) * unit


def sizes_of(begin: float, end: float, factor: float) -> list[int]:
    count = 1 + math.floor(math.log(end / begin, factor) + 1e-9)
    return sorted({int(begin * factor ** i) // 4 * 4 for i in range(count)})


def checked(kind, low, high, what: str):
    def check(text: str):
        try:
            x = kind(text)
        except ValueError:
            x = math.nan
        if not low <= x <= high:
            raise argparse.ArgumentTypeError(f"\"{text}\" must be {what}")
        return x
    return check


class Parser(argparse.ArgumentParser):
    def error(self, message: str):
        self.exit(2, f"saina: bench: {message} (saina bench help)\n")


def arguments(words: list[str]) -> argparse.Namespace:
    size = checked(number, 4, 1 << 30, "bytes from 4 to 1G, as 65536, 64K or 4M")
    p = Parser(prog="saina bench", formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
                                usage="saina [-j] bench [workers N] [policy POLICY] [seconds S] [-b SIZE] [-e SIZE] [-f X]",
                                description="What an all-reduce costs on this bridge, by messages and by shared memory, compared with\n"
                                "Gloo (python3-torch) and Open MPI (python3-mpi4py) where they are installed.\n"
                                "The workers are namespaces on the bridge, which are removed at the end.")
    for hidden in ("--tool", "--control", "--bridge"):
        p.add_argument(hidden, required=True, help=argparse.SUPPRESS)
    p.add_argument("--ovsdb", help=argparse.SUPPRESS)
    p.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--pretty", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--workers", metavar="N", default=4, type=checked(int, 2, 64, "a whole number from 2 to 64"), help="workers (4)")
    p.add_argument("--policy", metavar="POLICY", default="bsp", help="of the job while it is timed (bsp)")
    p.add_argument("--seconds", metavar="S", default=2, type=checked(float, 0.01, 600, "a number from 0.01 to 600"),
                   help="seconds of all-reduces, for each size and way (2)")
    p.add_argument("-b", "--minbytes", metavar="SIZE", default=65536, type=size, help="size of the smallest tensor (64K)")
    p.add_argument("-e", "--maxbytes", metavar="SIZE", default=None, type=size, help="size of the largest tensor (16M)")
    p.add_argument("-f", "--stepfactor", metavar="X", default=4, type=checked(float, 1.01, 1e6, "a number from 1.01 to 1e6"),
                   help="factor from one size to the next (4)")
    a = p.parse_args([f"--{w}" if w in KEYS else "--help" if w == "help" else w for w in words])
    a.json |= a.pretty
    end = a.maxbytes or max(a.minbytes, 16 << 20)
    if end < a.minbytes:
        p.error("-b SIZE must not be more than -e SIZE")
    if a.policy.partition(":")[0] in STEPS:
        p.error(f"policy {a.policy} has steps, not rounds: use bsp, fastest:k=K or another policy with rounds")
    a.sizes = sizes_of(a.minbytes, end, a.stepfactor)
    return a


def main() -> int:
    a = arguments(sys.argv[1:])
    if os.geteuid():
        print("saina: bench: needs root to create workers on the bridge: sudo saina bench", file=sys.stderr)
        return 1
    missing = [p for p in ("ip", "ethtool", "nsenter") if not shutil.which(p)]
    if missing:
        print(f"saina: bench: missing programs: {', '.join(missing)}: apt install iproute2 ethtool util-linux", file=sys.stderr)
        return 1
    interrupt.catch()
    bench, status = HostBench(a), 0
    folder = tempfile.mkdtemp(prefix=f"saina-{bench.lab.name}-")
    try:
        bench.run(folder)
    except KeyboardInterrupt:
        status = 130
    except (BenchError, OSError) as e:
        bench.progress.clear()
        print(f"saina: bench: {e}", file=sys.stderr)
        status = 1
    finally:
        interrupt.ignore()
        bench.stop_all()
        shutil.rmtree(folder, ignore_errors=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
