# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Running statistics (of BatchNorm and its kin), the same on all ranks after each round, without a collective of the process group.

In each round each rank says by how much its forwards have changed its own, and every rank, also one that was late or has not
computed the round, adds the mean of the ranks that were counted to those that all had before.  What is late is dropped: a later
forward has newer statistics.
"""

from typing import Any, Dict, List, NamedTuple, Optional

import torch

from .worker import Request, Worker
from .wrapper import broadcasts

#: Statistics of a module, in their order.
_NAMES = ("running_mean", "running_var", "num_batches_tracked")


class _Norm(NamedTuple):
    """A module, what the names of its statistics begin with (it may have several places in the model), and those that all ranks
    had after the last round."""
    prefixes: List[str]
    module: Any
    common: List[torch.Tensor]

    def values(self) -> List[torch.Tensor]:
        return [getattr(self.module, n).detach() for n in _NAMES]

    def units(self) -> List[Any]:
        """By which changes are sent: the channels of a block may have any scale, and share one.  The module divides by the
        square root of the variance and eps, so errors in this unit are errors of its output."""
        variance = self.common[1].double() + self.module.eps
        return [variance.sqrt(), variance, 1.0]


class Statistics:
    """Those of the modules of @model, a DistributedDataParallel that does not broadcast them; of none, if it does or is another module."""

    def __init__(self, model: Any):
        self._norms: List[_Norm] = []
        self._sent = torch.zeros(0)
        self._begun = False
        if isinstance(model, torch.nn.parallel.DistributedDataParallel) and not broadcasts(model):
            found: Dict[Any, _Norm] = {}
            for name, module in model.module.named_modules(remove_duplicate=False):
                prefix = name and name + "."
                if isinstance(module, torch.nn.modules.batchnorm._NormBase) and all(
                        getattr(module, n, None) is not None and prefix + n not in model.parameters_to_ignore for n in _NAMES):
                    found.setdefault(module, _Norm([], module, [])).prefixes.append(prefix)
            self._norms = list(found.values())
        self.take()
        #: elements of a round
        self.numel = sum(c.numel() for n in self._norms for c in n.common)

    def take(self) -> None:
        """The present ones are those of all ranks."""
        for n in self._norms:
            n.common[:] = [v.clone() for v in n.values()]

    def begin(self) -> None:
        """Before a forward.  A checkpoint may have been loaded until the first one: it is no change to be sent."""
        if not self._begun:
            self.take()
            self._begun = True

    def state(self) -> Dict[str, torch.Tensor]:
        """Those of all ranks, as the model's state_dict() names them."""
        return {p + s: c.clone() for n in self._norms for p in n.prefixes for s, c in zip(_NAMES, n.common)}

    def start(self, worker: Worker) -> Optional[Request]:
        """Begins their part of a round."""
        if not self._norms:
            return None
        parts = [((v.double() - c.double()) / u).reshape(-1) for n in self._norms for v, c, u in zip(n.values(), n.common, n.units())]
        # A batch with Inf or NaN must not spoil the statistics of all ranks for ever.
        self._sent = torch.cat(parts).nan_to_num_(0.0, 0.0, 0.0).float().cpu()
        return worker.start(self._sent, base=self._sent.clone())

    def apply(self) -> None:
        """The round is over.  The memory of the buffers is written as DistributedDataParallel does it between two steps: autograd does
        not count it as a change of what backward has saved."""
        at = 0
        for n in self._norms:
            for name, v, c, u in zip(_NAMES, n.values(), n.common, n.units()):
                change = self._sent[at:at + c.numel()].view(c.shape).to(c.device).double() * u
                at += c.numel()
                if c.is_floating_point():
                    c.copy_(c.double() + change)
                else:
                    c.add_(change.round().to(c.dtype))
                if name == "running_var":
                    c.clamp_(min=0)
                v.data.copy_(c)
