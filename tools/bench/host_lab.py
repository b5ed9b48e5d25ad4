# SPDX-License-Identifier: GPL-2.0-or-later
"""Workers for `saina bench' on a bridge that is there already, with its agent:

    the user's bridge  AGENT'S ADDRESS, and for the time of the run 198.18.X.1/24
      |  sbPIDp0 ---- eth0 198.18.X.10  saina-bench-PID-w0
      |  sbPIDp1 ---- eth0 198.18.X.11  saina-bench-PID-w1

198.18.0.0/15 is reserved for benchmarks (RFC 2544).  PID is the process id, by which the next run finds
what a killed one has left behind; X is PID modulo 256."""

import glob
import json
import os
import re
import shutil
import tempfile
import time
from types import SimpleNamespace

from lab import BenchError, Lab, run

NAMESPACES = "/run/netns"
ATTACH_TIMEOUT = 20


def without_command(e: BenchError) -> str:
    """The message of a command that failed, without the command line and the status that run() adds."""
    return re.sub(r'^".*" ended with status -?\d+: ', "", str(e), flags=re.DOTALL)


class HostLab(Lab):
    """Workers on the user's bridge.

    tool: the saina command and its options
    control: the agent's control socket
    ovsdb: the socket of Open vSwitch's database, None: the default one
    pid: of a run that was killed, whose leftovers stop() removes
    """

    def __init__(self, bridge: str, workers: int, tool: list[str], control: str, ovsdb: str | None, pid: int | None = None):
        super().__init__(SimpleNamespace(workers=workers), agent=True)
        self.pid = pid or os.getpid()
        self.name = f"bench-{self.pid}"
        self.bridge = bridge
        self.command = [*tool, "-s", control]
        self.ovsdb = ovsdb
        net = f"198.18.{self.pid % 256}"
        self.subnet = f"{net}.0/24"
        self.addresses = [f"{net}.{n}" for n in (1, *range(10, 10 + workers))]
        self.share_path = os.environ.get("SAINA_SHARE") or os.path.join(os.path.dirname(control), "share")

    @property
    def share(self) -> str:
        return self.share_path

    def tool(self, *words: str) -> list[str]:
        return [*self.command, *words]

    def saina(self, *words: str) -> str:
        try:
            return run(*self.tool(*words))
        except BenchError as e:
            raise BenchError(without_command(e).removeprefix("saina: ")) from e

    def inside(self, worker: int | None, *command: str) -> list[str]:
        return list(command) if worker is None else super().inside(worker, *command)

    def port(self, worker: int) -> str:
        return f"sb{self.pid}p{worker}"

    def check_tcp(self) -> None:
        """Checks nothing: TCP stays as the user has configured it."""

    # --- building -----------------------------------------------------------------------------

    def start(self) -> None:
        for pid in leftovers():
            HostLab(self.bridge, 0, self.command[:1], self.command[-1], self.ovsdb, pid).stop()
        self.read_bridge()
        self.up = True
        try:
            run("ip", "address", "add", f"{self.addresses[0]}/24", "dev", self.bridge)
            for w in range(self.place.workers):
                self.add_worker(w)
            self.plug()
        except BenchError as e:
            raise BenchError(f"cannot create workers on {self.bridge}: {without_command(e)}") from e
        self.wait_attached()

    def read_bridge(self) -> None:
        try:
            link = json.loads(run("ip", "-j", "-d", "link", "show", "dev", self.bridge))[0]
            inet = json.loads(run("ip", "-j", "-4", "address", "show", "dev", self.bridge))[0]["addr_info"]
            routes = json.loads(run("ip", "-j", "-4", "route", "show", "root", self.subnet, "table", "all") or "[]")
        except BenchError as e:
            raise BenchError(f"bridge {self.bridge}: {without_command(e)}; run this in the network namespace of sainad: saina -n NETNS bench") from e
        if not inet:
            raise BenchError(f"bridge {self.bridge} has no IPv4 address: ip address add 10.190.0.1/24 dev {self.bridge} "
                             "(any free address), then start sainad again")
        taken = [r["dst"] for r in routes if r["dst"] not in ("default", "0.0.0.0/0")]
        if taken:
            raise BenchError(f"saina bench needs {self.subnet} for its workers, but there is a route to {taken[0]}: "
                             "run it again, it will use another network of 198.18.0.0/16")
        self.aggregator = inet[0]["local"]
        self.mtu = link["mtu"]
        self.linux = link.get("linkinfo", {}).get("info_kind") == "bridge"
        # The userspace datapath does not complete checksums left to hardware.
        self.userspace = not self.linux and "netdev" in self.ovs("get", "bridge", self.bridge, "datapath_type")

    def ovs(self, *words: str) -> str:
        return run("ovs-vsctl", "--timeout=30", *([f"--db=unix:{self.ovsdb}"] if self.ovsdb else []), *words)

    def add_worker(self, w: int) -> None:
        ns = self.namespace(w)
        run("ip", "netns", "add", ns)
        run("ip", "link", "add", self.port(w), "mtu", str(self.mtu), "type", "veth", "peer", "name", "eth0", "mtu", str(self.mtu), "netns", ns)
        # GRO is turned on before the port is set up: otherwise XDP could not redirect to the worker.
        run(*self.inside(w, "sh", "-ec", "for d in all default eth0; do echo 1 >/proc/sys/net/ipv6/conf/$d/disable_ipv6; done; "
                         'ethtool -K eth0 gro on tx "$1" >/dev/null; ip link set lo up; ip address add "$2/24" dev eth0; '
                         'ip link set eth0 up; ip route add "$3/32" dev eth0 src "$2"',
                         "sh", "off" if self.userspace else "on", self.addresses[1 + w], self.aggregator))
        run("ip", "link", "set", self.port(w), "up")

    def plug(self) -> None:
        ports = [self.port(w) for w in range(self.place.workers)]
        if self.linux:
            for port in ports:
                run("ip", "link", "set", port, "master", self.bridge)
        else:
            self.ovs(*(w for port in ports for w in ("--", "add-port", self.bridge, port, "--", "set", "interface", port, f"mtu_request={self.mtu}")))

    def wait_attached(self) -> None:
        deadline = time.monotonic() + ATTACH_TIMEOUT
        ours = {self.port(w) for w in range(self.place.workers)}
        while True:
            ports = {p["port"]: p for p in json.loads(self.saina("-j", "port", "show")) if p["port"] in ours}
            if len(ports) == len(ours) and all(p["mode"] != "none" for p in ports.values()):
                self.hook = next(iter(ports.values()))["mode"]
                return
            if time.monotonic() > deadline:
                why = "; ".join({p.get("text") or "sainad did not attach" for p in ports.values() if p["mode"] == "none"}) or "sainad does not see its ports"
                raise BenchError(f"the new ports of {self.bridge} do not carry SAINA's program: {why}; run saina doctor")
            time.sleep(0.1)

    def text(self) -> str:
        kind = "Linux bridge" if self.linux else f"Open vSwitch, {'userspace' if self.userspace else 'kernel'} datapath"
        return f"{self.bridge} ({kind}, MTU {self.mtu}, hook {self.hook if self.hook == 'tc' else f'{self.hook} XDP'})"

    # --- looking and undoing ------------------------------------------------------------------

    def port_bytes(self) -> int:
        total = 0
        with open("/proc/net/dev", encoding="ascii") as f:
            for line in f:
                name, _, numbers = line.partition(":")
                if name.strip().startswith(f"sb{self.pid}p"):
                    total += int(numbers.split()[0])
        return total

    def stop(self) -> None:
        """Removes what exists of the lab, in any state."""
        jobs = [j["name"] for j in json.loads(self.attempt(*self.tool("-j", "job", "show")) or "[]")]
        for job in jobs:
            if job.startswith(f"{self.name}-"):
                self.attempt(*self.tool("job", "del", job))
        ports = [p for p in os.listdir("/sys/class/net") if re.fullmatch(rf"sb{self.pid}p\d+", p)]
        if ports and not os.path.isdir(f"/sys/class/net/{self.bridge}/bridge"):
            self.attempt("ovs-vsctl", "--timeout=30", *([f"--db=unix:{self.ovsdb}"] if self.ovsdb else []),
                         *(w for p in ports for w in ("--", "--if-exists", "del-port", p)))
        for port in ports:
            self.attempt("ip", "link", "del", port)
        for ns in os.listdir(NAMESPACES) if os.path.isdir(NAMESPACES) else []:
            if ns.startswith(f"saina-{self.name}-w"):
                for pid in self.attempt("ip", "netns", "pids", ns).split():
                    self.attempt("kill", "-KILL", pid)
                self.attempt("ip", "netns", "del", ns)
        for folder in glob.glob(os.path.join(tempfile.gettempdir(), f"saina-{self.name}-*")):
            shutil.rmtree(folder, ignore_errors=True)
        self.attempt("ip", "address", "del", f"{self.addresses[0]}/24", "dev", self.bridge)
        self.up = False

    @staticmethod
    def attempt(*command: str) -> str:
        try:
            return run(*command)
        except (BenchError, OSError):
            return ""


def leftovers() -> list[int]:
    """Process ids of killed runs: their namespaces are left, but the processes are gone."""
    names = os.listdir(NAMESPACES) if os.path.isdir(NAMESPACES) else []
    pids = {int(m[1]) for m in (re.fullmatch(r"saina-bench-(\d+)-w\d+", n) for n in names) if m}
    return [pid for pid in sorted(pids) if not os.path.exists(f"/proc/{pid}")]
