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
        computed = 0
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
        point(buffers_same(ddp), f"collectives, {what}: the buffers are the same after a round that rank 3 missed")
        dist.barrier()
        state.close()
        dist.barrier()


def fetch_in_forward(ddp, state, step, loss):
    """Rank 3 falls behind by more than the aggregator keeps, and the others wait between forward and backward until it has a model again."""
    rounds, fetched = 2 * state.worker.info().ring + 20, f"{OUT}/fetched-{os.environ['MASTER_PORT']}"
    for i in state.steps(rounds, step=step):
        x = loss(ddp, i)
        if RANK == 3:
            until(lambda i=i: i != 2 or state.behind >= rounds - 10)
            if state.fetched:
                with open(fetched, "w", encoding="ascii"):
                    pass
        else:
            until(lambda i=i: i != rounds - 3 or os.path.exists(fetched))
        x.backward()
    every = [None] * 4
    dist.all_gather_object(every, (state.fetched, state.round))
    point([n for n, _ in every] == [0, 0, 0, 1] and len({r for _, r in every}) == 1, "statistics: rank 3 has fetched the model", str(every))


def case_statistics():
    """Running statistics that DistributedDataParallel does not broadcast; rank 3 is behind, and loses rounds."""
    def model():
        torch.manual_seed(1)
        return torch.nn.Sequential(torch.nn.BatchNorm1d(64, momentum=0.3), torch.nn.Linear(64, 50), torch.nn.BatchNorm1d(50), torch.nn.Tanh(),
                                   torch.nn.BatchNorm1d(50, affine=False, momentum=None), torch.nn.Linear(50, 8))

    def loss(ddp, i):
        x, y = ranks.batch(i)
        # The channels have different scales.
        x[:, 7] = 1e4 + 1e3 * x[:, 7]
        x[:, 8] *= 1e-3
        return torch.nn.functional.cross_entropy(ddp(x), y)

    def train_alone(rounds, load=lambda ddp: None):
        """The means of the statistics of four ranks, each trained by itself, and by what the modules divide: differences in these units
        are errors of their output."""
        alone = DDP(model(), broadcast_buffers=False)
        load(alone)
        _, step = sgd(alone)
        for i in range(rounds):
            loss(alone, i).backward()
            step()
        want = [b.double() for b in alone.module.buffers()]
        for b in want:
            dist.all_reduce(b)
            b /= 4
        return want, [u for v in want[1::3] for u in ((v + 1e-5).sqrt(), v + 1e-5, 1)]

    def off(ddp, want, units):
        # Python's max() would drop a NaN.
        return torch.stack([((b.double() - w).abs() / u).max() for b, w, u in zip(ddp.module.buffers(), want, units)]).max().item()

    def load(ddp):
        norm = ddp.module[0]
        norm.running_var[3], norm.running_mean[7], norm.running_var[7] = 1e9, 1e4, 1e6

    ddp = DDP(model(), broadcast_buffers=False)
    state = new_state(BSP, model=ddp)
    ddp.register_comm_hook(state, saina.torch.allreduce_hook)
    load(ddp)
    loss(ddp, 0).backward()
    far = off(ddp, *train_alone(1, load))
    point(far < 1e-4, "statistics: a checkpoint that is loaded after State(model) is no change to be sent", str(far))
    dist.barrier()
    state.close()
    dist.barrier()
    for job, name in enumerate(NAMES):
        ddp = DDP(model(), broadcast_buffers=False)
        opt, step = sgd(ddp)
        state = new_state(job, model=ddp, optimizer=opt)
        ddp.register_comm_hook(state, saina.torch.allreduce_hook)
        if job == BSP:
            for i in state.steps(60, step=step):
                loss(ddp, i).backward()
            far = off(ddp, *train_alone(60))
            point(far < 1e-4, f"statistics, {name}: they are the means over the ranks", str(far))
        elif name.startswith("sfcd"):
            for i in state.steps(12, step=step):
                loss(ddp, i).backward()
        else:
            ranks.train_with_straggler(ddp, state, step, 12, loss)
            lost = [None] * 4
            dist.all_gather_object(lost, (state.lost, state.round))
            point(lost[3][0] > 0 and {r for _, r in lost} == {12}, f"statistics, {name}: rank 3 has lost rounds", str(lost))
        point(buffers_same(ddp) and all(b.isfinite().all() for b in ddp.module.buffers()), f"statistics, {name}: they are the same on all ranks",
              f"{[b.flatten()[:2].tolist() for b in ddp.module.buffers()]}")
        if job == FASTEST:
            fetch_in_forward(ddp, state, step, loss)
            point(buffers_same(ddp) and same_everywhere(ddp)[0], f"statistics, {name}: a rank that has fetched the model of one whose forward had "
                  "changed them has the same", f"{[b.flatten()[:2].tolist() for b in ddp.module.buffers()]}")
        # One rank's own, as its evaluation in training mode or a batch with an infinity leaves them.
        if RANK == 1:
            ddp.module[0].running_mean.fill_(float("nan"))
            ddp.module[2].running_var.add_(5)
        for i in range(2):
            loss(ddp, i).backward()
            step()
        dist.barrier()
        if RANK == 3:
            until(lambda state=state: not state.catch_up(step) and not state.behind, 20)
        point(buffers_same(ddp) and all(b.isfinite().all() for b in ddp.module.buffers()), f"statistics, {name}: what one rank alone has changed becomes "
              "the same again", f"{[b.flatten()[:2].tolist() for b in ddp.module.buffers()]}")
        dist.barrier()
        state.close()
        dist.barrier()


