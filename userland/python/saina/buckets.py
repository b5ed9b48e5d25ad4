# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Buckets of gradients, and where the elements of each parameter lie in them."""

import zlib
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

import torch


class Bucket(NamedTuple):
    """The parameters of a bucket, in their order."""
    parameters: List[torch.Tensor]
    numel: int

    def shape(self) -> Tuple:
        return tuple(tuple(p.shape) for p in self.parameters)


class Started(NamedTuple):
    """A bucket of the present round: its gradients, and DDP's future for them.

    The future is None where DDP has no such bucket: in a round that is not computed, and in the layout of other ranks.
    """
    bucket: Bucket
    tensor: torch.Tensor
    future: Optional[torch.futures.Future]


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


def signature(layout: List[Bucket]) -> int:
    """A CRC-32, equal for layouts of the same shapes: ranks notice by it that theirs differ."""
    return zlib.crc32(repr([b.shape() for b in layout]).encode())


def places(layout: List[Bucket], at: int, payload: int) -> Dict[int, Tuple[int, int]]:
    """{id of a parameter: (first element, elements)}: the first bucket begins at element @at, each at a segment of @payload elements."""
    found = {}
    for b in layout:
        first = at
        for p in b.parameters:
            found[id(p)] = (first, p.numel())
            first += p.numel()
        at += -(-b.numel // payload) * payload
    return found


def set_gradients(started: List[Started]) -> None:
    """Copies the elements of the buckets @started to the gradients of their parameters."""
    with torch.no_grad():
        for s in started:
            at = 0
            for p in s.bucket.parameters:
                g = s.tensor[at:at + p.numel()].view_as(p)
                at += p.numel()
                if p.grad is None:
                    p.grad = g.to(p.device, copy=True)
                else:
                    p.grad.copy_(g)


def repack(source: List[Started], target: List[Started]) -> None:
    """Copies the elements of the parameters from the buckets @source to the buckets @target."""
    of = {}
    for s in source:
        at = 0
        for p in s.bucket.parameters:
            of[id(p)] = s.tensor[at:at + p.numel()]
            at += p.numel()
    for t in target:
        at = 0
        for p in t.bucket.parameters:
            if id(p) in of:
                t.tensor[at:at + p.numel()] = of[id(p)]
            at += p.numel()
        if t.future and not t.future.done():
            t.future.set_result(t.tensor)
