#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One of four ranks of the test torch_states.sh: states.py CASE...  Writes "ok TEXT" and "not ok TEXT".

State, and what people do with it: copies, checkpoints, several States or models; ranks that end alone.
"""

import copy
import io
import os
import pickle
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

import ranks
import saina
import saina.torch
from ranks import OUT, RANK, close_to, fails, hooked, loss_of, net, new_state, point, same_everywhere, train, until

BSP, FASTEST, SECOND, TIMED = range(4)
NAMES = ("bsp", "fastest-k", "bsp", "time-out")


def step(*models):
    """One step of SGD, of one loss."""
    for m in models:
        m.zero_grad(set_to_none=False)
    sum(loss_of(m, 0) for m in models).backward()
    with torch.no_grad():
        for m in models:
            for p in m.parameters():
                p -= 0.05 * p.grad


def with_hooks_in_it(ddp, state):
    """PyTorch 2 keeps hook and state in the model, where copies and checkpoints find them."""
    ddp._comm_hooks = [(saina.torch.allreduce_hook, state)]


def case_copy():
    """copy.deepcopy() and torch.save() of a model with our hook."""
    net_copy = None
    with hooked(net(0, 100), BSP) as (ddp, state):
        with_hooks_in_it(ddp, state)
        train(ddp, 3)
        try:
            net_copy = copy.deepcopy(ddp)
            point(ranks.digest(net_copy) == ranks.digest(ddp), "copy: deepcopy() of a hooked model has its parameters")
        except Exception as e:
            point(False, "copy: deepcopy() of a hooked model has its parameters", f"{type(e).__name__}: {e}")
        file = io.BytesIO()
        try:
            torch.save(ddp, file)
            point(b"s3cret" not in file.getvalue(), "copy: torch.save() of a hooked model writes no token")
            file.seek(0)
            loaded = torch.load(file)._comm_hooks[0][1]
            point(loaded.round == 0 and loaded.behind == 0 and loaded.stragglers() == [],
                  "copy: torch.load() gives a State that has had no rounds")
        except Exception as e:
            point(False, "copy: torch.save() and torch.load() of a hooked model", f"{type(e).__name__}: {e}")
            return
        fails("copy: the worker of a State that was loaded", "has not joined the job yet", lambda: loaded.worker)
        fails("copy: a State that was loaded, while the one that was saved is in the job",
              "one State for each model", lambda: loaded.broadcast(net(0, 50)))
        train(ddp, 3)
        point(same_everywhere(ddp)[0] and state.round == 6, "copy: the model that was copied goes on")
        with_token = copy.deepcopy(state)
    # It has not joined; with the token it can.
    os.environ["SAINA_TOKEN"] = "s3cret"
    again = pickle.loads(pickle.dumps(state))
    del os.environ["SAINA_TOKEN"]
    for state, what in ((with_token, "deepcopy()"), (again, "pickle, with SAINA_TOKEN")):
        if state is again:
            os.environ["SAINA_TOKEN"] = "s3cret"
        ddp = DDP(net(0, 100))
        state.register(ddp)
        train(ddp, 3)
        point(state.worker.info().worker == RANK and same_everywhere(ddp)[0], f"copy: a State from {what} joins and trains")
        dist.barrier()
        state.close()


class Words(torch.nn.Module):
    def __init__(self, sparse):
        super().__init__()
        torch.manual_seed(4)
        self.table, self.out = torch.nn.Embedding(100, 64, sparse=sparse), torch.nn.Linear(64, 8)

    def forward(self, x):
        return self.out(self.table(x.argmax(1)))


def case_sparse():
    with hooked(Words(True), BSP) as (ddp, _):
        fails("sparse gradients", "sparse=False", lambda: loss_of(ddp, 0).backward())
    with hooked(Words(False), BSP) as (ddp, _):
        train(ddp, 3)
        point(same_everywhere(ddp)[0], "sparse: the same model with sparse=False trains")


def case_two_states():
    """Two models, each with a State, in one job, which is named or has its number."""
    with hooked(net(0, 50), "bsp") as (ddp, state):
        train(ddp, 2)
        for what, job, how in (("without a number", BSP, {}), ("of the same number", "bsp", {"worker": RANK})):
            second = new_state(job, **how)
            other = DDP(net(1, 50))
            second.register(other)
            fails(f"two States in one process for one job, {what}", "one State for each model", lambda: step(other))
        fails("two States, broadcast()", "one State for each model", lambda: new_state(BSP).broadcast(net(1, 50)))
        train(ddp, 2)
        point(same_everywhere(ddp)[0] and state.round == 4, "two States: the first one goes on")
        # A job for each.
        with hooked(net(1, 50), SECOND) as (other, _):
            for _ in range(3):
                step(ddp)
                step(other)
                step(ddp, other)
            point(same_everywhere(ddp)[0] and same_everywhere(other)[0], "two States of two jobs train two models")


def case_dropped():
    """A State without references leaves the job, even if it is in a reference cycle."""
    ddp = DDP(net(0, 50))
    ddp.circle = [ddp]
    new_state(BSP).register(ddp)
    train(ddp, 2)
    del ddp
    dist.barrier()
    with hooked(net(1, 50), BSP) as (ddp, _):
        train(ddp, 2)
        point(same_everywhere(ddp)[0], "a State without references is not in the way of the next")


def case_two_models():
    """One State for two models."""
    for job, policy in ((BSP, "bsp"), (FASTEST, "fastest-k")):
        with hooked(net(0, 50), job) as (ddp, state):
            step(ddp)
            other = DDP(net(1, 60))
            fails(f"one State for two models, {policy}: register()", "one State for each model", lambda: state.register(other))
            other = DDP(net(1, 60))
            other.register_comm_hook(state, saina.torch.allreduce_hook)
            fails(f"one State for two models, {policy}", "one State for each model", lambda: step(other))
            for _ in range(3):
                step(ddp)
            point(same_everywhere(ddp)[0] and state.round == 4, f"one State for two models, {policy}: the first one goes on")
            alike = DDP(net(1, 50))
            alike.register_comm_hook(state, saina.torch.allreduce_hook)
            fails(f"one State for two models alike, {policy}", "one State for each model", lambda: step(alike))
    for cap in (0.01, 25):
        with hooked(net(0, 50), BSP, bucket_cap_mb=cap) as (ddp, state):
            other = DDP(net(1, 60), bucket_cap_mb=cap)
            other.register_comm_hook(state, saina.torch.allreduce_hook)
            fails(f"one State for two models in one backward, buckets of {cap} MB", "one State for each model",
                  lambda: step(ddp, other))


def case_freeze():
    """The same model in another DistributedDataParallel, with fewer parameters, is no second model."""
    module = net(0, 50)
    with hooked(module, BSP) as (ddp, state):
        step(ddp)
        module[0].requires_grad_(False)
        again = DDP(module)
        again.register_comm_hook(state, saina.torch.allreduce_hook)
        for p in module[0].parameters():
            p.grad = torch.zeros_like(p)
        step(again)
        module[0].requires_grad_(True)
        ddp = DDP(module)
        state.register(ddp)
        step(ddp)
        point(same_everywhere(ddp)[0] and state.round == 3, "layers can be frozen, and thawed again")


def case_join():
    """DistributedDataParallel.join(): ranks with fewer batches take part with zeros."""
    def steps(ddp):
        opt = torch.optim.SGD(ddp.parameters(), lr=0.05)
        with ddp.join():
            for s in range(3 + RANK):
                opt.zero_grad()
                loss_of(ddp, s).backward()
                opt.step()
    with hooked(net(1, 100), BSP, bucket_cap_mb=0.1) as (ddp, state):
        steps(ddp)
        gloo = DDP(net(1, 100), bucket_cap_mb=0.1)
        steps(gloo)
        point(close_to(ddp, gloo) and state.round == 6, "join(): unequal numbers of batches: the model is that of Gloo")


def clip_and_momentum(ddp):
    opt = torch.optim.SGD(ddp.parameters(), lr=0.5, momentum=0.9)

    def update():
        torch.nn.utils.clip_grad_norm_(ddp.parameters(), 0.1)
        opt.step()
        opt.zero_grad()
    return update, 1


def adam_and_schedulers(ddp):
    opt = torch.optim.Adam(ddp.parameters(), lr=0.01)
    schedulers = [torch.optim.lr_scheduler.StepLR(opt, 3, 0.5), torch.optim.lr_scheduler.CosineAnnealingLR(opt, 14)]

    def update():
        opt.step()
        for s in schedulers:
            s.step()
        opt.zero_grad(set_to_none=True)
    return update, 1


def accumulation(ddp):
    """Two batches a round, and an exponential average of the parameters, which becomes the model at the end."""
    opt = torch.optim.SGD(ddp.parameters(), lr=0.2, momentum=0.9, nesterov=True)
    averages = [p.detach().clone() for p in ddp.parameters()]

    def update():
        torch.nn.utils.clip_grad_value_(ddp.parameters(), 0.01)
        opt.step()
        opt.zero_grad()
        for a, p in zip(averages, ddp.parameters()):
            a.lerp_(p.detach(), 0.1)
    update.averages = averages
    return update, 2


def case_update():
    """Rounds that were lost, where more than optimizer.step() follows backward."""
    for of in (clip_and_momentum, adam_and_schedulers, accumulation):
        with hooked(net(3, 100), FASTEST) as (ddp, state):
            update, accumulate = of(ddp)
            computed = ranks.train_with_straggler(ddp, state, update, 14, accumulate=accumulate)
            what = f"lost rounds, {of.__name__}"
            point(state.round == 14 and computed == accumulate * (14 - state.lost) and (RANK != 3 or state.lost),
                  f"{what}: the last rank has lost some, whose batches were dropped", f"{computed}, {state.lost} of {state.round}")
            point(same_everywhere(ddp)[0], f"{what}: steps() applies them as the others did")
            if of is accumulation:
                with torch.no_grad():
                    for a, p in zip(update.averages, ddp.parameters()):
                        p.copy_(a)
                point(same_everywhere(ddp)[0], f"{what}: the averages of the parameters are the same, too")


def case_update_raises():
    """A function for the step that raises: in a round that was lost, and in any other."""
    class Full(Exception):
        pass
    for lost, error in ((False, Full), (True, Full), (False, KeyboardInterrupt)):
        with hooked(net(3, 50), FASTEST) as (ddp, state):
            what = f"step() raises {error.__name__} in a round that was {'lost' if lost else 'computed'}"
            dist.barrier()
            if RANK != 3:
                for i in state.steps(5, step=lambda: None):
                    loss_of(ddp, i).backward()
                dist.barrier()
                continue
            raised, after = "", ""
            calls = []

            def update():
                calls.append(state.round)
                # DDP rebuilds its buckets in the second step.
                if len(calls) == (3 if lost else 2):
                    raise error("no space")
            try:
                for i in state.steps(5, step=update):
                    x = loss_of(ddp, i)
                    until(lambda: not lost or i != 1 or state.behind >= 2)
                    x.backward()
            except (Full, KeyboardInterrupt, OSError, RuntimeError) as e:
                raised = f"{type(e).__name__}: {e}"
            try:
                loss_of(ddp, 0).backward()
            except (OSError, RuntimeError) as e:
                after = str(e)
            point("no space" in raised and (("step() raised" in raised) == lost) and f"step() raised {error.__name__} (no space)" in after and
                  not state._in_step, f"{what}: the loop ends with it, and later ones with a sentence", f"{raised}; {after}")
            dist.barrier()
    fails("steps(accumulate=0) is refused", "a round has one batch or more",
          lambda: new_state(FASTEST).steps(5, step=lambda: None, accumulate=0))


def case_mistakes():
    """Mistakes in the use of State, each of which raises a sentence."""
    ddp = DDP(net(0, 50))
    opt = torch.optim.SGD(ddp.parameters(), lr=0.05)
    fails("mistakes: State(optimizer, model)", "the first is the model (DistributedDataParallel), not SGD",
          lambda: new_state(BSP, model=opt, optimizer=ddp))
    fails("mistakes: extra=scheduler", "extra=[scheduler]", lambda: new_state(BSP, extra=torch.optim.lr_scheduler.StepLR(opt, 3)))
    state = new_state(BSP)
    fails("mistakes: register() of a module", "not Sequential", lambda: state.register(ddp.module))
    fails("mistakes: the model's state_dict()", "State.state_dict(), {\"rounds\": N}, not this OrderedDict",
          lambda: state.load_state_dict(ddp.state_dict()))
    without = DDP(net(0, 50))
    without.register_comm_hook(None, saina.torch.allreduce_hook)
    fails("mistakes: the hook without a State", "takes a saina.torch.State, not NoneType", lambda: loss_of(without, 0).backward())
    fails("mistakes: step=optimizer.step()", "without parentheses", lambda: state.steps(3, step=opt.step()))
    for what, accumulate in (("", 1), (", with accumulate=3", 3)):
        fails(f"mistakes: the hook is not registered{what}", f"{accumulate} batches of steps() had no backward",
              lambda: [loss_of(ddp, i).backward() for i in state.steps(4, step=opt.step, accumulate=accumulate)])


def named(lines, pattern):
    return any(pattern in line for line in lines)


def case_left():
    """Rank 2 leaves after three steps: the others go on, and say so."""
    said = []
    state = new_state(BSP, log=said.append, on_dead="continue")
    ddp = DDP(net(0, 50))
    state.register(ddp)
    rest = dist.new_group([0, 1, 3])
    train(ddp, 3)
    if RANK == 2:
        state.close()
    else:
        done = torch.zeros(1)
        deadline = time.monotonic() + 100
        while not done and time.monotonic() < deadline:
            time.sleep(0.05)
            step(ddp)
            done[0] = named(said, "rank 2 has left")
            dist.all_reduce(done, dist.ReduceOp.MIN, group=rest)
        point(named(said, "rank 2 has left the job, or is dead, since round 3: 3 of 4 ranks go on"),
              "left: rank 2, which left after three rounds, is named by the others, with the round and how many go on", str(said))
        point(sum("rank 2 has" in line for line in said) == 1 and sum("rank 2 is missing" in line for line in said) <= 1,
              "left: it is named once by the State, and by libsaina", str(said))
        point(same_everywhere(ddp, rest)[0] and state.stragglers()[0][:1] == (2,) and state.stragglers()[0].seen == 2,
              "left: the others go on alike, stragglers() has its last round", str(state.stragglers()))
        table = str(state.stragglers()).splitlines()
        point(table[0].split() == ["rank", "late", "ms", "worst", "ms", "came", "last", "missed", "seen", "in", "round"] and
              len(table) == 5 and table[1].split()[-4:] == [str(state.stragglers()[0].missed), "of", str(state.round), "2"],
              "stragglers: str() is a table with counts per round and milliseconds", "; ".join(table))
    dist.barrier()
    state.close()


def case_early():
    """Ranks end one after another, each after more steps: with bsp the rest raises a sentence."""
    state = new_state(BSP)
    ddp = DDP(net(0, 50))
    state.register(ddp)
    error = ""
    try:
        train(ddp, 3 + RANK)
    except (OSError, RuntimeError) as e:
        error = str(e)
    steps = state.round
    state.close()
    ends = [None] * 4
    dist.all_gather_object(ends, (steps, error))
    point(ends[0] == (3, "") and all("of 4 ranks" in e and "would go on" in e for _, e in ends[1:]),
          "early: ranks that have more steps than others end with a sentence", str(ends))


def case_left_raises():
    """Rank 2 leaves after three steps: with bsp the others end with a sentence, with fastest-k and time-outs they go on."""
    for job, on_dead, raises in ((BSP, None, True), (FASTEST, None, False), (FASTEST, "raise", True), (TIMED, None, False)):
        said = []
        what = f"left: {NAMES[job]}, on_dead={on_dead}"
        state = new_state(job, log=said.append, on_dead=on_dead)
        ddp = DDP(net(0, 50))
        state.register(ddp)
        rest = dist.new_group([0, 1, 3])
        train(ddp, 3)
        # A round without a straggler, so that rank 2 is not one.
        dist.barrier()
        if RANK == 2:
            state.close()
        dist.barrier()
        if RANK != 2:
            error, done = "", torch.zeros(1)
            deadline = time.monotonic() + 100
            while not done and time.monotonic() < deadline:
                try:
                    step(ddp)
                except (OSError, RuntimeError) as e:
                    error = str(e)
                # Whoever has raised takes no part any more: the others may not wait for it for ever.
                done[0] = bool(error) or named(said, "rank 2 has left")
                dist.all_reduce(done, dist.ReduceOp.MAX, group=rest)
            errors = [None] * 3
            dist.all_gather_object(errors, (error, said), group=rest)
            # "since round N", or "and took part in no round" if fastest-k never counted it
            text = "rank 2 has left the job, or is dead"
            if raises:
                point(any(text in e and "3 of 4 ranks remain" in e for e, _ in errors), f"{what}: backward raises a sentence", str(errors))
                fails(f"{what}, and every later one", text, lambda: saina.torch.allreduce_hook(state, None)) if error else None
            else:
                point(any(named(lines, text) for _, lines in errors) and not any(e for e, _ in errors), f"{what}: the others go on", str(errors))
        dist.barrier()
        state.close()
    fails('on_dead="ignore" is refused', 'allowed are None, "raise" and "continue"', lambda: new_state(BSP, on_dead="ignore"))


def case_left_behind():
    """k = 2: in each round one of the ranks 0 to 2 is late.  Rank 3 has the results when these have ended and left."""
    said = []
    state = new_state(BSP, log=said.append)
    ddp = DDP(net(0, 50))
    state.register(ddp)
    opt = torch.optim.SGD(ddp.parameters(), lr=0.05)
    dist.barrier()
    for i in range(7):
        loss = loss_of(ddp, i)
        # The second forward has a collective of the process group.
        if i > 1:
            until(lambda: state.worker.info().active == 8 if RANK == 3 else i % 3 != RANK or state.behind, 30)
        loss.backward()
        opt.step()
        opt.zero_grad()
    state.close()
    dist.barrier()
    same, why = same_everywhere(ddp)
    point(same, "left_behind: a rank that is behind has the same model as those that have ended", why)
    said = [line for line in said if RANK == 3 and "has left" in line or "again" in line]
    point(len(said) <= 1 and not any("again" in line for line in said),
          "left_behind: rounds of ranks that have left since are no sign that they left before", str(said))


def case_steps():
    """Policy ssp."""
    state = new_state(BSP)
    ddp = DDP(net(0, 50))
    state.register(ddp)
    dist.barrier()
    fails("steps: a policy under which the ranks' models differ", "has steps (ssp, asp, grouped)", lambda: loss_of(ddp, 0).backward())
    state.close()
    dist.barrier()


def case_differ():
    """The model of rank 2 changes by one bit."""
    for job, last in ((BSP, 15), (FASTEST, 15)):
        said = []
        state = new_state(job, log=said.append, on_dead="continue")
        ddp = DDP(net(0, 50))
        state.register(ddp)
        rest = dist.new_group([0, 1, 3])
        opt = torch.optim.SGD(ddp.parameters(), lr=0.05)
        what = f"differ: {NAMES[job]}"
        error, steps = "", 0
        try:
            for i in range(last + 2):
                opt.zero_grad()
                x = loss_of(ddp, i)
                until(lambda: RANK != 2 or job == BSP or i < 16 or state.behind)    # late, so that the others do not count it
                x.backward()
                opt.step()
                steps += 1
                if RANK == 2 and i == last - 1:
                    with torch.no_grad():
                        word = ddp.module[4].weight.view(torch.int32)
                        word[7, 7] ^= 1
        except (OSError, RuntimeError) as e:
            error = str(e)
        if RANK == 2:
            point("this rank (2) has other parameters than the other ranks before step 16 (round 16)" in error and steps == 16,
                  f"{what}: rank 2 raises a sentence with its number and the step", f"{steps} {error}")
        else:
            point(not error and steps == last + 2 and same_everywhere(ddp, rest)[0], f"{what}: the others go on", f"{steps} {error}")
            if job == BSP:
                point(named(said, "rank 2 has other parameters than the other ranks before step 16"),
                      f"{what}: they name rank 2", str(said))
        dist.barrier()
        state.close()
    # From the beginning; and two against two.
    with hooked(net(0, 50), BSP) as (ddp, _):
        with torch.no_grad():
            if RANK >= 2:
                ddp.module[0].bias += 1
        fails("differ: two and two", "ranks 0, 1, 2, 3 have different parameters before step 2",
              lambda: train(ddp, 3))


def case_alone():
    """Rank 2 computes no more after three steps, but is alive: the others do not wait for ever."""
    said = []
    state = new_state(BSP, log=said.append, round_timeout=20)
    ddp = DDP(net(0, 50))
    state.register(ddp)
    train(ddp, 3)
    if RANK == 2:
        until(lambda: all(os.path.exists(f"{OUT}/alone-{r}") for r in (0, 1, 3)))
    else:
        fails("alone: a rank that computes no more ends the backward of the others",
              "round 3 has waited 20 s for rank 2, which last took part in round 2", lambda: step(ddp))
        point(named(said, "round 3 waits for rank 2, which last took part in round 2"),
              "alone: it is named before, in the log", str(said))
        fails("alone: and every later one", "for rank 2, which last took part in round 2", lambda: saina.torch.allreduce_hook(state, None))
        with open(f"{OUT}/alone-{RANK}", "w", encoding="ascii"):
            pass
    dist.barrier()
    state.close()


def case_unknown():
    """stragglers() before the first round and after one."""
    with hooked(net(0, 50), BSP) as (ddp, state):
        point(str(state.stragglers()) == "rank  late ms  worst ms  came last  missed  seen in round",
              "stragglers: before the first round there are none", str(state.stragglers()))
        train(ddp, 1)
        found = state.stragglers()
        point(all(s.late_ms is None and s.worst_ms is None and s.seen == 0 for s in found) and
              str(found).splitlines()[1].split() == ["0", "-", "-", "-", "0", "of", "1", "0"],
              "stragglers: after one round the lateness is None", str(found))


def case_silent():
    """Under fastest-k nobody waits for rank 2, which computes no more."""
    said = []
    state = new_state(FASTEST, log=said.append)
    ddp = DDP(net(0, 50))
    state.register(ddp)
    rest = dist.new_group([0, 1, 3])
    # In the second step all ranks agree on new buckets.
    step(ddp)
    step(ddp)
    dist.barrier()
    if RANK != 2:
        for _ in range(4 * state.worker.info().ring):
            step(ddp)
            dist.barrier(rest)
        point(named(said, "rank 2 has been in no round since"), "silent: rank 2 is named by the others", str(said))
    dist.barrier()
    state.close()


ranks.main(globals())
