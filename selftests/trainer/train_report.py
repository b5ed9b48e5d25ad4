#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of several runs of saina-train, OUT/result.json, and the pictures OUT/demo.png and demo.svg.

    train_report.py --out OUT --target PERCENT DIR...

Reads what the runs have left in their folders (train.h lists it).  The first run is what the others are compared
with.  Exit status: 1 if a run cannot be read, or the models of a run's workers differ."""

import argparse
import csv
import json
import os
import platform
import statistics
import subprocess
import sys

STEPS = ("ssp", "asp", "grouped")
MEAN_ROUNDS = 15		# of the curve of SFCD's flips


class ReadError(Exception):
    """A run's folder is not as saina-train leaves it."""


class Run:
    """A run.

    rounds: of all workers together: s (when the first worker, in steps worker 0, had its result, seconds from the
        beginning), loss (mean of the workers that computed one), k, accuracy (None: not tested), and what the event
        says of SFCD: flips, observed
    identical: are the models of all workers the same, byte for byte?  None: a simulation has one model
    """

    def __init__(self, folder: str, target: float):
        self.folder = folder
        self.info = self.load("run.json")
        self.name, self.policy, self.workers = self.info["run"], self.info["policy"], self.info["workers"]
        self.steps = self.policy.partition(":")[0] in STEPS
        self.read_rounds()
        self.read_accuracy(target)
        self.read_events()
        self.identical, self.figures = None, []
        if not self.info["simulated"]:
            self.figures = [self.load(f"worker-{w}.json") for w in range(self.workers)]
            self.compare_models()

    def open(self, name: str, mode: str = "r"):
        try:
            return open(os.path.join(self.folder, name), mode)
        except OSError as e:
            raise ReadError(f"cannot read {self.folder}/{name}: {e.strerror}") from e

    def load(self, name: str) -> dict:
        with self.open(name) as f:
            try:
                return json.load(f)
            except ValueError as e:
                raise ReadError(f"cannot read {self.folder}/{name}: {e}") from e

    def read_rounds(self) -> None:
        by_worker = []
        for w in range(self.workers):
            with self.open(f"worker-{w}.csv") as f:
                rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(f)]
            if [r["round"] for r in rows] != list(range(self.info["rounds"])):
                raise ReadError(f"{self.folder}/worker-{w}.csv has {len(rows)} of {self.info['rounds']} rounds")
            by_worker.append(rows)
        begun = min(rows[0]["begun_us"] for rows in by_worker)
        self.rounds = []
        for of_all in zip(*by_worker):
            losses = [r["loss"] for r in of_all if r["loss"] >= 0]
            decided = of_all[0]["decided_us"] if self.steps else min(r["decided_us"] for r in of_all)
            self.rounds.append({"s": (decided - begun) / 1e6, "loss": statistics.fmean(losses) if losses else 0.0, "k": int(of_all[-1]["k"]),
                                "accuracy": None, "flips": 0, "observed": 0})
        rows = [r for rows in by_worker for r in rows]
        self.seconds = self.rounds[-1]["s"]
        self.late = sum(r["late_segments"] for r in rows) / len(rows) / self.info["segments"]
        self.resent = int(sum(r["resent"] for r in rows))
        in_time = [r["reduce_us"] / 1e3 for r in rows if not r["late_segments"]]
        self.reduce_ms = statistics.median_high(in_time) if in_time else 0.0

    def read_accuracy(self, target: float) -> None:
        with self.open("accuracy.csv") as f:
            tests = [(int(row["round"]), float(row["accuracy"])) for row in csv.DictReader(f)]
        if not tests or max(r for r, _ in tests) >= len(self.rounds):
            raise ReadError(f"{self.folder}/accuracy.csv has no accuracy, or a round that there is not")
        for r, accuracy in tests:
            self.rounds[r]["accuracy"] = accuracy
        self.final = tests[-1][1]
        self.target_round = next((r + 1 for r, a in tests if a >= target), None)
        self.target_s = self.target_round and self.rounds[self.target_round - 1]["s"]

    def read_events(self) -> None:
        """The file may be missing or incomplete: then the picture lacks SFCD's flips."""
        if not os.path.exists(os.path.join(self.folder, "events.json")):
            return
        with self.open("events.json") as f:
            for line in f:
                try:
                    event = json.loads(line)
                except ValueError:
                    continue
                if event.get("event") == "round" and event.get("job") == self.name and event["round"] < len(self.rounds):
                    self.rounds[event["round"]].update(flips=event["flips"], observed=event["observed"])

    def compare_models(self) -> None:
        def model(worker: int) -> bytes:
            path = os.path.join(self.folder, f"worker-{worker}.params")
            if not os.path.exists(path):
                return b""
            with open(path, "rb") as f:
                return f.read()

        first = model(0)
        if len(first) != 4 * self.info["parameters"]:
            raise ReadError(f"{self.folder}/worker-0.params is missing or has the wrong length")
        others = [w for w in range(1, self.workers) if model(w) != first]
        self.identical = not others
        for w in others:
            print(f"report: the model of worker {w} is missing or differs from that of worker 0 ({self.folder})", file=sys.stderr)

    def goodput(self) -> float:
        return len(self.rounds) * self.info["parameters"] * 4 / self.seconds

    def speedup(self, first: "Run") -> float | None:
        """How many times sooner than @first the target was reached."""
        return first.target_s / self.target_s if self.target_s and first.target_s else None

    def curve(self) -> list[dict]:
        return [{"round": i + 1, **{k: r[k] for k in ("s", "loss", "accuracy")}} for i, r in enumerate(self.rounds) if r["accuracy"] is not None]

    def sfcd(self) -> list[dict]:
        return [{"round": i + 1, "s": r["s"], "k": r["k"], "flip_share": r["flips"] / r["observed"]} for i, r in enumerate(self.rounds) if r["observed"]]

    def flips_mean(self, last: int) -> float:
        """Share of flips over the last few rounds, up to @last."""
        of = self.rounds[max(0, last - MEAN_ROUNDS + 1):last + 1]
        return sum(r["flips"] for r in of) / sum(r["observed"] for r in of)

    def json(self, first: "Run") -> dict:
        found = {**self.info, "seconds": self.seconds, "final_accuracy": self.final, "late_share": self.late, "packets_resent": self.resent,
                 "goodput_bytes_per_s": self.goodput(), "k_last": self.rounds[-1]["k"], "reduce_ms_median": self.reduce_ms, "target_s": self.target_s,
                 "target_round": self.target_round, "speedup": self.speedup(first)}
        if self.identical is not None:
            total = {k: sum(f[k] for f in self.figures) for k in ("pulled", "saturated", "computed", "abandoned", "delayed")}
            found |= {"models_identical": self.identical, "crc32": self.figures[0]["crc32"], "packets_pulled": total["pulled"], "saturated": total["saturated"],
                      **{f"gradients_{k}": total[k] for k in ("computed", "abandoned", "delayed")}}
        return {**found, "curve": self.curve(), "sfcd": self.sfcd()}

    def line(self, first: "Run") -> str:
        speedup, ks = self.speedup(first), [self.rounds[0]["k"], self.rounds[-1]["k"]]
        k = "-" if self.steps else "..".join(map(str, sorted(set(ks), key=ks.index)))
        return (f"{self.name:<10} {f'{self.target_s:.1f} s' if self.target_s else 'never':>12} {self.target_round or '-':>8} {f'{speedup:.2f}x' if speedup else '-':>7} "
                f"{self.final * 100:7.2f}% {len(self.rounds):7} {self.seconds * 1e3 / len(self.rounds):6.0f} ms {self.late * 100:6.1f}% {self.goodput() / 1e6:5.1f} MB/s "
                f"{self.resent:8} {k:>8}")


