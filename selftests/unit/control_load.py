#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Load on the agent's control socket, for sainad_test.sh.

    control_load.py dump|readers|subscriber|links PID

PID is the agent, $SAINA_CONTROL its socket.  Exits 0 or prints what failed.  The agent is stopped
while clients send, so that it finds all requests at once, in their order."""
import os
import resource
import signal
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../kselftest"))
from family import ACK, Agent, DUMP, DUMP_INTR, NLMSG_DONE, REQUEST, Spec  # noqa: E402

JOBS, WORKERS = 20, 64
pid = int(sys.argv[2])


def connect():
    client = Agent(os.environ["SAINA_CONTROL"], None)	# waits while the agent's backlog is full
    client.s.settimeout(60)
    client.do("limits-get")	# answered, so the agent has accepted the connection
    return client


def send_request(client, op, values=None, flags=DUMP):
    head = struct.pack("=BBH", Spec.cmd[op], 1, 0)
    client.send(client.id, head + Spec.encode(values or {}, Spec.set_of(op)), REQUEST | flags)


def read_dump(client):
    """The objects of a dump, and whether a change interrupted it."""
    parts, torn = [], False
    while True:
        for kind, flags, seq, body in client.messages():
            torn |= bool(flags & DUMP_INTR)
            if kind == NLMSG_DONE:
                assert struct.unpack_from("=i", body)[0] == 0, "the dump was refused"
                return parts, torn
            parts.append(Spec.message(body))


def while_stopped(work):
    os.kill(pid, signal.SIGSTOP)
    try:
        work()
    finally:
        os.kill(pid, signal.SIGCONT)


def agent_memory():
    """MiB of the agent."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:")) / 1024


def with_jobs(check):
    root = connect()
    for i in range(JOBS):
        root.do("job-new", {"name": f"load{i}", "elements": 100, "workers": WORKERS})
    try:
        return check(root)
    finally:
        for i in range(JOBS):
            root.do("job-del", {"name": f"load{i}"})


def dump(root):
    """A change requested after a long dump is served before the dump ends."""
    reader = connect()

    def requests():
        send_request(reader, "worker-get")
        send_request(root, "job-set", {"name": f"load{JOBS - 1}", "heartbeat-ms": 500}, ACK)

    while_stopped(requests)
    torn = read_dump(reader)[1]
    root.s.recv(1 << 18)
    return None if torn else "the dump was made in one go"


def readers(root):
    """Dumps that are not read take no memory, and continue when they are read."""
    before = agent_memory()
    clients = [connect() for _ in range(200)]
    for c in clients:
        send_request(c, "stats-get")
    root.dump("job-get")	# every client has had a turn
    root.dump("job-get")
    grown = agent_memory() - before
    if grown > 48:	# it would be 85 if all dumps were kept
        return f"the agent has grown by {grown:.1f} MiB"
    for c in clients[:5]:
        got = len([p for p in read_dump(c)[0] if p.get("job-id") is not None])
        if got < JOBS * WORKERS:
            return f"a dump that went on has {got} workers"
    return None


def subscriber(root):
    """Notifications that are not read are kept up to a limit; the rest is dropped."""
    sets = 3000
    slow = connect()
    send_request(slow, "subscribe", {"groups": 1}, ACK)
    slow.s.recv(1 << 18)
    for i in range(sets):
        root.do("job-set", {"name": "load0", "heartbeat-ms": 500 + i % 2})
    got = n = 0
    slow.s.settimeout(1)
    try:
        while True:
            got += len(slow.s.recv(1 << 18))
            n += 1
    except TimeoutError:
        pass
    print(f"{n} notifications, {got} bytes")
    if n == sets:
        return f"all {n} notifications were kept"
    return None if n and got < 512 << 10 else f"{n} notifications of {got} bytes were kept"


def links():
    """A new port of the bridge is attached while many clients have requests waiting."""
    clients = [connect() for _ in range(100)]

    def requests_and_link():
        for c in clients:
            send_request(c, "port-get")
        for words in ("add p2 type veth peer name p3", "set p2 master br0 up"):
            subprocess.run(["nsenter", f"--net=/proc/{pid}/ns/net", "ip", "link"] + words.split(),
                           check=True)

    while_stopped(requests_and_link)
    seen = [any(p["ifname"] == "p2" for p in read_dump(c)[0]) for c in clients]
    subprocess.run(["nsenter", f"--net=/proc/{pid}/ns/net", "ip", "link", "del", "p2"], check=True)
    return None if seen[-1] else "the port was attached after all clients had been served"


resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 4096))
failure = links() if sys.argv[1] == "links" else with_jobs(globals()[sys.argv[1]])
if failure:
    sys.exit(failure)
