#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One of three ranks of the test torch_gradients.sh: gradients.py CASE...  Writes "ok TEXT" and "not ok TEXT".

Which gradients a State contributes, keeps and applies: parameters of any memory layout, gradients that are accumulated
over rounds, a loss scale that changes, layers that are trained by turns.
"""

import contextlib

import numpy
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

import ranks
from ranks import RANK, RANKS, fails, new_state, point, same_everywhere, until

LOST = 9
# Numbers of the jobs; the first has a policy that waits for all.
JOBS = {"bsp": 0, "fastest": 1, "fastest,late=drop": 2, "timeout": 3, "timeout,late=drop": 4, "sfcd": 5}
SIZES = (500, 3000, 77, 700)


class Given(torch.nn.Module):
    """A model whose gradients are given: those of parameter i are self.give[i]."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.ParameterList(torch.nn.Parameter(torch.zeros(n)) for n in SIZES)
        self.give = [0.0] * len(SIZES)

    def forward(self, x):
        return sum((w * g).sum() for w, g in zip(self.w, self.give)) + 0 * x.sum()


class Expected:
    """What the gradients must be, by float64: of all ranks, what each one owes."""

    def __init__(self, model, state, drop):
        self.model, self.state, self.drop = model, state, drop
        self.owed = [numpy.zeros((RANKS, n)) for n in SIZES]
        self.sums = [numpy.zeros(n) for n in SIZES]
        self.late, self.wrong = 0, []

    def masks(self, p):
        payload = self.state.worker.info().payload
        first, n = self.state._places(self.state._layout)[id(p)]
        segments = numpy.arange(first, first + n) // payload
        of = {i: self.state.worker.segment(int(i)).mask for i in set(segments)}
        mask = numpy.array([of[i] for i in segments])
        return numpy.array([mask >> r & 1 for r in range(RANKS)])

    def round(self, gave, scale, what):
        """@gave: of each rank and parameter, without the scale.  Compares p.grad."""
        for i, p in enumerate(self.model.w):
            if not p.requires_grad:
                continue
            counted = self.masks(p)
            total = self.owed[i] + gave[:, i:i + 1]
            self.sums[i] += (total * counted).sum(0) / counted.sum(0)
            self.owed[i] = 0 * total if self.drop else total * (1 - counted)
            self.late += int((1 - counted)[RANK].sum())
            off = numpy.abs(p.grad.numpy() / scale - self.sums[i]).max()
            if off > 1e-5 * max(numpy.abs(self.sums[i]).max(), numpy.abs(total).max()):
                self.wrong.append(f"{what}, parameter {i}: {p.grad[0].item() / scale}, not {self.sums[i][0]}")

    def done(self, what, late=True):
        every = [None] * RANKS
        dist.all_gather_object(every, self.late)
        point(not self.wrong, f"{what}: the gradients are those of float64", f"{len(self.wrong)}: {'; '.join(self.wrong[:4])}")
        point(bool(sum(every)) == late, f"{what}: {'some were late' if late else 'none was late'}", str(every))


@contextlib.contextmanager
def trial(policy, **how):
    model = Given()
    state = new_state(JOBS[policy], **how)
    yield model, state, Expected(model, state, "drop" in policy)
    dist.barrier()
    state.close()


def hook(model, state, **how):
    ddp = DDP(model, bucket_cap_mb=0.01, **how)
    state.register(ddp)
    return ddp


def backward(ddp, state, expected, at, who, scale, what):
    """A round; rank @who is late in it."""
    gave = numpy.array([[(r + 1) * (0.5 + (3 * at + i) % 4) for i in range(len(SIZES))] for r in range(RANKS)])
    ddp.module.give = [g * scale for g in gave[RANK]]
    dist.barrier()
    loss = ddp(torch.zeros(1))
    if RANK == who and expected.state._worker:
        # It is not known of a round that has fewer elements than the one before.
        until(state.worker.decided, 2)
    loss.backward()
    expected.round(gave, scale, what)


def clear(model, expected, to_none):
    for p, s in zip(model.w, expected.sums):
        s[:] = 0
        if to_none or p.grad is None:
            p.grad = None
        else:
            p.grad.data.zero_()


def case_accumulate():
    """Three rounds for each step, the gradients being added up: a rank is late in the first, second or third."""
    for policy in JOBS:
        for view, to_none in ((False, True), (True, False)):
            with trial(policy) as (model, state, expected):
                ddp = hook(model, state, gradient_as_bucket_view=view)
                for step in range(5):
                    clear(model, expected, to_none)
                    for b in range(3):
                        who = (0, RANKS - 1, 1)[b] if policy != "bsp" and step % 3 == b else None
                        backward(ddp, state, expected, 3 * step + b, who, 1.0, f"step {step}, batch {b}")
                expected.done(f"accumulate: {policy}, {'bucket views, ' * view}grad {'None' if to_none else '0'}", policy != "bsp")


