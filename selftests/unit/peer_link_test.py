#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Who gets a rank's state, and what others can do about it (peer_link.py, peer_state.py), without a job and without PyTorch.  TAP.

    peer_link_test.py [all]     all: also how often peers are asked that fail

Servers run in this process, with 64 free descriptors; neighbours without the secret in processes of their own, from addresses
of 127.0.0.0/8.
"""

import contextlib
import hmac
import io
import json
import os
import resource
import secrets
import socket
import struct
import subprocess
import sys
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.environ.get("SAINA_BUILD", TOP + "/build"), "python"), TOP + "/selftests/lib"]
os.environ.setdefault("SAINA_LIBRARY", os.path.join(os.environ.get("SAINA_BUILD", TOP + "/build"), "libsaina.so.0"))

# pylint: disable=wrong-import-position
from saina import peer_state
from saina.peer_state import Server, Unavailable, Unfit, fetch, fetch_any
from tap import Tap

tap = Tap("peer_link: ")
point = tap.point
SECRET = "s3cret"


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(condition())


@contextlib.contextmanager
def serving(snapshot):
    served = []
    server = Server("127.0.0.1", SECRET, lambda: (served.append(1), snapshot)[1])
    try:
        yield server.where, served
    finally:
        server.close()


def unavailable(where, secret=SECRET):
    try:
        fetch(where, secret)
    except Unavailable as e:
        return str(e)
    return ""


# --- the wire, made anew ----------------------------------------------------------------------

def proof(key, *parts):
    return hmac.new(key, b"".join(struct.pack("<Q", len(p)) + p for p in parts), "sha256").digest()


def key_of(where, nonce, secret=SECRET):
    return proof(secret.encode(), b"saina state", nonce, f"{where[0]}:{where[1]}".encode())


def ask_of(where, nonce, secret=SECRET):
    return b"saina st" + nonce + proof(key_of(where, nonce, secret), b"ask")


def record(key, number, payload):
    return struct.pack("<I", len(payload)) + proof(key, struct.pack("<Q", number), payload) + payload


def content_of(value):
    """As state_format.py writes a state of numbers and strings."""
    text = json.dumps(["d", [[["v", k], ["v", v]] for k, v in value.items()]]).encode()
    return struct.pack("<Q", len(text)) + text


def answer_of(key, content, size=None):
    return record(key, 0, b"y") + record(key, 1, b"0" + struct.pack("<Q", len(content) if size is None else size)) + record(key, 2, content)


def ask(where, request, pieces=1):
    """What a server answers to @request, sent in @pieces."""
    with socket.create_connection(where, 30) as s:
        with contextlib.suppress(ConnectionError):
            step = -(-len(request) // pieces)
            for at in range(0, len(request), step):
                s.sendall(request[at:at + step])
                time.sleep(0.02 * (pieces > 1))
            data = b""
            while part := s.recv(1 << 16):
                data += part
            return data
        return data


REFUSED = bytes(4)


def handshake():
    with serving({"weight": 4.5, "rounds": 7}) as (where, served):
        found = fetch(where, SECRET)
        point(found == {"weight": 4.5, "rounds": 7} and len(served) == 1, "who has the secret gets the state", found)
        point(all("wrong token" in unavailable(where, t) for t in ("other", "", "s3cret ")) and len(served) == 1,
              "who has another secret, or none, is refused, and no state is made for it", served)
        nonce = secrets.token_bytes(16)
        good = answer_of(key_of(where, nonce), content_of({"weight": 4.5, "rounds": 7}))
        first, second = ask(where, ask_of(where, nonce)), ask(where, ask_of(where, nonce))
        point(first == good and second == REFUSED and len(served) == 2, "a request that is sent again is refused: a nonce is good for one", second)
        nonce = secrets.token_bytes(16)
        point(ask(where, ask_of(where, nonce), 4) == answer_of(key_of(where, nonce), content_of({"weight": 4.5, "rounds": 7})),
              "a request that comes in pieces is served")
        elsewhere = ("127.0.0.1", where[1] - 1)
        wrong = {"made for another server": ask_of(elsewhere, nonce), "of zeros": b"saina st" + bytes(48),
                 "with a nonce of one's own": b"saina st" + secrets.token_bytes(16) + ask_of(where, nonce)[24:]}
        got = {what: ask(where, request) for what, request in wrong.items()}
        point(all(v == REFUSED for v in got.values()) and len(served) == 3, "requests " + ", ".join(wrong) + " are refused", got)
        point(ask(where, b"GET /state HTTP/1.0\r\n\r\n") == b"" and ask(where, b"\xff" * 100000) == b"" and len(served) == 3,
              "what is no request is closed without an answer", served)


# --- neighbours without the secret ------------------------------------------------------------

NEIGHBOUR = r"""
import socket, sys
port, kind, keep, held = int(sys.argv[1]), sys.argv[2], [], 100
for i in range(300):
    s = socket.socket()
    s.settimeout(1)
    try:
        s.bind((f"127.0.2.{i % 250 + 1}" if "addresses" in kind else "127.0.2.1", 0))
        s.connect(("127.0.0.1", port))
        s.sendall({"garbage": b"saina st" + b"x" * 48, "prefix": b"saina st", "more": b"z" * 100000}.get(kind.split(",")[0], b""))
        if "half" in kind:
            s.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    keep.append(s)
    if "again" in kind or len(keep) > held:
        keep.pop(0).close()
    if i == 150:
        print("half of it", flush=True)
