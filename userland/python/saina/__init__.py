# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""All-reduce through a straggler-aware in-network aggregator: libsaina for Python.

    import numpy, saina

    with saina.join("10.190.0.1", job=0) as worker:
        gradient = numpy.zeros(1000, numpy.float32)
        call = worker.allreduce(gradient)       # in place: the mean over the workers that were counted
        print(call.count_min, "workers were counted")

numpy arrays and torch tensors are reduced in place, without a copy.  PyTorch's
DistributedDataParallel: see saina.torch.
"""

from ._lib import Error, version
from .records import Call, Info, Segment, Stats
from .worker import Request, Worker, join

__all__ = ["Call", "Error", "Info", "Request", "Segment", "Stats", "Worker", "join", "version"]
