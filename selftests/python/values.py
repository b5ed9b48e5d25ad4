#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One of two or four ranks of the test torch_numbers.sh: values.py CASE...  Writes "ok TEXT" and "not ok TEXT".

The result of each round is that of float64, to 1e-6 of the largest contribution to its block; a NaN or Inf of one rank
makes its block NaN at all ranks, in that round only.  DistributedDataParallel is compared with Gloo's.
"""

import hashlib

import numpy
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

import ranks
import saina
from ranks import RANK, RANKS, fails, hooked, loss_of, point, same_everywhere

BSP, FASTEST, INT16 = 0, 1, 2
N = 2000
NAN, INF = float("nan"), float("inf")


class Rounds:
    """All-reduces of one worker compared with a model of float64 that knows what every rank gives.

    If a rank that is counted gives a NaN or Inf in a block, all ranks get NaN for that block.  Each counted rank drops its
    gradient of the block and keeps what it owes; so does the rank that gave the NaN or Inf, counted or not.
    """

    def __init__(self, job):
        self.worker = saina.join(job=job, worker=RANK, token="s3cret", join_timeout=60, timeout=120)
        self.payload = self.worker.info().payload
        self.owed = numpy.zeros((RANKS, N))
        self.scale = numpy.zeros(N)     # the largest value that went into what is owed
        self.wrong = []
        self.nans = self.round = 0
        self.call = None
        self.results = hashlib.sha256()

    def blocks(self, x):
        """max |x| over each block, for each of its elements."""
        starts = numpy.arange(0, N, self.payload)
        return numpy.repeat(numpy.maximum.reduceat(x, starts), numpy.diff(numpy.append(starts, N)))

    def give(self, of):
        """A round.  @of: what each rank gives, float32[N] or a number.  Returns the result, float32[N]."""
        with numpy.errstate(all="ignore"):
            return self._give(numpy.array([numpy.broadcast_to(numpy.asarray(g, numpy.float32), N) for g in of]))

    def _give(self, gave):
        x = gave[RANK].copy()
        self.call = call = self.worker.allreduce(x)
        self.results.update(x.tobytes())
        mask = numpy.array([self.worker.segment(s).mask for s in range(call.segments)]).repeat(self.payload)[:N]
        counted = numpy.array([mask >> r & 1 for r in range(RANKS)], bool)
        bad = numpy.array([self.blocks(~numpy.isfinite(g)) for g in gave], bool)
        poisoned = (bad & counted).any(0)
        finite = numpy.where(bad, 0, gave).astype(numpy.float64)
        total = self.owed + finite
        want = numpy.where(counted, total, 0).sum(0) / counted.sum(0)
        scale = self.blocks(numpy.maximum(self.scale, numpy.abs(finite).max(0)))
        off = numpy.where(poisoned, ~numpy.isnan(x), ~(numpy.abs(x - want) <= 1e-6 * scale))
        for i in numpy.flatnonzero(off)[:2]:
            self.wrong.append(f"round {self.round}, element {i}: {x[i]}, not {'nan' if poisoned[i] else want[i]}")
        self.owed = numpy.where(counted, numpy.where(poisoned, self.owed, 0), total)
        self.scale = numpy.where(self.owed.any(0), scale, 0)
        self.nans += int(poisoned.any())
        self.round += 1
        return x

    def done(self, what):
        left = self.worker.residual(0, N)
        off = numpy.abs(left - self.owed[RANK]) > 1e-6 * self.blocks(self.scale)
        all_of_them = [None] * RANKS
        dist.all_gather_object(all_of_them, self.results.hexdigest())
        point(not self.wrong, f"{what}: the results are those of float64 to 1e-6 of the block's largest",
              f"{len(self.wrong)}: {'; '.join(self.wrong[:6])}")
        point(len(set(all_of_them)) == 1, f"{what}: all ranks have the same results, to the last bit")
        point(not off.any(), f"{what}: the residual is what was not counted",
              str([(i, left[i], self.owed[RANK][i]) for i in numpy.flatnonzero(off)[:3]]))
        dist.barrier()
        self.worker.close()


def one(value, at=700, rest=1.0):
    x = numpy.full(N, rest, numpy.float32)
    x[at] = value
    return x


def case_nonfinite():
    """NaN and Inf in the first round and in later ones, from one rank or several."""
    for what, bad in (("NaN", {0: NAN}), ("Inf", {0: INF}), ("-Inf", {RANKS - 1: -INF}), ("-Inf and Inf", {0: -INF, 1: INF}),
                      ("NaN of all", dict.fromkeys(range(RANKS), NAN))):
        r = Rounds(BSP)
        for rnd in range(6):
            r.give([one(bad[k]) if k in bad and rnd in (0, 3) else 1.0 for k in range(RANKS)])
        point(r.nans == 2, f"{what}: two rounds have one")
        r.done(what)
    r = Rounds(BSP)
    for at in (0, 351, 352, N - 1):
        x = r.give([one(NAN, at) if k == 1 else 1.0 for k in range(RANKS)])
        block = at // r.payload
        want = numpy.arange(N) // r.payload == block
        point((numpy.isnan(x) == want).all() and r.call.nonfinite_segments == 1, f"NaN at element {at}: its block is NaN, no other element is",
              str(numpy.flatnonzero(numpy.isnan(x) != want)[:5]))
    point(r.worker.stats().nonfinite_segments == 4, "NaN at the edges of blocks: four segments are counted", str(r.worker.stats()))
    r.done("NaN at the edges of blocks")


def case_int16():
    """Jobs of int16: what is rounded off of one round is in the next ones, and a model learns as with Gloo."""
    worker = saina.join(job=INT16, worker=RANK, token="s3cret", join_timeout=60, timeout=120)
    largest = 32767 // RANKS - 1        # integer that a rank sends
    rounds, payload = 100, worker.info().payload
    gave = [numpy.random.default_rng(k).standard_normal(N).astype(numpy.float32) for k in range(RANKS)]
    want = numpy.mean(gave, 0, numpy.float64)
    peak = numpy.array([numpy.abs(g).max() for g in gave]).max()
    total, once = numpy.zeros(N), 0.0
    for _ in range(rounds):
        x = gave[RANK].copy()
        worker.allreduce(x)
        total += x
        once = max(once, numpy.abs(x - want).max() / peak)
    mean = numpy.abs(total / rounds - want).max() / peak
    point(worker.info().type == 4 and payload == 704, "int16: two elements in each word of a message")
    # a unit is at most 4 / largest of the peak; half of it each: from the last round, of this one, of the slot
    point(once <= 6 / largest, "int16: a result is within its bound of float64",
          f"{once:.1e}, {6 / largest:.1e}")
    point(mean <= 6 / largest / 10, f"int16: the mean of {rounds} rounds is ten times as near, at least", f"{mean:.1e}")
    print(f"# int16, {RANKS} ranks: one result {once:.1e} of the largest off, the mean of {rounds} {mean:.1e}", flush=True)
    x = numpy.ones(8, numpy.int32)
    fails("int16: a tensor of int32", "is not of int32", lambda: worker.allreduce(x))
    worker.close()
    dist.barrier()
    losses = {}
    models = {}
    gloo = models["gloo"] = DDP(ranks.net())
    losses["gloo"] = learn(gloo)
    for job, name in ((BSP, "int32"), (INT16, "int16")):
        with hooked(ranks.net(), job) as (ddp, _):
            losses[name] = learn(ddp)
            models[name] = ddp
            point(same_everywhere(ddp)[0], f"{name}: DDP: all models are the same to the last bit")
    gone = sum(((p - q) ** 2).sum() for p, q in zip(gloo.parameters(), ranks.net().parameters())) ** 0.5
    for name in ("int32", "int16"):
        apart = sum(((p - q) ** 2).sum() for p, q in zip(gloo.parameters(), models[name].parameters())) ** 0.5
        off = max(abs(a - b) for a, b in zip(losses["gloo"], losses[name]))
        print(f"# {name}: DDP, {STEPS} steps, loss {losses[name][0]:.4f} to {losses[name][-1]:.4f} (Gloo {losses['gloo'][-1]:.4f}), "
              f"at most {off:.1e} apart; the model is {apart / gone:.1e} of its way from Gloo's", flush=True)
        point(off < 1e-3 and apart / gone < 0.01, f"{name}: DDP learns as with Gloo", f"{off:.1e} {apart / gone:.1e}")


STEPS = 60


def learn(ddp):
    """The mean loss over the ranks of each of STEPS steps."""
    losses = torch.zeros(STEPS)
    opt = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    for step in range(STEPS):
        opt.zero_grad()
        loss = loss_of(ddp, step)
        losses[step] = loss.detach()
        loss.backward()
        opt.step()
    dist.all_reduce(losses)
    return (losses / RANKS).tolist()


def case_first():
    """The first round is as any other."""
    for what, value in (("1000", 1000.0), ("3e38", 3e38), ("1e-25", 1e-25), ("2^22", 2.0**22)):
        r = Rounds(BSP)
        for _ in range(3):
            r.give([value] * RANKS)
        r.done(f"all ranks {what} from the first round on")
    r = Rounds(BSP)
    whole = [numpy.random.default_rng(k).integers(-60, 60, N).astype(numpy.float32) for k in range(RANKS)]
    x = whole[RANK].copy()
    r.worker.allreduce(x, "sum")
    want = sum(whole)
    point((x == want).all(), "small whole numbers: their sum is exact in the first round", str((x != want).sum()))
    r.worker.close()
    dist.barrier()


def case_jumps():
    """Magnitudes that jump: zeros, spikes, and both with NaN and Inf."""
    for zeros in (10, 30):
        r = Rounds(BSP)
        for rnd in range(zeros + 3):
            r.give([0.0 if rnd < zeros else 1.0] * RANKS)
        r.done(f"zeros for {zeros} rounds, then 1.0")
    for spike in (1e6, 1e12, 3e38):
        r = Rounds(BSP)
        for rnd in range(12):
            r.give([one(spike, 5, 1e-3) if rnd == 4 and k == 0 else 1e-3 for k in range(RANKS)])
        r.done(f"one spike of {spike:g}, then 1e-3")
    r = Rounds(BSP)
    for rnd in range(200):
        g = numpy.random.default_rng(rnd)
        r.give([(g.normal(size=N) * 2.0 ** g.uniform(-60, 60)).astype(numpy.float32) for _ in range(RANKS)])
    r.done("magnitudes that jump by up to 2^120")
    r = Rounds(BSP)
    for rnd in range(60):
        g = numpy.random.default_rng(rnd)
        r.give([one(g.choice([NAN, INF, 1e20, 0.0, 1e-20]), int(g.integers(N)), g.normal() * 2.0 ** int(g.integers(-30, 30)))
                for _ in range(RANKS)])
    r.done("NaN and Inf beside magnitudes that jump")


def case_late():
    """fastest-k: the last rank is late, with a NaN, too."""
    r = Rounds(FASTEST)
    late = 0
    for rnd in range(16):
        if rnd % 4 == 3:
            dist.barrier()
        if RANK == RANKS - 1 and rnd % 4 == 2:
            # Not for long: where a result of it was lost, this rank learns of it with the next round,
            # which the others open behind the barrier.
            ranks.until(r.worker.decided, 20)
        value = NAN if rnd % 8 == 2 else 10.0 ** (rnd % 5)
        # What the last rank owes of round 6 meets a NaN of rank 0 in round 7.
        r.give([one(value, 900, 10.0 ** (rnd % 3 - 1)) if k == RANKS - 1 else one(NAN if k == 0 and rnd % 8 == 7 else 1.0, 100)
                for k in range(RANKS)])
        late += r.owed[RANKS - 1].any()
    point(late, "late: the last rank was late")
    r.done("fastest-k, the last rank late with a NaN")


# --- DistributedDataParallel, compared with Gloo ---------------------------------------------

class Both:
    """The same model twice, with the same parameters in each step: reduced by us and by Gloo."""

    def __init__(self, make, ddp, state, **how):
        self.ddp, self.state = ddp, state
        self.gloo = DDP(make(), **how)
        self.alone = make()
        self.wrong = []
        self.step = 0

    def backward(self, loss):
        """@loss: of a model.  Gradients of both, compared."""
        for m in (self.alone, self.gloo, self.ddp):
            m.zero_grad(set_to_none=True)
            loss(m).backward()
        payload, places = self.state.worker.info().payload, self.state._places(self.state._layout)
        size = {}
        for p, mine in zip(self.ddp.parameters(), self.alone.parameters()):
            first, n = places[id(p)]
            g = mine.grad.flatten().abs() if mine.grad is not None else torch.zeros(n)
            numpy.maximum.at(size.setdefault("all", numpy.zeros(self.state.worker.info().segments)),
                             numpy.arange(first, first + n) // payload, g.nan_to_num(0, 0, 0).numpy())
        size = torch.from_numpy(size["all"])
        dist.all_reduce(size, dist.ReduceOp.MAX)
        for p, q in zip(self.ddp.parameters(), self.gloo.parameters()):
            first, n = places[id(p)]
            block = torch.arange(first, first + n) // payload
            a, b = ((torch.zeros(n) if x.grad is None else x.grad.flatten()).double() for x in (p, q))
            # What is not finite for Gloo is NaN, and so is its block.
            bad = torch.zeros(len(size), dtype=torch.bool)
            bad[block[~b.isfinite()]] = True
            off = torch.where(b.isfinite(), ~((a - b).abs() <= 1e-6 * size[block]) & ~(a.isnan() & self._poisoned(block)), ~a.isnan())
            if off.any():
                i = int(off.nonzero()[0])
                self.wrong.append(f"step {self.step}, element {first + i}: {a[i]}, not {b[i]}")
        self.step += 1

    def _poisoned(self, block):
        """Whether Gloo has a value that is not finite in the block of each element."""
        payload, places = self.state.worker.info().payload, self.state._places(self.state._layout)
        bad = torch.zeros(self.state.worker.info().segments, dtype=torch.bool)
        for p, q in zip(self.ddp.parameters(), self.gloo.parameters()):
            if q.grad is not None:
                first, n = places[id(p)]
                bad[(torch.arange(first, first + n) // payload)[~q.grad.flatten().isfinite()]] = True
        return bad[block]

    def update(self, lr=0.05):
        """Gloo's step, for all."""
        with torch.no_grad():
            for p, q, r in zip(self.gloo.parameters(), self.ddp.parameters(), self.alone.parameters()):
                if p.grad is not None:
                    p -= lr * p.grad
                q.copy_(p)
                r.copy_(p)

    def done(self, what):
        point(not self.wrong, f"{what}: the gradients are Gloo's to 1e-6 of the block's largest",
              f"{len(self.wrong)}: {'; '.join(self.wrong[:4])}")


