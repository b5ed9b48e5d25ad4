#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The transfer of a state from rank to rank, without a job: its bytes (state_format.py), and who gets it (peer_state.py).
Also where gradients lie in buckets, and how many of these a model can have (buckets.py), what is kept of gradients (residuals.py,
accumulated.py), when a State warns about late ones (late_rule.py), and which refusals mean that a job is too small (torch.py).  TAP.

Skipped where python3 has no torch.
"""

import contextlib
import errno
import hmac
import http.client
import io
import json
import os
import random
import socket
import struct
import sys
import threading
import time
import types
import warnings

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.environ.get("SAINA_BUILD", TOP + "/build"), "python"), TOP + "/selftests/lib"]
os.environ.setdefault("SAINA_LIBRARY", os.path.join(os.environ.get("SAINA_BUILD", TOP + "/build"), "libsaina.so.0"))
try:
    import numpy
    import torch
except ImportError:
    print("1..0 # SKIP python3 has no torch")
    sys.exit(4)

# pylint: disable=wrong-import-position
from saina import Error, peer_state
from saina.accumulated import Accumulated
from saina.buckets import Bucket, Known, Memory, Started, most_buckets, repack, repacked, set_gradients, signature, strides_of
from saina.late_rule import LateRule
from saina.membership import group_secret
from saina.recovery import Recovery
from saina.peer_state import Server, Unavailable, Unfit, fetch, fetch_any
from saina.residuals import Residuals, unit
from saina.state_format import decode, encode
from saina.torch import _has_too_few
from saina.transfer import Transfer
from tap import Tap

tap = Tap("python_state: ")
point = tap.point
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128, torch.int64, torch.int32,
          torch.int16, torch.int8, torch.uint8, torch.bool]


def same(a, b):
    """Types, shapes and bits; a NaN is what it was."""
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and \
            a.contiguous().reshape(-1).view(torch.uint8).tolist() == b.contiguous().reshape(-1).view(torch.uint8).tolist()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b or a != a and b != b


def unreadable(data):
    """decode() of @data: the sentence of its ValueError, "" if it succeeds, the name and text of another error."""
    try:
        decode(data)
    except ValueError as e:
        return "ValueError: " + str(e)
    except Exception as e:      # pylint: disable=broad-except
        return f"{type(e).__name__}: {e}"
    return ""


def refused(data):
    return unreadable(data).startswith("ValueError: its state cannot be read")


def body(text, elements=b""):
    """The bytes of a state whose text is @text, or the JSON of it."""
    text = text if isinstance(text, bytes) else json.dumps(text).encode()
    return struct.pack("<Q", len(text)) + text + elements


def round_trips():
    for dtype in DTYPES:
        generator = torch.Generator().manual_seed(1)
        many = (torch.randn(7, 5, generator=generator) * 50).to(dtype)
        cases = {"0-d": many[3, 3], "empty": many[:0], "of shape (0, 3)": torch.empty(0, 3, dtype=dtype), "two-dimensional": many,
                 "not contiguous": many.t()[:, 1:4]}
        wrong = [what for what, t in cases.items() if not same(decode(encode({"t": t}))["t"], t)]
        point(not wrong, f"{str(dtype)[6:]}: 0-d, empty, matrices and views come back to the bit", wrong)
    odd = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 1e-45])
    point(same(decode(encode(odd)), odd), "NaN, infinities, -0 and denormals come back to the bit")
    value = {"a": [1, -2**70, 1.5, True, None, "ä\n"], 3: {"b": (torch.ones(2), (), [], {})}, None: float("inf"), 0.1: float("nan")}
    point(same(decode(encode(value)), value), "numbers, strings, None, lists, tuples and dictionaries with their keys come back",
          decode(encode(value)))
    module = torch.nn.Linear(3, 2)
    opt = torch.optim.Adam(module.parameters())
    module(torch.ones(3)).sum().backward()
    opt.step()
    point(same(decode(encode(opt.state_dict())), opt.state_dict()), "the state of an optimizer comes back")
    try:
        encode({"f": print})
        point(False, "a function is not encoded")
    except TypeError as e:
        point("cannot be transferred" in str(e), "a function is not encoded: a sentence", e)


def malformed():
    good = encode({"t": torch.arange(6.0).reshape(2, 3), "n": [1, 2.5, "x"], "e": torch.zeros(0)})
    taken = [n for n in range(len(good)) if not refused(good[:n])]
    point(not taken, f"each of {len(good)} truncations is refused", taken)
    other = []
    for at in range(len(good)):
        for mask in (0xff, 0x01, 0x10):
            data = bytearray(good)
            data[at] ^= mask
            said = unreadable(bytes(data))
            if said and not said.startswith("ValueError: its state cannot be read"):
                other.append((at, mask, said))
    point(not other, "a corrupted byte gives other numbers or ValueError, no other error", other[:3])
    bodies = {"an unknown tag": ["q", 1], "a type that is not one": ["x", "zeros", [1], 4], "a hidden name of torch": ["x", "__dict__", [1], 4],
              "a name with a dot": ["x", "os.system", [1], 4], "another tag with a type's name": ["y", "float32", [1], 4],
              "more elements than there are": ["x", "float32", [2], 8], "a shape that does not fit": ["x", "float32", [3], 4],
              "half an element": ["x", "float32", [1], 3], "a negative length": ["x", "float32", [1], -4],
              "a length that is text": ["x", "float32", [1], "4"], "a shape that is text": ["x", "float32", "1", 4],
              "a dictionary with a list for a key": ["d", [[["l", []], ["v", 1]]]], "no list": 5, "an empty list": [], "a text alone": "v"}
    wrong = {what: unreadable(body(text, b"\0\0\0\0")) for what, text in bodies.items() if not refused(body(text, b"\0\0\0\0"))}
    point(not wrong, f"{len(bodies)} texts that encode() does not write are refused", wrong)
    deep = b'["l",[' * 200000 + b"]]" * 200000
    point(refused(body(deep)), "a text that is nested too deeply is refused", unreadable(body(deep))[:200])
    point(refused(body(b"\xff\xfe")) and refused(struct.pack("<Q", 2**63)), "no JSON, and a length beyond the end, are refused")
    # Reading runs nothing: neither a pickle, nor a name in the text.
    pickle = b"\x80\x04cposix\nsystem\n(X\x05\0\0\0falsetR."
    ran = []
    sys.addaudithook(lambda event, _: ran.append(event) if event in ("os.system", "exec", "pickle.find_class", "subprocess.Popen") else None)
    point(refused(pickle) and refused(body(pickle)) and refused(body(["x", "load", [1], 4], b"\0\0\0\0")) and not ran,
          "a pickle is refused, and none of it runs", ran)


@contextlib.contextmanager
def serving(token):
    served = []

    def snapshot():
        served.append(1)
        return {"weight": torch.arange(4.0), "rounds": 7}
    server = Server("127.0.0.1", token, snapshot)
    try:
        yield server.where, served
    finally:
        server.close()


def unavailable(where, token):
    try:
        fetch(where, token)
    except Unavailable as e:
        return str(e)
    return ""


def get(where, path):
    connection = http.client.HTTPConnection(*where, timeout=30)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def mac(token, *parts):
    """As peer_state.py makes it: each part after its length, SHA-256."""
    text = b"".join(struct.pack("<Q", len(p)) + p for p in parts)
    return hmac.new(token.encode(), text, "sha256").hexdigest()


def handshake():
    with serving("s3cret") as (where, served):
        found = fetch(where, "s3cret")
        point(same(found, {"weight": torch.arange(4.0), "rounds": 7}) and len(served) == 1, "who has the token gets the state", found)
        point(all("wrong token" in unavailable(where, t) for t in ("other", "", "s3cret ")) and len(served) == 1,
              "who has another token, or none, is refused, and no state is made for it", served)
        nonce = get(where, "/nonce")[1].decode()
        path = f"/state?nonce={nonce}&mine=c&mac=" + mac("s3cret", b"state", nonce.encode(), b"c")
        first, second = get(where, path), get(where, path)
        point(first[0] == 200 and second == (403, b"wrong token, or wrong secret of the process group") and len(served) == 2,
              "a request that is sent again is refused: a nonce is good for one", (first[0], second))
        nonce = get(where, "/nonce")[1].decode()
        answers = [get(where, f"/state?nonce={nonce}&mine=c&mac=" + mac("other", b"state", nonce.encode(), b"c"))[0],
                   get(where, f"/state?nonce={nonce}&mine=c&mac=" + mac("s3cret", b"state", nonce.encode(), b"c"))[0]]
        point(answers == [403, 403], "the right request is refused after a wrong one with its nonce", answers)
        answers = [get(where, path)[0] for path in ("/state", "/state?nonce=x&mine=c&mac=" + mac("s3cret", b"state", b"x", b"c"), "/", "/../state")]
        nonce = get(where, "/nonce")[1].decode()
        answers.append(get(where, f"/state?nonce={nonce}&mine=d&mac=" + mac("s3cret", b"state", nonce.encode(), b"c"))[0])
        nonce = get(where, "/nonce")[1].decode()
        answers.append(get(where, f"/state?nonce={nonce}&mine=d&mac=%C3%A4")[0])
        point(answers == [403] * 6 and len(served) == 2,
              "no nonce, a nonce of one's own, other paths, another client's nonce and a HMAC of other letters are refused", answers)


def peer(state):
    """A peer that gives any nonce; state(connection) answers the request for its state.  Returns its address and port, and a
    list of the times at which its state was asked for."""
    listening, asked = socket.create_server(("127.0.0.1", 0)), []

    def answer(connection):
        with connection:
            request = b""
            while b"\r\n\r\n" not in request:
                request += connection.recv(65536)
            if request.startswith(b"GET /nonce"):
                connection.sendall(head_of(32) + b"00" * 16)
            else:
                asked.append(time.monotonic())
                state(connection)

    def serve():
        while True:
            threading.Thread(target=answer, args=listening.accept()[:1], daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()
    return listening.getsockname(), asked


def head_of(length, head=""):
    return f"HTTP/1.0 200 OK\r\nContent-Length: {length}\r\nX-Saina-Mac: {head}\r\n\r\n".encode("latin-1")


def impostor(head, content):
    """A server that does not know the token, and answers @content with the HMAC @head."""
    return peer(lambda connection: connection.sendall(head_of(len(content), head) + content))[0]


def impostors():
    state = encode({"weight": torch.zeros(4)})
    for what, head in (("no HMAC", ""), ("an HMAC of another token", mac("other", b"body", b"", state)),
                       ("an HMAC that is not ASCII-hex", "zz" * 32), ("an HMAC that is not ASCII", "\xe4" * 64)):
        said = unavailable(impostor(head, state), "s3cret")
        point("not made with the job's token" in said, f"a peer that answers with {what} is refused", said)
    # An answer to another request, made with the token.
    said = unavailable(impostor(mac("s3cret", b"body", b"0" * 32, state), state), "s3cret")
    point("not made with the job's token" in said, "an answer that was made for another request is refused", said)


def group():
    """The secret of a process group of one rank."""
    point(group_secret(3, 1) == "", "without a process group there is no secret")
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    found = [group_secret(job, workers) for job, workers in ((3, 1), (3, 1), (4, 1), (3, 2))]
    torch.distributed.destroy_process_group()
    point(len(found[0]) == 32 and found[0] == found[1] != found[2] and found[3] == "",
          "a process group of all ranks of a job has one secret for it, a smaller one has none", found)


def at_rest():
    """When a State is copied for a peer: only at rest."""
    state = Recovery()
    state._recovery_init()
    state._position = lambda: {"round": 5}
    model = torch.nn.Linear(2, 2)
    state._transfer = Transfer([model])
    state._transfer.mark()
    idle = {"_in_round": False, "_in_step": False, "_failed": None, "_stale": False, "_since_join": 2, "_last_end": 0.0, "_rounds": 7,
            "_stepped": True}

    def rest(**how):
        vars(state).update(idle, **how)
        return state._at_rest()
    busy = {"_in_round": True, "_in_step": True, "_failed": Unavailable("step() raised"), "_stale": True, "_since_join": 1,
            "_last_end": time.monotonic(), "_stepped": False}
    copied = [k for k, v in busy.items() if rest(**{k: v})]
    point(rest() == (7, {"round": 5}) and not copied,
          "a State is copied at rest, but not in a round, in step(), when it has failed, is too far behind or has just begun, or "
          "before the step of its last round", copied)
    with torch.no_grad():
        model.bias += 1
    point(rest(_stepped=False) == (7, {"round": 5}), "an ordinary loop has made its step when its parameters have changed")


class Refusing:
    """Loads half of a state, and refuses the rest."""

    def __init__(self):
        self.state = {"a": 1, "b": 2}

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state["a"] = state["a"]
        if state["b"] != 2:
            raise KeyError("b")


def loads():
    """Transfer.load() changes all objects, or none."""
    def objects(width=2, groups=1):
        model = torch.nn.Linear(2, width)
        opt = torch.optim.SGD([{"params": [p]} for p in model.parameters()] if groups == 2 else model.parameters(), lr=0.1, momentum=0.9)
        model(torch.ones(2)).sum().backward()
        opt.step()
        return [model, opt, torch.optim.lr_scheduler.StepLR(opt, 10), Refusing()]

    mine = objects()
    transfer = Transfer(mine)

    def load(theirs):
        """(the sentence of its ValueError, whether the objects are as before)"""
        was, said = encode(transfer.copy({})), ""
        try:
            transfer.load(Transfer(theirs).copy({}))
        except ValueError as e:
            said = str(e)
        return said, encode(transfer.copy({})) == was
    theirs = objects(3)
    found = load(theirs)
    point(found == ("weight of the model is (2, 2) on this rank and (3, 2) on the other one", True),
          "a model of another shape is refused with a sentence, and nothing is changed", found)
    theirs = objects(groups=2)
    found = load(theirs)
    point(found[0].startswith("SGD: ") and "parameter groups" in found[0] and found[1],
          "an optimizer that refuses: a sentence, and the model is as before", found)
    theirs = objects()
    theirs[1].param_groups[0]["lr"], theirs[3].state = 0.5, {"a": 7, "b": 8}
    found = load(theirs)
    point(found == ("Refusing: 'b'", True), "an object that refuses when it is half loaded: all objects are as before", found)
    theirs[3].state["b"] = 2
    point(load(theirs) == ("", False) and encode(transfer.copy({})) == encode(Transfer(theirs).copy({})), "a state that fits is loaded whole")


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def half(connection):
    connection.sendall(head_of(2000) + bytes(1000))


def silent(_):
    time.sleep(30)


def slow(connection):
    with contextlib.suppress(OSError):
        connection.sendall(head_of(10000))
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
        return fetch_any(peers, "s3cret", use), seen
    except (Unavailable, Unfit) as e:
        return e, seen


def peers_that_fail():
    peer_state.NONCE_S, peer_state.STATE_S, was = 0.5, 0.5, (peer_state.NONCE_S, peer_state.STATE_S, peer_state._PAUSE_S)
    peer_state._PAUSE_S = 0.05
    bad = [peer(state) for state in (reset, half, silent, slow)]
    peers = [(w, where) for w, (where, _) in enumerate(bad)]
    servers = [Server("127.0.0.1", "s3cret", lambda model=model: {"model": model}) for model in ("theirs", "theirs", "ours")]
    other, another, good = [(w, server.where) for w, server in zip((4, 5, 6), servers)]

    taken, seen = take(peers + [other, good])
    point(taken == 6 and seen == ["theirs", "ours"] and [len(asked) for _, asked in bad] == [1] * 4,
          "peers that reset, close after half, never answer, are too slow, or have another model: the next one's state is taken", taken)
    for _, asked in bad:
        asked.clear()
    began = time.monotonic()
    taken, seen = take(peers + [other])
    took, said = time.monotonic() - began, str(taken)
    point(isinstance(taken, Unavailable) and [part.split(":")[0] for part in said.split("; ")] == [f"rank {w}" for w in range(5)] and
          "rank 0: ConnectionResetError" in said and "rank 1: it broke off after 1000 of 2000 bytes" in said and
          "rank 2: it has not answered for 0.5 s" in said and "rank 3: it is too slow" in said and "rank 4: weight of the model" in said,
          "if no peer gives its state, the reason of each is named", said)
    asked = [len(asked) for _, asked in bad]
    point(asked == [peer_state.TRIES, peer_state.TRIES, 1, 1] and seen == ["theirs"] and took < 25,
          "if no peer gives its state: a bounded number of requests, one to peers that are silent, slow or of another model", f"{asked} {seen} {took:.1f} s")
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
    servers.append(Server("127.0.0.1", "s3cret", later))
    taken, _ = take([(1, servers[-1].where)])
    point(taken == 1 and not states, "a peer that has no state yet is asked again", taken)
    for server in servers:
        server.close()
    peer_state.NONCE_S, peer_state.STATE_S, peer_state._PAUSE_S = was


def client_that_resets():
    """It asks for a large state and reads none of it: the server's rank has no traceback on its terminal."""
    server, said = Server("127.0.0.1", "s3cret", lambda: {"weight": torch.zeros(1 << 22)}), io.StringIO()
    ended = threading.Event()
    with contextlib.redirect_stderr(said):
        shutdown = server._http.shutdown_request
        server._http.shutdown_request = lambda request: (shutdown(request), ended.set())
        nonce = get(server.where, "/nonce")[1].decode()
        ended.wait(30)
        ended.clear()
        with socket.create_connection(server.where) as client:
            reset(client)
            client.sendall(f"GET /state?nonce={nonce}&mine=c&mac={mac('s3cret', b'state', nonce.encode(), b'c')} HTTP/1.0\r\n\r\n".encode())
            client.recv(1)
        good = ended.wait(30)
    point(good and not said.getvalue(), "a client that resets the connection while it is served leaves no traceback", said.getvalue())
    point(fetch(server.where, "s3cret")["weight"].numel() == 1 << 22, "after a client that resets the connection the next one is served")
    server.close()


