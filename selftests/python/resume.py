#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One of four ranks of the test torch_restart.sh, with one process group: resume.py FORM.  The last rank is killed
three times: in rounds 10, 20 and 30 if CHECKPOINT is 1, else in round 10 of each start.  torchrun restarts all ranks, which
continue from the checkpoint of rank 0, if there is one."""

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

OUT, FORM, ROUNDS, KILLED = os.environ["OUT"], sys.argv[1], 40, 3
CHECKPOINT = f"{OUT}/checkpoint.pt" if os.environ["CHECKPOINT"] == "1" else ""

torch.set_num_threads(1)
dist.init_process_group("gloo")
RANK = dist.get_rank()
module = models.make("convolutions", 0)
training = models.Training(module, ROUNDS)
saved = torch.load(CHECKPOINT) if os.path.exists(CHECKPOINT) else None
if saved:
    module.load_state_dict(saved["model"])
    training.opt.load_state_dict(saved["optimizer"])
    training.scheduler.load_state_dict(saved["scheduler"])
training.ddp = model = DDP(module)
state = saina.torch.State(model, training.opt, extra=[training.scheduler], token="s3cret", join_timeout=60)
if saved:
    state.load_state_dict(saved["state"])
model.register_comm_hook(state, saina.torch.allreduce_hook)
first = state.round


def step():
    training.step()
    if RANK == 0 and CHECKPOINT and state.round % 4 == 0:
        torch.save({"model": module.state_dict(), "optimizer": training.opt.state_dict(),
                    "scheduler": training.scheduler.state_dict(), "state": state.state_dict()}, CHECKPOINT + ".new")
        os.rename(CHECKPOINT + ".new", CHECKPOINT)


def killed():
    """How often the last rank was killed."""
    return len([f for f in os.listdir(OUT) if f.startswith("killed-")])


def body(i):
    if RANK == dist.get_world_size() - 1 and killed() < KILLED and i == 10 * (killed() + 1 if CHECKPOINT else 1):
        with open(f"{OUT}/killed-{killed()}", "w", encoding="ascii") as f:
            f.write(f"{i} {first}")
        os.kill(os.getpid(), signal.SIGKILL)
    x = models.loss(model, i, RANK)
    time.sleep(0.05)
    x.backward()


if FORM == "steps":
    for number in state.steps(ROUNDS, step=step):
        body(number)
else:
    while state.round < ROUNDS:
        body(state.round)
        step()
digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()[:16]
with open(f"{OUT}/digest-{RANK}", "w", encoding="ascii") as f:
    f.write(f"{digest} {state.round}\n")
print(f"rank {RANK}: killed {killed()} times, began with {first} steps, ended with {state.round}", flush=True)
dist.barrier()
state.close()
