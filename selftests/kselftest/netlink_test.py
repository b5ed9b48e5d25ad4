#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""saina.ko's generic netlink: every command, every refusal.  In the test VM, with
the module loaded and no jobs; as root."""
import ctypes
import errno
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time

import family
from family import ACK, NESTED, REQUEST, Family, Refused, Spec, Tap, attr

f = Family()
Tap.same(sorted(f.groups), ["config", "events"], "the family has the groups config and events")
config, events = Family(5), Family(5)
config.subscribe("config")
events.subscribe("events")


def sh(command):
    subprocess.run(command, shell=True, check=True)


def ifindex(name):
    return socket.if_nametoindex(name)


def job(**more):
    return {k.replace("_", "-"): v for k, v in more.items()}


def policy(mode, **more):
    """What a reply shows of a policy, but for sfcd."""
    return {"mode": mode, "late": 1, "k": 0, "k-min": 0, "k-max": 0, "flags": 0, "s-th": 0,
            "c-th": 0, "stride": 0, "timeout-us": 0, "spread": 0, "window": 0, "lead": 0, **more}


worker = job
BSP, FASTEST, SFCD, TIMEOUT, EXTERNAL, SSP, ASP, GROUPED = 1, 2, 3, 4, 5, 7, 8, 9
NO_WINDOW = (1 << 32) - 1


def bind(w, dev, j="a", **more):
    return worker(job_name=j, id=w, ifindex=dev, ip=0x0a000001 + w, mac=bytes([2, 0, 0, 0, 0, w]),
                  udp_port=5000 + w, session=100 + w, **more)


# --- jobs -------------------------------------------------------------------------

reply = f.do("job-new", job(name="a", elements=1000, workers=3))
Tap.same(reply, {
    "id": 0, "name": "a", "state": 1, "elements": 1000, "workers": 3, "payload": 352, "pool": 4,
    "ring": 8, "elem-type": 1, "exponent": 20, "policy": policy(BSP), "heartbeat-ms": 200,
    "dead-ms": 2000, "generation": 1, "policy-seq": 1, "segments": 3,
    "memory": reply["memory"], "active": 0, "by-reference": 0}, "job-new answers with the whole job")
Tap.same(config.note(), ("job-ntf", reply), "job-new is notified, with the job as in the reply")
Tap.same(f.do("job-get", job(name="a")), reply, "job-get finds a job by name")
Tap.same(f.do("job-get", job(id=0)), reply, "job-get finds a job by number")
name, ev = events.note()
Tap.same((name, {k: v for k, v in ev.items() if k != "time"}),
         ("event", {"type": 6, "job-id": 0, "job-name": "a", "round": 0, "k": 0, "a": 0, "b": 1}),
         "a new job sends an event")
Tap.ok(0 < ev["time"] <= time.monotonic_ns(), "events carry the monotonic time")

full = f.do("job-new", job(name="b.2_-", id=200, elements=5000, workers=64, payload=352, pool=16,
                           ring=2, elem_type=1, exponent=-3, policy={"mode": SFCD, "k": 2, "c-th": 0},
                           token="x" * 32, heartbeat_ms=50, dead_ms=60))
Tap.same({k: full[k] for k in ("id", "pool", "ring", "exponent", "policy", "token",
                                      "heartbeat-ms", "dead-ms", "segments")},
         {"id": 200, "pool": 16, "ring": 2, "exponent": -3,
          "policy": {"mode": SFCD, "late": 1, "k": 2, "k-min": 1, "k-max": 0, "flags": 0,
                     "s-th": 500, "c-th": 0, "stride": 32, "timeout-us": 0, "spread": 0, "window": 0, "lead": 0}, "token": "x" * 32,
          "heartbeat-ms": 50, "dead-ms": 60, "segments": 15}, "job-new accepts every setting")
name, note = config.note()
Tap.ok("token" not in note, "notifications do not carry the token")
events.note()

f.do("job-set", job(id=200, policy={"mode": FASTEST, "k": 4}, token=""))
name, note = config.note()
Tap.same((name, note["policy"], note["policy-seq"]), ("job-ntf", policy(FASTEST, k=4), 2),
         "job-set changes the policy, counts it and notifies")
Tap.ok("token" not in f.do("job-get", job(id=200)), "a token can be taken away")
jobs, torn = f.dump("job-get")
Tap.same(([j["id"] for j in jobs], torn), ([0, 200], False), "a dump has all jobs, in order")

# --- a policy to come, and k from outside ---------------------------------------------

f.do("job-set", job(id=200, policy={"mode": TIMEOUT, "k-min": 2, "timeout-us": 10000}, policy_from=500))
now = f.do("job-get", job(id=200))
Tap.same((now["policy"], now["policy-next"]["mode"], now["policy-next"]["timeout-us"], now["policy-from"]),
         (policy(FASTEST, k=4), TIMEOUT, 10000, 500), "job-set with policy-from: the policy stays, the one to come is shown")
Tap.refused(lambda: f.do("job-set", job(id=200, policy={"mode": BSP}, policy_from=600)), errno.EBUSY,
            "another policy waits", "policy", "job-set: a second policy to come is refused")
Tap.refused(lambda: f.do("job-set", job(id=200, policy={"mode": BSP})), errno.EBUSY,
            "another policy waits", "policy", "job-set: a change of policy is refused while another one waits")
f.do("job-set", job(id=200, policy_cancel=1))
now = f.do("job-get", job(id=200))
Tap.same((now["policy"], "policy-next" in now), (policy(FASTEST, k=4), False), "job-set with policy-cancel: no policy is to come")
Tap.refused(lambda: f.do("job-set", job(id=200, policy_cancel=1)), errno.ENOENT,
            "no policy waits", "policy-cancel", "job-set with policy-cancel: is refused when no policy is to come")
Tap.refused(lambda: f.do("job-set", job(id=200, k_set=3)), errno.EINVAL, "only with external", "k-set",
            "job-set with k-set: is refused when the policy is another than external")
f.do("job-set", job(id=200, policy={"mode": EXTERNAL, "k": 4}))
f.do("job-set", job(id=200, k_set=3))
Tap.refused(lambda: f.do("job-set", job(id=200, k_set=65)), errno.ERANGE, "1..64", "k-set",
            "job-set with k-set: more than the workers is refused")
Tap.same(f.do("job-get", job(id=200))["k-set"], 3, "job-set with k-set: the k that is set is shown")
for timeout, error in ((0, errno.EINVAL), (999, errno.ERANGE), (60000001, errno.ERANGE)):
    Tap.refused(lambda t=timeout: f.do("job-set", job(id=200, policy={"mode": TIMEOUT, "k-min": 1, "timeout-us": t})),
                error, "1ms", "policy", f"job-set, a time-out of {timeout} us: is refused with the range")
for mode, request, window in (("ssp", {"mode": SSP, "window": 3}, 3), ("ssp of 0", {"mode": SSP, "window": 0}, 0),
                              ("asp", {"mode": ASP}, NO_WINDOW)):
    f.do("job-set", job(id=200, policy=request))
    Tap.same(f.do("job-get", job(id=200))["policy"], policy(request["mode"], window=window),
             f"job-set with {mode}: the window is shown")
for window, error, says in ((65536, errno.ERANGE, "0..65535"), (NO_WINDOW, errno.EINVAL, "ssp needs w")):
    Tap.refused(lambda w=window: f.do("job-set", job(id=200, policy={"mode": SSP, "window": w})), error, says, "policy",
                f"job-set, a window of {window}: is refused with the reason")
f.do("job-set", job(id=200, policy={"mode": GROUPED, "groups": 4}))
Tap.same(f.do("job-get", job(id=200))["policy"], policy(GROUPED, groups=4),
         "job-set with grouped: the number of groups is shown")
pairs = bytes(w // 2 for w in range(64))
f.do("job-set", job(id=200, policy={"mode": GROUPED, "groups": 32, "group": pairs}))
Tap.same(f.do("job-get", job(id=200))["policy"], policy(GROUPED, groups=32, group=pairs.hex(":")),
         "job-set with grouped: who is in which group is shown")
for groups, group, error, says in (
        (0, None, errno.EINVAL, "grouped needs g"), (65, None, errno.ERANGE, "must be 1..64"),
        (32, bytes([32]) + pairs[1:], errno.ERANGE, "worker 0 is in group 32: must be 0..31"),
        (32, bytes([255]) + pairs[1:], errno.EINVAL, "worker 0 is in none"),
        (33, pairs, errno.EINVAL, "group 32 of g=33 has no worker")):
    Tap.refused(lambda g=groups, p=group: f.do("job-set", job(id=200, policy={
        "mode": GROUPED, "groups": g, **({"group": p} if p else {})})), error, says, "policy",
                f"job-set, {groups} groups, {'dealt' if not group else group[:2].hex()}: is refused with a sentence")
f.do("job-set", job(id=200, policy={"mode": FASTEST, "k": 4}))
last = f.do("job-get", job(id=200))["policy-seq"]
while config.note()[1].get("policy-seq") != last:
    pass

# What is refused: (what it is, command, request, errno, sentence, guilty attribute)
refusals = [
    ("no name", "job-new", job(elements=5, workers=1), errno.EINVAL, "^name: ", "name"),
    ("nothing", "job-new", {}, errno.EINVAL, "^name: ", "name"),
    ("no elements", "job-new", job(name="c", workers=1), errno.EINVAL, "^elements: ", "elements"),
    ("no workers", "job-new", job(name="c", elements=1), errno.EINVAL, "^workers: ", "workers"),
    ("0 workers", "job-new", job(name="c", elements=1, workers=0), errno.ERANGE, "1..64", "workers"),
    ("65 workers", "job-new", job(name="c", elements=1, workers=65), errno.ERANGE, "1..64", "workers"),
    ("0 elements", "job-new", job(name="c", elements=0, workers=1), errno.ERANGE, "at least 1", "elements"),
    ("elements auto 2", "job-new", job(name="c", elements_auto=2, workers=1), errno.EINVAL, "0 or 1", "elements-auto"),
    ("2^64-1 elements", "job-new", job(name="c", elements=2**64 - 1, workers=1), errno.ERANGE,
     "do not fit", "elements"),
    ("payload 257", "job-new", job(name="c", elements=1, workers=1, payload=257), errno.EINVAL,
     "257 is not among", "payload"),
    ("pool 3", "job-new", job(name="c", elements=1, workers=1, pool=3), errno.EINVAL, "power of two", "pool"),
    ("pool 2^31", "job-new", job(name="c", elements=1, workers=1, pool=2**31), errno.EINVAL,
     "power of two", "pool"),
    ("ring 1", "job-new", job(name="c", elements=1, workers=1, ring=1), errno.EINVAL, "power of two", "ring"),
    ("ring 128", "job-new", job(name="c", elements=1, workers=1, ring=128), errno.EINVAL,
     "power of two", "ring"),
    ("exponent -128", "job-new", job(name="c", elements=1, workers=1, exponent=-128), errno.ERANGE,
     "-104..149", "exponent"),
    ("exponent -105", "job-new", job(name="c", elements=1, workers=1, exponent=-105), errno.ERANGE,
     "-104..149", "exponent"),
    ("exponent 150", "job-new", job(name="c", elements=1, workers=1, exponent=150), errno.ERANGE,
     "-104..149", "exponent"),
    ("element type 9", "job-new", job(name="c", elements=1, workers=1, elem_type=9), errno.ERANGE,
     "out of range", "elem-type"),
    ("float32 with a scale", "job-new", job(name="c", elements=1, workers=1, elem_type=2, exponent=3),
     errno.EINVAL, "only jobs of int32", "exponent"),
    ("int16", "job-new", job(name="c", elements=1, workers=1, elem_type=4), errno.EOPNOTSUPP, "bfloat16", "elem-type"),
    ("steps over floats", "job-new", job(name="c", elements=1, workers=1, elem_type=2, policy={"mode": ASP}),
     errno.EOPNOTSUPP, "needs a job of int32", "policy"),
    ("heartbeat 9", "job-new", job(name="c", elements=1, workers=1, heartbeat_ms=9), errno.ERANGE,
     "10..60000", "heartbeat-ms"),
    ("dead before heartbeat", "job-new", job(name="c", elements=1, workers=1, heartbeat_ms=100, dead_ms=100),
     errno.ERANGE, "more than", "dead-ms"),
    ("name of digits", "job-new", job(name="12", elements=1, workers=1), errno.EINVAL, "all digits", "name"),
    ("empty name", "job-new", job(name="", elements=1, workers=1), errno.EINVAL, "1..31", "name"),
    ("name with a blank", "job-new", job(name="a b", elements=1, workers=1), errno.EINVAL, "letters", "name"),
    ("name of 32", "job-new", job(name="n" * 32, elements=1, workers=1), errno.EINVAL, "validation", "name"),
    ("name not printable", "job-new", job(name=b"a\x07\0", elements=1, workers=1), errno.EINVAL,
     "letters", "name"),
    ("name in Latin-1", "job-new", job(name=b"a\xe4\0", elements=1, workers=1), errno.EINVAL,
     "letters", "name"),
    ("name not terminated", "job-new", job(name=b"abc", elements=1, workers=1), errno.EINVAL, "validation", "name"),
    ("name of no bytes", "job-new", job(name=b"", elements=1, workers=1), errno.EINVAL, "validation", "name"),
    ("token of 33", "job-new", job(name="c", elements=1, workers=1, token="t" * 33), errno.EINVAL,
     "validation", "token"),
    ("token not printable", "job-new", job(name="c", elements=1, workers=1, token=b"a\x07\0"), errno.EINVAL,
     "not printable", "token"),
    ("policy without a mode", "job-new", job(name="c", elements=1, workers=1, policy={"k": 1}), errno.EINVAL,
     "mode", "policy"),
    ("policy of an unknown mode", "job-new", job(name="c", elements=1, workers=1, policy={"mode": 10}), errno.ERANGE,
     "out of range", "policy.mode"),
    ("policy with an unknown flag", "job-new", job(name="c", elements=1, workers=1, policy={"mode": 3, "flags": 8}),
     errno.EINVAL, "reserved bit", "policy.flags"),
    ("policy with a setting of another", "job-new", job(name="c", elements=1, workers=1, policy={"mode": 1, "k": 1}),
     errno.EINVAL, "bsp does not have", "policy"),
    ("stride 3", "job-new", job(name="c", elements=1, workers=1, policy={"mode": 3, "stride": 3}), errno.ERANGE,
     "stride", "policy"),
    ("k above the workers", "job-new", job(name="c", elements=1, workers=2, policy={"mode": 2, "k": 3}), errno.ERANGE,
     "1..2", "policy"),
    ("name taken", "job-new", job(name="a", elements=1, workers=1), errno.EEXIST, "exists already", "name"),
    ("number taken", "job-new", job(name="c", id=0, elements=1, workers=1), errno.EEXIST, "job 'a' already", "id"),
    ("number 256", "job-new", job(name="c", id=256, elements=1, workers=1), errno.ERANGE, "0..255", "id"),
    ("too much memory", "job-new", job(name="c", elements=2**30, workers=1), errno.EDQUOT, "MiB", "elements"),
    ("state in job-new", "job-new", job(name="c", elements=1, workers=1, state=1), errno.EINVAL, ".", "state"),
    ("reply's attribute", "job-new", job(name="c", elements=1, workers=1, segments=1), errno.EINVAL,
     ".", "segments"),
    ("width of elements", "job-new", job(name="c", elements=b"\1\0\0\0", workers=1), errno.EINVAL,
     "length", "elements"),
    ("width of workers", "job-new", job(name="c", elements=1, workers=b"\1\0"), errno.EINVAL, "length", "workers"),
    ("attribute above those it takes", "job-new", job(name="c", elements=1, workers=1, text="x"), errno.EINVAL, ".", "text"),
    ("nobody named", "job-set", job(policy={"mode": BSP}), errno.EINVAL, "say which job", "name"),
    ("no such name", "job-set", job(name="z", policy={"mode": BSP}), errno.ENOENT, "no job 'z'", "name"),
    ("no such number", "job-set", job(id=7, policy={"mode": BSP}), errno.ENOENT, "no job 7", "id"),
    ("name and number differ", "job-set", job(id=0, name="b.2_-"), errno.ENOENT, "is called 'a'", "name"),
    ("what is fixed", "job-set", job(name="a", workers=4), errno.EINVAL, "delete and add", "workers"),
    ("running without workers", "job-set", job(name="a", state=2), errno.ENOTCONN, "no live worker", "state"),
    ("state 9", "job-set", job(name="a", state=9), errno.ERANGE, "out of range", "state"),
    ("bad policy", "job-set", job(name="a", policy={"mode": SFCD, "k": 4}), errno.ERANGE, "1..3", "policy"),
    ("del of nobody", "job-del", job(name="z"), errno.ENOENT, "no job", "name"),
    ("del with more", "job-del", job(name="a", workers=1), errno.EINVAL, ".", "workers"),
    ("get of nobody", "job-get", job(id=9), errno.ENOENT, "no job 9", "id"),
    ("get of nothing", "job-get", {}, errno.EINVAL, "say which job", "name"),
    ("worker of no job", "worker-set", worker(id=0), errno.EINVAL, "say which job", "job-name"),
    ("worker of a job not there", "worker-set", worker(job_id=9, id=0), errno.ENOENT, "no job 9", "job-id"),
    ("no worker", "worker-set", worker(job_name="a"), errno.EINVAL, "say which worker", "id"),
    ("worker 3 of 3", "worker-set", worker(job_name="a", id=3), errno.ERANGE, "0..2", "id"),
    ("half a binding", "worker-set", worker(job_name="a", id=0, ip=1), errno.EINVAL, "belong together",
     "ifindex"),
    ("interface not there", "worker-set", bind(0, 9999), errno.ENODEV, "no interface number 9999", "ifindex"),
    ("interface -1", "worker-set", bind(0, 2**32 - 1), errno.ENODEV, "no interface", "ifindex"),
    ("MAC of 5", "worker-set", worker(job_name="a", id=0, mac=b"12345"), errno.ERANGE, "size", "mac"),
    ("MAC of 7", "worker-set", worker(job_name="a", id=0, mac=b"1234567"), errno.ERANGE, "size", "mac"),
    ("change of nobody", "worker-set", worker(job_name="a", id=0, state=2), errno.ENOTCONN, "not alive", "id"),
    ("state absent", "worker-set", worker(job_name="a", id=0, state=0), errno.EINVAL, "allowed", "state"),
    ("nobody is late", "worker-set", worker(job_name="a", id=0, late=1), errno.ENOTCONN, "not alive", "id"),
    ("late and slow", "worker-set", worker(job_name="a", id=0, late=1, state=2), errno.EINVAL, "cannot be combined",
     "late"),
    ("del of an empty place", "worker-del", worker(job_name="a", id=1), errno.ENOENT, "has no worker 1", "id"),
    ("get of an empty place", "worker-get", worker(job_name="a", id=1), errno.ENOENT, "has no worker 1", "id"),
    ("get without a number", "worker-get", worker(job_name="a"), errno.EINVAL, "say which worker", "id"),
    ("reply's attribute of a worker", "worker-set", worker(job_name="a", id=0, seen_ms=1), errno.EINVAL,
     ".", "seen-ms"),
    ("limit of 0 jobs", "limits-set", {"jobs": 0}, errno.ERANGE, "1..256", "jobs"),
    ("limit of 257 jobs", "limits-set", {"jobs": 257}, errno.ERANGE, "1..256", "jobs"),
    ("limit below use", "limits-set", {"jobs": 1}, errno.EBUSY, "delete some", "jobs"),
    ("no memory for a job", "limits-set", {"memory-job": 0}, errno.ERANGE, "not be 0",
     "memory-job"),
    ("all less than one", "limits-set", {"memory": 1}, errno.ERANGE, "not be less", "memory"),
    ("use in limits-set", "limits-set", {"jobs-used": 1}, errno.EINVAL, ".", "jobs-used"),
    ("limits-get takes nothing", "limits-get", {"jobs": 1}, errno.EINVAL, ".", "jobs"),
    ("ports", "port-set", {"ifindex": 1}, errno.EOPNOTSUPP, "ask sainad", None),
    ("subscribe", "subscribe", {"groups": 1}, errno.EOPNOTSUPP, "join the multicast groups", None),
]
before = f.dump("job-get")
for what, op, request, err, text, guilty in refusals:
    Tap.refused(lambda o=op, r=request: f.do(o, r), err, text, guilty, f"{op}, {what}: is refused")
for op in ("port-get", "slot-get", "stats-get"):
    Tap.refused(lambda o=op: f.dump(o), errno.EOPNOTSUPP, "ask sainad", None, f"{op} is refused: the agent answers it")
Tap.refused(lambda: f.dump("job-get", job(id=0)), errno.EINVAL, ".", "id", "job-get: a dump of one job is refused")
Tap.refused(lambda: f.dump("worker-get", worker(job_id=9)), errno.ENOENT, "no job 9", "job-id",
            "worker-get: a dump of an unknown job is refused")
Tap.refused(lambda: f.dump("worker-get", worker(job_id=0, id=0)), errno.EINVAL, ".",
            "id", "worker-get: a dump of one worker is refused")

# Messages that no encoder makes.
good = Spec.encode(job(name="c", elements=1, workers=1), "job")
fast = Spec.encode({"mode": FASTEST, "k": 1}, "policy")
NEST = Spec.number["job"]["policy"]
for what, body, guilty in (
        ("nest not marked as such", good + attr(NEST, fast), "policy"),
        ("attribute twice", good + attr(2, b"d\0"), "name"),
        ("attribute twice in a nest", good + attr(NEST | NESTED, fast + attr(3, b"\1")), "policy.k"),
        ("unknown attribute in a nest", good + attr(NEST | NESTED, fast + attr(55, b"")), "policy.55"),
        ("unknown attribute", good + attr(100, b"x"), "100"),
        ("attribute 0", good + attr(0, b""), "0"),
        ("flag on a number", Spec.encode(job(name="c", workers=1), "job") + attr(4 | NESTED, struct.pack("=Q", 4)),
         "elements")):
    Tap.refused(lambda b=body: f.request("job-new", b, ACK), errno.EINVAL, ".", guilty, f"job-new, {what}: is refused")
for what, body in (("attribute longer than the message", good + struct.pack("=HH", 255, 5)),
                   ("attribute longer than its nest", good + attr(NEST | NESTED, fast + struct.pack("=HH", 255, 3))),
                   ("attribute shorter than its header", good + struct.pack("=HH", 3, 5)),
                   ("garbage behind", good + b"\1\2\3")):
    try:
        f.request("job-new", body, ACK)
        Tap.ok(False, f"job-new, {what}: is refused")
    except Refused as r:
        Tap.ok(r.errno == errno.EINVAL and r.text, f"job-new, {what}: is refused", r)
for cmd in (0, 5, 6, Spec.cmd["event"], 99):
    try:
        f.raw(f.id, struct.pack("=BBH", cmd, 1, 0), ACK)
        Tap.ok(False, f"command {cmd} is refused")
    except Refused as r:
        Tap.same(r.errno, errno.EOPNOTSUPP, f"command {cmd} is refused")
Tap.same(f.dump("job-get"), before, "refused requests have changed no job")
try:
    config.s.settimeout(0.05)
    got = config.note()
except TimeoutError:
    got = None
config.s.settimeout(5)
Tap.same(got, None, "refused requests send no notification")

# --- workers -------------------------------------------------------------------------

sh("ip link add sv0 type veth peer name sv1; ip link set sv0 up; ip link set sv1 up")
dev = ifindex("sv0")
f.do("worker-set", bind(0, dev, name="first", relay=1))
Tap.same(f.do("worker-get", worker(job_id=0, id=0)), {
    "job-id": 0, "job-name": "a", "id": 0, "name": "first", "state": 1, "ifindex": dev,
    "ifname": "sv0", "ip": 0x0a000001, "mac": "02:00:00:00:00:00", "udp-port": 5000,
    "session": 100, "relay": 1}, "a worker is admitted as it was asked for")
notes = [config.note() for _ in range(2)]
Tap.same([(n, o.get("active", "worker")) for n, o in notes],
         [("worker-ntf", "worker"), ("job-ntf", 1)], "worker-set notifies the worker and its job")
Tap.same(events.note()[1]["type"], 7, "a worker that joins sends an event")
f.do("worker-set", worker(job_id=0, id=0, late=42))
name, ev = events.note()
Tap.same([ev[k] for k in ("type", "job-name", "worker", "a")], [10, "a", 0, 42],
         "a worker that is late sends an event")
Tap.refused(lambda: f.do("worker-set", bind(0, dev)), errno.EEXIST, "alive already", "id",
            "worker-set, alive already: is refused")
Tap.refused(lambda: f.do("worker-set", worker(job_name="a", id=1, ifindex=dev, ip=0x0a000001, mac=b"\2\0\0\0\0\1",
                                              udp_port=5000, session=1)),
            errno.EADDRINUSE, "that IP and UDP port", "udp-port", "worker-set, address taken: is refused")
Tap.refused(lambda: f.do("worker-set", worker(job_name="a", id=1, ifindex=dev, ip=1, mac=b"\1\0\0\0\0\1",
                                              udp_port=1, session=1)),
            errno.EINVAL, "unicast", "mac", "worker-set, multicast MAC: is refused")
Tap.refused(lambda: f.do("worker-set", worker(job_name="a", id=0, relay=2)), errno.ERANGE, "0 or 1",
            "relay", "worker-set, relay 2: is refused")
f.do("worker-set", bind(1, dev))
f.do("worker-set", bind(2, dev))
Tap.same(f.do("job-get", job(id=0))["state"], 2, "a job runs when its last worker has joined")
workers, torn = f.dump("worker-get", worker(job_name="a"))
Tap.same([w["id"] for w in workers], [0, 1, 2], "worker-get: a dump can be of one job")
Tap.same(len(f.dump("worker-get")[0]), 3, "a dump has all workers")
f.do("worker-set", worker(job_id=0, id=2, state=4))
Tap.same(f.do("job-get", job(id=0))["active"], 3, "a worker that has left is not active")
f.do("job-set", job(id=0, state=3))
Tap.refused(lambda: f.do("worker-set", bind(2, dev)), errno.ESHUTDOWN, "stopped", "job-name",
            "worker-set, job stopped: is refused")
f.do("job-set", job(id=0, state=2))
f.do("worker-del", worker(job_id=0, id=2))
Tap.same(len(f.dump("worker-get")[0]), 2, "worker-del removes the worker")

# --- an interface goes under its workers ------------------------------------------------

for s in (config, events):
    s.close()
config, events = Family(5), Family(5)
config.subscribe("config")
events.subscribe("events")
sh("ip link del sv0")
Tap.ok(all(w["state"] in (1, 2) for w in f.dump("worker-get")[0]),
       "workers behind an interface that goes are alive: only silence ends them")
for w in (0, 1):
    f.do("worker-set", worker(job_id=0, id=w, state=3))
Tap.same([events.note()[1]["type"] for _ in range(3)], [9, 9, 6],
         "the deaths of all workers send two deaths and the job's new state as events")
Tap.same(f.do("job-get", job(id=0))["generation"], 3, "a job whose workers are all dead has a new generation")

# --- namespaces ----------------------------------------------------------------------------

ns = f"saina-test-{os.getpid()}"
sh(f"ip netns add {ns}")
child = os.fork()
if child == 0:
    fd = os.open(f"/run/netns/{ns}", os.O_RDONLY)
    ctypes.CDLL(None).setns(fd, 0x40000000)
    os.close(fd)
    g = Family()
    empty = g.dump("job-get")[0] == []
    g.do("job-new", job(name="a", elements=9, workers=2))
    g.do("worker-set", bind(0, 1))
    os._exit(0 if empty and len(g.dump("job-get")[0]) == 1 else 1)
Tap.same(os.waitpid(child, 0)[1], 0, "another namespace has jobs of its own")
Tap.same([j["id"] for j in f.dump("job-get")[0]], [0, 200], "jobs of another namespace are not shown in this one")
Tap.same(subprocess.run(["ip", "netns", "del", ns], check=False).returncode, 0, "a namespace with jobs can be deleted")

# --- permissions ---------------------------------------------------------------------------

f.do("job-set", job(id=0, token="secret"))
Tap.same(f.do("job-get", job(id=0)).get("token"), "secret", "root is shown the token")
Tap.same(f.dump("job-get")[0][0].get("token"), "secret", "root is shown the token in dumps")
Tap.ok(any("session" in w for w in f.dump("worker-get")[0]), "root is shown the sessions of workers")


def as_nobody():
    """Returns 0 if all is as it should be, else the number of what is not."""
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    g = Family()
    if "token" in g.do("job-get", job(id=0)):
        return 1
    if any("token" in j for j in g.dump("job-get")[0]):
        return 2
    for n, (op, request) in enumerate((
            ("job-new", job(name="n", elements=1, workers=1)), ("job-set", job(id=0, policy={"mode": BSP})),
            ("job-del", job(id=0)), ("worker-set", bind(0, 1)), ("worker-del", worker(job_id=0, id=0)),
            ("limits-set", {"jobs": 9}))):
        try:
            g.do(op, request)
            return 10 + n
        except Refused as r:
            if r.errno != errno.EPERM:
                return 20 + n
    workers = g.dump("worker-get")[0]
    if not workers or not g.do("limits-get"):
        return 3
    if any("session" in w or "udp-port" in w for w in workers):
        return 4
    g.subscribe("config")
    return 0


child = os.fork()
if child == 0:
    os._exit(as_nobody())
Tap.same(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0,
         "without CAP_NET_ADMIN jobs are read without token, workers without session, and not changed")
with tempfile.TemporaryDirectory() as folder:
    # nobody may not be allowed to read the checkout
    os.chmod(folder, 0o755)
    for needed in family.__file__, family.spec_path():
        shutil.copy(needed, folder)
    user = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", "unshare", "-Urn", "python3", "-c",
                           "import family; f = family.Family(); f.do('job-new', {'name': 'u', "
                           "'elements': 1, 'workers': 1}); assert len(f.dump('job-get')[0]) == 1"],
                          cwd=folder, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, check=False)
Tap.same(user.returncode, 0, "root of a user namespace may configure a network namespace of its own")

# --- many -----------------------------------------------------------------------------------

for i in (0, 200):
    f.do("job-del", job(id=i))
Tap.same(f.dump("job-get")[0], [], "job-del deletes the job")
sh("ip link add sv0 type veth peer name sv1; ip link set sv0 up; ip link set sv1 up")
dev = ifindex("sv0")
for j in range(64):
    f.do("job-new", job(name=f"j{j}", elements=100000, workers=64))
    for w in range(64):
        f.do("worker-set", bind(w, dev, f"j{j}"))
times = []
for i in range(200):
    t = time.monotonic_ns()
    f.do("job-set", job(id=i % 64, policy={"mode": FASTEST, "k": 1 + i % 60}))
    times.append(time.monotonic_ns() - t)
times.sort()
Tap.note(f"job-set with 64 jobs of 64 workers: median {times[100] / 1000:.0f} us, "
         f"90 % {times[180] / 1000:.0f} us, of which most is this interpreter")
workers, torn = f.dump("worker-get")
Tap.same((len(workers), torn, len({(w["job-id"], w["id"]) for w in workers})),
         (4096, False, 4096), "a dump of 64 jobs of 64 workers is complete")

# A dump is read slowly while the configuration changes: it must say so.
g = Family()
g.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
g.send(g.id, struct.pack("=BBH", Spec.cmd["worker-get"], 1, 0), REQUEST | 0x300)
seen, torn = 0, False
done = False
while not done:
    for kind, flags, seq, body in g.messages():
        torn = torn or bool(flags & 0x10)
        seen += kind == g.id
        done = done or kind == 3
    f.do("job-set", job(id=5, policy={"mode": FASTEST, "k": 1 + seen % 60}))
Tap.ok(torn, "a dump during which something changed is marked as interrupted")
g.close()
g = Family()
g.send(g.id, struct.pack("=BBH", Spec.cmd["worker-get"], 1, 0), REQUEST | 0x300)
g.close()
Tap.same(len(f.dump("worker-get")[0]), 4096, "after a socket was closed in the middle of its dump, the next dump is complete")
for j in range(64):
    f.do("job-del", job(id=j))
sh("ip link del sv0")
Tap.same([f.do("limits-get")[k] for k in ("memory-used", "backend")], [0, 1],
         "no job and no memory is in use at the end")

# --- limits ----------------------------------------------------------------------------------

config.close()
config = Family(5)
config.subscribe("config")
f.do("limits-set", {"jobs": 2, "memory-job": 1 << 30})
limits = {"jobs": 2, "memory-job": 1 << 30, "memory": 1 << 32, "jobs-used": 0,
                     "memory-used": 0, "backend": 1}
Tap.same(f.do("limits-get"), limits, "limits-set changes what it names")
Tap.same(config.note(), ("limits-ntf", limits), "limits-set is notified, with all limits as in the reply")
Tap.refused(lambda: f.do("limits-set", {"jobs": 0}), errno.ERANGE, "1..256", "jobs",
            "limits-set, no jobs at all: is refused")
f.do("job-new", job(name="x", elements=1, workers=1))
f.do("job-new", job(name="y", elements=1, workers=1))
Tap.refused(lambda: f.do("job-new", job(name="z", elements=1, workers=1)), errno.EDQUOT, "the limit", None,
            "job-new, above the limit of jobs: is refused")
f.do("job-del", job(name="x"))
f.do("job-del", job(name="y"))
f.do("limits-set", {"jobs": 256})
names = []
while not names or names[-1] != "limits-ntf":
    names.append(config.note()[0])
Tap.same(names, ["job-ntf", "job-ntf", "job-del-ntf", "job-del-ntf", "limits-ntf"],
         "requests that were refused are not notified")


# --- a job that has the size of its first worker ------------------------------------

auto = f.do("job-new", job(name="auto", elements_auto=1, workers=2))
Tap.same((auto["elements"], auto["elements-auto"], auto["segments"], auto["memory"]), (0, 1, 0, 0),
         "job-new with elements-auto: a job without size and memory")
Tap.refused(lambda: f.do("worker-set", bind(0, 1, "auto")), errno.EINVAL, "must say how many elements", "elements",
            "worker-set, first worker of a job without size that does not say one: is refused")
Tap.refused(lambda: f.do("worker-set", bind(0, 1, "auto", elements=2**62)), errno.ERANGE, "do not fit", "elements",
            "worker-set, too large a size for a job without size: is refused")
f.do("worker-set", bind(0, 1, "auto", elements=1000))
sized = f.do("job-get", job(name="auto"))
Tap.same((sized["elements"], sized["segments"], sized["memory"] > 0), (1000, 3, True),
         "worker-set: the first worker gives the job its size")
Tap.refused(lambda: f.do("worker-set", bind(1, 1, "auto", elements=999)), errno.EMSGSIZE,
            "has 1000 elements, as its first worker said; worker 1 asks for 999", "elements",
            "worker-set, another size than the first worker's: is refused")
f.do("worker-set", worker(job_name="auto", id=0, state=4))
f.do("worker-set", bind(1, 1, "auto", elements=5000))
Tap.same(f.do("job-get", job(name="auto"))["segments"], 15, "worker-set: after all have left, the next first worker gives the size")
f.do("job-del", job(name="auto"))
while config.note()[0] != "job-del-ntf":
    pass


def limits_of_their_own():
    """In a new namespace; 0 if limits and their notifications are its own."""
    ctypes.CDLL(None).unshare(0x40000000)
    g = Family(5)
    g.subscribe("config")
    if g.do("limits-get")["jobs"] != 256:
        return 1
    g.do("limits-set", {"jobs": 77})
    return 0 if g.note() == ("limits-ntf", g.do("limits-get")) else 2


child = os.fork()
if child == 0:
    os._exit(limits_of_their_own())
Tap.same(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0, "another namespace has limits of its own")
Tap.same(f.do("limits-get")["jobs"], 256, "limits set in another namespace do not change this one's")
config.s.settimeout(0.2)
try:
    got = config.note()
except TimeoutError:
    got = None
Tap.same(got, None, "limits set in another namespace are not notified in this one")

# --- controllers ---------------------------------------------------------------------

CONTROLLER = 12
events.close()
events = Family(5)
events.subscribe("events")


def controllers_gone():
    """(job, k) of the controllers that were gone until now; the event of a new job ends the list."""
    f.do("job-new", job(name="mark", elements=1, workers=1))
    f.do("job-del", job(name="mark"))
    gone = []
    while True:
        e = events.note()[1]
        if (e.get("job-name"), e["type"], e["b"]) == ("mark", 6, 1):
            return gone
        if e["type"] == CONTROLLER:
            gone.append((e["job-name"], e["a"]))


def controller_of(name, **more):
    c = Family()
    c.do("job-set", job(name=name, controller=1, **more))
    return c


def controlled(name):
    j = f.do("job-get", job(name=name))
    return j.get("controller", 0), j.get("k-set", 0)


f.do("job-new", job(name="ext", elements=1000, workers=4, policy={"mode": EXTERNAL, "k": 4}))
c = controller_of("ext", k_set=3)
Tap.same(controlled("ext"), (1, 3), "job-set with controller: the job has a controller")
other = Family()
other.do("job-set", job(name="ext", k_set=2))
other.close()
Tap.same((controllers_gone(), controlled("ext")), ([], (1, 2)),
         "a socket that set k and is not the controller is closed: no event, the job has its controller")
c.close()
Tap.same((controllers_gone(), controlled("ext")), ([("ext", 2)], (0, 2)),
         "the controller's socket is closed: an event says so, k stays")
child = os.fork()
if child == 0:
    controller_of("ext", k_set=1)
    os.kill(os.getpid(), 9)
os.waitpid(child, 0)
Tap.same((controllers_gone(), controlled("ext")), ([("ext", 1)], (0, 1)),
         "the controller is killed: an event says so, k stays")
c = controller_of("ext")
c.do("job-set", job(name="ext", controller=0))
c.close()
Tap.same((controllers_gone(), controlled("ext")), ([], (0, 1)),
         "a controller that has ended its control closes its socket: no event")
first, second = controller_of("ext"), controller_of("ext")
first.close()
Tap.same((controllers_gone(), controlled("ext")), ([], (1, 1)),
         "a controller is replaced by another, then closed: no event")
second.close()
Tap.same((controllers_gone(), controlled("ext")), ([("ext", 1)], (0, 1)),
         "a controller that replaced another is closed: an event says so")
c, stale = controller_of("ext"), controller_of("ext")
Tap.refused(lambda: c.do("job-set", job(name="none", controller=1)), errno.ENOENT, "no job", "name",
            "job-set with controller: is refused for a job that does not exist")
number = f.do("job-get", job(name="ext"))["id"]
f.do("job-del", job(name="ext"))
f.do("job-new", job(id=number, name="next", elements=1000, workers=4, policy={"mode": EXTERNAL, "k": 4}))
heir = controller_of("next")
c.close()
Tap.same((controllers_gone(), controlled("next")), ([], (1, 0)),
         "the controller of a deleted job is closed: no event for the next job of that number")
heir.close()
Tap.same((controllers_gone(), controlled("next")), ([("next", 0)], (0, 0)),
         "the next job of that number loses its controller while one of the deleted job lives: an event says so")
stale.close()
Tap.same((controllers_gone(), controlled("next")), ([], (0, 0)),
         "a controller of the deleted job is closed last: no event for the next job of that number")
two = f.do("job-new", job(name="two", elements=1000, workers=4, policy={"mode": EXTERNAL, "k": 4}))["id"]
c = controller_of("next")
c.do("job-set", job(id=two, controller=1, k_set=2))
c.close()
Tap.same(sorted(controllers_gone()), [("next", 0), ("two", 2)],
         "a controller of two jobs is closed: an event for each")
for name in ("next", "two"):
    f.do("job-del", job(name=name))


def controller_elsewhere():
    """In a new namespace, which ends with the socket of a controller; 0 if its jobs are its own."""
    ctypes.CDLL(None).unshare(0x40000000)
    g = Family()
    g.do("job-new", job(name="there", elements=1000, workers=4, policy={"mode": EXTERNAL, "k": 4}))
    g.do("job-set", job(name="there", controller=1, k_set=3))
    return 0 if g.do("job-get", job(name="there"))["controller"] == 1 else 1


child = os.fork()
if child == 0:
    os._exit(controller_elsewhere())
Tap.same((os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), controllers_gone()), (0, []),
         "a namespace goes with its controller: no event in this one")
Tap.same([j["name"] for j in f.dump("job-get")[0]], [], "no job is left by the tests of controllers")

# --- jobs of several hosts ----------------------------------------------------------

tree = {"address": 0x0a000007, "port": 48865, "job": "root", "worker": 5, "token-file": "/etc/saina/token"}
made = f.do("job-new", job(name="leaf", elements=1000, workers=3, uplink=tree))
Tap.same(made["uplink"], tree, "a job has the uplink that it was given")
f.do("job-set", job(name="leaf", uplink={**tree, "worker": 6}))
Tap.same(f.do("job-get", job(name="leaf"))["uplink"]["worker"], 6, "the uplink of a job without workers changes")
weights = struct.pack("=64H", 8, 8, 1, *[0] * 61)
Tap.same(f.do("job-new", job(name="root", elements=1000, workers=3, weights=weights))["weights"], weights.hex(":"),
         "a job has the weights that it was given")
Tap.refused(lambda: f.do("job-set", job(name="root", uplink=tree)), errno.EINVAL, "cannot get one", "uplink",
            "a job gets no uplink later")
for name in ("leaf", "root"):
    f.do("job-del", job(name=name))
Tap.done()
