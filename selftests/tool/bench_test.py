#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""selftests/bench without a network: its contenders are bench_contender.c, its labs count bytes that
nobody sends.  Real runs: selftests/net/bench.sh."""

import contextlib
import importlib.util
import io
import json
import os
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path[:0] = [TOP + "/selftests/bench", TOP + "/tools/bench", TOP + "/tools/lab", TOP + "/selftests/lib"]
# pylint: disable=wrong-import-position
import cpu_profile
import group
import host
import host_report
import measure
import plan
import report
import runner
import scale
from tap import Tap

spec = importlib.util.spec_from_file_location("bench_main", TOP + "/selftests/bench/__main__.py")
bench_main = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bench_main)
CONTENDER = os.path.join(os.environ.get("SAINA_BUILD", TOP + "/build"), "selftests", "bench-contender")
tap = Tap("bench: ")
point = tap.point


# --- runs of main() ---------------------------------------------------------------------------

HOW: dict[str, str] = {}		# a group's name: what bench_contender does, if not "right"
BYTES = [1 << 40]			# that cross the ports between two readings


class FakeLab:
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
            self.spawn([CONTENDER, self.socket_path, str(rank), str(self.ranks), HOW.get(self.name, "right")])
        self.greet()


class FakeSaina(FakeGroup):
    def __init__(self, lab, folder, elements, variant=""):
        self.name = f"saina-{variant}" if variant else "saina"
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


runner.Lab, runner.Saina, runner.Gloo, runner.OpenMPI = FakeLab, FakeSaina, FakeGloo, FakeOpenMPI
measure.cpu_seconds = fake_cpu_seconds
runner.TURNS = 2
bench_main.check_ready = lambda: None
group.STOP_TIMEOUT = 0.1


def run(*words, deadline=None, **how):
    """(exit status, what it said, its JSON, the files it made) of selftests/bench with two workers"""
    HOW.clear()
    HOW.update({k.replace("_", "-"): v for k, v in how.items()})
    out = tempfile.mkdtemp()
    said = io.StringIO()
    bench = runner.Bench
    if deadline is not None:
        bench_main.runner.Bench = lambda places, seconds, _, where: bench(places, seconds, deadline, where)
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = bench_main.main(["--workers", "2", "--seconds", "0.01", "--out", out, *words])
        path = os.path.join(out, "bench.json")
        found = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                found = json.load(f)
        return status, said.getvalue(), found, sorted(os.listdir(out))
    finally:
        bench_main.runner.Bench = bench
        shutil.rmtree(out)
        for line in said.getvalue().splitlines():
            if "what the contenders said is in " in line:
                shutil.rmtree(line.rpartition(" ")[2], ignore_errors=True)


def end_of(said):
    """The output behind the table of bars."""
    return said.rpartition("how to read them")[2]


status, said, found, files = run("--sizes", "4KiB,8KiB")
point(status == 0 and found["complete"] and found["left_out"] == [], "a run in which nothing is left out has exit status 0", status, said)
point(files == ["bench.dat", "bench.json", "bench.png", "bench.txt"], "JSON, table and picture are written", files)
point([r["bytes"] for r in found["rows"]] == [4096, 8192], "each row of the plan is in the JSON")
series = found["rows"][0]["series"]
everybody = {f"{n}{b}" for n in report.PEERS for b in ("", ", beside")} | {
    "libsaina", "libsaina, advised", "libsaina, by reference", "libsaina, GRO off"}
point(set(series) == everybody, "each contender is in the JSON", set(series) ^ everybody)
WORDS = {"median_ns", "first_quartile_ns", "third_quartile_ns", "goodput_gbps", "spread", "cpu_s_per_gb", "port_bytes_per_byte", "samples",
         "gro", "bound", "gbps_by_setting", "first_ns", "verified", "verified_sums", "ours", "beside"}
point(all(set(s) > WORDS for s in series.values()), "JSON has goodput, spread, CPU, GRO and verification of each contender")
point(all(s["verified"] is True and s["verified_sums"] == 2 * 2 * 1024 for s in series.values()),
      "JSON says how many sums were verified: those of two rounds of two workers")
point(all({w.partition(",")[0] for w in s["gbps_by_setting"]} == {"GRO off", "GRO on"} and s["goodput_gbps"] == max(s["gbps_by_setting"].values())
          for s in series.values() if not s["ours"]), "peers are measured with GRO off and on, and the fastest counts")
point({n: s["gro"] for n, s in series.items() if s["ours"]} ==
      {"libsaina": True, "libsaina, advised": True, "libsaina, by reference": True, "libsaina, GRO off": False},
      "libsaina is measured with GRO on, and with GRO off beside it")
point(len(found["bars"]) == len(plan.BARS) and all(b["verdict"] in said for b in found["bars"]), "each bar is in the JSON and in the output")

status, said, found, files = run("--sizes", "4KiB", "--links", "1gbit/256kb")
series = found["rows"][0]["series"]
point(set(series) == everybody - {"libsaina, by reference"} | {"libsaina, int16"} and
      found["rows"][0]["int16_to_int32"] == series["libsaina, int16"]["goodput_gbps"] / series["libsaina"]["goodput_gbps"],
      "where links are limited, elements of 16 bits are measured instead of by reference, and compared with 32", status, set(series) ^ everybody)

status, said, found, files = run("--sizes", "4KiB", openmpi="wrong")
point(status == 1 and "openmpi, rank 1" in said and "wrong sum: element 1023 is" in said,
      "one wrong sum ends the run with exit status 1 and names who, which element and its value", status, said)
point(not found, "a contender with a wrong sum is in no report")

BYTES[0] = 100
status, said, found, files = run("--sizes", "4KiB")
BYTES[0] = 1 << 40
point(status == 1 and "libsaina: only 100 bytes crossed the bridge's ports" in said,
      "a contender that does not use the ports ends the run with exit status 1", status, said)

status, said, found, files = run("--sizes", "4KiB", gloo="absent")
point(status == 3 and not found["complete"], "a contender that does not start changes the exit status to 3", status)
point("left out: Linux bridge, MTU 1500, 2 workers: gloo: gloo: a process ended with status 5" in end_of(said),
      "who did not start is named at the end, with the reason", said)
point(list(found["rows"][0]["left_out"]) == ["Gloo ring", "Gloo halving"] and found["left_out"][0]["reason"] in end_of(said),
      "JSON says in which row who is left out, and why", found["left_out"])
point("MPI ring" in found["rows"][0]["series"], "the other contenders are measured without the one that did not start")

group.COMMAND_TIMEOUT, measure.MOST_HANGS = 0.3, 0
status, said, found, files = run("--sizes", "4KiB", openmpi="stuck")
group.COMMAND_TIMEOUT = 30
point(status == 3 and list(found["rows"][0]["left_out"]) == ["MPI default", "MPI ring"], "a contender that hangs changes the exit status to 3", status, said)
point("unlimited, 4 KiB: MPI ring: hung, turns that did not end: 1" in end_of(said), "who hung is named at the end, with the row", said)

status, said, found, files = run("--sizes", "4KiB,8KiB", saina="absent")
point(status == 3 and end_of(said).count("workers, unlimited, ") >= 2 and "saina: a process ended with status 5" in said,
      "rows of a place where libsaina does not start are named, with exit status 3", status, said)
status, said, found, files = run("--sizes", "4KiB", lab="no such bridge")
point(status == 3 and "left out: Linux bridge, MTU 1500, 2 workers, unlimited, 4 KiB: no such bridge" in said,
      "rows of a place whose labs cannot be built are named, with exit status 3", status, said)
status, said, found, files = run("--sizes", "4KiB", deadline=0)
point(status == 3 and "unlimited, 4 KiB: no time was left" in said, "rows for which there is no time are named, with exit status 3", status, said)

# --- GRO: what is canned is the time of a round -------------------------------------------------


class CannedGroup:
    name = "gloo"
    wire_share = 1.0

    def __init__(self, ns_off, ns_on):
        self.lab = FakeLab(None, False)
        self.ns = {False: ns_off, True: ns_on}
        self.asked: list[bool] = []
        self.bound = False
        self.bound_gain = 1.0
        self.right = 2 * 1024

    def bind(self, bound):
        self.bound = bound

    def command(self, text, timeout=None):
        what, *words = text.split()
        self.asked.append(self.lab.gro)
        n = int(words[0]) + 1 if what in ("time", "verify") else 0
        stamps = [int(i * self.ns[self.lab.gro] / (self.bound_gain if self.bound else 1)) for i in range(n)]
        return [stamps + [self.right] * (what == "verify")] * 2


def cell_of(canned, bound=(False,)):
    one = measure.Series("Gloo ring", canned, "ring", gro=measure.BOTH, bound=bound)
    return measure.Cell(plan.Place("linux", 1500, 2), plan.Row(plan.UNLIMITED, 4096), [one], lambda what: None)


for off, on, better in (1000, 2000, "off"), (2000, 1000, "on"):
    canned = CannedGroup(off, on)
    got = cell_of(canned).measure(0.001, 2)["Gloo ring"]
    point(got["median_ns"] == 1000 and got["gro"] == (better == "on") and
          got["gbps_by_setting"] == {"GRO off, free": 32768 / off, "GRO on, free": 32768 / on},
          f"a peer that is faster with GRO {better} is reported with GRO {better}", got)
    point(canned.lab.gro is False and {True, False} == set(canned.asked), f"GRO is as before when a peer was measured (faster {better})")


for gain in 2, .5:
    canned = CannedGroup(1000, 4000)
    canned.bound_gain = gain
    got = cell_of(canned, measure.BOTH).measure(0.001, 2)["Gloo ring"]
    point(got["bound"] == (gain == 2) and got["goodput_gbps"] == 32768 / (500 if gain == 2 else 1000) and len(got["gbps_by_setting"]) == 4,
          f"a contender that is {gain:g} times as fast with its workers bound is reported {'bound' if gain == 2 else 'free'}", got)


with tempfile.TemporaryDirectory() as where:
    real = FakeGloo(FakeLab(plan.Place("linux", 1500, 2), False), where)
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
            raise group.Hung("it does not come back")
        return super().command(text, timeout)

    def restart(self):
        pass


point(cell_of(HangsWithGro(1000, 1000)).measure(0.001, 2) == {}, "nothing of a turn that hung counts")
canned = CannedGroup(1000, 1000)
canned.right -= 1
try:
    cell_of(canned).measure(0.001, 2)
    refused = ""
except bench_main.BenchError as e:
    refused = str(e)
point("2047 of 2048 sums were verified" in refused, "a contender that compared too few sums ends the run", refused)
one = measure.Series("Gloo ring", CannedGroup(1, 1), "ring", taken={measure.Setting(True, False): measure.Taken(1, [1000], 1)})
point(cell_of(one.group).result(one)["verified"] is False, "what was not verified is not said to be")

# --- bars: what is canned is the report ------------------------------------------------------------


def series_of(gbps, ours=False, beside=False):
    ns = 1e9 / gbps
    return {"goodput_gbps": gbps, "median_ns": ns, "first_quartile_ns": ns, "third_quartile_ns": ns, "spread": 0, "cpu_s_per_gb": 1,
            "ours": ours, "beside": beside, "gro": True, "bound": False}


def rows_of(good):
    """Rows of the whole plan with figures that reach all bars, or (good = False) miss them."""
    for place in plan.full():
        for row in place.rows:
            gbps = 1.0 if good else 1 - place.workers / 100
            yield measure.about(place, row) | {
                "series": {"libsaina": series_of(gbps, True), "Gloo ring": series_of(0.5), "Gloo ring, beside": series_of(0.4, beside=True)},
                "left_out": {}, "best_peer": "Gloo ring", "best_peer_beside": "Gloo ring, beside", "reference_to_best_peer": 2.0 if good else 0.99,
                "reference_cpu_to_best_peer": 0.55 if good else 0.56, "first_to_median": 1.5 if good else 1.51,
                "to_bound": 0.98 if good else 0.849 if place.workers == 16 else 0.979,
                "to_best_peer": 1.68 if good else 0.64, "to_best_peer_beside": 3.0 if good else 1.49,
                "cpu_to_best_peer": 0.8 if good else 0.81, "cpu_to_gloo_ring": 0.6 if good else 0.61, "to_bare": 0.9 if good else 0.89,
                "to_share": 0.7 if good else 0.69, "resent_share": 0.049 if good else 0.05, "p99_to_median": 5 if good else 5.1,
                "times": 2.5 if good else 2.51, "int16_to_int32": 1.9 if good else 1.89}


full = list(rows_of(True))
judged = plan.judge(full)
limited = [j for j in judged if j["limit"]]
point(all(j["rows"] >= 1 for j in judged), "the whole plan has a row for each bar", [j for j in judged if not j["rows"]])
point(all(j["verdict"] == "reached" for j in limited) and all(j["verdict"] == "reported" for j in judged if not j["limit"]),
      "figures at their limits reach their bars", *(j for j in limited if j["verdict"] != "reached"))
judged = plan.judge(list(rows_of(False)))
point(all(j["verdict"] == "MISSED" for j in judged if j["limit"]), "figures beyond their limits miss their bars",
      *(j for j in judged if j["limit"] and j["verdict"] != "MISSED"))
text = plan.verdicts(judged)
point(all(f"{j['figure']:.3f}" in line and j["verdict"] in line for j, line in zip(judged, text.splitlines()[1:])), "the table of bars has figure and verdict", text)
one_bad = [r | {"to_bound": 0.97} if (r["workers"], r["bytes"]) == (8, 16 * plan.MIB) else r for r in full]
judged = [j for j in plan.judge(one_bad) if j["verdict"] == "MISSED"]
point([(j["bar"], j["at"]) for j in judged] == [("links 1 Gb/s, 4 MiB and above, N = 8: to the payload bound", "N = 8, 16 MiB")],
      "one bad row misses its bar, and no other", judged)
judged = plan.judge([r for r in full if (r["workers"], r["bytes"], r["link"]) != (8, 16 * plan.MIB, plan.LIMITED)])
point([j["bar"] for j in judged if j["verdict"] == "incomplete"] ==
      [b.text for b in plan.BARS if "N = 2, 4, 8: goodput" in b.text or b.text.startswith(("links 1 Gb/s, 4 MiB and above, N = 8", "links 1 Gb/s, N = 8"))],
      "a bar of which a row is left out is not said to be reached", [j for j in judged if j["verdict"] == "incomplete"])
point(all(j["verdict"] == "not measured" for j in plan.judge([])), "a bar without rows is not measured")

# --- the plan, and when time runs out ------------------------------------------------------------------

planned = [(p, r) for p in plan.full() for r in p.rows]
wanted = [(p, r) for p, r in planned if any(b.rows(measure.about(p, r)) for b in plan.BARS)]
point(not any(r.extra for _, r in wanted), "no row that a bar is about is left out before others", [f"{p}, {r}" for p, r in wanted if r.extra])
point(plan.full()[-1].bridge != "ovs" and any(p.bridge == "ovs" and not r.extra for p, r in planned), "rows on Open vSwitch do not come last")
with contextlib.redirect_stdout(io.StringIO()):
    late = runner.Bench(plan.full(), 1, runner.time.monotonic() + 100, "")
late.progress.began -= 400
late.rows = [{}] * 10			# 40 s each
point([bool(late.why_not(r)) for r in (plan.Row(plan.UNLIMITED, 1, extra=True), plan.Row(plan.UNLIMITED, 1))] == [True, False],
      "when time is short, rows that no bar needs are left out and the others are not")
late.progress.began -= 800		# 120 s each
point(late.why_not(plan.Row(plan.UNLIMITED, 1)) == "no time was left", "a row that is likely to end too late is not begun")

# --- the picture ----------------------------------------------------------------------------------------

out = tempfile.mkdtemp()
drawn = report.draw(out, full)
with open(drawn, "rb") as f:
    head = f.read(8)
with open(os.path.join(out, "bench.dat"), encoding="utf-8") as f:
    panels = [p.splitlines() for p in f.read().split("\n\n\n") if p]
point(head == b"\x89PNG\r\n\x1a\n" and os.path.getsize(drawn) > 10000, "gnuplot draws the picture", head)
want = ["4194304 " + " ".join(map(str, [4194304 * 8 / 1e9] * 3)) + " 0.5 0.4", "16777216 " + " ".join(map(str, [16777216 * 8 / 1e9] * 3)) + " 0.5 0.4"]
here = [p for p in panels if p[0].startswith("# linux, MTU 9000, N = 4, unlimited, xdp")]
point(len(here) == 1 and here[0][1:] == want, "the picture's data are goodput by size of libsaina, the best peer and the best beside", here, want)
point(report.draw(out, full[:1]) is None, "there is no picture of one size")
shutil.rmtree(out)

# --- where the time goes: stacks, the innermost function first ----------------------------------------------

SEND = ["udp_sendmsg", "__sys_sendmsg", "__x64_sys_sendmsg", "do_syscall_64"]
DATA_PATH = ["bpf_prog_0048cc00ebb556ff_one_message", "bpf_prog_05966693ea85163d_saina_tc", "net_rx_action", *SEND]
STACKS = {
    "idle": [("swapper", ["pvm_native_halt", "default_idle"])],
    "other processes": [("cc1", []), ("qemu-system-x86", ["bpf_spin_unlock"])],
    "waiting for a processor or a message": [("bench-saina", ["finish_task_switch", "schedule_hrtimeout_range_clock", "__x64_sys_ppoll"])],
    "data path: adding, under the slot's lock": [("bench-saina", ["pvm_irq_enable", "bpf_spin_unlock", *DATA_PATH])],
    "data path: copies, to scratch and back": [("bench-saina", ["__pi_memcpy", "skb_copy_bits", "bpf_skb_load_bytes", *DATA_PATH])],
    "data path: checks, decisions, look-ups": [("bench-saina", ["array_map_lookup_elem", *DATA_PATH])],
    "copies in: from the worker to the kernel": [("bench-saina", ["_copy_from_iter", "ip_generic_getfrag", *SEND])],
    "copies out: from the kernel to the worker": [("bench-saina", ["_copy_to_iter", "udp_recvmsg", "__sys_recvmmsg"])],
    "receiving: sockets": [("bench-saina", ["__skb_try_recv_from_queue", "udp_recvmsg", "__x64_sys_recvmmsg"])],
    "sending: sockets, IP, veth, bridge, fan-out": [("bench-saina", ["fib_table_lookup", *SEND]), ("swapper", ["tcf_mirred_act", "net_rx_action"])],
    "worker: encoding": [("bench-saina", ["encode_avx512"])],
    "worker: decoding": [("bench-saina", ["decode_avx2", "consume"])],
    "worker: the rest of libsaina, system calls": [("bench-saina", ["saina_flow_run"]), ("bench-saina", [])],
}
wrong = [(kind, stack) for kind, stacks in STACKS.items() for stack in stacks if cpu_profile.kind_of(*stack) != kind]
point(not wrong, "profile: each stack is what it stands for", wrong)
point({name for name, _, _ in cpu_profile.KINDS} < set(STACKS), "profile: each kind of stack is tried")

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
    "at every size, by messages or by reference: 1.2 to 2.0 times": host_rows(messages=[1.2, .5], reference=[1, 2.0]),
    "It pays here at 2 KiB, by reference: 3.0 times as fast as the best peer; at 1 KiB the best peer is 2.0 times as fast": host_rows(reference=[.5, 3]),
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

# --- make bench-scale: the model ------------------------------------------------------------------------

COSTS = scale.Costs(352, {"xdp": 150, "tc": 200}, {"xdp": 1, "tc": .5, "reference": 1}, {"messages": 1000, "reference": 800})
machines = scale.simulate(COSTS, cores=(2, 16), links=(1, 100))


def machine(cores, where, link, workers):
    return next(r for r in machines if (r["cores"], r["where"], r["link_gbps"], r["workers"]) == (cores, where, link, workers))


def near(x, want):
    return abs(x - want) < 1e-6 * abs(want)


slow, fast, few = (machine(*m, 64) for m in ((16, "own links, XDP", 1), (16, "own links, XDP", 100), (2, "own links, tc", 100)))
# a frame of 1522 bytes on the wire carries 1408 of the tensor
point(slow["limit"] == "link" and near(slow["goodput_gbps"], 1408 / 1522), "scale: on slow links the link is the limit, headers taken off", slow)
# 800 ns a message
point(fast["limit"] == "worker" and near(fast["goodput_gbps"], 11264 / 800), "scale: on fast links the worker is, without the switch's part", fast)
# two cores, each half as fast as one alone: 1e9 / 200 messages a second for 64 workers
point(few["limit"] == "switch" and near(few["goodput_gbps"], 11264 / 200 / 64), "scale: with few cores the switch is, at the speed it has when all are busy", few)
point(near(fast["room_ns"], 16 * 800 / 64 - 150) and few["room_ns"] < 0, "scale: the room is what one message may cost in addition before the switch is the limit", fast["room_ns"], few["room_ns"])
tight = scale.simulate(scale.Costs(352, COSTS.switch, COSTS.efficiency, COSTS.total, fast["room_ns"] + 1), cores=(16,), links=(100,))
point(next(r for r in tight if r["workers"] == 64)["limit"] == "switch", "scale: a cost that is more than the room makes the switch the limit")
shared = [(machine(2, "containers, by reference", None, n)["limit"], machine(2, "containers, by reference", None, n)["goodput_gbps"]) for n in (4, 8)]
point(shared[0][0] == "cores" and near(shared[0][1], 2 * 11264 / 800 / 4) and near(shared[0][1], 2 * shared[1][1]), "scale: containers share the cores", shared)

tap.end()
