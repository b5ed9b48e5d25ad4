#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One of four workers of the test python.sh: api.py CASE [torch].  Writes "ok TEXT" and "not ok TEXT"."""

import errno
import hashlib
import os
import signal
import sys
import threading
import time
import warnings

import numpy

import saina

RANK = int(os.environ["SAINA_RANK"])
N = 4
ELEMENTS = 20000
TORCH = sys.argv[2:] == ["torch"]


def point(good, what, why=""):
    print(f"{'' if good else 'not '}ok {what}" + (f" # {why}" if why and not good else ""), flush=True)
    return good


def make(array):
    """@array, or a tensor that shares its memory, whichever is tested."""
    if TORCH:
        import torch
        return torch.from_numpy(array)
    return array


def digest(array):
    return hashlib.sha256(array.tobytes()).hexdigest()[:16]


def values(rank, rnd, n=ELEMENTS):
    return numpy.random.default_rng(1000 * rnd + rank).integers(-2**31, 2**31, n, numpy.int32)


def total(rnd, ranks=range(N), n=ELEMENTS):
    return sum((values(r, rnd, n).astype(numpy.uint32) for r in ranks), numpy.zeros(n, numpy.uint32)).astype(numpy.int32)


def case_reduce(w):
    for rnd in range(5):
        x = values(RANK, rnd)
        call = w.allreduce(make(x))
        point((x == total(rnd)).all() and call.mask_all == 15 and call.count_min == N,
              f"int32: the sum of round {rnd} is exact and all are in it")
    x = numpy.random.default_rng(RANK).normal(size=ELEMENTS).astype(numpy.float32)
    want = sum(numpy.random.default_rng(r).normal(size=ELEMENTS).astype(numpy.float32) for r in range(N)) / N
    for _ in range(6):      # until the scale is known
        y = x.copy()
        w.allreduce(make(y))
    point(numpy.allclose(y, want, atol=1e-5), "float32: the mean is the mean", str(abs(y - want).max()))
    print("digest", digest(y))
    # Buckets: three in flight, of two types and sizes, in one round.
    sizes = (5000, 7, 10000)
    x = [values(RANK, 9, n) for n in sizes]
    r = [w.start(make(b)) for b in x]
    calls = [q.wait() for q in r]
    point(r[0].done() and r[0].wait() is calls[0], "a request that was waited for is done, and waiting again gives the same result")
    w.round_done()
    point(all((b == total(9, n=n)).all() for b, n in zip(x, sizes)), "buckets: three all-reduces of a round are exact")
    s = w.stats()
    point(s.rounds == 12 and s.sent > 0 and w.info().round == 12, "statistics: twelve rounds", str(s))
    point(w.info().workers == N and w.info().worker == RANK and w.info().elements == ELEMENTS, "info: of the job")
    point(w.segment(0).contributors == N, "segment: four contributors")
    point(not w.decided() and w.behind == 0, "nothing is decided ahead")
    try:
        w.segment(10**6)
        point(False, "a segment that does not exist is refused")
    except saina.Error as e:
        point("the gradient has" in str(e), "a segment that does not exist is refused", str(e))


def case_broadcast(w):
    """k = 3, and the root is late."""
    for root, shape, kind in ((0, (3, 50, 7), "float64"), (3, (70001,), "float32"), (2, (13,), "int8")):
        x = numpy.random.default_rng(root).normal(size=shape).astype(kind)
        y = x.copy() if RANK == root else numpy.zeros(shape, kind)
        if RANK == root:
            time.sleep(0.3)
        w.broadcast(make(y), root)
        point((x == y).all(), f"broadcast: {kind} {shape} of worker {root} is exact, though it was late")
    refused("broadcast: of a list", TypeError, "not list", lambda: w.broadcast([1, 2], 0))
    if TORCH:
        import torch
        y = torch.full((5,), RANK + 1.5, dtype=torch.bfloat16)
        w.broadcast(y, 1)
        point(bool((y == 2.5).all()), "broadcast: of bfloat16")
    y = numpy.zeros(10, numpy.float32)
    try:
        w.broadcast(make(y), 9)
        point(False, "broadcast: from a worker that is not there is refused")
    except saina.Error as e:
        point(e.errno == errno.ECONNABORTED, "broadcast: from a worker that is not there is refused", str(e))


def let_go_first(w, late):
    """k = 3: worker @late waits until the next round is decided without it."""
    while RANK == late and not w.decided():
        time.sleep(0.01)


