# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of `make bench', and parsers that other benches use."""

import argparse

import plan
import strain
from arguments import listed, one_of, whole
from lab import BenchError
from measure import bound_gbps


def size(text: str) -> int:
    """Parses a size, such as 64KiB or 4M; returns bytes."""
    for suffix, unit in (("KiB", plan.KIB), ("MiB", plan.MIB), ("K", plan.KIB), ("M", plan.MIB)):
        if text.endswith(suffix) and text[:-len(suffix)].isdigit():
            n = int(text[:-len(suffix)]) * unit
            if 1024 <= n <= 64 * plan.MIB:
                return n
    raise argparse.ArgumentTypeError(f"\"{text}\" is not a size from 1KiB to 64MiB")


def link(text: str) -> str:
    """Checks the name of a link, "unlimited" or RATE/BURST, and returns it."""
    if text != plan.UNLIMITED:
        try:
            bound_gbps(text, 1, 1)
        except (BenchError, ValueError):
            raise argparse.ArgumentTypeError(
                f"\"{text}\" is neither unlimited nor RATE/BURST as tc writes them: 1gbit/256kb") from None
    return text


bridge, hook, strain_name = one_of("linux", "ovs"), one_of("auto", "xdp", "tc"), one_of(*strain.NAMES)


def seconds_of(text: str) -> float:
    """Parses a number of seconds."""
    try:
        x = float(text)
    except ValueError:
        x = -1
    if not 0.01 <= x <= 60:
        raise argparse.ArgumentTypeError(f"\"{text}\" is not a number from 0.01 to 60")
    return x


def arguments(argv=None) -> argparse.Namespace:
    p = argparse.ArgumentParser(
        prog="selftests/bench", description="All-reduce of float32 by libsaina beside Gloo and Open MPI, in namespaces "
        "on this machine.  See Documentation/bench.rst.",
        epilog="Exit status: 0; 1: the run ended with an error, for example a wrong sum; 2: usage; 3: rows or contenders were left out "
        "(the output names them); 130: interrupted.  Lists are separated by commas.  "
        "One of --bridge, --hook, --mtu, --workers, --links, --sizes, --strain replaces the plan "
        "by every combination of them; peers are then also measured through ports that carry SAINA's program.")
    p.add_argument("--quick", action="store_true", help="a small plan, under 3 minutes (the whole takes under 30)")
    p.add_argument("--bridge", type=listed(bridge), metavar="LIST", help="linux, ovs (linux)")
    p.add_argument("--hook", type=listed(hook), metavar="LIST", help="of the ports with SAINA's program: auto, xdp, tc (auto)")
    p.add_argument("--mtu", type=listed(whole(576, 65000)), metavar="LIST", help="576 to 65000 (1500)")
    p.add_argument("--workers", type=listed(whole(2, 64)), metavar="LIST", help="2 to 64 (4)")
    p.add_argument("--links", type=listed(link), metavar="LIST", help="unlimited, or RATE/BURST: 1gbit/256kb (unlimited)")
    p.add_argument("--sizes", type=listed(size), metavar="LIST", help="1KiB to 64MiB (4MiB)")
    p.add_argument("--strain", type=listed(strain_name), metavar="LIST",
                   help="overload: libsaina alone, with and without a busy loop on each core; loss: libsaina alone, with and without 20 %% loss "
                   "each way; tcp: a TCP stream, through ports with and without SAINA's program")
    p.add_argument("--seconds", type=seconds_of, metavar="S", help="seconds of all-reduces by each contender in a row (1.5; --quick: 0.6)")
    p.add_argument("--out", default="result", metavar="DIR", help="where bench.json, bench.txt and bench.png go (result)")
    return p.parse_args(argv)


def places_of(a: argparse.Namespace):
    if a.bridge or a.hook or a.mtu or a.workers or a.links or a.sizes or a.strain:
        return plan.chosen(a.bridge or ["linux"], a.hook or ["auto"], a.mtu or [1500], a.workers or [4], a.links or [plan.UNLIMITED],
                           a.sizes or [4 * plan.MIB], a.strain or [])
    return plan.quick() if a.quick else plan.full()
