# SPDX-License-Identifier: GPL-2.0-or-later
"""What all figures with kept runs have in common: how they are resumed, stopped and written."""

import multiprocessing
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from multiprocessing import connection

import interrupt
import picture
import results
from keep import Kept
from lab import BUILD, BenchError
from progress import Progress
from workers import Jobs

FAILED = 3		# exit status


class Series:
    """A figure: make() makes its runs, write(folder) its report; both are to be overridden.

    wanted, todo: its runs, and those that are missing; a run has what keep.py asks for
    made, failed: the result of each run, or why it failed
    """

    def __init__(self, name: str, wanted: list, fresh: bool, quick: bool):
        self.name, self.quick, self.wanted = name, quick, wanted
        self.kept = Kept(os.path.join(BUILD, "figures"))
        if fresh:
            for r in wanted:
                self.kept.forget(r)
        self.made = {r: found for r in wanted if (found := self.kept.read(r))}
        self.failed: dict = {}
        self.todo = [r for r in wanted if r not in self.made]
        self.progress = Progress(len(wanted))
        self.progress.row = len(self.made)
        self.about = results.machine()

    def keep(self, run, result: Callable[[], dict]) -> None:
        """Keeps the result of a run, or records why there is none; @result may raise BenchError."""
        try:
            self.kept.write(run, result())
            self.made[run] = self.kept.read(run)
        except BenchError as e:
            self.failed[run] = " ".join(str(e).split())
            self.progress.line(f"figures: {run.figure} {run.key} failed: {self.failed[run]}")

    def lacks(self) -> int:
        """How many runs are missing."""
        return self.progress.total - len(self.made)

    def complete(self) -> bool:
        return not self.lacks()

    def publish(self, out: str, text: str, **found) -> list[str]:
        """Prints and writes the text, and writes as JSON what was found.  Returns the paths."""
        print(f"\n{text}", end="")
        json, txt = (os.path.join(out, f"{self.name}.{n}") for n in ("json", "txt"))
        results.write_json(json, {**self.about, "quick": self.quick, "complete": self.complete(), **found})
        with open(txt, "w", encoding="utf-8") as f:
            f.write(text)
        return [json, txt]

    def present(self, out: str) -> int:
        """Makes the missing runs and writes the report, also on Ctrl-C.  Returns the exit status."""
        status = 0
        interrupt.catch()
        try:
            self.make()
        except KeyboardInterrupt:
            status = 130
        interrupt.ignore()
        self.made = {r: self.made[r] for r in self.wanted if r in self.made}
        self.progress.clear()
        if status:
            print(f"\nfigures: stopped, {self.lacks()} of {self.progress.total} are missing; the same command goes on.  Results so far:")
        print(f"\n[{self.progress.elapsed()}] {', '.join(self.write(out))}; how to read them: Documentation/figures.rst")
        return status or (FAILED if self.failed else 0)

    def make(self) -> None:
        raise NotImplementedError

    def write(self, out: str) -> list[str]:
        raise NotImplementedError


