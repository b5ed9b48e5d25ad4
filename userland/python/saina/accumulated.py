# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""What the gradients of parameters had before a rank added to them.

A backward adds to p.grad, and DistributedDataParallel reduces the sum.  If p.grad has the result of an earlier round
(gradients are accumulated, with a round for each batch), that part is in a sum already: a residual must not keep it.
"""

import weakref
from typing import Any, Dict, Iterable, Optional, Tuple

import torch

from .buckets import Bucket


def _content(g: Optional[torch.Tensor]) -> Optional[torch.Tensor]:
    """@g, or None if it is 0: zero_grad() leaves it so, or None."""
    if g is None or g.layout != torch.strided:
        return None
    g = g.detach()
    return g if (g.numpy() if g.device.type == "cpu" else g).any() else None


class Accumulated:
    """p.grad of the parameters of a State, as it was when something was first added to it after the last round."""

    def __init__(self) -> None:
        self._watched: Dict[int, Tuple[Any, Any]] = {}
        self._had: Dict[int, Optional[torch.Tensor]] = {}

    def watch(self, parameters: Iterable[torch.Tensor]) -> None:
        for p in parameters:
            if self._watched.get(id(p), (lambda: None,))[0]() is not p:
                ref = weakref.ref(p)
                self._watched[id(p)] = ref, p.register_hook(_Hook(weakref.ref(self), ref))

    def unwatch(self) -> None:
        for _, handle in self._watched.values():
            handle.remove()
        self._watched = {}

    def begin(self, p: torch.Tensor) -> None:
        """@p is about to get a gradient, which is added to p.grad."""
        if id(p) not in self._had:
            had = _content(p.grad)
            self._had[id(p)] = None if had is None else had.clone()
        elif self._had[id(p)] is not None and _content(p.grad) is None:
            self._had[id(p)] = None     # what was added has been dropped

    def base(self, bucket: Bucket, data: torch.Tensor) -> Optional[torch.Tensor]:
        """The part of @data, the gradients of @bucket, that was there before this rank added to it; None: nothing."""
        found = None
        for (p, part), at in zip(bucket.views(data), bucket.offsets()):
            if self._watched.get(id(p), (lambda: None,))[0]() is not p:
                continue        # in the first round of a parameter nothing was in a sum
            had = self._had[id(p)] if id(p) in self._had else _content(part)
            if had is not None:
                found = torch.zeros_like(data) if found is None else found
                found.as_strided(part.shape, part.stride(), at).copy_(had)
        return found

    def clear(self) -> None:
        """A round is over, and its result is in the gradients."""
        self._had.clear()


class _Hook:
    """Of a parameter: called before something is added to its gradient."""

    def __init__(self, of: Any, parameter: Any):
        self._of, self._parameter = of, parameter

    def __call__(self, _gradient: torch.Tensor) -> None:
        of, p = self._of(), self._parameter()
        if of and p is not None:
            of.begin(p)
