#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""make bench-scale: how fast the switch alone is by number of cores, and from that what limits larger machines.

Measured: build/bench-scale (the program at each hook, on 1 to all cores), and a lab of four workers
(processor time of their processes for each message, which on a veth includes the switch).
Simulated: this machine's cores, 16 and 64, with links of 10, 25 and 100 Gb/s.  Documentation/bench.rst,
section 7, has the model."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass

sys.path[:0] = [HERE := os.path.dirname(os.path.realpath(__file__)), os.path.join(HERE, "../../tools/bench"), os.path.join(HERE, "../../tools/lab")]
sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import arguments  # noqa: E402
import interrupt  # noqa: E402
import options  # noqa: E402
import results  # noqa: E402
from lab import BUILD, BenchError, Lab  # noqa: E402
from measure import ETHERNET_IP_UDP  # noqa: E402
from plan import MIB, Place  # noqa: E402
from saina import Saina  # noqa: E402

LAB_WORKERS = 4
SIZE = 4 * MIB
WORKERS = (4, 8, 16, 32, 64)
CORES = tuple(sorted({os.cpu_count() or 1, 16, 64}))
LINKS = (10, 25, 100)		# Gb/s
HEADER = 48
FRAME_ON_WIRE = ETHERNET_IP_UDP + HEADER + 24		# 24: preamble, frame check sequence and gap
ELSEWHERE = {"xdp": "own links, XDP", "tc": "own links, tc"}
SHARED = {"messages": "containers, messages", "reference": "containers, by reference"}


@dataclass
class Costs:
    """Processor time for each message and worker, ns.

    elements: of a message
    switch: by hook, the program alone on one core
    efficiency: by hook, speed of a core when all are busy, relative to one alone; not ns
    total: by way, of workers with switch and fan-out, on one host
    frame: to receive and send a frame on the switch's host; given by --frame-ns, not measured"""

    elements: int
    switch: dict[str, float]
    efficiency: dict[str, float]
    total: dict[str, float]
    frame: float = 0

    @property
    def bits(self) -> int:
        return 32 * self.elements

    @property
    def worker(self) -> float:
        """Of a worker by messages, without the switch: on a veth the tc program runs in the sender's system call."""
        return max(0, self.total["messages"] - self.switch["tc"])


def on_links(c: Costs, hook: str, cores: int, link: float, workers: int) -> dict[str, float]:
    """Messages a second of each worker that each part can process: workers on hosts or in VMs of their own.

    link: Gb/s"""
    return {
        "link": link * 1e9 / (8 * (FRAME_ON_WIRE + 4 * c.elements)),
        "worker": 1e9 / c.worker,
        "switch": cores * c.efficiency[hook] * 1e9 / (c.switch[hook] + c.frame) / workers,
    }


def on_one_host(c: Costs, way: str, cores: int, workers: int) -> dict[str, float]:
    """The same where workers and switch share the cores, and a worker uses one."""
    return {
        "worker": 1e9 / c.total[way],
        "cores": cores * c.efficiency["reference" if way == "reference" else "tc"] * 1e9 / (c.total[way] * workers),
    }


def simulate(c: Costs, cores=CORES, links=LINKS) -> list[dict]:
    """A row for each machine, link and number of workers: the goodput, and the part that limits it."""
    rows = []
    where_hook = {where: hook for hook, where in ELSEWHERE.items()}
    for n in cores:
        cases = [(ELSEWHERE[hook], link, lambda w, h=hook, k=link: on_links(c, h, n, k, w)) for hook in ELSEWHERE for link in links]
        cases += [(SHARED[way], None, lambda w, y=way: on_one_host(c, y, n, w)) for way in SHARED]
        for where, link, rates in cases:
            for workers in WORKERS:
                each = rates(workers)
                limit = min(each, key=each.__getitem__)
                rest = min((rate for part, rate in each.items() if part != "switch"))
                rows.append({"cores": n, "where": where, "link_gbps": link, "workers": workers, "limit": limit,
                             "goodput_gbps": each[limit] * c.bits / 1e9,
                             "room_ns": each["switch"] / rest * (c.switch[where_hook[where]] + c.frame) - c.switch[where_hook[where]] if "switch" in each else None,
                             "gbps_by_part": {part: rate * c.bits / 1e9 for part, rate in each.items()}})
    return rows


def costs_text(c: Costs, measured: list[dict]) -> str:
    lines = [f"{'hook':>10} {'cores':>6} {'ns/message':>11} {'messages/s':>12} {'Gb/s':>7} {'x one core':>11}"]
    lines += [f"{r['hook']:>10} {r['cores']:>6} {r['ns']:>11.0f} {r['messages_per_s']:>12.0f} {r['messages_per_s'] * c.bits / 1e9:>7.1f} {r['scaling']:>11.2f}"
              for r in measured]
    lines += ["", "processor time of workers for a message, with switch and fan-out: "
              + ", ".join(f"{way} {ns:.0f} ns" for way, ns in c.total.items()) + f"; by messages without the program: {c.worker:.0f} ns"]
    return "\n".join(lines)


