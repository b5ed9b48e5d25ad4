#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""JOINs in a tree, for tree_admit.sh.  Prints for each what the answer says.

tree_admit.py join JOB WORKER PORT [KEY=VALUE...]   one JOIN from UDP port PORT.  Keys: tree=1, node=1, and of
        the node elem, payload, segments, ring, weight, incarnation; leave=1: leaves at once;
        wait=1: goes on while the job's parent has not admitted it.
        Prints "welcome WEIGHT RANK0 DEPTH round ROUND", or "refused REASON" and the sentence
tree_admit.py relay FILE            a saina-uplink: sends what it was given to FILE as JSON, and the
        reports that lines of FILE.reports have, as STATE WORKERS RANK0 DEPTH FIRST-ROUND, each when it comes;
        "join": joins the own job from the port it has, and writes the answer to FILE.joined"""
import ctypes
import json
import os
import socket
import struct
import sys
import time

import ctrl_fields as forge  # selftests/net/ctrl_fields.py

TREE, NODE, NO_ROOT = 8, 16, 12
HANDOVER = "<IIHBBIIIIIQQ4s4sHHHBB32s32s32s32s"
HANDOVER_FIELDS = ("version size job worker elem max_weight payload segments pool ring elements incarnation ip "
                   "parent_ip udp_port parent_udp_port parent_job parent_worker reserved parent_name node token "
                   "parent_token").split()


def node_body(f):
    return struct.pack("<32sQQIIHHHB", b"", f.get("incarnation", 1), 7, f.get("weight", 8), f.get("segments", 16),
                       f.get("payload", 256), 64, f.get("ring", 8), f.get("elem", 1))


def join(job, worker, port, fields):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("", port))
    sock.connect(("10.190.0.1", 48865))
    forge.sock = sock
    flags = TREE * fields.get("tree", 0) | NODE * fields.get("node", 0)
    message = forge.join_message(job, worker, nonce=int.from_bytes(os.urandom(7), "little") + 1, flags=flags)
    if flags & NODE:
        message = (message[:136] + node_body(fields)).ljust(220, b"\0")
    m = forge.join(message, 10)
    while fields.get("wait") and m and m[1] == forge.REFUSE and struct.unpack_from("<I", m, 56)[0] == NO_ROOT:
        time.sleep(0.2)
        m = forge.join(message, 10)
    if not m:
        return "silence"
    if m[1] == forge.REFUSE:
        return f"refused {struct.unpack_from('<I', m, 56)[0]} {m[60:].split(bytes(1))[0].decode()}"
    if fields.get("leave"):
        forge.leave(job, worker, forge.session_of(m))
    first = struct.unpack_from("<I", m, 76)[0]
    if m[2] & TREE:
        weight, rank0, depth = struct.unpack_from("<IIB", m, 96)
        return f"welcome {weight} {rank0} {depth} round {first}"
    return f"welcome round {first}"


def relay(path):
    sock = socket.socket(fileno=3)
    data, fds, _, _ = socket.recv_fds(sock, 1 << 12, 8)
    given = dict(zip(HANDOVER_FIELDS, struct.unpack_from(HANDOVER, data)))
    given = {k: v.rstrip(b"\0").decode() if isinstance(v, bytes) and len(v) > 4 else list(v) if isinstance(v, bytes) else v
             for k, v in given.items()}
    given["fds"] = [os.readlink(f"/proc/self/fd/{fd}") for fd in fds]
    given["pid"] = os.getpid()
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(given, f)
    os.rename(path + ".new", path)
    said = 0
    sock.setblocking(False)
    while True:
        try:
            if not sock.recv(1):
                return
        except BlockingIOError:
            pass
        lines = open(path + ".reports", encoding="utf-8").read().split("\n")[:-1] if os.path.exists(path + ".reports") else []
        for line in lines[said:]:
            if line == "join":
                ctypes.CDLL(None).setns(fds[0], 0)
                with open(path + ".joined", "w", encoding="utf-8") as f:
                    f.write(join(given["job"], given["worker"], 0, {"tree": 1}) + "\n")
                continue
            numbers = [int(n) for n in line.split()]
            report = struct.pack("<IIIIIIIIQQQQQQ160s", 1, numbers[0], *numbers[1:4], 0, numbers[4], 0, 0, 1 << 20, 2 << 20,
                                 0, 0, 0, b"no way up" if numbers[0] == 1 else b"")
            sock.send(report)
            if numbers[0] in (4, 5):
                return
        said = len(lines)
        time.sleep(0.02)


def main():
    if sys.argv[1] == "join":
        fields = {k: int(v, 0) for k, v in (a.split("=") for a in sys.argv[5:])}
        print(join(int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), fields))
    else:
        relay(sys.argv[2])


main()
