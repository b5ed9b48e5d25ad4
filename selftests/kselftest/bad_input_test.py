#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Bad input to saina.ko.  The attributes that each command takes are read from the spec and
compared with those that the kernel names (CTRL_CMD_GETPOLICY), so that none can be
forgotten.  Each one is tried missing, of a wrong length, nested wrongly, twice and out of
range; every other attribute must be refused.  Then races between processes, namespaces and
interfaces.  In the test VM, with the module loaded and no jobs; as root."""
import ctypes
import errno
import os
import signal
import socket
import struct
import subprocess
import time

from family import ACK, DUMP, GENL_ID_CTRL, NESTED, REQUEST, Family, Refused, Spec, Tap, attr, walk

f = Family()
MAX = 0x3fff
WIDTH = {"u8": 1, "u16": 2, "u32": 4, "s32": 4, "u64": 8}


def sh(command):
    subprocess.run(command, shell=True, check=True)


def kernel_policies():
    """{command: names of the attributes that it takes without NLM_F_DUMP}"""
    tables, ops = {}, {}
    request = struct.pack("=BBH", 10, 1, 0) + attr(1, struct.pack("=H", f.id))
    for _, body in f.raw(GENL_ID_CTRL, request, DUMP):
        for n, v, _ in walk(body[4:]):
            for m, w, _ in walk(v) if n & MAX in (8, 9) else ():
                if n & MAX == 8:
                    for a, _, _ in walk(w):
                        tables.setdefault(m & MAX, set()).add(a & MAX)
                else:
                    for k, y, _ in walk(w):
                        if k & MAX == 1:
                            ops[Spec.op[m & MAX]] = struct.unpack("=I", y)[0]
    return {op: {Spec.by_number[Spec.set_of(op)][n]["name"] for n in tables.get(table, ())}
            for op, table in ops.items()}


def groups(*of):
    """The attribute "group": the group of each worker; 255, no group, for all workers behind those."""
    return bytes([*of] + [255] * (64 - len(of)))


def weights(*of):
    """The attribute "weights" of a job."""
    return struct.pack("=64H", *of, *[0] * (64 - len(of)))


# Nests that are well formed, by attribute set.
NEST = {"policy": {"mode": 2, "k": 2}, "uplink": {"address": 0x0a000007, "job": "root", "worker": 1}}
# A request that is taken, with everything in it that the command can take.
GOOD = {
    "job-new": {"id": 50, "name": "n", "elements": 1000, "workers": 3, "payload": 64, "pool": 4, "ring": 4,
                "elem-type": 1, "exponent": 5, "policy": {"mode": 2, "k": 2}, "token": "t", "heartbeat-ms": 100,
                "dead-ms": 1000, "by-reference": 1},
    "job-set": {"id": 0, "name": "a", "policy": {"mode": 1}, "token": "t", "heartbeat-ms": 100, "dead-ms": 1000,
                "state": 3},
    "job-del": {"id": 1, "name": "b"},
    "job-get": {"id": 0, "name": "a"},
    "worker-set": {"job-id": 0, "job-name": "a", "id": 1, "name": "w", "state": 1, "ifindex": 1, "ip": 0x7f000001,
                   "mac": b"\2\0\0\0\0\1", "udp-port": 9, "session": 9, "relay": 0, "round": 0},
    "worker-del": {"job-id": 0, "job-name": "a", "id": 0},
    "worker-get": {"job-id": 0, "job-name": "a", "id": 0},
    "limits-set": {"jobs": 256, "memory-job": 1 << 30, "memory": 1 << 32},
}
# Attributes that a request must have; of two that name the same thing, both are left out at once.
NEEDED = {
    "job-new": [["name"], ["elements"], ["workers"]],
    "job-set": [["id", "name"]],
    "job-del": [["id", "name"]],
    "job-get": [["id", "name"]],
    "worker-set": [["job-id", "job-name"], ["id"], ["ifindex"], ["ip"], ["mac"], ["udp-port"], ["session"]],
    "worker-del": [["job-id", "job-name"], ["id"]],
    "worker-get": [["job-id", "job-name"], ["id"]],
    "limits-set": [],
}
# Values that no request may have, of every number and every fixed-width field.
BAD = {
    "job.id": [256, 65535], "job.elements": [0, 1 << 40, (1 << 64) - 1], "job.workers": [0, 65, 255],
    "job.payload": [0, 1, 63, 257, 65535], "job.pool": [0, 3, 8192, (1 << 32) - 1],
    "job.ring": [0, 1, 3, 128, (1 << 32) - 1], "job.exponent": [-1 << 31, -128, -105, 150, (1 << 31) - 1],
    "job.heartbeat-ms": [0, 9, 60001, 65535], "job.dead-ms": [0, 1, 100],
    "job.policy": [{}, {"k": 1}, {"mode": 1, "k": 1}, {"mode": 2}, {"mode": 2, "k": 0}, {"mode": 2, "k": 4},
                   {"mode": 2, "k": 1, "stride": 2}, {"mode": 3, "s-th": 1001}, {"mode": 3, "stride": 3},
                   {"mode": 3, "k": 1, "k-min": 2}, {"mode": 3, "k": 3, "k-max": 2}, {"mode": 3, "flags": 1, "stride": 64},
                   {"mode": 3, "k": 4}, {"mode": 3, "k-min": 4},
                   {"mode": 2, "k": 2, "k-min": 1}, {"mode": 2, "k": 1, "k-min": 2, "timeout-us": 10000},
                   *({"mode": 2, "k": 1, "timeout-us": t} for t in (1, 999, 60000001, (1 << 32) - 1)),
                   {"mode": 4}, {"mode": 4, "k-min": 1}, {"mode": 4, "timeout-us": 10000, "k-min": 4},
                   *({"mode": 4, "k-min": 1, "timeout-us": t} for t in (0, 1, 999, 60000001, (1 << 32) - 1)),
                   {"mode": 5}, {"mode": 5, "k": 0}, {"mode": 5, "k": 4}, {"mode": 5, "k": 1, "timeout-us": 10000},
                   {"mode": 6}, {"mode": 6, "spread": 0}, {"mode": 6, "spread": 1}, {"mode": 6, "spread": 8},
                   {"mode": 6, "spread": 2, "k": 1}, {"mode": 1, "lead": 2}, {"mode": 2, "k": 2, "lead": 63},
                   {"mode": 7}, {"mode": 7, "window": 65536}, {"mode": 8, "window": 5}, {"mode": 2, "k": 2, "window": 3},
                   {"mode": 9}, {"mode": 9, "groups": 0}, {"mode": 9, "groups": 4}, {"mode": 9, "groups": 255},
                   {"mode": 9, "groups": 2, "k": 1}, {"mode": 9, "groups": 2, "window": 3}, {"mode": 8, "groups": 2},
                   {"mode": 9, "group": groups(0, 0, 0)}, {"mode": 8, "group": groups(0, 0, 0)},
                   *({"mode": 9, "groups": 2, "group": groups(*g)} for g in
                     ((), (0, 1), (0, 0, 0), (0, 1, 2), (0, 1, 0, 0), (0, 1, 254), (0, 1, 64)))],
    "job.name": ["", "12", "a b", "a/b", "%s", "a:"],
    "job.policy-from": [(1 << 32) - 1], "job.policy-on": [0, 1, 1 << 31], "job.policy-cancel": [1],
    "job.k-set": [0, 3, 255], "job.elements-auto": [2, 255],
    "job.weights": [weights(), weights(1, 1), weights(1, 0, 1), weights(1, 1, 1, 1), weights(65535, 1, 1)],
    "job.uplink": [{}, *({k: v for k, v in NEST["uplink"].items() if k != n} for n in NEST["uplink"]),
                   *({**NEST["uplink"], "address": ip} for ip in (0, 1, 0x7f000001, 0xe0000001, 0xffffffff)),
                   *({**NEST["uplink"], "worker": w} for w in (64, 255)), {**NEST["uplink"], "job": ""},
                   {**NEST["uplink"], "token-file": "token"}, {**NEST["uplink"], "rank": 1}, {**NEST["uplink"], "text": "x"}],
    "worker.job-id": [256, 65535], "worker.id": [3, 64, 255], "worker.state": [0],
    "worker.ifindex": [0, 1 << 31, (1 << 32) - 1], "worker.ip": [0],
    "worker.mac": [bytes(6), b"\1\0\0\0\0\1", b"\xff" * 6], "worker.udp-port": [0], "worker.session": [0],
    "worker.relay": [2, 255], "worker.round": [(1 << 32) - 1], "worker.job-name": ["", "zz"],
    "limits.jobs": [0, 257, (1 << 32) - 1], "limits.memory-job": [0], "limits.memory": [0, 1],
}
# Nor may a request have a value for which an enumeration of the spec has no entry.
for space, of_space in Spec.sets.items():
    for a in of_space:
        if values := Spec.values(a):
            BAD.setdefault(f"{space}.{a['name']}", []).extend({*range(256)} - values)
# Attributes of which every value is valid.
ANY = {"job.token", "job.controller", "worker.name", "worker.late", "worker.elements"}
# Attributes that GOOD leaves out, because they are valid only in other requests.
APART = {"job.policy-from", "job.policy-on", "job.policy-cancel", "job.k-set", "job.elements-auto", "job.weights", "job.uplink",
         "worker.elements"}
# Two ways to name a job.
RIVAL = {"job.id": "name", "job.name": "id", "worker.job-id": "job-name", "worker.job-name": "job-id"}
# job-set refuses these whatever their values are.
FIXED = {"elements", "workers", "payload", "pool", "ring", "elem-type", "exponent"}


def lengths(a):
    """(what, payload): contents of a wrong length or form for this attribute."""
    if a["type"] in WIDTH:
        w = WIDTH[a["type"]]
        return [(f"{n} bytes", bytes(n)) for n in sorted({0, w - 1, w + 1, 2 * w, 255} - {w})]
    if a["type"] == "binary":
        n = a["checks"]["exact-len"]
        return [(f"{m} bytes", bytes([2] * m)) for m in (0, n - 1, n + 1, 200)]
    if a["type"] == "nest":
        inner = Spec.encode(NEST[a["nested-attributes"]], a["nested-attributes"])
        return [("an attribute longer than the nest", inner + struct.pack("=HH", 200, 3)),
                ("an attribute of length 0", inner + struct.pack("=HH", 0, 3)), ("a piece of a header", inner + b"\1\2\3")]
    most = a["checks"]["max-len"]
    return [("no bytes", b""), ("no zero at the end", b"x" * 3), (f"{most + 1} characters", b"x" * (most + 1) + b"\0"),
            ("4000 characters", b"x" * 4000 + b"\0"),
            *((f"character {c:#x}", b"x" + bytes([c]) + b"\0") for c in (1, 7, 9, 10, 0x1b, 0x7f, 0x80, 0xe4, 0xff))]


def nested(a):
    """(what, name, payload, content): the attributes in a nest, each malformed.  @content: what is wrong is in the text, so
    the nest is named."""
    space = a["nested-attributes"]
    for b in Spec.sets[space]:
        rest = Spec.encode({k: v for k, v in NEST[space].items() if k != b["name"]}, space)
        for what, payload in lengths(b) if b["type"] != "pad" else ():
            yield f"{b['name']}: {what}", b["name"], rest + attr(Spec.number[space][b["name"]], payload), what.startswith("character")


def encode(space, values, extra=b""):
    return Spec.encode(values, space) + extra


def raw(space, name, payload):
    """One attribute with this content, marked as a nest if it is one."""
    a = Spec.by_number[space][Spec.number[space][name]]
    return attr(Spec.number[space][name] | (NESTED if a["type"] == "nest" else 0), payload)


class Tally:
    """One TAP point for many refusals: which of them went wrong?"""

    def __init__(self, name):
        self.name, self.n, self.wrong = name, 0, []

    def refused(self, what, op, how, body, guilty, errnos=(errno.EINVAL, errno.ERANGE), orelse=""):
        self.n += 1
        try:
            got = f.request(op, body, DUMP if how == "dump" else ACK)
        except Refused as r:
            if r.errno not in errnos or (r.guilty or r.missing) not in (guilty, orelse) or not r.text:
                self.wrong.append(f"{what}: {r}")
            return
        self.wrong.append(f"{what}: was taken: {got}")

    def end(self):
        Tap.ok(self.n and not self.wrong, f"{self.name} ({self.n})", "\n".join(self.wrong[:20]))


def prepare():
    """Job a (0) with worker 0, job b (1)."""
    for j in f.dump("job-get")[0]:
        f.do("job-del", {"id": j["id"]})
    f.do("job-new", {"name": "a", "elements": 1000, "workers": 3})
    f.do("job-new", {"name": "b", "elements": 1000, "workers": 3})
    f.do("worker-set", {"job-id": 0, "id": 0, "ifindex": 1, "ip": 1, "mac": b"\2\0\0\0\0\0", "udp-port": 1,
                        "session": 1})


def state():
    return f.dump("job-get")[0], f.dump("worker-get")[0], f.do("limits-get")


AGENTS = {"port-get", "port-set", "slot-get", "stats-get", "subscribe"}
served = [(op, how) for op in Spec.ops for how in ("do", "dump") if Spec.takes(op, how) and op not in AGENTS]
Tap.same(sorted({op for op, _ in served}), sorted(GOOD), "all commands that take something are tested here")
policies = kernel_policies()
for op, how in served:
    if how == "do":
        Tap.same(policies[op], set(Spec.takes(op, how)), f"{op}: the kernel says that it takes what the spec says")

for op, how in served:
    nest, names = Spec.set_of(op), set(Spec.takes(op, how))
    attrs = {a["name"]: a for a in Spec.sets[nest]}
    fixed = FIXED if op == "job-set" else set()
    good = {k: v for k, v in GOOD[op].items() if how == "do"}
    at = f"{op}, {how}"
    if how == "do":
        free = {n for n in names if f"{nest}.{n}" in ANY | APART}
        Tap.same(set(GOOD[op]) | fixed | free, names, f"{at}: the test has each attribute that the kernel takes")
    prepare()
    before = state()

    t = Tally(f"{at}: each attribute of a wrong length or form is refused")
    for n in sorted(names):
        rest = {k: v for k, v in good.items() if k != n}
        for what, payload in lengths(attrs[n]):
            # A malformed nest is not named as the guilty attribute.  A name that cannot be
            # printed is no malformed one: no job has it, hence ENOENT.
            also = (errno.ENOENT,) if what.startswith("character") else ()
            t.refused(f"{n}: {what}", op, how, encode(nest, rest, raw(nest, n, payload)), n,
                      (errno.EINVAL, errno.ERANGE, *also), orelse=None if attrs[n]["type"] == "nest" else "")
        for what, inner, payload, content in nested(attrs[n]) if attrs[n]["type"] == "nest" else ():
            t.refused(f"{n}: {what}", op, how, encode(nest, rest, raw(nest, n, payload)), n if content else f"{n}.{inner}")
    t.end()

    t = Tally(f"{at}: each attribute nested wrongly or given twice is refused")
    for n in sorted(names):
        number = Spec.number[nest][n]
        default = {"weights": weights(1, 1, 1), "uplink": NEST["uplink"]}.get(n, 1)
        value = Spec.encode({n: GOOD[op].get(n, default)}, nest)
        length = struct.unpack("=H", value[:2])[0] - 4
        value = value[4:4 + length]
        rest = {k: v for k, v in good.items() if k != n}
        wrong = 0 if attrs[n]["type"] == "nest" else NESTED
        t.refused(f"{n}: marked as what it is not", op, how, encode(nest, rest, attr(number | wrong, value)), n)
        if wrong:
            t.refused(f"{n}: a nest of itself", op, how, encode(nest, rest, attr(number | NESTED, attr(number, value))),
                      n)
        t.refused(f"{n}: with another number", op, how, attr(number + 100, value), str(number + 100))
        t.refused(f"{n}: twice", op, how, encode(nest, rest, raw(nest, n, value) * 2), n)
    t.end()

    t = Tally(f"{at}: each attribute that it does not take, or that is unknown, is refused")
    for number in [*range(len(attrs) + 3), 100, 1000, MAX]:
        a = Spec.by_number[nest].get(number)
        if a and a["name"] in names:
            continue
        for length in (0, 1, 2, 4, 8, 60):
            t.refused(f"{a['name'] if a else number}", op, how, encode(nest, good, attr(number, bytes(length))),
                      a["name"] if a else str(number))
    t.end()

    t = Tally(f"{at}: a malformed message is refused")
    whole = Spec.encode(good, nest)
    for what, inner in (("longer than the message", struct.pack("=HH", 200, 1)),
                        ("shorter than its header", struct.pack("=HH", 2, 1)),
                        ("a piece of a header", b"\1\2\3"), ("length 0", struct.pack("=HH", 0, 1))):
        t.refused(f"an attribute {what}", op, how, whole + inner, None)
    t.end()

    t = Tally(f"{at}: each value out of range is refused")
    unknown = [n for n in names if f"{nest}.{n}" not in BAD and f"{nest}.{n}" not in ANY]
    Tap.same(unknown, [], f"{at}: the test knows a value out of range for each attribute")
    for n in sorted(names):
        values = [1] if n in fixed else BAD.get(f"{nest}.{n}", [])
        for v in values:
            request = {**good, n: v}
            if n == "heartbeat-ms":
                request["dead-ms"] = 65535
            # a job that is named in two ways, wrongly in one, could be refused for either
            if op != "job-new":
                request.pop(RIVAL.get(f"{nest}.{n}"), None)
            t.refused(f"{n} = {v!r}", op, how, encode(nest, request), n,
                      (errno.EINVAL, errno.ERANGE, errno.ENOENT, errno.ENODEV, errno.EEXIST))
    if t.n:
        t.end()

    if how == "do":
        t = Tally(f"{at}: a request without a needed attribute is refused")
        for which in NEEDED[op]:
            t.refused(f"without {which}", op, how, encode(nest, {k: v for k, v in good.items() if k not in which}),
                      which[-1])
        if NEEDED[op]:
            t.refused("nothing at all", op, how, b"", NEEDED[op][0][-1])
            t.end()
    Tap.same(state(), before, f"{at}: refused requests have changed nothing")

    # Had the good request been bad in itself, all of the above would show nothing.
    if how == "do":
        missing = set()
        needed = {n for which in NEEDED[op] for n in which}
        for leave in [None, *sorted(set(good) - needed)]:
            prepare()
            try:
                f.do(op, {k: v for k, v in good.items() if k != leave})
            except Refused as r:
                missing.add(f"{leave}: {r}")
        Tap.same(missing, set(), f"{at}: the good request is accepted, also without what is not needed")

for op in Spec.ops:
    for how in ("do", "dump"):
        if Spec.takes(op, how) == [] and op not in AGENTS:
            t = Tally(f"{op}, {how}: takes nothing")
            for number, a in Spec.by_number[Spec.set_of(op)].items():
                t.refused(f"{a['name']}", op, how, attr(number, bytes(4)), a["name"])
            t.end()

prepare()
f.do("limits-set", {"jobs": 256, "memory-job": 1 << 30, "memory": 1 << 32})

# --- processes, namespaces, interfaces -------------------------------------------------


def children(functions):
    """Runs each function in a process of its own, all at once; returns their exit statuses."""
    pids = []
    for function in functions:
        pid = os.fork()
        if pid == 0:
            status = 99
            try:
                status = function() or 0
            finally:
                os._exit(status)
        pids.append(pid)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def attempt(op, request):
    """0, or the errno of the refusal."""
    try:
        Family().do(op, request)
        return 0
    except Refused as r:
        return r.errno


won, unexpected = [], []
for i in range(10):
    got = children([lambda: attempt("job-new", {"name": "race", "elements": 9, "workers": 1})] * 4)
    won.append(got.count(0))
    unexpected += [e for e in got if e not in (0, errno.EEXIST)]
    got = children([lambda: attempt("job-del", {"name": "race"})] * 4)
    won.append(got.count(0))
    unexpected += [e for e in got if e not in (0, errno.ENOENT)]
Tap.same((won, unexpected), ([1] * 20, []), "of four writers at once, one makes a job and one deletes it")

for i in range(100):
    g = Family()
    g.send(g.id, struct.pack("=BBH", Spec.cmd["worker-get"], 1, 0), REQUEST | DUMP)
    if i % 2:
        g.s.recv(1 << 16)
    g.close()
Tap.same(len(f.dump("worker-get")[0]), 1, "100 sockets closed in the middle of their dump do no harm")


def enter(name):
    fd = os.open(f"/run/netns/{name}", os.O_RDONLY)
    ctypes.CDLL(None).setns(fd, 0x40000000)
    os.close(fd)


def traffic_in(name, ready):
    """Adds and deletes jobs in a namespace until it is killed; writes to @ready once jobs are there."""
    enter(name)
    g = Family()
    for i in range(1 << 30):
        j = f"j{i % 50}"
        g.do("job-new", {"name": j, "elements": 9, "workers": 8})
        g.do("worker-set", {"job-name": j, "id": 1, "ifindex": 1, "ip": 1, "mac": b"\2\0\0\0\0\0",
                                       "udp-port": 1, "session": 1})
        if i == 20:
            os.write(ready, b"x")
        if i >= 40:
            g.do("job-del", {"name": f"j{(i - 40) % 50}"})


started = []
for i in range(5):
    ns = f"saina-bad-{os.getpid()}-{i}"
    sh(f"ip netns add {ns}")
    out, ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(out)
        try:
            traffic_in(ns, ready)
        finally:
            os._exit(1)
    os.close(ready)
    started.append(os.read(out, 1))
    os.close(out)
    sh(f"ip netns del {ns}")		# its name; the process still holds it
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)			# no process holds it any more: it goes with its jobs
Tap.same((started, len(f.dump("job-get")[0])), ([b"x"] * 5, 2),
         "namespaces are deleted in the middle of their configuration")


def veth():
    sh("ip link add sb0 type veth peer name sb1; ip link set sb0 up")
    return socket.if_nametoindex("sb0")


def binding(w, dev, j=0):
    return {"job-id": j, "id": w, "ifindex": dev, "ip": 10 + w, "mac": bytes([2, 0, 0, 0, 0, w]),
                       "udp-port": 7, "session": 7}


dev = veth()
ns = f"saina-bad-{os.getpid()}"
sh(f"ip netns add {ns}")
f.do("worker-set", binding(1, dev))
sh(f"ip link set sb0 netns {ns}")
Tap.same(f.do("worker-get", {"job-id": 0, "id": 1})["state"], 1,
         "a worker whose interface moves to another namespace is alive: only silence ends it")
Tap.refused(lambda: f.do("worker-set", binding(1, dev)), errno.ENODEV, "no interface", "ifindex",
            "a worker cannot be bound to an interface of another namespace")
sh(f"ip netns del {ns}")


def bind_for_ever():
    g = Family()
    while True:
        try:
            request = binding(2, socket.if_nametoindex("sb0"))
        except OSError:		# there is no interface at present: the binding stays
            time.sleep(0.001)
            continue
        for op in ("worker-del", "worker-set"):
            try:
                g.do(op, request if op == "worker-set" else {"job-id": 0, "id": 2})
            except Refused:
                pass


# sb1 may have lived on for a moment, its peer gone with the namespace
sh("for i in $(seq 200); do ip link show sb1 >/dev/null 2>&1 || break; sleep 0.05; done")
pid = os.fork()
if pid == 0:
    bind_for_ever()
# The interface may go between its look-up or worker-del and worker-set: more tries, then.
met = tries = 0
while tries < 6 or (not met and tries < 100):
    tries += 1
    veth()
    sh("ip link show sb0 >/dev/null; ip link del sb0")
    met += any(w["id"] == 2 for w in f.dump("worker-get")[0])
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
Tap.ok(met, "some workers were bound when their interface was deleted", f"{met} of {tries}")

for j in (0, 1):
    f.do("job-del", {"id": j})
Tap.same(f.do("limits-get")["memory-used"], 0, "nothing is left in use")
Tap.done()
