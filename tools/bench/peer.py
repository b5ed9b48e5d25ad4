# SPDX-License-Identifier: GPL-2.0-or-later
"""A rank of a peer of `saina bench': Gloo of the installed PyTorch, or MPI by mpi4py.

    peer.py gloo SOCKET RANK RANKS INTERFACE STORE
    mpirun ... peer.py mpi SOCKET

saina.c describes the commands that it gets by the socket, and its answers."""

import socket
import sys
import time

import numpy


def gloo(rank: str, ranks: str, interface: str, store: str):
    import os
    os.environ["GLOO_SOCKET_IFNAME"] = interface
    import torch
    from torch import distributed
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=int(rank), world_size=int(ranks))

    def reduce(values) -> None:
        distributed.all_reduce(torch.from_numpy(values))

    return int(rank), int(ranks), reduce


def mpi():
    from mpi4py import MPI
    world = MPI.COMM_WORLD

    def reduce(values) -> None:
        world.Allreduce(MPI.IN_PLACE, values, MPI.SUM)

    return world.rank, world.size, reduce


class Serve:
    def __init__(self, rank: int, ranks: int, reduce):
        self.rank, self.ranks, self.reduce = rank, ranks, reduce
        self.values = numpy.zeros(0, numpy.float32)

    def exact(self, ranks: int, weight: int) -> numpy.ndarray:
        """The sum of the tensors of @ranks ranks whose numbers add up to @weight.

        The elements are small whole numbers, so sums are exact in any order."""
        i = numpy.arange(len(self.values))
        return (ranks * (i * 5 % 17 - 8) + weight * (i % 5 - 2)).astype(numpy.float32)

    def prepare(self, size: str) -> list[int]:
        self.values = numpy.zeros(int(size) // 4, numpy.float32)
        return []

    def rounds(self, count: str) -> list[int]:
        stamps = [time.monotonic_ns()]
        for _ in range(int(count)):
            self.reduce(self.values)
            stamps.append(time.monotonic_ns())
        return stamps

    def verify(self, count: str) -> list[int]:
        stamps, right = [time.monotonic_ns()], 0
        mine, total = self.exact(1, self.rank), self.exact(self.ranks, self.ranks * (self.ranks - 1) // 2)
        for _ in range(int(count)):
            self.values[:] = mine
            stamps.append(self.rounds("1")[1])
            right += int((self.values == total).sum())
        return [*stamps, right]

    def answer(self, words: list[str]) -> list[int]:
        match words:
            case ["prepare", size]:
                return self.prepare(size)
            case ["verify", count]:
                return self.verify(count)
            case ["time", count]:
                return self.rounds(count)
            case ["rest"]:
                return self.prepare("0")
        raise ValueError(f"unknown command: {' '.join(words)}")


def run(serve: Serve, path: str, *said: str) -> None:
    """Serves the driver until it closes the connection; said: of itself, NAME=VALUE."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.connect(path)
        with s.makefile("rw", encoding="ascii") as f:
            print("hello", serve.rank, *said, file=f, flush=True)
            for line in f:
                try:
                    answer = ["ok", *serve.answer(line.split())]
                except Exception as e:		# the driver reports any error
                    answer = ["error", " ".join(str(e).split())]
                print(*answer, file=f, flush=True)


if __name__ == "__main__":
    kind, where, *rest = sys.argv[1:]
    run(Serve(*{"gloo": gloo, "mpi": mpi}[kind](*rest)), where)