print("all", flush=True)
sys.stdin.read()
"""
KINDS = {"silent": "silent connections", "silent,addresses": "silent connections from many addresses", "half": "connections closed by half",
         "garbage,again": "wrong proofs, again and again", "prefix,addresses": "beginnings of requests from many addresses",
         "more": "connections that keep sending"}


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def threads():
    return len(os.listdir("/proc/self/task"))


def floods():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    for kind, what in KINDS.items():
        with serving({"weight": 4.5}) as (where, _):
            neighbour = subprocess.Popen([sys.executable, "-SE", "-c", NEIGHBOUR, str(where[1]), kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            before, most, taken = (descriptors(), threads()), (0, 0), []
            resource.setrlimit(resource.RLIMIT_NOFILE, (before[0] + 64, hard))
            asks = threading.Thread(target=lambda: (neighbour.stdout.readline(), taken.append(fetch_any([(1, where)], SECRET, lambda _: None))), daemon=True)
            with contextlib.redirect_stderr(io.StringIO()):
                asks.start()
                end = time.monotonic() + 60
                while asks.is_alive() and time.monotonic() < end:
                    most = max(most[0], descriptors()), max(most[1], threads())
                    time.sleep(0.002)
                neighbour.stdout.readline()
                most = max(most[0], descriptors()), max(most[1], threads())
                neighbour.stdin.close()
                neighbour.wait()
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            # Two descriptors and two threads are of the client, and of what serves it.
            point(taken == [1] and most[0] - before[0] <= 16 and most[1] - before[1] <= 4,
                  f"{what}: they take a few descriptors and no threads, and a rank gets the state", f"{taken} {before} {most}")


def was_closed(connection):
    try:
        return connection.recv(1, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def slow_transfer():
    """A rank that reads slowly is served to the end, whoever comes meanwhile."""
    big = {"text": "x" * (4 << 20)}
    with serving(big) as (where, _):
        nonce = secrets.token_bytes(16)
        with socket.create_connection(where, 60) as s:
            s.sendall(ask_of(where, nonce))
            got = s.recv(10, socket.MSG_WAITALL)
            crowd = []
            for i in range(50):
                crowd.append(socket.create_connection(where, 60, (f"127.0.3.{i + 1}", 0)))
            while part := s.recv(1 << 16):
                got += part
        closed = until(lambda: sum(map(was_closed, crowd)) >= 40)
        for c in crowd:
            c.close()
        head = record(key_of(where, nonce), 0, b"y") + record(key_of(where, nonce), 1, b"0" + struct.pack("<Q", len(content_of(big))))
        whole, at = b"", len(head)
        while at < len(got):
            n, = struct.unpack_from("<I", got, at)
            whole += got[at + 36:at + 36 + n]
            at += 36 + n
        point(got.startswith(head) and whole == content_of(big) and closed,
              "a rank that reads slowly gets all of it; of 50 that prove nothing at least 40 are closed meanwhile", f"{len(got)} {closed}")


# --- peers that are none, or fail ---------------------------------------------------------------

def peer(answer):
    """A server that runs answer(connection, key, request) for each request; it knows the secret if @answer uses the key.  Returns
    its address and port, and a list of the times at which it was asked."""
    listening, asked = socket.create_server(("127.0.0.1", 0)), []
    where = listening.getsockname()

    def take_one(connection):
        with connection, contextlib.suppress(OSError):
            request = connection.recv(56, socket.MSG_WAITALL)
            asked.append(time.monotonic())
            answer(connection, key_of(where, request[8:24]), request)

    def serve():
        while True:
            threading.Thread(target=take_one, args=listening.accept()[:1], daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()
    return where, asked


def impostors():
    state = content_of({"weight": 0})
    other = proof(b"other", b"x")
    answers = {"with proofs of another secret": lambda c, k, r: c.sendall(answer_of(other, state)),
               "with the proofs of another request": lambda c, k, r: c.sendall(answer_of(key_of(c.getsockname(), bytes(16)), state)),
               "with its own request": lambda c, k, r: c.sendall(struct.pack("<I", 20) + r),
               "with records in another order": lambda c, k, r: c.sendall(record(k, 1, b"y") + record(k, 0, b"0" + bytes(8)))}
    for what, answer in answers.items():
        said = unavailable(peer(answer)[0])
        point("not made with the job's token" in said, f"a peer that answers {what} is refused", said)

    def changed(connection, key, _):
        answer = bytearray(answer_of(key, state))
        answer[-1] ^= 1
        connection.sendall(answer)

    def shorter(connection, key, _):
        connection.sendall(answer_of(key, state)[:-1])
    said = unavailable(peer(changed)[0]), unavailable(peer(shorter)[0])
    point("not made with the job's token" in said[0] and "it broke off after" in said[1], "a state that is changed or cut off on the way is refused", said)
    said = unavailable(peer(lambda c, k, _: c.sendall(answer_of(k, state, 3)))[0]), unavailable(peer(lambda c, k, _: c.sendall(answer_of(k, state, 1 << 60)))[0])
    point("more than the 3 bytes" in said[0] and "memory" in said[1], "a state that is longer than announced, and one beyond this host's memory, are refused", said)


ENDLESS = r"""
import sys
sys.path[:0] = sys.argv[1:2]
from saina import peer_state

