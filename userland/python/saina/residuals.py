# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""What of a rank's gradients no round has had: it belongs to parameters, not to places in a bucket, and has a unit."""

import errno
import math
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy
import torch

from ._lib import Error
from .buckets import Bucket
from .records import whole
from .worker import Worker

_MOST = float(numpy.finfo(numpy.float32).max)


def unit(scale: float, scalers: List[Any]) -> float:
    """What gradients are divided by after backward.  Raises ValueError if it is no such number."""
    for s in scalers:
        scale *= s.get_scale()
    if not 0 < scale < math.inf:
        raise ValueError(f"gradients are to be divided by {scale} (State.scale, get_scale() of the scalers in extra): it must be finite and above 0")
    return scale


class Residuals:
    """@first: element at which the first bucket begins."""

    def __init__(self, worker: Worker, first: int):
        self._worker, self._first = worker, first
        self._unit = 0.0            # of what is kept; 0: of nothing yet
        self._factor: Optional[float] = None    # of the last loss; None: not known
        # Of parameters that are in no bucket now.
        self._parked: Dict[int, Tuple[torch.Tensor, torch.Tensor]] = {}

    def _at(self, layout: List[Bucket]) -> Iterator[Tuple[int, Bucket]]:
        """The first element of each bucket."""
        payload, at = self._worker.info().payload, self._first
        for b in layout:
            yield at, b
            at += whole(b.numel, payload)

    def _read(self, layout: List[Bucket]) -> Iterator[Tuple[int, Bucket, torch.Tensor]]:
        """The buckets of which something is kept."""
        for at, b in self._at(layout):
            kept = self._worker.residual(at, b.numel)
            if kept.any():
                yield at, b, torch.from_numpy(kept)

    def move(self, old: List[Bucket], new: List[Bucket]) -> None:
        """The layout changes from @old to @new, between rounds.  What is kept of parameters that are not in @new waits for
        a layout that has them."""
        for at, b, kept in list(self._read(old)):
            self._parked.update((id(p), (p, part)) for p, part in b.views(kept) if part.any())
            self._worker.set_residual(at, torch.zeros(b.numel))
        for at, b in self._at(new):
            mine = [(part, self._parked.pop(id(p))[1]) for p, part in b.views(torch.zeros(b.numel)) if id(p) in self._parked]
            if mine:
                kept = torch.zeros(b.numel)
                for part, had in mine:
                    kept.as_strided(part.shape, part.stride(), part.storage_offset()).copy_(had)
                self._worker.set_residual(at, kept)

    def check_factor(self, layout: List[Bucket], now: Optional[float]) -> None:
        """The loss of the next round has the factor @now; nothing says whether the gradients are divided by it after backward.  Raises Error
        (EINVAL) if something is kept of a loss whose factor is a power of two away, as loss scales change."""
        before, self._factor = self._factor, now or self._factor
        if not before or not now or before == now or math.frexp(now / before)[0] != 0.5:
            return
        if self._parked or any(True for _ in self._read(layout)):
            self._factor = before
            raise Error(errno.EINVAL, f"the loss is multiplied by {now:g}, and that of a late gradient of this rank, which is to be added now, by "
                                      f"{before:g}.  If this is a loss scale, by which the gradients are divided after backward, give the GradScaler to "
                                      "State(extra=[scaler]), or set state.scale to it before each backward; if not, set state.scale = 1 once")

    def use_unit(self, layout: List[Bucket], to: float) -> None:
        """The gradients of the next round are to be divided by @to: so is what is kept of earlier ones."""
        if self._unit and to != self._unit:
            factor = to / self._unit
            for at, _, kept in list(self._read(layout)):
                self._worker.set_residual(at, (kept * factor).clamp_(-_MOST, _MOST))
            for _, kept in self._parked.values():
                kept.mul_(factor).clamp_(-_MOST, _MOST)
        self._unit = to
