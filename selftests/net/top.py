#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A terminal for `saina top': top.py KEYS SECONDS PATTERN... -- COMMAND...

Runs COMMAND on a pseudo terminal of 120 columns and 30 lines until the screen matches all
PATTERNs (regular expressions, of the whole screen) at once, or SECONDS are over.  Then types
KEYS, one at a time; those before a "/" it types as soon as the screen is not empty.  Waits for
COMMAND to end.  Prints the last screen before KEYS, "status N", and whether the terminal was
left as it was.  Exits 0 if all matched."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

import pyte

first, _, keys = sys.argv[1].rpartition("/")
seconds = float(sys.argv[2])
at = sys.argv.index("--")
patterns, command = sys.argv[3:at], sys.argv[at + 1:]

master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
before = termios.tcgetattr(slave)
pid = os.fork()
if not pid:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for fd in range(3):
        os.dup2(slave, fd)
    os.execvp(command[0], command)
screen = pyte.Screen(120, 30)
stream = pyte.ByteStream(screen)


def read(timeout):
    if select.select([master], [], [], timeout)[0]:
        stream.feed(os.read(master, 65536))


def text():
    return "\n".join(line.rstrip() for line in screen.display).rstrip()


deadline = time.monotonic() + seconds
good = False
while not good and time.monotonic() < deadline:
    read(0.1)
    if first and text():
        os.write(master, first.encode())
        first = ""
    good = all(re.search(p, text(), re.M) for p in patterns)
seen = text()
status = None
for key in keys:
    os.write(master, key.encode())
for _ in range(int(20 * seconds)):
    read(0.05)
    done, status = os.waitpid(pid, os.WNOHANG)
    if done:
        break
else:
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
print(seen)
print("status", os.waitstatus_to_exitcode(status))
print("terminal", "as it was" if termios.tcgetattr(slave) == before else "changed")
sys.exit(not good)
