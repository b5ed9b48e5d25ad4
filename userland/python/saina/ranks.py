# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""The ranks of a job: its workers, and where it is in a tree (jobs of several hosts with one root) those of all its jobs.

A result names the workers of the own job that are in it, and says of the others only how many they are.
"""

from typing import List

from .records import Call, Info


class Ranks:
    """rank: of this worker.  n: number of them all.  workers: of the job."""

    def __init__(self, info: Info):
        self.rank, self.n, self.workers = info.rank, info.ranks, info.workers
        #: are there jobs of other hosts?
        self.tree = info.ranks != info.workers
        #: what names the job at all ranks: in a tree each host's has a number of its own
        self.job = "tree" if self.tree else str(info.job)
        # Of a root's workers some are whole hosts: its masks say something about this one only.
        own = range(info.workers) if info.depth or not self.tree else [info.worker]
        self._worker = {info.rank - info.worker + w: w for w in own}

    def local(self, mask: int) -> List[int]:
        """The ranks of the own job's workers in @mask."""
        return [rank for rank, w in self._worker.items() if mask >> w & 1]

    def is_alive(self, rank: int, active: int) -> bool:
        """@active: of Info.  What is not known, of another host's rank, is False: a round with bsp, which is the only policy of trees,
        does without the dead only."""
        return rank in self._worker and bool(active >> self._worker[rank] & 1)

    def all_in(self, call: Call) -> bool:
        """Are all ranks in all sums of @call?"""
        return call.count_min >= self.n if self.tree else call.mask_all == (1 << self.n) - 1
