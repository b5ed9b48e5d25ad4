#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Captures frames of a worker with a socket of AF_PACKET: the slot machine must not write into
memory that such a socket shares.

    skb_clones.py INTERFACE FILE WORKER_IP

It captures until FILE exists, and reads what it has captured only then.

Every message captured from WORKER_IP to the aggregator must have a type that workers send, and
each gradient (round, segment) that is seen twice must be the same both times.  Prints in JSON how
many frames, GSO batches and messages there were, what was wrong, and a checksum of each
gradient, by which two captures can be compared."""

import hashlib
import json
import os
import socket
import struct
import sys
import time

SO_RCVBUFFORCE = 33
GRAD = 1
SENT_BY_WORKERS = {1, 4, 9, 11}
HEADERS = 14 + 20 + 8
HDR = 48
DATA = 48864


def messages(udp: bytes):
    """(type, bytes) of each message of a GSO batch."""
    at = 0
    while at + HDR <= len(udp):
        kind, count = udp[at + 1], struct.unpack_from("<H", udp, at + 16)[0]
        size = HDR + (4 * count if kind in (GRAD, 4) else 32 if kind == 11 else 0)
        yield kind, udp[at:at + size]
        at += size


def main() -> None:
    interface, until, worker = sys.argv[1], sys.argv[2], socket.inet_aton(sys.argv[3])
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.bind((interface, 0))
    s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    s.settimeout(0.2)
    print("ready", flush=True)
    while not os.path.exists(until):		# what is queued is shared until it is read
        time.sleep(0.05)
    out = {"frames": 0, "gso_batches": 0, "messages": 0, "wrong": [], "grads": {}}
    end = time.monotonic() + 2
    while time.monotonic() < end:
        try:
            f = s.recv(1 << 17)
        except TimeoutError:
            break
        if len(f) < HEADERS + HDR or f[12:14] != b"\x08\x00" or f[23] != 17 or f[26:30] != worker or \
                struct.unpack_from(">H", f, 36)[0] != DATA:
            continue
        out["frames"] += 1
        out["gso_batches"] += len(f) > 9000
        for kind, m in messages(f[HEADERS:]):
            out["messages"] += 1
            if kind not in SENT_BY_WORKERS:
                out["wrong"].append(f"type {kind}")
                break
            if kind != GRAD:
                continue
            rnd, segment = struct.unpack_from("<II", m, 8)
            key, digest = f"{rnd}/{segment}", hashlib.md5(m[HDR:]).hexdigest()
            if out["grads"].setdefault(key, digest) != digest:
                out["wrong"].append(f"gradient {key} changed")
    out["wrong"] = out["wrong"][:5]
    print(json.dumps(out))


main()