class RealSeries(Series):
    """A figure of real workers.  Its runs are made one after another; those with the same number of workers share a lab.
    A run also has workers, their number, and seconds(), its expected time.

    at_once: number of labs side by side; a process for each makes a part of the runs, one after another
    """

    at_once = 1
    spent = planned = 0.0		# seconds that the runs made so far have taken, and should have taken

    def session(self, jobs: Jobs) -> AbstractContextManager[Callable]:
        """A context in the lab of @jobs, whose value is the function that makes a run."""
        raise NotImplementedError

    def left(self) -> str:
        """How long the rest takes, estimated by the runs that were made."""
        s = sum(r.seconds() for r in self.todo) * (self.spent / self.planned if self.planned else 1 / self.at_once)
        return f"{s / 60:.0f} min left" if s >= 90 else f"{s:.0f} s left"

    def make(self) -> None:
        if self.at_once == 1:
            self.make_in_turn()
        else:
            self.make_side_by_side()

    def make_in_turn(self) -> None:
        while self.todo:
            first = self.todo[0]
            together = [r for r in self.todo if (r.figure, r.workers) == (first.figure, first.workers)]
            jobs = Jobs()
            self.progress(f"building a lab of {first.workers} workers")
            try:
                jobs.with_lab(first.workers, lambda: self.make_runs(jobs, together))	# pylint: disable=cell-var-from-loop # called at once
            except BenchError as e:
                self.progress.line(f"figures: {first.figure}: a lab of {first.workers} workers failed: {e}")
                self.failed.update((r, f"no lab: {e}") for r in together if r in self.todo)
                self.todo = [r for r in self.todo if r not in together]

    def make_runs(self, jobs: Jobs, runs: list) -> None:
        with self.session(jobs) as measure:
            for run in runs:
                self.progress.step(f"{run.figure} {run.key}")
                self.progress(self.left())
                began = self.progress.seconds()
                self.keep(run, lambda: measure(run))	# pylint: disable=cell-var-from-loop # called at once
                self.spent += self.progress.seconds() - began
                self.planned += run.seconds()
                self.todo.remove(run)
                if run in self.made:
                    self.progress.line(f"[{self.progress.elapsed()}, {self.left()}] {run.figure} {run.key}: {self.summary(run)}")

    def parts(self) -> list[list]:
        """The runs, in at_once parts that take about equally long."""
        parts: list[list] = [[] for _ in range(self.at_once)]
        for run in sorted(self.todo, key=lambda r: -r.seconds()):
            min(parts, key=lambda p: sum(r.seconds() for r in p)).append(run)
        return [sorted(p, key=self.todo.index) for p in parts if p]

    def make_side_by_side(self) -> None:
        running = {}
        try:
            for part in self.parts():
                receiver, sender = multiprocessing.Pipe(duplex=False)
                process = multiprocessing.Process(target=self.make_part, args=(part, sender))
                process.start()
                sender.close()
                running[receiver] = process, part
            while running:
                for receiver in connection.wait(list(running), timeout=1):
                    self.take(receiver, *running.pop(receiver))
                made = sum(os.path.exists(self.kept.path(r)) for r in self.todo) + len(self.made)
                self.progress(f"{made} of {self.progress.total} runs are made, {len(running)} labs")
        except KeyboardInterrupt:
            for process, _ in running.values():
                process.terminate()
            for receiver, (process, part) in running.items():
                self.take(receiver, process, part)
            raise

    def make_part(self, part: list, sender) -> None:
        """Runs in a process of its own, and sends the failed runs to @sender."""
        os.setpgid(0, 0)		# Ctrl-C reaches only the parent, which ends this process
        self.todo = list(part)
        try:
            self.make_in_turn()
        except KeyboardInterrupt:
            pass
        sender.send([(r, why) for r, why in self.failed.items() if r in part])

    def take(self, receiver, process: multiprocessing.Process, part: list) -> None:
        """Waits for a process, and takes over its results."""
        try:
            self.failed.update(receiver.recv())
        except EOFError:
            self.failed.update((r, "the process that made this run died") for r in part if not self.kept.read(r))
        process.join()
        self.made.update((r, found) for r in part if (found := self.kept.read(r)))
        self.todo = [r for r in self.todo if r not in part]

    def summary(self, run) -> str:
        raise NotImplementedError

    def report(self) -> tuple[str, list[dict], dict[str, list[str]]]:
        """The table, its rows, and the panels of the picture (points.gp)."""
        raise NotImplementedError

    def write(self, out: str) -> list[str]:
        text, rows, panels = self.report()
        text = "\n".join([text, *(f"{r.key} failed: {why}" for r, why in self.failed.items())]) + "\n"
        paths = self.publish(out, text, failed=[{"run": r.key, "reason": why} for r, why in self.failed.items()], rows=rows)
        return paths + picture.draw(out, self.name, "points.gp", panels)
