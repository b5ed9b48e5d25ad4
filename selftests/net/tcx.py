#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Attaches a foreign program at the tcx hook of an interface, behind those that are there, as
Cilium does: frames that reach it go on to the bridge, and no later program sees them.

    tcx.py INTERFACE

Prints "ready" and stays until it is killed; "none" where the kernel has no tcx."""

import ctypes
import errno
import os
import signal
import socket
import struct
import sys

BPF_PROG_LOAD, BPF_LINK_CREATE = 5, 28
SCHED_CLS, TCX_INGRESS = 3, 46
TCX_PASS = 0
SYS_BPF = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)


def bpf(command: int, attr: bytes) -> int:
    buf = ctypes.create_string_buffer(attr.ljust(128, b"\0"), 128)
    fd = libc.syscall(SYS_BPF, command, buf, 128)
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return fd


def main() -> None:
    code = struct.pack("<BBhi", 0xb7, 0, 0, TCX_PASS) + struct.pack("<BBhi", 0x95, 0, 0, 0)
    insns, license_ = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
    prog = bpf(BPF_PROG_LOAD, struct.pack("<IIQQ", SCHED_CLS, len(code) // 8, ctypes.addressof(insns),
                                          ctypes.addressof(license_)))
    try:
        bpf(BPF_LINK_CREATE, struct.pack("<IIII", prog, socket.if_nametoindex(sys.argv[1]), TCX_INGRESS, 0))
    except OSError as e:
        if e.errno != errno.EINVAL:
            raise
        print("none", flush=True)
        return
    print("ready", flush=True)
    signal.pause()


main()
