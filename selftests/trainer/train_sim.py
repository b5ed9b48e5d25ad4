#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The training of saina-train for all workers in one process, on a simulated clock and without a network.

The gradients, the model, the stalls and the controllers of `saina policy control' are the real ones (libtrain.so); who is in
time follows from the delays alone, whole gradients at a time.  For choosing a network and its rates: what it prints are
not measurements."""

import argparse
import ctypes
import json
import math
import os
import sys
from dataclasses import dataclass, field

import numpy

BUILD = os.environ.get("SAINA_BUILD") or os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../build")
PAYLOAD = 256			# elements of a segment
LATE_MOST = 64			# late gradients of a worker that are computed anew
SLICES = 16			# times that a worker asks, while it computes, whether its round is over (train.h)
STRIDE = 32			# of the signs that SFCD samples
INTERVAL_MS, ROUNDS_MIN = 1000, 20		# of a measurement of a controller (controller.c, arrivals.h)
WORKERS_MAX, BUCKETS = 64, 24
STALLS = ("random", "exponential", "slow", "tail", "periods")
LATENCY, JITTER = 98, 99	# streams of rng.h
CSV_HEAD = "round,begun_us,decided_us,loss,k,next_k,count_min,count_max,late_segments,behind,resent,reduce_us"
POLICIES = ("use bsp, fastest:k=6[,late=drop], timeout:10ms,kmin=4, sfcd:k0=1,sth=0.5,cth=5[,kmax=,stride=,late=], external:k0=4[,noise=8], "
            "ssp:10, asp or grouped:g=4")

# --- libtrain.so: dbw.h, deadline.h, arrivals.h and train_lib.c -------------------------------------------

Histograms = ctypes.c_double * BUCKETS * WORKERS_MAX


def structure(name: str, **fields):
    return type(name, (ctypes.Structure,), {"_fields_": list(fields.items())})


Arrivals = structure("Arrivals", workers=ctypes.c_uint, round_us=ctypes.c_double, rounds=ctypes.c_double, late=Histograms)
Dbw = structure("Dbw", k=ctypes.c_uint, noise=ctypes.c_double, arrivals=Arrivals)
Trials = structure("Trials", since=ctypes.c_double, next=ctypes.c_double)
TimeOut = structure("TimeOut", timeout_us=ctypes.c_uint32, k_min=ctypes.c_uint)
Deadline = structure("Deadline", workers=ctypes.c_uint, noise=ctypes.c_double, set=TimeOut, rounds=ctypes.c_double, rest_us=ctypes.c_double,
                     elapsed_us=ctypes.c_double, came=Histograms, missed=Histograms, trial=ctypes.c_bool, before=TimeOut, trial_us=ctypes.c_double)
Choice = structure("Choice", set=TimeOut, round_us=ctypes.c_double, count=ctypes.c_double, rate=ctypes.c_double)


def library():
    lib = ctypes.CDLL(os.path.join(BUILD, "libtrain.so"))
    p, d, u32, u64, i = ctypes.c_void_p, ctypes.c_double, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int
    for name, result, *arguments in (
            ("train_lib_open", p, ctypes.c_char_p, u64, p, i, i, i, d, d, ctypes.c_bool, d, i, ctypes.c_char_p, ctypes.c_size_t),
            ("train_lib_params", ctypes.c_size_t, p), ("train_lib_examples", i, p, ctypes.c_bool), ("train_lib_model", None, p, p), ("train_lib_close", None, p),
            ("train_lib_gradient", d, p, p, u32, i, p), ("train_lib_apply", None, p, p, p, p, u32, p), ("train_lib_accuracy", d, p, p),
            ("train_lib_delay", d, p, u32, i), ("train_lib_random", d, u64, i, u32, i),
            ("dbw_next", ctypes.c_uint, p, p, d, p), ("deadline_observe", None, p, p), ("deadline_choose", Choice, p)):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    layout = [n for s in (Arrivals, Dbw, Trials, TimeOut, Deadline, Choice) for n in (*(getattr(s, name).offset for name, _ in s._fields_), ctypes.sizeof(s))]
    if layout != list((ctypes.c_size_t * len(layout)).in_dll(lib, "train_lib_layout")):
        raise RuntimeError("libtrain.so has other structures than train_sim.py")
    return lib


class SimError(Exception):
    """A sentence for the user."""


class PolicyError(SimError):
    """There is no such policy."""


# --- policies ---------------------------------------------------------------------------------------------

@dataclass
class Policy:
    """When a round is complete, and what becomes of late gradients.

    k, k_min, timeout_ms: a round ends with the k-th gradient, or timeout_ms after its first one (0: never) if k_min are there
    steps, window, groups: not rounds, but steps: at most window ahead of the slowest, or a barrier in each of groups (0: none)
    rule: changes the policy after each round: "sfcd", "dbw", "deadline", or "" (it stays)
    keep: of a late gradient, and of what was kept before, the share that is kept for the next contribution: 1 is late=residual,
        0 late=drop.  The data path has nothing between them
    fresh: late gradients are computed anew on the model that they are added to: late=residual without staleness.  The data path
        has no such thing either
    mean_all: sums are divided by the gradients in them instead of by the workers counted
    """

    workers: int
    k: int
    k_max: int
    k_min: int = 1
    timeout_ms: float = 0
    steps: bool = False
    window: float = math.inf
    groups: int = 0
    rule: str = ""
    keep: float = 1
    fresh: bool = False
    mean_all: bool = False
    c_th: int | None = 5		# None: k
    s_th: float = 0.5
    stride: int = STRIDE
    converged: int = 0
    noise: float = 0
    arrivals: Arrivals = field(default_factory=Arrivals)
    since_ms: float = 0
    trials: Trials = field(default_factory=Trials)
    deadline: Deadline = field(default_factory=Deadline)

    def next_sfcd(self, flips: int, observed: int) -> None:
        """The rule of the data path: the signs of the sums have converged to noise."""
        if not observed:
            return
        if flips >= self.s_th * observed:
            self.converged += 1
        elif self.converged:
            self.converged -= 1
        if self.converged >= (self.k if self.c_th is None else self.c_th):
            self.converged = 0
            self.k = min(self.k + 1, max(self.k, self.k_max))

    def measured(self, now: float, arrival: list[float]) -> bool:
        """Adds the arrival times of a round.  True: a measurement is complete, and is to be forgotten."""
        first = min(arrival)
        for w, at in enumerate(arrival):
            if math.isfinite(at):
                us = (at - first) * 1000
                self.arrivals.late[w][next((b for b in range(BUCKETS - 1) if us < 1 << b), BUCKETS - 1)] += 1
        self.arrivals.rounds += 1
        if self.arrivals.rounds < ROUNDS_MIN or now - self.since_ms < INTERVAL_MS:
            return False
        self.arrivals.round_us = (now - self.since_ms) * 1000 / self.arrivals.rounds
        self.since_ms = now
        return True

    def next_controlled(self, lib, now: float, arrival: list[float]) -> None:
        if not self.measured(now, arrival):
            return
        if self.rule == "dbw":
            self.k = lib.dbw_next(ctypes.byref(Dbw(self.k, self.noise, self.arrivals)), ctypes.byref(self.trials), now / 1000, ctypes.byref(ctypes.c_bool()))
        else:
            lib.deadline_observe(ctypes.byref(self.deadline), ctypes.byref(self.arrivals))
            chosen = lib.deadline_choose(ctypes.byref(self.deadline)).set
            self.timeout_ms, self.k_min = chosen.timeout_us / 1000, chosen.k_min
        self.arrivals = Arrivals(self.workers)


def number(text: str) -> float:
    if "_" in text or text != text.strip():
        raise ValueError(text)
    return float(text)


def whole(text: str) -> int:
    value = number(text)
    if value != int(value):
        raise ValueError(text)
    return int(value)


def milliseconds(text: str) -> float:
    unit = next(u for u in ("us", "ms", "s", "") if text.endswith(u))
    value = number(text.removesuffix(unit)) * {"us": .001, "ms": 1, "s": 1000}[unit]
    if value <= 0:
        raise ValueError(text)
    return value


WORDS = {"k": ("k", whole), "k0": ("k", whole), "kmin": ("k_min", whole), "kmax": ("k_max", whole), "timeout": ("timeout_ms", milliseconds), "sth": ("s_th", number),
         "cth": ("c_th", lambda t: None if t == "k" else whole(t)), "stride": ("stride", whole), "noise": ("noise", number), "keep": ("keep", number), "g": ("groups", whole)}
LATE = {"residual": {"keep": 1}, "drop": {"keep": 0}, "fresh": {"keep": 1, "fresh": True}}
MEAN = {"k": {"mean_all": False}, "all": {"mean_all": True}}
NAMES = {"bsp": {}, "fastest": {}, "sfcd": {"rule": "sfcd", "k": 1}, "external": {"rule": "dbw"}, "timeout": {}, "ssp": {"steps": True}, "asp": {"steps": True},
         "grouped": {"steps": True, "groups": 1}}
FIRST = {"timeout": ("timeout_ms", milliseconds), "ssp": ("window", number)}	# a word without a name, which these need


def parse(text: str, workers: int) -> Policy:
    """A policy as `saina job' takes it, or one with keep, late=fresh or mean.  With noise=X policy timeout has a controller, as external
    always has."""
    try:
        name, _, rest = text.partition(":")
        words = rest.split(",") if rest else []
        set_to = {"k": workers, **NAMES[name]}
        if name in FIRST:
            key, kind = FIRST[name]
            set_to[key] = kind(words.pop(0))
        for word in words:
            key, value = word.split("=")
            if key in ("late", "mean"):
                set_to |= (LATE if key == "late" else MEAN)[value]
            else:
                member, kind = WORDS[key]
                set_to[member] = kind(value)
        p = Policy(workers=workers, **{"k_max": workers, **set_to}, arrivals=Arrivals(workers))
        if not (1 <= p.k <= workers and 1 <= p.k_min <= workers and (p.c_th is None or p.c_th >= 1) and p.stride >= 1 and p.window >= 0 and
                0 <= p.groups <= workers and p.noise >= 0):
            raise ValueError(text)
    except (ValueError, KeyError, IndexError, OverflowError):
        raise PolicyError(f"policy '{text}' is unknown or has a value out of range ({workers} workers): {POLICIES}") from None
    if p.timeout_ms and p.noise:
        p.rule = "deadline"
        p.deadline = Deadline(workers, p.noise, TimeOut(int(p.timeout_ms * 1000), p.k_min))
    p.noise = p.noise or workers
    return p


# --- the simulation ---------------------------------------------------------------------------------------

class Model:
    """Parameters, and what the optimiser keeps of them."""

    def __init__(self, params: int):
        self.p, self.v, self.v2 = (numpy.zeros(params, numpy.float32) for _ in range(3))
        self.steps = 0


class Worker:
    """free: when it can begin a round, ms; begin, finish, done: of the present round: computation ends, gradient is sent (steps: done is None
    until it has begun); kept: rounds of the late gradients in the residual; model, seen, pushed, waits, ends: of steps"""

    def __init__(self, params: int):
        self.free = self.begin = self.finish = 0.0
        self.done: float | None = None
        self.loss = -1.0
        self.kept: list[int] = []
        self.g, self.residual, self.seen = (numpy.zeros(params, numpy.float32) for _ in range(3))
        self.model: Model | None = None
        self.pushed, self.waits, self.ends, self.csv = 0, False, False, None


class Simulation:
    """o: the options, as arguments() returns them, but for the rate"""

    def __init__(self, o: argparse.Namespace, rate: float):
        self.rate = rate
        self.o, self.lib, self.pol = o, library(), parse(o.policy, o.workers)
        error = ctypes.create_string_buffer(300)
        self.handle = self.lib.train_lib_open(os.fsencode(o.data), o.seed, (ctypes.c_int * len(o.hidden))(*o.hidden), len(o.hidden), o.workers, o.batch, rate,
                                              o.momentum, o.adam, o.delay, STALLS.index(o.stalls), error, len(error))
        if not self.handle:
            raise SimError(error.value.decode())
        self.params = self.lib.train_lib_params(self.handle)
        self.model = self.model_new()
        self.sum = numpy.zeros(self.params, numpy.float32)
        self.sampled = numpy.concatenate([numpy.arange(at, min(at + PAYLOAD, self.params), self.pol.stride) for at in range(0, self.params, PAYLOAD)])
        self.signs = None
        self.w = [Worker(self.params) for _ in range(o.workers)]
        self.late = self.offered = 0
        self.shown = 0.0
        self.accuracy_csv = self.events = None
        if o.out:
            self.record()

    def close(self) -> None:
        self.lib.train_lib_close(self.handle)
        for f in (self.accuracy_csv, self.events, *(w.csv for w in self.w)):
            if f:
                f.close()

    def model_new(self) -> Model:
        model = Model(self.params)
        self.lib.train_lib_model(self.handle, model.p.ctypes.data)
        return model

    def examples(self, test: bool) -> int:
        return self.lib.train_lib_examples(self.handle, test)

    def record(self) -> None:
        """Creates the files of a run (train.h)."""
        o = self.o

        def create(name: str, head: str = ""):
            f = open(os.path.join(o.out, name), "w", encoding="utf-8")
            f.write(head)
            return f

        for i, w in enumerate(self.w):
            w.csv = create(f"worker-{i}.csv", CSV_HEAD + "\n")
        self.accuracy_csv, self.events = create("accuracy.csv", "round,accuracy\n"), create("events.json")
        with create("run.json") as f:
            json.dump({"run": o.run, "policy": o.policy, "workers": o.workers, "rounds": o.rounds, "parameters": self.params, "segments": self.segments(),
                       "payload": PAYLOAD, "batch": o.batch, "rate": self.rate, "momentum": o.momentum, "base_ms": o.base, "delay_p": o.delay, "seed": o.seed,
                       "train": self.examples(False), "test": self.examples(True), "simulated": True}, f, indent=2)

    def segments(self) -> int:
        return -(-self.params // PAYLOAD)

    def latency(self, round_: int, w: int) -> float:
        """Time until worker @w has the result of @round_, ms."""
        return self.o.net * (0.5 + self.lib.train_lib_random(self.o.seed, LATENCY, round_, w))

    def compute(self, round_: int, w: int) -> float:
        """Time that worker @w computes in @round_ without a stall, ms."""
        return self.o.base * (1 + self.o.jitter * self.lib.train_lib_random(self.o.seed, JITTER, round_, w))

    def stall(self, round_: int, w: int) -> float:
        return self.o.base * self.lib.train_lib_delay(self.handle, round_, w)

    def gradient(self, model: Model, round_: int, w: int) -> float:
        return self.lib.train_lib_gradient(self.handle, model.p.ctypes.data, round_, w, self.w[w].g.ctypes.data)

    def apply(self, model: Model, mean: numpy.ndarray) -> None:
        model.steps += 1
        self.lib.train_lib_apply(self.handle, model.p.ctypes.data, model.v.ctypes.data, model.v2.ctypes.data, model.steps - 1, mean.ctypes.data)

    def test(self, round_: int, now: float, model: Model, last: bool) -> None:
        """Tests the model of @round_ at @now (ms), if due; @last: in any case."""
        if (round_ + 1) % self.o.eval and not last:
            return
        accuracy = self.lib.train_lib_accuracy(self.handle, model.p.ctypes.data)
        if self.accuracy_csv:
            self.accuracy_csv.write(f"{round_},{accuracy:.6f}\n")
        if now - self.shown < self.o.progress and not last:
            return
        self.shown = now
        print(f"{self.o.run:<8} simulated {now / 1e3:7.3f} s  round {round_ + 1:4}  loss {self.w[0].loss:7.4f}  accuracy {accuracy * 100:6.2f} %  k {self.pol.k}  "
              f"late {100 * self.late / self.offered:4.1f} %", flush=sys.stdout.isatty())

    def run(self) -> None:
        if self.pol.steps:
            self.run_steps()
            return
        for round_ in range(self.o.rounds):
            now = self.round(round_)
            last = round_ + 1 == self.o.rounds or bool(self.o.seconds and now > self.o.seconds * 1000)
            self.test(round_, now, self.model, last)
            if last:
                return

    # --- rounds ---

    def decision(self) -> float:
        """When the round is complete: the k-th gradient is there, or the time is over."""
        p, at = self.pol, sorted(w.done for w in self.w)
        return min(at[p.k - 1], max(at[0] + p.timeout_ms, at[p.k_min - 1]) if p.timeout_ms else math.inf)

    def contribute(self, round_: int, i: int) -> int:
        """Adds the worker's gradient, and what is kept of earlier ones, to the sum.  How many they are."""
        w = self.w[i]
        n = len(w.kept) + 1
        w.loss = self.gradient(self.model, round_, i)
        self.sum += w.g
        if self.pol.fresh:
            for late in w.kept:
                self.gradient(self.model, late, i)
                self.sum += w.g
        elif w.kept:
            self.sum += w.residual
            w.residual[:] = 0
        w.kept = []
        return n

    def keep(self, round_: int, i: int) -> None:
        """A gradient that was finished, but late."""
        w, p = self.w[i], self.pol
        if not p.keep or p.fresh and len(w.kept) == LATE_MOST:
            return
        w.kept.append(round_)
        if not p.fresh:
            w.loss = self.gradient(self.model, round_, i)
            w.residual[:] = p.keep * (w.residual + w.g).astype(numpy.float64)

    def lose(self, round_: int, i: int, known: float) -> float:
        """A worker that is not in the sum: when does it begin the next round?  It has the result at @known.  As train_worker.c: it asks
        before it computes, SLICES times while it does, and not in a stall."""
        w = self.w[i]
        self.late += 1
        if self.o.finish or known > w.finish:
            self.keep(round_, i)
            return max(w.done, known)
        w.done = math.inf		# no gradient comes
        if known <= w.begin:
            return w.begin
        part = (w.finish - w.begin) / SLICES
        return w.begin + part * math.ceil((known - w.begin) / part)

    def flips(self, round_: int) -> tuple[int, int]:
        """Compares signs of the sums with the round before, as the data path does.  Flips, and signs observed."""
        before, self.signs = self.signs, self.sum[self.sampled] < 0
        found = (int((self.signs != before).sum()), len(self.sampled)) if before is not None else (0, 0)
        if self.events:
            self.events.write(json.dumps({"event": "round", "job": self.o.run, "round": round_, "k": self.pol.k, "flips": found[0], "observed": found[1]}) + "\n")
        return found

    def round(self, round_: int) -> float:
        """Returns when the first worker had the result, ms."""
        k, count, gradients, first = self.pol.k, 0, 0, math.inf
        for i, w in enumerate(self.w):
            w.begin = w.free
            w.finish = w.begin + self.compute(round_, i)
            w.done = w.finish + self.stall(round_, i)
            w.loss = -1.0
        decided = self.decision()
        self.sum[:] = 0
        in_time = [w.done <= decided for w in self.w]
        for i, w in enumerate(self.w):
            self.offered += 1
            known = decided + self.latency(round_, i)
            if in_time[i]:
                count += 1
                gradients += self.contribute(round_, i)
                w.free = known
                first = min(first, known)
            else:
                w.free = self.lose(round_, i, known)
        flips = self.flips(round_)
        if self.pol.rule == "sfcd":
            self.pol.next_sfcd(*flips)
        elif self.pol.rule:
            self.pol.next_controlled(self.lib, decided, [w.done for w in self.w])
        for w, was_in in zip(self.w, in_time):
            if w.csv:
                w.csv.write(f"{round_},{w.begin * 1e3:.0f},{w.free * 1e3:.0f},{w.loss:.6f},{k},{self.pol.k},{count},{count},{0 if was_in else self.segments()},0,0,"
                            f"{(w.free - min(w.done, w.free)) * 1e3:.0f}\n")
        self.sum /= numpy.float32(gradients if self.pol.mean_all else count)
        self.apply(self.model, self.sum)
        return first

    # --- steps: each worker pushes its gradient into the sums of the server, and reads them when it may go on.  Each has a
    # model of its own, which lacks what others have pushed since ---

    def step_begin(self, i: int) -> None:
        """Worker @i reads the sums, applies what is new as a mean of all workers, and computes."""
        w, o, now = self.w[i], self.o, self.w[i].free
        if w.pushed:
            w.g[:] = (self.sum - w.seen) / numpy.float32(o.workers)
            w.seen[:] = self.sum
            self.apply(w.model, w.g)
            if w.csv:
                w.csv.write(f"{w.pushed - 1},{w.begin * 1e3:.0f},{now * 1e3:.0f},{w.loss:.6f},{o.workers},{o.workers},{o.workers},{o.workers},0,0,0,0\n")
            if not i:
                self.test(w.pushed - 1, now, w.model, w.pushed == o.rounds)
        w.waits = w.ends = w.pushed == o.rounds
        if not w.ends:
            w.begin = now
            w.loss = self.gradient(w.model, w.pushed, i)
            w.done = now + self.compute(w.pushed, i) + self.stall(w.pushed, i)
            self.offered += 1

    def release(self, i: int, now: float) -> None:
        """Worker @i has pushed at @now, in ms: lets the workers go on that need not wait any longer."""
        g = self.pol.groups
        low = min(w.pushed for w in self.w)
        group_waits = bool(g) and all(w.waits for w in self.w[i % g::g])
        for j, w in enumerate(self.w):
            if not w.waits or w.ends or (g and (j % g != i % g or not group_waits)) or (not g and w.pushed - low > self.pol.window):
                continue
            w.waits, w.done = False, None
            # a group's sums are read after the group is done: another exchange
            w.free = now + self.latency(w.pushed - 1, i % g if g else j) * (2 if g else 1)

    def run_steps(self) -> None:
        for w in self.w:
            w.model = self.model_new()
        while True:
            # The worker with the next event: its gradient is done, or it begins.
            at, i = min(((w.free if w.done is None else w.done, i) for i, w in enumerate(self.w) if not w.waits), default=(0, -1))
            if i < 0 or (self.o.seconds and at > self.o.seconds * 1000):
                return
            w = self.w[i]
            if w.done is None:
                self.step_begin(i)
                continue
            self.sum += w.g
            w.pushed += 1
            w.waits = True
            self.release(i, at)


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="train_sim.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                epilog="Options of saina-train mean the same there: saina-train --help.")
    p.add_argument("--data", required=True, help="examples that examples.py has made")
    for name, kind, value, what in (
            ("seed", int, 1, ""), ("workers", int, 8, ""), ("rounds", int, 200, ""), ("batch", int, 24, ""), ("momentum", float, 0, ""),
            ("base", float, 100, ""), ("delay", float, .15, ""), ("eval", int, 4, ""), ("out", str, None, ""), ("run", str, "run", ""),
            ("progress", float, 1000, "simulated ms between lines, 0: a line for each test"), ("policy", str, "bsp", "that is simulated"),
            ("net", float, 25, "ms of an all-reduce, on average"), ("jitter", float, .05, "a gradient takes up to this share longer than base"),
            ("seconds", float, 0, "ends after so long, even if rounds are left; 0: never")):
        p.add_argument(f"--{name}", type=kind, default=value, help=what + (f" ({value})" if value is not None else ""))
    p.add_argument("--rate", type=lambda t: [float(r) for r in t.split(",")], default=[.1], help="a list is simulated one after the other (0.1)")
    p.add_argument("--hidden", type=lambda t: [int(n) for n in t.split(",")], default=[512, 512])
    p.add_argument("--stalls", choices=STALLS, default=STALLS[0])
    for name in ("adam", "finish"):
        p.add_argument(f"--{name}", action="store_true")
    o = p.parse_args()
    if not 1 <= o.workers <= WORKERS_MAX or min(o.rounds, o.batch, o.eval) < 1:
        p.error(f"--workers must be from 1 to {WORKERS_MAX}, --rounds, --batch and --eval at least 1")
    return o


def main() -> int:
    o = arguments()
    try:
        for rate in o.rate:
            s = Simulation(o, rate)
            try:
                print(f"simulated: {s.params} parameters, {s.examples(False)} examples for training, {s.examples(True)} for testing, {o.policy}")
                s.run()
            finally:
                s.close()
    except PolicyError as e:
        print(f"train_sim: {e}", file=sys.stderr)
        return 2
    except (SimError, OSError) as e:
        print(f"train_sim: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
