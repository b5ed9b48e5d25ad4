#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory: as many jobs as there can be take what netlink.rst declares, their dumps are
complete, and jobs, workers, sockets and namespaces by the thousand leave nothing behind.
In the test VM, with the module loaded and no jobs; as root."""
import ctypes
import errno
import os
import time

from family import Family, Tap

# What the module allocates per job: a table entry (4 k), snapshots (2 k) and the live
# part (32).  Growth by so many objects after 2000 jobs is a leak in one job of a hundred;
# the rest of an idle kernel moves these numbers by a few objects.
LIMITS = {"kmalloc-cg-4k": 20, "kmalloc-cg-2k": 20, "kmalloc-cg-32": 60}
# As many jobs as a namespace may have, and so many of them with all their workers.
JOBS, BOUND, WORKERS = 256, 64, 64
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


def grown_until(good):
    """Objects more than @before, as soon as they are @good, after a while in any case."""
    deadline = time.monotonic() + 30
    while True:
        after = settled()
        grown = {k: after[k] - before[k] for k in after}
        if good(grown) or time.monotonic() > deadline:
            return grown
        time.sleep(0.2)


def keeps_freed():
    """KASAN keeps what was freed, so that slabinfo shows what was in use, not what is."""
    with open("/proc/kallsyms", encoding="ascii") as symbols:
        return any(line.split()[2] == "kasan_quarantine_put" for line in symbols)


def bind(f, job, w, dev):
    f.do("worker-set", {"job-id": job, "id": w, "ifindex": dev, "ip": 1 + w, "mac": bytes([2, 0, 0, 0, job, w]),
                        "udp-port": 1, "session": 1 + w})


def full(f, dev):
    for j in range(JOBS):
        f.do("job-new", {"name": f"full{j}", "elements": 1000, "workers": WORKERS})
        for w in range(WORKERS if j < BOUND else 0):
            bind(f, j, w, dev)
    Tap.refused(lambda: f.do("job-new", {"name": "many", "elements": 1, "workers": 1}), errno.ENOSPC, "all 256 job numbers are taken", "id",
                f"job {JOBS + 1} of {JOBS} is refused")
    Tap.same([(j["id"], j["workers"], j["active"]) for j in f.dump("job-get")[0]],
             [(j, WORKERS, 2**64 - 1 if j < BOUND else 0) for j in range(JOBS)],
             f"a dump of {JOBS} jobs has each job once, with all attributes")
    Tap.same([(w["job-id"], w["id"], w["session"], w["mac"]) for w in f.dump("worker-get")[0]],
             [(j, w, 1 + w, bytes([2, 0, 0, 0, j, w]).hex(":")) for j in range(BOUND) for w in range(WORKERS)],
             f"a dump of {BOUND * WORKERS} workers has each worker once, with its binding")
    # A tenth more: others use these caches, too.
    grown = grown_until(lambda g: all(v <= JOBS * 1.1 + 32 for v in g.values()))
    name = f"{JOBS} jobs of {WORKERS} workers take the memory that is declared"
    if keeps_freed():
        Tap.ok(True, name + " # SKIP KASAN keeps what was freed")
    else:
        Tap.ok(all(v <= JOBS * 1.1 + 32 for v in grown.values()) and grown["kmalloc-cg-4k"] >= JOBS - 56, name, grown)
    for j in range(JOBS):
        f.do("job-del", {"id": j})


def round_of(f, dev):
    for j in range(100):
        f.do("job-new", {"name": f"j{j}", "elements": 1000, "workers": 64})
    for j in range(0, 100, 10):
        for w in range(8):
            bind(f, j, w, dev)
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
full(f, 1)
for _ in range(10):
    round_of(f, 1)
namespaces(20)

grown = grown_until(lambda g: all(v < LIMITS[k] for k, v in g.items()))
Tap.note(f"objects more than before: {grown}")
Tap.same(sorted(grown), sorted(LIMITS), "the caches can be counted")
for k, v in grown.items():
    Tap.ok(v < LIMITS[k], f"after 2000 jobs and 20 namespaces {k} has grown by less than {LIMITS[k]}", grown)
Tap.same(f.do("limits-get")["jobs-used"], 0, "no job is in use")
Tap.done()
