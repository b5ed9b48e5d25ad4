#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory at the end: jobs, workers, sockets and namespaces by the thousand leave
nothing behind.  In the test VM, with the module loaded and no jobs; as root."""
import os
import re
import subprocess
import time

from family import Family, Tap

# What the module allocates, and how many more objects of that size are a leak: per
# job a table entry (4 k), snapshots (2 k) and the live part (64).
CACHES = {"kmalloc-cg-4k": 200, "kmalloc-cg-2k": 200, "kmalloc-cg-64": 1200}
LIMITS = {**CACHES, "percpu": 8192}


def memory():
    """Objects in use of our caches, and kB of per-CPU memory."""
    used = {}
    with open("/proc/slabinfo", encoding="ascii") as f:
        for line in f:
            name, active = line.split()[:2]
            if name in CACHES:
                used[name] = int(active)
    with open("/proc/meminfo", encoding="ascii") as f:
        used["percpu"] = int(re.search(r"Percpu:\s+(\d+)", f.read()).group(1))
    return used


def settled():
    """memory() once RCU and the slab caches have had time to calm down: the same five
    times in a row, or after 20 s."""
    last, same, deadline = None, 0, time.monotonic() + 20
    while same < 5 and time.monotonic() < deadline:
        for node in CACHES:
            try:
                with open(f"/sys/kernel/slab/{node}/shrink", "w", encoding="ascii") as f:
                    f.write("1")
            except OSError:
                pass
        time.sleep(0.2)
        now = memory()
        same = same + 1 if now == last else 0
        last = now
    return last


def round_of(f, dev):
    for j in range(100):
        f.do("job-new", {"job": {"name": f"j{j}", "elements": 1000, "workers": 64}})
    for j in range(0, 100, 10):
        for w in range(8):
            f.do("worker-set", {"worker": {"job-id": j, "id": w, "ifindex": dev, "ip": 1 + w,
                                           "mac": bytes([2, 0, 0, 0, 0, w]), "udp-port": 1, "session": 1}})
    f.dump("worker-get")
    for j in range(100):
        f.do("job-del", {"job": {"id": j}})


f = Family()
for _ in range(3):
    round_of(f, 1)
before = settled()
for _ in range(10):
    round_of(f, 1)
for i in range(20):
    ns = f"saina-leak-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", ns], check=True)
    subprocess.run(["nsenter", f"--net=/run/netns/{ns}", "python3", "-c",
                    "import family; f = family.Family()\n"
                    "for j in range(50): f.do('job-new', {'job': {'name': f'n{j}', 'elements': 9, 'workers': 64}})"],
                   check=True, cwd=os.path.dirname(os.path.abspath(__file__)))
    subprocess.run(["ip", "netns", "del", ns], check=True)

# 1000 jobs and 20 namespaces of 50 have come and gone: as many objects would be
# left if one kind leaked.
deadline = time.monotonic() + 30
while True:
    after = settled()
    grown = {k: after[k] - before[k] for k in after}
    if all(v < LIMITS[k] for k, v in grown.items()):
        break
    if time.monotonic() > deadline:
        break
    time.sleep(0.2)
Tap.note(f"objects more than before: {grown}")
Tap.same(sorted(grown), sorted(LIMITS), "all of these can be counted here")
for k, v in grown.items():
    Tap.ok(v < LIMITS[k], f"2000 jobs and 20 namespaces later, {k} has not grown by as much", grown)
Tap.same(f.do("limits-get")["limits"]["jobs-used"], 0, "nothing is in use")
Tap.done()
