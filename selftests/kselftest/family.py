# SPDX-License-Identifier: GPL-2.0-or-later
"""A client of the family made from its description alone
(Documentation/netlink/specs/saina.yaml), and the little TAP that tests need."""
import errno
import os
import re
import socket
import struct
import sys

import yaml

SPEC_FILE = "saina.yaml"	# beside this file, or in Documentation/netlink/specs of the tree it is in
SKIP = 4		# exit status
NLMSG_ERROR, NLMSG_DONE = 2, 3
REQUEST, MULTI, ACK, DUMP_INTR, CAPPED, ACK_TLVS = 1, 2, 4, 0x10, 0x100, 0x200
DUMP = 0x300
NESTED = 0x8000
GENL_ID_CTRL = 0x10
SOL_NETLINK = 270


class Refused(Exception):
    """A request was refused: errno, sentence, guilty attribute ("name", "policy.k") or missing one."""

    def __init__(self, err, text, guilty, missing):
        super().__init__(f"{errno.errorcode.get(err, err)}: {text} [{guilty or missing}]")
        self.errno, self.text, self.guilty, self.missing = err, text, guilty, missing


def pad(b):
    return b + bytes(-len(b) % 4)


def attr(number, payload):
    return pad(struct.pack("=HH", 4 + len(payload), number) + payload)


def walk(data):
    """(number with flags, payload, offset) of each attribute."""
    at = 0
    while at + 4 <= len(data):
        length, number = struct.unpack_from("=HH", data, at)
        if length < 4 or at + length > len(data):
            raise ValueError("malformed attribute")
        yield number, data[at + 4:at + length], at
        at += length + -length % 4


def spec_path():
    """The path of the specification: beside this file, or in the source tree around it."""
    folder = os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(folder, SPEC_FILE)
    while not os.path.exists(path):
        if folder == "/":
            sys.exit(f"no {SPEC_FILE}")
        folder = os.path.dirname(folder)
        path = os.path.join(folder, "Documentation/netlink/specs", SPEC_FILE)
    return path


def _spec():
    with open(spec_path(), encoding="utf-8") as f:
        return yaml.safe_load(f)


SPEC = _spec()
SETS = {s["name"]: s["attributes"] for s in SPEC["attribute-sets"]}


class Spec:
    sets = SETS
    number = {s: {a["name"]: n for n, a in enumerate(SETS[s], 1)} for s in SETS}
    by_number = {s: dict(enumerate(SETS[s], 1)) for s in SETS}
    cmd = {o["name"]: n for n, o in enumerate(SPEC["operations"]["list"], 1)}
    op = {n: o for o, n in cmd.items()}
    ops = {o["name"]: o for o in SPEC["operations"]["list"]}
    code = {"u8": "B", "u16": "H", "u32": "I", "s32": "i", "u64": "Q"}

    @classmethod
    def set_of(cls, op):
        """The attribute set of a command's messages."""
        o = cls.ops[op]
        return cls.set_of(o["notify"]) if "notify" in o else o["attribute-set"]

    @staticmethod
    def values(a):
        """The values of an attribute that is an enumeration."""
        d = next((d for d in SPEC["definitions"] if d["type"] == "enum" and d["name"] == a.get("enum")), None)
        return d and {*range(d.get("value-start", 0), d.get("value-start", 0) + len(d["entries"]))}

    @classmethod
    def takes(cls, op, how):
        """Names of the attributes that a request has, None if there is no such."""
        o = cls.ops[op]
        return o[how].get("request", {}).get("attributes", []) if how in o else None

    @classmethod
    def encode(cls, values, name):
        out = b""
        for key, v in values.items():
            a = next(a for a in cls.sets[name] if a["name"] == key)
            n = cls.number[name][key]
            if isinstance(v, bytes):
                out += attr(n, v)
            elif a["type"] == "nest":
                out += attr(n | NESTED, cls.encode(v, a["nested-attributes"]))
            elif a["type"] == "string":
                out += attr(n, v.encode() + b"\0")
            else:
                order = ">" if a.get("byte-order") == "big-endian" else "="
                out += attr(n, struct.pack(order + cls.code[a["type"]], v))
        return out

    @classmethod
    def decode(cls, data, name):
        out = {}
        for n, v, _ in walk(data):
            a = cls.by_number[name][n & 0x3fff]
            if a["type"] == "nest":
                out[a["name"]] = cls.decode(v, a["nested-attributes"])
            elif a["type"] == "string":
                assert v[-1:] == b"\0", f"{a['name']} is not terminated"
                out[a["name"]] = v[:-1].decode()
            elif a["type"] == "binary":
                out[a["name"]] = (list(struct.unpack(f"={len(v) // 8}Q", v))
                                  if a.get("sub-type") == "u64" else v.hex(":"))
            elif a["type"] != "pad":
                order = ">" if a.get("byte-order") == "big-endian" else "="
                out[a["name"]] = struct.unpack(order + cls.code[a["type"]], v)[0]
        return out

    @classmethod
    def message(cls, body):
        """The attributes of a whole message, from its generic netlink header on."""
        return cls.decode(body[4:], cls.set_of(cls.op[body[0]]))


