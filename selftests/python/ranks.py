# SPDX-License-Identifier: GPL-2.0-or-later
"""What the scripts of ranks in tests have in common: models, their data, and test points."""

import contextlib
import datetime
import hashlib
import itertools
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

import saina.torch

RANK = int(os.environ["RANK"])
RANKS = int(os.environ["WORLD_SIZE"])
OUT = os.environ["OUT"]
# Numbers of the trainings with a straggler, for names of files.
_numbers = itertools.count()


def point(good, what, why=""):
    print(f"{'' if good else 'not '}ok {what}" + (f" # {why}" if why and not good else ""), flush=True)


def net(seed=0, width=600):
    """More than two megabytes, so that there are buckets."""
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.Tanh(), torch.nn.Linear(width, width),
                               torch.nn.Tanh(), torch.nn.Linear(width, 300), torch.nn.Tanh(),
                               torch.nn.Linear(300, 8))


def batch(step, rank=RANK):
    g = torch.Generator().manual_seed(1000 * step + rank)
    x = torch.randn(16, 64, generator=g)
    return x, x[:, :8].argmax(1)


def loss_of(model, step):
    x, y = batch(step)
    return torch.nn.functional.cross_entropy(model(x), y)


def digest(model):
    return hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()[:16]


def same_everywhere(model, group=None):
    """(whether all ranks have the same parameters, their digests as text)"""
    all_of_them = [None] * dist.get_world_size(group)
    dist.all_gather_object(all_of_them, digest(model), group)
    return len(set(all_of_them)) == 1, str(all_of_them)


def new_state(job, **how):
    return saina.torch.State(job=job, **{"token": "s3cret", "join_timeout": 60, "timeout": 120, **how})


@contextlib.contextmanager
def hooked(model, job, **how):
    state = new_state(job)
    ddp = DDP(model, **how)
    state.register(ddp)
    dist.barrier()
    try:
        yield ddp, state
        # Not after an error: the others may be in another collective, and then it would hide the error.
        dist.barrier()
    finally:
        state.close()


def close_to(a, b):
    return all((p - q).abs().max().item() < 1e-4 for p, q in zip(a.parameters(), b.parameters()))


def train(ddp, steps, at=lambda step: None, of=range):
    opt = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    for step in of(steps):
        opt.zero_grad()
        at(step)
        loss_of(ddp, step).backward()
        opt.step()


def until(true, seconds=120):
    """Waits until true(), for @seconds at most."""
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.02)


def train_with_straggler(ddp, state, step, rounds, loss=loss_of, accumulate=1, late=4):
    """The last rank waits in round @late until the others are three rounds ahead, and they, four rounds after it, for it.  Returns
    how many batches this rank has computed."""
    straggler, computed = RANK == RANKS - 1, 0
    caught_up = f"{OUT}/caught-up-{os.environ['MASTER_PORT']}-{next(_numbers)}"
    for i in state.steps(rounds * accumulate, step=step, accumulate=accumulate):
        last = (i + 1) % accumulate == 0
        with contextlib.nullcontext() if last else ddp.no_sync():
            x = loss(ddp, i)
            if straggler and state.lost:
                with open(caught_up, "w", encoding="ascii"):
                    pass
            until(lambda: not straggler or not last or i // accumulate != late or state.behind >= 3)
            until(lambda: straggler or not last or i // accumulate != late + 4 or os.path.exists(caught_up))
            x.backward()
        computed += 1
    return computed


def fails(what, sentence, do):
    """A point: do() raises an error with @sentence in it."""
    try:
        do()
    except (RuntimeError, OSError, TypeError, ValueError) as e:
        point(sentence in str(e), f"{what}: a sentence", str(e))
    else:
        point(False, f"{what}: a sentence", "nothing")


def main(cases):
    """@cases: globals() of the script."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=120))
    for case in sys.argv[1:]:
        cases["case_" + case]()
