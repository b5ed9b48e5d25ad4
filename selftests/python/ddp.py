#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One of four ranks of the test torch.sh: ddp.py CASE...  Writes "ok TEXT" and "not ok TEXT"."""

import os
import signal
import time
import warnings

import numpy
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

import saina
import saina.torch
import ranks
from ranks import OUT, RANK, close_to, digest, fails, loss_of, net, point, same_everywhere, train, train_with_straggler

JOBS = {"bsp": 0, "fastest": 1, "small": 2, "bad": 3, "drop": 4, "auto": 5}


def hooked(model, job, **how):
    return ranks.hooked(model, JOBS[job], **how)


def case_same():
    """The same training by Gloo and by us, with several buckets."""
    for cap in (1, 25):
        with hooked(net(), "bsp", bucket_cap_mb=cap) as (ddp, state):
            train(ddp, 6)
            gloo = DDP(net(), bucket_cap_mb=cap)
            train(gloo, 6)
            point(close_to(ddp, gloo), f"same: buckets of {cap} MB: the model is that of Gloo to 1e-4")
            point(same_everywhere(ddp)[0], f"same: buckets of {cap} MB: all models are the same to the last bit")
            point(state.round == 6 and state.behind == 0 and state.stats().rounds == 6, "same: six rounds")
            if cap == 1:
                point(len(state._layout) > 1 and state._moved == 1, "same: there are several buckets, rebuilt once",
                      f"{len(state._layout)} {state._moved}")


def case_accumulate():
    """no_sync(): two batches on their own, then one with all."""
    def steps(ddp):
        opt = torch.optim.SGD(ddp.parameters(), lr=0.05)
        for step in range(0, 9, 3):
            opt.zero_grad()
            with ddp.no_sync():
                loss_of(ddp, step).backward()
                loss_of(ddp, step + 1).backward()
            loss_of(ddp, step + 2).backward()
            opt.step()
    with hooked(net(1), "bsp", bucket_cap_mb=1) as (ddp, state):
        steps(ddp)
        gloo = DDP(net(1), bucket_cap_mb=1)
        steps(gloo)
        point(close_to(ddp, gloo) and state.round == 3, "no_sync: accumulated gradients are those of Gloo, three rounds")
        point(same_everywhere(ddp)[0], "no_sync: all models are the same to the last bit")


class Branches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.a, self.b = torch.nn.Linear(64, 8), torch.nn.Linear(64, 8)
        self.which = 0

    def forward(self, x):
        return (self.a if self.which else self.b)(x)


def case_unused():
    """Parameters that some ranks do not use, in some steps none does."""
    def steps(ddp):
        opt = torch.optim.SGD(ddp.parameters(), lr=0.05)
        for step in range(6):
            ddp.module.which = step >= 4 or (step + RANK) % 2
            opt.zero_grad()
            loss_of(ddp, step).backward()
            opt.step()
    with hooked(Branches(), "bsp", find_unused_parameters=True) as (ddp, _):
        steps(ddp)
        gloo = DDP(Branches(), find_unused_parameters=True)
        steps(gloo)
        point(close_to(ddp, gloo), "unused parameters: the model is that of Gloo")
        point(same_everywhere(ddp)[0], "unused parameters: all models are the same to the last bit")


class Constant(torch.nn.Module):
    """The gradient of parameter i is (rank + 1) * 10 ** (i % 3 - 3), whatever the data is: not
    so large that anything is clipped."""
    def __init__(self):
        super().__init__()
        self.w = torch.nn.ParameterList(torch.nn.Parameter(torch.zeros(n)) for n in (500, 200000, 77, 150000, 3000, 90000))

    def forward(self, x):
        return sum((w * (RANK + 1) * 10.0 ** (i % 3 - 3)).sum() for i, w in enumerate(self.w)) + 0 * x.sum()


def masks(state, ddp):
    """Who was counted, for each element of each parameter."""
    payload = state.worker.info().payload
    found = []
    for p in ddp.module.w:
        first, n = state._places(state._layout)[id(p)]
        s = numpy.arange(first, first + n) // payload
        of = {i: state.worker.segment(int(i)).mask for i in set(s)}
        found.append(numpy.array([of[i] for i in s]))
    return found


