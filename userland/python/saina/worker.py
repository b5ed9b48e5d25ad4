# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""A worker of a job: one handle of libsaina."""

import errno
import operator
import os
import queue
import threading
import time
import warnings
import weakref
from typing import Any, Callable, Iterable, List, Optional, Tuple, Union

import numpy

from ._buffer import buffer, content
from ._lib import Error, ffi, lib, text
from .records import Call, Info, Segment, Stats, sized, values

_REQUEST = ffi.typeof("struct saina_req **")
_OPS = {"sum": lib.SAINA_SUM, "mean": lib.SAINA_MEAN, "once": lib.SAINA_SUM_ONCE}

#: Milliseconds between checks for a signal (Ctrl-C) while a thread waits.
_POLL_MS = 200

#: Seconds until a join that was cancelled has left the job; mostly libsaina takes less than 1.
_CANCEL_S = 3


class Request:
    """An all-reduce in flight (Worker.start()).  The library uses the array until wait() returns."""

    def __init__(self, worker: "Worker", pointer: Any, memory: Any, base: Any):
        self._worker = worker
        self._pointer = pointer
        self._memory = memory
        self._base = base
        self._call: Optional[Call] = None

    def done(self, timeout: float = 0) -> bool:
        """Is the result there, within @timeout seconds?"""
        return self._call is not None or self._worker._poll(self, int(timeout * 1000))

    def wait(self) -> Call:
        """Waits until the result is in the array.  Raises Error; see Worker.start()."""
        if self._call is None:
            self._call = self._worker._wait(self)
        return self._call


