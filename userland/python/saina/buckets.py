# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Buckets of gradients, and where the elements of each parameter lie in them.

DistributedDataParallel lays a parameter out in its bucket as it lies in memory, by its strides, if it is dense there and
its elements do not overlap; others are contiguous.
"""

import errno
import weakref
import zlib
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

import torch

from ._lib import Error
from .membership import ONE_EACH
from .records import whole

Strides = Tuple[int, ...]


def _contiguous(shape: Tuple[int, ...]) -> Strides:
    found, size = [], 1
    for n in reversed(shape):
        found.append(size)
        size *= n
    return tuple(reversed(found))


def strides_of(p: torch.Tensor) -> Strides:
    """The strides of @p in its bucket; 0 for dimensions of one element, whose stride means nothing."""
    shape, strides, size = tuple(p.shape), tuple(p.stride()), 1
    for stride, n in sorted((s, n) for s, n in zip(strides, shape) if n != 1):
        if stride != size:
            strides = _contiguous(shape)
            break
        size *= n
    return tuple(s if n != 1 else 0 for n, s in zip(shape, strides))


class Bucket(NamedTuple):
    """The parameters of a bucket, in their order, and their strides in it."""
    parameters: List[torch.Tensor]
    strides: List[Strides]
    numel: int

    @staticmethod
    def of(parameters: List[torch.Tensor], numel: Optional[int] = None) -> "Bucket":
        return Bucket(parameters, [strides_of(p) for p in parameters], sum(p.numel() for p in parameters) if numel is None else numel)

    def views(self, data: torch.Tensor) -> Iterator[Tuple[torch.Tensor, torch.Tensor]]:
        """Each parameter and its part of @data, the elements of this bucket: of its shape."""
        for p, strides, at in zip(self.parameters, self.strides, self.offsets()):
            yield p, data.as_strided(p.shape, strides, data.storage_offset() + at)

    def offsets(self) -> Iterator[int]:
        at = 0
        for p in self.parameters:
            yield at
            at += p.numel()

    def shape(self) -> Tuple:
        return tuple((tuple(p.shape), s) for p, s in zip(self.parameters, self.strides))

    def same(self, other: "Bucket") -> bool:
        return len(self.parameters) == len(other.parameters) and self.strides == other.strides and \
            all(p is q for p, q in zip(self.parameters, other.parameters))


class Known:
    """The parameters of a State's model, as far as it has seen them."""

    def __init__(self) -> None:
        self._refs: Dict[int, Any] = {}

    def __contains__(self, p: torch.Tensor) -> bool:
        ref = self._refs.get(id(p))
        return ref is not None and ref() is p

    def add(self, parameters: Iterable[torch.Tensor]) -> None:
        self._refs.update((id(p), weakref.ref(p)) for p in parameters if p not in self)

    def check(self, parameters: Iterable[torch.Tensor]) -> None:
        """Raises Error (EINVAL) if @parameters are of another model.  Layers may be frozen and thawed, or be replaced."""
        if self._refs and not any(p in self for p in parameters):
            raise Error(errno.EINVAL, f"these gradients belong to another model than this State has had: {ONE_EACH}.  If layers are trained by "
                                      "turns, State(model) knows that they are of one model")


class Memory:
    """The memory of DDP's buckets in the last round that was computed: it is other memory when DDP has rebuilt its buckets, in
    its second forward, or is another DDP.

    rounds: computed since this DDP was made, 2 at most; in the second one the buckets are the final ones.
    """

    def __init__(self) -> None:
        # Kept, so that no other DDP gets this memory.
        self._buffers: List[torch.Tensor] = []
        self.rounds = 0

    def has(self, index: int, data: torch.Tensor) -> bool:
        return index < len(self._buffers) and data.data_ptr() == self._buffers[index].data_ptr()

    def computed(self, buffers: List[torch.Tensor]) -> None:
        """A round has been computed, in @buffers."""
        new = len(buffers) != len(self._buffers) or not all(self.has(i, b) for i, b in enumerate(buffers))
        self.rounds = 1 if new and self.rounds != 1 else 2
        self._buffers = buffers


