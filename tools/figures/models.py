# SPDX-License-Identifier: GPL-2.0-or-later
"""What the published models predict: workers that only compute, and a switch that takes no time.

Written from the papers' descriptions, and from nothing of this project:

    barrier, k of N     a round ends with the k-th arrival; who is later gives up and follows (fastest-k,
                        backup workers; Lee et al. 2023, Xu et al. 2020)
    time-out            a round ends with the last arrival, or T after the first one
    window              Serene: a worker may begin iteration c + 1 when the slowest has finished c - W
    groups              Basu et al. 2018: a group waits for its own workers, groups do not wait for each other,
                        all take work from one pool

Times are in units of the base, the time that a worker computes if nothing delays it.  draws[w][i]: what
worker w computes in its iteration i.
"""

import functools
import random
from dataclasses import dataclass

Draws = list[list[float]]


@dataclass(frozen=True)
class Outcome:
    """Of a run, by the mean of all workers: time of an iteration, and the part of it that a worker waits."""

    iteration: float
    wait: float


def serene(rng: random.Random) -> float:
    """With p = 0.15 an iteration takes U(0.5, 2) longer."""
    return 1 + (rng.uniform(0.5, 2) if rng.random() < 0.15 else 0)


def exponential(rng: random.Random) -> float:
    return rng.expovariate(1)


PATTERNS = {"serene": serene, "exponential": exponential}


@functools.lru_cache(maxsize=4)
def draw(pattern: str, workers: int, iterations: int, seed: int) -> Draws:
    sources = [random.Random(f"{pattern} {seed} {w}") for w in range(workers)]
    return [[PATTERNS[pattern](rng) for _ in range(iterations)] for rng in sources]


def rounds(draws: Draws, k: int, timeout: float | None = None) -> Outcome:
    """All workers begin a round together.  Who computes when it ends gives up."""
    total = wait = 0.0
    for arrivals in map(sorted, zip(*draws)):
        end = arrivals[k - 1] if timeout is None else min(arrivals[-1], arrivals[0] + timeout)
        total += end
        wait += sum(end - a for a in arrivals if a < end) / len(arrivals)
    return Outcome(total / len(draws[0]), wait / len(draws[0]))


def finished(draws: Draws, k: int, timeout: float | None = None) -> float:
    """A round ends with the k-th arrival or, with a time-out, T after the first one, if the k-th is there by then.

    Who computes when it ends finishes its gradient, and goes on with the newest round.  Returns the mean time of a round."""
    free = [0.0] * len(draws)		# when each worker begins its next gradient
    end = 0.0
    for own in zip(*draws):
        done = [begin + d for begin, d in zip(free, own)]
        arrivals = sorted(done)
        end = arrivals[k - 1] if timeout is None else min(arrivals[-1], max(arrivals[0] + timeout, arrivals[k - 1]))
        free = [end if d <= end else begin if begin >= end else d for begin, d in zip(free, done)]
    return end / len(draws[0])


def window(draws: Draws, w: float) -> Outcome:
    """w: how many iterations the slowest may lack; infinity: nobody waits."""
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
    """One worker takes 1 + @delay; @workers * @iterations pieces of work are in the pool.

    Time is that until the pool is done, for each @iterations of it."""
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
    """Groups are doubled until a delayed worker costs at most a fifth."""
    g = 1
    while g < workers and 1 / (1 - delay / (1 + delay) / g) > 1.2:
        g *= 2
    return g
