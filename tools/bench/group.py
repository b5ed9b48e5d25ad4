# SPDX-License-Identifier: GPL-2.0-or-later
"""The processes of one contender, one for each worker, and the protocol with them, which
peer.py describes."""

import os
import selectors
import socket
import struct
import subprocess
import time
from contextlib import suppress

from lab import BenchError, Lab

START_TIMEOUT = 60
COMMAND_TIMEOUT = 30
STOP_TIMEOUT = 5


class TimedOut(BenchError):
    """A command was not finished in time, although the processes are alive."""


class Group:
    """Base class: start() launches processes and calls self.greet().

    folder: where the group makes a folder of its own, for its socket and its log
    hello: what the rank that reported last has said of itself, by key
    wire_share: bytes of elements on the wire, for a byte of the tensor
    """

    name = ""
    wire_share = 1.0

    def __init__(self, lab: Lab, folder: str):
        self.lab = lab
        self.ranks = lab.place.workers
        self.folder = os.path.join(folder, self.name)
        self.socket_path = os.path.join(self.folder, "socket")
        self.log_path = os.path.join(self.folder, "log")
        self.processes: list[subprocess.Popen] = []
        self.hello: dict[str, str] = {}
        os.makedirs(self.folder)
        self.listen()

    def listen(self) -> None:
        self.connections: list[socket.socket | None] = [None] * self.ranks
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.socket_path)
        self.listener.listen(self.ranks)

    def start(self) -> None:
        raise NotImplementedError

    def restart(self) -> None:
        """Ends the processes and starts new ones, with a new socket."""
        self.stop()
        os.unlink(self.socket_path)
        self.listen()
        self.start()

    def spawn(self, command: list[str], **kw) -> None:
        with open(self.log_path, "ab") as log:
            self.processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                                   stderr=log, start_new_session=True, **kw))

    def log_tail(self) -> str:
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()[-800:].strip() or "no output"

    def check_alive(self) -> None:
        """Raises BenchError if a process has ended."""
        for p in self.processes:
            if p.poll() is not None:
                raise BenchError(f"{self.name}: a process ended with status {p.returncode}: {self.log_tail()}")

    def greet(self) -> None:
        """Waits until every rank has reported that it is ready.  Raises BenchError if one ends, or none comes in time."""
        deadline = time.monotonic() + START_TIMEOUT
        self.listener.settimeout(0.1)
        while None in self.connections:
            self.check_alive()
            if time.monotonic() > deadline:
                raise BenchError(f"{self.name}: did not start within {START_TIMEOUT} s: {self.log_tail()}")
            try:
                connection, _ = self.listener.accept()
            except TimeoutError:
                continue
            connection.settimeout(START_TIMEOUT)
            words = connection.makefile("r").readline().split()
            if len(words) < 2 or words[0] != "hello":
                raise BenchError(f"{self.name}: a process closed its connection at once: {self.log_tail()}")
            self.connections[int(words[1])] = connection
            self.hello = dict(w.split("=", 1) for w in words[2:])

    def bind(self, bound: bool) -> None:
        """Lets all threads of a rank run on one processor, the rank's number modulo that of processors; bound = False: on all."""
        processors = sorted(os.sched_getaffinity(0))
        for rank, c in enumerate(self.connections):
            pid, *_ = struct.unpack("3i", c.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
            chosen = [processors[rank % len(processors)]] if bound else processors
            # a thread, or the process, may have ended: command() says so
            with suppress(FileNotFoundError, ProcessLookupError):
                for thread in os.listdir(f"/proc/{pid}/task"):
                    os.sched_setaffinity(int(thread), chosen)

    def command(self, text: str, timeout: float | None = None) -> list[list[int]]:
        """Sends a command to all ranks at once.  Returns the numbers that each rank answered, in order of the ranks.

        timeout: seconds, at most COMMAND_TIMEOUT.  Raises TimedOut after that time, BenchError if a rank fails or ends."""
        timeout = COMMAND_TIMEOUT if timeout is None else min(timeout, COMMAND_TIMEOUT)
        for c in self.connections:
            c.sendall(f"{text}\n".encode())
        answers = [b""] * self.ranks
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            for rank, c in enumerate(self.connections):
                selector.register(c, selectors.EVENT_READ, rank)
            while selector.get_map():
                if time.monotonic() > deadline:
                    raise TimedOut(f"{self.name}: \"{text}\" did not finish within {timeout:g} s: {self.log_tail()}")
                for key, _ in selector.select(min(1, timeout)):
                    got = key.fileobj.recv(1 << 16)
                    if not got:
                        raise BenchError(f"{self.name}: rank {key.data} ended during \"{text}\": {self.log_tail()}")
                    answers[key.data] += got
                    if not got.endswith(b"\n"):
                        continue
                    selector.unregister(key.fileobj)
                    if not answers[key.data].startswith(b"ok"):
                        said = answers[key.data].decode().strip().removeprefix("error ")
                        raise BenchError(f"{self.name}, rank {key.data}: \"{text}\" failed: {said}")
        return [[int(w) for w in a.split()[1:]] for a in answers]

    def stop(self) -> None:
        """Ends the processes by closing their connections; kills those that do not end in time."""
        self.listener.close()
        for c in self.connections:
            if c:
                c.close()
        deadline = time.monotonic() + STOP_TIMEOUT
        for p in self.processes:
            try:
                p.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        self.processes = []