def peak():     # of this process; ru_maxrss is that of its parent, too
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) >> 10 for line in f if line.startswith("VmHWM"))

before = peak()
for port in map(int, sys.argv[2:]):
    try:
        peer_state.fetch(("127.0.0.1", port), "s3cret")
    except peer_state.Unavailable:
        pass
    print(peak() - before, flush=True)
"""


def endless():
    """Who answers in a peer's place sends 96 MiB: the rank that asks keeps none of it."""
    chunk = bytes(1 << 20)

    def sends(head):
        def answer(connection, _key, _request):
            connection.sendall(head)
            for _ in range(96):
                connection.sendall(chunk)
        return peer(answer)[0][1]
    known = record(proof(b"other", b"x"), 0, b"y")
    heads = {"a body": b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % (1 << 40), "a line": b"", "a header": b"HTTP/1.0 200 OK\r\nX: ",
             "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n", "a record of 4 GiB": b"\xff\xff\xff\xff",
             "the longest record": struct.pack("<I", 1 << 20), "a record of another secret": known}
    ports = [str(sends(head)) for head in heads.values()]
    found = subprocess.run([sys.executable, "-c", ENDLESS, sys.path[0], *ports], capture_output=True, timeout=300, check=False)
    grown = list(map(int, found.stdout.split()))
    point(len(grown) == len(heads) and max(grown) < 16, "a peer that does not know the secret and sends without end ("
          + ", ".join(heads) + "): the rank's memory does not grow", f"{grown} MiB, {found.stderr.decode()[-500:]}")


def reset(connection, *_):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def half(connection, key, _):
    connection.sendall(record(key, 0, b"y") + record(key, 1, b"0" + struct.pack("<Q", 2000)) + record(key, 2, bytes(1000)))


def silent(*_):
    time.sleep(30)


def slow(connection, key, _):
    connection.sendall(record(key, 0, b"y") + record(key, 1, b"0" + struct.pack("<Q", 10000)) + struct.pack("<I", 10000))
    while True:
        connection.sendall(b"x")
        time.sleep(0.02)


def drip(connection, *_):
    """Never proves anything, a byte at a time."""
    connection.sendall(struct.pack("<I", 1000))
    while True:
        connection.sendall(b"x")
        time.sleep(0.02)


def take(peers):
    """fetch_any() of @peers; only the model "ours" fits.  Returns the rank or the error, and the models of the states."""
    seen = []

    def use(state):
        seen.append(state["model"])
        if state["model"] != "ours":
            raise ValueError("weight of the model is (3,) on this rank and (4,) on the other one")
    try:
        return fetch_any(peers, SECRET, use), seen
    except (Unavailable, Unfit) as e:
        return e, seen


