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

import ctypes
import datetime
import errno
import inspect
import itertools
import os
import sys
import weakref
from typing import Any, Callable, Dict, List, Optional

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from ._lib import Error
from .agreement import Agreement, What
from .joining import join_all
from .order import Item
from .staging import flatten, for_gloo
from .sums import Sum, Sums
from .work import GlooCall, Work

__all__ = ["ProcessGroup", "Work", "all_reduce", "register"]

_c10d: Any = torch._C._distributed_c10d
_Base: Any = _c10d.ProcessGroup
ReduceOp: Any = _c10d.ReduceOp

#: Types that travel as float32.
_FLOATS = (torch.float32, torch.bfloat16, torch.float16)
_OPS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM")


def _name_of(op: Any) -> str:
    """A ReduceOp's own text has its address."""
    return next((n for n in _OPS if op == getattr(ReduceOp, n, None)), "another operation")


def _note(line: str) -> None:
    print(f"saina: {line}", file=sys.stderr, flush=True)


class ProcessGroup(_Base):      # type: ignore[misc]
    """@others: a process group or backend of the same ranks, for all but the sums.
    @sums: of this group; None: @others does everything.  @agreement: of its ranks, if there are @sums."""

    def __init__(self, others: Any, rank: int, size: int, sums: Optional[Sums] = None, agreement: Optional[Agreement] = None):
        super().__init__(rank, size)
        self._others, self._sums, self._agreement, self._pid = others, sums, agreement, os.getpid()
        self._gloo = isinstance(others, _c10d.ProcessGroupGloo) or others.name() == "gloo"
        self._unclaimed: Dict[Work, None] = {}
        if sums:
            self.close: Any = weakref.finalize(self, _close, self._pid, sums, agreement)
        if hasattr(self, "_register_backend") and isinstance(others, _c10d.ProcessGroupGloo):
            self._register_backend(torch.device("cpu"), _Base.BackendType.GLOO, others)
        _groups.add(self)

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
        return self._all_reduce("allreduce", tensors, opts, len(tensors) == 1)

    def allreduce_coalesced(self, tensors: List[torch.Tensor], opts: Any = None) -> Any:
        """All-reduces @tensors, all of one type, as if they were one."""
        if opts is None:
            opts = _c10d.AllreduceCoalescedOptions()
        return self._all_reduce("allreduce_coalesced", tensors, opts, True)

    def barrier(self, opts: Any = None) -> Any:
        """Waits for all sums that this rank has started, then for all ranks."""
        return self._by_others("barrier", (opts or _c10d.BarrierOptions(),), {}, after_sums=True)

    def _check(self) -> None:
        """Error or SumError if this group can call nothing more."""
        self._check_process()
        if self._agreement and self._agreement.error:
            raise self._agreement.error

    def _numbered(self, what: What) -> Callable[[int, Any], Any]:
        agreement = self._agreement
        assert agreement
        return lambda number, call: agreement.add(number, what, call)

    def _refuse(self, what: What, e: BaseException) -> None:
        """A call that is refused has its place, too: this rank must not be one call behind the others."""
        assert self._sums
        self._sums.order.put(Item(numbered=lambda number, _: self._numbered(what._replace(refused=str(e)))(number, None)), direct=True)

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            # Its threads, and those of Gloo, are in the parent only.
            raise Error(errno.ECHILD, f"this process group belongs to process {self._pid}: a forked child can only destroy it, and "
                                      "make one of its own")

    def _all_reduce(self, name: str, tensors: List[Any], opts: Any, as_one: bool) -> Any:
        if not self._sums:
            return self._by_others(name, (tensors, opts), {})
        self._check()
        op = opts.reduceOp
        what = What(name if len(tensors) == 1 else f"{name} of {len(tensors)} tensors", "the aggregator", _name_of(op))
        try:
            what = what._replace(dtype=tensors[0].dtype if tensors else None, elements=sum(t.numel() for t in tensors))
            if as_one and self._sums_take(tensors, op):
                values, finish = flatten(tensors, torch.int32 if what.dtype == torch.int32 else torch.float32)
                s = Sum(self._sums, values, op == ReduceOp.AVG, finish, str(what), numbered=self._numbered(what))
                work = Work(s, self._sums.order, self._unclaimed, tensors)
                self._sums.order.put(s)
                return work
            what = what._replace(by="Gloo")
            mean = self.size() if op == ReduceOp.AVG and all(t.dtype.is_floating_point for t in tensors) else 0
            copies, after = for_gloo(tensors, mean) if self._gloo else (tensors, None)
        except Exception as e:
            self._refuse(what, e)
            raise
        if not self._gloo:
            return getattr(self._others, name)(tensors, opts)
        own = opts
        if mean:
            own = type(opts)()
            own.reduceOp, own.timeout = ReduceOp.SUM, opts.timeout
        return self._by_gloo(what, lambda: getattr(self._others, name)(copies, own), after, result=list(tensors))

    def _sums_take(self, tensors: List[torch.Tensor], op: Any) -> bool:
        """Whether the aggregator reduces @tensors.  Depends on what must be equal at all ranks only."""
        sums = self._sums
        if not sums or not tensors:
            return False
        kinds = {(t.dtype, t.layout) for t in tensors}
        n = sum(t.numel() for t in tensors)
        dtype, layout = kinds.pop()
        if kinds or layout != torch.strided:
            return False
        if dtype == torch.int32:
            return sums.integers and bool(op == ReduceOp.SUM)
        # Small ones would be rounded in jobs of bfloat16, which is not meant for counts and norms.
        return dtype in _FLOATS and bool(op == ReduceOp.SUM or op == ReduceOp.AVG) and (sums.integers or n > sums.payload)

    def _by_gloo(self, what: What, start: Callable[[], Any], finish: Optional[Callable[[], Any]] = None, after_sums: bool = False,
                 result: Any = None) -> Work:
        assert self._sums and self._agreement
        call = GlooCall(self._agreement, start, finish, numbered=self._numbered(what))
        self._sums.order.put(call, direct=not after_sums or self._sums.order.idle())
        if call.refused:
            self._agreement.add(call.number, what._replace(refused=str(call.refused)))
            raise call.refused
        return Work(call, self._sums.order, self._unclaimed, result)

    def _by_others(self, name: str, args: Any, kwargs: Any, after_sums: bool = False) -> Any:
        """A collective of @others."""
        def start() -> Any:
            return getattr(self._others, name)(*args, **kwargs)
        self._check()
        if not self._sums or not self._gloo:
            return start()
        return self._by_gloo(What(name, "Gloo"), start, after_sums=after_sums)


