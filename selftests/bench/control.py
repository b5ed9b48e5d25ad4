# SPDX-License-Identifier: GPL-2.0-or-later
"""make bench-control: what the control plane promises about time, by real workers in labs on this machine.

    time-out   one of four workers sends, the others are silent: how much later than T after the
               start of sending the result arrives; for comparison, how late a process that only
               sleeps for T wakes up here
    k          a client sets k of a job with policy external, whose workers make rounds: when the
               answer arrives, and when a round has the new k

Documentation/policies.rst section 6 has figures and what they depend on.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(1, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../tools/lab"))
# pylint: disable=wrong-import-position
import interrupt
import results
from lab import BUILD, BenchError, run
from workers import Jobs, Workers

SILENT_US = 10 ** 9
TIMEOUTS_MS = (2, 10, 50)
WARM = 5			# first rounds, not counted: the worker learns the time-out, and memory is cold
LATE_MS = K_LIMIT_MS = 1


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
                 f"at most T + {LATE_MS} ms; a sleep ends after T + {statistics.median(sleeps):.2f}, {p99(sleeps):.2f}, {sleeps[-1]:.2f}",
                 p99(late) <= LATE_MS, median_ms=statistics.median(late), p99_ms=p99(late), max_ms=late[-1], rounds=len(late),
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


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="selftests/bench/control.py", description="What the control plane promises about time, by real workers in "
                                "namespaces on this machine.  See Documentation/policies.rst, section 6.",
                                epilog="The machine must have nothing else to do: what is measured includes how long "
                                "processes wait for a processor.")
    p.add_argument("--quick", action="store_true", help="few rounds, only to see that it runs")
    p.add_argument("--out", default="result", metavar="DIR", help="where bench-control.json goes (result)")
    return p.parse_args()


def main() -> int:
    a = arguments()
    if os.geteuid() != 0:
        print("bench-control: needs root for network namespaces: run `make bench-control' with sudo", file=sys.stderr)
        return 1
    about, status = {**results.machine(), "quick": a.quick}, 0
    os.makedirs(a.out, exist_ok=True)
    path = os.path.join(a.out, "bench-control.json")
    interrupt.catch()
    with tempfile.TemporaryDirectory(prefix="saina-bench-") as folder:
        bench = Bench(a.quick, folder)
        try:
            bench.with_lab(4, lambda: (bench.timeouts(), bench.client()))
        except KeyboardInterrupt:
            status = 130
        except BenchError as e:
            print(f"bench-control: {e}", file=sys.stderr)
            status = 1
        results.write_json(path, {**about, "complete": not status, "rows": bench.rows})
    print(path)
    return status


sys.exit(main())
