# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Which State of this process is in which job: at most one for each job; and what its process group shares."""

import errno
import gc
import os
import secrets
import threading
import time
import weakref
from typing import Any, Dict, NamedTuple, Optional

import torch

from ._lib import Error
from .ranks import Ranks
from .records import Info
from .worker import environment

ONE_EACH = "use one State for each model, and one job for each State (State(job=..))"


class Membership(NamedTuple):
    """A State's aggregator, job and worker.  asked: the worker as passed to join()."""
    pid: int
    aggregator: str
    job: str
    #: number of the job, once it has joined
    id: str
    worker: Optional[int]
    asked: Optional[int]
    #: any free worker will do
    any: bool

    @staticmethod
    def of(how: Dict[str, Any]) -> "Membership":
        """@how: arguments of join()."""
        aggregator, job, worker = environment()
        asked = how["worker"]
        if asked is None and worker is None and torch.distributed.is_available() and torch.distributed.is_initialized():
            asked = torch.distributed.get_rank()
        return Membership(os.getpid(), how["aggregator"] or aggregator, job if how["job"] is None else str(how["job"]), "",
                     worker if asked is None else asked, asked, worker is None and asked is None)

    def found(self, info: Info) -> "Membership":
        """With the job and worker that it got."""
        return self._replace(id=str(info.job), worker=info.rank)

    def collides(self, other: "Membership") -> bool:
        same_job = {self.job, self.id} & {other.job, other.id} - {""}
        return bool(self[:2] == other[:2] and same_job) and (self.worker == other.worker or self.any or other.any)


_members: Any = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def register(state: Any, membership: Membership) -> None:
    """Registers @state; Error (EBUSY) if another State of this process has this membership."""
    for last in (False, True):
        with _lock:
            if not any(s is not state and p.collides(membership) for s, p in _members.items()):
                _members[state] = membership
                return
        if last:
            raise Error(errno.EBUSY, f"this process takes part in job {membership.job} already, by another State: {ONE_EACH}, or "
                                     "close() the other State first")
        gc.collect()        # the other one may be unreachable


def unregister(state: Any) -> None:
    with _lock:
        _members.pop(state, None)


def group_store() -> Any:
    """The store of the process group, or None."""
    try:
        from torch.distributed import distributed_c10d
        return distributed_c10d._get_default_store()
    except Exception:       # not a public function: this version of torch lacks it, or there is no process group
        return None


def group_secret(who: Ranks) -> str:
    """A random text that the ranks of the process group have in common for the job of @who; "": no group spans
    its ranks, or its store has gone."""
    store = group_store()
    if not store or torch.distributed.get_world_size() < who.n:
        return ""
    try:
        # The first rank sets it; the others get that one.
        return str(store.compare_set(f"saina/state/{who.job}", "", secrets.token_hex(16)).decode())
    except RuntimeError:    # the rank that has the store has ended
        return ""


def group_wait_joined(who: Ranks, seconds: float) -> None:
    """Waits until all ranks of the process group have joined the job of @who, if the group has as many; @seconds at most, 0: no limit.

    A rank that began rounds earlier would wait for the others in DistributedDataParallel's collectives, and they for it in a round.
    """
    store = group_store()
    if not store or torch.distributed.get_world_size() != who.n:
        return
    key, end = f"saina/joined/{who.job}", time.monotonic() + seconds if seconds > 0 else float("inf")
    try:
        mine = store.add(key, 1)
        # Ranks may join several times: all of them the same number of times.
        while store.add(key, 0) < -(-mine // who.n) * who.n and time.monotonic() < end:
            time.sleep(0.05)
    except RuntimeError:    # the rank that has the store has ended
        pass
