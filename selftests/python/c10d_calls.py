#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One of the ranks of the test c10d.sh: what programs do with all-reduces.  c10d_calls.py CASE...  Writes "ok TEXT" and "not ok TEXT"."""

import multiprocessing
import os
import select
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel as DDP

import saina.torch
from c10d import everywhere, init
from ranks import OUT, RANK, RANKS, fails, net, point, same_everywhere, train, until

SUM, AVG, MAX = dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX


def meet(name):
    """Waits for all ranks, without the process group."""
    with open(f"{OUT}/{name}-{os.environ['MASTER_PORT']}-{RANK}", "w", encoding="ascii"):
        pass
    until(lambda: all(os.path.exists(f"{OUT}/{name}-{os.environ['MASTER_PORT']}-{r}") for r in range(RANKS)))


def full(value, n=1000, **how):
    return torch.full((n,), float(value), **how)


def future_of(x, op=SUM):
    return dist.all_reduce(x, op, async_op=True).get_future()


def case_callbacks():
    """Callbacks of futures that call collectives: all ranks have them in the same order, whatever is fast."""
    init()

    def nested(depth):
        def then(f):
            y = full(2)
            if depth == 1:
                dist.all_reduce(y, async_op=True).wait()
                return f.value()[0] + y
            return f.value()[0] + future_of(y).then(nested(depth - 1)).wait()
        return then
    x = future_of(full(1)).then(nested(1)).wait()
    point(torch.equal(x, full(3 * RANKS)), "callbacks: one that waits for another sum", str(x))
    x = future_of(full(1)).then(nested(3)).wait()
    point(torch.equal(x, full(7 * RANKS)), "callbacks: one in another one in another one", str(x))

    def several(f):
        works = [dist.all_reduce(full(i, 500 * (i + 1)), async_op=True) for i in range(4)]
        count = torch.full((3,), RANK, dtype=torch.int64)
        dist.all_reduce(count, MAX)
        for w in works:
            w.wait()
        return sum(w.result()[0][0].item() for w in works) + count[0].item()
    # Ranks get there at different times, and each program goes on meanwhile.
    futures = []
    for i in range(12):
        if i % RANKS == RANK:
            time.sleep(0.05)
        futures.append(future_of(full(i, 1 + 700 * (i % 3))).then(several).then(lambda f: f.value() + 0.5))
        if i % 4 == 3:
            y = torch.full((2,), RANK, dtype=torch.float64)
            dist.all_reduce(y, MAX)
            point(y[0].item() == RANKS - 1, f"callbacks: by Gloo, beside {i + 1} futures")
    got = [f.wait() for f in futures]
    point(got == [6 * RANKS + RANKS - 1 + 0.5] * 12,
          "callbacks: twelve at once, each of which starts several sums and a collective of Gloo", str(got))

    def raises(f):
        raise KeyError("of the callback")
    fails("callbacks: one that raises", "of the callback", lambda: future_of(full(1)).then(raises).wait())
    for i in range(6):
        later = [None]

        def waits(f):
            # if the sum is there already PyTorch calls it in then(): this program calls nothing later before it returns
            if threading.current_thread() is not threading.main_thread():
                until(lambda: later[0])
                later[0].wait()
            return f.value()[0]
        time.sleep(0.1 * (i % RANKS == RANK))   # the other one's sum is not there, most likely
        held = future_of(full(1)).then(waits)
        later[0] = dist.all_reduce(full(5), async_op=True)
        point(torch.equal(held.wait(), full(RANKS)), f"callbacks: one that waits for what the program calls later, {i + 1}")

    def kept():
        """Threads of callbacks; waits until all are free."""
        of = None

        def free():
            nonlocal of
            of = {t for t in threading.enumerate() if t.name == "saina_callback"}
            return all(t._target.__self__._free == len(of) for t in of)
        until(free)
        return of
    threads = kept()
    for i in range(40):
        future_of(full(i)).then(lambda f: dist.all_reduce(f.value()[0])).wait()
        kept()
    point(threads and kept() == threads, "callbacks: forty, one after the other, start no thread", f"{threads} {kept()}")
    meet("callbacks")
    gone = future_of(full(1)).then(lambda f: dist.destroy_process_group())
    gone.wait()
    point(not dist.is_initialized(), "callbacks: one that destroys the group")