DROP = 0x10


def warned(optimizer, late, flags=0, rounds=100):
    """The warnings of a State in @rounds rounds of 10 segments, of which @late(round) are late; -1: the round is skipped."""
    worker = types.SimpleNamespace(info=lambda: types.SimpleNamespace(job=7), segment=lambda _: types.SimpleNamespace(flags=flags))
    rule = LateRule(worker, lambda: [optimizer])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for i in range(rounds):
            n = late(i)
            # Two buckets.
            rule.round_add([types.SimpleNamespace(segments=5, late_segments=part) for part in (n // 2, n - n // 2)] if n >= 0 else [])
    return [str(w.message) for w in said]


def late_rule():
    """Late gradients that are kept, and momentum."""
    parameters = [torch.nn.Parameter(torch.zeros(3))]
    sgd, heavy = torch.optim.SGD(parameters, lr=0.1), torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    said = warned(heavy, lambda i: 10 * (i % 2))
    point(len(said) == 1 and "10% were late" in said[0] and "SGD has momentum" in said[0] and "`saina job set 7 policy POLICY,late=drop'" in said[0],
          "late gradients that are kept, and momentum: one warning with the reason and the command", said)
    with_momentum = [torch.optim.Adam(parameters), torch.optim.AdamW(parameters), torch.optim.NAdam(parameters),
                     torch.optim.RMSprop(parameters, momentum=0.5)]
    silent = [type(o).__name__ for o in with_momentum if len(warned(o, lambda i: 10)) != 1]
    point(not silent, "Adam, AdamW, NAdam, and RMSprop with momentum: one warning each", silent)
    without = [sgd, torch.optim.RMSprop(parameters), torch.optim.Adagrad(parameters), torch.optim.Adam(parameters, betas=(0.0, 0.999))]
    loud = [said for o in without for said in warned(o, lambda i: 10)]
    point(not loud, "no momentum: no warning, however much is late", loud)
    point(not warned(heavy, lambda i: 10, DROP), "late=drop: no warning")
    point(not warned(heavy, lambda i: 10 * (i < 9)) and warned(heavy, lambda i: 10 * (i < 10)),
          "from 10 late rounds of the last 100 on there is a warning, with 9 there is none")
    point(not warned(heavy, lambda i: 10 * (i % 12 == 0), rounds=600), "9 late rounds of each 100: no warning in 600 rounds")
    point(not warned(heavy, lambda i: 1 * (i % 2), rounds=600) and warned(heavy, lambda i: 3 * (i % 2), rounds=600),
          "a round counts by its segments: 3 of 10 late in every second round give the warning, 1 of 10 does not")
    point(not warned(heavy, lambda i: -1) and not warned(heavy, lambda i: 10 if i % 12 == 0 else -1, rounds=600),
          "rounds that the rank skipped are not late gradients")

    def schedule(i):
        sgd.param_groups[0]["momentum"] = 0.9 * (i >= 50)
        return 10
    point(len(warned(sgd, schedule)) == 1, "momentum that a scheduler sets later gives the warning then")


def too_few():
    """Which refusals of a join mean that the job is too small."""
    point(_has_too_few(Error(errno.EMSGSIZE, "job d has 100 elements; worker 1 asks for 200")), "a job with too few elements: too small")
    point(not _has_too_few(Error(errno.EMSGSIZE, "interface eth0 has MTU 100, job 7 sends packets of 332 bytes: raise the MTU")) and
          not _has_too_few(Error(errno.EACCES, "wrong token")), "a small MTU, and a wrong token: the job is not too small")


def buckets():
    """most_buckets() beside what PyTorch makes of random models whose gradients come in any order."""
    rng = random.Random(16)
    few, spare, worst = [], [], ""
    for attempt in range(400):
        sizes = [rng.choice((1, 10, 300, 4000, 60000, 400000)) * rng.randint(1, 9) for _ in range(rng.randint(1, 40))]
        parameters = [torch.empty(n, device="meta") for n in sizes]
        cap = rng.choice((1 << 10, 1 << 16, 1 << 20, 25 << 20))
        default = rng.random() < 0.5
        model = types.SimpleNamespace(bucket_bytes_cap=cap, bucket_bytes_cap_default=default)
        limits = [torch.distributed._DEFAULT_FIRST_BUCKET_BYTES if default else cap, cap]
        most = most_buckets(parameters, model)
        made = []
        for _ in range(5):
            order = rng.sample(parameters, len(parameters))
            made.append(len(torch.distributed._compute_bucket_assignment_by_size(order, limits)[0]))
        if max(made) > most:
            few.append((attempt, made, most))
        # What a job gets more than the worst of these orders needs, of segments of 352 elements.
        if (most - max(made)) * 352 > max(made) * 352 + 0.05 * sum(sizes):
            spare.append((attempt, made, most, cap))
    point(not few, "buckets: never fewer than PyTorch makes, in 2000 orders of 400 models", few[:3])
    point(len(spare) < 4, "buckets: a job gets at most 5 % and a segment for each bucket more than it needs, in 99 % of them", spare[:5])
    one = [torch.empty(1000), torch.empty(10)]
    point(most_buckets(one, types.SimpleNamespace(bucket_bytes_cap=25 << 20)) == 1, "buckets: 1010 parameters are in one")
    point(most_buckets(one, None) == 2, "buckets: 1010 parameters of a model that is not known here are in two at most")


def forms():
    """Parameters of one value in several memory layouts."""
    value = torch.arange(240, dtype=torch.float32).view(2, 3, 4, 10)
    gaps = torch.zeros(2, 3, 4, 20)[..., ::2]
    yield "contiguous", value.clone()
    yield "channels_last", value.contiguous(memory_format=torch.channels_last)
    yield "transposed", value.permute(3, 1, 0, 2).contiguous().permute(2, 1, 3, 0)
    yield "with gaps", gaps.copy_(value)


def layouts():
    """Elements of a bucket and of a parameter, as DistributedDataParallel lays them out."""
    found = {name: torch.nn.Parameter(x) for name, x in forms()}
    first = found["contiguous"]
    memory = {name: Bucket.of([p]) for name, p in found.items()}
    # Dense ones lie as in memory, the others are contiguous.
    wrong = [name for name, p in found.items() if name != "with gaps" and
             not torch.equal(next(memory[name].views(p.detach().as_strided((240,), (1,))))[1], first)]
    point(not wrong and memory["with gaps"].strides == memory["contiguous"].strides, "dense parameters lie in a bucket as in memory, others are contiguous", wrong)
    point(strides_of(torch.zeros(4, 1, 3, 1).contiguous(memory_format=torch.channels_last)) == strides_of(torch.zeros(4, 1, 3, 1)),
          "the stride of a dimension of one element means nothing")
    for name, p in list(found.items()) + [("expanded", torch.nn.Parameter(torch.ones(5, 1).expand(5, 4)))]:
        of = Bucket.of([p])
        data = torch.zeros(3 + of.numel)[3:]        # not at the beginning of its memory
        want = torch.arange(of.numel, dtype=torch.float32).view(p.shape)
        next(of.views(data))[1].copy_(want)
        set_gradients([Started(of, data, None)])
        alone = p.detach().clone().requires_grad_() if name == "with gaps" else p
        made, p.grad = p.grad, None
        (alone * want).sum().backward()
        point(torch.equal(made, want) and (name == "with gaps" or made.stride() == alone.grad.stride()),
              f"a gradient of a lost round has the elements and strides that autograd gives it: {name}", f"{made.stride()} {alone.grad.stride()}")
        p.grad = None
    sent = Started(memory["channels_last"], torch.rand(240), None)
    there = repacked([sent._replace(base=sent.tensor * 2)], [memory["channels_last"]._replace(strides=memory["transposed"].strides)])
    back = Started(memory["channels_last"], torch.zeros(240), torch.futures.Future())
    repack(there, [back])
    point(torch.equal(back.future.wait(), sent.tensor) and not torch.equal(there[0].tensor, sent.tensor) and torch.equal(there[0].base, there[0].tensor * 2),
          "a gradient goes to the layout of other ranks and back, where its strides are others")
    signatures = [signature([b]) for name, b in memory.items() if name != "with gaps"]
    point(len(set(signatures)) == 3 and signatures[0] == signature([memory["with gaps"]]), "the signature of a layout says how parameters lie in memory")


def keeps():
    """What is kept of late gradients belongs to parameters: it moves with them, waits for those that are in no bucket, and has a unit."""
    kept = numpy.zeros(3000, numpy.float32)

    def put(at, x):
        kept[at:at + x.numel()] = x.numpy()
    worker = types.SimpleNamespace(info=lambda: types.SimpleNamespace(payload=100), residual=lambda at, n: kept[at:at + n].copy(), set_residual=put)
    residuals = Residuals(worker, 100)
    p, q = torch.nn.Parameter(torch.zeros(2, 3, 4, 10)), torch.nn.Parameter(torch.zeros(7))
    turned = Bucket.of([torch.zeros(2, 3, 4, 10).contiguous(memory_format=torch.channels_last)]).strides
    both, alone, other = [Bucket.of([q, p])], [Bucket.of([q])], [Bucket([p], turned, 240), Bucket.of([q])]
    residuals.use_unit(both, 8.0)
    kept[100:347] = numpy.arange(1, 248)
    residuals.move(both, alone)
    point((kept[100:107] == numpy.arange(1, 8)).all() and not kept[107:].any(), "a parameter that is frozen keeps nothing in the job")
    residuals.use_unit(alone, 2.0)
    point((kept[100:107] == numpy.arange(1, 8) / 4).all(), "what is kept is converted when the scale changes")
    residuals.move(alone, other)
    was = (torch.arange(8, 248, dtype=torch.float32) / 4).view(p.shape)
    point(torch.equal(next(other[0].views(torch.from_numpy(kept[100:340].copy())))[1], was) and (kept[400:407] == numpy.arange(1, 8) / 4).all(),
          "a parameter that is thawed gets back what was kept of it, in the present scale and memory format")
    kept[100] = 1e38
    residuals.use_unit(other, 2e8)
    point(numpy.isfinite(kept).all() and kept[100] > 3.4e38, "what is kept stays finite")
    scaler = types.SimpleNamespace(get_scale=lambda: 1024.0)
    refused = 0
    for bad in (0.0, -1.0, float("inf"), float("nan")):
        try:
            unit(bad, [scaler])
        except ValueError:
            refused += 1
    point(unit(4.0, [scaler]) == 4096.0 and refused == 4, "the unit of gradients is the product of the scales, and finite")


def watched():
    """What a gradient had before a rank added to it."""
    p = torch.nn.Parameter(torch.zeros(3))
    of, seen = Bucket.of([p]), Accumulated()

    def base():
        return seen.base(of, p.grad.flatten())
    p.sum().backward()
    first = base()
    seen.watch([p])
    seen.clear()
    p.sum().backward()
    point(first is None and torch.equal(base(), torch.ones(3)), "of a sum over rounds the part before this rank's backward is known")
    p.sum().backward()
    point(torch.equal(base(), torch.ones(3)), "a second backward in the round adds nothing to that part")
    for what, drop in (("0", lambda: p.grad.zero_()), ("None", lambda: setattr(p, "grad", None))):
        drop()
        p.sum().backward()
        point(base() is None, f"after zero_grad() (grad {what}) in the round nothing was there")
        seen.clear()
        p.sum().backward()
    seen.clear()
    point(torch.equal(base(), p.grad), "a gradient that nothing was added to is that part")
    seen.unwatch()
    point(not p._backward_hooks, "a State that is closed watches no parameters")


def whose():
    """Whether gradients are of a State's model; whether buckets are those of the step before."""
    a, b, c = (torch.nn.Parameter(torch.zeros(2)) for _ in range(3))
    known = Known()
    known.add([a, b])
    known.check([b, c])
    try:
        known.check([c])
        said = ""
    except Error as e:
        said = str(e)
    known.add([b, c])
    known.check([c])
    point("belong to another model" in said, "parameters of which none is known are of another model", said)
    memory, first, rebuilt = Memory(), [torch.zeros(2)], [torch.zeros(2), torch.zeros(3)]
    rounds = []
    for buffers in (first, rebuilt, rebuilt, first, first, first):
        memory.computed(buffers)
        rounds.append(memory.rounds)
    point(rounds == [1, 2, 2, 1, 2, 2] and memory.has(0, first[0]) and not memory.has(0, torch.zeros(2)) and not memory.has(1, rebuilt[1]),
          "buckets are final in the second round of a DistributedDataParallel", rounds)


round_trips()
malformed()
layouts()
keeps()
watched()
whose()
handshake()
impostors()
group()
at_rest()
loads()
peers_that_fail()
client_that_resets()
late_rule()
too_few()
buckets()
tap.end()