class Heads(torch.nn.Module):
    """A body and two heads; the second is used if self.second."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.body, self.a, self.b = torch.nn.Linear(64, 100), torch.nn.Linear(100, 8), torch.nn.Linear(100, 8)
        self.second = False

    def forward(self, x):
        x = self.body(x).tanh()
        return self.a(x) + 5 * self.b(x) if self.second else self.a(x)


def case_heads():
    with hooked(Heads(), BSP, find_unused_parameters=True) as (ddp, state):
        both = Both(Heads, ddp, state, find_unused_parameters=True)
        for step in range(44):
            for m in (ddp.module, both.gloo.module, both.alone):
                m.second = step >= 40
            both.backward(lambda m, step=step: loss_of(m, step))
            both.update()
        both.done("a head that is not used for 40 steps, then is")


def small():
    return ranks.net(5, 100)


def case_scaled():
    for what, scales in (("2^22 from the first step on", [2.0**22] * 3), ("2^-20, then 2^40, then 1", [2.0**-20, 2.0**40, 1, 1])):
        with hooked(small(), BSP, bucket_cap_mb=0.05) as (ddp, state):
            both = Both(small, ddp, state, bucket_cap_mb=0.05)
            for step, scale in enumerate(scales):
                both.backward(lambda m, step=step, scale=scale: loss_of(m, step) * scale)
                for m in (ddp, both.gloo):
                    for p in m.parameters():
                        p.grad /= scale
                both.update()
            both.done(f"the loss scaled by {what}")


class Scaler:
    """What torch.cuda.amp.GradScaler does, which is disabled without a GPU: the loss is scaled; a step whose gradients are
    not finite is skipped, and the scale halved."""

    def __init__(self, scale):
        self._scale = scale

    def get_scale(self):
        return self._scale

    def scale(self, loss):
        return loss * self._scale

    def step(self, opt):
        grads = [p.grad for group in opt.param_groups for p in group["params"]]
        for g in grads:
            g /= self._scale
        self._finite = all(g.isfinite().all() for g in grads)
        if self._finite:
            opt.step()

    def update(self):
        if not self._finite:
            self._scale /= 2


def scaler_step(scaler, opt):
    """Whether the step was skipped."""
    before = scaler.get_scale()
    scaler.step(opt)
    scaler.update()
    return scaler.get_scale() < before


def skip_together(what, make):
    """A loss that overflows on one rank: all ranks skip that step.  @make: a scaler."""
    def run(model):
        scaler, opt = make(2.0**16), torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        skipped = []
        for step in range(8):
            opt.zero_grad()
            overflow = 3e38 if step in (0, 4, 5) and RANK == RANKS - 1 else 1.0
            (scaler.scale(loss_of(model, step)) * overflow).backward()
            skipped.append(scaler_step(scaler, opt))
        every = [None] * RANKS
        dist.all_gather_object(every, (skipped, scaler.get_scale()))
        return every
    with hooked(small(), BSP, bucket_cap_mb=0.05) as (ddp, _):
        ours = run(ddp)
        gloo_model = DDP(small(), bucket_cap_mb=0.05)
        gloo = run(gloo_model)
        point(gloo == [([s in (0, 4, 5) for s in range(8)], 2.0**13)] * RANKS,
              f"{what}: with Gloo three steps are skipped, and the scale is halved three times", str(gloo))
        point(ours == gloo, f"{what}: an overflow of one rank: all ranks skip that step and halve the scale, as with Gloo", str(ours))
        point(same_everywhere(ddp)[0] and ranks.close_to(ddp, gloo_model), f"{what}: the model is Gloo's, and the same everywhere")


def case_scaler():
    skip_together("GradScaler", Scaler)


def case_amp():
    """PyTorch's own GradScaler, which works without a GPU from 2.3 on."""
    skip_together("torch.amp.GradScaler", lambda scale: torch.amp.GradScaler("cpu", init_scale=scale))


