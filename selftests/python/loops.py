#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One of four ranks of the test torch_loops.sh: loops.py CASE...  Writes "ok TEXT" and "not ok TEXT".

Training loops as people write them: accumulation, buffers, evaluation on one rank, policies that the loop does not expect, and
ranks that die after they have been slow.
"""

import contextlib
import os
import time
import warnings

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

import ranks
import saina.torch
from ranks import OUT, RANK, close_to, fails, hooked, loss_of, net, new_state, point, same_everywhere, until

# Of the job with each number, in torch_loops.sh.
NAMES = ("bsp", "fastest:k=2,lead=none", "fastest:k=3,late=drop", "timeout:150ms,kmin=2", "sfcd:k0=2")
BSP, FASTEST = 0, 1


def sgd(ddp):
    opt = torch.optim.SGD(ddp.parameters(), lr=0.05)

    def step():
        opt.step()
        opt.zero_grad()
    return opt, step


def with_buffers():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 50), torch.nn.BatchNorm1d(50), torch.nn.Tanh(), torch.nn.Linear(50, 8))


def buffers_same(ddp):
    every = [None] * 4
    dist.all_gather_object(every, [b.tolist() for b in ddp.module.buffers()])
    return every.count(every[0]) == 4


def case_accumulate():
    """accumulate=4, with backwards that are all alike."""
    want = DDP(net(1, 100))
    _, step = sgd(want)
    for i in range(12):
        with want.no_sync() if i % 4 < 3 else contextlib.nullcontext():
            loss_of(want, i).backward()
        if i % 4 == 3:
            step()
    for job, name in enumerate(NAMES):
        with hooked(net(1, 100), job) as (ddp, state):
            calls = []
            _, step = sgd(ddp)

            def counted(step=step, calls=calls):
                calls.append(1)
                step()
            batches = 0
            for i in state.steps(12, step=counted, accumulate=4):
                loss_of(ddp, i).backward()
                batches += 1
            point(state.round == 3 and len(calls) == 3 and batches == 4 * (3 - state.lost),
                  f"accumulate, {name}: 12 batches are three steps without no_sync() in the loop", f"{state.round} {len(calls)} {batches}")
            point(same_everywhere(ddp)[0] and (job != BSP or close_to(ddp, want)),
                  f"accumulate, {name}: the models are the same{', and that of Gloo with no_sync()' if job == BSP else ''}")
            point(ddp.require_backward_grad_sync, f"accumulate, {name}: a backward after the loop has an all-reduce")
    ddp, state = DDP(net(1, 100)), new_state(BSP)
    ddp.register_comm_hook(state, saina.torch.allreduce_hook)
    fails("accumulate: a State without the model", "State(model, ..), by which steps() computes the others in no_sync()",
          lambda: [loss_of(ddp, i).backward() for i in state.steps(12, step=lambda: None, accumulate=4)])
    point(state.round == 1, "accumulate: a State without the model: the sentence comes in the first round", str(state.round))
    dist.barrier()
    state.close()


def warned(do):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        do()
    return [str(w.message) for w in said if "saina" in str(w.message)]


def case_collectives():
    """DistributedDataParallel has a collective of the process group in every step; rank 3 is behind."""
    for what, how, says in (("buffers", {}, "broadcast_buffers=False"), ("unused", {"find_unused_parameters": True}, "Leave it out"),
                            ("none", {"broadcast_buffers": False}, "")):
        ddp = DDP(with_buffers(), **how)
        opt, step = sgd(ddp)
        made = []
        said = warned(lambda: made.append(new_state(FASTEST, model=ddp, optimizer=opt)))
        state = made[0]
        point(len(said) == bool(says) and all(says in s for s in said), f"collectives, {what}: State(model) "
              f"{'warns, with what to do' if says else 'does not warn'}", str(said))
        point(not warned(lambda: state.register(ddp)), f"collectives, {what}: register() does not say it again")
        dist.barrier()
        computed, begun = 0, False
        for i in state.steps(12, step=step):
            x = loss_of(ddp, i)
            # Until rank 0 and another one are a round ahead: that much a broadcast lets them.
            until(lambda: RANK != 3 or i != 3 or state.behind >= (2 if what == "buffers" else 1))
            x.backward()
            computed += 1
        point(state.round == 12 and (not says or computed == 12), f"collectives, {what}: {'all' if says else '12'} rounds are "
              f"{'computed, none is skipped' if says else 'computed or applied'}", f"{state.round} {computed} {state.lost}")
        point(same_everywhere(ddp)[0], f"collectives, {what}: the models are the same")
        # DistributedDataParallel broadcasts buffers when the next forward begins.
        ddp.eval()
        with torch.no_grad():
            ddp(ranks.batch(0)[0])
        point(not says or buffers_same(ddp), f"collectives, {what}: the buffers are the same after a round that rank 3 missed")
        if not says:
            for b in ddp.module.buffers():
                dist.broadcast(b, 0)
            point(buffers_same(ddp), "collectives, none: what the warning names makes the buffers the same")
        dist.barrier()
        state.close()
        dist.barrier()


def case_evaluate():
    """Rank 0 alone evaluates its DistributedDataParallel, before the first step and then every third."""
    for job, name in enumerate(NAMES):
        for form in ("plain", "steps"):
            ddp = DDP(with_buffers())
            opt, step = sgd(ddp)
            state = new_state(job, model=ddp, optimizer=opt)
            ddp.register_comm_hook(state, saina.torch.allreduce_hook)

            def evaluate(i, ddp=ddp):
                if RANK == 0 and i % 3 == 0:
                    ddp.eval()
                    with torch.no_grad():
                        for _ in range(3):
                            loss_of(ddp, 1000 + i)
                    ddp.train()
            if form == "steps":
                evaluate(0)
                for i in state.steps(10, step=step):
                    evaluate(i)
                    loss_of(ddp, i).backward()
            else:
                for i in range(10):
                    evaluate(i)
                    loss_of(ddp, i).backward()
                    step()
            point(state.round == 10 and same_everywhere(ddp)[0], f"evaluate, {name}, {form}: all ranks train while rank 0 alone evaluates",
                  f"{state.round} {same_everywhere(ddp)[1]}")
            dist.barrier()
            state.close()
            dist.barrier()


def case_again():
    """All ranks begin anew in a job that has had rounds, and the last one joins when the others could have begun theirs."""
    for job, name in enumerate(NAMES):
        old = new_state(job)
        ddp = DDP(net(0, 50))
        old.register(ddp)
        for i in range(3):
            loss_of(ddp, i).backward()
        dist.barrier()
        if RANK:
            old.close()
        ddp = DDP(net(0, 50))
        opt, step = sgd(ddp)
        if not RANK:
            # The job runs on while it has a worker: no new set of workers begins.
            until(lambda: old.worker.info().active == 1)
        dist.barrier()
        if not RANK:
            until(lambda old=old: old.worker.info().active == 15)
            old.close()
            time.sleep(1)
        state = new_state(job, model=ddp, optimizer=opt, on_dead="continue")
        ddp.register_comm_hook(state, saina.torch.allreduce_hook)
        for i in state.steps(6, step=step):
            loss_of(ddp, i).backward()
        point(state.round == 6 and not state.fetched and same_everywhere(ddp)[0], f"again, {name}: ranks that join a running job one after another "
              "begin with the same round", f"{state.round} {state.fetched} {same_everywhere(ddp)[1]}")
        dist.barrier()
        state.close()
        dist.barrier()


def case_coded():
    """Policy coded: ranks that do not know which part of the data is theirs."""
    with hooked(net(0, 50), BSP) as (ddp, _):
        fails("coded: the first step of a loop that does not ask for its part", "state.worker.coded_part", lambda: loss_of(ddp, 0).backward())
    state = new_state(BSP)
    ddp = DDP(net(0, 50))
    ddp.register_comm_hook(state, saina.torch.allreduce_hook)
    state.broadcast(ddp.module)
    _, step = sgd(ddp)
    parts = set()
    for i in range(3):
        part, of = state.worker.coded_part
        parts.add((part, of))
        x, y = ranks.batch(i, part)
        torch.nn.functional.cross_entropy(ddp(x), y).backward()
        step()
    point(parts == {(RANK % 2, 2)} and same_everywhere(ddp)[0], "coded: a loop that computes its part trains", str(parts))
    dist.barrier()
    state.close()


def case_silent_dies():
    """Rank 2 computes no more, is named for that, and then dies; each of the others has another on_dead."""
    on_dead = {0: "raise", 1: None, 3: "continue"}.get(RANK)
    said, silent, dead = [], f"{OUT}/silent-{RANK}", "rank 2 has left the job, or is dead"
    state = new_state(BSP, log=said.append, on_dead=on_dead)
    ddp = DDP(net(0, 50))
    state.register(ddp)
    # In the second step all ranks agree on new buckets.
    for i in range(2):
        loss_of(ddp, i).backward()
    if RANK == 2:
        until(lambda: all(os.path.exists(f"{OUT}/silent-{r}") for r in (0, 1, 3)))
        os._exit(0)
    error, after, deadline = "", 0, time.monotonic() + 100
    while not error and after < 50 and time.monotonic() < deadline:
        try:
            loss_of(ddp, 0).backward()
        except (OSError, RuntimeError) as e:
            error = str(e)
        if not os.path.exists(silent) and any("rank 2 has been in no round since" in s for s in said):
            with open(silent, "w", encoding="ascii"):
                pass
        after += any(dead in s for s in said)
    if on_dead == "raise":
        point(dead in error and "ranks remain" in error, "silent_dies: on_dead=raise: backward raises when a rank dies that was in no round before",
              f"{error} {said}")
    else:
        point(sum(dead in s for s in said) == 1 and not error, f"silent_dies: on_dead={on_dead}: its death is said once", f"{error} {said}")
    state.close()
    with open(f"{OUT}/ended-{RANK}", "w", encoding="ascii"):
        pass
    until(lambda: all(os.path.exists(f"{OUT}/ended-{r}") for r in (0, 1, 3)))
    os._exit(0)         # the process group cannot be left well


ranks.main(globals())