class Family:
    """A socket that speaks to saina.ko."""

    def __init__(self, timeout=20):
        self.s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
        self.s.bind((0, 0))
        self.s.settimeout(timeout)
        self.s.setsockopt(SOL_NETLINK, 11, 1)		# EXT_ACK
        self.seq = 0
        self.notes = []
        name = attr(2, b"saina\0")
        try:
            reply = self.raw(GENL_ID_CTRL, struct.pack("=BBH", 3, 1, 0) + name)[0][1]
        except Refused as r:
            if r.errno != errno.ENOENT:
                raise
            print("1..0 # SKIP saina.ko is not loaded", flush=True)
            sys.exit(SKIP)
        self.id, self.groups = None, {}
        for n, v, _ in walk(reply[4:]):
            if n == 1:
                self.id = struct.unpack("=H", v)[0]
            elif n & 0x3fff == 7:
                for _, g, _ in walk(v):
                    d = {m & 0x3fff: w for m, w, _ in walk(g)}
                    self.groups[d[1][:-1].decode()] = struct.unpack("=I", d[2])[0]

    def close(self):
        self.s.close()

    def send(self, kind, payload, flags):
        self.seq += 1
        msg = struct.pack("=IHHII", 16 + len(payload), kind, flags, self.seq, 0) + payload
        self.s.sendto(msg, (0, 0))
        return msg

    def messages(self):
        data = self.s.recv(1 << 18)
        at = 0
        while at + 16 <= len(data):
            length, kind, flags, seq, _ = struct.unpack_from("=IHHII", data, at)
            yield kind, flags, seq, data[at + 16:at + length]
            at += length + -length % 4

    @staticmethod
    def guilty(request, offset):
        """Name of the attribute at this offset of the request."""
        space = Spec.by_number[Spec.set_of(Spec.op[request[16]])] if request[16] in Spec.op else {}
        for n, v, at in walk(request[20:]):
            a = space.get(n & 0x3fff)
            name = a["name"] if a else str(n & 0x3fff)
            if 20 + at == offset:
                return name
            if not a or a["type"] != "nest":
                continue
            try:
                for m, _, inner in walk(v):
                    if 20 + at + 4 + inner == offset:
                        b = Spec.by_number[a["nested-attributes"]].get(m & 0x3fff)
                        return f"{name}.{b['name'] if b else m & 0x3fff}"
            except ValueError:
                pass
        return f"offset {offset}"

    def refusal(self, request, err, tlvs):
        text = guilty = missing = None
        for n, v, _ in walk(tlvs):
            if n == 1:
                text = v[:-1].decode()
            elif n == 2:
                guilty = self.guilty(request, struct.unpack("=I", v)[0])
            elif n == 5:
                missing = struct.unpack("=I", v)[0]
        if missing is not None:
            a = Spec.by_number[Spec.set_of(Spec.op[request[16]])].get(missing)
            missing = a["name"] if a else str(missing)
        return Refused(-err, text, guilty, missing)

    def raw(self, kind, payload, flags=ACK):
        """One request; returns [(flags, payload)] of its replies."""
        request = self.send(kind, payload, REQUEST | flags)
        replies = []
        while True:
            for k, f, seq, body in self.messages():
                if seq == 0 and k == getattr(self, "id", None):
                    self.notes.append(body)
                    continue
                if seq != self.seq:
                    continue
                if k in (NLMSG_ERROR, NLMSG_DONE):
                    err = struct.unpack_from("=i", body)[0] if body else 0
                    if k == NLMSG_DONE:
                        rest = body[4:]
                    else:
                        length = struct.unpack_from("=I", body, 4)[0]
                        rest = body[20:] if f & CAPPED else body[4 + length + -length % 4:]
                    if err:
                        raise self.refusal(request, err, rest if f & ACK_TLVS else b"")
                    return replies
                replies.append((f, body))

    def request(self, op, values, flags):
        head = struct.pack("=BBH", Spec.cmd[op], 1, 0)
        body = values if isinstance(values, bytes) else Spec.encode(values, Spec.set_of(op))
        return self.raw(self.id, head + body, flags)

    def do(self, op, values=None):
        """The reply's attributes, None if there is none."""
        replies = self.request(op, values or {}, ACK)
        return self.reply(op, replies[0][1]) if replies else None

    @staticmethod
    def reply(op, body):
        assert Spec.op[body[0]] == op, f"{op} is answered by {Spec.op[body[0]]}"
        return Spec.message(body)

    def dump(self, op, values=None):
        """([attributes...], was it torn by a change?)"""
        replies = self.request(op, values or {}, DUMP)
        return ([self.reply(op, b) for _, b in replies],
                any(f & DUMP_INTR for f, _ in replies))

    def subscribe(self, group):
        self.s.setsockopt(SOL_NETLINK, 1, self.groups[group])

    def note(self):
        """The next notification: (name, attributes)."""
        while not self.notes:
            for k, _, seq, body in self.messages():
                if k == self.id and seq == 0:
                    self.notes.append(body)
        body = self.notes.pop(0)
        return Spec.op[body[0]], Spec.message(body)


