#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A rank of the figure fashion: DistributedDataParallel with the hook of saina.torch.

    fashion_rank.py RANK RANKS IMAGES FOLDER

Reads a line of JSON for each training, and prints its result as a line of JSON.  The rank stays in the job until it
reads an empty line, which comes when all ranks are through: under a policy with kmin the last one needs others.  A
gradient takes the time that was drawn for it: after computing, the rank sleeps for the rest of it before it sends.

IMAGES: folder of Fashion-MNIST; FOLDER: for a file of its own.
"""

import gzip
import hashlib
import json
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(1, os.path.dirname(os.path.realpath(__file__)))
# pylint: disable=wrong-import-position
import models
import numpy
import saina.torch
import torch
import torch.distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parameters_to_vector, vector_to_parameters

BATCH = 32
TESTS = 2000		# of the 10000 test images
EVERY = 5		# rounds between two tests
OPTIMISERS = {"momentum": lambda p, rate: torch.optim.SGD(p, lr=rate, momentum=0.9), "adam": lambda p, rate: torch.optim.Adam(p, lr=rate),
              "adamw": lambda p, rate: torch.optim.AdamW(p, lr=rate)}


def idx(folder, name):
    """Reads an IDX file of bytes into a tensor."""
    with gzip.open(f"{folder}/{name}") as f:
        dimensions = f.read(4)[3]
        sizes = numpy.frombuffer(f.read(4 * dimensions), ">u4")
        return torch.from_numpy(numpy.frombuffer(f.read(), numpy.uint8).reshape(sizes).copy())


def images(folder, name):
    pixels = idx(folder, f"{name}-images-idx3-ubyte.gz").unsqueeze(1).float()
    return (pixels - 72.9) / 90, idx(folder, f"{name}-labels-idx1-ubyte.gz").long()


def network():
    """The network: 27690 parameters, which fit in one bucket."""
    return torch.nn.Sequential(torch.nn.Conv2d(1, 8, 5, stride=2), torch.nn.ReLU(), torch.nn.Conv2d(8, 16, 3, stride=2), torch.nn.ReLU(),
                               torch.nn.Flatten(), torch.nn.Linear(400, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))


def accuracy(net, test):
    with torch.no_grad():
        return (net(test[0]).argmax(1) == test[1]).float().mean().item() * 100


def train(job, rank, ranks, train_set, test):
    torch.manual_seed(job["seed"])
    net = network()
    model = DistributedDataParallel(net)
    optimiser = OPTIMISERS[job["optimiser"]](model.parameters(), job["rate"])
    state = saina.torch.State(model, optimiser, job=job["job"])
    due, over, curve = 0.0, [], []

    def hook(of, bucket):
        over.append(max(0, time.monotonic() - due))
        time.sleep(max(0, due - time.monotonic()))
        return saina.torch.allreduce_hook(of, bucket)

    model.register_comm_hook(state, hook)

    def update():
        """What follows backward; also called for rounds that were decided without this rank."""
        optimiser.step()
        optimiser.zero_grad()
        ends.append(time.monotonic() - start)
        if rank == 0 and len(ends) % EVERY == 0:
            curve.append((ends[-1], len(ends), parameters_to_vector(net.parameters()).detach()))

    draws = models.draw("serene", ranks, job["rounds"], job["seed"])[rank]
    pick = torch.Generator().manual_seed(1000 * job["seed"] + rank)
    state.broadcast(net)		# no rank begins before all have joined
    start, ends = time.monotonic(), []
    for step in state.steps(job["rounds"], step=update):
        due = time.monotonic() + draws[step] * job["base_ms"] / 1000
        chosen = torch.randint(len(train_set[0]), (BATCH,), generator=pick)
        F.cross_entropy(model(train_set[0][chosen]), train_set[1][chosen]).backward()
    digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in net.parameters())).hexdigest()
    late = state.stats()
    result = {"seconds": ends[-1], "rounds": len(ends), "digest": digest, "skipped": state.lost, "late": late.late_segments / max(late.segments, 1),
              "computed_over_ms": 1000 * sum(over) / len(over), "longest_ms": 1000 * max(b - a for a, b in zip(ends, ends[1:]))}
    # The models are tested after the training, so that no rank waits for tests.
    result["curve"] = []
    for at, rounds, parameters in curve:
        vector_to_parameters(parameters, net.parameters())
        result["curve"].append((round(at, 4), rounds, accuracy(net, test)))
    print(json.dumps(result), flush=True)
    sys.stdin.readline()
    state.close()


def main():
    rank, ranks, folder, own = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
    torch.set_num_threads(1)
    train_set, test = images(folder, "train"), images(folder, "t10k")
    test = test[0][:TESTS], test[1][:TESTS]
    # DistributedDataParallel needs a process group: one of this rank alone.
    dist.init_process_group("gloo", init_method=f"file://{own}/group-{os.getpid()}", rank=0, world_size=1)
    while line := sys.stdin.readline():
        train(json.loads(line), rank, ranks, train_set, test)


main()
