# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes a run of a figure with real workers."""

import re
import statistics
import time

from lab import BenchError
from models import Outcome
from plan import Run
from workers import Jobs, Workers

ELEMENTS = 2048			# of the model that is reduced
SLOW = 10			# a run may take this many times its expected time
STRAGGLER = 5			# the worker that is delayed
WARM = 5			# iterations before the measurement, of runs in groups
SETTLED = 80			# iterations of the slowest worker without a change of groups: the controller needs 3 times 20
POLL_S = 0.02


def measure(jobs: Jobs, run: Run, folder: str) -> dict:
    """Makes a run.  Returns its result: outcome (times in units of the base), and what else is known."""
    jobs.add("figure", run.workers, run.policy, ELEMENTS)
    try:
        with Workers(jobs.lab, "figure", folder) as workers:
            return in_pool(jobs, run, workers) if run.groups >= 0 else with_draws(run, workers)
    finally:
        jobs.delete("figure")


def with_draws(run: Run, workers: Workers) -> dict:
    """Makes a run in which each worker makes a number of iterations with times of its own."""
    base_us = run.base_ms * 1000
    for w, own in enumerate(run.draws()):
        workers.begin_with(w, (x * base_us for x in own), "--steps", "--rounds", str(run.iterations), *(["--cancel"] if run.window < 0 else []))
    limit = 60 + SLOW * run.seconds()
    ended = [workers.end(w, limit) for w in range(run.workers)]
    if any(e["wrong"] or e["beyond_window"] for e in ended):
        raise BenchError("a model is wrong, or lacks more than its window allows")
    iteration, wait = (statistics.mean(us(e) / e["pushes"] for e in ended) / base_us
                       for us in (lambda e: e["time_us"], lambda e: e["time_us"] - e["think_us"]))
    return {"outcome": Outcome(iteration, wait), "workers": ended}


def in_pool(jobs: Jobs, run: Run, workers: Workers) -> dict:
    """Makes a run in which workers make iterations until all of them together have made those of the run."""
    for w in range(run.workers):
        us = run.base_ms * 1000 * (1 + (run.delay if w == STRAGGLER else 0))
        workers.begin(w, "--steps", "--rounds", "0", "--think-us", f"{us:.0f}")
    wait_for(workers, WARM * run.workers, time.monotonic() + 60 + SLOW * run.seconds())

    def finish() -> float:
        return finish_s(run, workers)

    settled = SETTLED * run.base_ms / 1000 * (1 + run.delay)
    policy, seconds = (run.policy, finish()) if run.groups else jobs.controlled("figure", settled, finish)
    workers.stop()
    return {"outcome": Outcome(seconds * 1000 / run.base_ms / run.iterations, 0), "policy": policy, "groups": groups_of(policy)}


def finish_s(run: Run, workers: Workers) -> float:
    """Seconds for the work of the run, starting when a worker has finished an iteration."""
    limit = time.monotonic() + 60 + SLOW * run.seconds()
    first = wait_for(workers, workers.steps() + 1, limit)
    begin = time.monotonic()
    last = wait_for(workers, first + run.iterations * run.workers, limit)
    # More iterations than wanted may have been finished by then.
    return (time.monotonic() - begin) * run.iterations * run.workers / (last - first)


def wait_for(workers: Workers, steps: int, limit: float) -> int:
    """Waits until all workers together have made so many steps.  Returns how many they have made."""
    while (now := workers.steps()) < steps:
        if time.monotonic() > limit:
            raise BenchError(f"the workers have made only {now} of {steps} iterations in more than {SLOW} times the expected time")
        for w in workers.running:
            if not workers.runs(w):
                workers.end(w, 1)
                raise BenchError(f"worker {w} of {workers.job} ended before the others")
        time.sleep(POLL_S)
    return now


def groups_of(policy: str) -> int | None:
    found = re.match(r"grouped:g=(\d+)", policy)
    return int(found.group(1)) if found else None
