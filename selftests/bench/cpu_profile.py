#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""make bench-profile: where the processor time of libsaina's all-reduces goes, by perf.

Takes samples of the whole machine while N workers all-reduce, and sorts them by the functions on their
stacks.  Shares are of the samples of the all-reduces, without idle processors and other processes.
Documentation/bench.rst, section 5, quotes the results."""

import argparse
import collections
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path[:0] = [HERE := os.path.dirname(os.path.realpath(__file__)), os.path.join(HERE, "../../tools/bench"), os.path.join(HERE, "../../tools/lab")]
sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import arguments  # noqa: E402
import interrupt  # noqa: E402
import options  # noqa: E402
from lab import BenchError, Lab  # noqa: E402
from measure import WARM_UP, cpu_seconds, durations  # noqa: E402
from plan import UNLIMITED, Place, size_text  # noqa: E402
from saina import Saina  # noqa: E402

FREQUENCY = 1500		# samples a second and processor
BITS = 8
IDLE, OTHERS = "idle", "other processes"

# The kinds of samples, of which the first that fits counts: (name, pattern of the innermost
# function, pattern of any function on the stack); None: any.  bpf_spin_lock() turns interrupts off,
# and a virtual machine without a hardware counter takes the samples of that time when it ends.
KINDS = [
    ("waiting for a processor or a message", None, r"sys_p?poll|do_sys_poll|schedule_hrtimeout|^schedule$"),
    ("data path: adding, under the slot's lock", None, r"bpf_spin_unlock"),
    ("data path: copies, to scratch and back", r"memcpy|skb_copy_bits|copy_to_iter|pskb_pull|pskb_expand", r"bpf_prog_"),
    ("data path: checks, decisions, look-ups", None, r"bpf_prog_"),
    ("copies in: from the worker to the kernel", r"copy_from_iter|_copy_from_user", r"sendm?msg"),
    ("copies out: from the kernel to the worker", r"copy_to_iter|_copy_to_user", r"recvm?msg"),
    ("receiving: sockets", None, r"sys_recvm?msg"),
    ("sending: sockets, IP, veth, bridge, fan-out", None, r"sys_sendm?msg|napi|net_rx_action|softirq"),
    ("worker: encoding", r"^encode_|^add_", None),
    ("worker: decoding", r"^decode_", None),
]


def say(text):
    print(text, file=sys.stderr, flush=True)


def kind_of(comm, stack):
    """The row of the table that a sample belongs to; stack: functions, the innermost first."""
    inner = stack[0] if stack else ""
    if comm == "swapper" and not any(re.search("softirq|net_rx_action", f) for f in stack):
        return IDLE
    if comm not in ("bench-saina", "swapper") and not comm.startswith("ksoftirqd"):
        return OTHERS
    for name, innermost, anywhere in KINDS:
        if innermost and not re.search(innermost, inner):
            continue
        if anywhere and not any(re.search(anywhere, f) for f in stack):
            continue
        return name
    return "worker: the rest of libsaina, system calls"


def samples(path):
    """Yields (comm, stack) of each sample in perf's file."""
    said = subprocess.run(["perf", "script", "-i", path, "-F", "comm,ip,sym"], capture_output=True, text=True, check=True)
    for block in said.stdout.split("\n\n"):
        lines = block.strip("\n").splitlines()
        if lines:
            yield lines[0].strip(), [line.split(None, 1)[1] if len(line.split(None, 1)) > 1 else "?" for line in lines[1:]]


def profile(args, folder):
    """Measures; returns (goodput in Gb/s, processor us a message, samples by kind)."""
    place = Place(bridge=args.bridge, mtu=args.mtu, workers=args.workers, hook=args.hook)
    lab = Lab(place, True)
    group = None
    try:
        say("building the lab")
        lab.start()
        lab.set_link(args.link)
        group = Saina(lab, folder, args.size // 4, "reference" if args.reference else "")
        group.start()
        one = group.warm_up(args.size)
        rounds = max(WARM_UP, int(args.seconds / one))
        say(f"{rounds} all-reduces, about {rounds * one:.0f} s")
        data = os.path.join(folder, "perf.data")
        with subprocess.Popen(["perf", "record", "-q", "-a", "-g", "-F", str(FREQUENCY), "-o", data],
                              stderr=subprocess.DEVNULL) as perf:
            try:
                cpu = cpu_seconds()
                took = durations(group.command(f"time {rounds}", 30 + 10 * rounds * one))
                cpu = cpu_seconds() - cpu
            finally:
                perf.terminate()
        kinds = collections.Counter(kind_of(*s) for s in samples(data))
        if kinds.total() == kinds[IDLE]:
            raise BenchError("perf has no sample of a busy processor: give more --seconds, or lower /proc/sys/kernel/perf_event_paranoid")
        cpu *= 1 - kinds[OTHERS] / (kinds.total() - kinds[IDLE])
        messages = group.ranks * -(-args.size // int(group.hello["payload"])) * rounds
        return args.size * BITS / statistics.median(took), cpu * 1e6 / messages, kinds
    finally:
        if group:
            group.stop()
        lab.stop()


def main():
    parser = argparse.ArgumentParser(prog="selftests/bench/cpu_profile.py", description=__doc__)
    parser.add_argument("--workers", type=arguments.whole(2, 16), default=4, metavar="N", help="workers, 2 to 16 (4)")
    parser.add_argument("--size", type=options.size, default=16 << 20, help="of the tensor, 1KiB to 64MiB (16MiB)")
    parser.add_argument("--link", default=UNLIMITED, type=options.link, help="unlimited, or RATE/BURST: 1gbit/256kb (unlimited)")
    parser.add_argument("--bridge", type=options.bridge, default="linux", help="linux or ovs (linux)")
    parser.add_argument("--hook", type=options.hook, default="auto", help="of the ports: auto, xdp, tc (auto)")
    parser.add_argument("--mtu", type=arguments.whole(576, 65000), default=1500, help="of the links, 576 to 65000 (1500)")
    parser.add_argument("--reference", action="store_true", help="by reference: workers share memory with the data path")
    parser.add_argument("--seconds", type=options.seconds_of, default=3, metavar="S", help="seconds of all-reduces, 0.01 to 60 (3)")
    args = parser.parse_args()
    if not shutil.which("perf"):
        parser.error("perf is missing: apt install linux-perf")
    interrupt.catch()
    with tempfile.TemporaryDirectory() as folder:
        try:
            gbps, us, kinds = profile(args, folder)
        except BenchError as e:
            say(f"profile: {e}")
            return 1
    how = f", hook {args.hook}" if args.hook != "auto" else ""
    print(f"{args.workers} workers, {size_text(args.size)}, {args.link}, MTU {args.mtu}{how}{', by reference' if args.reference else ''}: "
          f"{gbps:.3g} Gb/s, {us:.3g} us of processor time a message")
    total = kinds.total()
    print(f"processors idle {100 * kinds.pop(IDLE, 0) / total:.0f} %, busy with other processes {100 * kinds.pop(OTHERS, 0) / total:.0f} %; of the rest:")
    rest = kinds.total()
    for name, n in kinds.most_common():
        print(f"{100 * n / rest:6.1f} %  {name}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
