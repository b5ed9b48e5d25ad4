#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Hostile clients of sainad's socket "share", for shm_server.sh.

shm_server.py ask SOCKET VERSION JOB WORKER SESSION [BYTES]   one request, cut to BYTES; prints the
                                       errno of the answer and its sentence, or "closed"
shm_server.py flood SOCKET N                N connections, each with a message that carries two
                                       descriptors; prints how many messages were taken by the
                                       kernel (then each was answered with a refusal, or closed)
shm_server.py silent SOCKET N               N connections that say nothing; prints "held" when all
                                       are made; when sainad has refused or closed each of them,
                                       prints "refused N closed N" and ends
shm_server.py keep SOCKET JOB WORKER SESSION POOL ENTRY        asks for the memory, maps both arrays,
                                       prints "mapped"; for each line of standard input prints the
                                       sessions in the entries of the input array, in hex, and the
                                       newest round of results; ends at "end" """
import array
import mmap
import os
import select
import socket
import struct
import sys


def connect(path):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(path)
    return s


def request(version, job, worker, session):
    return struct.pack("=IHBBQ", version, job, worker, 0, session)


def sentence(answer):
    return answer[24:].split(b"\0")[0].decode()


def ask(path, version, job, worker, session, size="16"):
    s = connect(path)
    s.send(request(int(version), int(job), int(worker), int(session, 0)).ljust(int(size), b"x")[:int(size)])
    answer = s.recv(4096)
    print(f"{struct.unpack_from('=i', answer)[0]} {sentence(answer)}" if answer else "closed")


def flood(path, n):
    null = os.open("/dev/null", os.O_RDONLY)
    taken = 0
    for _ in range(int(n)):
        s = connect(path)
        try:
            s.sendmsg([request(5, 0, 0, 1)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null, null]))])
            taken += 1
            s.recv(4096)
        except (PermissionError, ConnectionResetError):
            pass
        s.close()
    print(taken)


def silent(path, n):
    held, refused = [], 0
    for _ in range(int(n)):
        s = connect(path)
        # sainad may refuse the connection, or close it after a silence that is too long.
        held.append(s)
    poll = select.poll()
    for s in held:
        poll.register(s, select.POLLIN)
    print("held", flush=True)
    open_now = {s.fileno(): s for s in held}
    closed = 0
    while open_now:
        for fd, _ in poll.poll():
            answer = open_now[fd].recv(4096)
            refused += bool(answer)
            closed += not answer
            poll.unregister(fd)
            open_now.pop(fd).close()
    print(f"refused {refused} closed {closed}", flush=True)


def keep(path, job, worker, session, pool, entry):
    s = connect(path)
    s.send(request(int(os.environ["SAINA_SHM_VERSION"]), int(job), int(worker), int(session, 0)))
    answer, fds, _, _ = socket.recv_fds(s, 4096, 2)
    if len(fds) != 2:
        sys.exit(sentence(answer))
    size = (int(pool) * int(entry) + 4095) & ~4095
    mine = mmap.mmap(fds[0], size, mmap.MAP_SHARED, mmap.PROT_READ)
    segments, ring = struct.unpack_from("=II", answer, 8)
    size = (segments * ring * int(entry) + 4095) & ~4095
    results = mmap.mmap(fds[1], size, mmap.MAP_SHARED, mmap.PROT_READ)
    print("mapped", flush=True)
    for line in sys.stdin:
        if line.strip() == "end":
            break
        seen = {struct.unpack_from("=Q", mine, i * int(entry))[0] for i in range(int(pool))} - {0}
        newest = max(struct.unpack_from("=I", results, i * segments * int(entry))[0] for i in range(ring))
        print(*(f"0x{x:016x}" for x in sorted(seen)), "round", newest, flush=True)


{"ask": ask, "flood": flood, "silent": silent, "keep": keep}[sys.argv[1]](*sys.argv[2:])
