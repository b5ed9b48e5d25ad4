# SPDX-License-Identifier: GPL-2.0-or-later
"""Other traffic through ports with SAINA's program: one TCP stream from worker 0 to worker 1, by
iperf3, in turns with the same stream through ports without a program.  Both with GRO off and on at
the workers' ends, of which the faster counts."""

import json
import statistics
import subprocess
import time

from lab import NET, BenchError, Lab, run
from measure import BOTH, about

PORT = "5201"
ATTEMPTS = 50		# to connect: the receiver may not listen yet


def gbps(lab: Lab, seconds: float) -> float:
    with subprocess.Popen(lab.inside(1, "iperf3", "-s", "-1", "-p", PORT), stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as receiver:
        try:
            return send(lab, seconds)
        finally:
            receiver.kill()


def send(lab: Lab, seconds: float) -> float:
    command = lab.inside(0, "iperf3", "-c", f"{NET}.11", "-p", PORT, "-t", str(max(1, round(seconds))), "-J")
    for _ in range(ATTEMPTS):
        try:
            said = json.loads(run(*command))
        except BenchError as e:
            said = {"error": str(e)}
        # With -J the exit status may be 0 although the test failed.
        if "error" not in said:
            return said["end"]["sum_received"]["bits_per_second"] / 1e9
        time.sleep(0.1)
    raise BenchError(f"iperf3 in {lab.namespace(0)}: {said['error']}")


def result(samples: dict[bool, list[float]]) -> dict:
    """The figures of a series; samples: Gb/s by setting of GRO."""
    medians = {gro: statistics.median(s) for gro, s in samples.items()}
    gro = max(medians, key=medians.__getitem__)
    return {"goodput_gbps": medians[gro], "min_gbps": min(samples[gro]), "max_gbps": max(samples[gro]),
            "samples": len(samples[gro]), "gro": gro, "gbps_by_gro": {"on" if g else "off": m for g, m in medians.items()}}


def measure(place, row, bare: Lab, ours: Lab, turns: int, progress) -> dict:
    """Measures a row.  Returns it as it is in the report."""
    samples: dict[str, dict[bool, list[float]]] = {name: {gro: [] for gro in BOTH} for name in ("bare", "beside")}
    for turn in range(turns):
        for name, lab in ("bare", bare), ("beside", ours):
            progress(f"TCP, {name}, turn {turn + 1} of {turns}")
            for gro in BOTH:
                lab.set_gro(gro)
                samples[name][gro].append(gbps(lab, 1))
            lab.restore_gro()
    series = {name: result(s) for name, s in samples.items()}
    return {**about(place, row), "series": series, "left_out": {},
            "to_bare": series["beside"]["goodput_gbps"] / series["bare"]["goodput_gbps"]}


def line(row: dict) -> str:
    def of(name: str) -> str:
        s = row["series"][name]
        return f"{s['goodput_gbps']:.3g} Gb/s ({s['min_gbps']:.3g} to {s['max_gbps']:.3g})"
    return (f"one TCP stream {of('bare')} through ports that carry nothing, {of('beside')} through ports with SAINA's program: "
            f"{row['to_bare']:.2f} of it")