def table(runs: list[Run], target: float) -> str:
    lines = ["{:<10} {:>12} {:>7} {:>7} {:>8} {:>7} {:>9} {:>7} {:>10} {:>8} {:>8}".format("", "", "of", "", "final", "", "per", "late", "goodput", "packets", ""),
             f"{'run':<10} {'time to':>9} {target * 100:2.0f}% {'round':>7} {'faster':>7} {'accuracy':>8} {'rounds':>7} {'round':>9} {'share':>7} "
             f"{'per worker':>10} {'resent':>8} {'k':>8}", *(r.line(runs[0]) for r in runs)]
    if runs[0].info["simulated"]:
        lines.insert(0, "simulated: the following figures are not measurements")
    for r in runs:
        if r.identical:
            lines.append(f"{r.name}: the models of all {r.workers} workers are bit-identical ({4 * r.info['parameters']} bytes compared, crc32 {r.figures[0]['crc32']})")
        elif r.identical is False:
            lines.append(f"{r.name}: THE MODELS OF THE WORKERS DIFFER")
    return "\n".join(lines)


def draw(out: str, runs: list[Run], target: float) -> None:
    """Writes NAME.accuracy.dat (seconds, per cent), NAME.sfcd.dat (seconds, k, share of flips, its mean), and the picture."""
    for r in runs:
        with open(os.path.join(out, f"{r.name}.accuracy.dat"), "w", encoding="ascii") as f:
            f.writelines(f"{c['s']:.3f} {c['accuracy'] * 100:.3f}\n" for c in r.curve())
        with open(os.path.join(out, f"{r.name}.sfcd.dat"), "w", encoding="ascii") as f:
            f.writelines(f"{c['s']:.3f} {c['k']} {c['flip_share']:.4f} {r.flips_mean(c['round'] - 1):.4f}\n" for c in r.sfcd())
    first = runs[0].info
    sth = next((w[4:] for r in runs for w in r.policy.replace(":", ",").split(",") if w.startswith("sth=")), "0.5")
    note = f"{first['parameters']} parameters, {first['workers']} workers{' (SIMULATED)' if first['simulated'] else ''}, same stragglers in all runs"
    script = os.path.join(os.path.dirname(os.path.realpath(__file__)), "demo.gp")
    settings = (f"dir = '{out}'; target = {target * 100:g}; workers = {first['workers']}; sth = {sth}; runs = '{' '.join(r.name for r in runs)}'; "
                f"policies = '{' '.join(r.policy for r in runs)}'; times = '{' '.join(str(r.target_s or 0) for r in runs)}'; note = '{note}'")
    for kind in "", "svg = 1; ":
        subprocess.run(["gnuplot", "-e", kind + settings, script], check=True)


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    p.add_argument("--out", required=True, help="where the results go")
    p.add_argument("--target", type=float, default=95, metavar="PERCENT", help="accuracy to reach (95)")
    p.add_argument("folders", nargs="+", metavar="DIR", help="of a run")
    a = p.parse_args()
    target = a.target / 100
    try:
        runs = [Run(d, target) for d in a.folders]
        print(table(runs, target), flush=True)
        with open(os.path.join(a.out, "result.json"), "w", encoding="utf-8") as f:
            json.dump({"target_accuracy": target, "kernel": platform.release(), "cpus": os.cpu_count(), "runs": [r.json(runs[0]) for r in runs]}, f, indent=2)
        draw(a.out, runs, target)
    except (ReadError, OSError, subprocess.CalledProcessError, KeyError, ValueError) as e:
        print(f"report: {e}", file=sys.stderr)
        return 1
    if any(r.identical is False for r in runs):
        print(f"report: the models of the workers differ, which is a bug: keep {a.out}/runs", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
