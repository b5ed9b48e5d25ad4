# SPDX-License-Identifier: GPL-2.0-or-later
"""Time to accuracy: runs the simulation of the trainer on all processors, and writes the report."""

import os
import re
import statistics
import subprocess
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import accuracy_report
import examples
from accuracy_plan import TARGETS, Cell, cells, rates
from lab import BUILD, TOP, BenchError, check_built, check_commands, run
from series import Series

LINE = re.compile(r"simulated +([\d.]+) s +round +(\d+) .*accuracy +([\d.]+) %  k (\d+)  late +([\d.]+) %")
NAME = "accuracy"
SEEDS, SEEDS_QUICK = 8, 2
LAST = 5		# tests whose mean is the final accuracy
SIMULATION = os.path.join(TOP, "selftests/trainer/train_sim.py")


def data() -> str:
    """The path of the digits of `make demo', as examples.py writes them."""
    folder = os.path.join(BUILD, "data")
    path = os.path.join(folder, "examples")
    os.makedirs(folder, exist_ok=True)
    examples.convert(run(os.path.join(TOP, "tools/get-digits"), folder).strip(), path)
    return path


def read(text: str) -> dict:
    """Parses the output of the simulation, a line for each test of the model.

    Returns the seconds to each target (None: not reached), and rounds, seconds, accuracy (per cent), k and the share
    of late gradients at the end."""
    tests = [(float(m[1]), int(m[2]), float(m[3])) for m in LINE.finditer(text)]
    if not tests:
        raise BenchError("train_sim.py printed no accuracy")
    last = list(LINE.finditer(text))[-1]
    return {"times": {str(t): next((s for s, _, a in tests if a >= t), None) for t in TARGETS}, "rounds": tests[-1][1], "seconds": tests[-1][0],
            "final": round(statistics.mean(a for _, _, a in tests[-LAST:]), 3), "k": int(last[4]), "late": float(last[5])}


def make_cell(cell: Cell, digits: str) -> dict:
    began = time.monotonic()
    grid = rates(cell.setting.optimiser)
    p = subprocess.run([SIMULATION, *cell.options(*grid), "--data", digits], capture_output=True, text=True, check=False, start_new_session=True)
    if p.returncode:
        raise BenchError(p.stderr.strip()[-300:] or f"train_sim.py ended with status {p.returncode}")
    found = [read(text) for text in p.stdout.split("simulated: ")[1:]]
    return {"rates": [{"rate": rate, **at} for rate, at in zip(grid, found, strict=True)], "took_s": round(time.monotonic() - began, 3)}


class Grid(Series):
    """The cells of the figure: a setting with one seed, at each rate."""

    def left(self, done: int) -> str:
        if not done:
            return "running the first ones"
        s = self.progress.seconds() / done * (len(self.todo) - done)
        return f"{s / 60:.0f} min left" if s >= 90 else f"{s:.0f} s left"

    def make(self) -> None:
        """Makes the missing cells, one on each processor at a time.  On Ctrl-C those that have begun are finished and kept."""
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
        self.keep(cell, future.result)
        self.progress.row = len(self.made)
        self.progress.where = f"accuracy, {len(self.made)} of {self.progress.total} cells"
        self.progress(f"{cell.key}, {self.left(done)}")
        if not self.progress.terminal and done % 100 == 0:
            self.progress.line(f"[{self.progress.elapsed()}] accuracy, {len(self.made)} of {self.progress.total} cells, {self.left(done)}")

    def write(self, out: str) -> list[str]:
        text, rows, bars = accuracy_report.text(self.made)
        paths = self.publish(out, text, bars=bars, failed=[{"cell": c.key, "reason": why} for c, why in self.failed.items()],
                             best=[r.plain() for r in rows], rows=[{"cell": c.spec(), **r} for c, r in self.made.items()])
        return paths + accuracy_report.draw(out, rows)


def check() -> None:
    check_built("libtrain.so")
    check_commands("gnuplot")
    data()


def figure(out: str, quick: bool, seeds: int | None, fresh: bool) -> int:
    """Makes the figure.  Returns the exit status."""
    grid = Grid(NAME, cells(quick, seeds or (SEEDS_QUICK if quick else SEEDS)), fresh, quick)
    print(f"figures: accuracy, simulated: {len(grid.todo)} of {grid.progress.total} cells (a setting with one seed) to make, "
          "the others are kept from before", flush=True)
    return grid.present(out)
