# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks before anything starts whether the machine has room for so many workers."""

import os

from lab import BenchError

WORKERS_MOST = 64		# of a job
STEP_US = 400			# processor time of an iteration of a worker, with its part of the switch's
SHARE = 0.5			# largest share of the processors to use, so that no worker waits long for one
WORKER_MIB = 12


def memory_mib() -> float:
    with open("/proc/meminfo", encoding="ascii") as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith("MemAvailable"))


def check(workers: int, base_ms: float, cpus: int, mib: float, labs: int = 1, worker_mib: int = WORKER_MIB) -> None:
    """Raises BenchError if @labs labs of so many workers each do not fit.

    base_ms: time of an iteration; mib, worker_mib: memory that is free, and that a worker needs, MiB"""
    by_cpu = int(base_ms * 1000 * cpus * SHARE / STEP_US / labs)
    by_memory = int(mib / worker_mib / labs)
    fits = min(by_cpu, by_memory, WORKERS_MOST)
    if workers <= fits:
        return
    if workers > WORKERS_MOST:
        why = f"a job has at most {WORKERS_MOST} workers"
    elif workers > by_memory:
        why = f"{mib:.0f} MiB of memory are free, and a worker needs {worker_mib} MiB"
    else:
        why = (f"they would keep more than half of {cpus} processors busy: computation is emulated by sleeping {base_ms:g} ms, "
               f"the rest of an iteration is not")
    advice = [f"up to {fits} workers"] if fits >= 2 else []
    if by_cpu < workers <= min(by_memory, WORKERS_MOST):
        advice.append(f"--base {-(-workers * labs * STEP_US // (1000 * cpus * SHARE)):.0f}")
    if labs > 1 and workers <= min(fits * labs, WORKERS_MOST):
        advice.append(f"--at-once {fits * labs // workers}")
    who = f"{labs} labs of {workers} workers" if labs > 1 else f"{workers} workers"
    raise BenchError(f"{who} are too many for this machine: {why}; what fits: {' or '.join(advice) or 'nothing'}")


def check_here(workers: int, base_ms: float, labs: int = 1, worker_mib: int = WORKER_MIB) -> None:
    check(workers, base_ms, os.cpu_count() or 1, memory_mib(), labs, worker_mib)
