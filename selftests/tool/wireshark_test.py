#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""tools/wireshark/saina.lua, run by tshark on captures that this test writes.

1. Every type, flag, reason and state of proto.h has its name, every member of a body its field.
2. Frames of several messages (GSO batches) are dissected message by message.
3. Truncated, cut and malformed messages get expert information; none makes the dissector fail.

Captures of real traffic: selftests/net/capture.sh."""

import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, TOP + "/selftests/lib")
from tap import Tap  # noqa: E402  # pylint: disable=wrong-import-position

SCRIPT = TOP + "/tools/wireshark/saina.lua"
PROTO = TOP + "/uapi/saina/proto.h"
DATA, CTRL, RESULT, WORKER = 48864, 48865, 48866, 40000
ANY = 0xff
with open(PROTO, encoding="utf-8") as proto_h:
    DEFINES = {name: int(value) for name, value in
               re.findall(r"#define SAINA_(\w+)\s+\(?(-?\d+)\)?\s", proto_h.read())}
VERSION = DEFINES["PROTO_VERSION"]
tap = Tap()
point = tap.point


# --- messages and frames, by protocol.rst ---------------------------------------------------

def header(type_, version=VERSION, flags=0, elem=1, job=3, k=0, reserved=0, round_=7, segment=5, elems=0, worker=1,
           exponent=-4, contributors=0, next_k=0, policy=0, mask=0, aux=0, slot_round=0, session=0x1122334455667788):
    return struct.pack("<BBBBHBBIIHBbBBHQIIQ", version, type_, flags, elem, job, k, reserved, round_, segment,
                       elems, worker, exponent, contributors, next_k, policy, mask, aux, slot_round, session)


def elements(*values, n=64):
    values = list(values) + [0] * (n - len(values))
    return struct.pack(f"<{n}i", *values)


def grad(**more):
    return header(1, elems=64, **more) + elements(1, -2)


def result(**more):
    words = dict(worker=ANY, session=0, k=2, contributors=2, mask=0b1001, next_k=2, policy=4)
    return header(2, elems=64, **{**words, **more}) + elements(3)


def padded(message):
    """As long as all messages to the control port."""
    return message + bytes(220 - len(message))


def body_of(type_):
    """A whole message of this type."""
    message = bare(type_)
    return padded(message) if type_ >= 16 and TYPES[type_] not in ANSWERS else message


def bare(type_):
    """The same without padding."""
    name = TYPES[type_]
    if name in ("GRAD", "PULL", "INC", "READ", "SUM"):
        return header(type_, elems=64) + elements()
    if name == "RESULT":
        return result()
    if name in ("ASK", "ASK_REPLY"):
        return header(type_) + struct.pack("<QQQQ", 99, 0b11, 0b101, 1 << 63)
    if name in ("DOORBELL", "COMPLETION", "FETCH"):
        return header(type_) + struct.pack("<QQ", 0b11, 0b1)
    if name == "JOIN":
        return header(type_, elem=0, session=0) + struct.pack("<32s32sQQII", b"geheim", b"rank one", 77, 1000, 2, 0)
    if name == "WELCOME":
        return header(type_, elem=0) + struct.pack(
            "<QQIHHHBBIIHHbBB5x", 77, 1000, 16, 64, 8, 2, 4, 2, 9, 0xefbe0003, 250, 2000, -3, 1, 1)
    if name == "REFUSE":
        return header(type_, elem=0) + struct.pack("<QI160s", 77, 4, b"the job has its 4 workers")
    if name == "STATUS":
        return header(type_, elem=0, segment=5, aux=6) + struct.pack("<QIBBH156s", 0b1011, 8, 2, 1, 40, b"port p1 is policed")
    return header(type_, elem=0 if type_ >= 16 else 1)


def ports_of(type_):
    """(source, destination) of a message of this type"""
    server = CTRL if type_ >= 16 else DATA
    if TYPES[type_] in ANSWERS:
        return server, RESULT if TYPES[type_] in ("RESULT", "PROBE_REPLY") else WORKER
    return WORKER, server


def frame(payload, source=WORKER, to=DATA):
    """Ethernet, IPv4 and UDP around it; checksums are not looked at."""
    udp = struct.pack(">HHHH", source, to, 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0, bytes((10, 190, 0, 10)),
                     bytes((10, 190, 0, 1)))
    return bytes(12) + b"\x08\x00" + ip + udp


def write(path, frames):
    """Writes a capture of one frame a second.  A frame is its bytes, or (bytes, how many of them were captured)."""
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 262144, 1))
        for i, data in enumerate(frames):
            data, kept = data if isinstance(data, tuple) else (data, len(data))
            f.write(struct.pack("<IIII", 1000 + i, 250000, kept, len(data)) + data[:kept])


def dissect(frames, fields, *options):
    """A list for each frame: for each field the text of all its values, separated by "|"."""
    with tempfile.TemporaryDirectory() as tmp:
        write(tmp + "/c.pcap", frames)
        command = ["tshark", "-n", "-X", "lua_script:" + SCRIPT, "-r", tmp + "/c.pcap", *options, "-T", "fields",
                   "-E", "occurrence=a", "-E", "aggregator=|", "-E", "separator=/t"]
        for field in fields:
            command += ["-e", field]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, env={**os.environ, "HOME": tmp})
    said = [line for line in done.stderr.splitlines() if line and "could be dangerous" not in line]
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    if done.returncode or said or len(lines) != len(frames):
        point(False, "tshark reads the capture without a complaint", f"status {done.returncode}",
              f"{len(lines)} of {len(frames)} frames", *said[:10])
        lines += [[""] * len(fields)] * (len(frames) - len(lines))
    return lines


# --- what proto.h has ---------------------------------------------------------------------

def enum(name):
    with open(PROTO, encoding="utf-8") as f:
        text = re.search(r"enum " + name + r" \{(.*?)\};", f.read(), re.S).group(1)
    found = {int(value): word for word, value in re.findall(r"SAINA_[A-Z]+_([A-Z_0-9]+)\s*=\s*(\d+)", text)
             if word != "UNSPEC"}
    assert found, f"enum {name} of proto.h has no entries"
    return found


TYPES = enum("saina_msg_type")
ANSWERS = ("RESULT", "NOP", "STALE", "PROBE_REPLY", "ASK_REPLY", "SUM", "NAK", "GO", "COMPLETION", "WELCOME", "REFUSE", "STATUS")


def types_test():
    numbers = sorted(TYPES)
    lines = dissect([frame(body_of(t), *ports_of(t)) for t in numbers],
                    ["_ws.col.Protocol", "_ws.col.Info", "saina.type", "_ws.expert.message", "_ws.malformed"])
    for t, (protocol, info, value, complaint, malformed) in zip(numbers, lines):
        point(protocol == "SAINA" and info.split()[:1] == [TYPES[t]] and value == str(t) and not malformed and
              complaint == "", f"type {t} of proto.h is {TYPES[t]} in the dissector, without expert information",
              f"protocol {protocol}, info {info}, type {value}, complains of {complaint} {malformed}")


def fields_test():
    by_name = {name: body_of(t) for t, name in TYPES.items()}
    number = {name: t for t, name in TYPES.items()}

    def one(name, fields):
        return dissect([frame(by_name[name], *ports_of(number[name]))], fields)[0]

    got = one("RESULT", ["saina.job", "saina.round", "saina.segment", "saina.count", "saina.k", "saina.contributors",
                         "saina.next_k", "saina.policy", "saina.mask", "saina.contributor", "saina.exponent",
                         "saina.session", "saina.element"])
    point(got == ["3", "7", "5", "64", "2", "2", "2", "4", "0x0000000000000009", "0|3", "-4", "0x0000000000000000",
                  "3|0|0|0|0|0|0|0"], "RESULT: header, contributors and the first eight elements", got)
    got = dissect([frame(grad())], ["saina.worker", "saina.session", "saina.element", "_ws.col.Info"])[0]
    point(got == ["1", "0x1122334455667788", "1|-2|0|0|0|0|0|0", "GRAD job 3 worker 1 round 7 segment 5"],
          "GRAD: worker, session and elements with their signs", got)
    got = dissect([frame(header(1, elem=2, elems=64, exponent=0) + struct.pack("<64f", *([1.5] * 64)))],
                  ["saina.element_float"], "-o", "saina.elements:2")[0]
    point(got == ["1.5|1.5"], "GRAD of float32: as many elements as the preference says", got)
    pairs = struct.pack("<64I", *[(a + 65536 * b) % 2**32 for a, b in [(-1, 5), (32767, -32768), (-32768, -1)] + [(0, 0)] * 61])
    got = dissect([frame(header(1, elem=4, elems=64, exponent=-104) + pairs)], ["saina.element", "_ws.expert"],
                  "-o", "saina.elements:3")[0]
    point(got == ["-1|5|32767|-32768|-32768|-1", ""], "GRAD of int16: both numbers of each word", got)
    got = one("JOIN", ["saina.join.name", "saina.nonce", "saina.elements", "saina.join.round", "saina.join.token"])
    point(got[:4] == ["rank one", "0x000000000000004d", "1000", "2"] and "67656865" not in got[4] and
          "geheim" not in got[4], "JOIN: name, nonce, elements, round; the token is not shown", got)
    got = dissect([frame(by_name["JOIN"], *ports_of(16))], ["saina.join.token"], "-o", "saina.token:TRUE")[0]
    point(got in (["geheim"], [b"geheim".hex() + "00" * 26]), "JOIN: the token is shown if the preference says so", got)
    named = header(16, flags=2, elem=0, session=0, job=0) + bare(16)[48:]
    got = dissect([frame(padded(named + b"mnist"), WORKER, CTRL), frame(named + b"mnist", WORKER, CTRL),
                   frame(padded(bare(16) + b"mnist"), WORKER, CTRL)],
                  ["saina.join.job", "saina.flags.named", "_ws.expert.message"])
    point(got[0] == ["mnist", "1", ""] and "shorter" in got[1][2] and got[2][1:2] == ["0"] and got[2][2],
          "JOIN with NAMED: the job's name follows, and only with that flag", got)
    beat = header(20, elem=0, flags=4) + struct.pack("<QQII", 1000, 7, 250, 88)
    got = dissect([frame(padded(beat), WORKER, CTRL), frame(padded(beat)[:-1], WORKER, CTRL)],
                  ["saina.report.sent", "saina.report.resent", "saina.report.rtt_us", "saina.report.window",
                   "_ws.expert.message"])
    point(got[0] == ["1000", "7", "250", "88", ""] and "shorter" in got[1][4], "HEARTBEAT with REPORT: every field", got)
    got = one("WELCOME", ["saina.welcome." + f for f in ("segments", "payload", "pool", "ring", "workers", "round", "group",
                                                         "heartbeat_ms", "dead_ms", "exponent", "elem", "formed")])
    point(got == ["16", "64", "8", "2", "4", "9", "239.190.0.3", "250", "2000", "-3", "1", "1"],
          "WELCOME: every field", got)
    got = one("REFUSE", ["saina.refuse.reason", "saina.refuse.text", "_ws.col.Info"])
    point(got == ["4", "the job has its 4 workers", "REFUSE job 3 worker 1: job is full"], "REFUSE: reason and sentence",
          got)
    got = one("STATUS", ["saina.alive", "saina.status.round", "saina.state", "saina.status.path", "saina.status.timeout_ms",
                         "saina.status.text", "saina.probe", "saina.board", "saina.segment", "saina.aux", "_ws.expert.message"])
    point(got == ["0|1|3", "8", "2", "1", "40", "port p1 is policed", "5", "6", "", "", ""],
          "STATUS: who is alive, round, state, time-out, sentence, probe and output array", got)
    body = struct.pack("<QIBBH156s", 0b1011, 8, 2, 1, 40, b"")
    got = dissect([frame(header(21, elem=0, k=4, contributors=2, mask=0b1000) + body, CTRL, WORKER)],
                  ["saina.parts_told", "saina.part", "saina.missing", "saina.k", "saina.contributors", "saina.mask", "_ws.expert.message"])[0]
    point(got == ["4", "2", "0x0000000000000008", "", "", "", ""], "STATUS: for whom a round waits, parts of a coded policy, and which of them is the addressee's", got)
    got = dissect([frame(result(aux=10000), DATA, RESULT), frame(result(aux=8, worker=1, session=5), DATA, WORKER)],
                  ["saina.timeout_us", "saina.aux"])
    point(got == [["10000", ""], ["", "8"]], "RESULT: aux is the time-out for all, the last round counted for one", got)
    got = dissect([frame(header(14, k=3, mask=0b110, aux=7, slot_round=4), DATA, WORKER)],
                  ["saina.nak", "saina.going", "saina.step", "saina.low", "saina.k", "saina.contributor", "_ws.expert.message"])[0]
    point(got == ["3", "0x0000000000000006", "7", "4", "", "", ""], "NAK: reason, who may go on, steps", got)
    got = dissect([frame(header(15, k=k, segment=2, mask=0b110, aux=7, slot_round=4), DATA, WORKER) for k in (0, 4)],
                  ["saina.mode", "saina.window", "saina.going", "saina.step", "saina.low", "saina.fence", "saina.k", "_ws.expert.message"])
    point(got == [["0", "2", "0x0000000000000006", "7", "4", "", "", ""], ["4", "2", "0x0000000000000006", "7", "", "4", "", ""]],
          "GO: mode, window, who may go on, steps; with mode 4 the first round of the other mode", got)
    nan = dict(exponent=-128)
    got = dissect([frame(grad(**nan)), frame(header(2, elems=64, worker=ANY, session=0, **nan) + elements(), DATA, RESULT)],
                  ["saina.exponent", "saina.element", "_ws.col.Info", "_ws.expert.message"])
    point(got == [["-128", "", "GRAD job 3 worker 1 round 7 segment 5 NaN", ""],
                  ["-128", "", "RESULT job 3 round 7 segment 5 k 0: none NaN", ""]], "NaN: shown in the summary, without elements", got)
    least, most, none, integers = (DEFINES["EXPONENT_" + name] for name in ("MIN", "MAX", "NAN", "INT"))
    frames = [(frame(header(t, elems=64, exponent=e, elem=elem) + elements(), *ports_of(t)),
               (e == 0 if elem == 2 else least <= e <= most or (e == integers and elem == 1) or (e == none and t in (1, 2))) or t == 4)
              for t in (1, 2, 4, 5, 13) for elem in (1, 2, 4) for e in (none, integers, least, 0, most)]
    got = dissect([f for f, _ in frames], ["_ws.expert.message"])
    point([("not a block scale" not in line[0]) for line in got] == [good for _, good in frames],
          "expert information for block scales that proto.h does not have", got)
    text = dissect_text([frame(grad(exponent=e)) for e in (least, 0, most)] + [frame(header(4, elems=64, exponent=9) + elements()),
                        frame(by_name["WELCOME"], *ports_of(17))])
    got = re.findall(r"integer = value \* 2\^(-?\d+)", text)
    point(got == ["-104", "22", "149", "19"], "block scales are shown as powers of 2, in messages that have one", got)
    got = one("READY", ["saina.probe", "saina.segment"])
    point(got == ["5", ""], "READY: the id of the probe", got)
    got = dissect([frame(header(12, mask=0b100) + struct.pack("<4Q", 0, 0, 0, 0), DATA, WORKER)], ["saina.behind", "saina.mask"])[0]
    point(got == ["0x0000000000000004", ""], "ASK_REPLY: who is too far behind", got)
    got = one("ASK_REPLY", ["saina.ask.counted", "saina.ask.done", "saina.ask.due"])
    point(got == ["0x0000000000000003", "0x0000000000000005", "0x8000000000000000"], "ASK_REPLY: its masks", got)


def members_test():
    """Every member of a body in proto.h is a field of the dissector, in order and as long."""
    # Filters keep their names when members of proto.h are renamed: users have them in their profiles.
    filter_names = {"posted": "rung"}
    with open(PROTO, encoding="utf-8") as f:
        proto = f.read()
    with open(SCRIPT, encoding="utf-8") as f:
        bodies = f.read().split("local BODIES = {")[1].split("\n}\n")[0]
    sizes = {"TOKEN_LEN": 32, "NAME_LEN": 32, "TEXT_LEN": 160, "STATUS_TEXT_LEN": 156}
    for body in ("ask", "doorbell", "join", "welcome", "refuse", "report", "status"):
        text = re.search(r"struct saina_" + body + r" \{(.*?)\}", proto, re.S).group(1)
        members = [(filter_names.get(name, name), int(bits) // 8 * (sizes.get(n.removeprefix("SAINA_")) or int(n or 1)))
                   for bits, name, n in re.findall(r"(?:__[a-z]+|char\b)(\d*)\s+(\w+)(?:\[(\w+)\])?;",
                                                   text.replace("char", "__u8"))]
        rows = re.search(r"\t" + body + r" = \{\n(.*?)\n\t\}", bodies, re.S).group(1)
        fields = [(name.split(".")[-1], int(n)) for name, n in re.findall(r'\{ "([a-z._]+)", (\d+)', rows)]
        point(fields == members, f"{body}: the dissector has the members of struct saina_{body}", fields, members)


def names_test():
    """The dissector knows every flag, reason, state, path and element type of proto.h."""
    with open(PROTO, encoding="utf-8") as f:
        flags = {name: int(value, 0) for name, value in
                 re.findall(r"#define SAINA_F_([A-Z_]+)\s+(0x[0-9a-f]+)", f.read())}
    assert flags, "proto.h has no flags"
    carrier = {"FRESH": 13, "AWAY": 12, "TREE": 16, "NODE": 16, "FAST": 19, "RETRANSMIT": 1, "NAMED": 16, "REPORT": 20}
    frames = []
    for name, value in flags.items():
        t = carrier.get(name, 2)
        made = bytearray(body_of(t))
        made[2] = value
        frames.append(frame(bytes(made), *ports_of(t)))
    for name, got in zip(flags, dissect(frames, ["saina.flags." + f.lower() for f in flags] + ["_ws.expert.message"])):
        lit = {f for f, value in zip(flags, got) if value == "1"}
        point(lit == {name} and got[-1] == "", f"flag {name} of proto.h is known", got)
    for what, enum_name, make in (
            ("reason", "saina_refusal", lambda v: (header(18, elem=0) + struct.pack("<QI160s", 0, v, b"x"), 18)),
            ("state", "saina_job_state", lambda v: (header(21, elem=0) + struct.pack("<QIBB158x", 1, 1, v, 0), 21)),
            ("path", "saina_path", lambda v: (header(21, elem=0) + struct.pack("<QIBB158x", 1, 1, 2, v), 21)),
            ("element type", "saina_elem_type", lambda v: (header(9, elem=v), 9))):
        values = enum(enum_name)
        text = dissect_text([frame(m, *ports_of(t)) for m, t in (make(v) for v in values)])
        for value, name in values.items():
            # "(12)" behind a name; "Unknown (12)" where there is none
            point(re.search(r"(Reason|State of the job|Path of the results to the worker|Elements are): (?!Unknown)[^\n]*\(" + str(value) + r"\)\n", text),
                  f"{what} {value} of proto.h, {name}, has a name", text[-3000:])


def filters_test():
    """The filters that the documentation shows, on a gradient of worker 3 and a result in which it is counted."""
    with open(TOP + "/Documentation/wireshark.rst", encoding="utf-8") as f:
        block = f.read().split("filters::")[1].split("Fields computed")[0]
    filters = re.findall(r"^    (\S.*?)   ", block, re.M)
    frames = [frame(grad(worker=3)), frame(result(), DATA, RESULT)]
    kept = {text: [line[0] for line in dissect_filtered(frames, text)] for text in filters}
    point(len(kept) >= 7 and kept["saina.type == 1 && saina.worker == 3"] == ["1"] and
          kept["saina.contributor == 3"] == ["2"] and kept["saina.wait > 0.1"] == ["2"] and
          kept["saina.last_worker == 3"] == ["2"] and kept["saina.rtt > 0.01"] == [] and
          kept["_ws.expert && saina"] == [], "the filters of the documentation do what it says", kept)


def dissect_filtered(frames, text):
    with tempfile.TemporaryDirectory() as tmp:
        write(tmp + "/c.pcap", frames)
        done = subprocess.run(["tshark", "-n", "-X", "lua_script:" + SCRIPT, "-r", tmp + "/c.pcap", "-Y", text, "-T",
                               "fields", "-e", "frame.number"], capture_output=True, text=True, timeout=100,
                              env={**os.environ, "HOME": tmp})
    return [["error " + done.stderr]] if done.returncode else [line.split() for line in done.stdout.splitlines()]


def dissect_text(frames):
    with tempfile.TemporaryDirectory() as tmp:
        write(tmp + "/c.pcap", frames)
        return subprocess.run(["tshark", "-n", "-X", "lua_script:" + SCRIPT, "-r", tmp + "/c.pcap", "-V", "-O", "saina"],
                              capture_output=True, text=True, timeout=100, env={**os.environ, "HOME": tmp}).stdout


def batches_test():
    stale = header(8, elems=0, round_=2, slot_round=7, session=1) + bytes(256)
    nop = struct.pack("<BB", VERSION, 3) + bytes(46 + 256)
    short = header(1, elems=64, segment=9) + elements()[:100]
    fields = ["saina.messages", "saina.type", "saina.segment", "_ws.col.Info", "_ws.expert.message"]
    got = dissect([frame(b"".join(grad(segment=s) for s in range(10, 54))),
                   frame(nop + nop + result(segment=12) + nop + result(segment=14), DATA, RESULT),
                   frame(stale + result(segment=8) + nop, DATA, WORKER),
                   frame(nop, DATA, RESULT),
                   frame(grad() + short),
                   frame(grad() + bytes((VERSION, 1)) + b"rest"),
                   frame(header(12) + bytes(32) + header(12) + bytes(32), DATA, WORKER)], fields)
    point(got[0][:2] == ["44", "|".join(["1"] * 44)] and got[0][3].endswith("segments 10-53") and not got[0][4],
          "a batch of 44 gradients is 44 messages", got[0])
    point(got[1][:3] == ["5", "3|3|2|3|2", "0|0|12|0|14"] and got[1][3] == "3 NOP, 2 RESULT job 3" and not got[1][4],
          "a batch of results that begins with NOPs", got[1])
    point(got[2][:2] == ["3", "8|2|3"] and not got[2][4], "a batch with a STALE and its padding", got[2])
    point(got[3][:2] == ["1", "3"], "a NOP alone", got[3])
    point(got[4][:2] == ["2", "1|1"] and "shorter than a message" in got[4][4], "the last message of a batch is too short", got[4])
    point(got[5][:2] == ["1", "1"] and "shorter" in got[5][4], "trailing bytes that are not a message", got[5])
    point(got[6][:2] == ["2", "12|12"] and not got[6][4], "answers that GRO of the receiver has merged", got[6])


def analysis_test():
    def ask(t, time):
        return header(t) + struct.pack("<QQQQ", time, 0, 0, 0)
    got = dissect([frame(grad(worker=2)), frame(ask(11, 5)), frame(grad(worker=0)), frame(ask(12, 5), DATA, WORKER),
                   frame(result(), DATA, RESULT), frame(result(round_=8), DATA, RESULT), frame(ask(12, 6), DATA, WORKER)],
                  ["saina.asked_in", "saina.rtt", "saina.first_grad", "saina.wait", "saina.last_grad", "saina.last_worker"])
    point(got[3][0] == "2" and float(got[3][1]) == 2, "ASK_REPLY: names the ASK and the time between them", got[3])
    point(got[4][2] == "1" and float(got[4][3]) == 4 and got[4][4:] == ["3", "0"],
          "RESULT: names the first gradient, the time since, and who came last", got[4])
    point(not any(got[5]) and not any(got[6]), "no analysis where the capture lacks the other message", got[5:])


def wrong_test():
    cases = [
        ("another version", frame(grad(version=VERSION - 1)), "does not know"),
        ("an unknown type", frame(header(99)), "unknown message type"),
        ("a result sent to the aggregator", frame(result()), "is not sent to"),
        ("a gradient sent to the control port", frame(grad(), WORKER, CTRL), "is not sent to"),
        ("a reserved field that is not 0", frame(grad(reserved=1)), "must be 0"),
        ("k in a request", frame(grad(k=3)), "must be 0"),
        ("a flag that GRAD does not have", frame(grad(flags=1)), "flag that this message type"),
        ("a job that cannot be", frame(grad(job=256)), "not a job"),
        ("a worker that cannot be", frame(grad(worker=64)), "not a worker"),
        ("a type of elements that is none", frame(grad(elem=9)), "unknown element type"),
        ("a payload no job can have", frame(header(1, elems=63) + elements(n=63)), "not a payload"),
        ("a result of NaN with elements", frame(result(exponent=-128), DATA, RESULT), "must be 0"),
        ("a block scale that is none", frame(grad(elem=4, exponent=-127)), "not a block scale"),
        ("a mask with too few bits", frame(result(contributors=3), DATA, RESULT), "number of bits"),
        ("bytes behind the body of a control message", frame(body_of(20)[:-1] + b"\1", WORKER, CTRL), "must be 0"),
        ("reserved bytes of a body", frame(padded(bare(17)[:-1] + b"\1"), WORKER, CTRL), "must be 0"),
        ("a message that is shorter than its count says", frame(grad()[:-1]), "shorter than a message"),
        ("a message that the capture has only a part of", (frame(grad()), 100), "the capture ends"),
        ("a header that the capture has only a part of", (frame(grad()), 60), "the capture ends"),
    ]
    for (what, _, words), got in zip(cases, dissect([c[1] for c in cases], ["_ws.expert.message"])):
        point(words in got[0], f"expert information for {what}", got)
    got = dissect([frame(grad(), 1000, 2000), frame(b"", WORKER, DATA)], ["_ws.col.Protocol"])
    point(got[0] == ["UDP"], "other ports are left alone", got)


def hostile_test():
    frames = []
    for t in TYPES:
        whole = body_of(t)
        frames += [frame(whole[:n], *ports_of(t)) for n in range(len(whole))]
    short = len(frames)
    rng = random.Random(20240731)
    for _ in range(1500):
        data = bytearray(body_of(rng.choice(list(TYPES))) * rng.choice((1, 1, 3)))
        for _ in range(rng.choice((1, 2, 8, 60))):
            data[rng.randrange(min(len(data), rng.choice((8, 48, 4000))))] = rng.randrange(256)
        whole = frame(bytes(data[:rng.randrange(len(data) + 1)]), *rng.choice(((WORKER, DATA), (DATA, RESULT),
                                                                               (CTRL, WORKER), (WORKER, CTRL))))
        frames.append((whole, rng.choice((len(whole), rng.randrange(42, len(whole) + 1)))))
    lines = dissect(frames, ["_ws.col.Protocol", "_ws.lua.error", "_ws.malformed", "_ws.expert.message"])
    failed = [(i, line) for i, line in enumerate(lines) if line[1] or line[2]]
    point(not failed, f"{len(frames)} messages cut at every byte or with wrong bytes: the dissector fails at none", *failed[:5])
    silent = []
    at = 0
    for t in TYPES:
        # NOP, STALE and NAK are padded: any length will do.
        for n in range(len(body_of(t))):
            if 0 < n and TYPES[t] not in ("NOP", "STALE", "NAK") and not lines[at + n][3]:
                silent.append(f"{TYPES[t]} cut at {n}: {lines[at + n]}")
        at += len(body_of(t))
    point(at == short and not silent, "expert information for a message cut at any byte: too short", *silent[:5])


def main():
    if not shutil.which("tshark"):
        print("1..0 # SKIP tshark is not installed")
        return 4
    types_test()
    fields_test()
    members_test()
    names_test()
    filters_test()
    batches_test()
    analysis_test()
    wrong_test()
    hostile_test()
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
