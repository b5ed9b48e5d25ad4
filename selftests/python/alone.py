#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One of four ranks of the test torch_peers.sh, each with a process group and a torchrun of its own: alone.py MODEL FORM.

Rank 3 is killed three times, and torchrun starts it again: it gets model, optimizer and round from another rank.
"""

import hashlib
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

import models
import saina.torch

RANK, OUT, LIVES = int(os.environ["SAINA_RANK"]), os.environ["OUT"], 3
AGAIN = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
MODEL, FORM = sys.argv[1:]
ROUNDS, LATE = int(os.environ.get("ROUNDS", "40")), float(os.environ.get("LATE", "0.1"))
# Long enough for three starts of PyTorch in ROUNDS.
COMPUTE_S = 0.12

torch.set_num_threads(1)
dist.init_process_group("gloo")
model = DDP(models.make(MODEL, 0))
training = models.Training(model, ROUNDS)
state = saina.torch.State(model, training.opt, extra=[training.scheduler], token="s3cret", join_timeout=60, on_dead="continue")
model.register_comm_hook(state, saina.torch.allreduce_hook)


def end():
    """ROUNDS, or the round that rank 3 says when it has been started for the last time."""
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
            f.write(str(max(state.round + 50, ROUNDS)))
        os.rename(f"{OUT}/end.new", f"{OUT}/end")
    x = models.loss(model, (AGAIN << 16) + begun, RANK)
    time.sleep(COMPUTE_S + (LATE if RANK == 3 else 0))
    x.backward()


begun = 0
if FORM == "steps":
    for _ in state.steps(1 << 30, step=training.step):
        # Rounds that were lost, and applied by steps(), may have been the last ones.
        if state.round >= end():
            break
        body(begun)
        begun += 1
        # The round that ends now is the last.
        if state.round >= end():
            training.step()
            break
else:
    while state.round < end():
        body(begun)
        training.step()
        begun += 1

with open(f"{OUT}/digest-{RANK}.new", "w", encoding="ascii") as f:
    digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()[:16]
    f.write(f"{digest} {state.round}\n")
os.rename(f"{OUT}/digest-{RANK}.new", f"{OUT}/digest-{RANK}")
print(f"started {AGAIN + 1} times, fetched {state.fetched}, {state.round} rounds", flush=True)
try:
    good, why = models.within_noise(OUT, MODEL, [models.test_loss(model.module)])
    print(f"loss {'within' if good else 'above'} the noise of bsp: {why}", flush=True)
except FileNotFoundError:
    print("loss not compared: no training with bsp", flush=True)
while not all(os.path.exists(f"{OUT}/digest-{r}") for r in range(4)):
    time.sleep(0.1)
state.close()
