#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""saina-train --simulate on a small set of made-up pictures: policies that must learn the same do,
workers give up gradients as real ones do, and bad policies are refused.  TAP."""

import os
import re
import random
import struct
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, TOP + "/selftests/lib")
from tap import Tap  # noqa: E402  # pylint: disable=wrong-import-position

PROGRAM = os.path.join(os.environ.get("SAINA_BUILD", TOP + "/build"), "saina-train")
LINE = re.compile(r"simulated +([\d.]+) s +round +(\d+) .*accuracy +([\d.]+) %  k (\d+)  late +([\d.]+) %")
tap = Tap("simulation: ")
point = tap.point


def pictures(folder):
    """Four classes, each with a bright quarter, and noise."""
    rng = random.Random(1)
    for name, n in ("train", 256), ("t10k", 128):
        labels = [rng.randrange(4) for _ in range(n)]
        pixels = bytes(min(255, int(rng.random() * 200) + 90 * (i // 4 == y)) for y in labels for i in range(16))
        with open(f"{folder}/{name}-labels-idx1-ubyte", "wb") as f:
            f.write(struct.pack(">II", 0x801, n) + bytes(labels))
        with open(f"{folder}/{name}-images-idx3-ubyte", "wb") as f:
            f.write(struct.pack(">IIII", 0x803, n, 4, 4) + pixels)


def simulate(folder, policy, *options):
    """[(seconds, round, accuracy, k, late)]"""
    p = subprocess.run([PROGRAM, "--simulate", "--data", folder, "--workers", "4", "--hidden", "8", "--batch", "4", "--rounds", "40", "--eval", "1",
                        "--progress", "0", "--rate", "0.3", "--policy", policy, *options], capture_output=True, text=True, check=False)
    if p.returncode:
        raise SystemExit(f"Bail out! {policy}: {p.stderr}")
    return [tuple(map(float, m.groups())) for m in LINE.finditer(p.stdout)]


def learned(tests):
    return [(t[1], t[2]) for t in tests]


def points(folder):
    bsp = simulate(folder, "bsp")
    point(len(bsp) == 40 and bsp[-1][2] > bsp[0][2] and bsp == simulate(folder, "bsp"), "a seed gives one result", bsp[-1])
    for policy in "fastest:k=4", "timeout:100s,kmin=1", "ssp:0", "grouped:g=1":
        found = simulate(folder, policy)
        point(learned(found) == learned(bsp), f"{policy} learns what bsp learns if it waits for all", found[-1])
    point(simulate(folder, "asp", "--net", "0") == simulate(folder, "grouped:g=4", "--net", "0"), "groups of one worker are asp")
    point(all(w[0] < b[0] for w, b in zip(simulate(folder, "ssp:2")[1:], bsp[1:])), "a window makes steps shorter")

    # No stalls; workers differ by more than a result takes to arrive.
    spread = ("--delay", "0", "--jitter", "0.5", "--net", "0.01")
    residual, drop = (simulate(folder, f"fastest:k=2,late={late}", *spread) for late in ("residual", "drop"))
    point(residual == drop and residual[-1][4] == 50, "a worker that has the result while it computes gives its gradient up", residual[-1], drop[-1])
    residual, drop = (simulate(folder, f"fastest:k=2,late={late}", *spread, "--finish") for late in ("residual", "drop"))
    point(learned(residual) != learned(drop) and [t[0] for t in residual] == [t[0] for t in drop], "--finish: it is kept, or dropped")
    late = ("--delay", "0.5", "--jitter", "0", "--net", "1")
    residual, drop = (simulate(folder, f"fastest:k=2,late={rule}", *late) for rule in ("residual", "drop"))
    point(learned(residual) != learned(drop), "a worker that is stalled after it has computed keeps its gradient")
    fresh, mean = (simulate(folder, f"fastest:k=2,late=fresh{rest}", *late) for rest in ("", ",mean=all"))
    point(len({tuple(learned(x)) for x in (residual, drop, fresh, mean)}) == 4, "late=fresh and mean=all are rules of their own")

    tests = simulate(folder, "timeout:10ms,kmin=1", "--delay", "0.5", "--jitter", "0", "--net", "0")
    longest = max(b[0] - a[0] for a, b in zip(tests, tests[1:]))
    point(longest < 0.32 and tests[-1][4] > 20, "a time-out ends rounds without those that are stalled", longest, tests[-1])
    ks = [t[3] for t in simulate(folder, "sfcd:k0=1,sth=0,cth=3")]
    point(ks[:10] == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4] and ks[-1] == 4, "sfcd raises k by one after each cth rounds with as many flips", ks)
    ks = [t[3] for t in simulate(folder, "sfcd:k0=1,sth=0,cth=k,kmax=3")]
    point(ks[:8] == [1, 2, 2, 3, 3, 3, 3, 3], "cth=k waits for k rounds, and k is at most kmax", ks)
    point(simulate(folder, "external:k0=4", "--rounds", "60", "--net", "1")[-1][3] < 4, "the controller of k does not wait for stalls")
    slow = ("--stalls", "slow", "--rounds", "1000", "--seconds", "40", "--net", "1")
    fixed, controlled = (simulate(folder, f"timeout:1s,kmin=1{noise}", *slow)[-1] for noise in ("", ",noise=1000000"))
    point(controlled[1] > 1.5 * fixed[1] and (fixed[4], controlled[4] > 10) == (0, True), "the controller of a time-out does not wait for a slow worker", fixed, controlled)
    fixed, controlled = (simulate(folder, f"timeout:1us,kmin=1{noise}", *slow, "--stalls", "random", "--delay", "0", "--jitter", "0.05", "--seconds", "60", "--finish")[-1]
                         for noise in ("", ",noise=1000000"))
    point(controlled[4] < fixed[4] / 2, "the controller of a time-out waits for workers that are late by little", fixed, controlled)
    exponential = simulate(folder, "bsp", "--stalls", "exponential", "--net", "0", "--jitter", "0", "--rounds", "400")[-1][0] / 400
    # 1 + H(4) times the base; the mean of 400 maxima has a standard deviation of .06
    point(abs(exponential - 0.1 * (1 + 25 / 12)) < 0.02, "exponential computation takes as long as order statistics say", exponential)
    slow = simulate(folder, "bsp", "--stalls", "slow", "--net", "0", "--jitter", "0")
    point(all(abs(t[0] - 0.4 * (i + 1)) < 0.001 for i, t in enumerate(slow)), "a slow worker makes every round four times as long", slow)
    p = subprocess.run([PROGRAM, "--simulate", "--data", folder, "--stalls", "some"], capture_output=True, text=True, check=False)
    point(p.returncode == 2 and "'some' is none of random, exponential, slow, tail, periods" in p.stderr, "unknown stalls are refused with those that there are", p.stderr)
    point(simulate(folder, "bsp", "--seconds", "2")[-1][0] < 3, "--seconds ends a run")
    for policy in "fastest:k=5", "fastest:k=0", "fastest:k=2x", "sfcd:k0=1,sth=", "timeout:10", "timeout:10ms,kmin=9", "ssp:-1", "grouped:g=5", "bsp:1", "now", "fastest:late=maybe":
        p = subprocess.run([PROGRAM, "--simulate", "--data", folder, "--workers", "4", "--rounds", "1", "--policy", policy], capture_output=True, text=True, check=False)
        point(p.returncode == 2 and f"policy '{policy}' is unknown or has a value out of range (4 workers): use bsp" in p.stderr, f"{policy} is refused with those that there are", p.returncode, p.stderr)


with tempfile.TemporaryDirectory(prefix="saina-sim-") as made:
    pictures(made)
    points(made)
tap.end()