#: Collectives, and what else a group does.
_COLLECTIVES = ("broadcast", "allgather", "_allgather_base", "allgather_coalesced", "allgather_into_tensor_coalesced", "gather", "scatter", "reduce",
                "reduce_scatter", "_reduce_scatter_base", "reduce_scatter_tensor_coalesced", "alltoall", "alltoall_base")
_FORWARDED = ("send", "recv", "recv_anysource", "monitored_barrier")
#: What PyTorch 1.13 calls; later versions find the backend that is registered.
_FORWARDED_1 = ("_set_sequence_number_for_group", "_get_sequence_number_for_group", "_start_coalescing", "_end_coalescing")


def _collective(name: str) -> Callable[..., Any]:
    def forward(self: ProcessGroup, *args: Any, **kwargs: Any) -> Any:
        return self._by_others(name, args, kwargs)
    forward.__name__ = name
    return forward


def _forwarded(name: str) -> Callable[..., Any]:
    def forward(self: ProcessGroup, *args: Any, **kwargs: Any) -> Any:
        self._check_process()
        return getattr(self._others, name)(*args, **kwargs)
    forward.__name__ = name
    return forward


for _name in _COLLECTIVES:
    if hasattr(_Base, _name):
        setattr(ProcessGroup, _name, _collective(_name))
for _name in _FORWARDED + (() if hasattr(_Base, "_register_backend") else _FORWARDED_1):
    setattr(ProcessGroup, _name, _forwarded(_name))


# --- making one -----------------------------------------------------------------------------

#: The group of this process that has the job.
_present: Optional["weakref.ref[ProcessGroup]"] = None
_groups: Any = weakref.WeakSet()
#: Groups with the job that this process has made or tried to make, as all ranks have.
_numbers = itertools.count()


def _close(pid: int, sums: Sums, agreement: Agreement) -> None:
    if os.getpid() == pid:
        agreement.close()
        sums.close()


def _forked() -> None:
    """In a forked child: the destructors of Gloo's group and of the store would wait for threads that only the parent has."""
    global _present
    _present = None
    for group in _groups:
        kept = [group._agreement and group._agreement.store]
        if isinstance(group._others, _c10d.ProcessGroupGloo):
            kept.append(group._others)
        for x in kept:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))


os.register_at_fork(after_in_child=_forked)


def _group(store: Any, others: Callable[[], Any], rank: int, size: int, timeout: datetime.timedelta) -> ProcessGroup:
    """A group whose sums are the job's.  @others: makes the group for the rest, after all ranks have joined: a rank that is refused must not
    end while others connect to it.  Error, SumError."""
    global _present
    store = dist.PrefixStore(f"saina/{next(_numbers)}", store)
    seconds = timeout.total_seconds()
    worker = join_all(store, rank, size, seconds)
    try:
        sums = Sums(worker, seconds)
        sums.check_policy()
        agreement = Agreement(store, rank, size, sums.stop)
        sums.verdict = agreement.verdict
        group = ProcessGroup(others(), rank, size, sums, agreement)
    except BaseException:
        worker.close()
        raise
    _present = weakref.ref(group)
    return group


def _create(store: Any, rank: int, size: int, timeout: datetime.timedelta) -> ProcessGroup:
    """For Backend.register_backend()."""
    def gloo() -> Any:
        return _c10d.ProcessGroupGloo(store, rank, size, timeout=timeout)
    present = _present() if _present else None
    if present and present.close.alive:
        if dist.is_initialized():
            if rank == 0:
                _note(f"the all-reduces of another process group, of {size} ranks, go by Gloo: only the first group uses the job")
            return ProcessGroup(gloo(), rank, size)
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
        found = _beside[group] = _group(store, lambda: weakref.proxy(group), group.rank(), group.size(), distributed_c10d.default_pg_timeout)
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
