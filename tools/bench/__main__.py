# SPDX-License-Identifier: GPL-2.0-or-later
"""make bench: all-reduce of float32 by libsaina, beside Gloo and Open MPI.

For each place (a bridge, an MTU, a number of workers) there are two labs of the
same kind, saina-NAME-*, all on this machine:

    bare                                  with our program on the ports
    Gloo, Open MPI on ports that          libsaina with stock receive buffers,
    carry nothing: the peers' best        libsaina with advised ones,
                                          Gloo, Open MPI: what coexistence costs

All contenders are started once in a place.  Those that are not being measured
sleep; for each row they take turns, several times, so that whatever else happens on
the machine happens to all of them.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import plan
import report
import strain
import stream
from gloo import Gloo
from lab import BUILD, TOP, BenchError, Lab
from measure import Cell, Series, bound_gbps, summarize
from openmpi import OpenMPI
from saina import Saina

TURNS = 3
STRAINED = 4		# times as long: a 99th percentile wants many rounds


class Progress:
    """Where the bench is: on a terminal one line that is overwritten."""

    def __init__(self, total: int):
        self.total = total
        self.row = 0
        self.began = time.monotonic()
        self.where = ""
        self.terminal = sys.stdout.isatty()

    def elapsed(self) -> str:
        s = int(time.monotonic() - self.began)
        return f"{s // 60}:{s % 60:02d}"

    def place(self, place) -> None:
        self.clear()
        print(f"\n{place} [{self.elapsed()}]\n{report.HEAD}", flush=True)

    def step(self, row) -> None:
        self.row += 1
        self.where = f"row {self.row} of {self.total}, {row.link}, {plan.size_text(row.size)}"

    def __call__(self, what: str) -> None:
        if self.terminal:
            print(f"\r\033[K[{self.elapsed()}] {self.where}: {what}", end="", flush=True)

    def clear(self) -> None:
        if self.terminal:
            print("\r\033[K", end="", flush=True)

    def line(self, text: str) -> None:
        self.clear()
        print(text, flush=True)


class Bench:
    def __init__(self, places, seconds: float, deadline: float, out: str):
        self.places = places
        self.seconds = seconds
        self.deadline = deadline
        self.out = out
        self.rows: list[dict] = []
        self.left_out: list[str] = []
        self.undo: list = []
        self.progress = Progress(sum(len(p.rows) for p in places))
        self.about = {**report.machine(), "complete": False}
        if self.about["load_before"] > 0.3 * self.about["cpus"]:
            print(f"bench: this machine has other work (load {self.about['load_before']:g} on {self.about['cpus']} cores): "
                  "figures will be too low, CPU seconds too high; only large ratios mean anything")

    def start(self, thing):
        """Starts a lab or a group, which will be stopped whatever happens."""
        self.undo.append(thing)
        thing.start()
        return thing

    def stop_all(self) -> None:
        while self.undo:
            try:
                self.undo[-1].stop()
            except BenchError as e:
                print(f"bench: {e}", file=sys.stderr)
            self.undo.pop()

    def run(self, folder: str) -> None:
        for i, place in enumerate(self.places):
            self.progress.place(place)
            try:
                self.measure_place(place, os.path.join(folder, str(i)))
            finally:
                self.progress("taking the labs down")
                self.stop_all()
        self.about["complete"] = not self.left_out

    def measure_place(self, place, folder: str) -> None:
        os.mkdir(folder)
        self.progress.where = "the labs are being built"
        self.progress("bare")
        with_peers = any(not r.strain for r in place.rows)
        with_bare = any(r.strain in ("", "tcp") for r in place.rows)
        bare = self.start(Lab(place, agent=False)) if with_bare else None
        self.progress("with our program on the ports")
        ours = self.start(Lab(place, agent=True))
        self.progress.where = "contenders start"
        elements = max(max(r.size for r in place.rows) // 4, 1)
        shared = [r.size for r in place.rows if by_reference(r)]
        groups = []
        makes = [lambda: Saina(ours, folder, elements, False)]
        if with_peers:
            makes += [lambda: Saina(ours, folder, elements, True), lambda: Gloo(bare, folder), lambda: OpenMPI(bare, folder)]
        for make in makes:
            groups.append(self.start_group(make()))
        reference = self.start_group(Saina(ours, folder, max(shared) // 4, reference=True)) if shared else None
        if any(r.coexist for r in place.rows):
            groups += [self.start_group(Gloo(ours, folder)), self.start_group(OpenMPI(ours, folder))]
        for row in place.rows:
            self.measure_row(place, row, groups, reference if by_reference(row) else None, bare, ours)

    def start_group(self, group):
        self.progress(group.name)
        return self.start(group)

    def measure_row(self, place, row, groups, reference, bare, ours) -> None:
        self.progress.step(row)
        left = self.deadline - time.monotonic()
        rows_left = self.progress.total - self.progress.row + 1
        seconds, turns = self.seconds, TURNS
        if left < 0:
            self.left_out.append(f"{place}, {row.link}, {plan.size_text(row.size)}")
            return
        # Labs, trials and verification take as long as what is timed.
        if left / rows_left < 3 * (len(groups) + bool(reference)) * self.seconds:
            seconds, turns = self.seconds / 2, 2
        for lab in filter(None, (bare, ours)):
            self.progress(f"the links are made {row.link}")
            lab.set_link(row.link)
        if row.strain == "tcp":
            self.done(stream.measure(place, row, bare, ours, turns, self.progress))
            return
        hard = strain.make(row.strain, groups[0].lab) if row.strain else None
        series = series_with(hard, row.strain, groups[0]) if hard else series_of(groups, row.coexist)
        if reference:
            series.append(Series("libsaina, by reference", reference, "-"))
        cell = Cell(place, row, series, self.progress)
        if hard:
            self.undo.append(hard)
            seconds *= STRAINED
        result = summarize(cell, cell.measure(seconds, turns), groups[0].hello, hard)
        if hard:
            self.undo.remove(hard)
        self.done(result)

    def done(self, row: dict) -> None:
        self.rows.append(row)
        self.progress.line(report.table_line(self.rows[-1]))
        report.write_json(os.path.join(self.out, "bench.json"), self.about, self.rows)


def series_with(hard, name: str, saina) -> list[Series]:
    return [Series("libsaina", saina, "-"), Series(f"libsaina, {name}", saina, "-", strain=hard)]


def by_reference(row) -> bool:
    """A limited link does not apply to what is not sent by it, and memory is bounded."""
    return not row.strain and row.link == plan.UNLIMITED and row.size <= 16 * plan.MIB


def series_of(groups, coexist: bool) -> list[Series]:
    saina, advised, gloo, openmpi, *beside = groups
    out = [
        Series("libsaina", saina, "-"), Series("libsaina, advised", advised, "-"),
        Series("Gloo ring", gloo, "ring"), Series("Gloo halving", gloo, "halving"),
        Series("MPI default", openmpi, "default"), Series("MPI ring", openmpi, "ring"),
    ]
    if coexist:
        gloo, openmpi = beside
        out += [
            Series("Gloo ring, beside", gloo, "ring", True), Series("Gloo halving, beside", gloo, "halving", True),
            Series("MPI default, beside", openmpi, "default", True), Series("MPI ring, beside", openmpi, "ring", True),
        ]
    return out


def size(text: str) -> int:
    for suffix, unit in (("KiB", plan.KIB), ("MiB", plan.MIB), ("K", plan.KIB), ("M", plan.MIB)):
        if text.endswith(suffix) and text[:-len(suffix)].isdigit():
            n = int(text[:-len(suffix)]) * unit
            if 1024 <= n <= 64 * plan.MIB:
                return n
    raise argparse.ArgumentTypeError(f"\"{text}\" is not a size from 1KiB to 64MiB")


def whole(least: int, most: int):
    def parse(text: str) -> int:
        if text.isdigit() and least <= int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"\"{text}\" is not a number from {least} to {most}")
    return parse


def link(text: str) -> str:
    if text != plan.UNLIMITED:
        try:
            bound_gbps(text, 1, 1)
        except (BenchError, ValueError):
            raise argparse.ArgumentTypeError(
                f"\"{text}\" is neither unlimited nor RATE/BURST as tc writes them: 1gbit/256kb") from None
    return text


def strain_name(text: str) -> str:
    if text not in strain.NAMES:
        raise argparse.ArgumentTypeError(f"\"{text}\" is none of {', '.join(strain.NAMES)}")
    return text


def bridge(text: str) -> str:
    if text not in ("linux", "ovs"):
        raise argparse.ArgumentTypeError(f"\"{text}\" is neither linux nor ovs")
    return text


def hook(text: str) -> str:
    if text not in ("auto", "xdp", "tc"):
        raise argparse.ArgumentTypeError(f"\"{text}\" is none of auto, xdp, tc")
    return text


def seconds_of(text: str) -> float:
    try:
        x = float(text)
    except ValueError:
        x = -1
    if not 0.01 <= x <= 60:
        raise argparse.ArgumentTypeError(f"\"{text}\" is not a number from 0.01 to 60")
    return x


def listed(parse):
    return lambda text: [parse(t) for t in text.split(",")]


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(
        prog="tools/bench", description="All-reduce of float32 by libsaina beside Gloo and Open MPI, in namespaces "
        "on this machine.  See Documentation/bench.rst.",
        epilog="Lists are separated by commas.  One of --bridge, --hook, --mtu, --workers, --links, --sizes, --strain replaces the plan "
        "by every combination of them; peers are then also measured through ports that carry our program.")
    p.add_argument("--quick", action="store_true", help="a small plan, under 3 minutes (the whole takes under 30)")
    p.add_argument("--bridge", type=listed(bridge), metavar="LIST", help="linux, ovs (linux)")
    p.add_argument("--hook", type=listed(hook), metavar="LIST", help="of the ports with our program: auto, xdp, tc (auto)")
    p.add_argument("--mtu", type=listed(whole(576, 65000)), metavar="LIST", help="(1500)")
    p.add_argument("--workers", type=listed(whole(2, 64)), metavar="LIST", help="(4)")
    p.add_argument("--links", type=listed(link), metavar="LIST", help="unlimited, or RATE/BURST: 1gbit/256kb (unlimited)")
    p.add_argument("--sizes", type=listed(size), metavar="LIST", help="64KiB to 64MiB (4MiB)")
    p.add_argument("--strain", type=listed(strain_name), metavar="LIST",
                   help="overload, loss: libsaina alone, with and without a busy loop on each core, 20 %% lost each way; "
                   "tcp: a TCP stream, through ports with and without our program")
    p.add_argument("--seconds", type=seconds_of, metavar="S", help="of all-reduces by each contender in a row (1.5; --quick: 0.6)")
    p.add_argument("--out", default="result", metavar="DIR", help="where bench.json, bench.txt and bench.png go (result)")
    return p.parse_args()


def places_of(a: argparse.Namespace):
    if a.bridge or a.hook or a.mtu or a.workers or a.links or a.sizes or a.strain:
        return plan.chosen(a.bridge or ["linux"], a.hook or ["auto"], a.mtu or [1500], a.workers or [4], a.links or [plan.UNLIMITED],
                           a.sizes or [4 * plan.MIB], a.strain or [])
    return plan.quick() if a.quick else plan.full()


def check_ready() -> None:
    if os.geteuid() != 0:
        raise BenchError("needs root for network namespaces: run `make bench' with sudo")
    for program, advice in (("mpirun", "tools/install-deps bench"), ("gnuplot", "tools/install-deps"), ("iperf3", "tools/install-deps")):
        if not shutil.which(program):
            raise BenchError(f"{program} is missing: run {advice}")
    for program in ("bench-saina", "bench-gloo", "bench-openmpi", "sainad", "saina"):
        if not os.access(os.path.join(BUILD, program), os.X_OK):
            raise BenchError(f"{BUILD}/{program} is missing: run `make all bench-programs' in {TOP}")


def interrupted(_signal, _frame):
    raise KeyboardInterrupt


def main() -> int:
    a = arguments()
    limit = 180 if a.quick else 1800
    folder = None
    try:
        check_ready()
        os.makedirs(a.out, exist_ok=True)
        folder = tempfile.mkdtemp(prefix="saina-bench-")
        bench = Bench(places_of(a), a.seconds or (0.6 if a.quick else 1.5), time.monotonic() + 0.9 * limit, a.out)
    except (BenchError, OSError) as e:
        print(f"bench: {e}", file=sys.stderr)
        return 1
    for s in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        signal.signal(s, interrupted)
    status = 0
    try:
        bench.run(folder)
    except KeyboardInterrupt:
        status = 130
    except BenchError as e:
        bench.progress.clear()
        print(f"bench: {e}", file=sys.stderr)
        status = 1
    finally:
        for s in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            signal.signal(s, signal.SIG_IGN)
        bench.stop_all()
        if status == 1:
            print(f"bench: what the contenders said is in {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return finish(bench, status)


def finish(bench: Bench, status: int) -> int:
    bench.progress.clear()
    if status == 130:
        print("\nbench: stopped; what was measured until then:")
    if not bench.rows:
        return status
    names = ("json", "txt")
    text = report.table(bench.rows, lambda b, m, n, h: str(plan.Place(b, m, n, hook=h)))
    bench.about["left_out"] = bench.left_out
    report.write_json(os.path.join(bench.out, "bench.json"), bench.about, bench.rows)
    with open(os.path.join(bench.out, "bench.txt"), "w", encoding="utf-8") as f:
        f.write(text + "\n")
    if report.draw(bench.out, bench.rows):
        names += ("png",)
    for what in bench.left_out:
        print(f"bench: not measured for want of time: {what}")
    print(f"\n[{bench.progress.elapsed()}] " + ", ".join(os.path.join(bench.out, f"bench.{n}") for n in names) +
          "; how to read them: Documentation/bench.rst")
    return status


sys.exit(main())
