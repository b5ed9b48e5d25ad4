# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""All ranks of a process group join the job, or none."""

import errno
import queue
import sys
import threading
from typing import Any

from ._lib import Error
from .agreement import all_read
from .worker import Worker, join

#: Elements of a round that the first worker of a job without a size requests: 4 MiB.
_ELEMENTS = 1 << 20
#: Seconds to wait for each answer until admitted.
_JOIN_S = 30
#: Seconds for the other ranks to come, and to read why one could not join.
_READ_S = 30
_POLL_S = 0.2
#: Key of the store: how many ranks know why one could not join.
_READ = "ended"


def _join(rank: int, size: int, timeout: float) -> Worker:
    how: Any = dict(worker=rank, workers=size, join_timeout=_JOIN_S, start_timeout=timeout)
    try:
        return join(elements=_ELEMENTS, **how)
    except Error as e:
        if e.errno != errno.EMSGSIZE:
            raise
        return join(**how)


def join_all(store: Any, rank: int, size: int, timeout: float) -> Worker:
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
                    all_read(store, _READ, rank, size, _READ_S)
                    raise Error(errno.ECONNABORTED, failed) from None
    if isinstance(answer, Exception):
        try:
            store.set("why", f"rank {rank}: {answer}")
            store.add("failed", 1)
        except RuntimeError:
            pass        # the store's rank has ended, for the same reason
        if rank == 0:
            # It may wait for ranks that come later.
            print(f"saina: {answer}", file=sys.stderr, flush=True)
        all_read(store, _READ, rank, size, _READ_S)
        raise answer
    return answer


def _failed(store: Any) -> str:
    """Why a rank could not join; "": none has said so."""
    try:
        # add(key, 0) returns 0 for a key that does not exist.
        return store.get("why").decode() if store.add("failed", 0) else ""
    except RuntimeError as e:
        return f"the rank that hosts the process group's store has ended ({e})"
