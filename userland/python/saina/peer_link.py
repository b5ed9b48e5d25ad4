# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Bytes from rank to rank by TCP, between two that prove to each other that they know a secret, which is never sent.

    client    "saina st", nonce (16), proof (32)         in its first segment
    server    records: length (4, little endian), proof (32), payload (at most 1 MiB):
                  "y"                                    at once: it knows the secret
                  "0", length of the content (8), or "1", a sentence that says why there is none
                  the content, in records
              or a length of 0: the client's proof is wrong

Proofs are HMAC-SHA256 with the secret: the client's of its nonce and of the server's address and port; those of records, of
that and of their number.  A nonce is good for one request.  Whoever is on the way can end a connection, but cannot change it.

Server: what has proved nothing costs no thread, and at most PENDING_MAX descriptors.  It is judged by its first segment, which
has the whole request of an honest client; what comes in pieces has PENDING_S, and gives way to what comes later.
Client: no byte is kept before its record's proof is checked.
"""

import contextlib
import hashlib
import hmac
import os
import secrets
import selectors
import socket
import struct
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

import numpy

#: Seconds until a peer accepts and proves that it knows the secret; until a record is complete.  Before it sends its state, a
#: peer may take transfer._SNAPSHOT_S to reach a step boundary.
NONCE_S, STATE_S = 10, 60
#: Bytes a second that must be sent on average, with STATE_S to begin with.
_RATE_MIN = 64 << 10
#: Connections that have proved nothing: at most so many in all, and of one address; seconds until the request is complete.
PENDING_MAX, _PENDING_HOST, PENDING_S = 8, 2, 5
#: Connections that are served at a time, each by a thread; a job has at most 64 workers.
_SERVED_MAX = 64
_BACKLOG, _BATCH = 1024, 64
_RECORD_MAX = 1 << 20
_MAGIC = b"saina st"
_ASK = len(_MAGIC) + 16 + 32
_LENGTH = struct.Struct("<I")
_RESET = struct.pack("ii", 1, 0)
WRONG_SECRET = "wrong token, or wrong secret of the process group"
_FORGED = "its answer was not made with the job's token, or the process group's secret"


class Unavailable(Exception):
    """This peer has no state to give; the text is the reason."""


class Silent(Unavailable):
    """This peer did not answer in time: it is not asked again."""


def _proof(key: bytes, *parts: Any) -> bytes:
    h = hmac.new(key, digestmod=hashlib.sha256)
    for part in parts:
        h.update(len(part).to_bytes(8, "little"))
        h.update(part)
    return h.digest()


def _key(secret: str, nonce: bytes, where: Tuple[str, int]) -> bytes:
    """The key of one request to the server at @where."""
    return _proof(secret.encode(), b"saina state", nonce, f"{where[0]}:{where[1]}".encode())


def _time_left(begun: float, n: int, record: float) -> float:
    """Seconds left to a connection that began at @begun, has had @n bytes, and whose present record began at @record."""
    return min(record + STATE_S, begun + STATE_S + n / _RATE_MIN) - time.monotonic()


class _Pending:
    """A connection whose request is not complete."""

    def __init__(self, host: str):
        self.host, self.end, self.data = host, time.monotonic() + PENDING_S, b""


class Listener:
    """Sends what @content returns, a sequence of buffers, to whoever proves to know @secret.  @content is called in a thread; it
    raises Unavailable.  where: address and port."""

    def __init__(self, address: str, secret: str, content: Callable[[], Sequence[Any]]):
        self._secret, self._content = secret, content
        self._listening = socket.create_server((address, 0), backlog=_BACKLOG)
        self._listening.setblocking(False)
        self.where: Tuple[str, int] = (address, self._listening.getsockname()[1])
        self._closed, self._pid = False, os.getpid()
        self._pending: Dict[socket.socket, _Pending] = {}       # the oldest first
        self._used: Set[bytes] = set()                          # nonces, of requests with a right proof
        self._served = threading.BoundedSemaphore(_SERVED_MAX)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listening, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="saina_state", daemon=True)
        self._thread.start()

    def close(self) -> None:
        if os.getpid() != self._pid:
            return      # the socket is the parent's, too
        self._closed = True
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)          # wakes the thread
        # The garbage collector may call this in any thread.
        if threading.current_thread() is not self._thread:
            self._thread.join()

    # --- what has proved nothing --------------------------------------------------------------

    def _run(self) -> None:
        while not self._closed:
            now = time.monotonic()
            for connection in [c for c, p in self._pending.items() if p.end <= now]:
                self._drop(connection)
            wait = min((p.end for p in self._pending.values()), default=None)
            for key, _ in self._selector.select(None if wait is None else max(wait - now, 0)):
                if key.fileobj is self._listening:
                    self._accept()
                elif key.fileobj in self._pending:              # not dropped meanwhile
                    self._read(key.fileobj)
        for connection in list(self._pending):
            self._drop(connection)
        self._selector.close()
        self._listening.close()

    def _accept(self) -> None:
        for _ in range(_BATCH):
            try:
                connection, (host, _) = self._listening.accept()
            except (BlockingIOError, ConnectionError):
                return
            except OSError:                                     # no descriptor is free
                if not self._closed:
                    time.sleep(0.1)
                return
            connection.setblocking(False)
            self._pending[connection] = _Pending(host)
            self._selector.register(connection, selectors.EVENT_READ)
            self._read(connection)
            same = [c for c, p in self._pending.items() if p.host == host]
            if len(same) > _PENDING_HOST:
                self._drop(same[0])
            elif len(self._pending) > PENDING_MAX:
                self._drop(next(iter(self._pending)))

    def _read(self, connection: socket.socket) -> None:
        pending = self._pending[connection]
        try:
            data = connection.recv(_ASK - len(pending.data))
        except BlockingIOError:
            return
        except OSError:
            data = b""
        pending.data += data
        if not data or pending.data[:len(_MAGIC)] != _MAGIC[:len(pending.data)]:
            self._drop(connection)
        elif len(pending.data) == _ASK:
            self._judge(connection, pending.data)

    def _drop(self, connection: socket.socket, say: bytes = b"") -> None:
        del self._pending[connection]
        self._selector.unregister(connection)
        with contextlib.suppress(OSError):
            if say:
                connection.send(say)
            # The kernel keeps nothing of it, either.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        connection.close()

    def _judge(self, connection: socket.socket, ask: bytes) -> None:
        nonce = ask[len(_MAGIC):-32]
        key = _key(self._secret, nonce, self.where)
        if not hmac.compare_digest(ask[-32:], _proof(key, b"ask")) or nonce in self._used:
            self._drop(connection, _LENGTH.pack(0))
            return
        self._used.add(nonce)
        if not self._served.acquire(blocking=False):
            self._drop(connection)                              # it asks again
            return
        del self._pending[connection]
        self._selector.unregister(connection)
        try:
            threading.Thread(target=self._serve, args=(connection, key), name="saina_serve", daemon=True).start()
        except RuntimeError:                                    # no thread is free
            self._served.release()
            connection.close()

    # --- what has proved that it knows the secret ---------------------------------------------

    def _serve(self, connection: socket.socket, key: bytes) -> None:
        begun, sent, number = time.monotonic(), 0, 0

        def send(payload: Any) -> None:
            nonlocal sent, number
            proof = _proof(key, number.to_bytes(8, "little"), payload)
            # The time is that of the whole record.
            connection.settimeout(max(_time_left(begun, sent, time.monotonic()), 0.001))
            connection.sendall(b"".join((_LENGTH.pack(len(payload)), proof, payload)))
            sent, number = sent + len(payload), number + 1

        try:
            send(b"y")
            try:
                parts = [memoryview(p).cast("B") for p in self._content() if len(p)]
            except (Unavailable, TypeError) as e:
                send(b"1" + str(e).encode()[:500])
                return
            begun = time.monotonic()
            send(b"0" + sum(map(len, parts)).to_bytes(8, "little"))
            for record in _records(parts):
                send(record)
        except OSError:
            pass        # a client that has gone asks another peer
        finally:
            self._served.release()
            connection.close()


def _records(parts: List[memoryview]) -> Any:
    """The bytes of @parts, in payloads of _RECORD_MAX, and the rest."""
    gathered: List[memoryview] = []
    room = _RECORD_MAX
    for part in parts:
        while len(part):
            gathered.append(part[:room])
            part, room = part[room:], room - len(gathered[-1])
            if not room:
                yield b"".join(gathered)
                gathered, room = [], _RECORD_MAX
    if gathered:
        yield b"".join(gathered)


# --- the client -------------------------------------------------------------------------------

class _Incoming:
    """Records of a server."""

    def __init__(self, connection: socket.socket, key: bytes):
        self._connection, self._key, self._number = connection, key, 0
        self._buffer = memoryview(bytearray(32))
        self.received, self.size, self.begun = 0, 0, time.monotonic()

    def _exactly(self, n: int, begun: float, seconds: Optional[float]) -> memoryview:
        """@n bytes, in a buffer that is used again.  @begun: of this record; @seconds: that it may take, None: as _time_left() says."""
        if n > len(self._buffer):
            self._buffer = memoryview(bytearray(n))
        got = 0
        while got < n:
            left = _time_left(self.begun, self.received + got, begun) if seconds is None else begun + seconds - time.monotonic()
            if left <= 0:
                raise Silent(f"it is too slow: {self.received + got} of {self.size} bytes in {time.monotonic() - self.begun:.0f} s" if self.size
                             else f"it has not answered for {seconds or STATE_S:g} s")
            self._connection.settimeout(left)
            try:
                part = self._connection.recv_into(self._buffer[got:n])
            except socket.timeout:
                continue
            if not part:
                raise Unavailable(f"it broke off after {self.received + got} of {self.size} bytes" if self.size else "it broke off without an answer")
            got += part
        return self._buffer[:n]

    def record(self, seconds: Optional[float] = None) -> memoryview:
        """The next payload, valid until the next call."""
        begun = time.monotonic()
        n, = _LENGTH.unpack(self._exactly(_LENGTH.size, begun, seconds))
        if not n:
            raise Unavailable(WRONG_SECRET)
        if n > _RECORD_MAX:
            raise Unavailable(f"{_FORGED}, or by another version of saina")
        proof = bytes(self._exactly(32, begun, seconds))
        payload = self._exactly(n, begun, seconds)
        if not hmac.compare_digest(proof, _proof(self._key, self._number.to_bytes(8, "little"), payload)):
            raise Unavailable(_FORGED)
        self._number += 1
        return payload


def _memory_available() -> int:
    """Bytes that this host has left."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open("/proc/meminfo", encoding="ascii") as f:
            return next(int(line.split()[1]) << 10 for line in f if line.startswith("MemAvailable:"))
    return sys.maxsize


