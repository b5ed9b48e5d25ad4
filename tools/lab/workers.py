# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs in a lab, and real workers of them that emulate computation."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable

from lab import BUILD, NET, BenchError, Lab, Switch

# A controller must stop changing groups within CONTROL_S seconds, or CONTROL_TIMES times as long as they must stay
# unchanged, whichever is longer.
CONTROL_S = 120
CONTROL_TIMES = 6


class Jobs:
    """Jobs of one lab at a time, configured by the saina command."""

    def __init__(self) -> None:
        self.lab: Lab | None = None

    def with_lab(self, workers: int, what: Callable[[], None]) -> None:
        """Builds a lab, calls @what, and takes the lab down."""
        self.lab = Lab(Switch("linux", 1500, workers), agent=True)
        try:
            self.lab.start()
            what()
        finally:
            self.lab.stop()

    def tool(self, *words: str) -> list[str]:
        return self.lab.tool(*words)

    def saina(self, *words: str) -> str:
        return self.lab.saina(*words)

    def show(self, job: str) -> dict:
        return json.loads(self.saina("-j", "job", "show", job))[0]

    def add(self, job: str, workers: int, policy: str, elements: int, *more: str) -> int:
        """Adds a job in which silent workers are not declared dead for 65 s.  Returns its id."""
        self.saina("job", "add", job, "workers", str(workers), "elements", str(elements), "policy", policy, "dead", "65535", *more)
        return self.show(job)["id"]

    def delete(self, job: str) -> None:
        self.saina("job", "del", job)

    def controlled(self, job: str, settled: float, what: Callable[[], float]) -> tuple[str, float]:
        """Runs `saina policy control' until the policy has been the same for @settled seconds, and then @what.

        Returns the policy and the result of @what."""
        with subprocess.Popen(self.tool("policy", "control", job, "interval", "500"),
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as controller:
            try:
                return self.settled(job, settled), what()
            finally:
                controller.terminate()

    def settled(self, job: str, seconds: float) -> str:
        """Waits until the policy in force has been the same for so long, and returns it."""
        last, begin = "", time.monotonic()
        since = begin
        while time.monotonic() - since < seconds:
            now = self.show(job)["policy_active"]
            if now != last:
                last, since = now, time.monotonic()
            if since - begin > max(CONTROL_S, CONTROL_TIMES * seconds):
                raise BenchError(f"the groups of job {job} still change after {since - begin:.0f} s, to {last}: "
                                 "workers wait too long for a processor; use a quiet machine, or longer computation")
            time.sleep(0.5)
        return last


class Workers:
    """Processes that are workers of a job; those that still run when the `with' block ends are killed."""

    def __init__(self, lab: Lab, job: str, folder: str):
        self.lab, self.job, self.folder = lab, job, folder
        self.running: dict[int, subprocess.Popen] = {}

    def path(self, worker: int, what: str) -> str:
        return os.path.join(self.folder, f"{self.job}.{worker}.{what}")

    def start(self, worker: int, *command: str) -> None:
        """Starts a worker by this command."""
        with open(self.path(worker, "out"), "wb") as out, open(self.path(worker, "err"), "wb") as err:
            self.running[worker] = subprocess.Popen(self.lab.inside(worker, *command), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                                    start_new_session=True)

    def begin(self, worker: int, *options: str) -> None:
        """Starts saina-allreduce as a worker."""
        # the log may have lines of an earlier worker
        with open(self.path(worker, "log"), "wb"):
            pass
        self.start(worker, os.path.join(BUILD, "saina-allreduce"), "-a", f"{NET}.1", "-j", self.job, "-w", str(worker), "--json",
                   "--log", self.path(worker, "log"), *options)

    def begin_with(self, worker: int, times_us: Iterable[float], *options: str) -> None:
        """Starts a worker that emulates computation; times_us: microseconds of each iteration."""
        with open(self.path(worker, "times"), "w", encoding="ascii") as f:
            f.writelines(f"{us:.0f}\n" for us in times_us)
        self.begin(worker, "--think-from", self.path(worker, "times"), *options)

    def wait(self, worker: int, timeout: float) -> None:
        """Waits for a worker.  Raises BenchError if it does not end with status 0 in time."""
        try:
            status = self.running[worker].wait(timeout)
        except subprocess.TimeoutExpired:
            raise BenchError(f"worker {worker} of {self.job} has not ended after {timeout:g} s") from None
        if status:
            with open(self.path(worker, "err"), encoding="utf-8", errors="replace") as f:
                raise BenchError(f"worker {worker} of {self.job} ended with status {status}: {f.read().strip()[-400:]}")
        del self.running[worker]

    def end(self, worker: int, timeout: float) -> dict:
        """Waits for a worker, as wait(), and returns its summary."""
        self.wait(worker, timeout)
        with open(self.path(worker, "out"), encoding="utf-8") as f:
            return json.load(f)

    def runs(self, worker: int) -> bool:
        return self.running[worker].poll() is None

    def log(self, worker: int) -> list[dict]:
        """What the worker has logged, an object for each round or step."""
        with open(self.path(worker, "log"), encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def stop(self) -> None:
        """Ends the workers after their present step.  Raises BenchError if a model is wrong, or one does not end well."""
        for p in self.running.values():
            p.terminate()
        for worker in list(self.running):
            if self.end(worker, 30)["wrong"]:
                raise BenchError(f"worker {worker} of {self.job} ended with a wrong model")

    def steps(self) -> int:
        """Steps that the running workers have made so far, all together."""
        n = 0
        for path in filter(os.path.exists, (self.path(worker, "log") for worker in self.running)):
            with open(path, "rb") as f:
                n += f.read().count(b"\n")
        return n

    def rate(self, seconds: float) -> float:
        """Steps a second of all workers together, measured for so many seconds."""
        before, begin = self.steps(), time.monotonic()
        time.sleep(seconds)
        return (self.steps() - before) / (time.monotonic() - begin)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in self.running.values():
            p.kill()
        for p in self.running.values():
            p.wait()
