#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A worker that forges its control messages, for ctrl_fields.sh.

ctrl_fields.py live JOB WORKER ROUND   joins, naming ROUND as its first, says "welcome", and goes on with
                                  READY and HEARTBEAT whose fields are at their extremes, and with
                                  messages in the name of others; at SIGTERM leaves with such a LEAVE
                                  and says "left"
ctrl_fields.py joins JOB WORKER        JOINs with a field at its extreme each, one a line: which, and the
                                  reason of the REFUSE, or "welcome" (then it leaves), or "silence"
ctrl_fields.py size JOB ELEMENTS...    JOINs to a job that takes its size from its first worker: likewise
ctrl_fields.py back JOB WORKER CMD...  runs CMD, which declares WORKER dead, and JOINs in its name at once;
                                  prints "waits" if no answer comes for as long as a worker has to wait,
                                  "early" if it is welcomed before, "slow" if the machine was too slow
                                  to tell, ten times"""
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import time

PROTO = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../uapi/saina/proto.h")
with open(PROTO, encoding="utf-8") as f:
    VERSION = int(re.search(r"#define SAINA_PROTO_VERSION\s+(\d+)", f.read())[1])
JOIN, WELCOME, REFUSE, READY, HEARTBEAT, STATUS, LEAVE = 16, 17, 18, 19, 20, 21, 22
# Seconds for which a worker that left or died has to wait: REJOIN_HOLD_NS of agent/members/admit.c.
COME_BACK = 2.0
U16, U32, U64 = 0xffff, 0xffffffff, 0xffffffffffffffff

sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.connect(("10.190.0.1", 48865))


def header(kind, job, worker, session=0, flags=0, rnd=0, segment=0, exponent=0, contributors=0, next_k=0,
           policy=0, mask=0, aux=0, slot_round=0):
    return struct.pack("<BBBBHBBIIHBbBBHQIIQ", VERSION, kind, flags, 0, job, 0, 0, rnd, segment, 0, worker,
                       exponent, contributors, next_k, policy, mask, aux, slot_round, session)


def join_message(job, worker, rnd=0, elements=0, nonce=1, token=b"", name=b"forger", arrays=0, per_worker=0, **head):
    body = token.ljust(32, b"\0") + name.ljust(32, b"\0") + struct.pack("<QQIHH", nonce, elements, rnd, arrays, per_worker)
    return (header(JOIN, job, worker, **head) + body).ljust(220, b"\0")


def answer(kinds, seconds):
    """The next answer of these types, or None."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([sock], [], [], left)[0]:
            m = sock.recv(2048)
            if m[1] in kinds:
                return m
    return None


def session_of(m):
    return struct.unpack_from("<Q", m, 40)[0]


