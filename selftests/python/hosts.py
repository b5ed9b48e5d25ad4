#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One of the ranks of the test tree_torch.sh, which are on several hosts, each with an aggregator: hosts.py CASE..."""

import datetime
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

import saina
import saina.torch
from ranks import OUT, RANK, RANKS, close_to, digest, fails, loss_of, net, point, same_everywhere, train

STEPS = 12


def hooked(model, **how):
    state = saina.torch.State(timeout=120, join_timeout=60, **how)
    ddp = DDP(model, bucket_cap_mb=1)
    state.register(ddp)
    return ddp, state


def case_hook():
    """The hook: models of all ranks are the same, and Gloo's."""
    ddp, state = hooked(net())
    train(ddp, STEPS)
    gloo = DDP(net())
    train(gloo, STEPS)
    info, call = state.worker.info(), state.worker.segment(0)
    point((info.rank, info.ranks, info.depth) == (RANK, RANKS, 0 if RANK == 4 else 1) and info.workers < RANKS,
          "hook: the job's ranks are the process group's", str(info))
    point(call.weight == RANKS, "hook: a sum has all ranks of all hosts", str(call))
    point(close_to(ddp, gloo), "hook: the model is Gloo's")
    same, every = same_everywhere(ddp)
    point(same, "hook: all ranks have the same model, to the last bit", every)
    late = state.stragglers()
    point(sorted(s.rank for s in late) == list(range(RANKS)) and not any(s.missed for s in late) and all(s.seen for s in late),
          "hook: stragglers() has the ranks of all hosts", str(late))
    dist.barrier()
    state.close()


def case_mixed():
    """The last rank is a worker of the root's own job."""
    case_hook()


def case_broadcast():
    """Parameters of a rank of another host; sizes that differ at one."""
    for root in (0, RANKS - 1):
        model = net(RANK, 50)
        state = saina.torch.State(timeout=120, join_timeout=60)
        state.broadcast(model, root)
        want = net(root, 50)
        point(all(torch.equal(p, q) for p, q in zip(model.parameters(), want.parameters())), f"broadcast: of rank {root}, exact")
        fails(f"broadcast: sizes of rank {root} differ", "all workers must start the same sizes",
              lambda state=state, root=root: state.worker.agree([5 if RANK == root else 4]))
        dist.barrier()
        state.close()
        dist.barrier()


def case_wrong():
    """A rank that is none of the host's."""
    fails("a rank of another host", "is not here: job train has the ranks",
          lambda: saina.join(worker=(RANK + RANKS // 2) % RANKS, workers=RANKS, join_timeout=20))
    dist.barrier()


def case_dead():
    """The last rank ends without a word: the others raise an error that names it."""
    ddp, state = hooked(net(0, 100))
    try:
        train(ddp, 10**6, at=lambda step: os._exit(0) if RANK == RANKS - 1 and step == 5 else None)
    except Exception as e:
        point(f"rank {RANKS - 1} has left the job, or is dead" in str(e), "dead: the others raise an error that names the rank", str(e))
    state.close()


def case_continue():
    """.. or go on without it, with the same model."""
    ddp, state = hooked(net(0, 100), on_dead="continue")
    end = []

    def at(step):
        if RANK == RANKS - 1 and step == 5:
            os._exit(0)
        # by what all ranks have seen in the same rounds
        if state._absent and RANKS - 1 in state._absent._dead and not end:
            end.append(step + 5)
    for step in range(10**6):
        if end and step >= end[0]:
            break
        train(ddp, 1, at=lambda _, step=step: at(step))
    with open(f"{OUT}/digest-{RANK}", "w", encoding="ascii") as f:
        f.write(digest(ddp) + "\n")
    point(True, "continue: the others go on")
    state.close()
    os._exit(0)     # the process group has lost a rank


def case_backend():
    """init_process_group("saina"): sums and means, compared with Gloo's; DistributedDataParallel."""
    gloo = dist.new_group(backend="gloo")
    for n in (1, 352, 5000, 50000):
        for what, dtype in (("SUM", torch.float32), ("AVG", torch.float32), ("SUM", torch.int32)):
            x = torch.arange(n, dtype=torch.float64).mul(RANK + 1).remainder(1000).to(dtype)
            want = sum(torch.arange(n, dtype=torch.float64).mul(r + 1).remainder(1000) for r in range(RANKS))
            want = want / RANKS if what == "AVG" else want
            dist.all_reduce(x, getattr(dist.ReduceOp, what))
            point((x.double() - want).abs().max().item() <= 1e-6 * 1000 * RANKS, f"backend: {what} of {n} {str(dtype)[6:]}", str((x - want).abs().max()))
    ddp = DDP(net())
    train(ddp, STEPS)
    other = DDP(net(), process_group=gloo)
    train(other, STEPS)
    point(close_to(ddp, other), "backend: the model is Gloo's")
    same, every = same_everywhere(ddp, gloo)
    point(same, "backend: all ranks have the same model, to the last bit", every)
    rounds = dist.distributed_c10d._get_default_group()._sums._worker.stats().rounds
    point(rounds > STEPS, "backend: the sums went by the job", str(rounds))
    fails("backend: another tensor at one rank", "another tensor", lambda: dist.all_reduce(torch.ones(4 if RANK else 5)))


def case_back():
    """Each rank has a process group of its own; the last is killed, and gets its model from a rank of another host."""
    model, back = net(0, 100), f"{OUT}/back"
    ddp = DDP(model, bucket_cap_mb=1)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    last, second = RANK == RANKS - 1, os.path.exists(f"{OUT}/killed")
    state = saina.torch.State(ddp, opt, token="s3cret", worker=int(os.environ["LOCAL_RANK"]), timeout=120, join_timeout=60,
                              on_dead="continue", log=lambda line: print("#", line, flush=True))
    state.register(ddp)
    end = 10**9

    def step():
        opt.step()
        opt.zero_grad()
    for i in state.steps(10**9, step):
        if state.round >= end:
            break
        loss_of(ddp, i).backward()
        if last and not second and i == 5:
            with open(f"{OUT}/killed", "w", encoding="ascii"):
                pass
            os._exit(0)
        if last and second and not os.path.exists(back):
            # all see it before they are there
            with open(back + ".new", "w", encoding="ascii") as f:
                f.write(str(state.round + 300))
            os.rename(back + ".new", back)
        if end == 10**9 and os.path.exists(back):
            with open(back, encoding="ascii") as f:
                end = int(f.read())
    with open(f"{OUT}/digest-{RANK}", "w", encoding="ascii") as f:
        f.write(f"{state.round} {digest(model)}\n")
    point(state.fetched == (1 if last else 0), "back: the rank that came back got its model from another", str(state.fetched))
    state.close()


def main():
    torch.set_num_threads(1)
    for case in sys.argv[1:]:
        backend = "saina" if case == "backend" else "gloo"
        if backend == "saina":
            import saina.c10d  # noqa: F401
        if case == "back":
            dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        if not dist.is_initialized():
            dist.init_process_group(backend, timeout=datetime.timedelta(seconds=120))
        globals()["case_" + case]()


main()
