# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""A backend of torch.distributed whose all-reduce is done by the aggregator, and everything else by Gloo.

    import saina.torch
    torch.distributed.init_process_group("saina")       # where the aggregator is: SAINA_AGGREGATOR
    torch.distributed.all_reduce(tensor)

The aggregator reduces SUM and AVG of float32, bfloat16 and float16 (as float32), and, in jobs of int32, SUM of int32.
Gloo does other operations, types and collectives, and, in jobs of float32 and bfloat16, tensors of up to one segment.
The job must have as many workers as there are ranks, and a policy that waits for all of them (bsp).  One group of a
process has the job: the first one; all-reduces of others, new_group()'s, go by Gloo.

    saina.torch.all_reduce(tensor)

does the same beside any other backend, which then does the rest.
"""

import datetime
import errno
import inspect
import queue
import sys
import threading
import time
import weakref
from typing import Any, Callable, Dict, List, Optional

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from ._buffer import with_data
from ._lib import Error
from .sums import Sum, Sums
from .worker import Worker, join

__all__ = ["ProcessGroup", "Work", "all_reduce", "register"]

_c10d: Any = torch._C._distributed_c10d
_Base: Any = _c10d.ProcessGroup
ReduceOp: Any = _c10d.ReduceOp

#: Elements of a round that the first worker of a job without a size requests: 4 MiB.
_ELEMENTS = 1 << 20
#: Seconds to wait for each answer until admitted.
_JOIN_S = 30
#: Seconds for the other ranks to read why one could not join.
_READ_S = 5
_POLL_S = 0.2
#: Works that are kept for a program that never waits for them.
_UNCLAIMED_MAX = 1000
#: Types that travel as float32.
_FLOATS = (torch.float32, torch.bfloat16, torch.float16)


class Work(_c10d.Work):     # type: ignore[misc]
    """An all-reduce that was started: what torch.distributed.all_reduce(.., async_op=True) returns."""

    def __init__(self, group: "ProcessGroup", s: Sum, tensors: List[torch.Tensor]):
        super().__init__()
        self._group, self._sum, self._tensors = group, s, tensors
        self._future: Optional[torch.futures.Future] = None

    def wait(self, timeout: Any = None) -> bool:
        """Waits until the sum is in the tensor.  @timeout: datetime.timedelta; None or 0: without limit."""
        self._group._unclaimed.pop(self, None)
        seconds = timeout.total_seconds() if timeout else 0
        if not self._sum.wait(seconds if seconds > 0 else None):
            raise RuntimeError(f"Timed out waiting {seconds * 1000:.0f}ms for an all-reduce by saina to complete")
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._sum.over()

    def is_success(self) -> bool:
        return self._sum.over() and not self._sum.error

    def exception(self) -> Optional[BaseException]:
        return self._sum.error

    def result(self) -> List[torch.Tensor]:
        self.wait()
        return self._tensors

    def get_future(self) -> torch.futures.Future:
        """A future whose value is the list of tensors.  C++ code that waits for it gets the error of a sum that failed, too."""
        self._group._unclaimed.pop(self, None)
        if not self._future:
            begun: torch.futures.Future = torch.futures.Future()
            # Only what a callback raises is an error of a future for C++, too.
            self._future = begun.then(lambda _: self.result())
            self._sum.when_over(lambda: begun.set_result(None))
        return self._future


def _note(line: str) -> None:
    print(f"saina: {line}", file=sys.stderr, flush=True)


def _on_host(tensor: torch.Tensor) -> torch.Tensor:
    """@tensor, detached, or its copy on the host.  TypeError or ValueError if it can have none."""
    tensor = with_data(tensor)
    if tensor.device.type not in ("cpu", "cuda"):
        raise TypeError(f"this tensor is on {tensor.device}: saina reduces tensors on cpu and cuda; .cpu() "
                        "makes a copy on cpu")
    tensor = tensor.detach()
    if tensor.device.type == "cpu":
        return tensor
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    host.copy_(tensor)
    return host


class ProcessGroup(_Base):      # type: ignore[misc]
    """@others: a process group or backend of the same ranks, for all but the sums.
    @sums: of this group; None: @others does everything."""

    def __init__(self, others: Any, rank: int, size: int, sums: Optional[Sums]):
        super().__init__(rank, size)
        self._others, self._sums = others, sums
        #: what nobody has waited for yet, in order: PyTorch 1.13's C++ does not keep the Python object of a Work
        self._unclaimed: Dict[Work, None] = {}
        if sums:
            self.close: Any = weakref.finalize(self, sums.close)
        if hasattr(self, "_register_backend") and isinstance(others, _c10d.ProcessGroupGloo):
            self._register_backend(torch.device("cpu"), _Base.BackendType.GLOO, others)

    def getBackendName(self) -> str:
        return "saina"

    def __repr__(self) -> str:
        by = f"job {self._sums.job}" if self._sums else "Gloo"
        return f"<saina.c10d.ProcessGroup: rank {self.rank()} of {self.size()}, all-reduce by {by}>"

    def allreduce(self, tensors: Any, opts: Any = None) -> Any:
        """As ProcessGroup.allreduce(): @tensors: a list of one tensor, or a tensor; @opts: AllreduceOptions or a
        ReduceOp."""
        if isinstance(tensors, torch.Tensor):
            tensors = [tensors]
        if opts is None or not hasattr(opts, "reduceOp"):
            op, opts = opts, _c10d.AllreduceOptions()
            if op is not None:
                opts.reduceOp = op
        if len(tensors) != 1 or not self._sums_take(tensors, opts.reduceOp):
            return self._others.allreduce(tensors, opts)
        return self._start(tensors, opts.reduceOp)

    def allreduce_coalesced(self, tensors: List[torch.Tensor], opts: Any = None) -> Any:
        """All-reduces @tensors, all of one type, as if they were one."""
        if opts is None:
            opts = _c10d.AllreduceCoalescedOptions()
        if not self._sums_take(tensors, opts.reduceOp):
            return self._others.allreduce_coalesced(tensors, opts)
        return self._start(tensors, opts.reduceOp)

    def barrier(self, opts: Any = None) -> Any:
        """Waits for all sums that this rank has started, then for all ranks."""
        if self._sums:
            self._sums.drain()
        return self._others.barrier(opts or _c10d.BarrierOptions())

    def _sums_take(self, tensors: List[torch.Tensor], op: Any) -> bool:
        """Whether the aggregator reduces @tensors.  Depends on what must be equal at all ranks only."""
        sums = self._sums
        if not sums or not tensors:
            return False
        kinds = {(t.dtype, t.layout) for t in tensors}
        n = sum(t.numel() for t in tensors)
        dtype, layout = kinds.pop()
        if kinds or layout != torch.strided or not n:
            return False
        if dtype == torch.int32:
            return sums.integers and bool(op == ReduceOp.SUM)
        # Small ones would be rounded in jobs of bfloat16, which is not meant for counts and norms.
        return dtype in _FLOATS and bool(op == ReduceOp.SUM or op == ReduceOp.AVG) and (sums.integers or n > sums.payload)

    def _start(self, tensors: List[torch.Tensor], op: Any) -> Work:
        assert self._sums
        # Counted first: a rank whose tensor is refused must not be one all-reduce behind the others.
        number = self._sums.count()
        host = [_on_host(t) for t in tensors]
        wire = torch.int32 if host[0].dtype == torch.int32 else torch.float32
        if len(host) == 1 and host[0].dtype == wire and host[0].is_contiguous():
            flat = host[0].view(-1)
        else:
            flat = torch.cat([t.reshape(-1).to(wire) for t in host])
        mean = self._sums.ranks if op == ReduceOp.AVG else 0

        def finish() -> None:
            if mean:
                flat.div_(mean)
            at = 0
            with torch.no_grad():
                for t in tensors:
                    n = t.numel()
                    if n and t.data_ptr() != flat.data_ptr():
                        t.detach().copy_(flat[at:at + n].view(t.shape))
                    at += n
        s = Sum(flat, finish, number, f"{tensors[0].dtype} {'mean' if mean else 'sum'}")
        work = Work(self, s, tensors)
        self._unclaimed[work] = None
        if len(self._unclaimed) > _UNCLAIMED_MAX:
            self._unclaimed.pop(next(iter(self._unclaimed)), None)
        self._sums.start(s)
        return work


#: What PyTorch 1.13 calls; later versions find the backend that is registered.
_FORWARDED = ("broadcast", "allgather", "_allgather_base", "allgather_coalesced", "gather", "scatter", "reduce", "reduce_scatter",
              "_reduce_scatter_base", "alltoall", "alltoall_base", "send", "recv", "recv_anysource", "monitored_barrier",
              "_set_sequence_number_for_group", "_get_sequence_number_for_group", "_start_coalescing", "_end_coalescing")


def _forwarded(name: str) -> Callable[..., Any]:
    def forward(self: ProcessGroup, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._others, name)(*args, **kwargs)
    forward.__name__ = name
    return forward


if not hasattr(_Base, "_register_backend"):
    for _name in _FORWARDED:
        setattr(ProcessGroup, _name, _forwarded(_name))


# --- joining --------------------------------------------------------------------------------

#: The group of this process that has the job.
_present: Optional["weakref.ref[ProcessGroup]"] = None


def _join(rank: int, size: int, timeout: float) -> Worker:
    how: Any = dict(worker=rank, workers=size, join_timeout=_JOIN_S, start_timeout=timeout)
    try:
        return join(elements=_ELEMENTS, **how)
    except Error as e:
        if e.errno != errno.EMSGSIZE:
            raise
        return join(**how)


def _join_all(store: Any, rank: int, size: int, timeout: float) -> Worker:
    """Joins the job with all ranks; a rank that cannot says so to the others by @store.  Error at all of them."""
    answers: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
    lock, given_up = threading.Lock(), False

    def run() -> None:
        answer: Any
        try:
            answer = _join(rank, size, timeout)
        except Exception as e:
            answer = e
        with lock:
            if not given_up:
                answers.put(answer)
                return
        if isinstance(answer, Worker):
            answer.close()

    threading.Thread(target=run, name="saina_join", daemon=True).start()
    answer: Any = None
    while not answer:
        try:
            answer = answers.get(timeout=_POLL_S)
        except queue.Empty:
            failed = _failed(store)
            if failed:
                with lock:
                    given_up = answers.empty()
                if given_up:
                    _ended(store, rank, size)
                    raise Error(errno.ECONNABORTED, failed) from None
    if isinstance(answer, Exception):
        try:
            store.set("saina/why", f"rank {rank}: {answer}")
            store.add("saina/failed", 1)
        except RuntimeError:
            pass        # the store's rank has ended, for the same reason
        _ended(store, rank, size)
        raise answer
    return answer


def _ended(store: Any, rank: int, size: int) -> None:
    """This rank could not join, or has read why another one could not.  Rank 0 waits for the others to read it, since the
    store may end with it."""
    try:
        ended, until = store.add("saina/ended", 1), time.monotonic() + _READ_S
        while rank == 0 and ended < size and time.monotonic() < until:
            time.sleep(_POLL_S)
            ended = store.add("saina/ended", 0)
    except RuntimeError:
        pass            # it has ended


def _failed(store: Any) -> str:
    """Why a rank could not join; "": none has said so."""
    try:
        # add(key, 0) returns 0 for a key that does not exist.
        return store.get("saina/why").decode() if store.add("saina/failed", 0) else ""
    except RuntimeError as e:
        return f"the rank that hosts the process group's store has ended ({e})"


def _group(store: Any, others: Any, rank: int, size: int, timeout: datetime.timedelta) -> ProcessGroup:
    """A group whose sums are the job's.  Error, SumError."""
    global _present
    seconds = timeout.total_seconds()
    worker = _join_all(store, rank, size, seconds)
    try:
        sums = Sums(worker, seconds)
        sums.check_policy()
    except BaseException:
        worker.close()
        raise
    group = ProcessGroup(others, rank, size, sums)
    _present = weakref.ref(group)
    return group


