# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""The memory of arrays and tensors as libsaina requires it: contiguous int32 or float32."""

import functools
import sys
from typing import Any, Callable, NamedTuple, Optional, Tuple

import numpy

from ._lib import ffi, lib

_TYPES = {"int32": lib.SAINA_INT32, "float32": lib.SAINA_FLOAT32}


class Buffer(NamedTuple):
    """@keep: owner of the memory.  @finish: to be called when the result is in it; None: nothing to do."""
    pointer: Any
    n: int
    type: int
    keep: Any
    finish: Optional[Callable[[], Any]]


def is_tensor(x: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def with_data(x: Any) -> Any:
    """The tensor @x; ValueError if it has no data, or is not dense."""
    if x.device.type == "meta":
        raise ValueError("this tensor has no data (its device is meta)")
    layout = str(x.layout)[6:]
    if layout != "strided":
        raise ValueError(f"this tensor is not dense (its layout is {layout}): .to_dense() makes a dense copy; for gradients "
                         "make the layer with sparse=False (torch.nn.Embedding, EmbeddingBag)")
    return x


def _type(name: str, what: str) -> int:
    try:
        return _TYPES[name]
    except KeyError:
        raise TypeError(f"saina reduces int32 and float32; this {what} is of {name}") from None


def _of_array(x: numpy.ndarray) -> Buffer:
    kind = _type(x.dtype.name if x.dtype.isnative else x.dtype.str, "array")
    if not x.flags.c_contiguous:
        raise ValueError("this array is not contiguous (numpy.ascontiguousarray() makes a copy that is)")
    if not x.flags.writeable:
        raise ValueError("this array is read-only, and saina must write the result to it")
    if not x.size:
        raise ValueError("this array is empty: there is nothing to reduce")
    return Buffer(ffi.from_buffer("char[]", x, require_writable=True), x.size, kind, x, None)


@functools.lru_cache(maxsize=None)
def _of_torch(dtype: Any) -> int:
    return _type(str(dtype).replace("torch.", ""), "tensor")


def _of_tensor(x: Any) -> Buffer:
    import torch

    kind = _of_torch(x.dtype)
    x = with_data(x).detach()
    if not x.is_contiguous():
        raise ValueError("this tensor is not contiguous (.contiguous() makes a copy that is)")
    if not x.numel():
        raise ValueError("this tensor is empty: there is nothing to reduce")
    host, finish = x, None
    if x.device.type != "cpu":
        # Pinned memory, which the device can copy asynchronously.
        host = torch.empty(x.shape, dtype=x.dtype, pin_memory=torch.cuda.is_available())
        host.copy_(x)

        def finish() -> None:
            x.copy_(host)
    return Buffer(ffi.cast("void *", host.data_ptr()), x.numel(), kind, host, finish)


def buffer(x: Any) -> Buffer:
    """The Buffer of a numpy array or torch tensor.  TypeError or ValueError if it cannot be reduced."""
    if isinstance(x, numpy.ndarray):
        return _of_array(x)
    if is_tensor(x):
        return _of_tensor(x)
    raise TypeError(f"saina reduces numpy arrays and torch tensors, not {type(x).__name__}")


def content(x: Any) -> Tuple[bytes, Callable[[bytes], Any]]:
    """The bytes of the array or tensor @x, of any type, and a function that puts others in their place.  TypeError or
    ValueError if there are none, or they are not to be changed."""
    if is_tensor(x):
        import torch
        flat = with_data(x).detach().cpu().contiguous().reshape(-1)

        def put_tensor(data: bytes) -> None:
            with torch.no_grad():
                # frombuffer() refuses 0 bytes.
                x.copy_(flat if not data else torch.frombuffer(bytearray(data), dtype=torch.uint8).view(flat.dtype).reshape(x.shape))
        return flat.view(torch.uint8).numpy().tobytes(), put_tensor
    if not isinstance(x, numpy.ndarray):
        raise TypeError(f"saina broadcasts numpy arrays and torch tensors, not {type(x).__name__}")
    if x.dtype.hasobject:
        raise TypeError("this array is of Python objects: their bytes mean nothing in another process")
    if not x.flags.writeable:
        raise ValueError("this array is read-only, and broadcast() must write the root's values to it")

    def put_array(data: bytes) -> None:
        x[...] = numpy.frombuffer(data, x.dtype).reshape(x.shape)
    return x.tobytes(), put_array
