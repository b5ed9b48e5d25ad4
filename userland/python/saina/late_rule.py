# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Warns when an optimizer with momentum gets late gradients (late=residual).

Momentum goes on applying a gradient for many steps; one that is late as well is applied when the model has moved away.
Measured with momentum 0.9 and Adam: Documentation/figures.rst, section 4.
"""

import collections
import warnings
from typing import Any, Callable, Deque, Iterable, List

from ._lib import lib
from .records import Call
from .worker import Worker

#: It warns when, of this rank's gradients in the last ROUNDS rounds, as many were late as SHARE * ROUNDS rounds have.
ROUNDS, SHARE = 100, 0.1


def has_momentum(optimizer: Any) -> bool:
    """SGD and RMSprop with momentum; Adam and its kin, whose momentum is the first of the betas."""
    return any(g.get("momentum") or (g.get("betas") or (0,))[0] for g in optimizer.param_groups)


class LateRule:
    """@optimizers: called for the present ones, because schedulers change momentum."""

    def __init__(self, worker: Worker, optimizers: Callable[[], Iterable[Any]]):
        self._worker, self._optimizers = worker, optimizers
        self._warned = False
        # Of each round, the share of this rank's gradient that was late and is kept.
        self._kept: Deque[float] = collections.deque(maxlen=ROUNDS)

    def round_add(self, calls: List[Call]) -> None:
        """@calls: of the buckets that this rank computed in a round, none if it skipped the round.  Warns at most once."""
        late = sum(c.late_segments for c in calls)
        if self._warned or (late and self._worker.segment(0).flags & lib.SAINA_SEGMENT_DROP_LATE):
            late = 0
        self._kept.append(late / sum(c.segments for c in calls) if late else 0)
        if late and sum(self._kept) >= SHARE * ROUNDS:
            self._warn([type(o).__name__ for o in self._optimizers() if has_momentum(o)])

    def _warn(self, found: List[str]) -> None:
        if not found:
            return
        rounds = len(self._kept)
        self._warned = True
        job = self._worker.info().job
        warnings.warn(f"saina: of this rank's gradients in the last {rounds} rounds {sum(self._kept) / rounds:.0%} were late and are added to its next ones "
                      f"(late=residual), and {found[0]} has momentum: with both, training takes longer than if late gradients are "
                      f"dropped.  Drop them: `saina job set {job} policy POLICY,late=drop', with the POLICY that `saina job show {job}' "
                      "prints.  The data of a rank that is late in every round are lost then", stacklevel=3)
