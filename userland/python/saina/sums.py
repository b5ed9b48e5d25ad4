# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Sums of tensors over all ranks of a job, one after the other, in the order of the process group's calls.

A sum is one round of the job, or several if it has more elements than a round.  A round begins with a header, in
which each rank has elements of its own, to which the others add 0, so that all ranks see what each of them is about
to reduce: ranks that reduce different tensors get an error instead of a wrong sum.

In a job of int32, float32 tensors that fit one segment are exact: each rank contributes their bits in elements of its
own, and all ranks add the values in the order of ranks.  Larger ones are scaled by blocks; see saina(7).
"""

import errno
import struct
import threading
import time
import zlib
from typing import Any, Callable, Optional

import numpy

from ._lib import Error
from .agreement import SumError
from .order import Item, Order
from .ranks import Ranks
from .records import Call
from .sum_round import Round
from .worker import Request, Worker

#: Seconds between checks whether this process leaves, or a round takes too long.
_POLL_S = 0.2


class Sum(Item):
    """@values: contiguous, of float32 or int32: holds the sum, or @mean, when it is done.
    @finish: called then, before anybody who waits continues.
    @what: text; what must be equal at all ranks, as must its number."""

    def __init__(self, sums: "Sums", values: numpy.ndarray, mean: bool, finish: Callable[[], Any], what: str,
                 **how: Any):
        super().__init__(**how)
        self.values, self.mean = values, mean
        self._sums, self._finish = sums, finish
        self._error: Optional[BaseException] = None
        self._what = what
        self._over = threading.Event()

    def signature(self, round: int) -> int:
        """A checksum of what is reduced, 31 bits, not 0; @round: of this sum, from 0."""
        return zlib.crc32(struct.pack("<I", round), zlib.crc32(f"{self.number} {self._what}".encode())) & 0x7fffffff | 1

    def begin(self) -> None:
        self._sums.begin(self)

    def run(self) -> None:
        self._error = self._sums.run(self)
        if not self._error:
            try:
                self._finish()
            except Exception as e:
                self._error = e

    def end(self) -> None:
        self._over.set()

    def over(self) -> bool:
        return self._over.is_set()

    def error(self) -> Optional[BaseException]:
        return self._error if self._over.is_set() else None

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits @timeout seconds, None: without limit.  False if it is not over by then; its error is raised."""
        if not self._over.wait(timeout):
            return False
        if self._error:
            raise self._error
        return True


class Sums:
    """@worker: of a job with as many workers as there are ranks.  @timeout: seconds that a round may take."""

    def __init__(self, worker: Worker, timeout: float):
        info = worker.info()
        if info.type == 4:
            raise Error(errno.EOPNOTSUPP, f"job {info.job} is of int16, and adds what it rounds off to the next tensor, which is right for "
                                          "gradients only (saina.torch.allreduce_hook): all_reduce needs a job of int32, float32 or bfloat16")
        self._worker, self._timeout = worker, timeout
        self._who = Ranks(info)
        self.job, self.rank, self.ranks = info.job, info.rank, info.ranks
        self.payload = info.payload
        #: only jobs of int32 have it; in those of floats tensors are float32
        self.integers = info.type == 1
        #: one byte an element is exact in jobs of any type
        self._header = 1 if self.integers else 4
        self._type = numpy.int32 if self.integers else numpy.float32
        whole = -(-self._header * self.ranks // info.payload)
        #: elements of a round, without its header
        self._capacity = (info.segments - whole) * info.payload
        #: elements of the largest exact float32 tensor: the bits of all ranks fit a round
        self._small = min(info.payload, info.elements // self.ranks - self._header)
        self.order = Order()
        #: says why a sum has failed, if the sum itself does not know better
        self.verdict: Callable[[], Optional[BaseException]] = lambda: None
        self._round: Optional[Round] = None     # of the sum that is first in the order, if it has begun
        self._error: Optional[BaseException] = None
        self._stopped: Optional[BaseException] = None
        self._failed = False
        if self._capacity <= 0:
            raise Error(errno.EMSGSIZE, f"job {info.job} has {info.elements} elements, which is too few for all-reduces of {self.ranks} ranks: "
                                        f"make a job with `elements {(whole + 1) * info.payload}' or more")

    def small(self, n: int) -> bool:
        """Is a sum of @n elements exact, also of float32?"""
        return self.integers and n <= self._small

    def stop(self, error: BaseException) -> None:
        """The sum that runs fails with @error, and all later ones."""
        self._stopped = self._stopped or error

    def check_policy(self) -> None:
        """A round of all ranks; SumError, at all of them, if the job's policy does not wait for all."""
        try:
            call = self._new_round(Sum(self, numpy.zeros(0, numpy.float32), False, lambda: None, "policy"), 0).wait(self._wait)
            self._worker.round_done()
            info = self._worker.info()
        except Error as e:
            raise SumError(f"the round that checks the job's policy failed: {e}.  all_reduce needs a policy that waits for all ranks (`saina job set "
                           f"{self.job} policy bsp')") from None
        if info.timeout_ms:
            rule = f"decides a round after {info.timeout_ms} ms without the ranks that are late"
        elif call.k < self._who.workers or info.parts:
            rule = f"waits for {call.k} of {self._who.workers} ranks"
        else:
            return
        raise SumError(f"the policy of job {self.job} {rule}, and all_reduce is the sum over all: set another one (`saina job set "
                       f"{self.job} policy bsp'), or use the hook saina.torch.allreduce_hook")

    def close(self) -> None:
        """Leaves the job.  What is not over fails."""
        self.stop(SumError("the process group was destroyed, or this rank leaves"))
        self.order.close()
        self._worker.close()

    # --- in the thread of the order -----------------------------------------------------------

    def begin(self, s: Sum) -> None:
        """Starts the first round of @s; also in another thread, if no sum runs.  An error is kept for run()."""
        if not self._error and not self._stopped:
            try:
                self._round = self._new_round(s, 0)
            except Exception as e:
                self._error = e

    def run(self, s: Sum) -> Optional[BaseException]:
        """All rounds of @s; returns an error."""
        index = 0
        try:
            while not self._error:
                if self._stopped:
                    raise self._stopped
                if not self._round:
                    self._round = self._new_round(s, index)
                self._round.wait(self._wait)
                self._worker.round_done()
                self._round = None
                index += 1
                if index * self._capacity >= s.values.size:
                    return None
        except Exception as e:
            self._error = e
        self._fail()
        return self._error

    def _new_round(self, s: Sum, index: int) -> Round:
        n = s.values.size
        part = s.values[index * self._capacity:(index + 1) * self._capacity]
        return Round(self._worker, self._who, self._header, part, not n or self.small(n), s.mean, s.signature(index),
                     self._type)

    def _fail(self) -> None:
        """All sums fail: others must not wait for this rank."""
        if not self._failed:
            self._failed = True
            e = self._stopped or self.verdict() or self._error
            self._error = e if isinstance(e, SumError) else SumError(f"all-reduce by saina: {e}")
            self._worker.close()

    def _wait(self, request: Request) -> Call:
        since = time.monotonic()
        while not request.done(_POLL_S):
            if self._stopped:
                raise self._stopped
            waited = time.monotonic() - since
            if waited >= self._timeout:
                raise SumError(f"round {self._worker.info().round} has waited {waited:.0f} s for other ranks, which is the time-out of the "
                               "process group (`saina job show' on the bridge's host names them)")
        return request.wait()
