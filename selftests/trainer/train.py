#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A small convolutional network on images made here, trained with DistributedDataParallel.

A script for torchrun as it is without saina, except the lines that use "state" and the class Steps.
Steps takes the place of DistributedDataParallel where models may differ (policies ssp and grouped).

  train.py --reduce gloo|fp16|saina|steps [--steps N] [--delay P] ... --out DIR

Two trainings: a short one in which no worker is late, for the time of a step, then one with
stragglers.  Writes DIR/rank-R.json.
"""

import argparse
import hashlib
import json
import os
import random
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parameters_to_vector, vector_to_parameters

CLASSES, SIDE = 10, 16


def images(n, seed):
    """(n, 1, 16, 16) images and (n,) classes: ten shapes, shifted, of different contrast, with noise."""
    shapes = torch.randn(CLASSES, 1, 6, 6, generator=torch.Generator().manual_seed(1))
    shapes = F.interpolate(shapes, size=12, mode="bilinear", align_corners=False)
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(CLASSES, (n,), generator=g)
    x = 0.8 * torch.randn(n, 1, SIDE, SIDE, generator=g)
    for i in range(n):
        a, b = (int(v) for v in torch.randint(5, (2,), generator=g))
        x[i, :, a:a + 12, b:b + 12] += shapes[y[i]] * (0.5 + torch.rand(1, generator=g))
    return x, y


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(8, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(256, 1536), torch.nn.ReLU(),
        torch.nn.Linear(1536, 384), torch.nn.ReLU(), torch.nn.Linear(384, CLASSES))


class Steps:
    """Replaces gradients by the mean of those that all ranks have finished since this rank's last step."""

    def __init__(self, model, job):
        import saina
        self.parameters = list(model.parameters())
        self.worker = saina.join(job=job, worker=dist.get_rank())

    def exchange(self):
        flat = parameters_to_vector(p.grad for p in self.parameters)
        self.worker.allreduce(flat, "mean")
        at = 0
        for p in self.parameters:
            p.grad.copy_(flat[at:at + p.numel()].view_as(p))
            at += p.numel()


def accuracy(model, test):
    with torch.no_grad():
        return (model(test[0]).argmax(1) == test[1]).float().mean().item() * 100


def train(args, train_set, test, job, steps, base, delay, curve):
    """Trains for so many steps and returns the results as a dictionary.

    job: number of the saina job; base: milliseconds a step waits; delay: probability of a stall;
    curve: keep models during the training, and test them at its end.
    """
    rank = dist.get_rank()
    net = network()
    steps_of = Steps(net, job) if args.reduce == "steps" else None
    model = net if steps_of else DistributedDataParallel(net, bucket_cap_mb=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.rate, momentum=0.5)

    def update():
        optimizer.step()
        optimizer.zero_grad()
    state = None
    if args.reduce == "fp16":
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    if args.reduce == "saina":
        import saina.torch
        state = saina.torch.State(job=job)
        model.register_comm_hook(state, saina.torch.allreduce_hook)

    late, pick = random.Random(7 * rank + 1), torch.Generator().manual_seed(rank)
    points, times = [], []
    dist.barrier()
    start = time.monotonic()
    for step in state.steps(steps, step=update) if state else range(steps):
        began = time.monotonic()
        chosen = torch.randint(len(train_set[0]), (args.batch,), generator=pick)
        loss = F.cross_entropy(model(train_set[0][chosen]), train_set[1][chosen])
        # The time that a device would compute, and a straggler's stall.
        pause = base * (1 + (late.uniform(1, 4) if late.random() < delay else 0))
        if pause:
            time.sleep(pause / 1000)
        loss.backward()
        if steps_of:
            steps_of.exchange()
        if not state:
            update()
        times.append(time.monotonic() - began)
        # The copies are tested after the training, so that no rank waits for a test.
        if curve and (step + 1) % 5 == 0 and (step + 1) // 5 % dist.get_world_size() == rank:
            points.append((time.monotonic() - start, step + 1, parameters_to_vector(net.parameters()).detach()))
    took = time.monotonic() - start
    digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()
    result = {"seconds": took, "steps": steps, "digest": digest,
              "median_ms": sorted(times)[len(times) // 2] * 1000}
    if state:
        result["lost"], result["late_share"] = state.lost, state.stats().late_segments / max(state.stats().segments, 1)
        result["stragglers"] = [s._asdict() for s in state.stragglers()]
    dist.barrier()
    if state:
        state.close()
    if steps_of:
        steps_of.worker.close()
    if curve and rank == 0:
        result["accuracy"] = accuracy(net, test)
    result["curve"] = []
    for at, step, parameters in points:
        vector_to_parameters(parameters, net.parameters())
        result["curve"].append((at, step, accuracy(net, test)))
    return result


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--reduce", choices=("gloo", "fp16", "saina", "steps"), default="gloo")
    p.add_argument("--steps", type=int, default=80)
    p.add_argument("--quiet-steps", type=int, default=20, help="of the training without stragglers")
    p.add_argument("--base", type=float, default=60, help="milliseconds a device would compute for a step")
    p.add_argument("--delay", type=float, default=0.15, help="share of steps in which a rank is late by 1 to 4 times base")
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--rate", type=float, default=0.1)
    p.add_argument("--out", required=True)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    train_set, test = images(4000, 10 + dist.get_rank()), images(600, 5)
    result = {"quiet": train(args, train_set, test, 0, args.quiet_steps, 0, 0, False),
              "late": train(args, train_set, test, 1, args.steps, args.base, args.delay, True)}
    with open(f"{args.out}/rank-{dist.get_rank()}.json", "w", encoding="ascii") as f:
        json.dump(result, f)


main()