def case_lost():
    """The last rank catches up with rounds of which one was skipped by the others."""
    with hooked(small(), FASTEST, bucket_cap_mb=0.05) as (ddp, state):
        scaler, opt = Scaler(2.0**16), torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
        skipped = []    # or not, for each step

        def loss(model, step):
            state.scale = scaler.get_scale()
            return scaler.scale(loss_of(model, step)) * (3e38 if step in (2, 6) and RANK == 0 else 1.0)

        def step():
            skipped.append(scaler_step(scaler, opt))
            opt.zero_grad()
        ranks.train_with_straggler(ddp, state, step, 14, loss)
        counted = [None] * RANKS
        dist.all_gather_object(counted, (state.lost, skipped, scaler.get_scale()))
        point(counted[-1][0], "GradScaler, fastest-k: the last rank has lost rounds", str(counted))
        point(all(c[1:] == counted[0][1:] for c in counted) and counted[0][1][6],
              "GradScaler, fastest-k: an overflow of one rank: all skip that step, also who catches up", str(counted))
        point(same_everywhere(ddp)[0] and all(p.isfinite().all() for p in ddp.parameters()),
              "GradScaler, fastest-k: all models are the same to the last bit, and finite")


def case_clip():
    """clip_grad_norm_(error_if_nonfinite=True) with a NaN of one rank; the next step is not affected."""
    clip = torch.nn.utils.clip_grad_norm_
    with hooked(small(), BSP, bucket_cap_mb=0.05) as (ddp, state):
        both = Both(small, ddp, state, bucket_cap_mb=0.05)
        for step in range(6):
            nan = step in (0, 3) and RANK == 0
            both.backward(lambda m, step=step, nan=nan: loss_of(m, step) * (NAN if nan else 1.0))
            if step in (0, 3):
                for m, who in ((ddp, "saina"), (both.gloo, "Gloo")):
                    fails(f"clip_grad_norm_: a NaN of one rank, {who}, step {step}", "non-finite",
                          lambda m=m: clip(m.parameters(), 1.0, error_if_nonfinite=True))
            else:
                norms = [clip(m.parameters(), 1.0, error_if_nonfinite=True).item() for m in (ddp, both.gloo)]
                point(abs(norms[0] - norms[1]) < 1e-5 * norms[1], f"clip_grad_norm_: step {step}: the norm is Gloo's", str(norms))
                both.update()
        both.done("a NaN loss of one rank in steps 0 and 3")


ranks.main(globals())
