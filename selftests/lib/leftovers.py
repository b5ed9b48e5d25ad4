# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests leave behind, and how it is taken away.

Labs, namespaces and the environment of the processes of a run carry its name
(SAINA_TEST_RUN), which tells them from other people's.
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
    """What carries the run's name although its test has ended; processes are killed."""
    files = _files(run)
    processes = []
    # Ending processes get a moment.  One that is just being replaced by another program
    # has no environment meanwhile, so that once is not enough to find none.
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
    """Takes the run's labs and namespaces down."""
    labs = {os.path.basename(d.rstrip("/")) for d in glob.glob(f"/run/saina-lab/{run}*/")}
    labs |= {os.path.basename(d)[len("saina-"):-len("-sw")]
             for d in glob.glob(f"/run/netns/saina-{run}*-sw")}
    for lab in labs:
        subprocess.run([top + "/tools/saina-lab", "down", lab], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
    for ns in glob.glob(f"/run/netns/*{run}*"):
        _output("ip", "netns", "del", os.path.basename(ns))


def host_state():
    """Things without a run's name: links, programs, pins, namespaces and labs."""
    state = set()
    for line in _output("ip", "-o", "link", "show").splitlines():
        state.add("link " + line.split(":")[1].strip().split("@")[0])
    try:
        programs = json.loads(_output("bpftool", "-j", "prog", "show") or "[]")
    except ValueError:
        programs = []
    for p in programs:
        if p.get("name", "").startswith("saina"):
            state.add(f"program {p['id']} {p['name']}")
    for root, dirs, files in os.walk("/sys/fs/bpf"):
        state |= {"pin " + os.path.join(root, n) for n in dirs + files}
    state |= {"namespace " + n for n in glob.glob("/run/netns/saina-*")}
    state |= {"lab " + n for n in glob.glob("/run/saina-lab/*/")}
    return state


def host_changes(before):
    """What is there now and was not @before."""
    # The kernel frees programs and links some time after their last user.
    for _ in range(50):
        new = host_state() - before
        if not new:
            break
        time.sleep(0.1)
    return sorted(new)
