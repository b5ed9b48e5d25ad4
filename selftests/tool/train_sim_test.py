#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""train_sim.py on a small set of made-up pictures: policies that must learn the same do,
workers give up gradients as real ones do, and bad policies are refused.  TAP."""

import gzip
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path[:0] = [TOP + "/selftests/lib", TOP + "/selftests/trainer"]
import examples  # noqa: E402  # pylint: disable=wrong-import-position
from tap import Tap  # noqa: E402  # pylint: disable=wrong-import-position

PROGRAM = TOP + "/selftests/trainer/train_sim.py"
LINE = re.compile(r"simulated +([\d.]+) s +round +(\d+) .*accuracy +([\d.]+) %  k (\d+)  late +([\d.]+) %")
tap = Tap("simulation: ")
point = tap.point


def pictures(folder):
    """Four classes, each with a bright quarter, and noise; the file of examples."""
    rng = random.Random(1)
    for name, n in ("train", 256), ("t10k", 128):
        labels = [rng.randrange(4) for _ in range(n)]
        pixels = bytes(min(255, int(rng.random() * 200) + 90 * (i // 4 == y)) for y in labels for i in range(16))
        with open(f"{folder}/{name}-labels-idx1-ubyte", "wb") as f:
            f.write(struct.pack(">II", 0x801, n) + bytes(labels))
        with open(f"{folder}/{name}-images-idx3-ubyte", "wb") as f:
            f.write(struct.pack(">IIII", 0x803, n, 4, 4) + pixels)
    examples.convert(folder, f"{folder}/examples")
    return f"{folder}/examples"


def simulate(data, policy, *options):
    """[(seconds, round, accuracy, k, late)]"""
    p = subprocess.run([PROGRAM, "--data", data, "--workers", "4", "--hidden", "8", "--batch", "4", "--rounds", "40", "--eval", "1",
                        "--progress", "0", "--rate", "0.3", "--policy", policy, *options], capture_output=True, text=True, check=False)
    if p.returncode:
        raise SystemExit(f"Bail out! {policy}: {p.stderr}")
    return [tuple(map(float, m.groups())) for m in LINE.finditer(p.stdout)]


def learned(tests):
    return [(t[1], t[2]) for t in tests]


def points(data):
    bsp = simulate(data, "bsp")
    point(len(bsp) == 40 and bsp[-1][2] > bsp[0][2] and bsp == simulate(data, "bsp"), "a seed gives one result", bsp[-1])
    for policy in "fastest:k=4", "timeout:100s,kmin=1", "ssp:0", "grouped:g=1":
        found = simulate(data, policy)
        point(learned(found) == learned(bsp), f"{policy} learns what bsp learns if it waits for all", found[-1])
    point(simulate(data, "asp", "--net", "0") == simulate(data, "grouped:g=4", "--net", "0"), "groups of one worker are asp")
    point(all(w[0] < b[0] for w, b in zip(simulate(data, "ssp:2")[1:], bsp[1:])), "a window makes steps shorter")

    # No stalls; workers differ by more than a result takes to arrive.
    spread = ("--delay", "0", "--jitter", "0.5", "--net", "0.01")
    residual, drop = (simulate(data, f"fastest:k=2,late={late}", *spread) for late in ("residual", "drop"))
    point(residual == drop and residual[-1][4] == 50, "a worker that has the result while it computes gives its gradient up", residual[-1], drop[-1])
    residual, drop = (simulate(data, f"fastest:k=2,late={late}", *spread, "--finish") for late in ("residual", "drop"))
    point(learned(residual) != learned(drop) and [t[0] for t in residual] == [t[0] for t in drop], "--finish: it is kept, or dropped")
    late = ("--delay", "0.5", "--jitter", "0", "--net", "1")
    residual, drop = (simulate(data, f"fastest:k=2,late={rule}", *late) for rule in ("residual", "drop"))
    point(learned(residual) != learned(drop), "a worker that is stalled after it has computed keeps its gradient")
    fresh, mean = (simulate(data, f"fastest:k=2,late=fresh{rest}", *late) for rest in ("", ",mean=all"))
    point(len({tuple(learned(x)) for x in (residual, drop, fresh, mean)}) == 4, "late=fresh and mean=all are rules of their own")

    tests = simulate(data, "timeout:10ms,kmin=1", "--delay", "0.5", "--jitter", "0", "--net", "0")
    longest = max(b[0] - a[0] for a, b in zip(tests, tests[1:]))
    point(longest < 0.32 and tests[-1][4] > 20, "a time-out ends rounds without those that are stalled", longest, tests[-1])
    ks = [t[3] for t in simulate(data, "sfcd:k0=1,sth=0,cth=3")]
    point(ks[:10] == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4] and ks[-1] == 4, "sfcd raises k by one after each cth rounds with as many flips", ks)
    ks = [t[3] for t in simulate(data, "sfcd:k0=1,sth=0,cth=k,kmax=3")]
    point(ks[:8] == [1, 2, 2, 3, 3, 3, 3, 3], "cth=k waits for k rounds, and k is at most kmax", ks)
    point(simulate(data, "external:k0=4", "--rounds", "60", "--net", "1")[-1][3] < 4, "the controller of k does not wait for stalls")
    slow = ("--stalls", "slow", "--rounds", "1000", "--seconds", "40", "--net", "1")
    fixed, controlled = (simulate(data, f"timeout:1s,kmin=1{noise}", *slow)[-1] for noise in ("", ",noise=1000000"))
    point(controlled[1] > 1.5 * fixed[1] and (fixed[4], controlled[4] > 10) == (0, True), "the controller of a time-out does not wait for a slow worker", fixed, controlled)
    fixed, controlled = (simulate(data, f"timeout:1us,kmin=1{noise}", *slow, "--stalls", "random", "--delay", "0", "--jitter", "0.05", "--seconds", "60", "--finish")[-1]
                         for noise in ("", ",noise=1000000"))
    point(controlled[4] < fixed[4] / 2, "the controller of a time-out waits for workers that are late by little", fixed, controlled)
    exponential = simulate(data, "bsp", "--stalls", "exponential", "--net", "0", "--jitter", "0", "--rounds", "400")[-1][0] / 400
    # 1 + H(4) times the base; the mean of 400 maxima has a standard deviation of .06
    point(abs(exponential - 0.1 * (1 + 25 / 12)) < 0.02, "exponential computation takes as long as order statistics say", exponential)
    slow = simulate(data, "bsp", "--stalls", "slow", "--net", "0", "--jitter", "0")
    point(all(abs(t[0] - 0.4 * (i + 1)) < 0.001 for i, t in enumerate(slow)), "a slow worker makes every round four times as long", slow)
    p = subprocess.run([PROGRAM, "--data", data, "--stalls", "some"], capture_output=True, text=True, check=False)
    point(p.returncode == 2 and all(k in p.stderr for k in ("some", "random", "exponential", "slow", "tail", "periods")), "unknown stalls are refused with those that there are", p.stderr)
    point(simulate(data, "bsp", "--seconds", "2")[-1][0] < 3, "--seconds ends a run")
    for policy in "fastest:k=5", "fastest:k=0", "fastest:k=2x", "sfcd:k0=1,sth=", "timeout:10", "timeout:10ms,kmin=9", "ssp:-1", "grouped:g=5", "bsp:1", "now", "fastest:late=maybe":
        p = subprocess.run([PROGRAM, "--data", data, "--workers", "4", "--rounds", "1", "--policy", policy], capture_output=True, text=True, check=False)
        point(p.returncode == 2 and f"policy '{policy}' is unknown or has a value out of range (4 workers): use bsp" in p.stderr, f"{policy} is refused with those that there are", p.returncode, p.stderr)


def refusal(path):
    try:
        examples.convert(path, os.devnull)
    except (examples.DataError, OSError) as e:
        return str(e)
    return ""


def refusal_with(folder, path, change):
    """As refusal() of the folder while its file @path has another content."""
    with open(path, "rb") as f:
        before = f.read()
    with open(path, "wb") as f:
        f.write(change(before))
    said = refusal(folder)
    with open(path, "wb") as f:
        f.write(before)
    return said


def data_points(folder):
    """What examples.py makes of files, good and bad; @folder has IDX files."""
    digits = [",".join(str((i % 10 * 7 + j * j) % 17) for j in range(64)) + f",{i % 10}.0\n" for i in range(100)]
    path, out = f"{folder}/digits.csv.gz", f"{folder}/out"

    def csv(lines, cut=None):
        with open(path, "wb") as f:
            f.write(gzip.compress("".join(lines).encode())[:cut])

    csv(digits)
    examples.convert(path, out)
    with open(out, "rb") as f:
        found = f.read()
    point(found[:20] == struct.pack("<4s4I", b"EXMP", 0, 100, 64, 16) and found[20 + 65:20 + 130] == bytes((7 + j * j) % 17 for j in range(64)) + b"\1", "examples: a CSV file of digits", found[:90])
    wanted = {}
    for line in ("1,2,3\n", digits[0].replace("0,", "17,", 1), digits[0][:-5] + "\n", digits[0][:-4] + "10\n", "\n"):
        csv([*digits[:9], line, *digits[10:]])
        wanted[line] = "line 10 is not 64 pixels of 0 to 16 and a class of 0 to 9" in refusal(path)
    csv(digits[:5])
    wanted["few"] = "has 5 examples; at least 90" in refusal(path)
    csv(digits, 300)
    wanted["cut"] = "is damaged or incomplete" in refusal(path)
    wanted["none"] = "none.csv" in refusal(f"{folder}/none.csv")
    point(all(wanted.values()), "examples: a missing, malformed or cut CSV file is refused with a sentence", wanted)

    images, labels, tests = (f"{folder}/{name}" for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte"))
    with open(images, "rb") as f:
        plain = f.read()
    os.rename(images, images + ".plain")
    with gzip.open(images + ".gz", "wb") as f:
        f.write(plain)
    examples.convert(folder, out)
    with open(out, "rb") as f:
        head = f.read(20)
    os.remove(images + ".gz")
    missing = refusal(folder)
    os.rename(images + ".plain", images)
    point(head == struct.pack("<4s4I", b"EXMP", 256, 384, 16, 255), "examples: IDX files, also compressed", head)
    wanted = {"missing": "there is no train-images-idx3-ubyte" in missing}
    for file, change, words in (
            (images, lambda b: struct.pack(">I", 0x801) + b[4:], "begins with 00000801"), (images, lambda b: b[:-1], "ends after 255 of 256"),
            (images, lambda b: b[:16], "ends after 0 of 256"), (images, lambda b: b[:9], "too short for an IDX header"),
            (images, lambda b: b[:4] + struct.pack(">III", 0, 4, 4), "0 pictures"), (images, lambda b: b[:4] + struct.pack(">III", 256, 70000, 4), "70000 x 4"),
            (images, lambda b: b[:4] + struct.pack(">I", 0xffffffff) + b[8:], "4294967295 pictures"), (labels, lambda b: b[:4] + struct.pack(">I", 257) + b[8:], "257 labels"),
            (labels, lambda b: b[:-1], "shorter"), (labels, lambda b: b[:-1] + b"\n", "label 255 is 10"),
            (tests, lambda b: b[:8] + struct.pack(">II", 2, 4) + b[16:], "16 pixels for training and 8 for testing")):
        wanted[words] = words in refusal_with(folder, file, change)
    point(all(wanted.values()), "examples: missing, malformed or cut IDX files are refused with a sentence", wanted)


def report_points(data, folder):
    """train_report.py on two simulated runs, of which one then is made to look like a real one."""
    for run in "bsp", "sfcd":
        os.mkdir(f"{folder}/{run}")
        simulate(data, f"{run}:k0=1,sth=0,cth=3" if run == "sfcd" else run, "--out", f"{folder}/{run}", "--run", run)

    def report():
        p = subprocess.run([TOP + "/selftests/trainer/train_report.py", "--out", folder, "--target", "30", f"{folder}/bsp", f"{folder}/sfcd"],
                           capture_output=True, text=True, check=False)
        with open(f"{folder}/result.json", encoding="utf-8") as f:
            return p.returncode, p.stdout + p.stderr, json.load(f)["runs"]

    status, said, runs = report()
    point(status == 0 and said.startswith("simulated: ") and [r["run"] for r in runs] == ["bsp", "sfcd"] and len(runs[1]["sfcd"]) == 39 and
          runs[1]["speedup"] == runs[0]["target_s"] / runs[1]["target_s"] and os.path.getsize(f"{folder}/demo.png") > 10000, "report: table, JSON and picture of two runs", said, runs[0])
    with open(f"{folder}/bsp/run.json", encoding="utf-8") as f:
        info = json.load(f)
    with open(f"{folder}/bsp/run.json", "w", encoding="utf-8") as f:
        json.dump(info | {"simulated": False}, f)
    for w in range(4):
        with open(f"{folder}/bsp/worker-{w}.json", "w", encoding="utf-8") as f:
            json.dump(dict.fromkeys(("pulled", "saturated", "computed", "abandoned", "delayed"), w) | {"crc32": "0"}, f)
        with open(f"{folder}/bsp/worker-{w}.params", "wb") as f:
            f.write(bytes(4 * info["parameters"]))
    status, said, runs = report()
    point(status == 0 and "bsp: the models of all 4 workers are bit-identical" in said and runs[0]["gradients_delayed"] == 6, "report: models that are the same", said)
    with open(f"{folder}/bsp/worker-3.params", "r+b") as f:
        f.write(b"1")
    status, said, runs = report()
    point(status == 1 and "THE MODELS OF THE WORKERS DIFFER" in said and "the model of worker 3" in said and not runs[0]["models_identical"],
          "report: models that differ are named, with status 1", status, said)


with tempfile.TemporaryDirectory(prefix="saina-sim-") as made:
    examples_file = pictures(made)
    points(examples_file)
    report_points(examples_file, made)
    data_points(made)
tap.end()
