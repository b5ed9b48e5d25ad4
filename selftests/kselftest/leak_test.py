#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory at the end: jobs, workers, sockets and namespaces by the thousand leave
nothing behind.  In the test VM, with the module loaded and no jobs; as root."""
import ctypes
import os
import time

from family import Family, Tap

# What the module allocates per job: a table entry (4 k), snapshots (2 k) and the live
# part (32).  Growth by so many objects after 2000 jobs is a leak in one job of a hundred;
# the rest of an idle kernel moves these numbers by a few objects.
LIMITS = {"kmalloc-cg-4k": 20, "kmalloc-cg-2k": 20, "kmalloc-cg-32": 60}
# kfree_rcu() frees in batches, after up to 5 s.
DRAIN = 7

CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None)


def memory():
    """{cache: objects in use}, for the caches of LIMITS."""
    used = {}
    with open("/proc/slabinfo", encoding="ascii") as f:
        for line in f:
            name, active = line.split()[:2]
            if name in LIMITS:
                used[name] = int(active)
    return used


def settled():
    """memory() without what the slab caches keep for themselves."""
    for node in LIMITS:
        try:
            with open(f"/sys/kernel/slab/{node}/shrink", "w", encoding="ascii") as f:
                f.write("1")
        except OSError:
            pass
    return memory()


def round_of(f, dev):
    for j in range(100):
        f.do("job-new", {"name": f"j{j}", "elements": 1000, "workers": 64})
    for j in range(0, 100, 10):
        for w in range(8):
            f.do("worker-set", {"job-id": j, "id": w, "ifindex": dev, "ip": 1 + w,
                                           "mac": bytes([2, 0, 0, 0, 0, w]), "udp-port": 1, "session": 1})
    f.dump("worker-get")
    for j in range(100):
        f.do("job-del", {"id": j})


def namespaces(count):
    """Makes @count of them with 50 jobs each; they go with the process in them."""
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                if libc.unshare(CLONE_NEWNET) == 0:
                    inside = Family()
                    for j in range(50):
                        inside.do("job-new", {"name": f"n{j}", "elements": 9, "workers": 64})
                    status = 0
            finally:
                os._exit(status)
        if os.waitpid(pid, 0)[1]:
            Tap.ok(False, "a process makes a network namespace with 50 jobs")


f = Family()
for _ in range(3):
    round_of(f, 1)
namespaces(2)
time.sleep(DRAIN)
before = settled()
for _ in range(10):
    round_of(f, 1)
namespaces(20)

deadline = time.monotonic() + 30
while True:
    after = settled()
    grown = {k: after[k] - before[k] for k in after}
    if all(v < LIMITS[k] for k, v in grown.items()) or time.monotonic() > deadline:
        break
    time.sleep(0.2)
Tap.note(f"objects more than before: {grown}")
Tap.same(sorted(grown), sorted(LIMITS), "the caches can be counted")
for k, v in grown.items():
    Tap.ok(v < LIMITS[k], f"after 2000 jobs and 20 namespaces {k} has grown by less than {LIMITS[k]}", grown)
Tap.same(f.do("limits-get")["jobs-used"], 0, "no job is in use")
Tap.done()
