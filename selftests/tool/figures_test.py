#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""tools/figures without a network: the models against known values, and whole runs whose workers
are a simulation with an error.  Real runs: selftests/net/figures.sh."""

import contextlib
import importlib.util
import io
import json
import os
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
os.environ["SAINA_BUILD"] = tempfile.mkdtemp()		# where results are kept
sys.path[:0] = [TOP + "/tools/figures", TOP + "/tools/lab"]
# pylint: disable=wrong-import-position
import fit
import models
from lab import BenchError
from models import Outcome

spec = importlib.util.spec_from_file_location("figures_main", TOP + "/tools/figures/__main__.py")
figures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(figures)
count = bad = 0


def point(good, text, *remarks):
    global count, bad
    count += 1
    bad += not good
    print(f"{'ok' if good else 'not ok'} {count} - figures: {text}")
    for remark in () if good else remarks:
        print("# " + str(remark).replace("\n", "\n# "))


def near(found, wanted, most):
    return all(abs(f - w) <= most for f, w in zip(found, wanted, strict=True))


# --- the models ---------------------------------------------------------------------------------

def model_points():
    # of another simulation
    for n, wanted in ((4, {2: .777, 10: .738, 48: .731}), (8, {2: .649, 10: .604, 48: .594}), (16, {1: .638, 4: .530, 10: .511})):
        draws = models.draw("serene", n, 8000, 2)
        bsp = models.rounds(draws, n)
        found = [models.window(draws, w).iteration / bsp.iteration for w in wanted]
        point(near(found, wanted.values(), .012), f"windows of {n} workers are those of another simulation", found)
    draws = models.draw("serene", 4, 50, 3)
    point(near([models.window(draws, 0).iteration, models.window(draws, 0).wait],
               [models.rounds(draws, 4).iteration, models.rounds(draws, 4).wait], 1e-9), "a window of 0 is a barrier")
    point(models.window([[1, 1, 1, 1], [3, 3, 3, 3]], 1).iteration == (9 + 12) / 8, "a window of 1, by hand")
    draws = models.draw("exponential", 8, 20000, 1)
    found = [models.rounds(draws, k).iteration for k in (8, 4, 1)]
    point(near(found, [sum(1 / i for i in range(8 - k + 1, 9)) for k in (8, 4, 1)], .03), "order statistics of exponential times are differences of harmonic numbers", found)
    found = [models.rounds([[1.0], [1.5], [4.0]], 3, t).iteration for t in (.2, 1, 9)]
    point(found == [1.2, 2, 4], "a time-out ends a round T after the first arrival, or with the last", found)
    point([models.groups(16, g, 3, 60).iteration for g in (1, 2)] == [4, 1.6] and models.progressive(16, 3) == 8 and models.progressive(16, 0) == 1,
          "groups are as slow as the formula says")


# --- runs of main() -----------------------------------------------------------------------------

class FakeJobs:
    def with_lab(self, workers, what):
        if workers in HOW.get("no_lab", ()):
            raise BenchError("no namespaces")
        what()


HOW: dict = {}
MADE: list[str] = []


def fake_measure(_jobs, run, _folder):
    MADE.append(run.key)
    if len(MADE) == HOW.get("interrupt"):
        raise KeyboardInterrupt
    if run.key in HOW.get("fail", ()):
        raise BenchError("worker 1 of figure ended with status 4:\nno route")
    error = HOW.get("error", 0) if run.window > 0 else 0
    outcome = run.simulate(False)
    return {"outcome": Outcome(outcome.iteration * (1 + error), outcome.wait), **({"policy": "grouped:g=8,groups=x"} if run.groups == 0 else {})}


figures.Jobs, figures.measure, figures.check_ready = FakeJobs, fake_measure, lambda: None
figures.fit.memory_mib = lambda: 4000
figures.fit.os.cpu_count = lambda: 2


def run(*words, **how):
    """(exit status, what it said, its JSON, the runs that it made)"""
    HOW.clear()
    HOW.update(how)
    MADE.clear()
    out = tempfile.mkdtemp()
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                status = figures.main([*words, "--out", out])
            except SystemExit as e:
                status = e.code
        path = os.path.join(out, "figures.json")
        report = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                report = json.load(f)
        return status, said.getvalue(), report, list(MADE), os.listdir(out)
    finally:
        shutil.rmtree(out)


def bar(report, text):
    return next(b for b in report["bars"] if text in b["bar"])


def run_points():
    status, said, report, made, files = run("--only", "serene", "--workers", "4,8", "--iterations", "300", interrupt=4)
    point(status == 130 and len(made) == 4 and not report["complete"] and "the same command goes on" in said, "an interrupted run says how it goes on", status, said)
    point(bar(report, "N = 8: m")["verdict"] == "not measured" and bar(report, "N = 4")["verdict"] == "incomplete", "what was not measured is not judged", report["bars"])
    status, said, report, again, files = run("--only", "serene", "--workers", "4,8", "--iterations", "300")
    point(status == 0 and report["complete"] and again[0] == made[3] and len(again) == 14 - 3 and "3 of 14 runs are kept" in said,
          "the next run goes on with the run that was interrupted", status, again, said)
    point({"figures.txt", "figure-serene.svg", "figure-serene.png"} <= set(files), "a report and pictures are written", files)
    point(all(r["measured"] == r["same_draws"] and r["policy"] for r in report["rows"]) and bar(report, "N = 4")["verdict"] == "reached",
          "exact workers have the values of the model", report["bars"])
    status, _, report, made, _ = run("--only", "serene", "--workers", "4", "--iterations", "300", "--fresh", error=.06)
    point(len(made) == 7 and bar(report, "N = 4")["verdict"] == "MISSED", "--fresh makes all runs again; a value that is off misses its bar", report["bars"])
    status, _, _, made, _ = run("--only", "serene", "--workers", "4", "--iterations", "300", "--seed", "2")
    point(len(made) == 7, "results of another seed are not used", made)
    status, said, report, made, _ = run("--quick", fail=["N4-bsp"], no_lab=[6])
    failed = {r["label"]: r["failed"] for r in report["rows"] if r["failed"]}
    point(status == 3 and len(failed) == 5 and "ended with status 4: no route" in failed["W=2"] and "no lab: no namespaces" in failed["T=0.1 base"] and
          "status 4: no route" in said.split("waiting")[0], "a run that fails is named in the table and by the status", status, failed, said)
    point(sum(r["measured"] is not None for r in report["rows"]) == len(report["rows"]) - 8 and not report["complete"], "the others are made", report["rows"])
    status, _, report, made, _ = run("--quick")
    point(status == 0 and report["complete"] and set(made) == {"N4-bsp", "bsp", "T0.1", "T0.5"}, "only what failed is made again", made)


def refusal_points():
    status, said, report, made, _ = run("--only", "serene,speed")
    point(status == 2 and '"speed" is none of serene, order, timeout, basu' in said, "an unknown figure is refused with those that there are", said)
    status, said, report, made, _ = run("--only", "serene", "--workers", "65")
    point(status == 1 and not made and "a job has at most 64 workers; what fits: up to 64 workers" in said, "more workers than a job has are refused before anything starts", said)
    status, said, report, made, _ = run("--only", "serene", "--workers", "40", "--base", "10")
    point(status == 1 and not made and "what fits: up to 25 workers or --base 16" in said, "too many workers for the processors are refused, with what fits", said)
    try:
        fit.check(16, 60, 2, 100)
        point(False, "too many workers for the memory are refused")
    except BenchError as e:
        point("100 MiB of memory are free" in str(e) and "up to 8 workers" in str(e), "too many workers for the memory are refused", e)


try:
    model_points()
    run_points()
    refusal_points()
finally:
    shutil.rmtree(os.environ["SAINA_BUILD"])
print(f"1..{count}")
sys.exit(bool(bad))
