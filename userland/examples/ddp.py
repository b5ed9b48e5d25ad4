#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""DistributedDataParallel over saina: an ordinary script for torchrun, but for the lines with "state".

    tools/quickstart/podman --workers 2 --elements auto --lend DIR -- python3 DIR/ddp.py

or by torchrun, with SAINA_AGGREGATOR, SAINA_JOB and SAINA_TOKEN in the environment.
"""

import hashlib

import saina.torch
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS = 200

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.set_num_threads(1)
torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
teacher = torch.randn(32, 1)

model = DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
state = saina.torch.State(model, optimizer)
model.register_comm_hook(state, saina.torch.allreduce_hook)

g = torch.Generator().manual_seed(100 + rank)		# each rank has data of its own


def update():
    """All that follows backward: also called for rounds that were decided without this rank."""
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


for step in state.steps(STEPS, step=update):
    x = torch.randn(64, 32, generator=g)
    loss = torch.nn.functional.mse_loss(model(x), torch.tanh(x @ teacher))
    loss.backward()
    if step % 50 == 0 or step == STEPS - 1:
        print(f"rank {rank}: step {step}, loss {loss.item():.4f}", flush=True)

digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()
print(f"rank {rank}: {dist.get_world_size()} ranks, model {digest[:16]}", flush=True)
dist.barrier()
state.close()
