# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""The preamble of a round: its first elements, by which the ranks exchange what they are about to reduce.

Each worker has elements of its own, to which the others add 0, so that the sum has the values of all: the signature
of the buckets, and how long it waited in the previous round.  One byte an element: exact in jobs of any type.

    elements of worker w:  signature of the layout (4 bytes), microseconds waited + 1 (4 bytes; 0: not known)
"""

import errno
import struct
import zlib
from typing import List, NamedTuple, Sequence

import numpy

from ._lib import Error
from .worker import Call, Request, Worker

_PER_WORKER = 8


class Straggler(NamedTuple):
    """Lateness of one rank, since the job was joined."""
    rank: int
    #: behind the first rank of the round, on average; milliseconds
    late_ms: float
    #: the maximum of all rounds
    worst_ms: float
    #: rounds in which it came last of all
    last: int
    #: rounds that were decided without it
    missed: int
    #: rounds that these figures are of
    rounds: int
    #: the last round it was counted in; -1: none
    seen: int


class Preamble:
    """numel: its elements, in whole segments."""

    def __init__(self, worker: Worker):
        info = worker.info()
        self._worker = worker
        self._me = info.worker
        self._workers = info.workers
        self._type = numpy.int32 if info.type == 1 else numpy.float32
        self._n = _PER_WORKER * info.workers
        self.numel = -(-self._n // info.payload) * info.payload
        self._signature = 0
        self._wait_us = 0
        self._elements = numpy.zeros(self._n, self._type)
        self._mine = self._elements[_PER_WORKER * self._me:_PER_WORKER * (self._me + 1)]
        self._has_residual = True           # possibly, of a round that it missed
        self._late_us = [0] * info.workers
        self._worst_us = [0] * info.workers
        self._last = [0] * info.workers
        self._missed = [0] * info.workers
        self._rounds = [0] * info.workers
        #: the last round that each rank was counted in, -1: none; the first round
        self.seen = [-1] * info.workers
        self.first = info.round
        #: of the previous round's preamble: equal at all ranks, and different in each round
        self.digest = 0

    def start(self, signature: int) -> Request:
        """Starts the preamble's all-reduce; @signature: of what this rank is about to reduce."""
        self._elements.fill(0)
        self._mine[:] = list(struct.pack("<II", signature, min(self._wait_us, 2**32 - 1)))
        if self._has_residual:
            # libsaina adds the residual: subtract it before.
            self._elements -= self._worker.residual(0, self._n, self._type)
        self._signature = signature
        return self._worker.start(self._elements, "sum")

    def check(self, call: Call) -> List[int]:
        """@call: of start()'s request.  Returns the ranks that were counted; Error (EPROTO) if their signatures
        differ."""
        words = struct.unpack(f"<{2 * self._workers}I", self._elements.astype(numpy.uint8).tobytes())
        counted = [w for w in range(self._workers) if call.mask_all >> w & 1]
        others = [w for w in counted if words[2 * w] != self._signature]
        if others:
            self._raise_mismatch(counted, others)
        self._has_residual = self._me not in counted
        self._lateness_add(counted, words[1::2])
        for w in counted:
            self.seen[w] = call.round
        self.digest = zlib.crc32(self._elements.tobytes())
        return counted

    def _raise_mismatch(self, counted: List[int], others: List[int]) -> None:
        if len(others) > len(counted) / 2:
            who = f"this rank ({self._me})"
        else:
            who = "rank " + ", ".join(map(str, others))
        raise Error(errno.EPROTO, f"{who} is about to reduce other buckets than the others: the models differ, or "
                                  "the buckets' sizes or order (bucket_cap_mb and all options of "
                                  "DistributedDataParallel must be the same)")

    def waited(self, call: Call) -> None:
        """@call: this rank's last all-reduce of the round."""
        self._wait_us = 0 if call.late_segments else call.time_us + 1

    def _lateness_add(self, counted: List[int], waited: Sequence[int]) -> None:
        """Adds the lateness in the previous round: the rank that waited least came last.  Missed rounds include this one."""
        for w in range(self._workers):
            if w not in counted:
                self._missed[w] += 1
        known = [w for w in counted if waited[w]]
        if len(known) < 2:
            return
        most = max(waited[w] for w in known)
        late = {w: most - waited[w] for w in known}
        for w, us in late.items():
            self._late_us[w] += us
            self._worst_us[w] = max(self._worst_us[w], us)
            self._rounds[w] += 1
        self._last[max(late, key=lambda w: late[w])] += 1

    def stragglers(self) -> List[Straggler]:
        """All ranks; first those that missed rounds, then by lateness."""
        found = [Straggler(w, self._late_us[w] / max(self._rounds[w], 1) / 1000, self._worst_us[w] / 1000,
                           self._last[w], self._missed[w], self._rounds[w], self.seen[w])
                 for w in range(self._workers)]
        return sorted(found, key=lambda s: (-s.missed, -s.late_ms))
