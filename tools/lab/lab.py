# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab built by saina-lab: namespaces with workers on a bridge, under a random name."""

import os
import secrets
import shutil
import subprocess
from typing import NamedTuple

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
BUILD = os.environ.get("SAINA_BUILD", os.path.join(TOP, "build"))
LAB_TOOL = os.path.join(TOP, "tools", "saina-lab")
NET = "10.190.0"


class Switch(NamedTuple):
    """What a lab is built of; hook: of the ports, as `saina port set' has it."""

    bridge: str
    mtu: int
    workers: int
    hook: str = "auto"


class BenchError(Exception):
    """A message for the user, which says what to do next."""


def check_commands(*names: str, advice: str = "tools/install-deps") -> None:
    """Raises BenchError if a command is not in PATH; advice: the command that installs it."""
    for name in names:
        if not shutil.which(name):
            raise BenchError(f"{name} is missing: run {advice}")


def check_built(*programs: str, make: str = "make") -> None:
    """Raises BenchError if a program is not in BUILD; make: the command that builds it."""
    for program in programs:
        if not os.access(os.path.join(BUILD, program), os.X_OK):
            raise BenchError(f"{BUILD}/{program} is missing: run `{make}' in {TOP}")


def run(*command: str) -> str:
    """Returns the output of a command.  Raises BenchError if it fails."""
    # A session of its own: Ctrl-C reaches only this program, which lets the command end
    # and then undoes it.
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, start_new_session=True) as p:
        try:
            out, err = p.communicate()
        except KeyboardInterrupt:
            p.communicate()
            raise
    if p.returncode:
        raise BenchError(f"\"{' '.join(command)}\" ended with status {p.returncode}: {err.strip()[-600:]}")
    return out


class Lab:
    """Workers on a bridge.

    place: has the fields of Switch
    agent: sainad runs and its program is on the ports; otherwise the ports carry no program.
        GRO of the workers' ends is on with it and off without it, except while a contender
        is measured with another setting (set_gro())
    """

    aggregator = f"{NET}.1"
    subnet = f"{NET}.0/24"

    def __init__(self, place, agent: bool):
        # selftests/run finds by this name what a test has left behind.
        self.name = f"{os.environ.get('SAINA_TEST_RUN', '')}bench{secrets.token_hex(3)}"
        self.place = place
        self.agent = agent
        self.gro = agent
        self.link = None
        self.up = False

    def start(self) -> None:
        options = ["--workers", str(self.place.workers), "--bridge", self.place.bridge,
                   "--mtu", str(self.place.mtu), "--owner", str(os.getpid())]
        options += ["--hook", self.place.hook] if self.agent else ["--no-agent", "--gro", "off"]
        self.gro = self.agent
        self.up = True
        run(LAB_TOOL, "up", self.name, *options)
        self.set_cubic()
        self.link = "unlimited"

    def stop(self) -> None:
        if self.up and os.path.isdir(f"/run/saina-lab/{self.name}"):
            run(LAB_TOOL, "down", self.name)
        self.up = False

    def namespace(self, worker: int | None) -> str:
        """The name of the namespace of a worker, or (None) of the switch."""
        return f"saina-{self.name}-" + ("sw" if worker is None else f"w{worker}")

    def inside(self, worker: int | None, *command: str) -> list[str]:
        """The command line that runs a command in the namespace of a worker, or (None) of the switch."""
        return ["nsenter", f"--net=/run/netns/{self.namespace(worker)}", "--", *command]

    @property
    def share(self) -> str:
        """The agent's socket for shared memory."""
        return f"/run/saina-lab/{self.name}/run/share"

    def tool(self, *words: str) -> list[str]:
        """The command line of a saina command for this lab's agent."""
        return self.inside(None, os.path.join(BUILD, "saina"), "-s", f"/run/saina-lab/{self.name}/control", *words)

    def saina(self, *words: str) -> str:
        return run(*self.tool(*words))

    def set_cubic(self) -> None:
        """TCP in the lab uses cubic, whatever the host's default is."""
        for w in range(self.place.workers):
            run("ip", "-n", self.namespace(w), "route", "replace", self.subnet, "dev", "eth0", "proto", "kernel",
                "scope", "link", "src", f"{NET}.{10 + w}", "congctl", "cubic")

    def set_link(self, link: str) -> None:
        """Limits each worker's link both ways, inside its namespace.  link: "unlimited", or RATE[/BURST] as tc writes them."""
        if link == self.link:
            return
        words = ["none"] if link == "unlimited" else link.split("/")
        for w in range(self.place.workers):
            run(LAB_TOOL, "rate", self.name, str(w), *words)
        self.link = link

    def set_gro(self, gro: bool) -> None:
        """Turns GRO at the workers' ends of the links on or off."""
        if gro == self.gro:
            return
        run("sh", "-ec", 'gro=$1; shift; for ns; do nsenter --net=/run/netns/"$ns" ethtool -K eth0 gro "$gro"; done',
            "sh", "on" if gro else "off", *(self.namespace(w) for w in range(self.place.workers)))
        self.gro = gro

    def restore_gro(self) -> None:
        """Restores the GRO setting with which the lab was built."""
        self.set_gro(self.agent)

    def check_tcp(self) -> None:
        """Raises BenchError if a TCP connection in the lab does not use cubic.  To be called while a peer has connections."""
        said = run(*self.inside(0, "ss", "-Htin", "dst", self.subnet))
        details = [line for line in said.splitlines() if "rtt:" in line]
        if not details or not all("cubic" in line.split() for line in details):
            raise BenchError("TCP does not use cubic in the lab, so the comparison with the peers would be unfair: "
                             "see `ss -ti' and sysctl net.ipv4.tcp_available_congestion_control")

    def port_bytes(self) -> int:
        """How many bytes the bridge's ports have received from the workers since the lab was built."""
        total = 0
        for line in run(*self.inside(None, "cat", "/proc/net/dev")).splitlines():
            name, _, numbers = line.partition(":")
            if name.strip().startswith("p") and name.strip()[1:].isdigit():
                total += int(numbers.split()[0])
        return total