def join(message, seconds=10, repeat=0.2):
    """The answer to a JOIN, which is sent again and again."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sock.send(message)
        m = answer({WELCOME, REFUSE}, min(repeat, max(end - time.monotonic(), 0.01)))
        if m:
            return m
    return None


def leave(job, worker, session, **fields):
    while True:
        sock.send(header(LEAVE, job, worker, session, **fields).ljust(220, b"\0"))
        m = answer({STATUS, REFUSE}, 0.2)
        if m and (m[1] == REFUSE or not struct.unpack_from("<Q", m, 48)[0] >> worker & 1):
            return


EXTREMES = [{"rnd": U32}, {"segment": U32}, {"exponent": -128}, {"exponent": 127}, {"contributors": 255},
            {"next_k": 255}, {"policy": U16}, {"mask": U64}, {"aux": U32}, {"slot_round": U32},
            {"rnd": 0x7fffffff}, {"rnd": 0xfffffffe}, {"rnd": 0x80000000}, {"segment": 1},
            {"rnd": U32, "segment": U32, "exponent": -1, "contributors": 255, "next_k": 255, "policy": U16,
             "mask": U64, "aux": U32, "slot_round": U32}, {}]
REPORTS = [struct.pack("<QQII", *r) for r in ((U64, U64, U32, U32), (0, U64, 0, 0), (U64, 0, 1, 0),
                                              (1 << 63, 1 << 63, 1 << 31, 1 << 31), (0, 0, 0, 0))]


def of_others(job, worker, session):
    """Messages with the session of @worker: in the name of other workers, and of workers and jobs that
    cannot exist; of lengths that no message has; and of types that only the agent sends."""
    for kind in (READY, HEARTBEAT, LEAVE):
        for w in (0, 1, 3, 63, 64, 65, 127, 128, 255):
            yield header(kind, job, w, session, flags=4 if kind == HEARTBEAT else 0).ljust(220, b"\xff")
            yield header(kind, job, w, session).ljust(220, b"\0")
        for j in (255, 256, U16):
            yield header(kind, j, worker, session).ljust(220, b"\0")
        for length in (0, 1, 47, 48, 71, 219, 221, 512, 1400):
            yield header(kind, job, worker, session).ljust(length, b"\0")[:length]
    for kind in (WELCOME, REFUSE, STATUS, 0, 23, 255):
        yield header(kind, job, worker, session).ljust(220, b"\0")


def live(job, worker, rnd):
    m = join(join_message(job, worker, int(rnd, 0)), 60)
    if not m or m[1] != WELCOME:
        sys.exit("no welcome")
    session = session_of(m)
    ends = []
    signal.signal(signal.SIGTERM, lambda *_: ends.append(1))
    print("welcome", flush=True)
    for message in of_others(job, worker, session):
        sock.send(message)
    while answer({REFUSE}, 0.2):
        pass
    i = 0
    while not ends:
        fields = EXTREMES[i % len(EXTREMES)]
        report = REPORTS[i % len(REPORTS)]
        for message in (header(READY, job, worker, session, flags=i & 1, **fields),
                        header(HEARTBEAT, job, worker, session, **fields),
                        header(HEARTBEAT, job, worker, session, flags=4, **fields) + report):
            sock.send(message.ljust(220, b"\0"))
        m = answer({REFUSE}, 0.05)
        if m:
            sys.exit("refused: " + m[60:].split(b"\0")[0].decode())
        i += 1
    leave(job, worker, session, **EXTREMES[-2])
    print("left", flush=True)


def say(what, m, job):
    if not m:
        print(what, "silence")
    elif m[1] == REFUSE:
        print(what, "refused", struct.unpack_from("<I", m, 56)[0])
    else:
        print(what, "welcome")
        leave(job, m[18], session_of(m))


def joins(job, worker):
    for what, fields in (("elements", {"elements": U64}), ("more", {"elements": 4097}), ("round", {"rnd": U32}),
                         ("arrays", {"arrays": U16, "per_worker": U16}), ("name", {"name": b"\xff" * 32}),
                         ("nonce", {"nonce": U64}), ("zero", {"nonce": 0}), ("token", {"token": b"\xff" * 32}),
                         ("session", {"session": U64}), ("segment", {"segment": U32}), ("flags", {"flags": 255}),
                         ("exponent", {"exponent": -128}), ("mask", {"mask": U64}),
                         # 1 + the rank that is wanted
                         ("rank2", {"aux": 3}), ("rank3", {"aux": 4}), ("rank256", {"aux": 257}), ("last", {"aux": U32})):
        say(what, join(join_message(job, worker, **{"nonce": 77, **fields})), job)
    for w in (3, 64, 254):
        say(f"worker{w}", join(join_message(job, w)), job)
    say("job", join(join_message(U16, worker)), job)


def size(job, *elements):
    for n in elements:
        say(n, join(join_message(job, 0, elements=int(n, 0))), job)


def arrays(job, elements, number, per_worker):
    """The size of a job that takes it from this worker."""
    m = join(join_message(job, 0, elements=int(elements, 0), arrays=int(number), per_worker=int(per_worker)))
    if m[1] == REFUSE:
        print("refused", struct.unpack_from("<I", m, 56)[0])
        return
    print(struct.unpack_from("<Q", m, 56)[0])
    leave(job, m[18], session_of(m))


def back(job, worker, *cmd):
    for attempt in range(10):
        begin = time.monotonic()
        subprocess.run(cmd, check=True)
        m = join(join_message(job, worker, nonce=1000 + attempt), COME_BACK - 0.3 - (time.monotonic() - begin), 0.1)
        now = time.monotonic()
        if m and m[1] == WELCOME and now - begin < COME_BACK:
            print("early")
            return
        if not m and now - begin < COME_BACK and now - begin > COME_BACK - 0.5:
            print("waits")
            return
        join(join_message(job, worker, nonce=2000 + attempt), 60)
    print("slow")


if __name__ == "__main__":
    {"live": live, "joins": joins, "size": size, "arrays": arrays, "back": back}[sys.argv[1]](int(sys.argv[2]), *(
        [int(sys.argv[3]), *sys.argv[4:]] if sys.argv[1] not in ("size", "arrays") else sys.argv[3:]))
