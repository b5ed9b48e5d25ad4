#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One of four ranks of the test torch_peers.sh: peers.py CASE...  Writes "ok TEXT" and "not ok TEXT".

Ranks that get model, optimizer and round from another one: too far behind, restarted, late.
"""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

import models
import ranks
import saina.torch
from saina import peer_link, peer_state, recovery
from ranks import OUT, RANK, loss_of, net, new_state, point, same_everywhere, until

BSP, FASTEST, TWO, OPEN, LEAD = range(5)
NAMES = {BSP: "bsp", FASTEST: "fastest:k=3,lead=none", LEAD: "fastest:k=3"}
numbers = itertools.count()


class Training:
    """Clipping, momentum and a scheduler."""

    def __init__(self, ddp):
        self.ddp = ddp
        self.opt = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.opt, 10, 0.9)

    def step(self):
        torch.nn.utils.clip_grad_norm_(self.ddp.parameters(), 0.5)
        self.opt.step()
        self.scheduler.step()
        self.opt.zero_grad()


def rounds_of(state, training, n, form, body):
    """@n rounds, by steps() or by an ordinary loop."""
    if form == "steps":
        for i in state.steps(n, step=training.step):
            body(i)
    else:
        while state.round < n:
            body(state.round)
            training.step()


def begin(job, module=None, **how):
    ddp = DDP(module or net(0, 50))
    training = Training(ddp)
    state = new_state(job, model=ddp, optimizer=training.opt, extra=[training.scheduler], **how)
    ddp.register_comm_hook(state, saina.torch.allreduce_hook)
    return ddp, training, state


def stay_behind(state, ddp, training, form, who=(3,), n=60):
    """@n rounds.  The ranks @who stay in round 4 until the others rest in round 50; the others go on when the ranks @who have
    the state of one of them.  A rank that is late skips rounds, perhaps round 4, and stays in the next one that it computes.
    Returns how many rounds this rank has computed."""
    name = f"{OUT}/behind-{os.environ['MASTER_PORT']}-{next(numbers)}-"
    computed = []

    def body(i):
        x = loss_of(ddp, i)
        if RANK in who and i >= 4 and not state.fetched:
            until(lambda: os.path.exists(name + "far"))
        if RANK not in who and i >= 50:
            with open(name + "far", "w", encoding="ascii"):
                pass
            until(lambda: all(os.path.exists(name + str(w)) for w in who))
        # Before its backward, which waits for the others.
        if RANK in who and state.fetched:
            with open(name + str(RANK), "w", encoding="ascii"):
                pass
        x.backward()
        computed.append(i)
    try:
        rounds_of(state, training, n, form, body)
    finally:
        with open(name + str(RANK), "w", encoding="ascii"):
            pass
    return len(computed)


def case_far():
    """Rank 3 stays behind until its rounds are gone."""
    for form in ("steps", "plain"):
        said = []
        ddp, training, state = begin(FASTEST, log=said.append)
        computed = stay_behind(state, ddp, training, form)
        found = [None] * 4
        dist.all_gather_object(found, (state.round, state.fetched, computed, said))
        point(all(f[0] == 60 for f in found) and found[3][1] > 0 and not any(f[1] for f in found[:3]) and found[3][2] < 60,
              f"far, {form}: rank 3 gets the state of another rank, and all end after 60 rounds", str(found))
        point(same_everywhere(ddp)[0], f"far, {form}: all models are the same", same_everywhere(ddp)[1])
        lrs = [None] * 4
        dist.all_gather_object(lrs, (training.opt.param_groups[0]["lr"], training.scheduler.last_epoch))
        point(len(set(lrs)) == 1, f"far, {form}: so are the schedulers", str(lrs))
        dist.barrier()
        state.close()


def case_open():
    """A job without a token: the ranks share a secret by their process group."""
    said = []
    ddp, training, state = begin(OPEN, token=None, log=said.append)
    stay_behind(state, ddp, training, "steps")
    found = [None] * 4
    dist.all_gather_object(found, (state.round, state.fetched, state._secret))
    point([f[0] for f in found] == [60] * 4 and found[3][1] > 0 and len({f[2] for f in found}) == 1 and len(found[0][2]) == 32,
          "open: without a token rank 3 gets the state of another rank by the secret of the process group", str(found))
    point(same_everywhere(ddp)[0], "open: all models are the same", same_everywhere(ddp)[1])
    refused = []
    for secret in ("", "s3cret"):
        try:
            peer_state.fetch(state._server.where, secret)
        except peer_state.Unavailable as e:
            refused.append(str(e))
    point(refused == ["wrong token, or wrong secret of the process group"] * 2, "open: whoever is not of the process group is refused", str(refused))
    dist.barrier()
    state.close()
    # As with a process group of its own for each rank.
    recovery.group_secret, was, said = lambda *_: "", recovery.group_secret, []
    dist.barrier()
    ddp, training, state = begin(OPEN, token=None, log=said.append)
    for i in state.steps(4, step=training.step):
        loss_of(ddp, i).backward()
    point(state.round == 4 and not state._server and not state._preamble.peers and
          sum("does not serve its model" in line and "saina job set JOB token" in line for line in said) == 1,
          "open: with neither a token nor a secret a rank trains, serves nothing, and says what to do", str(said))
    recovery.group_secret = was
    dist.barrier()
    state.close()


def case_rest():
    """A rank that rests for long between backward and its step serves its state after the step."""
    for form in ("steps", "plain"):
        ddp, training, state = begin(BSP)
        found, early = [], []

        def body(i):
            loss_of(ddp, i).backward()
            if i == 3:
                thread = threading.Thread(target=lambda: found.append(peer_state.fetch(state._server.where, "s3cret")))
                thread.start()
                thread.join(4)
                early.extend(found)
        rounds_of(state, training, 4, form, body)
        until(lambda: found, 20)
        mine = ddp.module.state_dict()
        point(not early and found and found[0]["rounds"] == 4 and
              all(bool((found[0]["objects"][0][k] == mine[k]).all()) for k in mine),
              f"rest, {form}: the state of a rank that rests before its step is served after it", f"{len(early)} {len(found)}")
        dist.barrier()
        state.close()
        dist.barrier()


def case_two():
    """Two ranks are too far behind at once; and the first peer that is asked breaks off while it serves."""
    ddp, training, state = begin(TWO)

    def break_off(_):
        raise ConnectionError("dead")
    if RANK == 0:
        state._transfer.take = break_off
    stay_behind(state, ddp, training, "steps", (2, 3))
    found = [None] * 4
    dist.all_gather_object(found, (state.round, state.fetched))
    point([f[0] for f in found] == [60] * 4 and found[2][1] and found[3][1],
          "two ranks too far behind at once, and a peer that breaks off: both get the state of rank 1", str(found))
    point(same_everywhere(ddp)[0], "two: all models are the same", same_everywhere(ddp)[1])
    dist.barrier()
    state.close()


def case_died():
    """Rank 1 is killed while it serves; before that, the others break off."""
    living = dist.new_group([0, 2, 3])
    said, died = [], f"{OUT}/died"
    ddp, training, state = begin(FASTEST, log=said.append)
    take, records = state._transfer.take, peer_link._records

    def take_after(rest):
        if not os.path.exists(died):
            raise ConnectionError("dead")
        return take(rest)

    def die(parts):
        yield next(records(parts))[:1000]
        with open(died, "w", encoding="ascii"):
            pass
        os.kill(os.getpid(), signal.SIGKILL)
    if RANK == 1:
        peer_link._records = die
    else:
        state._transfer.take = take_after
    stay_behind(state, ddp, training, "steps")
    found = [None] * 3
    dist.all_gather_object(found, (state.round, state.fetched, said), living)
    point([f[0] for f in found] == [60] * 3 and found[2][1] > 0,
          "died: a peer is killed while it serves: rank 3 gets the state of another one, and all but the peer end after 60 rounds", str(found))
    point(same_everywhere(ddp, living)[0], "died: all models are the same", same_everywhere(ddp, living)[1])
    dist.barrier(living)
    state.close()


#: A neighbour without the secret: silent connections, from a few addresses, to each HOST:PORT, until its input ends.
NEIGHBOUR = r"""
import select, socket, sys
keep = []
while not select.select([sys.stdin], [], [], 0.002)[0]:
    for where in sys.argv[1:]:
        s = socket.socket()
        s.settimeout(0.2)
        try:
            s.connect((where.split(":")[0], int(where.split(":")[1])))
        except OSError:
            pass
        keep.append(s)
    while len(keep) > 500:
        keep.pop(0).close()
