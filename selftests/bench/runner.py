# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a plan: builds the labs of each place, starts the contenders there, measures the rows."""

import os
import sys
import time

import plan
import report
import results
import strain
import stream
from gloo import Gloo
from lab import BenchError, Lab
from measure import BOTH, Cell, Series, bindings, summarize
from openmpi import OpenMPI
from progress import Progress
from saina import Saina

TURNS = 3
STRAINED = 4		# times as long as other rows: the 99th percentile needs many rounds
NO_TIME = "no time was left"
# (name in the report, name of the group, its algorithm)
OURS = (("libsaina", "saina", "-"), ("libsaina, advised", "saina-advised", "-"))
PEERS = (("Gloo ring", "gloo", "ring"), ("Gloo halving", "gloo", "halving"), ("MPI default", "openmpi", "default"), ("MPI ring", "openmpi", "ring"))
BESIDE = tuple((f"{name}, beside", f"{group}-beside", algorithm) for name, group, algorithm in PEERS)
INT16 = (("libsaina, int16", "saina-int16", "-"),)
REFERENCE = (("libsaina, by reference", "saina-reference", "-"),)


class Bench:
    """A run of a plan.

    seconds: of all-reduces by each contender in a row
    deadline: when the run must end, by time.monotonic()
    out: the folder of bench.json
    """

    def __init__(self, places, seconds: float, deadline: float, out: str):
        self.places = places
        self.seconds = seconds
        self.deadline = deadline
        self.out = out
        self.rows: list[dict] = []
        self.left_out: list[dict] = []		# what, and the reason
        self.undo: list = []
        self.absent: dict[str, str] = {}	# groups that did not start in this place, and why
        self.logs_wanted = False		# a contender did not start, or hung
        self.needed_left = sum(not r.extra for p in places for r in p.rows)
        self.progress = Progress(sum(len(p.rows) for p in places))
        self.about = {**results.machine(), "complete": False}
        if self.about["load_before"] > 0.3 * self.about["cpus"]:
            print(f"bench: this machine has other work (load {self.about['load_before']:g} on {self.about['cpus']} cores): "
                  "figures will be too low, CPU seconds too high; only large ratios mean anything")

    def start(self, thing):
        """Starts a lab or a group, which will be stopped whatever happens."""
        self.undo.append(thing)
        thing.start()
        return thing

    def stop_last(self) -> None:
        try:
            self.undo[-1].stop()
        except BenchError as e:
            print(f"bench: {e}", file=sys.stderr)
        self.undo.pop()

    def stop_all(self) -> None:
        while self.undo:
            self.stop_last()

    def leave_out(self, what: str, reason: str) -> None:
        reason = " ".join(reason.split())
        self.logs_wanted |= not reason.startswith(NO_TIME)
        self.left_out.append({"what": what, "reason": reason})
        self.progress.line(f"bench: left out: {what}: {reason}")

    def run(self, folder: str) -> None:
        for i, place in enumerate(self.places):
            self.progress.line(f"\n{place} [{self.progress.elapsed()}]\n{report.HEAD}")
            try:
                self.measure_place(place, os.path.join(folder, str(i)))
            finally:
                self.progress("taking the labs down")
                self.stop_all()
        self.about["complete"] = not self.left_out

    def measure_place(self, place, folder: str) -> None:
        os.mkdir(folder)
        reasons = [self.why_not(r) for r in place.rows]
        if all(reasons):
            self.skip_place(place, reasons[0])
            return
        try:
            labs, groups = self.build(place, folder)
        except BenchError as e:
            self.skip_place(place, str(e))
            return
        for row in place.rows:
            self.progress.step(row)
            reason = self.why_not(row)
            if reason:
                self.leave_out(f"{place}, {row}", reason)
            else:
                self.measure_row(place, row, labs, groups)
            self.needed_left -= not row.extra

    def skip_place(self, place, reason: str) -> None:
        for row in place.rows:
            self.progress.step(row)
            self.leave_out(f"{place}, {row}", reason)
            self.needed_left -= not row.extra

    def build(self, place, folder: str) -> tuple[dict, dict]:
        """Builds the labs and starts the groups.  Returns both by name.

        Raises BenchError if libsaina does not start; other groups that do not start are left out."""
        labs, groups = {}, {}
        self.absent = {}
        self.progress.where = "the labs are being built"
        if any(r.strain in ("", "tcp") for r in place.rows):
            self.progress("bare")
            labs["bare"] = self.start(Lab(place, agent=False))
        self.progress("with SAINA's program on the ports")
        ours = labs["ours"] = self.start(Lab(place, agent=True))
        self.progress.where = "contenders start"
        elements = max(max(r.size for r in place.rows) // 4, 1)
        shared = [r.size for r in place.rows if by_reference(r)]
        makes = [lambda: Saina(ours, folder, elements)]
        if any(not r.strain for r in place.rows):
            makes += [lambda: Saina(ours, folder, elements, "advised"), lambda: Gloo(labs["bare"], folder),
                      lambda: OpenMPI(labs["bare"], folder)]
        if any(by_int16(r) for r in place.rows):
            makes.append(lambda: Saina(ours, folder, elements, "int16"))
        if shared:
            makes.append(lambda: Saina(ours, folder, max(shared) // 4, "reference"))
        if any(r.coexist for r in place.rows):
            makes += [lambda: Gloo(ours, folder), lambda: OpenMPI(ours, folder)]
        for make in makes:
            group = make()
            self.progress(group.name)
            try:
                groups[group.name] = self.start(group)
            except BenchError as e:
                if not groups:
                    raise
                self.stop_last()
                self.absent[group.name] = str(e)
                self.leave_out(f"{place}: {group.name}", str(e))
        return labs, groups

    def why_not(self, row) -> str | None:
        """Why there is no time left for a row; None if there is."""
        left = self.deadline - time.monotonic()
        row_seconds = (time.monotonic() - self.progress.began) / len(self.rows) if self.rows else 0
        if left < row_seconds:
            return NO_TIME
        if row.extra and left < self.needed_left * row_seconds:
            return f"{NO_TIME} for rows that no bar needs"
        return None

    def measure_row(self, place, row, labs: dict, groups: dict) -> None:
        left = self.deadline - time.monotonic()
        rows_left = self.progress.total - self.progress.row + 1
        seconds, turns = self.seconds, TURNS
        # Links, warm-up and verification take about as long as the timed all-reduces.
        if left / rows_left < 3 * len(groups) * self.seconds:
            seconds, turns = self.seconds / 2, 2
        for lab in labs.values():
            self.progress(f"setting the links to {row.link}")
            lab.set_link(row.link)
        if row.strain == "tcp":
            self.done(place, row, stream.measure(place, row, labs["bare"], labs["ours"], turns, self.progress))
            return
        saina = groups["saina"]
        hard = strain.make(row.strain, saina.lab) if row.strain else None
        series, absent = series_of(place, row, groups, hard, self.absent)
        cell = Cell(place, row, series, self.progress)
        if hard:
            self.undo.append(hard)
            seconds *= STRAINED
        result = summarize(cell, cell.measure(seconds, turns), saina.hello, hard, absent)
        if hard:
            self.undo.remove(hard)
        self.done(place, row, result)

    def done(self, place, row, result: dict) -> None:
        self.rows.append(result)
        self.progress.line(report.table_line(result))
        for name, reason in result["left_out"].items():
            # A contender that did not start was reported once for the place.
            if reason not in self.absent.values():
                self.leave_out(f"{place}, {row}: {name}", reason)
        self.about["left_out"] = self.left_out
        results.write_json(os.path.join(self.out, "bench.json"), {**self.about, "rows": self.rows})


def by_reference(row) -> bool:
    """Whether jobs by reference are measured in a row: links do not limit them, and large tensors take too much memory."""
    return not row.strain and row.link == plan.UNLIMITED and row.size <= 16 * plan.MIB


def by_int16(row) -> bool:
    """Whether elements of 16 bits are measured in a row, too: where links are the limit."""
    return not row.strain and row.link != plan.UNLIMITED


def series_of(place, row, groups: dict, hard, not_started: dict[str, str]) -> tuple[list[Series], dict[str, str]]:
    """The contenders of a row; and by name, why others are missing that did not start.

    hard: the strain of the row, or None"""
    if hard:
        saina = groups["saina"]
        return [Series("libsaina", saina, "-"), Series(f"libsaina, {row.strain}", saina, "-", strain=hard)], {}
    wanted = [*((*x, False, (True,)) for x in OURS), *((*x, False, BOTH) for x in PEERS)]
    # Not with XDP, whose redirects need GRO at the worker's end.
    if row.coexist and place.bridge == "linux" and place.hook != "xdp":
        wanted.append(("libsaina, GRO off", "saina", "-", False, (False,)))
    if by_reference(row):
        wanted += ((*x, False, (True,)) for x in REFERENCE)
    if by_int16(row):
        wanted += ((*x, False, (True,)) for x in INT16)
    if row.coexist:
        wanted += ((*x, True, BOTH) for x in BESIDE)
    series = [Series(name, groups[group], algorithm, beside, gro=gro, bound=bindings())
              for name, group, algorithm, beside, gro in wanted if group in groups]
    return series, {name: not_started[group] for name, group, *_ in wanted if group in not_started}
