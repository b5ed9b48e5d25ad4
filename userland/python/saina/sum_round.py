# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""A round of a sum over all ranks: what each rank reduces is compared first."""

import struct
from typing import Any, Callable, List

import numpy

from .agreement import SumError
from .ranks import Ranks
from .records import Call
from .worker import Request, Worker, rank_list


class Round:
    """A round of a sum: its header, and elements @part, in place.

    @small: the part has room in the header's all-reduce: int32 as it is, float32 as the bits of each rank.
    @mean: of float32, instead of the sum: nothing overflows.
    """

    def __init__(self, worker: Worker, who: Ranks, header: int, part: numpy.ndarray, small: bool,
                 mean: bool, signature: int, type: Any):
        rank, ranks = who.rank, who.n
        self._who, self.rank, self.ranks, self.signature = who, rank, ranks, signature
        self._part, self._small, self._mean, self._header = part, small, mean, header
        self._gather = small and part.dtype == numpy.float32
        n = part.size
        self._elements = numpy.zeros(header * ranks + (n * ranks if self._gather else n if small else 0), type)
        own = numpy.frombuffer(struct.pack("<I", signature), numpy.uint8 if header > 1 else numpy.int32)
        self._elements[header * rank:header * (rank + 1)] = own
        if small and n:
            at = header * ranks + (n * rank if self._gather else 0)
            self._elements[at:at + n] = part.view(numpy.int32)
        self._requests: List[Request] = [worker.start(self._elements, "sum")]
        if not small:
            self._requests.append(worker.start(part, "mean" if mean else "sum"))

    def wait(self, wait: Callable[[Request], Call]) -> Call:
        """The Call of the header.  SumError if it is not the sum over all ranks of what all are about to reduce."""
        first = wait(self._requests[0])
        self._check(first)
        for request in self._requests[1:]:
            self._check_complete(wait(request))
        if self._small:
            self._small_take()
        return first

    def _check(self, call: Call) -> None:
        self._check_complete(call)
        words = self._words()
        others = [r for r in range(self.ranks) if words[r] != self.signature]
        if others:
            if len(others) > self.ranks / 2:
                who = f"this rank ({self.rank}) reduces another tensor than the others"
            else:
                who = f"{rank_list(others)} reduce{'' if len(others) > 1 else 's'} another tensor than this rank ({self.rank})"
            raise SumError(f"{who}, or skipped an all-reduce: all ranks must call all_reduce for tensors of the same sizes "
                           "and types, with the same operations, in the same order")

    def _words(self) -> List[int]:
        """The signatures of all ranks, 0 of those that are not in the sum."""
        head = self._elements[:self._header * self.ranks]
        return head.astype(numpy.uint8 if self._header > 1 else numpy.int32).view(numpy.int32).tolist()

    def _check_complete(self, call: Call) -> None:
        if self._who.all_in(call):
            return
        if self._who.tree:
            missing = [r for r, word in enumerate(self._words()) if not word]
        else:
            missing = [r for r in range(self.ranks) if not call.mask_all >> r & 1]
        if not call.mask_any and not self._who.tree:
            raise SumError("the job's policy has steps (ssp, asp, grouped): all_reduce is the sum of a round over all ranks, for "
                           "which the policy must wait (`saina job set JOB policy bsp')")
        who = rank_list(missing) if missing else "some ranks"
        if call.degraded_segments:
            raise SumError(f"{who} left the job, or died, or came after the policy's time-out: round {call.round} has no sum over all "
                           f"{self.ranks} ranks")
        raise SumError(f"round {call.round} was decided without {who}: all_reduce is the sum over all ranks, for which "
                       "the job's policy must wait (`saina job set JOB policy bsp').  For policies that do not wait use the "
                       "hook saina.torch.allreduce_hook")

    def _small_take(self) -> None:
        n = self._part.size
        values = self._elements[self._header * self.ranks:]
        if not self._gather:
            self._part[:] = values
            return
        each = values.view(numpy.float32).reshape(self.ranks, n)
        # One after the other, and not by sum(): to the last bit the same on all processors.
        with numpy.errstate(all="ignore"):
            total = each[0].astype(numpy.float64 if self._mean else numpy.float32)
            for r in range(1, self.ranks):
                total += each[r]
            self._part[:] = total / self.ranks if self._mean else total
