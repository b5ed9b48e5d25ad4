# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""The order of the calls of a process group, which must be the same at all ranks.

Callbacks of futures, too, may call collectives and wait for them (PowerSGD does).  When a callback runs depends on the network:
at one rank before the program's next call, at another one after it.  So a future has a place in the order, that of the
call of get_future().  Its callbacks run when all before it are over, in another thread.  What they call comes next, and
what the program has called meanwhile comes after it.
"""

import queue
import threading
from collections import deque
from typing import Any, Callable, Deque, Optional

#: Seconds without a call after which later ones no longer wait for a callback.  What it calls then has no certain place.
_CALLBACK_S = 30


class _Turn:
    """Calls of the program, or of the callbacks of a future that the turn @parent has."""

    def __init__(self, parent: Optional["_Turn"] = None):
        self.parent = parent
        self.items: Deque["Item"] = deque()
        self.futures = 0        # of the items
        self.over = False       # no more calls


class Item:
    """What has a place in the order.  @numbered: called with its number, which is the same at all ranks."""

    def __init__(self, numbered: Callable[[int, "Item"], Any] = lambda number, item: None):
        self.number = 0
        self.turn: Optional[_Turn] = None
        self._numbered = numbered

    def place(self, number: int) -> None:
        self.number = number
        self._numbered(number, self)

    def begin(self) -> None:
        """Called at once, in the thread that calls, if nothing is before it; must not wait."""

    def run(self) -> None:
        """Called when all before it are over; waits until it is, and raises nothing."""

    def end(self) -> None:
        """Called when the next one may begin."""


class Future(Item):
    """The callbacks of a future.  @ready: waits until that is over which it is the future of.  @complete: runs them."""

    def __init__(self, order: "Order", ready: Callable[[], Any], complete: Callable[[], Any]):
        super().__init__()
        self._order, self._ready, self._complete = order, ready, complete

    def run(self) -> None:
        self._ready()
        self._order._call_back(self.turn, self._complete)


class Callbacks:
    """Threads that run callbacks of futures: as many as wait for something at a time, and one more."""

    def __init__(self) -> None:
        self._queue: "queue.SimpleQueue[Optional[Callable[[], Any]]]" = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._free = 0          # threads that wait for the next one
        self._closed = False

    def run(self, what: Callable[[], Any]) -> None:
        """Runs @what in a free thread, or a new one.  RuntimeError: the interpreter exits."""
        with self._lock:
            if self._free:
                self._free -= 1
            else:
                threading.Thread(target=self._serve, name="saina_callback", daemon=True).start()
            self._queue.put(what)

    def _serve(self) -> None:
        while True:
            what = self._queue.get()
            if not what:
                return
            what()
            del what        # it may have the last reference to a process group
            with self._lock:
                if self._closed:
                    return
                self._free += 1

    def close(self) -> None:
        with self._lock:
            self._closed = True
            while self._free:
                self._free -= 1
                self._queue.put(None)


class Order:
    """Runs items one after the other, in a thread of its own."""

    def __init__(self) -> None:
        self._callbacks = Callbacks()
        self._lock = threading.Condition()
        self._program = _Turn()
        self._calls = 0
        self._here = threading.local()
        self._thread: Optional[threading.Thread] = None
        self._closing = False

    def _turn(self) -> _Turn:
        """This thread's."""
        turn = getattr(self._here, "turn", self._program)
        return self._program if turn.over else turn

    def idle(self) -> bool:
        """Is all over that this thread has put into the order?"""
        return not self._turn().items

    def _place(self, item: Item) -> None:
        self._calls += 1
        item.place(self._calls)

    def put(self, item: Item, direct: bool = False) -> None:
        """@direct: it need not wait for what is before it, unless callbacks of futures may call something before it."""
        with self._lock:
            turn = item.turn = self._turn()
            direct = self._closing or direct and not turn.futures
            if not turn.futures and not isinstance(item, Future):
                self._place(item)
            if not direct:
                turn.items.append(item)
                turn.futures += isinstance(item, Future)
                if not self._thread:
                    self._thread = threading.Thread(target=self._serve, args=(self._program,), name="saina_order", daemon=True)
                    self._thread.start()
                if len(turn.items) == 1:
                    item.begin()
                self._lock.notify_all()
        if direct:
            item.run()
            item.end()

    def waits_for(self, item: Item) -> None:
        """This thread is about to wait for @item, which is not over.  If it is a callback, and @item comes after it, the order goes on."""
        with self._lock:
            mine, turn = getattr(self._here, "turn", self._program), item.turn
            while turn and turn is not mine:
                turn = turn.parent
            if not turn:
                mine.over = True
                self._lock.notify_all()

    def close(self) -> None:
        """Items that are not over must fail by now.  No callback is waited for."""
        with self._lock:
            self._closing = True
            self._lock.notify_all()
        if self._thread and self._thread is not threading.current_thread():
            self._thread.join()
        self._callbacks.close()

    # --- the thread ---------------------------------------------------------------------------

    def _serve(self, turn: _Turn) -> None:
        """Runs all that is called in @turn."""
        while True:
            with self._lock:
                while not (turn.items or turn.over or self._closing):
                    if not self._lock.wait(_CALLBACK_S if turn is not self._program else None):
                        turn.over = True
                if not turn.items:
                    return
                item = turn.items[0]
            item.run()
            with self._lock:
                turn.items.popleft()
                if isinstance(item, Future):
                    turn.futures -= 1
                    for later in turn.items:
                        if isinstance(later, Future):
                            break
                        self._place(later)
            item.end()

    def _call_back(self, parent: Optional[_Turn], complete: Callable[[], Any]) -> None:
        turn = _Turn(parent)

        def run() -> None:
            self._here.turn = turn
            try:
                complete()
            finally:
                with self._lock:
                    turn.over = True
                    self._lock.notify_all()
        try:
            self._callbacks.run(run)
        except RuntimeError:        # the interpreter exits: nothing that it calls is waited for
            run()
        self._serve(turn)
