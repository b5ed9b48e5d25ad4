#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One of four workers of the test sfcd_down.sh: gradient descent with a learning rate that drops and
rises again.

    rate.py ROUNDS      so many rounds at each rate, one rate after the other

It minimises |x|^2 / 2, whose gradient is x.  A rate of 2 is the limit of stability: each step
goes to the other side of the valley, and the signs of all gradients flip.  With a small rate x
stays on one side, and so do the signs.  Prints a line for each round: its number, its rate, k,
and the length of x."""

import os
import sys
import time

import numpy

import saina

ELEMENTS = 8192
RATES = (2, 0.002, 2)
THINK = 0.004


def main() -> None:
    rounds = int(sys.argv[1])
    x = numpy.random.default_rng(7).normal(size=ELEMENTS).astype(numpy.float32)
    with saina.join(token="s3cret", join_timeout=60, timeout=120) as w:
        # Until the scale is known, and all workers have the same.
        for _ in range(6):
            w.allreduce(x.copy())
        for rnd in range(len(RATES) * rounds):
            rate = RATES[rnd // rounds]
            end = time.monotonic() + THINK * (1 + int(os.environ["SAINA_RANK"]) / 4)
            while time.monotonic() < end and not w.decided():
                time.sleep(THINK / 10)
            gradient = x.copy()
            call = w.allreduce(gradient)
            x -= numpy.float32(rate) * gradient
            print(rnd, rate, call.k, float(numpy.linalg.norm(x)), flush=True)


main()
