#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""saina bench and make bench without a network: contenders are processes of CONTENDER, labs count bytes that
nobody sends.  Real runs: selftests/net/bench.sh and host_bench.sh."""

import contextlib
import importlib.util
import io
import json
import os
import sys
import tempfile

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path[:0] = [TOP + "/selftests/bench", TOP + "/tools/bench", TOP + "/tools/lab", TOP + "/selftests/lib"]
# pylint: disable=wrong-import-position
import bars
import group
import host
import host_report
import measure
from lab import Switch
from tap import Tap

spec = importlib.util.spec_from_file_location("bench_main", TOP + "/selftests/bench/__main__.py")
bench_main = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bench_main)
# A rank that knows the input of the others.
CONTENDER = f"""
import signal, sys
sys.path.insert(0, {TOP + "/tools/bench"!r})
import peer
path, rank, ranks, how = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
if how == "absent":
    sys.exit(5)
def reduce(values):
    if how == "stuck":
        signal.pause()
    values[:] = serve.exact(ranks, ranks * (ranks - 1) // 2)
    if how == "wrong" and rank == ranks - 1:
        values[-1] += 1
serve = peer.Serve(rank, ranks, reduce)
peer.run(serve, path, "payload=1408", "header=48")
"""
tap = Tap("bench: ")
point = tap.point


# --- runs of main() ---------------------------------------------------------------------------

HOW: dict[str, str] = {}		# a group's name: what its ranks do, if not "right"
BYTES = [1 << 40]			# that cross the ports between two readings


class FakeLab:
    name = "fake"

    def __init__(self, place, agent):
        self.place, self.agent, self.gro, self.bytes = place, agent, agent, 0

    def start(self):
        if "lab" in HOW and self.agent:
            raise bench_main.BenchError(HOW["lab"])

    def stop(self):
        pass

    def set_link(self, link):
        pass

    def set_gro(self, gro):
        self.gro = gro

    def restore_gro(self):
        self.gro = self.agent

    def port_bytes(self):
        self.bytes += BYTES[0]
        return self.bytes


class FakeGroup(group.Group):
    def start(self):
        for rank in range(self.ranks):
            self.spawn([sys.executable, "-c", CONTENDER, self.socket_path, str(rank), str(self.ranks), HOW.get(self.name, "right")])
        self.greet()


class FakeSaina(FakeGroup):
    def __init__(self, lab, folder, _elements, variant, _policy):
        self.name = f"saina-{variant}"
        self.reference = variant == "reference"
        super().__init__(lab, folder)


class FakeGloo(FakeGroup):
    kind = "gloo"

    def __init__(self, lab, folder):
        self.name = self.kind + ("-beside" if lab.agent else "")
        super().__init__(lab, folder)


class FakeOpenMPI(FakeGloo):
    kind = "openmpi"


ticks = [0.0]


def fake_cpu_seconds():
    ticks[0] += 0.25
    return ticks[0]


bench_main.Lab, host.Saina, host.PEERS = FakeLab, FakeSaina, (("Gloo", "sys", None, FakeGloo), ("MPI", "sys", None, FakeOpenMPI))
measure.cpu_seconds = fake_cpu_seconds
bench_main.TURNS = 2
bench_main.check_ready = lambda: None
group.STOP_TIMEOUT = 0.1


def run(*words, **how):
    """(exit status, what it said, its JSON) of selftests/bench with two workers"""
    HOW.clear()
    HOW.update({k.replace("_", "-"): v for k, v in how.items()})
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as out:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = bench_main.main(["--workers", "2", "--seconds", "0.01", "--out", out, *words])
        path = os.path.join(out, "bench.json")
        if not os.path.exists(path):
            return status, said.getvalue(), None
        with open(path, encoding="utf-8") as f:
            return status, said.getvalue(), json.load(f)


PEERS = ["Gloo", "MPI", "Gloo-beside", "MPI-beside"]
status, said, found = run("--sizes", "4K,8K")
point(status == 0 and found["complete"] and found["left_out"] == {}, "a run in which nothing is left out has exit status 0", status, said)
point([(r["size"], r["by"]) for r in found["rows"]] == [(n, by) for n in (4096, 8192) for by in ["messages", "reference", *PEERS]],
      "each contender has a row for each size", found["rows"])
point(all(r["wrong"] == 0 and r["workers"] == 2 and r["link"] == "unlimited" for r in found["rows"]), "rows say where they were measured, and that all sums were right")
point(len(found["bars"]) == len(bars.BARS) and said.count("not measured") == len(bars.BARS), "each bar is in the JSON and in the output", said)

status, said, found = run("--sizes", "4K", "--links", "1gbit/256kb")
row = {r["by"]: r for r in found["rows"]}
point(list(row) == ["messages", "int16", *PEERS] and row["int16"]["to_messages"] == row["messages"]["time_us"] / row["int16"]["time_us"],
      "where links are limited, elements of 16 bits are measured instead of shared memory, and compared with 32", status, said)
# A frame carries 1408 of 1498 bytes.
point(abs(row["messages"]["to_bound"] - row["messages"]["algbw_gbs"] * 8 * 1498 / 1408) < 1e-9, "messages are compared with what the link can carry", row["messages"])
point(row["Gloo-beside"]["to_bare"] == row["Gloo"]["time_us"] / row["Gloo-beside"]["time_us"], "a peer beside is compared with the same on bare ports")
point(row["messages"]["to_best_beside"] == min(row[b]["time_us"] for b in ("Gloo-beside", "MPI-beside")) / row["messages"]["time_us"],
      "messages are compared with the best peer beside")

status, said, found = run("--sizes", "4K", openmpi="wrong")
point(status == 1 and "MPI, rank 1: 2046 of 2048 sums were verified" in said and not found, "a wrong sum ends the run with exit status 1, names who, and is in no report", status, said)
BYTES[0] = 100
status, said, found = run("--sizes", "4K")
BYTES[0] = 1 << 40
point(status == 1 and "messages: only 100 bytes crossed the bridge's ports" in said,
      "a contender that does not use the ports ends the run with exit status 1", status, said)
status, said, found = run("--sizes", "4K", gloo="absent")
point(status == 3 and not found["complete"] and [r["by"] for r in found["rows"]] == ["messages", "reference", "MPI", "Gloo-beside", "MPI-beside"],
      "a contender that does not start changes the exit status to 3, and the others are measured", status, said)
point("bench: left out: Linux bridge, MTU 1500, 2 workers: Gloo: gloo: a process ended with status 5" in said and
      list(found["left_out"]) == ["Linux bridge, MTU 1500, 2 workers: Gloo"], "who did not start is named, with the reason", said)
group.COMMAND_TIMEOUT, measure.MOST_HANGS = 3, 0
status, said, found = run("--sizes", "4K", openmpi="stuck")
group.COMMAND_TIMEOUT = 30
point(status == 3 and "MPI" not in [r["by"] for r in found["rows"]] and "MPI: did not return with 4096 bytes, 1 times" in said,
      "a peer that hangs is left out, named, and changes the exit status to 3", status, said)
for how, why in ({"saina_messages": "absent"}, "a process ended with status 5"), ({"lab": "no such bridge"}, "no such bridge"):
    status, said, found = run("--sizes", "4K", **how)
    point(status == 3 and not found and "left out: Linux bridge, MTU 1500, 2 workers: " in said and why in said, f"a place without libsaina is left out: {why}", status, said)

# --- GRO and binding: what is canned is the time of a round --------------------------------------


class CannedGroup:
    name = "gloo"
    wire_share = 1.0

    def __init__(self, ns_off, ns_on):
        self.lab = FakeLab(None, False)
        self.ns = {False: ns_off, True: ns_on}
        self.asked: list[bool] = []
        self.bound = False
        self.bound_gain = 1.0

    def bind(self, bound):
        self.bound = bound

    def command(self, text, timeout=None):
        what, *words = text.split()
        self.asked.append(self.lab.gro)
        n = int(words[0]) + 1 if what == "time" else 0
        stamps = [int(i * self.ns[self.lab.gro] / (self.bound_gain if self.bound else 1)) for i in range(n)]
        return [stamps] * 2

    def restart(self):
        pass


def cell_of(canned, bound=(False,)):
    return measure.Cell(Switch("linux", 1500, 2), 4096, [measure.Series("Gloo", canned, gro=measure.BOTH, bound=bound)], lambda what: None)


for off, on, better in (1000, 2000, "off"), (2000, 1000, "on"):
    canned = CannedGroup(off, on)
    cell = cell_of(canned)
    got = cell.measure(0.001, 2)["Gloo"]
    point(got["median_ns"] == 1000 and got["gro"] == (better == "on") and
          cell.series[0].medians() == {measure.Setting(False, False): off, measure.Setting(True, False): on},
          f"a peer that is faster with GRO {better} is reported with GRO {better}", got)
    point(canned.lab.gro is False and {True, False} == set(canned.asked), f"GRO is as before when a peer was measured (faster {better})")
for gain in 2, .5:
    canned = CannedGroup(1000, 4000)
    canned.bound_gain = gain
    cell = cell_of(canned, measure.BOTH)
    got = cell.measure(0.001, 2)["Gloo"]
    point(got["bound"] == (gain == 2) and got["median_ns"] == (500 if gain == 2 else 1000) and len(cell.series[0].medians()) == 4,
          f"a contender that is {gain:g} times as fast with its workers bound is reported {'bound' if gain == 2 else 'free'}", got)

with tempfile.TemporaryDirectory() as where:
    real = FakeGloo(FakeLab(Switch("linux", 1500, 2), False), where)
    try:
        real.start()
        everywhere = [os.sched_getaffinity(p.pid) for p in real.processes]
        real.bind(True)
        alone = [os.sched_getaffinity(p.pid) for p in real.processes]
        real.bind(False)
        free = [os.sched_getaffinity(p.pid) for p in real.processes]
    finally:
        real.stop()
    mine = sorted(os.sched_getaffinity(0))
    point(alone == [{mine[rank % len(mine)]} for rank in range(2)], "a bound worker has the processor of its number", alone, mine)
    point(free == everywhere == [set(mine)] * 2, "a free worker has all processors", free, mine)


class HangsWithGro(CannedGroup):
    def command(self, text, timeout=None):
        if text.startswith("time") and self.lab.gro:
            raise group.TimedOut("it does not come back")
        return super().command(text, timeout)


point(cell_of(HangsWithGro(1000, 1000)).measure(0.001, 2) == {}, "nothing counts of a turn that did not end")

# --- bars: what is canned is the report ------------------------------------------------------------


def rows_of(bar, change):
    """Rows of all that a bar is about, with its limit; change: added to that of the last one."""
    rows = [{"bridge": "linux", "workers": n, "size": s, "link": bar.link, "by": bar.by, "hook": bar.hook, "mtu": bar.mtu, bar.figure: bar.limit}
            for n in bar.workers for s in bar.sizes]
    rows[-1][bar.figure] += change
    return rows


for change, verdict in (0, "reached"), (.01, "MISSED"):
    judged = [b.judge(rows_of(b, change if b.figure.startswith("cpu") else -change)) for b in bars.BARS]
    point(all(j["verdict"] == verdict and j["rows"] == len(j["workers"]) * len(j["sizes"]) for j in judged), f"bars: figures {change} from their limits: {verdict}",
          [j for j in judged if j["verdict"] != verdict])
point(all(j["worst"] == [j["workers"][-1], j["sizes"][-1]] and f"{j['value']:.3f}" in line and "MISSED" in line for j, line in zip(judged, bars.text(judged).splitlines()[1:])),
      "bars: the worst row is named", bars.text(judged))
everything = {(p, link) for p, links, _ in bench_main.FULL for link in links}
missing = [b for b in bars.BARS if not all((Switch("linux", b.mtu, n, b.hook), b.link) in everything for n in b.workers)]
point(not missing and {s for b in bars.BARS for s in b.sizes} <= set(bench_main.SIZES), "bars: the whole plan has all rows", missing)
point(all(any(link == b.link and (p.mtu, p.hook) == (b.mtu, b.hook) and beside for p, link, beside in
              ((p, link, beside) for p, links, beside in bench_main.FULL for link in links)) for b in bars.BARS if "beside" in b.figure or "beside" in b.by),
      "bars: peers beside are measured where a bar is about them")

# --- saina bench: sizes, and the sentence ---------------------------------------------------------------


def host_arguments(*words):
    return host.arguments(["--tool", "t", "--control", "c", "--bridge", "b", *words])


def host_rows(**ratios):
    """ratios: by which our ways beat the best peer, for sizes of 1 KiB, 2 KiB, ..."""
    return [{"size": 1024 << i, "by": by, "to_best_peer": r} for by, of in ratios.items() for i, r in enumerate(of)]


def refused(*words):
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            host_arguments(*words)
    except SystemExit as e:
        return e.code, said.getvalue()
    return 0, ""


sizes = [host_arguments("-b", b, "-e", e, "-f", f).sizes for b, e, f in (("4", "4", "2"), ("1K", "1M", "32"), ("10", "100", "3"))]
point(sizes == [[4], [1024, 32768, 1048576], [8, 28, 88]], "host: sizes are whole floats, from -b to -e by -f", sizes)
point(host_arguments("workers", "7", "policy", "fastest:k=3").workers == 7, "host: keys are written as those of other commands")
wrong = [w for w in (["-b", "1T"], ["-b", "x"], ["-b", "2M", "-e", "1M"], ["workers", "65"], ["policy", "grouped:g=2"], ["-f", "1"], ["more"])
         if refused(*w)[0] != 2 or "saina: bench: " not in refused(*w)[1]]
point(not wrong, "host: what makes no sense is refused with status 2 and a sentence", wrong)
WANT = {
    "at every size, by messages or by shared memory: 1.2 to 2.0 times": host_rows(messages=[1.2, .5], reference=[1, 2.0]),
    "It pays here at 2 KiB, by shared memory: 3.0 times as fast as the best peer; at 1 KiB the best peer is 2.0 times as fast": host_rows(reference=[.5, 3]),
    "It does not pay here without stragglers; at 1 KiB, 2 KiB the best peer is 2.0 to 4.0 times": host_rows(messages=[.5, .25]),
    "It does not pay here without stragglers: it is about as fast": host_rows(messages=[1.05, .95]),
    "cannot be said without a peer": host_rows(messages=[None]),
}
wrong = [(want, host_report.verdict(rows)) for want, rows in WANT.items() if want not in host_report.verdict(rows)]
point(not wrong, "host: the sentence says where it pays, how, and where not", wrong)

def host_report_of(gain, bound):
    """The only row, its line and the last lines of a report in which bound workers are @gain times as fast as free ones."""
    canned = CannedGroup(1000, 1000)
    canned.bound_gain = gain
    cell = cell_of(canned, bound)
    rows = host_report.rows_of(cell, cell.measure(0.001, 2))
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        host_report.print_rows(rows)
        host_report.finish({"load": 0, "cpus": 2}, rows, {}, False, False)
    line, *last = said.getvalue().splitlines()
    return rows[0], line, "\n".join(last)


# gain, Series.bound: the ratio in JSON, the mark behind the time, and what is said of binding
for gain, bound, of_free, time_text, sentence in (
        (1.25, measure.BOTH, 1.25, " 0.8^ ", ": 1.2 times as fast as free"), (1.0625, measure.BOTH, 1.0625, " 0.9  ", ""),
        (.5, measure.BOTH, .5, " 1.0  ", ""), (2, (False,), None, " 1.0  ", "")):
    row, line, last = host_report_of(gain, bound)
    point((row["bound_to_free"] is None) == (of_free is None) and abs((row["bound_to_free"] or 0) - (of_free or 0)) < .01 and
          time_text in line and (sentence in last if sentence else "^" not in last),
          f"host: that bound workers are {gain:g} times as fast {'is marked and said' if sentence else 'is not marked'}"
          f"{'' if of_free else ' if it was not measured'}", row, line, last)

tap.end()
