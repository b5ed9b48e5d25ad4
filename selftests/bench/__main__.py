# SPDX-License-Identifier: GPL-2.0-or-later
"""make bench: all-reduce of float32 by libsaina, compared with Gloo and Open MPI.

`saina bench' in labs of this machine, so that bridges, MTUs and links can be chosen.  Each place has two labs of
the same kind:

    bare                         with SAINA's program on the ports
    peers: their best            libsaina; in some places also the peers: what coexistence costs

All contenders are started once in a place, and sleep while they are not measured.
"""

import argparse
import os
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[1:1] = [os.path.join(HERE, "../../tools/bench"), os.path.join(HERE, "../../tools/lab")]
# pylint: disable=wrong-import-position
import bars
import host
import host_report
import interrupt
import results
from arguments import listed, one_of, whole
from bars import KIB, LIMITED, MIB, UNLIMITED
from lab import LAB_TOOL, BenchError, Lab, Switch, check_built, check_commands
from lab import run as run_command
from measure import WrongResult

TURNS = 3
LEFT_OUT = 3			# exit status
LINKS = (UNLIMITED, LIMITED)
SIZES = (64 * KIB, 4 * MIB, 16 * MIB)
ETHERNET_IP_UDP = 14 + 20 + 8
# What is measured, unless options choose: where, links, and whether peers are also measured beside SAINA's program.
FULL = (
    (Switch("linux", 1500, 4), LINKS, True), (Switch("linux", 1500, 8), LINKS, False),
    (Switch("linux", 1500, 16), LINKS, False), (Switch("linux", 1500, 2), (LIMITED,), False),
    (Switch("ovs", 1500, 4), LINKS, True),
    (Switch("linux", 1500, 4, "xdp"), (UNLIMITED,), True), (Switch("linux", 9000, 4, "xdp"), (UNLIMITED,), True),
    (Switch("linux", 1500, 8, "xdp"), (UNLIMITED,), True), (Switch("linux", 9000, 4), LINKS, False),
)
QUICK = ((Switch("linux", 1500, 4), LINKS, False),)


class PlaceBench(host.Bench):
    def __init__(self, place: Switch, sizes, links, beside: bool, loss: str):
        super().__init__(Lab(place, agent=True), sizes)
        self.bare = Lab(place, agent=False)
        self.links, self.beside, self.loss = links, beside, loss

    def run(self, folder: str, seconds: float) -> None:
        ways = [w for w, wanted in (("messages", True), ("reference", UNLIMITED in self.links), ("int16", set(self.links) != {UNLIMITED})) if wanted]
        series = self.start_ours(folder, ways)
        self.start(self.bare)
        series += self.start_peers(folder, self.bare)
        if self.beside:
            series += self.start_peers(folder, self.lab, host_report.BESIDE)
        hello = series[0].group.hello
        if self.loss != "0":
            run_command(LAB_TOOL, "set", self.lab.name, "loss", self.loss)
        done = []
        for link in self.links:
            for lab in self.lab, self.bare:
                lab.set_link(link)
            # Gradients in shared memory use no link, and 16 bits only gain where the link is the limit.
            here = [s for s in series if s.name != ("reference" if link != UNLIMITED else "int16")]
            self.rows = []
            print(f"\n{place_text(self.lab.place)}, links {link}")
            self.measure(here, seconds, TURNS, host_report.print_columns, host_report.print_rows)
            done += rows_of(self.rows, self.lab.place, link, hello)
        self.rows = done


def place_text(place: Switch) -> str:
    kind = {"linux": "Linux bridge", "ovs": "Open vSwitch (userspace)"}[place.bridge]
    return f"{kind}, MTU {place.mtu}, {place.workers} workers{'' if place.hook == 'auto' else f', hook {place.hook}'}"


def bound_gbs(link: str, payload: int, header: int) -> float | None:
    """10^9 bytes of a tensor a second that a worker can receive on a limited link: no all-reduce is faster, because each byte of the
    result arrives once.  None: unlimited, or another unit."""
    rate = link.partition("/")[0]
    return float(rate[:-4]) / 8 * payload / (payload + header + ETHERNET_IP_UDP) if rate.endswith("gbit") else None


def rows_of(found: list[dict], place: Switch, link: str, hello: dict) -> list[dict]:
    """The rows of a place with its name and the ratios that bars are about, as the speed or the processor time of this row by another's."""
    bound = bound_gbs(link, int(hello["payload"]), int(hello["header"]))
    rows = []
    for r in found:
        others = {o["by"]: o for o in found if o["size"] == r["size"]}
        peers, beside = ([o for by, o in others.items() if by not in host_report.OURS and by.endswith(host_report.BESIDE) == b] for b in (False, True))
        bare = others.get(r["by"].removesuffix(host_report.BESIDE))

        def speed(to, r=r):
            return to["time_us"] / r["time_us"] if to and to is not r else None

        def cpu(to, r=r):
            return r["cpu_s_per_gb"] / to["cpu_s_per_gb"] if to and to["cpu_s_per_gb"] and to is not r else None

        fastest = min(peers, key=lambda o: o["time_us"], default=None)
        rows.append({**place._asdict(), "link": link, **r, "to_bound": r["algbw_gbs"] / bound if bound and r["by"] == "messages" else None,
                     "to_messages": speed(others.get("messages")), "to_best_beside": speed(min(beside, key=lambda o: o["time_us"], default=None)),
                     "to_bare": speed(bare), "cpu_to_best_peer": cpu(fastest), "cpu_to_gloo": cpu(others.get("Gloo"))})
    return rows


