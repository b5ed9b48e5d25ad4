# SPDX-License-Identifier: GPL-2.0-or-later
"""make bench: all-reduce of float32 by libsaina, beside Gloo and Open MPI.

For each place (a bridge, an MTU, a number of workers) there are two labs of the
same kind, saina-NAME-*, all on this machine:

    bare                                  with SAINA's program on the ports
    Gloo, Open MPI on ports without       libsaina with stock receive buffers, and
    a program: their best                 with those that saina doctor advises;
                                          Gloo, Open MPI: what coexistence costs

All contenders are started once in a place.  Those that are not being measured
sleep; for each row they take turns, several times, so that other load on the
machine affects all of them.
"""

import os
import shutil
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[1:1] = [os.path.join(HERE, "../../tools/bench"), os.path.join(HERE, "../../tools/lab")]
# pylint: disable=wrong-import-position
import interrupt
import options
import plan
import report
import results
import runner
from lab import BenchError, check_built, check_commands

LEFT_OUT = 3		# exit status


def check_ready() -> None:
    if os.geteuid() != 0:
        raise BenchError("needs root for network namespaces: run `make bench' with sudo")
    check_commands("gnuplot", "iperf3")
    check_commands("mpirun", advice="tools/install-deps bench")
    check_built("bench-saina", "bench-gloo", "bench-openmpi", "sainad", "saina", make="make all bench-programs")


def main(argv=None) -> int:
    a = options.arguments(argv)
    limit = 180 if a.quick else 1800
    folder = None
    try:
        check_ready()
        os.makedirs(a.out, exist_ok=True)
        folder = tempfile.mkdtemp(prefix="saina-bench-")
        bench = runner.Bench(options.places_of(a), a.seconds or (0.6 if a.quick else 1.5), time.monotonic() + 0.9 * limit, a.out)
    except (BenchError, OSError) as e:
        print(f"bench: {e}", file=sys.stderr)
        return 1
    interrupt.catch()
    status = 0
    try:
        bench.run(folder)
    except KeyboardInterrupt:
        status = 130
    except BenchError as e:
        bench.progress.clear()
        print(f"bench: {e}", file=sys.stderr)
        status = 1
    finally:
        interrupt.ignore()
        bench.stop_all()
        bench.progress.clear()
        if status == 1 or bench.logs_wanted:
            print(f"bench: what the contenders said is in {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return finish(bench, status)


def finish(bench: runner.Bench, status: int) -> int:
    """Writes the report and prints what was left out.  status: of the run.  Returns the exit status."""
    bench.progress.clear()
    if status == 130:
        print("\nbench: stopped; measured until then:")
    if bench.rows:
        try:
            written = write(bench)
            print(f"\n[{bench.progress.elapsed()}] {', '.join(written)}; how to read them: Documentation/bench.rst")
        except (BenchError, OSError) as e:
            print(f"bench: {e}", file=sys.stderr)
            status = status or 1
    for x in bench.left_out:
        print(f"bench: left out: {x['what']}: {x['reason']}")
    return status or (LEFT_OUT if bench.left_out else 0)


def write(bench: runner.Bench) -> list[str]:
    """Writes the report, and prints which bars were reached.  Returns the paths of the files."""
    json, txt = (os.path.join(bench.out, f"bench.{n}") for n in ("json", "txt"))
    judged = plan.judge(bench.rows)
    verdicts = plan.verdicts(judged)
    print(f"\n{verdicts}")
    bench.about.update(left_out=bench.left_out, bars=judged)
    results.write_json(json, {**bench.about, "rows": bench.rows})
    with open(txt, "w", encoding="utf-8") as f:
        f.write(report.table(bench.rows, lambda b, m, n, h: str(plan.Place(b, m, n, hook=h))) + f"\n\n{verdicts}\n")
        f.writelines(f"left out: {x['what']}: {x['reason']}\n" for x in bench.left_out)
    png = report.draw(bench.out, bench.rows)
    return [json, txt, *([png] if png else [])]


if __name__ == "__main__":
    sys.exit(main())
