#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a State looks at in each round, without a job: running statistics (statistics.py), and what a loss is multiplied by (loss_factor.py).  TAP.

Skipped where python3 has no torch.
"""

import os
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.environ.get("SAINA_BUILD", TOP + "/build"), "python"), TOP + "/selftests/lib"]
os.environ.setdefault("SAINA_LIBRARY", os.path.join(os.environ.get("SAINA_BUILD", TOP + "/build"), "libsaina.so.0"))
try:
    import torch
except ImportError:
    print("1..0 # SKIP python3 has no torch")
    sys.exit(4)

# pylint: disable=wrong-import-position
from saina import loss_factor
from saina.statistics import Statistics
from saina.transfer import Transfer
from tap import Tap

tap = Tap("python_round: ")
point = tap.point


def statistics():
    """Those of a module that has two places in the model."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    norm = torch.nn.BatchNorm1d(3)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(norm, torch.nn.Linear(3, 3), norm), broadcast_buffers=False)
    transfer = Transfer([model])
    transfer.statistics = Statistics(model)
    point(transfer.statistics.numel == 7, "a module with two places in the model has its statistics once in a round", transfer.statistics.numel)
    norm.running_mean.fill_(7)
    copy = transfer.copy({})
    norm.running_mean.fill_(5)
    transfer.load(copy)
    point(not norm.running_mean.any(), "a copy in a round has the statistics that all ranks had before it, in each place of the module", norm.running_mean)
    torch.distributed.destroy_process_group()


def factors():
    """Of losses that end with products, with other operations, and with none."""
    w, x = torch.ones(1, requires_grad=True), torch.full((1,), 3.0)
    mean = (w * x).mean()
    for what, loss, gradient, want in (
            ("none", mean, None, 1), ("a number", mean * 1024, None, 1024), ("a tensor", torch.tensor(8.0) * mean, None, 8),
            ("a quotient", mean * 1024 / 4, None, 256), ("a gradient", mean * 2, torch.tensor(16.0), 32),
            ("one before a sum", mean * 1024 + 1, None, 1), ("a loss that needs a gradient", mean * mean, None, 1),
            ("no graph", torch.ones(()), None, 1)):
        found = loss_factor.factor_of(loss, gradient)
        point(found == want, f"the factor of a loss: {what}", f"{found} {want}")
    loss_factor.watch()
    seen = []
    w.register_hook(lambda g: seen.append(loss_factor.present()))
    ((w * x).sum() * 512).backward()
    point(seen == [512] and loss_factor.present() is None, "the factor of a loss is known while its backward runs", seen)
    spent = w.sum() * 2
    spent.backward()
    said = ""
    try:
        spent.backward()
    except RuntimeError as e:
        said = str(e)
    point("second time" in said and loss_factor.present() is None, "a second backward of a graph fails as without saina", said)


statistics()
factors()
tap.end()