def case_stragglers():
    """stragglers() compared with what was planted: nobody is slow, one rank, or two by turns.  The second job decides without them."""
    wrong = []
    for job, name in ((BSP, "bsp"), (1, "timeout:1s,kmin=2")):
        for what, slow in (("nobody", {}), ("rank 2", {2: range(2, 12)}), ("ranks 1 and 3 by turns", {1: range(2, 12, 2), 3: range(3, 12, 2)})):
            with hooked(net(0, 50), job) as (ddp, state):
                masks, waits = [], []
                for i in range(12):
                    x = loss_of(ddp, i)
                    # The slow ones are later than all others where all wait, and else than the decision.
                    begins = f"{OUT}/begins-{os.environ['MASTER_PORT']}-{job}-{len(what)}-{i}-"
                    if i in slow.get(RANK, ()):
                        others = [r for r in range(4) if i not in slow.get(r, ())]
                        until(state.worker.decided if job != BSP else lambda: all(os.path.exists(f"{begins}{r}") for r in others))
                        time.sleep(0.3 if job == BSP else 0)
                    else:
                        with open(f"{begins}{RANK}", "w", encoding="ascii"):
                            pass
                    began = time.monotonic()
                    x.backward()
                    masks.append(state.worker.segment(0).mask)
                    waits.append(state._preamble._wait_us)
                    longest = (time.monotonic() - began) * 1e6 + 1
                    wrong += [(waits[-1], longest)] if job == BSP and not 0 < waits[-1] <= longest else []
                found = state.stragglers()
                of = {s.rank: s for s in found}
                # libsaina knows of each round who was counted.
                missed = [sum(not m >> r & 1 for m in masks) for r in range(4)]
                text = f"stragglers, {name}, {what}"
                point([of[r].missed for r in range(4)] == missed and all(s.of == 12 for s in found), f"{text}: who missed how many rounds",
                      f"{missed} {found}")
                if job == BSP:
                    point(missed == [0] * 4, f"{text}: nobody misses a round", str(missed))
                else:
                    point(all(missed[r] >= len(slow[r]) for r in slow) and {s.rank for s in found[:len(slow)]} == set(slow),
                          f"{text}: they have missed their rounds, and come first", str(found))
                if job == BSP:
                    every = [None] * 4
                    dist.all_gather_object(every, waits)
                    # Late is who waits less than another rank.  The last round is known with the next one.
                    late = [[max(r) - us for us in r] for r in list(zip(*every))[:-1]]
                    want = [(sum(us) / 11000, max(us) / 1000, sum(late[n][r] == max(late[n]) for n in range(11))) for r, us in enumerate(zip(*late))]
                    point(all(abs(of[r].late_ms - want[r][0]) < 1e-6 and of[r].worst_ms == want[r][1] and of[r].last <= want[r][2] for r in range(4)) and
                          sum(s.last for s in found) == 11, f"{text}: how late on average and at worst, and who was last", f"{want} {found}")
                    point({s.rank for s in found[:len(slow)]} == set(slow), f"{text}: they come first", str(found))
    point(not wrong, "stragglers: no wait is longer than its round", str(wrong))


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
