# SPDX-License-Identifier: GPL-2.0-or-later
"""make bench-policies: what policies promise about time, by real workers in labs on this machine.

    time-out   one of four workers sends, the others are silent: how much later than T after the
               start of sending the result arrives; for comparison, how late a process that only
               sleeps for T wakes up here
    k          a client sets k of a job with policy external, whose workers make rounds: when the
               answer arrives, and when a round has the new k
    window     eight workers that straggle (with p = 0.15 a step takes 0.5 to 2 times its time
               longer): the time of a step under ssp:10, divided by that under bsp with the same
               stragglers
    groups     sixteen workers, one of which takes four times as long for a step (Basu et al.): the
               time of the same number of steps of all workers, divided by that without the delay, in
               one group and in the groups that `saina policy control' chose

Documentation/policies.rst section 7 has figures and what they depend on.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[1:1] = [os.path.join(HERE, "../../tools/bench"), os.path.join(HERE, "../../tools/lab")]
# pylint: disable=wrong-import-position
import interrupt
import results
from arguments import listed, one_of
from lab import BUILD, BenchError, run
from workers import Jobs, Workers

SILENT_US = 10 ** 9
TIMEOUTS_MS = (2, 10, 50)
WARM = 5			# first rounds, not counted: the worker learns the time-out, and memory is cold
K_LIMIT_MS = 1
SERENE, SERENE_OFF = 0.604, 0.05	# ssp:10 to bsp, simulated (selftests/unit/steps_test.c); allowed difference
STEP_US = 10000
BASU = 1.25			# times the time without delay, at most
DELAYED = 4			# times as long: a step of the delayed worker


def p99(ordered: list[float]) -> float:
    return ordered[int(0.99 * (len(ordered) - 1))]


def late_sleeps(seconds: float, while_true) -> list[float]:
    """Sleeps for so many seconds, as long as while_true().  Returns how many ms each sleep took too long, sorted."""
    late = []
    while while_true() or not late:
        begin = time.monotonic()
        time.sleep(seconds)
        late.append((time.monotonic() - begin - seconds) * 1000)
    return sorted(late)


class Bench(Jobs):
    def __init__(self, quick: bool, folder: str):
        super().__init__()
        self.quick, self.folder = quick, folder
        self.rows: list[dict] = []

    def row(self, name: str, text: str, kept: bool, **figures) -> None:
        """Records and prints a promise; kept: is it kept?"""
        self.rows.append({"name": name, "kept": kept, **figures})
        print(f"{'kept' if kept else 'BROKEN':7} {name}: {text}", flush=True)

    def timeout(self, t_ms: int, elements: int) -> None:
        job, rounds = f"out{t_ms}-{elements}", WARM + (20 if self.quick else 5000 // (t_ms + 5))
        self.add(job, 4, f"timeout:{t_ms}ms,kmin=1,lead=none", elements)
        with Workers(self.lab, job, self.folder) as w:
            for i in 1, 2, 3:
                w.begin(i, "--think-us", str(SILENT_US))
            w.begin(0, "--rounds", str(rounds))
            end = time.monotonic() + 60 + rounds * t_ms / 100
            sleeps = late_sleeps(t_ms / 1000, lambda: w.runs(0) and time.monotonic() < end)
            summary = w.end(0, 1)
            late = sorted(r["time_us"] / 1000 - t_ms for r in w.log(0)[WARM:])
        self.delete(job)
        if not summary["degraded_segments"]:
            raise BenchError(f"{job}: no result is degraded, so no time-out fired")
        self.row(f"time-out of {t_ms} ms, {elements} elements",
                 f"result after T + {statistics.median(late):.2f} ms (median), {p99(late):.2f} (99 %), {late[-1]:.2f} (last of {len(late)}); "
                 f"at most T + 1 ms; a sleep ends after T + {statistics.median(sleeps):.2f}, {p99(sleeps):.2f}, {sleeps[-1]:.2f}",
                 p99(late) <= 1, median_ms=statistics.median(late), p99_ms=p99(late), max_ms=late[-1], rounds=len(late),
                 sleep_median_ms=statistics.median(sleeps), sleep_p99_ms=p99(sleeps), sleep_max_ms=sleeps[-1])

    def timeouts(self) -> None:
        for t_ms in TIMEOUTS_MS:
            for elements in (256, 65536):
                self.timeout(t_ms, elements)

    def client(self) -> None:
        calls = 50 if self.quick else 1000
        number = self.add("client", 4, "external:k0=1", 8192)
        with Workers(self.lab, "client", self.folder) as w:
            for i in range(4):
                w.begin(i, "--rounds", "0", "--think-us", "500", "--no-verify", "--skip-stale")
            said = json.loads(run(os.path.join(BUILD, "bench-control"), f"/run/saina-lab/{self.lab.name}/control",
                                  str(number), str(calls)))
        self.delete("client")
        answer, force = ([v / 1000 for v in sorted(said[name])] for name in ("answer_us", "in_force_us"))
        self.row("k set by a client",
                 f"answered after {statistics.median(answer):.3f} ms (median), {p99(answer):.3f} (99 %), {answer[-1]:.3f} (last of {calls}), at most "
                 f"{K_LIMIT_MS} ms; a round has it after {statistics.median(force):.3f} ms; rounds with the old k after the answer: "
                 f"{said['rounds_with_the_old_k']}", p99(answer) <= K_LIMIT_MS and not said["rounds_with_the_old_k"],
                 median_ms=statistics.median(answer), p99_ms=p99(answer), max_ms=answer[-1], in_force_median_ms=statistics.median(force))

    def step_us(self, policy: str, steps: int, seed: int) -> float:
        """Microseconds a step of a run under @policy, until the last worker has made all steps."""
        self.saina("policy", "set", "window", policy)
        with Workers(self.lab, "window", self.folder) as w:
            for i in range(8):
                w.begin(i, "--steps", "--rounds", str(steps), "--think-us", str(STEP_US), "--straggle", "0.15", "--seed", str(seed))
            ended = [w.end(i, 60 + steps * STEP_US / 1e5) for i in range(8)]
        if any(e["wrong"] or e["beyond_window"] for e in ended):
            raise BenchError("a model is wrong, or lacks more than its window allows")
        return max(e["time_us"] for e in ended) / steps

    def window(self) -> None:
        steps, seeds = (60, (1,)) if self.quick else (1000, (1, 2))
        self.add("window", 8, "bsp", 2048)
        runs = [{p: self.step_us(p, steps, seed) for p in ("bsp", "ssp:10")} for seed in seeds]
        bsp, ssp = (statistics.mean(r[p] for r in runs) for p in ("bsp", "ssp:10"))
        ratio = ssp / bsp
        self.row("ssp:10 to bsp, 8 workers",
                 f"{ratio:.3f} of the time of a step ({ssp / 1000:.2f} to {bsp / 1000:.2f} ms, {STEP_US / 1000:g} of them computing; "
                 f"{len(runs)} runs of {steps} steps each); {SERENE} +- {SERENE_OFF}", abs(ratio - SERENE) <= SERENE_OFF,
                 ratio=ratio, ssp_ms=ssp / 1000, bsp_ms=bsp / 1000, runs=runs)

    def groups(self) -> None:
        # Steps are long, because 16 workers share this machine's processors; the controller decides every 20 steps.
        step_us, seconds, settled = (20000, 3, 12) if self.quick else (60000, 20, 25)
        self.add("groups", 16, "grouped:g=1", 2048)
        rates = {}
        for delayed in (False, True):
            with Workers(self.lab, "groups", self.folder) as w:
                for i in range(16):
                    think = step_us * (DELAYED if delayed and i == 5 else 1)
                    w.begin(i, "--steps", "--rounds", "0", "--think-us", str(think))
                while w.steps() < 16 * 20:
                    time.sleep(0.1)
                rates[delayed] = w.rate(seconds)
                if delayed:
                    policy, rate = self.controlled("groups", settled, lambda: w.rate(seconds))
                w.stop()
        one, ratio = rates[False] / rates[True], rates[False] / rate
        self.row("groups by measured delays, 16 workers, one takes four times as long",
                 f"{ratio:.2f} of the time without delay under {policy.split(',')[0]}, at most {BASU}; {one:.2f} in one group "
                 f"({rates[False]:.0f} steps of all in a second without delay, {rates[True]:.0f} in one group, {rate:.0f} in those)",
                 ratio <= BASU, ratio=ratio, one_group=one, policy=policy, steps_per_second=rate,
                 undelayed_steps_per_second=rates[False], one_group_steps_per_second=rates[True])


PARTS = ("time-out", "k", "window", "groups")


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="selftests/bench/policies.py", description="What policies promise about time, by real workers in "
                                "namespaces on this machine.  See Documentation/policies.rst, section 7.",
                                epilog="The machine must have nothing else to do: what is measured includes how long "
                                "processes wait for a processor.")
    p.add_argument("--quick", action="store_true", help="few rounds, only to see that it runs (about 60 seconds instead of 5 minutes)")
    p.add_argument("--only", type=listed(one_of(*PARTS)), default=list(PARTS), metavar="LIST", help=f"of {', '.join(PARTS)} (all)")
    p.add_argument("--out", default="result", metavar="DIR", help="where bench-policies.json goes (result)")
    return p.parse_args()


def main() -> int:
    a = arguments()
    if os.geteuid() != 0:
        print("bench-policies: needs root for network namespaces: run `make bench-policies' with sudo", file=sys.stderr)
        return 1
    about = {**results.machine(), "quick": a.quick, "complete": False}
    os.makedirs(a.out, exist_ok=True)
    path = os.path.join(a.out, "bench-policies.json")
    interrupt.catch()
    with tempfile.TemporaryDirectory(prefix="saina-bench-") as folder:
        bench = Bench(a.quick, folder)
        try:
            if "time-out" in a.only:
                bench.with_lab(4, bench.timeouts)
            if "k" in a.only:
                bench.with_lab(4, bench.client)
            if "window" in a.only:
                bench.with_lab(8, bench.window)
            if "groups" in a.only:
                bench.with_lab(16, bench.groups)
            about["complete"] = True
        except KeyboardInterrupt:
            print(f"bench-policies: stopped; what was measured until then is in {path}", file=sys.stderr)
            return 130
        except BenchError as e:
            print(f"bench-policies: {e}", file=sys.stderr)
            return 1
        finally:
            results.write_json(path, {**about, "rows": bench.rows})
    print(path)
    return 0


sys.exit(main())