def case_residual():
    """A rank misses the first step, then DDP rebuilds its buckets: what it owes goes to the same parameters."""
    store = dist.distributed_c10d._get_default_store()

    def wait_for_others(step):
        """However long they take."""
        store.wait([f"residual {step} {r}" for r in range(4) if r != RANK])
    with hooked(Constant(), "fastest", bucket_cap_mb=0.3) as (ddp, state):
        join = state._join

        def join_and_wait(parameters):
            join(parameters)
            wait_for_others(0)
        # the ranks join at the end of the first backward, and none goes on before all have
        if RANK == 3:
            state._join = join_and_wait
        owed = [numpy.zeros((4, p.numel())) for p in ddp.module.w]
        good, late = True, 0
        for step in range(3):
            for p in ddp.module.w:
                p.grad = None
            loss = ddp(torch.zeros(1))
            if step and RANK == (3, 1, 0)[step]:
                wait_for_others(step)
            loss.backward()
            store.set(f"residual {step} {RANK}", "")
            for i, (p, mask) in enumerate(zip(ddp.module.w, masks(state, ddp))):
                gave = owed[i] + numpy.array([[(r + 1) * 10.0 ** (i % 3 - 3)] for r in range(4)])
                counted = numpy.array([mask >> r & 1 for r in range(4)])
                want = (gave * counted).sum(0) / counted.sum(0)
                owed[i] = gave * (1 - counted)
                late += (1 - counted)[RANK].sum()
                good = good and numpy.allclose(p.grad.numpy(), want, rtol=1e-3, atol=1e-5)
        point(good, "residual: what was late is added to the same parameters, in rebuilt buckets")
        point(state._moved == 1, "residual: the buckets were rebuilt", str(state._moved))
        point(RANK != 3 or late, "residual: rank 3 was late", str(late))
        # Only what is owed is left.
        good = True
        for p, o in zip(ddp.module.w, owed):
            first, n = state._places(state._layout)[id(p)]
            good = good and numpy.allclose(state.worker.residual(first, n), o[RANK], rtol=1e-3, atol=1e-5)
        point(good, "residual: what is left is what was not counted")


def case_lost():
    """Rank 3 is slow: it applies the rounds that were decided without it."""
    lost("lost", 4)


def case_lost_at_first():
    """Rank 3 is slow in the first round, before DDP has rebuilt its buckets."""
    # With a process group for each rank, ranks rebuild their buckets without waiting for each other.
    lost("lost_at_first", 0, process_group=[dist.new_group([rank]) for rank in range(4)][RANK])


def lost(what, late, **how):
    with hooked(net(3), "fastest", bucket_cap_mb=1, **how) as (ddp, state):
        state.broadcast(ddp.module)     # joins, so that rank 3 sees how far the others are
        opt = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)

        def step():
            opt.step()
            opt.zero_grad()
        computed = train_with_straggler(ddp, state, step, 14, late=late)
        point(state.round == 14 and computed + state.lost == 14, f"{what}: fourteen rounds, computed or caught up",
              f"{computed} + {state.lost} of {state.round}")
        of_ranks = [None] * 4
        dist.all_gather_object(of_ranks, state.lost)
        point(of_ranks[3] > 0, f"{what}: the straggler has skipped rounds", str(of_ranks))
        point(same_everywhere(ddp)[0], f"{what}: all models are the same to the last bit")


def case_late_rule():
    """Rank 3 is late in every step, with each optimizer and late rule."""
    for job, momentum in (("fastest", 0.9), ("fastest", 0), ("drop", 0.9)):
        ddp = DDP(net(5, 100))
        opt = torch.optim.SGD(ddp.parameters(), lr=0.01, momentum=momentum)
        state = ranks.new_state(JOBS[job], model=ddp, optimizer=opt)
        state.register(ddp)
        dist.barrier()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for i in range(20):
                time.sleep(0.1 * (RANK == 3))
                opt.zero_grad()
                loss_of(ddp, i).backward()
                opt.step()
        said = [str(w.message) for w in said if "late=" in str(w.message)]
        late = state.stats().late_segments
        dist.barrier()
        state.close()
        want = job == "fastest" and momentum
        point(len(said) == bool(want and RANK == 3), f"late_rule: {job}, momentum {momentum}: {'rank 3, which is late, warns once' if want else 'no rank warns'}",
              str(said))
        point(RANK != 3 or late, f"late_rule: {job}, momentum {momentum}: rank 3 was late")
        point(not said or f"`saina job set {JOBS[job]} policy POLICY,late=drop'" in said[0], "late_rule: a warning says what to do", str(said))
        # The next one begins at the round of most ranks.
        dist.barrier()


def case_straggler():
    """bsp: stragglers() names the rank that is late."""
    with hooked(net(4, 100), "bsp") as (ddp, state):
        train(ddp, 8, lambda step: time.sleep(0.4 * (RANK == 2)))
        first = state.stragglers()[0]
        point(first.rank == 2 and first.late_ms > 100 and first.last > 3, "stragglers: rank 2 is named by every rank", str(first))


def case_broadcast():
    model = net(RANK, 100)
    state = saina.torch.State(job=JOBS["bsp"], token="s3cret", join_timeout=60)
    state.broadcast(model, 2)
    want = net(2, 100)
    wrong = [f"{name}: {(p != q).sum().item()} of {p.numel()} elements"
             for (name, p), q in zip(model.named_parameters(), want.parameters()) if (p != q).any()]
    point(digest(model) == digest(want), "broadcast: the parameters are those of rank 2",
          f"{digest(model)}, not {digest(want)}: {wrong}, round {state.worker.info().round}")
    dist.barrier()
    state.close()