class Agent(Family):
    """A client of sainad, at its control socket @path."""

    def __init__(self, path, timeout=20):
        self.s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.s.settimeout(timeout)
        self.s.connect(path)
        self.id, self.seq, self.notes = 0x20, 0, []

    def send(self, kind, payload, flags):
        self.seq += 1
        msg = struct.pack("=IHHII", 16 + len(payload), kind, flags, self.seq, 0) + payload
        self.s.send(msg)
        return msg


class Tap:
    points = failed = 0

    @classmethod
    def ok(cls, good, name, why=""):
        cls.points += 1
        if not good:
            cls.failed += 1
        print(f"{'' if good else 'not '}ok {cls.points} - {name}", flush=True)
        if not good and why != "":
            print("#   " + str(why).replace("\n", "\n#   "), flush=True)
        return good

    @classmethod
    def same(cls, got, want, name):
        return cls.ok(got == want, name, f"got  {got}\nwant {want}")

    @classmethod
    def refused(cls, call, err, text, guilty, name):
        """@call raises Refused with this errno, sentence (a pattern), attribute."""
        try:
            got = call()
        except Refused as r:
            good = (r.errno == err and re.search(text, r.text or "") is not None and
                    (r.guilty or r.missing) == guilty)
            return cls.ok(good, name, f"got  {r}\nwant {errno.errorcode[err]}: {text} [{guilty}]")
        return cls.ok(False, name, f"was not refused: {got}")

    @classmethod
    def note(cls, text):
        print("# " + text, flush=True)

    @classmethod
    def done(cls):
        print(f"1..{cls.points}", flush=True)
        sys.exit(1 if cls.failed else 0)