def case_broadcast_late(w):
    """k = 3, lead=none: worker 3, which gets no multicast, begins when the aggregator no longer has the broadcast's results."""
    x = numpy.full(100, RANK, numpy.int32)
    if RANK == 3:
        while w.info().next_round < 4 * w.info().ring:
            time.sleep(0.05)
        try:
            w.broadcast(x, 0)
            point(False, "broadcast: the error of a worker that is too late says what to do", str(x[:5]))
        except saina.Error as e:
            point(e.errno == errno.ESTALE and "too late for the broadcast of worker 0" in str(e) and "set_round()" in str(e),
                  "broadcast: the error of a worker that is too late says what to do", str(e))
        return
    w.broadcast(x, 0)
    while w.info().round < 5 * w.info().ring:
        w.allreduce(numpy.ones(100, numpy.int32))
    point(not x.any(), "broadcast: the others have the values of worker 0 without the one that is late")


def case_broadcast_first(w):
    """k = 3: a broadcast, as before training."""
    if RANK == 1:
        time.sleep(0.3)
    w.broadcast(make(numpy.zeros(2000, numpy.int32)), 0)
    try:
        w.allreduce(make(numpy.ones(2000, numpy.float32)))
        point(True, "broadcast: float32 follows, also where this worker was late for the broadcast")
    except saina.Error as e:
        point(False, "broadcast: float32 follows, also where this worker was late for the broadcast", str(e))
    # The root, then another worker, was late for float32, which it keeps during the broadcast.
    ones = numpy.ones(2000, numpy.float32)
    for late in (0, 3):
        let_go_first(w, late)
        w.allreduce(make(ones.copy()))
        before = w.residual(0, 2000)
        x = numpy.full(3000, RANK, numpy.int32)
        try:
            w.broadcast(make(x), 0)
            good, why = (x == 0).all() and (w.residual(0, 2000) == before).all() and before.any() == (RANK == late), str(before)
        except saina.Error as e:
            good, why = False, str(e)
        point(good, f"broadcast: of worker 0, while worker {late} keeps a residual of float32, which stays", why)
        # In this round the residual is counted.
        let_go_first(w, (late + 1) % N)
        call = w.allreduce(make(ones.copy()))
        point(call.mask_all >> late & 1, "broadcast: all workers are in the same round after it", str(call))
    # Its root has left: all others know it by the same result.
    if RANK == 0:
        return
    try:
        w.broadcast(make(numpy.zeros(10, numpy.int32)), 0)
        point(False, "broadcast: of a worker that has left is an error")
    except saina.Error as e:
        point(e.errno == errno.ECONNABORTED, "broadcast: of a worker that has left is an error", str(e))
    with open(os.environ["OUT"] + f"/round-{RANK}", "w", encoding="ascii") as file:
        file.write(str(w.info().round))


def case_residual(w):
    """k = 3: what was not counted is in the residuals, exactly."""
    done = numpy.zeros(ELEMENTS, numpy.int32)
    mine = numpy.zeros(ELEMENTS, numpy.int32)
    for rnd in range(10):
        x = values(RANK, rnd)
        mine += x
        if rnd % N == RANK:
            time.sleep(0.05)
        w.allreduce(make(x))
        done += x
    left = w.residual(0, ELEMENTS, "int32")
    numpy.savez(os.environ["OUT"] + f"/residual-{RANK}.npz", done=done, mine=mine, left=left)
    point(w.residual(0, 0).size == 0, "residual of nothing is nothing")
    n = w.info().payload
    moves = [(0, ELEMENTS - n, n), (n, 0, ELEMENTS - n)]
    w.layout(moves)
    moved = numpy.concatenate((left[n:], left[:n]))
    point((w.residual(0, ELEMENTS, "int32") == moved).all(), "layout: the residual has moved")


def refused(what, kind, sentence, call):
    try:
        call()
    except kind as e:
        point(sentence in str(e), f"{what} is refused with a sentence", str(e))
    else:
        point(False, f"{what} is refused with a sentence", "it is not")