class Scaler:
    """What a State sees of GradScaler."""

    def __init__(self, scale):
        self.now = scale

    def get_scale(self):
        return self.now

    def state_dict(self):
        return {"scale": self.now}

    def load_state_dict(self, saved):
        self.now = saved["scale"]


def case_scale():
    """The loss scale, or what else gradients are divided by, changes when a rank has a residual."""
    scales = [1024.0, 1024.0, 1024.0, 512.0, 512.0, 2048.0, 65536.0, 3.0, 3.0]
    for policy in ("bsp", "fastest", "fastest,late=drop", "timeout"):
        for by_scaler in (True, False):
            scaler, dummy = Scaler(1024.0), torch.nn.Linear(1, 1)
            with trial(policy) if not by_scaler else trial(policy, model=dummy, extra=[scaler]) as (model, state, expected):
                # The State's own model is another one here: only its objects count.
                state._transfer and state._transfer._objects.__setitem__(0, lambda model=model: model)
                ddp = hook(model, state)
                for step, scale in enumerate(scales):
                    clear(model, expected, True)
                    if by_scaler:
                        scaler.now = scale
                    else:
                        state.scale = scale
                    backward(ddp, state, expected, step, RANKS - 1 if policy != "bsp" and step in (2, 4, 6) else None, scale, f"step {step}")
                expected.done(f"scale: {policy}, {'GradScaler in extra' if by_scaler else 'State.scale'}", policy != "bsp")


def case_scales_differ():
    """A scale that differs on a rank is named by all, and a scale that is no such number is refused."""
    with trial("bsp") as (model, state, _):
        ddp = hook(model, state)
        model.give = [1.0] * len(SIZES)
        for _ in range(3):
            ddp(torch.zeros(1)).backward()
        state.scale = 512 if RANK == 1 else 1024
        fails("scales that differ between ranks", "divides its gradients by 512 in round 3, rank 0 by 1024" if RANK == 1 else "rank 1 by 512",
              lambda: ddp(torch.zeros(1)).backward())
        for bad in (0, -1.0, float("inf"), float("nan")):
            fails(f"State.scale = {bad}", "finite and above 0", lambda bad=bad: setattr(state, "scale", bad))


def case_factor():
    """A loss is multiplied by a number that changes when a rank has a residual, and of which the State is not told."""
    for policy, last, of_scale, refused in (("fastest", 512.0, False, True), ("timeout", 4096.0, False, True), ("fastest", 1024.0, False, False),
                                            ("fastest", 700.0, False, False), ("fastest", 512.0, True, False),
                                            ("fastest,late=drop", 512.0, False, False), ("bsp", 512.0, False, False)):
        with trial(policy) as (model, state, _):
            ddp = hook(model, state)
            model.give = [1.0] * len(SIZES)
            if of_scale:
                state.scale = 1
            what = f"factor: {policy}, from 1024 to {last:g}{', state.scale = 1' * of_scale}"
            for factor in (1024.0, 1024.0, 1024.0, last):
                for p in model.w:
                    p.grad = None
                dist.barrier()
                loss = ddp(torch.zeros(1)) * factor
                if refused and factor == last and RANK == RANKS - 1:
                    fails(what, f"multiplied by {last:g}, and that of a late gradient of this rank, which is to be added now, by 1024", loss.backward)
                    break
                if RANK == RANKS - 1 and policy != "bsp" and state.round == 2:
                    until(state.worker.decided, 20)
                loss.backward()
            every = [None] * RANKS
            dist.all_gather_object(every, (state.round, state.stats().late_segments > 0))
            point([r for r, _ in every] == [4] * (RANKS - 1) + [4 - refused] and every[-1][1] == (policy != "bsp"),
                  f"{what}: {'the late rank refuses to add its late gradient' if refused else 'no rank fails'}", str(every))