class Worker:
    """A worker of a job, from join().  Close it, or use it in a ``with`` statement.

    Calls of several threads are serialized.  No call holds the GIL while it waits, and Ctrl-C interrupts it.  In a
    forked child every call but close() raises Error (ECHILD).
    """

    def __init__(self, handle: Any, keep: Any):
        self._handle = handle
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._requests: set = set()     # the library may write to their arrays
        self._saturated = False         # that values did not fit has been said
        #: coded_part has been read
        self.part_known = False
        # Also when the interpreter exits.  @keep: callbacks of the library's thread.
        self._close = weakref.finalize(self, _close, handle, keep)

    # --- how calls begin and end ----------------------------------------------------------

    def _check(self, ret: int) -> int:
        if ret < 0:
            raise Error(ret, _in_python(text(lib.saina_strerror(self._handle, ret))))
        return ret

    def _enter(self) -> threading.RLock:
        if os.getpid() != self._pid:
            # Before taking the lock, which a thread of the parent may have held.
            raise Error(errno.ECHILD, f"this worker belongs to process {self._pid}: a forked child can only "
                                      "close() it, and must join() itself")
        if not self._close.alive:
            raise Error(errno.EBADF, "this worker is closed")
        return self._lock

    def _poll(self, request: Request, timeout_ms: int) -> bool:
        with self._enter():
            return self._check(lib.saina_poll(self._handle, request._pointer, timeout_ms)) > 0

    def _wait(self, request: Request) -> Call:
        # The lock is released in between: another thread may start an all-reduce.
        while not self._poll(request, _POLL_MS):
            pass
        with self._enter():
            c = sized("saina_call")
            try:
                self._check(lib.saina_wait(self._handle, request._pointer, c))
            finally:
                self._requests.discard(request)
        if request._memory.finish:
            request._memory.finish()
        call = values(Call, c)
        # In rounds only what is late can be dropped.
        if call.saturated and not call.late_segments and not self._saturated:
            self._saturated = True
            warnings.warn(f"saina: {call.saturated} elements of round {call.round} did not fit the exponent that the parameter server "
                          "(policies ssp, asp, grouped) has for their block: the rest is sent with the next updates; "
                          "Call.saturated counts such elements", stacklevel=3)
        return call

    # --- the job ----------------------------------------------------------------------------

    def close(self) -> None:
        """Leaves the job: the others no longer wait for this worker.  A second call does nothing."""
        if os.getpid() != self._pid:
            self._close()
            return
        with self._lock:
            self._close()
            self._requests.clear()

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def info(self) -> Info:
        """The job as this worker sees it."""
        with self._enter():
            c = sized("saina_job_info")
            self._check(lib.saina_info(self._handle, c))
            return values(Info, c)._replace(reason=ffi.string(c.reason).decode(errors="replace"))

    @property
    def coded_part(self) -> Tuple[int, int]:
        """The part of the next round's data that this worker is to compute, as (part, parts).  With policy coded, as
        last heard, all workers of a part compute the same and one of them is counted; with other policies each
        worker has its own part, (worker, workers)."""
        info = self.info()
        self.part_known = True
        return (info.part, info.parts) if info.parts else (info.worker, info.workers)

    def stats(self) -> Stats:
        """Counters since join()."""
        with self._enter():
            c = sized("saina_stats")
            self._check(lib.saina_get_stats(self._handle, c))
            return values(Stats, c)

    def segment(self, segment: int) -> Segment:
        """The contributors of @segment of the last result; Error (ENODATA): no result yet."""
        with self._enter():
            c = sized("saina_segment")
            self._check(lib.saina_segment(self._handle, segment, c))
            return values(Segment, c)

    def decided(self) -> bool:
        """Is the round that this worker would contribute to already decided?  Then its gradient is too late, and an
        all-reduce returns at once."""
        with self._enter():
            return bool(self._check(lib.saina_decided(self._handle)))

    @property
    def behind(self) -> int:
        """Decided rounds that this worker has not had yet: as many calls return at once."""
        info = self.info()
        return max(info.next_round - 1 - info.round, 0) or int(self.decided())

    def set_round(self, round: int) -> None:
        """Sets the round: this worker's model, copied from a peer, includes all rounds below @round."""
        with self._enter():
            self._check(lib.saina_set_round(self._handle, round))

    # --- all-reduce -------------------------------------------------------------------------

    def start(self, x: Any, op: Optional[str] = None, base: Any = None) -> Request:
        """Begin an all-reduce of @x, in place, as part of the present round.

        @x: numpy array or torch tensor of int32 or float32, contiguous.  A tensor of another
            device is copied to pinned memory of the host, and back by wait() (untested: no GPU).
        @op: "sum", or "mean" over the workers that were counted (float32 only); None: mean of float32, sum of int32.  "once": sum of int32
            apart from residuals: none is added, changed or kept.
        @base: float32, as large as @x: the part of @x that earlier results have already; if this worker is not counted, only
            the rest becomes its residual.  None: nothing.

        All workers must start the same sizes in the same order, wait for all, and call round_done().  Otherwise wait()
        raises Error with the round and the sizes (EPROTO, after 10 s or twice the job's ``dead`` time; ESTALE if the
        others are in the next round already).  Different sizes that fill the same number of segments of
        info().payload elements go unnoticed, and their sums are wrong: agree() finds them.
        Raises TypeError or ValueError for arrays that cannot be reduced, and Error.
        """
        b = buffer(x)
        if op is None:
            op = "sum" if b.type == lib.SAINA_INT32 else "mean"
        have = buffer(base) if base is not None else None
        if have and (have.n != b.n or have.type != lib.SAINA_FLOAT32):
            raise ValueError(f"base has {have.n} elements: it is float32, and has as many as what is reduced ({b.n})")
        if op not in _OPS:
            raise ValueError(f'op is "{op}": allowed are "sum", "mean" and "once"')
        with self._enter():
            r = ffi.new(_REQUEST)
            self._check(lib.saina_allreduce_start_from(
                self._handle, b.pointer, ffi.cast("float *", have.pointer) if have else ffi.NULL, b.n, b.type, _OPS[op], r))
            request = Request(self, r[0], b, have)
            self._requests.add(request)
        return request

    def drain(self, requests: Iterable[Optional[Request]]) -> None:
        """Waits for those of @requests that wait() has not ended, whatever becomes of them: after Error (ESTALE), so that
        set_round() finds none in flight."""
        for request in requests:
            if request in self._requests:
                try:
                    request.wait()
                except Error:
                    pass

    def round_done(self) -> None:
        """Closes the round, after wait() for everything that was started."""
        with self._enter():
            self._check(lib.saina_round_done(self._handle))

    def allreduce(self, x: Any, op: Optional[str] = None) -> Call:
        """Sum or average @x over the workers, in place: one round.  See start().

        The error of float32 is at most 1e-6 of the largest contribution to its block of info().payload elements; in a job of
        int16 6 / (32767 / workers - 1) of it, and what is rounded off is in the next rounds.  If a
        worker has a NaN or Inf in a block, all workers get NaN for that block.
        """
        with self._enter():
            if self._requests:
                raise Error(errno.EBUSY, "the round is open: wait for what was started and close "
                                         "it with round_done() first")
            call = self.start(x, op).wait()
            self.round_done()
        return call

    def broadcast(self, x: Any, root: int = 0) -> None:
        """Copies @x of worker @root (in a tree: of that rank) to all workers, exactly; all workers call it, between rounds.

        @x: numpy array or torch tensor of any type.

        It all-reduces int32, to which the others contribute zeros, until the policy has counted @root in every
        segment.  Residuals stay as they are.  Not possible in jobs of float32, bfloat16 and int16, and with policies that
        have steps (ssp, asp, grouped).
        Raises TypeError or ValueError for what has no bytes to copy, and Error; ECONNABORTED, at all workers in the same
        round, if @root is not in the job; ESTALE at a worker that came so late (lead=none) that results are gone: it copies
        the values from another one by itself, and set_round() to its round.
        """
        data, put = content(x)
        words = numpy.frombuffer(data + bytes(-len(data) % 4), numpy.int32).copy()
        info = self.info()
        root = operator.index(root)
        if not 0 <= root < info.ranks:
            raise Error(errno.ECONNABORTED, f"broadcast() from worker {root}: the job has workers 0 to {info.ranks - 1}")
        if info.type != lib.SAINA_INT32:
            raise Error(errno.EINVAL, f"broadcast() needs a job of type int32, and job {info.job} is of another type: use the broadcast "
                                      "of MPI or of the process group")
        most = info.segments * info.payload - 1
        with self._enter():
            for at in range(0, len(words), most):
                words[at:at + most] = self._broadcast(words[at:at + most], root)
        put(words.tobytes()[:len(data)])

    def _broadcast(self, value: numpy.ndarray, root: int) -> numpy.ndarray:
        info = self.info()
        mine, tree = info.rank == root, info.ranks != info.workers
        have = numpy.zeros(len(value) + 1, numpy.int32)
        missing = numpy.ones(-(-len(have) // info.payload), bool)
        gone = False
        pause = 0.001
        while True:
            # The first element counts workers that do not see the root: in the result it is the same at all, so that
            # they end in the same round.
            part = numpy.zeros_like(have)
            part[0] = gone
            if mine:
                part[1:] = value
            try:
                call = self.allreduce(part, "once")
                masks = numpy.array([self.segment(s).mask for s in range(call.segments)], numpy.uint64)
            except Error as e:
                if e.errno == errno.ENODATA:
                    raise Error(errno.EINVAL, "the policy has steps (ssp, asp, grouped), and broadcast() needs rounds (`saina job set JOB "
                                              "policy bsp')") from e
                if e.errno != errno.ESTALE:
                    raise
                if not mine:
                    raise Error(errno.ESTALE, f"this worker ({info.worker}) came too late for the broadcast of worker {root}: its results are "
                                              "gone.  Copy the values from a worker that has them and set_round() to its round, or join "
                                              "again with all workers; under a policy with a lead (`lead=N' instead of `lead=none') the "
                                              "others wait") from e
                # The others waited so long that results were dropped, which only they need.
                self.set_round(max(self.info().next_round, self.info().round))
                continue
            if tree and call.count_min < info.ranks:
                raise Error(errno.ECONNABORTED, f"a broadcast over several hosts needs all {info.ranks} ranks, and some are dead or have left")
            found = missing if tree else missing & (masks >> numpy.uint64(root) & numpy.uint64(1)).astype(bool)
            at = numpy.repeat(found, info.payload)[:len(have)]
            have[at] = part[at]
            missing &= ~found
            if not missing.any():
                return have[1:]
            # The root was not counted: it is late, or not in the job.
            if part[0]:
                raise Error(errno.ECONNABORTED, f"worker {root}, the root of this broadcast, is not in the job")
            gone = not mine and not self.info().active >> root & 1 and not self.behind
            # The others pause, so that the root is first in the next round.
            if not mine:
                time.sleep(pause)
                pause = min(2 * pause, 0.1)

    def agree(self, sizes: Iterable[int]) -> None:
        """Checks that all workers are to start these @sizes, in this order, in each round.  All workers call it, before
        the first round.  It makes two short broadcast() calls for each worker.

        @sizes: elements of each array or tensor that start() will get in a round.

        Raises Error (EPROTO) with the sizes of a worker that differs and of this one; the job remains usable.
        ECONNABORTED if a worker is not in the job.
        """
        mine = [operator.index(n) for n in sizes]
        info = self.info()
        other = None
        for root in range(info.ranks):
            n = numpy.array([len(mine)], numpy.int64)
            self.broadcast(n, root)
            theirs = numpy.array(mine if root == info.rank else [0] * int(n[0]), numpy.int64)
            if theirs.size:
                self.broadcast(theirs, root)
            if not other and theirs.tolist() != mine:
                other = (root, theirs.tolist())
        if other:
            raise Error(errno.EPROTO, f"worker {other[0]} starts {_sizes(other[1])}, this worker ({info.rank}) "
                                      f"{_sizes(mine)}: all workers must start the same sizes in the same order")

    # --- what is kept -----------------------------------------------------------------------

    def residual(self, first: int, n: int, dtype: str = "float32") -> numpy.ndarray:
        """The part of this worker's elements @first .. @first + @n - 1 that was not counted; for checkpoints.

        In units of the tensor (float32) or exact (int32).  Elements are numbered through the segments: the second
        array of a round begins at a multiple of info().payload.
        """
        out = numpy.zeros(n, numpy.dtype(dtype))
        b = buffer(out) if n else None
        if b:
            with self._enter():
                self._check(lib.saina_residual(self._handle, first, n, b.type, b.pointer))
        return out

    def set_residual(self, first: int, x: Any) -> None:
        """Replaces what residual() reads, from element @first on, between rounds.  @x: as of start(), and finite."""
        b = buffer(x)
        with self._enter():
            self._check(lib.saina_residual_set(self._handle, first, b.n, b.type, b.pointer))

    def layout(self, moves: Iterable[Tuple[int, int, int]]) -> None:
        """Moves residuals and scales of elements, between rounds; @moves: (from, to, n).

        All workers must make the same moves before the same round; see saina_layout() in libsaina(3).
        """
        moves = list(moves)
        with self._enter():
            c = ffi.new("struct saina_move[]", moves)
            self._check(lib.saina_layout(self._handle, c, len(moves)))


def _in_python(sentence: str) -> str:
    """@sentence of libsaina, with the names that its functions have here."""
    for c, name in (("saina_set_round()", "worker.set_round()"), ("saina_round_done()", "worker.round_done()"), ("saina_info()", "worker.info()"),
                    ("SAINA_SUM_ONCE", 'op "once" (broadcast() uses it)'), ("SAINA_SUM", 'op "sum"')):
        sentence = sentence.replace(c, name)
    return sentence


def rank_list(ranks: List[int]) -> str:
    """Text: "rank 1", "ranks 1, 2"."""
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"


def _sizes(sizes: List[int]) -> str:
    """Text: a few sizes all, of many the first and the last."""
    if len(sizes) > 8:
        return f"{len(sizes)} arrays of {', '.join(map(str, sizes[:4]))}, .., {sizes[-1]} elements"
    return f"{', '.join(map(str, sizes)) or 'no'} elements"


def _close(handle: Any, keep: Any) -> None:
    lib.saina_close(handle)


def _log(call: Callable[[str], Any]) -> Any:
    @ffi.callback("void(void *, const char *)")
    def line(_arg: Any, c: Any) -> None:
        call(text(c))
    return line


def _open(opts: Any) -> Any:
    """saina_open() in a thread: it may wait for the other workers, and Ctrl-C must interrupt it."""
    answers: queue.SimpleQueue = queue.SimpleQueue()
    opts.cancel = cancel = ffi.new("int *")

    def run() -> None:
        h = ffi.new("struct saina **")
        ret = lib.saina_open(h, opts)
        why = text(lib.saina_strerror(ffi.NULL, ret)) if ret else ""
        if cancel[0] and not ret:
            lib.saina_close(h[0])
        answers.put((ret, why, h[0]))

    threading.Thread(target=run, name="saina_open", daemon=True).start()
    try:
        while True:
            try:
                ret, why, handle = answers.get(timeout=_POLL_MS / 1000)
                break
            except queue.Empty:
                pass
    except BaseException:
        # It leaves the job, so that a next join() finds the place free.  A look-up of a host name cannot be cancelled.
        cancel[0] = 1
        try:
            answers.get(timeout=_CANCEL_S)
        except queue.Empty:
            pass
        raise
    if ret:
        raise Error(ret, why)
    return handle


def environment() -> Tuple[str, str, Optional[int]]:
    """(aggregator, job, worker) of the environment, as join() takes them; "" or None: not set."""
    o = sized("saina_opts")
    ret = lib.saina_opts_env(o)
    if ret:
        raise Error(ret, text(lib.saina_strerror(ffi.NULL, ret)))
    return (text(o.aggregator) if o.aggregator else "", text(o.job_name) if o.job_name else str(o.job),
            o.worker if o.worker >= 0 else None)


def join(aggregator: Optional[str] = None, job: Union[int, str, None] = None, worker: Optional[int] = None, *,
         token: Optional[str] = None, token_file: Optional[str] = None, name: Optional[str] = None,
         interface: Optional[str] = None, elements: int = 0, arrays: int = 0, per_worker: int = 0, window: int = 0, workers: int = 0,
         join_timeout: float = 5, start_timeout: float = 0, timeout: float = 60,
         log: Optional[Callable[[str], Any]] = None) -> Worker:
    """Joins a job and waits until it runs, that is until all its workers have joined.

    @aggregator: "HOST[:PORT]", by name or IPv4 address; None: $SAINA_AGGREGATOR.
    @job: its number, 0..255, or its name; None: $SAINA_JOB, or 0.
    @worker: identifier, 0..63, or, with @workers, the rank in a tree; None: $SAINA_RANK, or the rank set by torchrun or mpirun (the job then must have as
        many workers as they started), or any free one.
    @token, @token_file: of the job; None: $SAINA_TOKEN, or the file that $SAINA_TOKEN_FILE names.
    @name: shown to people; None: host name and process id.
    @interface: to use; None: the route's.
    @elements: of the largest round; 0: as the job has.
    @arrays: that these are reduced in, at most, each of which begins at a segment: if the job gets its size from its first worker
        (`elements auto'), it is so much larger; 0: @elements are all.
    @per_worker: with @arrays: elements for each worker that one more array of a round has.
    @window: messages in flight; 0: adaptive.
    @workers: as many the job, or its whole tree, must have; 0: as it has, or, with neither @worker nor $SAINA_RANK, as torchrun or mpirun
        started.
    @join_timeout: seconds to wait for each answer until admitted; -1: no limit.
    @start_timeout: seconds to wait for the other workers; 0: no limit.
    @timeout: seconds without a message from the aggregator after which calls fail; -1: never.
    @log: called with lines for the user, by the library's thread or one that waits; it must not call close(); None: stderr.

    Raises Error; see saina_open() in libsaina(3) for its errno values.
    """
    keep: list = []

    def string(value: Optional[str]) -> Any:
        if value is None:
            return ffi.NULL
        keep.append(ffi.new("char[]", os.fsencode(value)))
        return keep[-1]

    def ms(seconds: float) -> int:
        return -1 if seconds < 0 else max(int(seconds * 1000), 1) if seconds else 0

    o = sized("saina_opts")
    ret = lib.saina_opts_env(o)
    if ret:
        raise Error(ret, text(lib.saina_strerror(ffi.NULL, ret)))
    if aggregator is not None:
        o.aggregator = string(aggregator)
    if not o.aggregator:
        raise Error(errno.EINVAL, "say where the aggregator is: aggregator=, or SAINA_AGGREGATOR=ADDRESS[:PORT] "
                                  "in the environment")
    if isinstance(job, str) and job.isdigit():
        job = int(job)      # as in the environment
    if job is not None:
        o.job, o.job_name = (0, string(job)) if isinstance(job, str) else (job, ffi.NULL)
    if worker is not None:
        o.worker, o.workers = worker, 0
    if workers:
        o.workers = workers
    o.token, o.token_file = string(token), string(token_file)
    o.name, o.interface = string(name), string(interface)
    o.elements, o.window = elements, window
    o.arrays, o.per_worker = arrays, per_worker
    o.join_timeout_ms, o.start_timeout_ms, o.timeout_ms = ms(join_timeout), ms(start_timeout), ms(timeout)
    if log:
        keep.append(_log(log))
        o.log = keep[-1]
    return Worker(_open(o), keep)