def case_refuse():
    with hooked(net(0, 50).double(), "bad") as (ddp, state):
        fails("gradients of float64", "gradients of float64: saina reduces float32",
              lambda: ddp(torch.zeros(1, 64, dtype=torch.float64)).sum().backward())
    with hooked(net(), "small") as (ddp, state):
        fails("gradients larger than the job", "or `elements auto' holds its gradients", lambda: loss_of(ddp, 0).backward())
    # All get an error, none hangs.  (Without find_unused_parameters DDP itself makes the buckets alike.)
    with hooked(net(), "bad", bucket_cap_mb=0.1 if RANK == 1 else 25, find_unused_parameters=True) as (ddp, state):
        fails("other buckets on rank 1", "this rank (1)" if RANK == 1 else "rank 1 is about to reduce other buckets",
              lambda: loss_of(ddp, 0).backward())


def case_auto():
    """elements auto: the size that the first rank says is the one that is needed; with the sentence's size it works, too."""
    wide = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(40)])
    for name, model, how in (("1010 parameters", torch.nn.Linear(100, 10), {}), ("two buckets or more", net(), {"bucket_cap_mb": 1}),
                             ("many buckets", wide, {"bucket_cap_mb": 0.02}), ("unused parameters", wide, {"find_unused_parameters": True})):
        for early in (True, False):
            ddp = DDP(model, **how)
            state = ranks.new_state(JOBS["auto"], **({"model": ddp} if early else {}))
            state.register(ddp)
            inputs = torch.ones(4, next(model.parameters()).shape[1])
            for _ in range(4):
                ddp(inputs).sum().backward()
            info = state.worker.info()
            used = state._preamble.numel + sum(-(-b.numel // info.payload) * info.payload for b in state._layout)
            allowed = 1.05 * used + len(state._layout) * info.payload
            point(used <= info.elements <= allowed, f"auto: {name}, {'before' if early else 'in'} the first backward: as many elements as are needed, "
                  "and at most 5 % and a segment for each bucket more", f"{used} <= {info.elements} <= {allowed}, {len(state._layout)} buckets")
            # The rule of python.rst.
            rule = sum(p.numel() for p in model.parameters()) + 24 * info.workers + info.payload * (len(state._layout) + 1)
            point(used <= rule, f"auto: {name}: the rule for `elements' is enough", f"{used} > {rule}")
            dist.barrier()
            state.close()
            dist.barrier()


class Bucket:
    """As DDP hands it to the hook."""
    def __init__(self, index, of, parameter):
        self._index, self._of, self._parameters = index, of, [parameter]
        self._buffer = torch.zeros(parameter.numel())

    def index(self):
        return self._index

    def buffer(self):
        return self._buffer

    def parameters(self):
        return self._parameters

    def is_last(self):
        return self._index == self._of - 1


def case_order():
    """Buckets of the same sizes, in another order on rank 1."""
    model = torch.nn.Module()
    model.of = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(n)) for n in (600, 5000, 7)])
    order = list(model.of)[::-1] if RANK == 1 else list(model.of)
    with hooked(model, "bad") as (_, state):
        fails("buckets in another order on rank 1", "this rank (1)" if RANK == 1 else "rank 1 is about to reduce other buckets",
              lambda: [saina.torch.allreduce_hook(state, Bucket(i, 3, p)) for i, p in enumerate(order)])
        fails("a second worker of the same number", "(EBUSY)",
              lambda: saina.join(job=JOBS["bad"], worker=RANK, token="s3cret", join_timeout=10))


def finish(model, state):
    """Without the process group, which may be broken."""
    with open(f"{OUT}/digest-{RANK}", "w", encoding="ascii") as f:
        f.write(f"{digest(model)} {state.round}\n")
    print("finished", flush=True)


def case_killed():
    """Rank 3 is killed in its backward."""
    state = saina.torch.State(job=JOBS["bsp"], token="s3cret", join_timeout=60, on_dead="continue")
    ddp = DDP(net(), bucket_cap_mb=1)
    state.register(ddp)

    def at(step):
        if RANK == 3 and step == 3:
            ddp.module[2].weight.register_hook(lambda g: os.kill(os.getpid(), signal.SIGKILL))
    train(ddp, 8, at)
    finish(ddp, state)
    state.close()
    os._exit(0)         # the process group cannot be left well


def case_restart():
    """The agent is restarted meanwhile."""
    state = saina.torch.State(job=JOBS["bsp"], token="s3cret", join_timeout=60)
    ddp = DDP(net(), bucket_cap_mb=1)
    state.register(ddp)

    def at(step):
        print("step", step, flush=True)
        time.sleep(0.1)
    train(ddp, 30, at)
    finish(ddp, state)
    dist.barrier()
    state.close()


def case_torchrun():
    """Rank 2 dies, and torchrun starts all ranks again."""
    again = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    state = saina.torch.State(job=JOBS["bsp"], token="s3cret", join_timeout=60)
    ddp = DDP(net(), bucket_cap_mb=1)
    state.register(ddp)

    def at(step):
        print("step", step, "of", again, flush=True)
        if not os.path.exists(f"{OUT}/died") and RANK == 2 and step == 3:
            with open(f"{OUT}/died", "w", encoding="ascii"):
                pass
            os.kill(os.getpid(), signal.SIGKILL)
    train(ddp, 6, at)
    finish(ddp, state)
    dist.barrier()
    state.close()


ranks.main(globals())