def case_turns():
    """Layers are frozen by turns, by wrapping the model anew: what is kept of a layer waits until it is trained again."""
    for policy in ("bsp", "fastest", "fastest,late=drop", "timeout"):
        with trial(policy) as (model, state, expected):
            at = 0
            for phase in ([0, 1, 2, 3], [2, 3], [0, 1], [1], [0, 1, 2, 3], [0, 3], [1, 2, 3]):
                for i, p in enumerate(model.w):
                    p.requires_grad_(i in phase)
                ddp = DDP(model, bucket_cap_mb=0.01)
                ddp.register_comm_hook(state, ranks.saina.torch.allreduce_hook)
                for step in range(3):
                    clear(model, expected, True)
                    backward(ddp, state, expected, at, (at // 2) % RANKS if policy != "bsp" and step != 1 else None, 1.0, f"phase {phase}, step {step}")
                    at += 1
            expected.done(f"layers by turns: {policy}", policy != "bsp")
            other = DDP(Given())
            other.register_comm_hook(state, ranks.saina.torch.allreduce_hook)
            fails(f"layers by turns, {policy}: another model", "belong to another model", lambda: other(torch.zeros(1)).sum().backward())


# --- lost rounds ------------------------------------------------------------------------------

def images(depth):
    """A batch's 64 numbers are images of two channels of 4 by 8, or of 4 by 4 by 2."""
    conv, shape = (torch.nn.Conv3d, (2, 4, 4, 2)) if depth else (torch.nn.Conv2d, (2, 4, 8))
    return torch.nn.Sequential(torch.nn.Unflatten(1, shape), conv(2, 6, 3, padding=1), torch.nn.Tanh(), conv(6, 5, 1), torch.nn.Tanh(),
                               torch.nn.Flatten(), torch.nn.Linear(5 * 32, 8))


def transposed(model):
    for m in model.modules():
        if isinstance(m, torch.nn.Linear):
            m.weight = torch.nn.Parameter(m.weight.detach().t().contiguous().t())
    return model


FORMS = {"contiguous": lambda: images(False), "channels_last": lambda: images(False).to(memory_format=torch.channels_last),
         "channels_last_3d": lambda: images(True).to(memory_format=torch.channels_last_3d), "transposed": lambda: transposed(images(False)),
         "channels_last and transposed": lambda: transposed(images(False)).to(memory_format=torch.channels_last)}


def case_layouts():
    """Rounds that a rank has lost are applied to parameters of any memory layout, with a norm over the gradients."""
    for policy in ("fastest", "fastest,late=drop"):
        for name, make in FORMS.items():
            for view in (False, True):
                torch.manual_seed(5)
                ddp = DDP(make(), gradient_as_bucket_view=view, bucket_cap_mb=0.001)
                opt = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
                state = new_state(JOBS[policy], model=ddp, optimizer=opt)
                state.register(ddp)
                dist.barrier()

                def step():
                    torch.nn.utils.clip_grad_norm_(ddp.parameters(), 0.1)
                    opt.step()
                    opt.zero_grad(set_to_none=True)
                ranks.train_with_straggler(ddp, state, step, LOST)
                lost = [None] * RANKS
                dist.all_gather_object(lost, state.lost)
                same, digests = same_everywhere(ddp)
                what = f"{name}{', bucket views' * view}, {policy}"
                point(lost[-1] > 0 and state.round == LOST, f"layouts: {what}: the last rank has lost rounds", str(lost))
                point(same, f"layouts: {what}: all models are the same to the last bit", digests)
                dist.barrier()
                state.close()


def case_formats_differ():
    """A rank whose parameters lie otherwise in memory than those of the others: named, not summed."""
    alone = [dist.new_group([r]) for r in range(RANKS)][RANK]
    torch.manual_seed(5)
    model = images(False)
    state = new_state(JOBS["bsp"])
    # DDP compares only the ranks of its process group.
    ddp = DDP(model.to(memory_format=torch.channels_last) if RANK == 1 else model, process_group=alone)
    state.register(ddp)
    fails("another memory format on rank 1", "this rank (1)" if RANK == 1 else "rank 1 is about to reduce other buckets",
          lambda: ranks.loss_of(ddp, 0).backward())
    dist.barrier()
    state.close()


def case_wrapped_anew():
    """The memory format changes, with another DDP: what was late before is added to the same elements."""
    torch.manual_seed(5)
    model = torch.nn.Conv2d(3, 40, 3, bias=False)
    give = torch.arange(model.weight.numel(), dtype=torch.float32).view_as(model.weight)
    state, gradients = new_state(JOBS["timeout"]), []
    for phase in range(2):
        if phase:
            model = model.to(memory_format=torch.channels_last)
        ddp = DDP(model)
        state.register(ddp)
        for step in range(3):
            dist.barrier()
            model.weight.grad = None
            if phase == 0 and step == 2 and RANK == RANKS - 1:
                until(state.worker.decided, 20)
            # The sum of the outputs for one image whose pixels are the filter's elements is not enough: give it directly.
            _Direct.apply(ddp.module.weight, ddp(torch.zeros(1, 3, 3, 3)), give).sum().backward()
            gradients.append(model.weight.grad.clone(memory_format=torch.contiguous_format))
    late = gradients[2].allclose(give)
    every = [None] * RANKS
    dist.all_gather_object(every, state.stats().late_segments)
    point(late and every[-1] > 0, "wrapped anew: the last rank was late before the change", str(every))
    point(gradients[3].allclose(give * (RANKS + 1) / RANKS, rtol=1e-4), "wrapped anew: its gradient is added to the same elements, in another memory format",
          str((gradients[3] - give * (RANKS + 1) / RANKS).abs().max()))
    dist.barrier()
    state.close()


class _Direct(torch.autograd.Function):
    """Gives its first argument the gradient @give."""

    @staticmethod
    def forward(ctx, weight, out, give):
        ctx.save_for_backward(give)
        return out.sum()

    @staticmethod
    def backward(ctx, _):
        return ctx.saved_tensors[0].clone(), None, None


ranks.main(globals())
