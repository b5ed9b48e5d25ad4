# SPDX-License-Identifier: GPL-2.0-or-later
"""make figures: measures published results of policies like those of SAINA.

Workers are real processes in namespaces of this machine and their gradients real packets, summed by
SAINA's program on a bridge's ports.  Their computation is emulated: they sleep, for times that are drawn
beforehand.  The report has the measured values next to the published ones, and to those that the
published models predict.  The time to accuracy is simulated (accuracy.py), at some points also measured
(real.py), and measured with PyTorch (fashion.py).
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[1:1] = [os.path.join(HERE, "../../tools/lab"), os.path.join(HERE, "../trainer")]
# pylint: disable=wrong-import-position
import accuracy
import deadline
import fashion
import fit
import plan
import real
import report
from arguments import listed, one_of, whole
from lab import BenchError, check_built, check_commands
from measure import measure
from plan import FIGURES, Run, Value
from series import FAILED, RealSeries
from workers import Jobs

NAMES = [*FIGURES, deadline.NAME, accuracy.NAME, real.NAME, fashion.NAME]


def arguments(argv) -> argparse.Namespace:
    p = argparse.ArgumentParser(
        prog="selftests/figures", description="Measures published results of policies like those of SAINA, with real workers and packets in "
        "network namespaces on this machine, and prints them next to the published and simulated values.  See Documentation/figures.rst.",
        epilog="Finished runs are kept in build/figures; the same command makes only the missing ones.  "
        "Exit status: 0; 1: could not begin; 2: usage; 3: runs failed, the report names them; 130: interrupted.")
    p.add_argument("--quick", action="store_true", help="few and short runs, about 5 minutes (without --quick: six to seven hours)")
    p.add_argument("--only", type=listed(one_of(*NAMES)), metavar="LIST",
                   help=f"figures to make, of {', '.join(NAMES)} (all; fashion only if PyTorch and Fashion-MNIST are installed)")
    p.add_argument("--workers", type=listed(whole(2, 1000)), default=[], metavar="LIST",
                   help="numbers of workers of the figure serene, each 2 to 64 (4,8,16; --quick: 4,8)")
    p.add_argument("--base", type=whole(10, 10000), metavar="MS",
                   help="time of an iteration without a stall (60, deadline 200, fashion 100; --quick: 40, 40, 60); "
                   "longer if processors are busy; not of accuracy and real")
    p.add_argument("--iterations", type=whole(10, 100000), metavar="N",
                   help="iterations of a run (serene 1000, order and timeout half of that, deadline 240, fashion 200; "
                   "--quick: 60, 100, 40); not of basu, accuracy and real")
    p.add_argument("--seed", type=whole(0, 10 ** 9), default=1, metavar="N", help="seed of the stalls (1); accuracy, real and fashion have --seeds")
    p.add_argument("--seeds", type=whole(1, 1000), metavar="N",
                   help="number of seeds of each setting of accuracy, real and fashion (8, 3 and 3; --quick: 2, and always 1)")
    p.add_argument("--at-once", type=whole(1, 100), default=1, metavar="N",
                   help="runs side by side, each in a lab of its own (1); not of accuracy")
    p.add_argument("--fresh", action="store_true", help="make all runs again, also those that are kept")
    p.add_argument("--out", default="result", metavar="DIR", help="where figures.json, figures.txt and the pictures go (result)")
    return p.parse_args(argv)


def check_ready() -> None:
    if os.geteuid() != 0:
        raise BenchError("needs root for network namespaces: run `make figures' with sudo")
    check_commands("gnuplot")
    check_built("saina-allreduce", "sainad", "saina")


class Figures(RealSeries):
    """The figures that FIGURES of plan.py names; values: what each of them prints."""

    def __init__(self, values: dict[str, list[Value]], fresh: bool, quick: bool):
        self.values = values
        super().__init__("figures", [r for v in values.values() for r in plan.runs_of(v)], fresh, quick)

    @contextmanager
    def session(self, jobs: Jobs):
        with tempfile.TemporaryDirectory(prefix="saina-figures-") as folder:
            yield lambda run: measure(jobs, run, folder)

    def summary(self, run: Run) -> str:
        result = self.made[run]
        text = f"{run.policy}: {result['outcome'].iteration:.3f} x base"
        return text + (f" under {result['policy'].split(',')[0]}" if "policy" in result else "")

    def write(self, out: str) -> list[str]:
        """Writes the report of all runs that were made.  Returns the paths."""
        rows = [report.row_of(figure, v, self.made.get, self.failed) for figure, values in self.values.items() for v in values]
        bars = plan.judge(rows, list(self.values))
        paths = self.publish(out, f"{report.table(rows)}\n\n{report.verdicts(bars, self.quick)}\n", bars=bars, rows=rows,
                             failed=[{"run": f"{r.figure} {r.key}", "reason": why} for r, why in self.failed.items()])
        return paths + [p for figure in self.values for p in report.draw(out, figure, [r for r in rows if r["figure"] == figure])]


def planned(a: argparse.Namespace, names: list[str]) -> dict[str, list[Value]]:
    scale = plan.QUICK if a.quick else plan.FULL
    scale = replace(scale, seed=a.seed, base_ms=a.base or scale.base_ms, iterations=a.iterations or scale.iterations)
    values = {name: FIGURES[name](scale, a.workers) for name in dict.fromkeys(names)}
    for run in {r for v in values.values() for r in plan.runs_of(v)}:
        fit.check_here(run.workers, run.base_ms, a.at_once)
    return values


def check(a: argparse.Namespace, names: list[str]) -> None:
    """Raises BenchError if something that a figure needs is missing: now, and not hours later at its turn."""
    if set(names) - {accuracy.NAME}:
        check_ready()
    if deadline.NAME in names:
        deadline.check(a.quick, a.base)
    if accuracy.NAME in names:
        accuracy.check()
    if real.NAME in names:
        real.check()
    if fashion.NAME in names:
        fashion.check(a.quick, a.base)


def main(argv=None) -> int:
    a = arguments(argv)
    names = a.only or NAMES
    RealSeries.at_once = a.at_once
    status = 0
    try:
        missing = fashion.missing() if fashion.NAME in names else ""
        if missing and a.only:
            raise BenchError(f"{fashion.NAME}: {missing}")
        if missing:
            print(f"figures: {fashion.NAME} is left out: {missing}", file=sys.stderr, flush=True)
            names = [n for n in names if n != fashion.NAME]
        check(a, names)
        lab = planned(a, [n for n in names if n in FIGURES])
        makes: dict[str, Callable[[], int]] = {
            deadline.NAME: lambda: deadline.figure(a.out, a.quick, a.fresh, a.base, a.iterations, a.seed),
            accuracy.NAME: lambda: accuracy.figure(a.out, a.quick, a.seeds, a.fresh),
            real.NAME: lambda: real.figure(a.out, a.quick, a.seeds, a.fresh),
            fashion.NAME: lambda: fashion.figure(a.out, a.quick, a.seeds, a.fresh, a.base, a.iterations)}
        os.makedirs(a.out, exist_ok=True)
        for make in ([lambda: measure_all(a, lab)] if lab else []) + [make for n, make in makes.items() if n in names]:
            status = make() or status
            if status not in (0, FAILED):
                break
    except (BenchError, OSError) as e:
        print(f"figures: {e}", file=sys.stderr)
        return 1
    if missing:
        print(f"figures: {fashion.NAME} was left out: {missing}", file=sys.stderr)
    return status


def measure_all(a: argparse.Namespace, values: dict[str, list[Value]]) -> int:
    """Makes the figures of plan.py.  Returns the exit status."""
    figures = Figures(values, a.fresh, a.quick)
    if figures.made:
        print(f"figures: {len(figures.made)} of {figures.progress.total} runs are kept from before (--fresh makes them again)")
    print(f"figures: {len(figures.todo)} runs, {figures.left()}", flush=True)
    return figures.present(a.out)


if __name__ == "__main__":
    sys.exit(main())
