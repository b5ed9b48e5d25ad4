# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""What a collective that was started returns."""

import datetime
import threading
import time
from typing import Any, Callable, Dict, Optional, Union

import torch

from .agreement import Agreement
from .order import Future, Item, Order
from .sums import Sum

_c10d: Any = torch._C._distributed_c10d

#: Seconds between checks whether all ranks have called the same.
_POLL_S = 1.0
#: Works that are kept for a program that never waits for them.
_UNCLAIMED_MAX = 1000


class GlooCall(Item):
    """A collective by Gloo.  @start: starts it, and returns Gloo's Work.  @finish: called when it is over, before anybody who waits continues."""

    def __init__(self, agreement: Agreement, start: Callable[[], Any], finish: Optional[Callable[[], Any]], **how: Any):
        super().__init__(**how)
        self._agreement, self._start, self._finish = agreement, start, finish
        self._gloo: Any = None
        self._error: Optional[BaseException] = None
        self.refused: Optional[BaseException] = None    # why it did not start
        self._started = threading.Event()
        self._lock = threading.Lock()

    def run(self) -> None:
        try:
            if self._agreement.error:
                raise self._agreement.error
            self._gloo = self._start()
        except Exception as e:
            self._error = self.refused = e
        del self._start
        self._started.set()

    def over(self) -> bool:
        return self._started.is_set() and bool(self.error() or self._gloo.is_completed())

    def error(self) -> Optional[BaseException]:
        return self._error or self._agreement.error

    def wait(self, timeout: Optional[float] = None) -> bool:
        """As Sum.wait()."""
        until = None if timeout is None else time.monotonic() + timeout
        if not self._started.wait(timeout):
            return False
        while not self._error:
            left = _POLL_S if until is None else min(max(until - time.monotonic(), 0.001), _POLL_S)
            completed = self._gloo.is_completed()
            try:
                self._gloo.wait(datetime.timedelta(seconds=left))
                self._end()
                return True
            except RuntimeError as e:
                if completed:
                    # Gloo may fail because a rank has ended that knows more.
                    self._error = self._agreement.verdict() or e
                elif self._agreement.error:
                    self._error = self._agreement.error
                elif until is not None and time.monotonic() >= until:
                    return False
        raise self._error

    def _end(self) -> None:
        with self._lock:
            if self._finish:
                self._finish()
            self._finish = None

    def value(self) -> Any:
        """What Gloo's future would have."""
        return self._gloo.get_future().value()


class Work(_c10d.Work):     # type: ignore[misc]
    """A collective that was started: what torch.distributed.all_reduce(.., async_op=True) returns.

    @unclaimed: what nobody has waited for yet, in order: PyTorch 1.13's C++ does not keep the Python object of a Work.
    @result: for what is waited for; None: that of Gloo."""

    def __init__(self, call: Union[Sum, GlooCall], order: Order, unclaimed: Dict["Work", None], result: Any = None):
        super().__init__()
        self._call, self._order, self._unclaimed, self._result = call, order, unclaimed, result
        self._future: Optional[torch.futures.Future] = None
        unclaimed[self] = None
        if len(unclaimed) > _UNCLAIMED_MAX:
            unclaimed.pop(next(iter(unclaimed)), None)

    def wait(self, timeout: Any = None) -> bool:
        """Waits until the result is in the tensor.  @timeout: datetime.timedelta; None or 0: without limit."""
        self._unclaimed.pop(self, None)
        seconds = timeout.total_seconds() if timeout else 0
        if not self._call.over():
            self._order.waits_for(self._call)
        if not self._call.wait(seconds if seconds > 0 else None):
            raise RuntimeError(f"Timed out waiting {seconds * 1000:.0f}ms for a collective of saina's process group to complete")
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._call.over()

    def is_success(self) -> bool:
        return self._call.over() and not self.exception()

    def exception(self) -> Optional[BaseException]:
        if self._call.over() and not self._call.error():
            try:
                self._call.wait()
            except Exception:
                pass
        return self._call.error()

    def result(self) -> Any:
        self.wait()
        return self._call.value() if self._result is None else self._result     # type: ignore[union-attr]

    def get_future(self) -> torch.futures.Future:
        """A future whose value is the list of tensors.  C++ code that waits for it gets the error of a call that failed, too."""
        self._unclaimed.pop(self, None)
        if not self._future:
            begun: torch.futures.Future = torch.futures.Future()
            # Only what a callback raises is an error of a future for C++, too.
            self._future = begun.then(lambda _: self.result())
            if self._call.over() and self._order.idle():
                begun.set_result(None)
            else:
                self._order.put(Future(self._order, self._ready, lambda: begun.set_result(None)))
        return self._future

    def _ready(self) -> None:
        try:
            self._call.wait()
        except Exception:
            pass            # the future's error
