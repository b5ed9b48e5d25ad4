#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A state on its way from rank to rank, without a job: its bytes (state_format.py), and who gets it (peer_state.py).  TAP.

Skipped where python3 has no torch.
"""

import contextlib
import hmac
import http.client
import json
import os
import socket
import struct
import sys
import threading

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ.get("SAINA_BUILD", TOP + "/build"), "python"))
os.environ.setdefault("SAINA_LIBRARY", os.path.join(os.environ.get("SAINA_BUILD", TOP + "/build"), "libsaina.so.0"))
try:
    import torch
except ImportError:
    print("1..0 # SKIP python3 has no torch")
    sys.exit(0)

# pylint: disable=wrong-import-position
from saina.peer_state import Server, Unavailable, fetch
from saina.state_format import decode, encode

count = bad = 0
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128, torch.int64, torch.int32,
          torch.int16, torch.int8, torch.uint8, torch.bool]


def point(good, text, why=""):
    global count, bad
    count += 1
    bad += not good
    print(f"{'ok' if good else 'not ok'} {count} - python_state: {text}")
    if why and not good:
        print("# " + str(why).replace("\n", "\n# "))


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
    """What decode() says of @data: the sentence of its ValueError, "" if it takes them, another error's name."""
    try:
        decode(data)
    except ValueError as e:
        return "ValueError: " + str(e)
    except Exception as e:      # pylint: disable=broad-except
        return f"{type(e).__name__}: {e}"
    return ""


def refused(data):
    return unreadable(data).startswith("ValueError: a state that cannot be read")


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
            if said and not said.startswith("ValueError: a state that cannot be read"):
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
        point(all("the token is another one" in unavailable(where, t) for t in ("other", "", "s3cret ")) and len(served) == 1,
              "who has another token, or none, is refused, and no state is made for it", served)
        nonce = get(where, "/nonce")[1].decode()
        path = f"/state?nonce={nonce}&mine=c&mac=" + mac("s3cret", b"state", nonce.encode(), b"c")
        first, second = get(where, path), get(where, path)
        point(first[0] == 200 and second == (403, b"the token is another one") and len(served) == 2,
              "a request that is sent again is refused: a nonce is good for one", (first[0], second))
        nonce = get(where, "/nonce")[1].decode()
        answers = [get(where, f"/state?nonce={nonce}&mine=c&mac=" + mac("other", b"state", nonce.encode(), b"c"))[0],
                   get(where, f"/state?nonce={nonce}&mine=c&mac=" + mac("s3cret", b"state", nonce.encode(), b"c"))[0]]
        point(answers == [403, 403], "so is the right request after a wrong one with its nonce", answers)
        answers = [get(where, path)[0] for path in ("/state", "/state?nonce=x&mine=c&mac=" + mac("s3cret", b"state", b"x", b"c"), "/", "/../state")]
        nonce = get(where, "/nonce")[1].decode()
        answers.append(get(where, f"/state?nonce={nonce}&mine=d&mac=" + mac("s3cret", b"state", nonce.encode(), b"c"))[0])
        point(answers == [403] * 5 and len(served) == 2, "no nonce, a nonce of one's own, other paths and another client's nonce are refused",
              answers)


def impostor(answer_of):
    """A server that does not know the token: answer_of(path) is (mac, body).  Yields its address and port."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve():
        with listening:
            for _ in range(2):
                connection = listening.accept()[0]
                with connection:
                    request = b""
                    while b"\r\n\r\n" not in request:
                        request += connection.recv(65536)
                    head, content = answer_of(request.split()[1].decode())
                    connection.sendall(f"HTTP/1.0 200 OK\r\nContent-Length: {len(content)}\r\nX-Saina-Mac: {head}\r\n\r\n".encode() + content)
    threading.Thread(target=serve, daemon=True).start()
    return listening.getsockname()


def impostors():
    state = encode({"weight": torch.zeros(4)})
    for what, head in (("no HMAC", ""), ("an HMAC of another token", mac("other", b"body", b"", state)),
                       ("an HMAC that is not ASCII-hex", "zz" * 32)):
        where = impostor(lambda path, head=head: ("", b"00" * 16) if path == "/nonce" else (head, state))
        said = unavailable(where, "s3cret")
        point("not made with the job's token" in said, f"a peer that answers with {what} is refused", said)
    # An answer to another request, made with the token.
    where = impostor(lambda path: ("", b"00" * 16) if path == "/nonce" else (mac("s3cret", b"body", b"0" * 32, state), state))
    said = unavailable(where, "s3cret")
    point("not made with the job's token" in said, "an answer that was made for another request is refused", said)


round_trips()
malformed()
handshake()
impostors()
print(f"1..{count}")
sys.exit(bool(bad))
