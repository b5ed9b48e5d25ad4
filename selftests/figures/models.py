# SPDX-License-Identifier: GPL-2.0-or-later
"""What the published models predict: workers that only compute, and a switch that takes no time.

Written from the papers' descriptions; nothing of SAINA's code is used:

    barrier, k of N     a round ends with the k-th arrival; later workers give up and follow (fastest-k,
                        backup workers; Lee et al. 2023, Xu et al. 2020)
    time-out            a round ends with the last arrival, or T after the first one
    window              Serene: a worker may begin iteration c + 1 when the slowest has finished c - W
    groups              Basu et al. 2018: a group waits for its own workers, groups do not wait for each other,
                        all take work from one pool

Times are in units of the base, the time that a worker computes if nothing delays it.  draws[w][i]: the
time that worker w computes in its iteration i.
"""

import functools
import random
from dataclasses import dataclass

Draws = list[list[float]]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run, means of all workers: time of an iteration, and the part of it that a worker waits."""

    iteration: float
    wait: float


def serene(rng: random.Random) -> float:
    """The time of an iteration with Serene's stalls: with p = 0.15 it takes U(0.5, 2) longer."""
    return 1 + (rng.uniform(0.5, 2) if rng.random() < 0.15 else 0)


def exponential(rng: random.Random) -> float:
    return rng.expovariate(1)


PATTERNS = {"serene": serene, "exponential": exponential}


@functools.lru_cache(maxsize=4)
def draw(pattern: str, workers: int, iterations: int, seed: int) -> Draws:
    """Draws the times of all iterations; the same for the same arguments."""
    sources = [random.Random(f"{pattern} {seed} {w}") for w in range(workers)]
    return [[PATTERNS[pattern](rng) for _ in range(iterations)] for rng in sources]


def rounds(draws: Draws, k: int, timeout: float | None = None) -> Outcome:
    """Rounds that all workers begin together.  A worker that still computes when the round ends gives up.

    k: the number of arrivals that end a round; with a time-out, it has no effect"""
    total = wait = 0.0
    for arrivals in map(sorted, zip(*draws)):
        end = arrivals[k - 1] if timeout is None else min(arrivals[-1], arrivals[0] + timeout)
        total += end
        wait += sum(end - a for a in arrivals if a < end) / len(arrivals)
    return Outcome(total / len(draws[0]), wait / len(draws[0]))


def finished(draws: Draws, k: int, timeout: float | None = None) -> float:
    """A round ends with the k-th arrival; with a time-out, that long after the first one, but not before the k-th.

    A worker that still computes when the round ends finishes its gradient, and goes on with the newest round.  Returns
    the mean time of a round."""
    free = [0.0] * len(draws)		# when each worker begins its next gradient
    end = 0.0
    for own in zip(*draws):
        done = [begin + d for begin, d in zip(free, own)]
        arrivals = sorted(done)
        end = arrivals[k - 1] if timeout is None else min(arrivals[-1], max(arrivals[0] + timeout, arrivals[k - 1]))
        free = [end if d <= end else begin if begin >= end else d for begin, d in zip(free, done)]
    return end / len(draws[0])


def window(draws: Draws, w: float) -> Outcome:
    """A window; w: how many iterations the slowest worker may be behind; infinity: no worker waits."""
    iterations = len(draws[0])
    free = [0.0] * len(draws)		# when each worker begins its next iteration
    finished: list[float] = []		# when all had finished iteration i
    for i in range(iterations):
        ends = [begin + own[i] for begin, own in zip(free, draws)]
        finished.append(max(ends))
        free = [max(end, finished[int(i - w)]) if i >= w else end for end in ends]
    total = sum(free) / len(draws)
    return Outcome(total / iterations, (total - sum(map(sum, draws)) / len(draws)) / iterations)


def groups(workers: int, g: int, delay: float, iterations: int) -> Outcome:
    """@g groups take work from a pool of @workers * @iterations pieces; one worker takes 1 + @delay for a piece.

    The time of an iteration is the time until the pool is empty, divided by @iterations."""
    size = workers // g
    work = workers * iterations
    ends = [1 + delay] + [1.0] * (g - 1)
    time = 0.0
    while work > 0:
        i = min(range(g), key=ends.__getitem__)
        time, work = ends[i], work - size
        ends[i] += 1 + delay if i == 0 else 1
    return Outcome(time / iterations, 0)


def progressive(workers: int, delay: float) -> int:
    """The number of groups: doubled until a delayed worker makes training at most 1.2 times as long."""
    g = 1
    while g < workers and 1 / (1 - delay / (1 + delay) / g) > 1.2:
        g *= 2
    return g
