# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""The factor of a loss: what it is multiplied by last, as a loss scale is.

A State gets gradients, and a hook of DistributedDataParallel runs when the first nodes of the loss are gone from autograd's
graph.  So torch.autograd.backward(), which Tensor.backward() calls, is wrapped: it looks at these nodes, and does what it did.
"""

import functools
import threading
from typing import Any, List, Optional

import torch

_original = torch.autograd.backward
#: Of each backward that runs, but for those within another one.
_running: List[float] = []
_here = threading.local()


def factor_of(loss: Any, gradient: Any = None) -> float:
    """The numbers that @loss is a product of, besides one tensor that needs a gradient."""
    factor, node = 1.0 if gradient is None else float(gradient), loss.grad_fn
    while node is not None and node.name() in ("MulBackward0", "DivBackward0"):
        # Saved is what the gradient of the other one needs.
        known = [n for n in (node._saved_self, node._saved_other) if n is not None]
        if len(known) != 1 or known[0].numel() != 1:
            break
        by = float(known[0])
        factor = factor * by if node.name() == "MulBackward0" else factor / by
        node = next((n for n, _ in node.next_functions if n is not None), None)
    return factor


def present() -> Optional[float]:
    """Of the backward that runs; None: not known."""
    return _running[0] if len(_running) == 1 else None


@functools.wraps(_original)
def _backward(tensors: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> Any:
    if getattr(_here, "inside", False) or not isinstance(tensors, torch.Tensor) or tensors.numel() != 1:
        return _original(tensors, grad_tensors, *args, **kwargs)
    try:
        factor = factor_of(tensors, grad_tensors)
    except Exception:       # its graph is gone, or another's: backward itself says what is wrong
        return _original(tensors, grad_tensors, *args, **kwargs)
    _here.inside = True
    _running.append(factor)
    try:
        return _original(tensors, grad_tensors, *args, **kwargs)
    finally:
        _running.remove(factor)
        _here.inside = False


def watch() -> None:
    """From now on present() knows.  Once for each process."""
    if torch.autograd.backward is _original:
        torch.autograd.backward = _backward