"""


def case_flooded():
    """A neighbour opens connections to the servers of all ranks, without end, and says nothing."""
    ddp, training, state = begin(FASTEST)
    neighbour, most, over = [], [], threading.Event()

    def flood():
        until(lambda: state._preamble and len(state._preamble.peers) == 3 or over.is_set())
        where = [*state._preamble.peers.values(), state._server.where]
        neighbour.append(subprocess.Popen([sys.executable, "-SEc", NEIGHBOUR, *(f"{h}:{p}" for h, p in where)], stdin=subprocess.PIPE))

    def watch():
        until(lambda: state._server or over.is_set())
        while not over.wait(0.01):
            most.append((len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))))
    running = [threading.Thread(target=work) for work in [watch] + [flood] * (RANK == 2)]
    for thread in running:
        thread.start()
    try:
        stay_behind(state, ddp, training, "steps")
    finally:
        over.set()
        for thread in running:
            thread.join()
        for process in neighbour:
            process.stdin.close()
            process.wait()
    found = [None] * 4
    dist.all_gather_object(found, (state.round, state.fetched, [max(n) - n[0] for n in zip(*most)]))
    point([f[0] for f in found] == [60] * 4 and found[3][1] > 0, "flooded: rank 3 gets the state of another rank, and all end after 60 rounds", str(found))
    point(all(n <= 16 for f in found for n in f[2]), "flooded: no rank has more than 16 descriptors or threads more", str(found))
    point(same_everywhere(ddp)[0], "flooded: all models are the same", same_everywhere(ddp)[1])
    dist.barrier()
    state.close()


def case_unfit():
    """The state of the others does not fit; all ranks are too far behind."""
    ddp = DDP(net(0, 50))
    training = Training(ddp)
    state = new_state(FASTEST, model=ddp, optimizer=training.opt, extra=[] if RANK == 3 else [training.scheduler])
    state.register(ddp)
    error = ""
    try:
        stay_behind(state, ddp, training, "steps")
    except OSError as e:
        error = str(e)
    errors = [None] * 4
    dist.all_gather_object(errors, error)
    point("cannot use the state of rank" in errors[3] and "has 2 objects" in errors[3] and not any(errors[:3]),
          "unfit: a rank whose objects are others than those of its peers raises a sentence", str(errors))
    dist.barrier()
    state.close()
    # All at once.
    ddp, training, state = begin(BSP)
    for i in state.steps(4, step=training.step):
        loss_of(ddp, i).backward()
    dist.barrier()
    state._stale = True
    dist.barrier()
    error = ""
    try:
        for i in state.steps(4, step=training.step):
            loss_of(ddp, i).backward()
    except OSError as e:
        error = str(e)
    errors = [None] * 4
    dist.all_gather_object(errors, error)
    point(all(f"this rank ({r}) is too far behind" in e and "it is too far behind itself" in e for r, e in enumerate(errors)),
          "unfit: if all ranks are too far behind, all raise a sentence", str(errors))
    dist.barrier()
    state.close()


def case_checkpoint():
    """Ten rounds, and six from whose checkpoint all ranks go on."""
    def run(n, file=None):
        module = net(0, 50)
        opt = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
        saved = torch.load(file) if file else None
        if saved:
            module.load_state_dict(saved["model"])
            opt.load_state_dict(saved["optimizer"])
        ddp = DDP(module)
        state = new_state(BSP, model=ddp, optimizer=opt)
        if saved:
            state.load_state_dict(saved["state"])
        ddp.register_comm_hook(state, saina.torch.allreduce_hook)
        batches = []

        def step():
            opt.step()
            opt.zero_grad()
        for i in state.steps(n, step=step):
            loss_of(ddp, i).backward()
            batches.append(i)
        saved = {"model": module.state_dict(), "optimizer": opt.state_dict(), "state": state.state_dict()}
        dist.barrier()
        state.close()
        dist.barrier()
        return ddp, saved, batches
    whole, _, _ = run(10)
    _, saved, _ = run(6)
    if RANK == 0:
        torch.save(saved, f"{OUT}/checkpoint.pt.new")
        os.rename(f"{OUT}/checkpoint.pt.new", f"{OUT}/checkpoint.pt")
    until(lambda: os.path.exists(f"{OUT}/checkpoint.pt"))
    resumed, saved, batches = run(10, f"{OUT}/checkpoint.pt")
    point(saved["state"]["rounds"] == 10 and batches == [6, 7, 8, 9], "checkpoint: the batches of its steps are dropped", str(batches))
    # Not to the bit: DDP rebuilds its buckets, so that other elements share a scale in one round.
    point(ranks.close_to(resumed, whole), "checkpoint: the model is that of the training without an interruption, to 1e-4")
    point(same_everywhere(resumed)[0], "checkpoint: all models are the same")


#: How many seeds, of data and first parameters, the trainings that are compared have.
SEEDS = int(os.environ.get("SEEDS", "1"))
MODELS = os.environ.get("MODELS", " ".join(models.MODELS)).split()
ROUNDS, LATE = int(os.environ.get("ROUNDS", "40")), float(os.environ.get("LATE", "0.3"))


def lasting(name, seed, job, form, three=False):
    """ROUNDS rounds of model @name.  Returns its test loss.  @three: the mean is that over the gradients of ranks 0 to 2.

    Not with bsp: rank 3 is LATE seconds later than the others in every round; and if it may be further behind than lead, it
    stays in round 4 until the others are 16 rounds ahead, or near the end: so it is behind on any machine."""
    ddp = DDP(models.make(name, seed))
    training = models.Training(ddp, ROUNDS)
    state = new_state(job, model=ddp, optimizer=training.opt, extra=[training.scheduler], log=lambda _: None)
    ddp.register_comm_hook(state, saina.torch.allreduce_hook)
    ahead = f"{OUT}/ahead-{os.environ['MASTER_PORT']}-{next(numbers)}"

    def body(i):
        x = models.loss(ddp, i, RANK, seed) * (0 if three and RANK == 3 else 4 / 3 if three else 1)
        if job == FASTEST and RANK == 0 and i == min(20, ROUNDS - 2):
            with open(ahead, "w", encoding="ascii"):
                pass
        if job != BSP and RANK == 3:
            until(lambda: job != FASTEST or i != 4 or os.path.exists(ahead))
            time.sleep(LATE)
        x.backward()
    begun = time.monotonic()
    rounds_of(state, training, ROUNDS, form, body)
    seconds = time.monotonic() - begun
    what, after = f"{name}, {NAMES[job]}, {'of three ranks' if three else form}, seed {seed}", models.test_loss(ddp.module)
    found = [None] * 4
    dist.all_gather_object(found, (state.round, state.fetched, state.lost, sum(s.missed for s in state.stragglers() if s.rank == 3)))
    print(f"# {what}: {seconds:.1f} s, test loss {after:.4f}; ranks: rounds, fetched, lost, rounds without rank 3: {found}", flush=True)
    point(all(f[0] == ROUNDS for f in found), f"{what}: all end after {ROUNDS} rounds", str(found))
    if job != BSP:
        point(found[3][1] + found[3][2] + found[0][3] > 0, f"{what}: rank 3 was late", str(found))
    point(same_everywhere(ddp)[0], f"{what}: all models are the same", same_everywhere(ddp)[1])
    dist.barrier()
    state.close()
    dist.barrier()
    return after


def case_bsp():
    """What bsp reaches, with several seeds: with all ranks, and with the three that are in time in the other cases."""
    for name in MODELS:
        every = {}
        for three in (False, True):
            every[three] = [lasting(name, seed, BSP, "plain", three) for seed in range(SEEDS + 2)]
        if RANK == 0:
            models.noise_save(OUT, name, every)


def case_lasting():
    """Rank 3 is always late, by more than the rounds of the others take, with lead=none and with the default.  After case_bsp."""
    for name in MODELS:
        for job in (FASTEST, LEAD):
            for form in ("steps", "plain"):
                good, why = models.within_noise(OUT, name, [lasting(name, seed, job, form) for seed in range(SEEDS)])
                print(f"# {name}, {NAMES[job]}, {form}: {why}", flush=True)
                point(good, f"lasting, {name}, {NAMES[job]}, {form}: the loss is within the noise of bsp of the ranks that are in time", why)


ranks.main(globals())