def size(text: str) -> int:
    n = host.checked(host.number, 1024, 64 * MIB, "bytes from 1K to 64M")(text)
    return int(n) // 4 * 4


def link(text: str) -> str:
    rate, _, burst = text.partition("/")
    if text != UNLIMITED and not (burst and rate.endswith("bit") and rate[0].isdigit()):
        raise argparse.ArgumentTypeError(f"\"{text}\" is neither unlimited nor RATE/BURST as tc writes them: {LIMITED}")
    return text


def arguments(argv) -> argparse.Namespace:
    p = argparse.ArgumentParser(
        prog="selftests/bench", description="All-reduce of float32 by libsaina, compared with Gloo and Open MPI, in namespaces on this machine.  "
        "See Documentation/bench.rst.", epilog="Lists are separated by commas.  One of --bridge, --hook, --mtu, --workers, --links, --sizes replaces "
        "the plan by every combination of them.  Exit status: 0; 1: the run ended with an error, for example a wrong sum; 2: usage; "
        "3: places or contenders were left out (the output names them); 130: interrupted.")
    p.add_argument("--quick", action="store_true", help="a small plan, about 2 minutes (the whole takes about 20)")
    p.add_argument("--bridge", type=listed(one_of("linux", "ovs")), metavar="LIST", help="linux, ovs (linux)")
    p.add_argument("--hook", type=listed(one_of("auto", "xdp", "tc")), metavar="LIST", help="of the ports with SAINA's program: auto, xdp, tc (auto)")
    p.add_argument("--mtu", type=listed(whole(576, 65000)), metavar="LIST", help="576 to 65000 (1500)")
    p.add_argument("--workers", type=listed(whole(2, 64)), metavar="LIST", help="2 to 64 (4)")
    p.add_argument("--links", type=listed(link), metavar="LIST", help=f"unlimited, or RATE/BURST: {LIMITED} (unlimited)")
    p.add_argument("--sizes", type=listed(size), metavar="LIST", help="of tensors, as 64K or 4M (64K,4M,16M)")
    p.add_argument("--loss", default="0", metavar="PERCENT", help="of messages to SAINA's program and of its batches of results, as 20%% (0)")
    p.add_argument("--seconds", type=host.checked(float, 0.01, 60, "a number from 0.01 to 60"), metavar="S",
                   help="seconds of all-reduces by each contender for each size (1.5; --quick: 0.6)")
    p.add_argument("--out", default="result", metavar="DIR", help="where bench.json goes (result)")
    return p.parse_args(argv)


def plan(a: argparse.Namespace):
    if a.bridge or a.hook or a.mtu or a.workers or a.links or a.sizes:
        return [(Switch(b, m, n, h), a.links or [UNLIMITED], True) for b in a.bridge or ["linux"] for h in a.hook or ["auto"]
                for m in a.mtu or [1500] for n in a.workers or [4]]
    return QUICK if a.quick else FULL


def check_ready() -> None:
    if os.geteuid() != 0:
        raise BenchError("needs root for network namespaces: run `make bench' with sudo")
    check_commands("mpirun", advice="tools/install-deps bench")
    check_built("libsaina.so", "sainad", "saina")


def measure(a: argparse.Namespace, rows: list[dict], left_out: dict[str, str]) -> None:
    """Measures all places; fills @rows, and @left_out with what was left out and why."""
    for place, links, beside in plan(a):
        bench = PlaceBench(place, sorted(a.sizes or SIZES), links, beside, a.loss)
        folder = tempfile.mkdtemp(prefix="saina-bench-")
        interrupt.catch()
        try:
            bench.run(folder, a.seconds or (0.6 if a.quick else 1.5))
            rows += bench.rows
        except WrongResult:
            raise
        except BenchError as e:
            left_out[place_text(place)] = " ".join(str(e).split())
        finally:
            interrupt.ignore()
            bench.stop_all()
            shutil.rmtree(folder, ignore_errors=True)
        left_out.update({f"{place_text(place)}: {name}": why for name, why in bench.left_out.items()})


def main(argv=None) -> int:
    a = arguments(argv)
    about, rows, left_out, status = results.machine(), [], {}, 0
    try:
        check_ready()
        os.makedirs(a.out, exist_ok=True)
        if about["load_before"] > 0.3 * about["cpus"]:
            print(f"bench: this machine has other work (load {about['load_before']:g}): only large ratios mean anything")
        measure(a, rows, left_out)
    except KeyboardInterrupt:
        print("\nbench: stopped; measured until then:")
        status = 130
    except (BenchError, OSError) as e:
        print(f"bench: {e}", file=sys.stderr)
        status = 1
    if rows:
        judged = [b.judge(rows) for b in bars.BARS]
        path = os.path.join(a.out, "bench.json")
        results.write_json(path, {**about, "loss": a.loss, "complete": not (status or left_out), "rows": rows, "left_out": left_out, "bars": judged})
        print(f"\n{bars.text(judged)}\n{path}; how to read it: Documentation/bench.rst")
    for what, why in left_out.items():
        print(f"bench: left out: {what}: {why}")
    return status or (LEFT_OUT if left_out else 0)


if __name__ == "__main__":
    sys.exit(main())
