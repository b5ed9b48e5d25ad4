# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests leave behind, and its removal.

Labs, namespaces and the environment of the processes of a run carry its name
(SAINA_TEST_RUN), which distinguishes them from those of other runs.
"""

import glob
import json
import os
import signal
import subprocess
import time


def _output(*argv):
    try:
        return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              check=False).stdout.decode(errors="replace")
    except FileNotFoundError:
        return ""


def _processes(run):
    """(pid, command line) of the processes that carry the run's name."""
    mark = f"SAINA_TEST_RUN={run}".encode()
    found = []
    for d in glob.glob("/proc/[0-9]*"):
        try:
            with open(d + "/environ", "rb") as f:
                if mark not in f.read().split(b"\0"):
                    continue
            with open(d + "/cmdline", "rb") as f:
                command = f.read().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        if command:
            found.append((int(d[6:]), command))
    return found


def _files(run):
    return [f for pattern in ("/run/netns/*{}*", "/run/saina-lab/{}*", "/sys/fs/bpf/*{}*")
            for f in glob.glob(pattern.format(run))]


def of_run(run):
    """Returns what still carries the run's name after its tests; kills the processes."""
    files = _files(run)
    processes = []
    # Processes may need a moment to end.  During execve() a process has no environment, so a
    # single look can miss it.
    none = 0
    for _ in range(40):
        processes = _processes(run)
        none = 0 if processes else none + 1
        if none == 2:
            break
        time.sleep(0.02 if none else 0.1)
    for pid, _ in processes:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return files + [f"process {pid} ({command})" for pid, command in processes]


def clean(top, run):
    """Removes the run's labs and namespaces."""
    labs = {os.path.basename(d.rstrip("/")) for d in glob.glob(f"/run/saina-lab/{run}*/")}
    labs |= {os.path.basename(d)[len("saina-"):-len("-sw")]
             for d in glob.glob(f"/run/netns/saina-{run}*-sw")}
    for lab in labs:
        subprocess.run([top + "/tools/saina-lab", "down", lab], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
    for ns in glob.glob(f"/run/netns/*{run}*"):
        _output("ip", "netns", "del", os.path.basename(ns))


# What the kernel makes itself: in each bpffs that is mounted (BPF_PRELOAD), and for a
# module that a link of its kind loads.
KERNEL_PINS = {"maps.debug", "progs.debug"}
KERNEL_LINKS = {"ifb0", "ifb1", "dummy0", "bond0", "teql0", "tunl0", "sit0", "gre0", "gretap0", "erspan0",
                "ip_vti0", "ip6_vti0", "ip6tnl0", "ip6gre0", "ovs-system"}


def _host_state():
    """Things without a run's name: links, programs, pins, namespaces and labs."""
    state = set()
    for line in _output("ip", "-o", "link", "show").splitlines():
        name = line.split(":")[1].strip().split("@")[0]
        if name not in KERNEL_LINKS:
            state.add("link " + name)
    try:
        programs = json.loads(_output("bpftool", "-j", "prog", "show") or "[]")
    except ValueError:
        programs = []
    for p in programs:
        if p.get("name", "").startswith("saina"):
            state.add(f"program {p['id']} {p['name']}")
    for root, dirs, files in os.walk("/sys/fs/bpf"):
        state |= {"pin " + os.path.join(root, n) for n in dirs + files if n not in KERNEL_PINS}
    state |= {"namespace " + n for n in glob.glob("/run/netns/saina-*")}
    state |= {"lab " + n for n in glob.glob("/run/saina-lab/*/")}
    return state


def _owner_alive(lab):
    """Is the owner of the lab alive?  As lab_owner_alive() of saina-lab."""
    try:
        with open(lab + "owner.pid", encoding="ascii") as f:
            pid, start = f.read().split()
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[19] == start
    except (OSError, ValueError, IndexError):
        return False


def _beside(mine):
    """Names of the runs and labs in use, without those of the runs @mine."""
    found = set()
    for d in glob.glob("/proc/[0-9]*"):
        try:
            with open(d + "/environ", "rb") as f:
                found |= {v.partition(b"=")[2].decode(errors="replace") for v in f.read().split(b"\0")
                          if v.startswith(b"SAINA_TEST_RUN=")}
        except OSError:
            pass
    found |= {os.path.basename(d.rstrip("/")) for d in glob.glob("/run/saina-lab/*/") if _owner_alive(d)}
    return {n for n in found if len(n) > 3 and not any(run in n for run in mine)}


class Host:
    """The state of the host before the @runs, to be compared with that after them."""

    def __init__(self, runs):
        self.runs = runs
        self.before = _host_state()
        self.beside = _beside(runs)

    def changes(self):
        """Returns what has been added since, without what other runs have added.

        Programs carry no name of a run, so beside other runs they are left out.
        """
        # The kernel frees programs and links some time after their last user.
        for _ in range(50):
            self.beside |= _beside(self.runs)
            new = {n for n in _host_state() - self.before
                   if not any(name in n for name in self.beside)
                   and not (self.beside and n.startswith("program "))}
            if not any(n.startswith(("program ", "link ")) for n in new):
                break
            time.sleep(0.1)
        return sorted(new)
