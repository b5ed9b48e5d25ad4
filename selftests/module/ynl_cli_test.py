#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's own YNL client drives saina.ko: every operation, notifications, refusals.

tools/net/ynl/cli.py of Debian's kernel sources ($SAINA_KERNEL_TOOLS), unmodified, with
Documentation/netlink/specs/saina.yaml, validated against the kernel's schema.  In the test
VM, as root; TAP.  cli.py runs in this process, so that the spec, which takes long to parse,
is parsed once.
"""
import contextlib
import copy
import io
import json
import os
import runpy
import socket
import subprocess
import sys
import time

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "kselftest"))
from family import Tap  # noqa: E402

TOP = os.path.join(HERE, "..", "..")
SPEC = os.path.join(TOP, "Documentation/netlink/specs/saina.yaml")
TOOLS = os.environ["SAINA_KERNEL_TOOLS"]
CLI = TOOLS + "/tools/net/ynl/cli.py"
SCHEMA = TOOLS + "/Documentation/netlink/genetlink.yaml"
read = {}


def load_once(stream):
    text = stream.read() if hasattr(stream, "read") else stream
    if text not in read:
        read[text] = yaml.load(text, Loader=yaml.CSafeLoader)
    return copy.deepcopy(read[text])


yaml.safe_load = load_once
sys.path.insert(0, os.path.dirname(CLI))


def cli(*args, schema=False):
    """(exit status, what it said)"""
    out = io.StringIO()
    status = 0
    check = ["--schema", SCHEMA] if schema else ["--no-schema"]
    sys.argv = [CLI, "--spec", SPEC, *check, "--output-json", *args]
    with contextlib.redirect_stdout(out):
        try:
            runpy.run_path(CLI, run_name="__main__")
        except SystemExit as e:
            status = e.code or 0
    return status, out.getvalue()


def said(*args, **more):
    """(exit status, what cli.py printed: the JSON values of its lines, or text that is no JSON)"""
    status, text = cli(*args, **more)
    try:
        return status, [json.loads(line) for line in text.splitlines()]
    except ValueError:
        return status, text


def do(op, attrs, **more):
    status, values = said("--do", op, "--json", json.dumps(attrs), **more)
    return values[0] if status == 0 and len(values) == 1 else (status, values)


def dump(op, attrs=None):
    status, values = said("--dump", op, "--json", json.dumps(attrs or {}))
    return values[0] if status == 0 and len(values) == 1 else (status, values)


def refused(what, args, *words):
    status, text = cli(*args)
    Tap.ok(status == 1 and all(w in text for w in words), f"{what} is refused, says cli.py",
           f"exit {status}: {text}\nwant {words}")


subprocess.run(["insmod", os.environ["SAINA_TEST_MODULE"]], check=True)
subprocess.run("ip link add sv0 type veth peer name sv1; ip link set sv0 up; ip link set sv1 up",
               shell=True, check=True)
dev = socket.if_nametoindex("sv0")

job = do("job-new", {"name": "a", "elements": 1000, "workers": 2,
                     "policy": {"mode": "fastest", "k": 1, "late": "drop"}}, schema=True)
Tap.ok(isinstance(job, dict) and job["name"] == "a" and job["state"] == "forming" and job["id"] == 0 and
       job["policy"]["mode"] == "fastest" and job["policy"]["late"] == "drop" and job["policy"]["k"] == 1,
       "the spec passes the kernel's schema, and job-new answers with the whole job", job)
Tap.same(do("job-set", {"name": "a", "policy": {"mode": "sfcd", "k": 2, "flags": ["parity"]}, "token": "t"}), None,
         "job-set is taken")
job = do("job-get", {"id": 0})
Tap.ok(isinstance(job, dict) and job["policy"]["mode"] == "sfcd" and job["policy"]["flags"] == ["parity"] and
       job["policy-seq"] == 2 and job["token"] == "t" and job["exponent"] == 20 and job["elem-type"] == "int32",
       "job-get shows what was set, by names of the spec", job)
for w in (0, 1):
    Tap.same(do("worker-set", {"job-name": "a", "id": w, "ifindex": dev, "ip": 0x0a000001 + w,
                               "mac": f"02000000000{w}", "udp-port": 5000 + w, "session": 1 << 40}), None,
             f"worker-set admits worker {w}")
worker = do("worker-get", {"job-id": 0, "id": 1})
Tap.ok(isinstance(worker, dict) and worker["state"] == "alive" and worker["ifname"] == "sv0" and
       worker["ip"] == "10.0.0.2" and worker["mac"] == "02:00:00:00:00:01", "worker-get shows the worker", worker)
Tap.same([w["id"] for w in dump("worker-get", {"job-name": "a"})], [0, 1], "worker-get dumps the workers of a job")
Tap.same(do("job-new", {"name": "b", "elements": 5, "workers": 1})["id"], 1, "another job gets the next number")
Tap.same([(j["id"], j["state"]) for j in dump("job-get")], [(0, "running"), (1, "forming")], "job-get dumps all jobs")
limits = do("limits-get", {})
Tap.ok(isinstance(limits, dict) and limits["backend"] == "kernel" and limits["jobs-used"] == 2,
       "limits-get shows the limits", limits)
Tap.same(do("limits-set", {"jobs": 9}), None, "limits-set is taken")

def notified(group, op, attrs):
    """What --subscribe shows of an operation: [(name, attributes)].  cli.py sleeps after it
    has subscribed; here its sleep ends when the operation is done."""
    ready, do_it, out, back = *os.pipe(), *os.pipe()
    go, done = os.pipe()
    pid = os.fork()
    if pid == 0:
        def sleep(_):
            os.write(do_it, b"x")
            os.read(go, 1)

        time.sleep = sleep
        status, values = said("--subscribe", group, "--sleep", "1")
        os.write(back, json.dumps(values).encode())
        os._exit(status)
    os.close(do_it)
    os.close(back)
    os.read(ready, 1)
    do(op, attrs)
    os.write(done, b"x")
    with os.fdopen(out) as f:
        values = json.loads(f.read() or "[]")
    os.waitpid(pid, 0)
    for fd in (ready, go, done):
        os.close(fd)
    return [(n["name"], n["msg"]) for n in values[0]] if len(values) == 1 else values


notes = notified("config", "job-set", {"id": 1, "policy": {"mode": "bsp"}, "dead-ms": 5000})
Tap.ok([(n, m["dead-ms"]) for n, m in notes] == [("job-ntf", 5000)], "--subscribe config: job-ntf after a change", notes)
notes = notified("events", "worker-set", {"job-id": 0, "id": 1, "state": "dead"})
Tap.ok([(n, m["type"], m["worker"]) for n, m in notes] == [("event", "worker-dead", 1)],
       "--subscribe events: the death of a worker", notes)
notes = notified("config", "worker-del", {"job-id": 0, "id": 1})
Tap.ok("worker-del-ntf" in [n for n, _ in notes], "--subscribe config: worker-del-ntf", notes)
notes = notified("config", "worker-set", {"job-id": 0, "id": 1, "ifindex": dev, "ip": 0x0a000002,
                                      "mac": "020000000001", "udp-port": 5001, "session": 1 << 40})
Tap.ok("worker-ntf" in [n for n, _ in notes], "--subscribe config: worker-ntf", notes)
do("job-new", {"name": "gone", "elements": 5, "workers": 1})
notes = notified("config", "job-del", {"name": "gone"})
Tap.ok("job-del-ntf" in [n for n, _ in notes], "--subscribe config: job-del-ntf", notes)
notes = notified("config", "limits-set", {"jobs": 8})
Tap.ok([(n, m["jobs"]) for n, m in notes] == [("limits-ntf", 8)], "--subscribe config: limits-ntf", notes)


def asks(op, attrs):
    return ["--do", op, "--json", json.dumps(attrs)]


refused("a job with 65 workers", asks("job-new", {"name": "c", "elements": 1, "workers": 65}),
        "Numerical result out of range", "'msg': 'workers: 65: must be 1..64'", "'bad-attr': '.workers'")
refused("a job without a name", asks("job-new", {"elements": 1, "workers": 1}),
        "Invalid argument", "'msg': 'name: a job needs one'", "'miss-type': 'name'")
refused("k above the workers", asks("job-set", {"name": "b", "policy": {"mode": "fastest", "k": 2}}),
        "must be 1..1, the workers of the job", "'bad-attr': '.policy'")
refused("subscribe", asks("subscribe", {"groups": ["config"]}), "join the multicast groups")
refused("a job that is not there", asks("job-del", {"name": "z"}),
        "No such file or directory", "there is no job 'z'", "'bad-attr': '.name'")
refused("a name that is too long", asks("job-get", {"name": "n" * 40}), "Invalid argument", "'bad-attr': '.name'")
refused("a port", asks("port-set", {"ifname": "sv0", "loss-in": 1}), "Operation not supported", "ask sainad")
for op in ("port-get", "slot-get", "stats-get"):
    refused(f"{op}", ["--dump", op], "Operation not supported", "ask sainad")

Tap.same(do("worker-del", {"job-id": 0, "id": 0}), None, "worker-del is taken")
Tap.same([do("job-del", {"name": n}) for n in "ab"], [None, None], "job-del is taken")
Tap.same(dump("job-get"), [], "no job is left")
Tap.same(subprocess.run(["rmmod", "saina"], check=False).returncode, 0, "nothing holds saina.ko")
Tap.done()
