#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One of four ranks of the test c10d.sh: c10d.py CASE...  Writes "ok TEXT" and "not ok TEXT".

The process group is the backend saina; a second one, of Gloo, is beside it to compare.
"""

import datetime
import gc
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

import saina
import saina.c10d
import saina.torch
from ranks import OUT, RANK, RANKS, close_to, fails, loss_of, net, point, same_everywhere, train, until

SUM = dist.ReduceOp.SUM


def init(backend="saina", timeout=120, **how):
    dist.init_process_group(backend, timeout=datetime.timedelta(seconds=timeout), **how)


def sums():
    """Rounds of the job that this rank has been in."""
    return dist.distributed_c10d._get_default_group()._sums._worker.stats().rounds


def values(n, dtype, seed=0, rank=RANK):
    g = torch.Generator().manual_seed(100 * seed + rank)
    if dtype == torch.int32:
        return torch.randint(-2**31, 2**31 - 1, (n,), generator=g, dtype=torch.int64).to(torch.int32)
    return torch.randn(n, generator=g).to(dtype)


def everywhere(x, group):
    """Whether all ranks have @x, to the last bit."""
    every = [torch.zeros_like(x) for _ in range(RANKS)]
    dist.all_gather(every, x, group)
    return all(torch.equal(x.nan_to_num(7), y.nan_to_num(7)) for y in every)


def case_types():
    """Sizes and types, compared with Gloo."""
    init()
    gloo = dist.new_group(backend="gloo")
    begun = sums()
    rounds = 0
    for n in (1, 3, 352, 353, 5000, 50000):
        for dtype in (torch.float32, torch.int32, torch.float16, torch.bfloat16):
            x = values(n, dtype, n)
            want = torch.stack([values(n, dtype, n, r).double() for r in range(RANKS)]).sum(0)
            dist.all_reduce(x)
            rounds += -(-n // 19000)
            if dtype == torch.int32:
                good = torch.equal(x.long(), (want.long() + 2**31) % 2**32 - 2**31)
            else:
                limit = {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 2e-2}[dtype]
                good = (x.double() - want).abs().max().item() < limit * RANKS
            point(good and x.dtype == dtype and everywhere(x.float(), gloo), f"types: {n} elements of {str(dtype)[6:]}: the sum over all ranks")
    point(sums() - begun >= rounds, "types: the aggregator has summed them", f"{sums() - begun}, not {rounds}")
    begun = sums()
    for dtype in (torch.float64, torch.int64, torch.uint8):
        x = torch.full((5,), RANK + 1, dtype=dtype)
        dist.all_reduce(x)
        point((x == 10).all().item(), f"types: {str(dtype)[6:]}")
    for op, want in (("MAX", 4), ("MIN", 1), ("PRODUCT", 24)):
        x = torch.full((5,), RANK + 1.0)
        dist.all_reduce(x, getattr(dist.ReduceOp, op))
        point((x == want).all().item(), f"types: {op}")
    point(sums() == begun, "types: other types and operations go by Gloo")
    x = torch.full((1000,), RANK + 1.0)
    dist.all_reduce(x, dist.ReduceOp.AVG)
    point((x - 2.5).abs().max().item() < 1e-5, "types: the average")
    x = torch.arange(12.0).reshape(3, 4).t()
    dist.all_reduce(x)
    point(torch.equal(x, 4 * torch.arange(12.0).reshape(3, 4).t()), "types: a tensor that is not contiguous")
    x = torch.full((3,), complex(RANK, 1))
    dist.all_reduce(x)
    point(torch.equal(x, torch.full((3,), complex(6, 4))), "types: complex64")
    x = torch.zeros(0)
    dist.all_reduce(x)
    w = torch.nn.Parameter(torch.ones(3))
    dist.all_reduce(w.data)
    point(w.data.tolist() == [4, 4, 4], "types: an empty tensor, and the data of a parameter")


def case_exact():
    """Tensors of at most a segment have exact float32 sums, also beside much larger values, NaN and infinities."""
    init()
    x = torch.tensor([1e-20 * (RANK + 1), 3e30, float("inf") if RANK == 1 else 0, 1.0, float("nan") if RANK == 2 else 1, -0.0])
    dist.all_reduce(x)
    small = torch.tensor(1e-20)
    for r in range(1, RANKS):
        small = small + torch.tensor(1e-20 * (r + 1))
    point(x[0].item() == small.item() and x[2].item() == float("inf") and x[3].item() == 4 and x[4].isnan().item(),
          "exact: a small tensor has the sums of float32, whatever is beside them", str(x))
    x = torch.ones(5000)
    if RANK == 3:
        x[7] = float("nan")
    dist.all_reduce(x)
    point(x[7].isnan().item() and x[4999].item() == 4, "exact: a NaN in a large tensor reaches all ranks", str(x[:10]))


def case_async():
    """Many all-reduces at once, awaited in another order; futures; other collectives between them."""
    init("cpu:saina")
    gloo = dist.new_group(backend="gloo")
    sizes = [1 + 977 * i % 3000 for i in range(200)] + [60000]
    tensors = [torch.full((n,), float(RANK + i)) for i, n in enumerate(sizes)]
    works = [dist.all_reduce(x, async_op=True) for x in tensors]
    many = torch.full((4,), RANK)
    dist.broadcast(many, 2)
    for w in reversed(works):
        w.wait()
    good = all((x - (6 + 4 * i)).abs().max().item() < 1e-3 for i, x in enumerate(tensors))
    point(good and many.tolist() == [2] * 4 and all(w.is_completed() and w.is_success() for w in works),
          "async: 201 all-reduces that were started at once")
    x = torch.full((1000,), RANK + 1.0)
    future = dist.all_reduce(x, async_op=True).get_future().then(lambda f: f.value()[0] / 2)
    point((future.wait() - 5).abs().max().item() < 1e-5, "async: a future, and then")
    x = torch.full((1000,), RANK + 1.0)
    dist.all_reduce(x, async_op=True)
    dist.barrier()
    point((x - 10).abs().max().item() < 1e-5, "async: a barrier waits for what was started before")
    xs = [torch.full((3,), RANK + 1.0), torch.full((2, 500), 2.0)]
    dist.distributed_c10d._get_default_group().allreduce_coalesced(xs).wait()
    point((xs[0] - 10).abs().max().item() < 1e-5 and (xs[1] - 8).abs().max().item() < 1e-5 and xs[1].shape == (2, 500), "async: several as one")
    every = [torch.zeros(2) for _ in range(RANKS)]
    dist.all_gather(every, torch.full((2,), float(RANK)))
    objects = [None] * RANKS
    dist.all_gather_object(objects, {"rank": RANK})
    out = torch.zeros(2)
    dist.scatter(out, [torch.full((2,), float(r)) for r in range(RANKS)] if RANK == 0 else None)
    dist.reduce(many, 1)
    if RANK < 2:
        (dist.send if RANK else dist.recv)(out, 1 - RANK)
    point([e[0].item() for e in every] == [0, 1, 2, 3] and [o["rank"] for o in objects] == [0, 1, 2, 3] and
          out[0].item() == max(RANK, 1) and (RANK != 1 or many[0].item() == 8), "async: other collectives go by Gloo")
    x = values(5000, torch.float32)
    dist.all_reduce(x)
    point(everywhere(x, gloo), "async: all have the same sum, to the last bit")


def case_ddp():
    """DDP without a hook, compared with Gloo and with the hook."""
    init()
    gloo_group = dist.new_group(backend="gloo")
    for cap in (1, 25):
        ddp = DDP(net(), bucket_cap_mb=cap)
        begun = sums()
        train(ddp, 6)
        point(sums() - begun >= 6, "ddp: the gradients go by the aggregator")
        gloo = DDP(net(), bucket_cap_mb=cap, process_group=gloo_group)
        train(gloo, 6)
        point(close_to(ddp, gloo), f"ddp: buckets of {cap} MB: the model is that of Gloo to 1e-4")
        point(same_everywhere(ddp, gloo_group)[0], f"ddp: buckets of {cap} MB: all models are the same to the last bit")
    state = saina.torch.State(job=1, token="s3cret", join_timeout=60)
    hooked = DDP(net(), process_group=gloo_group)
    state.register(hooked)
    train(hooked, 6)
    point(close_to(ddp, hooked), "ddp: the model is that of the hook to 1e-4")
    dist.barrier()
    state.close()
    # Static graph, unused parameters: whatever DDP does with the group.
    unused = DDP(net(), find_unused_parameters=True)
    train(unused, 2)
    ddp = DDP(net(), gradient_as_bucket_view=True, static_graph=True)
    train(ddp, 3)
    point(same_everywhere(unused, gloo_group)[0], "ddp: find_unused_parameters: all models are the same")
    point(same_everywhere(ddp, gloo_group)[0], "ddp: a static graph and views of buckets: all models are the same")
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    ddp = DDP(net())
    ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
    train(ddp, 3)
    point(same_everywhere(ddp, gloo_group)[0], "ddp: PyTorch's own fp16_compress_hook: all models are the same")


def case_example():
    """As in PyTorch's tutorial on distributed applications, but for the name of the backend: a group of all ranks that sums,
    and synchronous SGD whose gradients are averaged by all_reduce."""
    init()
    group = dist.new_group(list(range(RANKS)))
    tensor = torch.ones(1)
    dist.all_reduce(tensor, op=dist.ReduceOp.SUM, group=group)
    point(tensor[0].item() == RANKS, "example: the sum of ones is the number of ranks", str(tensor))
    begun, losses = sums(), []
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    for i in range(20):
        optimizer.zero_grad()
        loss = loss_of(model, i)
        losses.append(loss.item())
        loss.backward()
        for param in model.parameters():
            dist.all_reduce(param.grad.data, op=dist.ReduceOp.SUM)
            param.grad.data /= float(dist.get_world_size())
        optimizer.step()
    point(sums() - begun >= 20 and losses[-1] < losses[0], "example: the aggregator averages the gradients, and it learns", str(losses))
    point(same_everywhere(model)[0], "example: all models are the same to the last bit")


def case_groups():
    """Groups of some ranks, and groups made again."""
    init()
    halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    x = torch.ones(1000)
    dist.all_reduce(x, group=halves[RANK // 2])
    point(x[0].item() == 2, "groups: a group of two ranks sums by Gloo")
    world = dist.new_group()
    x = torch.ones(1000)
    dist.all_reduce(x, group=world)
    dist.all_reduce(x)
    point((x - 16).abs().max().item() < 1e-4, "groups: a second group of all ranks sums, too")
    kept = dist.distributed_c10d._get_default_group()
    dist.barrier()
    dist.destroy_process_group()
    init(init_method=f"tcp://{os.environ['MASTER_ADDR']}:{int(os.environ['MASTER_PORT']) + 100}", rank=RANK, world_size=RANKS)
    x = torch.ones(1000)
    dist.all_reduce(x)
    point((x - 4).abs().max().item() < 1e-5 and sums() > 0, "groups: a process group that was destroyed and made again has the job")
    fails("groups: a group that was destroyed", "was destroyed", lambda: kept.allreduce([torch.ones(3)]).wait())


def case_beside():
    """saina.torch.all_reduce() beside Gloo."""
    init("gloo")
    for n in (3, 70000):
        x = torch.full((n,), RANK + 1.0)
        saina.torch.all_reduce(x)
        point((x - 10).abs().max().item() < 1e-4, f"beside: the sum of {n} elements")
    work = saina.torch.all_reduce(x, dist.ReduceOp.AVG, async_op=True)
    work.wait()
    point((x - 10).abs().max().item() < 1e-4, "beside: the average, async")
    x = torch.full((3,), RANK)
    saina.torch.all_reduce(x, dist.ReduceOp.MAX)
    half = [dist.new_group([0, 1]), dist.new_group([2, 3])][RANK // 2]
    saina.torch.all_reduce(x, group=half)
    point(x.tolist() == [6] * 3, "beside: other types, and groups of some ranks, go by the process group")
    rounds = [g._sums._worker.stats().rounds for g in saina.c10d._beside.values()]
    point(len(rounds) == 1 and rounds[0] >= 5, "beside: the aggregator has summed", str(rounds))
    dist.barrier()
    dist.destroy_process_group()
    gc.collect()
    point(not saina.c10d._beside, "beside: it leaves the job with the process group")


class Elsewhere(torch.Tensor):
    """A tensor that claims to be on a device that nobody stages."""
    device = torch.device("xla", 0)
    __torch_function__ = torch._C._disabled_torch_function_impl


def case_refuse():
    """Tensors that cannot be reduced: a sentence, and the ranks remain together."""
    init()
    fails("refuse: a tensor without data", "no data", lambda: dist.all_reduce(torch.zeros(3, device="meta")))
    fails("refuse: a tensor of another device", "this tensor is on xla:0", lambda: dist.all_reduce(torch.ones(3).as_subclass(Elsewhere)))
    x = torch.full((1000,), 1.0)
    dist.all_reduce(x)
    point((x - 4).abs().max().item() < 1e-5, "refuse: the next all-reduce is in step")


def case_steps():
    """Policy ssp."""
    fails("steps: a job whose policy has no rounds", "has steps (ssp, asp, grouped)", init)


def case_skip():
    """One rank skips an all-reduce."""
    init()
    if RANK == 1:
        fails("skip: rank 1's tensor is refused", "no data", lambda: dist.all_reduce(torch.zeros(1000, device="meta")))
    else:
        x = torch.ones(1000)
        work = dist.all_reduce(x, async_op=True)
    fails("skip: the next all-reduce of the rank that skipped one", "reduces another tensor", lambda: dist.all_reduce(torch.ones(1000)))
    if RANK != 1:
        fails("skip: the one that it skipped", "reduces another tensor", work.wait)
        fails("skip: its future", "reduces another tensor", lambda: work.get_future().wait())
    fails("skip: later ones", "reduces another tensor", lambda: dist.all_reduce(torch.ones(3)))


def case_sizes():
    """One rank has another size: no wrong sum, large or small."""
    init()
    fails("sizes: small tensors that differ", "reduces another tensor", lambda: dist.all_reduce(torch.ones(4 if RANK == 2 else 3)))


def case_ddp_fails():
    """The error of an all-reduce ends backward."""
    init()
    ddp = DDP(net(width=50))
    train(ddp, 2)
    if RANK == 3:
        dist.all_reduce(torch.zeros(1000), async_op=True)
    fails("ddp fails: backward", "reduces another tensor", lambda: train(ddp, 1))


def case_policy():
    """A policy that does not wait for all."""
    fails("policy: a job that does not wait for all", "policy bsp')", init)


def case_policy_timeout():
    """A policy that waits for all, but not for ever: its first round is complete."""
    fails("policy with a time-out: a job that does not always wait for all", "decides a round after 60000 ms", init)


def case_int16():
    """What a job of int16 rounds off one tensor would be added to the next one."""
    fails("int16: a job that adds what it rounds off to the next tensor", "all_reduce needs a job of int32", init)


def case_policy_later():
    """The policy changes while the ranks reduce: all of them get the error, in the same all-reduce."""
    init()
    n = 0
    last = []

    def reduce():
        nonlocal n
        while True:
            x = torch.full((1000,), 1.0)
            if RANK == 3 and n % 3 == 2:
                time.sleep(0.05)
            dist.all_reduce(x)
            if n == 20 and RANK == 0:
                open(f"{OUT}/reducing", "w", encoding="ascii").close()
            last.append(x[0].item())
            n += 1
    fails("policy later: the job's policy no longer waits for all", "was decided without", reduce)
    with open(f"{OUT}/n{RANK}.tmp", "w", encoding="ascii") as f:
        f.write(str(n))
    os.rename(f"{OUT}/n{RANK}.tmp", f"{OUT}/n{RANK}")
    until(lambda: all(os.path.exists(f"{OUT}/n{r}") for r in range(RANKS)))
    every = [int(open(f"{OUT}/n{r}", encoding="ascii").read()) for r in range(RANKS)]
    point(len(set(every)) == 1 and all(abs(v - 4) < 1e-5 for v in last), "policy later: all ranks have had the same sums, and none was of some ranks only", str(every))


def case_smaller():
    """The job has more workers than there are ranks."""
    fails("smaller: a group of three in a job of four", "there are 3 here", init)


def case_token():
    """One rank cannot join."""
    if RANK == 1:
        os.environ["SAINA_TOKEN"] = "wrong"
    began = time.monotonic()
    fails("token: a rank without the token", "rank 1: " if RANK != 1 else "token", init)
    point(time.monotonic() - began < 60, "token: nobody waits for the others' time-out")
    # Rank 0 has the store, by which the others hear of it.
    with open(f"{OUT}/token-{RANK}", "w", encoding="ascii"):
        pass
    until(lambda: all(os.path.exists(f"{OUT}/token-{r}") for r in range(RANKS)), 30)


def case_killed():
    """Rank 3 dies."""
    init()
    x = torch.ones(1000)
    dist.all_reduce(x)
    if RANK == 3:
        os._exit(0)
    fails("killed: the others get an error that names the rank", "rank 3 left the job, or died", lambda: dist.all_reduce(torch.ones(1000)))


def case_timeout():
    """Rank 3 does not come, and lives."""
    init(timeout=6)
    if RANK == 3:
        while not os.path.exists(f"{OUT}/timed-out"):
            time.sleep(0.1)
    else:
        fails("timeout: ranks that wait for longer than the group's time-out", "of the process group" if RANK == 0 else "", lambda: dist.all_reduce(torch.ones(1000)))
        open(f"{OUT}/timed-out", "w", encoding="ascii").close()


if __name__ == "__main__":
    torch.set_num_threads(1)
    for case in sys.argv[1:]:
        globals()["case_" + case]()
    sys.stdout.flush()
    os._exit(0)         # the process group may be broken
