# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Do all ranks call the same collectives?

A round of the job says it by itself (see sums.py).  But a rank that goes by Gloo is in no round, and one that waits for a round is unknown to Gloo:
both would wait until the group's time-out.  So a rank that has waited for a second says in the store for what, and every rank that waits
compares it with its own calls.  While nobody waits for so long nothing is sent.
"""

import json
import threading
import time
import weakref
from typing import Any, Callable, Dict, NamedTuple, Optional

#: Seconds between two looks at what this rank waits for.
_TICK_S = 1.0
#: Calls that are remembered.
_CALLS = 2000
#: Keys of the store: what a rank waits for, and that ranks have called different collectives.
_WAITS, _SPLIT = "waits", "split"
#: Their value before.
_NONE = "-"
#: Seconds for the other ranks to read why a group fails.
_READ_S = 5
_POLL_S = 0.2


def all_read(store: Any, key: str, rank: int, ranks: int, seconds: float = _READ_S) -> None:
    """This rank has read why the group fails.  Rank 0 waits for the others to read it, since the store may end with it."""
    try:
        read, until = store.add(key, 1), time.monotonic() + seconds
        while rank == 0 and read < ranks and time.monotonic() < until:
            time.sleep(_POLL_S)
            read = store.add(key, 0)
    except RuntimeError:
        pass            # it has ended


class SumError(RuntimeError):
    """A sum failed, and with it all later ones of this job; a sentence."""


class What(NamedTuple):
    """A call.  What differs between ranks that may differ is not in it."""
    name: str
    #: "the aggregator" or "Gloo"
    by: str
    #: of an all-reduce: name of the operation, type, and number of elements
    op: str = ""
    dtype: Any = None
    elements: int = 0
    #: why it was refused
    refused: str = ""

    def __str__(self) -> str:
        of = f" {self.op} of {self.elements} elements of {str(self.dtype).replace('torch.', '')}" if self.op else ""
        return f"{self.name}{of}" + (f", which was refused ({self.refused})" if self.refused else f" by {self.by}")


class Agreement:
    """@store: of the process group.  @stop: called, with the error, when ranks have called different collectives."""

    def __init__(self, store: Any, rank: int, ranks: int, stop: Callable[[SumError], Any]):
        self.store, self._rank, self._ranks, self._stop = store, rank, ranks, stop
        self._lock = threading.Lock()
        self.error: Optional[SumError] = None
        self._calls: Dict[int, What] = {}
        self._open: Dict[int, Any] = {}
        self._waiting: Optional[int] = None     # at the last look
        self._said = False
        self._closing = threading.Event()
        self._thread: Optional[threading.Thread] = None
        if rank == 0:
            store.set(_WAITS, _NONE)
            store.set(_SPLIT, _NONE)

    def add(self, number: int, what: What, call: Any = None) -> None:
        """Call @number of this rank is @what.  @call: has over()."""
        self._calls[number] = what
        if call:
            self._open[number] = weakref.ref(call)
        if len(self._calls) > _CALLS:
            self._calls.pop(next(iter(self._calls)), None)
        if not self._thread:
            self._thread = threading.Thread(target=self._run, name="saina_agreement", daemon=True)
            self._thread.start()

    def verdict(self) -> Optional[SumError]:
        """The error, if ranks have called different collectives, as far as one has noticed it."""
        if not self.error:
            try:
                self._read_verdict()
            except RuntimeError:    # the rank that has the store has ended
                pass
        return self.error

    def close(self) -> None:
        self._closing.set()
        if self._thread and self._thread is not threading.current_thread():
            self._thread.join(_READ_S + 1)

    # --- the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        while not self.error and not self._closing.wait(_TICK_S):
            try:
                self._look()
            except RuntimeError:    # the rank that has the store has ended
                return

    def _look(self) -> None:
        waiting = []
        for number, ref in list(self._open.items()):
            call = ref()
            if not call or call.over():
                self._open.pop(number, None)
            else:
                waiting.append(number)
        oldest = min(waiting, default=None)
        long, self._waiting = oldest is not None and oldest == self._waiting, oldest
        if not long and not self._said:
            return
        self._read_verdict()
        if self.error:
            return
        text = self.store.get(_WAITS).decode()
        said = None if text == _NONE else json.loads(text)
        if said:
            self._compare(said["rank"], said["call"], said["what"])
        if long:
            assert oldest
            what = self._calls.get(oldest)
            # The earliest call stays: every other rank has called it, too, or something else in its place.
            if what and (not said or said["call"] > oldest):
                self.store.set(_WAITS, json.dumps({"rank": self._rank, "call": oldest, "what": str(what)}))
        elif said and said["rank"] == self._rank:
            self.store.set(_WAITS, _NONE)
        self._said = long

    def _compare(self, rank: int, number: int, what: str) -> None:
        mine = self._calls.get(number)
        if mine and str(mine) != what:
            self.store.set(_SPLIT, f"call {number} of rank {rank} is {what}, and of rank {self._rank} {mine}: all ranks must call the "
                            "same collectives, with tensors of the same sizes and types and the same operations, in the same order")
            self._read_verdict()

    def _read_verdict(self) -> None:
        text = self.store.get(_SPLIT).decode()
        with self._lock:
            if text == _NONE or self.error:
                return
            all_read(self.store, "split/read", self._rank, self._ranks)
            self.error = SumError(text)
        self._stop(self.error)