def case_refuse(w):
    f = numpy.zeros
    refused("float64", TypeError, "reduces int32 and float32", lambda: w.allreduce(make(f(5))))
    refused("an array that is not contiguous", ValueError, "not contiguous",
            lambda: w.allreduce(make(f((8, 8), numpy.float32)[:, :4])))
    if TORCH:
        import torch
        refused("a tensor without data, of the device meta", ValueError, "has no data",
                lambda: w.allreduce(torch.empty(5, device="meta")))
        refused("a sparse tensor", ValueError, "sparse=False", lambda: w.allreduce(torch.eye(5).to_sparse()))
        refused("a broadcast of a sparse tensor", ValueError, "not dense", lambda: w.broadcast(torch.eye(5).to_sparse()))
        refused("a broadcast of a tensor without data", ValueError, "has no data",
                lambda: w.broadcast(torch.empty(5, device="meta")))
    token = os.environ["OUT"] + f"/token-{RANK}"
    refused("a token file that is not there", saina.Error, token, lambda: saina.join(token_file=token))
    with open(token, "w", encoding="ascii") as file:
        file.write("s3cret\n")
    os.chmod(token, 0o644)
    refused("a token file that everybody may read", saina.Error, "read by everybody", lambda: saina.join(token_file=token))
    os.chmod(token, 0o600)
    refused("a second process of this rank, whose token file is good,", saina.Error, "(EBUSY)",
            lambda: saina.join(token_file=token, join_timeout=3))
    refused("an empty array", ValueError, "is empty", lambda: w.allreduce(make(f(0, numpy.float32))))
    refused("a list", TypeError, "not list", lambda: w.allreduce([1.0, 2.0]))
    refused("more than the job has", saina.Error, f"the job has {ELEMENTS}",
            lambda: w.allreduce(make(f(ELEMENTS * 2, numpy.int32))))
    refused("a mean of int32", saina.Error, "would not be exact", lambda: w.allreduce(make(f(5, numpy.int32)), "mean"))
    refused("another operation", ValueError, "allowed are", lambda: w.start(make(f(5, numpy.int32)), "max"))
    refused("to close a round in which nothing was reduced", saina.Error, "nothing was reduced", w.round_done)
    if not TORCH:
        x = f(5, numpy.int32)
        x.flags.writeable = False
        refused("a read-only array", ValueError, "read-only", lambda: w.allreduce(x))
    x = values(RANK, 0)
    r = w.start(make(x))
    refused("an all-reduce in an open round", saina.Error, "round is open", lambda: w.allreduce(make(f(5, numpy.int32))))
    refused("to close a round that is not over", saina.Error, "wait for its all-reduces", w.round_done)
    r.wait()
    w.round_done()
    point((x == total(0)).all(), "after all refusals the next sum is exact")
    w.close()
    w.close()
    refused("a call of a closed worker", saina.Error, "is closed", w.info)


def case_fork(w):
    """fork() while a thread is in the library; threads that look while one reduces; a signal that ends the waiting."""
    x = values(RANK, 0)
    r = w.start(make(x))
    t = threading.Thread(target=r.wait)
    t.start()
    child = os.fork()
    if not child:
        try:
            w.info()
        except saina.Error as e:
            w.close()
            os._exit(0 if e.errno == errno.ECHILD else 1)
        os._exit(2)
    point(os.waitpid(child, 0)[1] == 0, "fork: a child is refused by name and can close")
    t.join()
    w.round_done()
    point((x == total(0)).all(), "fork: the parent's sum is exact")

    bad = []

    def look():
        for _ in range(300):
            if w.info().worker != RANK or w.stats().bad_messages:
                bad.append(1)
    threads = [threading.Thread(target=look) for _ in range(3)]
    for t in threads:
        t.start()
    for rnd in range(1, 20):
        x = values(RANK, rnd)
        w.allreduce(make(x))
        if (x != total(rnd)).any():
            bad.append(rnd)
    for t in threads:
        t.join()
    point(not bad, "threads: three read info and statistics while one reduces", str(bad))

    # The GIL: Python runs while a call waits for others, and a signal ends the waiting.
    if RANK == 0:
        x = values(RANK, 20)
        r = w.start(make(x))
        signal.signal(signal.SIGALRM, lambda *a: (_ for _ in ()).throw(InterruptedError()))
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            r.wait()
            point(False, "a signal ends the waiting")
        except InterruptedError:
            point(True, "a signal ends the waiting")
        with open(os.environ["OUT"] + "/go", "w"):
            pass
        r.wait()
        w.round_done()
    else:
        while not os.path.exists(os.environ["OUT"] + "/go"):
            time.sleep(0.02)
        x = values(RANK, 20)
        w.allreduce(make(x))
    point((x == total(20)).all(), "what was interrupted can be waited for again")


def case_twin(w):
    """A second process of the same rank."""
    x = values(RANK, 0)
    refused("a second process of the same rank", saina.Error, "(EBUSY)", lambda: saina.join(token="s3cret", join_timeout=3))
    w.allreduce(make(x))
    point((x == total(0)).all(), "the first process of the rank goes on")


def alarm(*_):
    raise TimeoutError("it hangs")


def case_sizes(w):
    """Worker 3 starts another size than the others, which wait for elements that it never sends."""
    x = values(RANK, 0, 1000)
    w.allreduce(make(x))
    point((x == total(0, n=1000)).all(), "ranks that start the same size reduce")
    n = 500 if RANK == 3 else 1000
    signal.signal(signal.SIGALRM, alarm)
    signal.alarm(60 * int(os.environ.get("SAINA_SLOW", "1")))
    calls = []
    try:
        for rnd in (1, 2):
            calls.append(w.start(make(values(RANK, rnd, n))).wait())
            w.round_done()
        # Where the others were first to find out and have left, the round is complete without them.
        point(RANK != 3 and not calls[0].mask_all >> 3 & 1, "ranks that start different sizes get an error", calls)
    except saina.Error as e:
        print("said", e, flush=True)
        point(e.errno == errno.EPROTO, "ranks that start different sizes get an error", str(e))
        words = ("round 2 cannot begin", "this worker's 500 elements of round 1") if RANK == 3 else \
            ("round 1", f"worker {RANK}", "1000 elements", "at most 704")
        point(all(word in str(e) for word in words), "the error names the round, the rank and the sizes", str(e))
        refused("what is started after that", saina.Error, "the same sizes", lambda: w.start(make(values(RANK, 3, n))))
    except TimeoutError:
        point(False, "ranks that start different sizes get an error", "they hang")
    signal.alarm(0)


