# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""The ranks of a job: its workers, and where it is in a tree (jobs of several hosts with one root) those of all its jobs.

A result names the workers of the own job that are in it, and says of the others only how many they are.
"""

from typing import List

from .records import Call, Info


class Ranks:
    """rank: of this worker.  n: number of them all.  first: rank of the job's worker 0.  workers: of the job."""

    def __init__(self, info: Info):
        self.rank, self.n = info.rank, info.ranks
        self.first, self.workers = info.rank - info.worker, info.workers
        #: are there jobs of other hosts?
        self.tree = info.ranks != info.workers
        #: what names the job at all ranks: in a tree each host's has a number of its own
        self.job = "tree" if self.tree else str(info.job)

    def local(self, mask: int) -> List[int]:
        """The ranks of the own job's workers in @mask."""
        return [self.first + w for w in range(self.workers) if mask >> w & 1]

    def is_alive(self, rank: int, active: int) -> bool:
        """@active: of Info.  What is not known, of another host's rank, is False: a round with bsp, which is the only policy of trees,
        does without the dead only."""
        return 0 <= rank - self.first < self.workers and bool(active >> (rank - self.first) & 1)

    def all_in(self, call: Call) -> bool:
        """Are all ranks in all sums of @call?"""
        return call.count_min >= self.n if self.tree else call.mask_all == (1 << self.n) - 1
