# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Tensors of any kind as contiguous memory of the host, and back."""

import ctypes
from typing import Any, Callable, List, Optional, Tuple

import numpy
import torch

from ._buffer import with_data


def _plain(tensor: Any) -> torch.Tensor:
    """@tensor without gradient and subclass; shares its memory."""
    tensor = with_data(tensor)
    if tensor.device.type not in ("cpu", "cuda"):
        raise TypeError(f"this tensor is on {tensor.device}: saina reduces tensors on cpu and cuda; .cpu() makes a copy on cpu")
    with torch._C.DisableTorchFunction():   # type: ignore[attr-defined]
        plain: torch.Tensor = tensor.detach().as_subclass(torch.Tensor)
    if torch._debug_has_internal_overlap(plain) == 1:   # type: ignore[attr-defined]
        raise ValueError("elements of this tensor share memory (expand() makes such tensors), so that they cannot have a result each: "
                         ".contiguous() makes a copy in which they do not")
    return plain


def _in_place(tensor: torch.Tensor) -> bool:
    """Does its memory, as it is, have its values?"""
    return tensor.is_contiguous() and not tensor.is_neg() and not tensor.is_conj()


def _memory(tensor: torch.Tensor) -> numpy.ndarray:
    """The elements of a contiguous tensor of the host, which must be kept.  Not .numpy(), after which its storage cannot be resized."""
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    size = tensor.numel() * tensor.element_size()
    if not tensor.data_ptr() or storage.nbytes() < tensor.storage_offset() * tensor.element_size() + size:
        raise TypeError("it has no storage")
    return numpy.frombuffer((ctypes.c_char * size).from_address(tensor.data_ptr()), numpy.int32 if tensor.dtype == torch.int32 else numpy.float32)


def _copy_back(tensors: List[torch.Tensor], values: torch.Tensor) -> None:
    at = 0
    for t in tensors:
        # What was made in inference mode can be written only there.
        with torch.inference_mode(t.is_inference()), torch.no_grad():
            t.copy_(values[at:at + t.numel()].view(t.shape))
        at += t.numel()


def flatten(tensors: List[Any], wire: torch.dtype) -> Tuple[numpy.ndarray, Callable[[], Any]]:
    """(their elements as one array of type @wire; a function that copies it to them).  TypeError or ValueError for a tensor that has no
    memory, or whose memory is not its own."""
    try:
        plain = [_plain(t) for t in tensors]
        first = plain[0]
        if len(plain) == 1 and first.numel() and first.device.type == "cpu" and first.dtype == wire and _in_place(first):
            return _memory(first), lambda: _copy_back([], first)
        host = [t if t.device.type == "cpu" else torch.empty(t.shape, dtype=t.dtype, pin_memory=True).copy_(t) for t in plain]
        with torch.no_grad():
            flat = torch.cat([t.reshape(-1).to(wire) for t in host]).resolve_neg()
        return flat.numpy(), lambda: _copy_back(plain, flat)
    except RuntimeError as e:
        kinds = ", ".join(sorted({type(t).__name__ for t in tensors}))
        raise TypeError(f"this tensor ({kinds}) has no memory that saina can reduce: {e}") from None


def for_gloo(tensors: List[torch.Tensor], ranks: int) -> Tuple[List[torch.Tensor], Optional[Callable[[], Any]]]:
    """(tensors whose memory, which is all that Gloo looks at, has the values of @tensors; a function that copies them back, None: nothing
    to do).  @ranks: of whose sum the mean is wanted, of floating-point; 0: no mean."""
    if not ranks and all(t.layout != torch.strided or t.device.type != "cpu" or _in_place(t) for t in tensors):
        return tensors, None
    plain = [_plain(t) for t in tensors]
    with torch.no_grad():
        # Divided first, and in float64: no sum overflows.
        values = [t.to(torch.float64) / ranks if ranks else t for t in plain]
        copies = [t.clone(memory_format=torch.contiguous_format).resolve_neg().resolve_conj() for t in values]

    def finish() -> None:
        for t, c in zip(plain, copies):
            _copy_back([t], c.view(-1))
    return copies, finish
