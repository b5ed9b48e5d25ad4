# SPDX-License-Identifier: GPL-2.0-or-later
"""A rank of a contender of `saina bench': libsaina, Gloo of the installed PyTorch, or MPI by mpi4py.

    peer.py saina SOCKET RANK RANKS LIBRARY       (SAINA_AGGREGATOR, SAINA_JOB and SAINA_RANK are set)
    peer.py gloo SOCKET RANK RANKS INTERFACE STORE
    mpirun ... peer.py mpi SOCKET

The driver (group.py) sends commands to each rank over a unix socket, so that contenders can take turns; those that
wait sleep in read().

    hello RANK NAME=VALUE..     sent first
    prepare BYTES               -> ok
    verify ROUNDS               -> ok START END END .. SUMS     each sum compared with the exact one
    time ROUNDS                 -> ok START END END ..          back to back, nothing but all-reduces
    rest                        -> ok                           memory is freed

START and END are nanoseconds of CLOCK_MONOTONIC, one END for each round.  SUMS is the number of elements that were
compared and equal.  A command that fails is answered with "error SENTENCE"."""

import operator
import socket
import sys
import time
from array import array

PERIOD = 17 * 5		# of the elements of exact()


def saina(rank: str, ranks: str, library: str):
    import ctypes
    try:
        lib = ctypes.CDLL(library)
    except OSError as e:
        sys.exit(f"cannot load libsaina: {e}: apt install libsaina0, or make install")
    lib.saina_strerror.restype = ctypes.c_char_p
    # struct saina_opts, which begins with its size
    handle, opts = ctypes.c_void_p(), (ctypes.c_size_t * 64)(512)
    float32, mean, total = 2, 0, 1

    def reducer(op: int):
        def reduce(values: array) -> None:
            n = len(values)
            ret = lib.saina_allreduce(handle, (ctypes.c_float * n).from_buffer(values), ctypes.c_size_t(n), float32, op, None)
            if ret:
                raise OSError(lib.saina_strerror(handle, ret).decode())
        return reduce

    ret = lib.saina_opts_env(opts) or lib.saina_open(ctypes.byref(handle), opts)
    if ret:
        sys.exit(lib.saina_strerror(None, ret).decode())
    return int(rank), int(ranks), reducer(total), reducer(mean)


def gloo(rank: str, ranks: str, interface: str, store: str):
    import os
    os.environ["GLOO_SOCKET_IFNAME"] = interface
    import torch
    from torch import distributed
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=int(rank), world_size=int(ranks))

    def reduce(values: array) -> None:
        distributed.all_reduce(torch.frombuffer(values, dtype=torch.float32))

    return int(rank), int(ranks), reduce


def mpi():
    from mpi4py import MPI
    world = MPI.COMM_WORLD

    def reduce(values: array) -> None:
        world.Allreduce(MPI.IN_PLACE, values, MPI.SUM)

    return world.rank, world.size, reduce


class Serve:
    """@mean: what is timed instead of the sum @reduce, with other numbers than zeros: it keeps their size."""

    def __init__(self, rank: int, ranks: int, reduce, mean=None):
        self.rank, self.ranks, self.reduce, self.mean = rank, ranks, reduce, mean
        self.values = array("f")

    def exact(self, ranks: int, weight: int) -> array:
        """The sum of the tensors of @ranks ranks whose numbers add up to @weight.

        The elements are small whole numbers, so sums of float32, and of scaled integers, are exact in any order."""
        period = array("f", (ranks * (i * 5 % 17 - 8) + weight * (i % 5 - 2) for i in range(PERIOD)))
        return (period * (len(self.values) // PERIOD + 1))[:len(self.values)]

    def prepare(self, size: str) -> list[int]:
        self.values = array("f", bytes(int(size)))
        if self.mean:
            self.values = self.exact(1, 0)
        return []

    @staticmethod
    def rounds(count: str, reduce, values: array) -> list[int]:
        stamps = [time.monotonic_ns()]
        for _ in range(int(count)):
            reduce(values)
            stamps.append(time.monotonic_ns())
        return stamps

    def verify(self, count: str) -> list[int]:
        stamps, right = [time.monotonic_ns()], 0
        mine, total = self.exact(1, self.rank), self.exact(self.ranks, self.ranks * (self.ranks - 1) // 2)
        for _ in range(int(count)):
            self.values[:] = mine
            stamps.append(self.rounds("1", self.reduce, self.values)[1])
            right += len(total) if self.values == total else sum(map(operator.eq, self.values, total))
        return [*stamps, right]

    def answer(self, words: list[str]) -> list[int]:
        match words:
            case ["prepare", size]:
                return self.prepare(size)
            case ["verify", count]:
                return self.verify(count)
            case ["time", count]:
                return self.rounds(count, self.mean or self.reduce, self.values)
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
    run(Serve(*{"saina": saina, "gloo": gloo, "mpi": mpi}[kind](*rest)), where)