def peers_that_fail():
    from saina import peer_link     # pylint: disable=import-outside-toplevel
    was = peer_link.NONCE_S, peer_link.STATE_S, peer_state._PAUSE_S
    peer_link.NONCE_S, peer_link.STATE_S, peer_state._PAUSE_S = 0.5, 0.5, 0.05
    bad = [peer(answer) for answer in (reset, half, silent, slow, drip)]
    peers = [(w, where) for w, (where, _) in enumerate(bad)]
    servers = [Server("127.0.0.1", SECRET, lambda model=model: {"model": model}) for model in ("theirs", "theirs", "ours")]
    other, another, good = [(w, server.where) for w, server in zip((5, 6, 7), servers)]

    taken, seen = take(peers + [other, good])
    point(taken == 7 and seen == ["theirs", "ours"] and [len(asked) for _, asked in bad] == [1] * 5,
          "peers that reset, close after half, never answer, are too slow, or have another model: the next one's state is taken", taken)
    for _, asked in bad:
        asked.clear()
    taken, seen = take(peers + [other])
    said = str(taken)
    point(isinstance(taken, Unavailable) and [part.split(":")[0] for part in said.split("; ")] == [f"rank {w}" for w in range(6)] and
          "rank 0: ConnectionResetError" in said and "rank 1: it broke off after 1000 of 2000 bytes" in said and
          "rank 2: it has not answered for 0.5 s" in said and "rank 3: it is too slow" in said and "rank 5: weight of the model" in said,
          "if no peer gives its state, the reason of each is named", said)
    asked = [len(asked) for _, asked in bad]
    point(asked == [peer_state.TRIES, peer_state.TRIES, 1, 1, 1] and seen == ["theirs"],
          "if no peer gives its state: a bounded number of requests, one to peers that are silent, slow or of another model", f"{asked} {seen}")
    pauses = [b - a for a, b in zip(bad[0][1], bad[0][1][1:])]
    point(len(pauses) > 1 and all(pause >= 0.05 * 2 ** i for i, pause in enumerate(pauses)), "if no peer gives its state: pauses between requests that double", pauses)
    taken, seen = take([other, another])
    point(isinstance(taken, Unfit) and str(taken).count("weight of the model") == 2 and seen == ["theirs"] * 2,
          "if no peer's model fits, that is another error", taken)
    point("none is known" in str(take([])[0]), "without peers there is a sentence, too", take([])[0])
    states = [{"model": "ours"}, Unavailable("it reached no step boundary within 40 s"), Unavailable("it reached no step boundary within 40 s")]

    def later():
        state = states.pop()
        if isinstance(state, Unavailable):
            raise state
        return state
    servers.append(Server("127.0.0.1", SECRET, later))
    taken, _ = take([(1, servers[-1].where)])
    point(taken == 1 and not states, "a peer that has no state yet is asked again", taken)
    for server in servers:
        server.close()
    peer_link.NONCE_S, peer_link.STATE_S, peer_state._PAUSE_S = was


def odd_states():
    """States that are none, of peers that know the secret: the next peer is asked."""
    bodies = {"no bytes": b"", "no text": struct.pack("<Q", 1 << 63), "no JSON": struct.pack("<Q", 2) + b"{[", "a list": struct.pack("<Q", 8) + b'["l",[]]',
              "a text": struct.pack("<Q", 9) + b'["v","x"]', "a key that is a list": struct.pack("<Q", 28) + b'["d",[[["l",[]],["v",1]]]]  '}
    bad = [(w, peer(lambda c, k, _, body=body: c.sendall(answer_of(k, body) if body else answer_of(k, b"")[:-36]))[0]) for w, body in enumerate(bodies.values())]
    with serving({"model": "ours"}) as (where, _):
        taken = []
        for which in bad:
            with contextlib.suppress(Unavailable, Unfit):
                taken.append(fetch_any([which, (9, where)], SECRET, lambda state: state["model"]))
    point(taken == [9] * len(bad), "what is no state (" + ", ".join(bodies) + "): the next rank's is taken", taken)

    def use(state):
        return state["model"] + 1       # a TypeError
    said = ""
    with serving({"model": "theirs"}) as (where, _):
        try:
            fetch_any([(4, where)], SECRET, use)
        except Unfit as e:
            said = str(e)
    point(said.startswith("rank 4: ") and "TypeError" in said, "an error of any kind about a peer's state: it does not fit, and the peer is named", said)


def client_that_resets():
    """It asks for a large state and reads none of it: the server's rank has no traceback on its terminal."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), serving({"text": "x" * (1 << 23)}) as (where, served):
        before = threads()
        with socket.create_connection(where) as client:
            reset(client)
            client.sendall(ask_of(where, secrets.token_bytes(16)))
            client.recv(1)
        good = until(lambda: threads() <= before)
        point(good and not said.getvalue(), "a client that resets the connection while it is served leaves no traceback", said.getvalue())
        point(len(fetch(where, SECRET)["text"]) == 1 << 23 and len(served) == 2, "after a client that resets the connection the next one is served")


handshake()
floods()
slow_transfer()
impostors()
endless()
odd_states()
client_that_resets()
if sys.argv[1:] == ["all"]:
    peers_that_fail()
tap.end()