class Started(NamedTuple):
    """A bucket of the present round: its gradients, and DDP's future for them.

    The future is None where DDP has no such bucket: in a round that is not computed, and in the layout of other ranks.
    base: the part of the gradients that earlier rounds have had already, or None.
    """
    bucket: Bucket
    tensor: torch.Tensor
    future: Optional[torch.futures.Future]
    base: Optional[torch.Tensor] = None


def most_buckets(parameters: Iterable[torch.Tensor], model: Any) -> int:
    """How many buckets DistributedDataParallel can make of @parameters, at most, whatever the order in which their gradients are
    computed.  @model: the DistributedDataParallel, or what has no bucket sizes: those are the default then, and there may be twice
    as many.

    A bucket is closed by the gradient with which it has its limit.  So each but the last has a gradient that is as large as
    the limit, or small ones that are so together; and the first bucket has a limit of its own.
    """
    sizes = [p.numel() * p.element_size() for p in parameters]
    first = torch.distributed._DEFAULT_FIRST_BUCKET_BYTES
    limit = max(getattr(model, "bucket_bytes_cap", 25 << 20), 1)
    # Since PyTorch 2.5 a bucket_cap_mb that is given is that of the first bucket, too.
    if not getattr(model, "bucket_bytes_cap_default", True):
        first = limit
    rest = sum(sizes) - first
    if rest <= 0:
        most = 1
    else:
        small = [s for s in sizes if s < limit]
        most = 1 + min(-(-rest // limit), len(sizes) - len(small) + sum(small) // limit + 1)
    return max(min(most if hasattr(model, "bucket_bytes_cap") else 2 * most, len(sizes)), 1)


def signature(layout: List[Bucket], statistics: int = 0) -> int:
    """A CRC-32, equal for layouts of the same shapes and strides, and as many elements of running statistics: ranks notice by it that
    theirs differ."""
    return zlib.crc32(repr([b.shape() for b in layout]).encode(), statistics)


def same_layout(a: List[Bucket], b: List[Bucket]) -> bool:
    return len(a) == len(b) and all(p.same(q) for p, q in zip(a, b))


def ids(layout: List[Bucket]) -> Set[int]:
    """Of the parameters."""
    return {id(p) for b in layout for p in b.parameters}


def places(layout: List[Bucket], at: int, payload: int) -> Dict[int, Tuple[int, int]]:
    """{id of a parameter: (first element, elements)}: the first bucket begins at element @at, each at a segment of @payload elements."""
    found = {}
    for b in layout:
        found.update((id(p), (at + offset, p.numel())) for p, offset in zip(b.parameters, b.offsets()))
        at += whole(b.numel, payload)
    return found


def set_gradients(started: List[Started]) -> None:
    """Copies the elements of the buckets @started to the gradients of their parameters."""
    with torch.no_grad():
        for s in started:
            for p, g in s.bucket.views(s.tensor):
                if p.grad is None:
                    # Laid out as autograd does it: sums over the gradients, such as norms, are the same at all ranks, to the bit.
                    p.grad = torch.empty_strided(p.shape, [s or 1 for s in strides_of(p)], dtype=p.dtype, device=p.device)
                p.grad.copy_(g)


def _copy(source: List[Started], target: List[Started], get: Any) -> None:
    of = {id(p): v for s in source if get(s) is not None for p, v in s.bucket.views(get(s))}
    for t in target:
        if get(t) is not None:
            for p, v in t.bucket.views(get(t)):
                if id(p) in of:
                    v.copy_(of[id(p)])


def repack(source: List[Started], target: List[Started]) -> None:
    """Copies the elements of the parameters from the buckets @source to the buckets @target."""
    _copy(source, target, lambda s: s.tensor)
    for t in target:
        if t.future and not t.future.done():
            t.future.set_result(t.tensor)


def repacked(source: List[Started], layout: List[Bucket]) -> List[Started]:
    """The gradients of the buckets @source in those of @layout."""
    base = any(s.base is not None for s in source)
    found = [Started(b, torch.zeros(b.numel), None, torch.zeros(b.numel) if base else None) for b in layout]
    repack(source, found)
    _copy(source, found, lambda s: s.base)
    return found
