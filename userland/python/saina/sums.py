# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Sums of tensors over all ranks of a job, one after the other, in the order in which they were started.

A sum is one round of the job, or several if it has more elements than a round.  A round begins with a header, in
which each rank has elements of its own, to which the others add 0, so that all ranks see what each of them is about
to reduce: ranks that reduce different tensors get an error instead of a wrong sum.

In a job of int32, float32 tensors that fit one segment are exact: each rank contributes their bits in elements of its
own, and all ranks add the values in the order of ranks.  Larger ones are scaled by blocks; see saina(7).
"""

import errno
import os
import struct
import threading
import time
import zlib
from typing import Any, Callable, List, Optional

import numpy
import torch

from ._lib import Error
from .worker import Call, Request, Worker, rank_list

#: Seconds between checks whether this process leaves, or a round takes too long.
_POLL_S = 0.2


class SumError(RuntimeError):
    """A sum failed, and with it all later ones of this job; a sentence."""


class Sum:
    """@tensor: contiguous, of float32 or int32, on the host: holds the sum when it is done.
    @finish: called then, before anybody who waits continues.
    @number: of this rank's all-reduces, from 1 on.  @kind: text with what else must be equal at all ranks."""

    def __init__(self, tensor: torch.Tensor, finish: Callable[[], Any], number: int, kind: str):
        self.tensor, self.finish = tensor.view(-1), finish
        self.error: Optional[BaseException] = None
        self._what = f"{number} {kind} {tensor.dtype} {tensor.numel()}".encode()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._then: List[Callable[[], Any]] = []

    def signature(self, round: int) -> int:
        """A checksum of what is reduced, 31 bits, not 0; @round: of this sum, from 0."""
        return zlib.crc32(struct.pack("<I", round), zlib.crc32(self._what)) & 0x7fffffff | 1

    def over(self) -> bool:
        return self._over.is_set()

    def end(self, error: Optional[BaseException] = None) -> None:
        if not error:
            try:
                self.finish()
            except Exception as e:
                error = e
        self.error = error
        with self._lock:
            self._over.set()
            then, self._then = self._then, []
        for call in then:
            call()

    def when_over(self, call: Callable[[], Any]) -> None:
        """Calls @call when it is over, perhaps in another thread, or now."""
        with self._lock:
            if not self._over.is_set():
                self._then.append(call)
                return
        call()

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits @timeout seconds, None: without limit.  False if it is not over by then; its error is raised."""
        if not self._over.wait(timeout):
            return False
        if self.error:
            raise self.error
        return True


class _Round:
    """A round of a sum: its header, and elements @part, in place.

    @small: the part has room in the header's all-reduce: int32 as it is, float32 as the bits of each rank.
    """

    def __init__(self, worker: Worker, rank: int, ranks: int, header: int, part: torch.Tensor, small: bool,
                 signature: int, type: Any):
        self.rank, self.ranks, self.signature = rank, ranks, signature
        self._part, self._small, self._header = part, small, header
        self._gather = small and part.dtype == torch.float32
        n = part.numel()
        self._elements = numpy.zeros(header * ranks + (n * ranks if self._gather else n if small else 0), type)
        own = numpy.frombuffer(struct.pack("<I", signature), numpy.uint8 if header > 1 else numpy.int32)
        self._elements[header * rank:header * (rank + 1)] = own
        if small and n:
            values = part.numpy().view(numpy.int32)
            at = header * ranks + (n * rank if self._gather else 0)
            self._elements[at:at + n] = values
        self._requests: List[Request] = [worker.start(self._elements, "sum")]
        if not small:
            self._requests.append(worker.start(part, "sum"))

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
        head = self._elements[:self._header * self.ranks]
        words = head.astype(numpy.uint8 if self._header > 1 else numpy.int32).view(numpy.int32).tolist()
        others = [r for r in range(self.ranks) if words[r] != self.signature]
        if others:
            if len(others) > self.ranks / 2:
                who = f"this rank ({self.rank}) reduces another tensor than the others"
            else:
                who = f"{rank_list(others)} reduce{'' if len(others) > 1 else 's'} another tensor than this rank ({self.rank})"
            raise SumError(f"{who}, or skipped an all-reduce: all ranks must call all_reduce for tensors of the same sizes "
                           "and types, with the same operations, in the same order")

    def _check_complete(self, call: Call) -> None:
        missing = [r for r in range(self.ranks) if not call.mask_all >> r & 1]
        if not missing:
            return
        if not call.mask_any:
            raise SumError("the job's policy has steps (ssp, asp, grouped): all_reduce is the sum of a round over all ranks, for "
                           "which the policy must wait (`saina job set JOB policy bsp')")
        who = rank_list(missing)
        if call.degraded_segments:
            raise SumError(f"{who} left the job, or died, or came after the policy's time-out: round {call.round} has no sum over all "
                           f"{self.ranks} ranks")
        raise SumError(f"round {call.round} was decided without {who}: all_reduce is the sum over all ranks, for which "
                       "the job's policy must wait (`saina job set JOB policy bsp').  For policies that do not wait use the "
                       "hook saina.torch.allreduce_hook")

    def _small_take(self) -> None:
        n = self._part.numel()
        values = self._elements[self._header * self.ranks:]
        if not self._gather:
            self._part.copy_(torch.from_numpy(values))
            return
        each = torch.from_numpy(values.view(numpy.float32)).view(self.ranks, n)
        # One after the other, and not by sum(): to the last bit the same on all processors.
        self._part.copy_(each[0])
        for r in range(1, self.ranks):
            self._part.add_(each[r])


class Sums:
    """@worker: of a job with as many workers as there are ranks.  @timeout: seconds that a round may take."""

    def __init__(self, worker: Worker, timeout: float):
        info = worker.info()
        if info.type == 4:
            raise Error(errno.EOPNOTSUPP, f"job {info.job} is of int16, and adds what it rounds off to the next tensor, which is right for "
                                          "gradients only (saina.torch.allreduce_hook): all_reduce needs a job of int32, float32 or bfloat16")
        self._worker, self._timeout, self._pid = worker, timeout, os.getpid()
        self.job, self.rank, self.ranks = info.job, info.worker, info.workers
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
        self.number = 0
        self._lock = threading.Condition()
        self._queue: List[Sum] = []
        self._round: Optional[_Round] = None    # of the first of them, if it has begun
        self._error: Optional[BaseException] = None
        self._closing = False
        self._thread: Optional[threading.Thread] = None
        if self._capacity <= 0:
            raise Error(errno.EMSGSIZE, f"job {info.job} has {info.elements} elements, which is too few for all-reduces of {self.ranks} ranks: "
                                        f"make a job with `elements {(whole + 1) * info.payload}' or more")

    def count(self) -> int:
        """The number of the next all-reduce; each rank must count the same ones."""
        self.number += 1
        return self.number

    def small(self, n: int) -> bool:
        """Is a sum of @n elements exact, also of float32?"""
        return self.integers and n <= self._small

    def start(self, s: Sum) -> None:
        with self._lock:
            error = self._error
            if not error:
                if not self._thread:
                    self._thread = threading.Thread(target=self._run, name="saina_sums", daemon=True)
                    self._thread.start()
                self._queue.append(s)
                if len(self._queue) == 1:
                    # Begun here, before the thread runs.  If it fails, the thread ends this sum with the error.
                    try:
                        self._round = self._new_round(s, 0)
                    except Exception as e:
                        self._failed(e)
                self._lock.notify_all()
        if error:
            s.end(error)

    def drain(self) -> None:
        """Waits for all that was started."""
        with self._lock:
            last = self._queue[-1] if self._queue else None
        if last:
            last.wait()

    def check_policy(self) -> None:
        """A round of all ranks; SumError, at all of them, if the job's policy does not wait for all."""
        try:
            call = self._new_round(Sum(torch.zeros(0), lambda: None, 0, "policy"), 0).wait(self._wait)
            self._worker.round_done()
            info = self._worker.info()
        except Error as e:
            raise SumError(f"the round that checks the job's policy failed: {e}.  all_reduce needs a policy that waits for all ranks (`saina job set "
                           f"{self.job} policy bsp')") from None
        if info.timeout_ms:
            rule = f"decides a round after {info.timeout_ms} ms without the ranks that are late"
        elif call.k < self.ranks or info.parts:
            rule = f"waits for {call.k} of {self.ranks} ranks"
        else:
            return
        raise SumError(f"the policy of job {self.job} {rule}, and all_reduce is the sum over all: set another one (`saina job set "
                       f"{self.job} policy bsp'), or use the hook saina.torch.allreduce_hook")

    def close(self) -> None:
        """Leaves the job.  What is not over fails."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            self._closing = True
            self._lock.notify_all()
        if self._thread and self._thread is not threading.current_thread():
            self._thread.join()
        self._worker.close()

    # --- the thread ---------------------------------------------------------------------------

    def _new_round(self, s: Sum, index: int) -> _Round:
        n = s.tensor.numel()
        part = s.tensor[index * self._capacity:(index + 1) * self._capacity]
        return _Round(self._worker, self.rank, self.ranks, self._header, part, not n or self.small(n), s.signature(index),
                      self._type)

    def _failed(self, e: BaseException) -> BaseException:
        self._error = e if isinstance(e, SumError) else SumError(f"all-reduce by saina: {e}")
        return self._error

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._closing and not self._error and not self._queue:
                    self._lock.wait()
                if self._closing and not self._error:
                    self._error = SumError("the process group was destroyed, or this rank leaves")
                if self._error:
                    queue, self._queue = self._queue, []
                    break
                s = self._queue[0]
            error = self._finish(s)
            if error:
                continue
            with self._lock:
                self._queue.pop(0)
            s.end()
        # Others must not wait for this rank.
        self._worker.close()
        for s in queue:
            if not s.over():
                s.end(self._error)

    def _finish(self, s: Sum) -> Optional[BaseException]:
        """All rounds of the first sum."""
        index = 0
        try:
            while True:
                with self._lock:
                    if not self._round:
                        self._round = self._new_round(s, index)
                    round = self._round
                round.wait(self._wait)
                self._worker.round_done()
                self._round = None
                index += 1
                if index * self._capacity >= s.tensor.numel():
                    return None
        except Exception as e:
            with self._lock:
                return self._failed(e)

    def _wait(self, request: Request) -> Call:
        since = time.monotonic()
        while not request.done(_POLL_S):
            if self._closing:
                raise SumError("the process group was destroyed, or this rank leaves")
            waited = time.monotonic() - since
            if waited >= self._timeout:
                raise SumError(f"round {self._worker.info().round} has waited {waited:.0f} s for other ranks, which is the time-out of the "
                               "process group (`saina job show' on the bridge's host names them)")
        return request.wait()