def _read(incoming: _Incoming) -> memoryview:
    incoming.record(NONCE_S)
    incoming.begun = time.monotonic()
    head = bytes(incoming.record())
    if head[:1] != b"0" or len(head) != 9:
        raise Unavailable(head[1:501].decode(errors="replace"))
    size = incoming.size = int.from_bytes(head[1:], "little")
    incoming.begun = time.monotonic()
    if size > _memory_available():
        raise Unavailable(f"its state has {size} bytes, and this host has only {_memory_available()} bytes of memory left")
    content = numpy.empty(size, numpy.uint8)        # takes memory as it is written
    while incoming.received < size:
        payload = incoming.record()
        if len(payload) > size - incoming.received:
            raise Unavailable(f"it has sent more than the {size} bytes that it announced")
        content[incoming.received:incoming.received + len(payload)] = payload
        incoming.received += len(payload)
    return memoryview(content)


def receive(where: Tuple[str, int], secret: str) -> memoryview:
    """The content of the server at @where, bytes.  Raises Unavailable."""
    nonce = secrets.token_bytes(16)
    key = _key(secret, nonce, where)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
            # The end of the handshake waits for the request: the server has that as soon as it has the connection.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
            connection.settimeout(NONCE_S)
            connection.connect(where)
            connection.sendall(_MAGIC + nonce + _proof(key, b"ask"))
            return _read(_Incoming(connection, key))
    except socket.timeout as e:
        raise Silent(f"it has not answered for {NONCE_S:g} s") from e
    except OSError as e:
        raise Unavailable(f"{type(e).__name__}: {e}" if str(e) else type(e).__name__) from e
    except MemoryError as e:
        raise Unavailable("its state does not fit into this host's memory") from e
