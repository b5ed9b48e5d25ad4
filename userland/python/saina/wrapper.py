# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""What DistributedDataParallel does besides the hook: collectives of the process group, and no_sync()."""

import contextlib
from typing import Any, ContextManager, NamedTuple, Optional

import torch


class Collective(NamedTuple):
    """A collective of the process group that a model has in every step: the option, what it does, and how to do without it."""
    option: str
    does: str
    instead: str


_UNUSED = Collective("find_unused_parameters=True", "an all-reduce of the process group in every step",
                     "Leave it out if every rank uses all parameters in every step")
_BUFFERS = Collective("broadcast_buffers=True of a model with buffers", "a broadcast of the process group in every step",
                      "DistributedDataParallel(net, broadcast_buffers=False) has none: then State(model) averages running statistics (BatchNorm) "
                      "in each round, and other buffers are each rank's own")


def broadcasts(model: Any) -> bool:
    """Does DistributedDataParallel @model broadcast buffers to other ranks before each forward?"""
    return model.broadcast_buffers and torch.distributed.get_world_size(model.process_group) > 1 and \
        any(n not in model.parameters_to_ignore for n, _ in model.module.named_buffers())


def collective_of(model: Any) -> Optional[Collective]:
    """The collective of the process group that DistributedDataParallel @model has in every step, with other ranks; None: it has
    none, or is another module."""
    if not isinstance(model, torch.nn.parallel.DistributedDataParallel) or torch.distributed.get_world_size(model.process_group) < 2:
        return None
    if model.find_unused_parameters and not getattr(model, "static_graph", False):
        return _UNUSED
    return _BUFFERS if broadcasts(model) else None


def without_sync(model: Any) -> ContextManager:
    """no_sync() of DistributedDataParallel @model; nothing for another module, or None."""
    return model.no_sync() if isinstance(model, torch.nn.parallel.DistributedDataParallel) else contextlib.nullcontext()


def has_group() -> bool:
    """Is this rank in a process group with other ranks?  These may be in a collective, which waits for this rank."""
    return torch.distributed.is_available() and torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1