def _create(store: Any, rank: int, size: int, timeout: datetime.timedelta) -> ProcessGroup:
    """For Backend.register_backend()."""
    gloo = _c10d.ProcessGroupGloo(store, rank, size, timeout=timeout)
    present = _present() if _present else None
    if present and present.close.alive:
        if dist.is_initialized():
            if rank == 0:
                _note(f"the all-reduces of another process group, of {size} ranks, go by Gloo: only the first group uses the job")
            return ProcessGroup(gloo, rank, size, None)
        # The default group was destroyed, and something still refers to it.
        present.close()
    return _group(store, gloo, rank, size, timeout)


def register() -> None:
    """Makes the backend known to torch.distributed as "saina"; importing this module does it."""
    register_backend = dist.Backend.register_backend
    new = "devices" in inspect.signature(register_backend).parameters
    # In later versions "cpu:saina" is syntax: a backend for each device.
    for name in ("saina",) if new else ("saina", "cpu:saina"):
        if not hasattr(dist.Backend, name.upper()):
            register_backend(name, _create, **({"devices": ["cpu", "cuda"]} if new else {}))


register()

# --- beside any backend ---------------------------------------------------------------------

#: {process group: the one beside it}
_beside: Any = weakref.WeakKeyDictionary()


def _group_beside(group: Any) -> ProcessGroup:
    found = _beside.get(group)
    if not found:
        store = dist.PrefixStore("saina", distributed_c10d._get_default_store())
        # A proxy: the group must be destroyed when nobody else has it.
        found = _beside[group] = _group(store, weakref.proxy(group), group.rank(), group.size(), distributed_c10d.default_pg_timeout)
    return found


def all_reduce(tensor: torch.Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Optional[Work]:
    """As torch.distributed.all_reduce(), by the aggregator, whatever the backend of the default process group is.

    The first call joins the job; all ranks must make it.  What the aggregator does not reduce (see help(saina.c10d)), and what is
    of another @group, goes by the process group.
    Returns the Work if @async_op.  Raises Error or SumError, at all ranks; TypeError or ValueError.
    """
    default = distributed_c10d._get_default_group()
    if group is None:
        group = default
    if not isinstance(group, ProcessGroup):
        if group is not default:
            return dist.all_reduce(tensor, op, group, async_op)
        group = _group_beside(group)
    opts = _c10d.AllreduceOptions()
    opts.reduceOp = op
    work = group.allreduce([tensor], opts)
    if async_op:
        return work
    work.wait()
    return None