def case_agree(w):
    """agree() before the first round: with the same sizes; then worker 3 has another order, or another number."""
    w.agree([1000, 500])
    point(True, "agree: workers with the same sizes agree")
    mine, other, theirs = ("500, 1000", 0, "1000, 500") if RANK == 3 else ("1000, 500", 3, "500, 1000")
    refused("agree: another order of the same sizes", saina.Error,
            f"worker {other} starts {theirs} elements, this worker ({RANK}) {mine} elements: ",
            lambda: w.agree([500, 1000] if RANK == 3 else [1000, 500]))
    refused("agree: another number of arrays", saina.Error, "worker 3 starts no elements" if RANK != 3 else "9 arrays of 7, 7, 7, 7, .., 7",
            lambda: w.agree([] if RANK == 3 else [7] * 9))
    x = values(RANK, 0, 100)
    call = w.allreduce(make(x))
    point((x == total(0, [r for r in range(N) if call.mask_all >> r & 1], 100)).all(),
          "agree: after that the next sum is exact")


def case_buckets(w):
    """Worker 0 starts one bucket more than the others, after they have gone on."""
    w.start(make(values(RANK, 0, 500))).wait()
    if RANK == 0:
        while w.info().next_round < 2:
            time.sleep(0.02)
        refused("a bucket that the other ranks do not have", saina.Error, "went on to round 1 with fewer",
                lambda: w.start(make(values(RANK, 0, 500))).wait())
        return
    w.round_done()
    call = w.allreduce(make(values(RANK, 1, 500)))
    point(call.degraded_segments == call.segments, "the others go on when that rank has left")


def case_coded(w):
    """Two parts, each computed by two workers; then bsp, where each has its own; then parts again."""
    rnd = 0
    for name, part, parts in (("coded", RANK % 2, 2), ("bsp", RANK, N), ("coded again", RANK % 2, 2)):
        until = time.monotonic() + 60
        while w.coded_part != (part, parts) and time.monotonic() < until:
            time.sleep(0.02)
        point(w.coded_part == (part, parts), f"{name}: a worker knows which part of how many it computes", str(w.coded_part))
        info = w.info()
        point((info.part, info.parts) == ((part, parts) if parts < N else (0, 0)), f"{name}: info says the same", str(info))
        good = True
        for rnd in range(rnd, rnd + 5):
            x = values(part, rnd)
            call = w.allreduce(make(x))
            good &= bool((x == total(rnd, range(parts))).all()) and call.count_min == call.count_max == parts
        rnd += 1
        point(good, f"{name}: sums have each part once", str(call))


def case_saturate(w):
    """Steps, whose parameter server has a fixed exponent: values that do not fit it."""
    def step(value):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            call = w.allreduce(make(numpy.full(1000, value, numpy.float32)))
        return call, [str(x.message) for x in said]
    calls = [step(0.5) for _ in range(3)]
    point(not any(call.saturated or said for call, said in calls), "saturate: values that fit do not warn", str(calls))
    calls = []
    until = time.monotonic() + 60
    while not any(call.saturated for call, _ in calls) and time.monotonic() < until:
        calls.append(step(1000.0))
    call, said = calls[-1]
    point(call.saturated and len(said) == 1 and
          said[0].startswith(f"saina: {call.saturated} elements of round {call.round} did not fit the exponent"),
          "saturate: the first call with values beyond the exponent warns, with their number and the round", str(calls[-1]))
    point(not any(said for _, said in calls[:-1]), "saturate: no call before it warns", str(calls))
    calls = [step(1000.0) for _ in range(3)]
    point(any(call.saturated for call, _ in calls) and not any(said for _, said in calls),
          "saturate: later ones are counted in Call.saturated, and do not warn again", str(calls))


def case_log(w):
    point(RANK == 3 or any("waits for its workers" in line for line in LINES),
          "log: the callback gets the line that a worker waits for others", str(LINES))


LINES = []


def log(line):
    LINES.append(line)
    print("log", line, flush=True)


def main():
    # The shell starts background processes with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Long enough for a machine that is busy with other tests.
    with saina.join(token="s3cret", join_timeout=60, timeout=120, log=log) as w:
        globals()["case_" + sys.argv[1]](w)


main()
