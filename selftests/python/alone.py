#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One of four ranks of the test torch_peers.sh, each with a process group and a torchrun of its own.

Rank 3 is killed three times, and torchrun starts it again: it gets model, optimizer and round from another rank.
"""

import hashlib
import os
import signal
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

import saina.torch

RANK, OUT, LIVES = int(os.environ["SAINA_RANK"]), os.environ["OUT"], 3
AGAIN = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
FORM = os.environ["FORM"]

torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(0)
model = DDP(torch.nn.Sequential(torch.nn.Linear(64, 50), torch.nn.Tanh(), torch.nn.Linear(50, 300), torch.nn.Tanh(),
                                torch.nn.Linear(300, 8)), bucket_cap_mb=0.03)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
state = saina.torch.State(model, optimizer, token="s3cret", join_timeout=60, on_dead="continue")
model.register_comm_hook(state, saina.torch.allreduce_hook)


def step():
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    optimizer.zero_grad()


def end():
    """The last round is that which rank 3 says when it has been started for the last time."""
    try:
        with open(f"{OUT}/end", encoding="ascii") as f:
            return int(f.read() or 1 << 30)
    except FileNotFoundError:
        return 1 << 30


def body(begun):
    if RANK == 3 and begun == 10:
        if AGAIN < LIVES:
            os.kill(os.getpid(), signal.SIGKILL)
        with open(f"{OUT}/end.new", "w", encoding="ascii") as f:
            f.write(str(state.round + 200))
        os.rename(f"{OUT}/end.new", f"{OUT}/end")
    g = torch.Generator().manual_seed(1000 * begun + RANK)
    x = torch.randn(16, 64, generator=g)
    time.sleep(0.02)
    torch.nn.functional.cross_entropy(model(x), x[:, :8].argmax(1)).backward()


begun = 0
if FORM == "steps":
    for _ in state.steps(1 << 30, step=step):
        body(begun)
        begun += 1
        # The round that ends now is the last.
        if state.round >= end():
            step()
            break
else:
    while state.round < end():
        body(begun)
        step()
        begun += 1

with open(f"{OUT}/digest-{RANK}.new", "w", encoding="ascii") as f:
    digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()[:16]
    f.write(f"{digest} {state.round}\n")
os.rename(f"{OUT}/digest-{RANK}.new", f"{OUT}/digest-{RANK}")
print(f"started {AGAIN + 1} times, fetched {state.fetched}", flush=True)
while not all(os.path.exists(f"{OUT}/digest-{r}") for r in range(4)):
    time.sleep(0.1)
state.close()