def model_text(rows: list[dict]) -> str:
    """A line for each machine; in its cells the goodput of each worker, and what limits it.

    room: ns for each frame and message that the switch's host may take beside the program, with the
    most workers, before the switch is the limit; below 0 it is the limit already."""
    lines = [f"{'cores':>5}  {'workers are':<26} {'link':>8}" + "".join(f"{f'N={n}':>14}" for n in WORKERS) + f"{'room':>8}"]
    cells: dict = {}
    room: dict = {}		# with the most workers
    for r in rows:
        key = r["cores"], r["where"], r["link_gbps"]
        cells.setdefault(key, []).append(f"{r['goodput_gbps']:>7.3g} {r['limit']:<6}")
        room[key] = "-" if r["room_ns"] is None else f"{r['room_ns']:.0f}"
    for (cores, where, link), texts in cells.items():
        lines.append(f"{cores:>5}  {where:<26} {f'{link:g} Gb/s' if link else '-':>8}" + "".join(texts) + f"{room[cores, where, link]:>8}")
    return "\n".join(lines)


# --- measuring ------------------------------------------------------------------------------------


def softirq_threads() -> list[int]:
    """Process ids of ksoftirqd of all cores."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as f:
                if f.read().startswith("ksoftirqd/"):
                    found.append(int(pid))
        except OSError:		# it has ended
            pass
    return found


def run_ns(pids: list[int]) -> int:
    """Processor time of all threads of these processes, ns."""
    total = 0
    for pid in pids:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as f:
                total += int(f.read().split()[0])
    return total


def measure_total(lab: Lab, folder: str, reference: bool, seconds: float) -> float:
    """Processor time for each element and worker, ns.  Not for each message: by reference segments are longer."""
    group = Saina(lab, folder, SIZE // 4, "reference" if reference else "")
    try:
        group.start()
        one = group.warm_up(SIZE)
        rounds = max(4, int(seconds / one))
        pids = [p.pid for p in group.processes] + softirq_threads()
        before = run_ns(pids)
        group.command(f"time {rounds}", 30)
        return (run_ns(pids) - before) / (group.ranks * SIZE // 4 * rounds)
    finally:
        group.stop()


def measure_workers(seconds: float) -> dict[str, float]:
    lab = Lab(Place(bridge="linux", mtu=1500, workers=LAB_WORKERS), True)
    with tempfile.TemporaryDirectory(prefix="saina-bench-") as folder:
        try:
            lab.start()
            return {way: measure_total(lab, folder, way == "reference", seconds) for way in SHARED}
        finally:
            lab.stop()


def measure_switch(cycles: int) -> dict:
    said = subprocess.run([os.path.join(BUILD, "bench-scale"), "-j", "-n", str(cycles)], stdout=subprocess.PIPE, text=True, check=False)
    if said.returncode:
        raise BenchError("bench-scale failed: see above")
    return json.loads(said.stdout)


def costs_of(measured: dict, total: dict[str, float], frame: float) -> Costs:
    by_hook: dict = {}
    for r in measured["rows"]:
        by_hook.setdefault(r["hook"], []).append(r)
    return Costs(measured["elements"], {hook: rows[0]["ns"] for hook, rows in by_hook.items()},
                 {hook: min(1.0, rows[-1]["scaling"] / rows[-1]["cores"]) for hook, rows in by_hook.items()},
                 {way: ns * measured["elements"] for way, ns in total.items()}, frame)


def main() -> int:
    p = argparse.ArgumentParser(prog="selftests/bench/scale.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cycles", type=arguments.whole(1, 1000), default=11, metavar="N", help="batches of each hook and number of cores (11)")
    p.add_argument("--seconds", type=options.seconds_of, default=2, metavar="S", help="seconds of all-reduces to measure the workers' costs (2)")
    p.add_argument("--frame-ns", type=float, default=0, metavar="NS",
                   help="time that the switch's host takes to receive and send a frame, added to the program's time (0)")
    p.add_argument("--out", default="result", metavar="FOLDER", help="where bench-scale.json and bench-scale.txt go (result)")
    a = p.parse_args()
    if os.geteuid():
        p.error("needs root for BPF and network namespaces: sudo make bench-scale")
    about = results.machine()
    interrupt.catch()
    try:
        print("the switch alone: about a minute", file=sys.stderr)
        switch = measure_switch(a.cycles)
        print("four workers in a lab", file=sys.stderr)
        total = measure_workers(a.seconds)
    except (BenchError, OSError) as e:
        print(f"bench-scale: {e}", file=sys.stderr)
        return 1
    costs = costs_of(switch, total, a.frame_ns)
    rows = simulate(costs)
    load = f"\nthis machine had other work (load {about['load_before']:g}): times are too high\n" if about["load_before"] > 0.3 * about["cpus"] else ""
    text = (f"{costs_text(costs, switch['rows'])}\n{load}\nsimulated, goodput of each of N workers in Gb/s, and what limits it "
            f"({costs.elements} elements a message, {costs.frame:g} ns a frame):\n{model_text(rows)}\n")
    print(text, end="")
    os.makedirs(a.out, exist_ok=True)
    with open(os.path.join(a.out, "bench-scale.txt"), "w", encoding="utf-8") as f:
        f.write(text)
    with open(os.path.join(a.out, "bench-scale.json"), "w", encoding="utf-8") as f:
        json.dump({"machine": about, "measured": switch, "worker_ns": costs.worker, "total_ns": costs.total, "frame_ns": a.frame_ns,
                   "efficiency": costs.efficiency, "simulated": rows}, f, indent=1)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
