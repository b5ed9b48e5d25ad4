# SPDX-License-Identifier: GPL-2.0-or-later
"""Time to accuracy: made by the trainer's simulation, on all processors, and written."""

import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import accuracy_report
import interrupt
import results
from accuracy_plan import TARGETS, Cell, cells, rates
from keep import Kept
from lab import BUILD, TOP, BenchError, run
from progress import Progress

LINE = re.compile(r"simulated +([\d.]+) s +round +(\d+) .*accuracy +([\d.]+) %  k (\d+)  late +([\d.]+) %")
NAME = "accuracy"
FAILED = 3		# exit status
SEEDS, SEEDS_QUICK = 8, 2
LAST = 5		# tests whose mean is the final accuracy
PROGRAM = os.path.join(BUILD, "saina-train")


def check_ready() -> None:
    if not os.access(PROGRAM, os.X_OK):
        raise BenchError(f"{PROGRAM} is missing: run `make' in {TOP}")
    if not shutil.which("gnuplot"):
        raise BenchError("gnuplot is missing: run tools/install-deps")


def data() -> str:
    """The digits of `make demo'."""
    return run(os.path.join(TOP, "tools/get-digits"), os.path.join(BUILD, "data")).strip()


def read(text: str) -> dict:
    """What the simulation printed, a line a test: when each target was reached first, and the end."""
    tests = [(float(m[1]), int(m[2]), float(m[3])) for m in LINE.finditer(text)]
    if not tests:
        raise BenchError("saina-train --simulate printed no test")
    last = list(LINE.finditer(text))[-1]
    return {"times": {str(t): next((s for s, _, a in tests if a >= t), None) for t in TARGETS}, "rounds": tests[-1][1], "seconds": tests[-1][0],
            "final": round(statistics.mean(a for _, _, a in tests[-LAST:]), 3), "k": int(last[4]), "late": float(last[5])}


def make_cell(cell: Cell, digits: str) -> dict:
    began = time.monotonic()
    at = []
    for rate in rates(cell.setting.optimiser):
        p = subprocess.run([PROGRAM, *cell.options(rate), "--data", digits], capture_output=True, text=True, check=False, start_new_session=True)
        if p.returncode:
            raise BenchError(p.stderr.strip()[-300:] or f"saina-train ended with status {p.returncode}")
        at.append({"rate": rate, **read(p.stdout)})
    return {"rates": at, "took_s": round(time.monotonic() - began, 3)}


class Grid:
    """made, failed: of each cell."""

    def __init__(self, wanted: list[Cell], fresh: bool):
        self.kept = Kept(os.path.join(BUILD, "figures"))
        if fresh:
            for c in wanted:
                self.kept.forget(c)
        self.made: dict[Cell, dict] = {c: found for c in wanted if (found := self.kept.read(c))}
        self.failed: dict[Cell, str] = {}
        self.todo = [c for c in wanted if c not in self.made]
        self.progress = Progress(len(wanted))

    def left(self, done: int) -> str:
        if not done:
            return "the first are being made"
        s = self.progress.seconds() / done * (len(self.todo) - done)
        return f"{s / 60:.0f} min left" if s >= 90 else f"{s:.0f} s left"

    def make(self) -> None:
        """A cell on each processor at a time.  Ctrl-C: those that have begun are finished and kept."""
        if not self.todo:
            return
        digits, waiting, running, done = data(), list(self.todo), {}, 0
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            try:
                while waiting or running:
                    while waiting and len(running) < os.cpu_count():
                        cell = waiting.pop(0)
                        running[pool.submit(make_cell, cell, digits)] = cell
                    for f in wait(running, return_when=FIRST_COMPLETED).done:
                        done += 1
                        self.finish(running.pop(f), f, done)
            except KeyboardInterrupt:
                for f in wait(running).done:
                    self.finish(running.pop(f), f, done)
                raise

    def finish(self, cell: Cell, future, done: int) -> None:
        try:
            result = future.result()
            self.kept.write(cell, result)
            self.made[cell] = result
        except BenchError as e:
            self.failed[cell] = str(e)
            self.progress.line(f"figures: accuracy {cell.key} failed: {e}")
        self.progress.row = len(self.made)
        self.progress.where = f"accuracy, {len(self.made)} of {self.progress.total} cells"
        self.progress(f"{cell.key}, {self.left(done)}")
        if not self.progress.terminal and done % 100 == 0:
            self.progress.line(f"[{self.progress.elapsed()}] accuracy, {len(self.made)} of {self.progress.total} cells, {self.left(done)}")

    def write(self, out: str, quick: bool) -> list[str]:
        text, rows, bars = accuracy_report.text(self.made)
        print(f"\n{text}", end="")
        json, txt = (os.path.join(out, f"accuracy.{n}") for n in ("json", "txt"))
        results.write_json(json, {**results.machine(), "quick": quick, "complete": len(self.made) == self.progress.total, "bars": bars,
                                  "failed": [{"cell": c.key, "reason": why} for c, why in self.failed.items()], "best": [r.plain() for r in rows],
                                  "rows": [{"cell": c.spec(), **r} for c, r in self.made.items()]})
        with open(txt, "w", encoding="utf-8") as f:
            f.write(text)
        return [json, txt, *accuracy_report.draw(out, rows)]


def figure(out: str, quick: bool, seeds: int | None, fresh: bool) -> int:
    """The exit status."""
    try:
        check_ready()
        os.makedirs(out, exist_ok=True)
        grid = Grid(cells(quick, seeds or (SEEDS_QUICK if quick else SEEDS)), fresh)
        print(f"figures: accuracy, simulated: {len(grid.todo)} of {grid.progress.total} cells to make, the others are kept", flush=True)
        status = 0
        interrupt.catch()
        try:
            grid.make()
        except KeyboardInterrupt:
            status = 130
        interrupt.ignore()
        grid.progress.clear()
        if status:
            print(f"\nfigures: stopped with {grid.progress.total - len(grid.made)} cells to make; the same command goes on.  What there is:")
        print(f"\n[{grid.progress.elapsed()}] {', '.join(grid.write(out, quick))}; how to read them: Documentation/figures.rst")
    except (BenchError, OSError) as e:
        print(f"figures: {e}", file=sys.stderr)
        return 1
    return status or (FAILED if grid.failed else 0)