def case_hooks():
    """PyTorch's own hooks and optimizers that use the process group."""
    init()
    gloo = dist.new_group(backend="gloo")
    alone = [dist.new_group([r]) for r in range(RANKS)][RANK]
    state = dict(process_group=None, matrix_approximation_rank=2, start_powerSGD_iter=2)
    for name, hook, of in (("fp16_compress_hook", default_hooks.fp16_compress_hook, None),
                           ("PowerSGD", powerSGD_hook.powerSGD_hook, powerSGD_hook.PowerSGDState(**state)),
                           ("post-localSGD", post_localSGD_hook.post_localSGD_hook, post_localSGD_hook.PostLocalSGDState(None, alone, 100))):
        ddp = DDP(net(), bucket_cap_mb=1)
        ddp.register_comm_hook(of, hook)
        train(ddp, 5, at=lambda step: time.sleep(0.02 * RANK))
        good, digests = same_everywhere(ddp, gloo)
        point(good, f"hooks: {name}, several buckets: all models are the same", digests)
    from torch.distributed.optim import ZeroRedundancyOptimizer
    ddp = DDP(net())
    opt = ZeroRedundancyOptimizer(ddp.parameters(), optimizer_class=torch.optim.SGD, lr=0.1)
    with ddp.join():
        for _ in range(2 + RANK):
            opt.zero_grad()
            ddp(torch.ones(4, 64)).sum().backward()
    opt.step()
    point(same_everywhere(ddp, gloo)[0], "hooks: Join with uneven inputs, and ZeroRedundancyOptimizer")
    dist.monitored_barrier(gloo)
    point(True, "hooks: monitored_barrier of a group of Gloo beside")


def case_average():
    """The mean does not overflow where the sum does."""
    init()
    gloo = dist.new_group(backend="gloo")
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        most = torch.finfo(dtype).max * 0.9
        for n in (1, 5, 1000, 100000):
            x = full(most, n, dtype=dtype)
            dist.all_reduce(x, AVG)
            limit = 2 * torch.finfo(dtype).eps + 2e-6
            point((x.double() / most - 1).abs().max().item() < limit and everywhere(x.double(), gloo),
                  f"average: {n} of {str(dtype)[6:]} near the largest", str(x[:3]))
    values = torch.tensor([0.0, -0.0, 1e-40 * (RANK + 1), float("inf") if RANK == 0 else 1, float("nan") if RANK == 1 else 1, RANK, -3e38,
                           1e-30])
    every = [torch.zeros(8) for _ in range(RANKS)]
    dist.all_gather(every, values, gloo)
    want = torch.stack(every).double().mean(0).float()
    dist.all_reduce(values, AVG)
    point(torch.allclose(values, want, rtol=1e-6, atol=1e-44, equal_nan=True),
          "average: zeros, denormals, Inf and NaN as float64 has them", f"{values} {want}")


#: {case: what the last rank calls while the others sum five elements of float32}
OTHERS = {
    "type": lambda: dist.all_reduce(torch.ones(5, dtype=torch.float64)),
    "operation": lambda: dist.all_reduce(torch.ones(5), MAX),
    "empty": lambda: dist.all_reduce(torch.ones(0)),
    "elements": lambda: dist.all_reduce(torch.ones(1000)),
    "several": lambda: dist.distributed_c10d._get_default_group().allreduce([torch.ones(5), torch.ones(5)]).wait(),
    "barrier": dist.barrier,
    "broadcast": lambda: dist.broadcast(torch.ones(5), 0),
    "future": lambda: future_of(torch.ones(5, dtype=torch.float64)).wait(),
}


def split(name):
    init(timeout=1000)
    dist.all_reduce(torch.ones(3))
    if RANK == RANKS - 1:
        fails(f"split {name}: the rank that calls something else", "rank ", OTHERS[name])
    else:
        fails(f"split {name}: the ranks that sum", "rank ", lambda: dist.all_reduce(torch.ones(5)))
    fails(f"split {name}: later ones", "rank ", lambda: dist.all_reduce(torch.ones(3)))
    meet("split-" + name)


for _name in OTHERS:
    globals()[f"case_split_{_name}"] = lambda name=_name: split(name)


def child(what):
    """What a forked child gets; "" if it has got nothing within 60 seconds."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        try:
            what()
            os.write(write, b"nothing")
        except BaseException as e:
            os.write(write, str(e).encode())
        os._exit(0)
    os.close(write)
    if not select.select([read], [], [], 60)[0]:
        os.kill(pid, signal.SIGKILL)
    said = os.read(read, 4000).decode()
    os.waitpid(pid, 0)
    os.close(read)
    return said


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return i * i


def end_normally():
    dist.destroy_process_group()
    sys.exit(0)


def case_fork():
    """Forked children: an error instead of a wait for threads that they do not have."""
    init()
    dist.all_reduce(full(1))
    work = dist.all_reduce(full(1), async_op=True)
    for name, what in (("all_reduce", lambda: dist.all_reduce(full(1))), ("barrier", dist.barrier),
                       ("all_reduce by Gloo", lambda: dist.all_reduce(full(1), MAX)),
                       ("broadcast", lambda: dist.broadcast(full(1), 0))):
        said = child(what)
        point("forked child" in said, f"fork: {name} in a child: a sentence", said)
    point(child(dist.destroy_process_group) == "nothing", "fork: a child destroys the group")
    process = multiprocessing.get_context("fork").Process(target=end_normally)
    process.start()
    process.join(60)
    point(process.exitcode == 0, "fork: a child destroys the group and ends", str(process.exitcode))
    loaded = [int(x) for x in torch.utils.data.DataLoader(Squares(), num_workers=2)]
    point(loaded == [i * i for i in range(8)], "fork: a DataLoader with workers")
    work.wait()
    x = full(1)
    dist.all_reduce(x)
    dist.barrier()
    point(x[0].item() == RANKS, "fork: the parent goes on")
    dist.destroy_process_group()


class Marked(torch.Tensor):
    """A subclass that sees each function of PyTorch."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") in ("numpy", "copy_", "view"):
            raise RuntimeError("not of a marked tensor")
        return super().__torch_function__(func, types, args, kwargs or {})


def case_views():
    """Tensors whose memory does not have their values."""
    init()
    for n in (5, 1000):
        z = torch.complex(torch.zeros(n), torch.ones(n))
        x = torch.view_as_real(z.conj())[:, 1] if not z.conj().imag.is_neg() else z.conj().imag
        dist.all_reduce(x)
        point(x.is_neg() and torch.equal(x.resolve_neg(), full(-RANKS, n)) and torch.equal(z.imag, full(RANKS, n)),
              f"views: {n} elements with the negative bit")
        x = torch._neg_view(full(1, n))
        dist.all_reduce(x)
        point(torch.equal(x.resolve_neg(), full(-RANKS, n)), f"views: {n} contiguous elements with the negative bit", str(x[:3]))
        x = torch._neg_view(full(1, n, dtype=torch.float64))
        dist.all_reduce(x)
        point(torch.equal(x.resolve_neg(), full(-RANKS, n, dtype=torch.float64)), f"views: {n} elements with the negative bit, by Gloo", str(x[:3]))
        for dtype in (torch.float32, torch.float64):
            x = torch.zeros(2 * n, dtype=dtype)
            x[::2] = 1
            dist.all_reduce(x[::2])
            point(torch.equal(x[::2], full(RANKS, n, dtype=dtype)) and not x[1::2].any(),
                  f"views: every other one of {2 * n} elements of {str(dtype)[6:]}", str(x[:4]))
        x = full(1, n).as_subclass(Marked)
        dist.distributed_c10d._get_default_group().allreduce([x]).wait()
        point(torch.equal(x.as_subclass(torch.Tensor), full(RANKS, n)), f"views: {n} elements of a subclass")
        x = torch.nn.Parameter(full(1, n))
        dist.all_reduce(x)
        point(torch.equal(x.data, full(RANKS, n)) and x.requires_grad, f"views: a parameter of {n} elements")
        with torch.inference_mode():
            x, y = full(1, n), full(1, n, dtype=torch.float16)
        dist.all_reduce(x)
        dist.all_reduce(y)
        point(torch.equal(x.double(), full(RANKS, n).double()) and y[0].item() == RANKS, f"views: {n} elements of inference mode")
        fails(f"views: {n} elements that are one", "share memory", lambda: dist.all_reduce(torch.ones(1).expand(n)))
        fails(f"views: {n} elements of float64 that are one", "share memory", lambda: dist.all_reduce(torch.ones(1, dtype=torch.float64).expand(n)))
        fails(f"views: {n} without memory", "", lambda: dist.all_reduce(torch.ones(n).to_sparse().to_mkldnn()))
        fails(f"views: {n} elements that are quantized", "", lambda: dist.all_reduce(torch.quantize_per_tensor(full(1, n), 1.0, 0, torch.qint8)))
    x = torch.tensor(1.0)
    dist.all_reduce(x)
    y = full(1)
    dist.all_reduce(y)
    point(x.item() == RANKS and torch.equal(y, full(RANKS)), "views: the next all-reduces are right")


def case_late():
    """A rank that begins later, of a group that is refused: all have the sentence."""
    if RANK == 1:
        time.sleep(6)
    fails("late: a group of three in a job of four", "there are 3 here", init)
    meet("late")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for _case in sys.argv[1:]:
        globals()["case_" + _case]()
    sys.stdout.flush()
    os._exit(0)
