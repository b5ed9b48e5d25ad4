#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients and judge of sainad's /metrics, for metrics.sh and prometheus.sh.

metrics.py get WHERE [PATH [METHOD]]   one request; prints status, and the body
metrics.py check [LEAST] <TEXT         fails unless it is Prometheus's text format, with at least so many
                                       families (30); prints what is wrong
metrics.py value NAME [LABEL=VALUE...] <TEXT
                                       prints the sum of these samples, or "none"
metrics.py stall WHERE N               N clients that send requests and never read, and N that send half
                                       a request; prints "connected" and waits to be killed
metrics.py hold WHERE N                N clients that send a byte of a header once a second, for ever, N that read a
                                       byte of an answer as often, and N that keep what they were answered by;
                                       those that are closed come again.  Prints "connected" and goes on until
                                       it is killed
metrics.py dashboard FILE SOURCE       the expressions of a Grafana dashboard, one a line; a metric
                                       that SOURCE (families.c) does not have is an error

WHERE is a port of 127.0.0.1, or the path of a unix socket."""
import json
import re
import socket
import sys
import threading
import time


def connect(where):
    if where.startswith("/"):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(60)
        s.connect(where)
    else:
        s = socket.create_connection(("127.0.0.1", int(where)), 60)
    return s


def get(where, path="/metrics", method="GET"):
    with connect(where) as s:
        s.sendall(f"{method} {path} HTTP/1.0\r\nHost: x\r\n\r\n".encode())
        data = b""
        while piece := s.recv(65536):
            data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    print(head.split(b"\r\n")[0].decode().split(" ", 1)[1], flush=True)
    sys.stdout.write(body.decode())


SAMPLE = re.compile(r'^([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def samples(text):
    for line in text.splitlines():
        if line and line[0] != "#":
            match = SAMPLE.match(line)
            if not match:
                sys.exit(f"no sample: {line!r}")
            yield match.group(1), dict(LABEL.findall(match.group(2) or "")), float(match.group(3))


def family_of(name, types):
    for suffix in ("_bucket", "_sum", "_count"):
        if name.endswith(suffix) and types.get(name[:-len(suffix)]) == "histogram":
            return name[:-len(suffix)]
    return name


def histograms(text, types):
    """What is wrong with them: buckets that fall, no +Inf, or a count that is not its value."""
    buckets, counts, sums = {}, {}, set()
    for name, labels, number in samples(text):
        family = family_of(name, types)
        if types.get(family) == "histogram":
            limit = labels.pop("le", None)
            key = (family, *sorted(labels.items()))
            if limit is not None:
                buckets.setdefault(key, []).append((float(limit), number))
            elif name.endswith("_count"):
                counts[key] = number
            else:
                sums.add(key)
    wrong = []
    for key, row in buckets.items():
        if row != sorted(row) or [n for _, n in row] != sorted(n for _, n in row):
            wrong.append(f"buckets that fall: {key}")
        if row[-1] != (float("inf"), counts.get(key)) or key not in sums:
            wrong.append(f"bucket +Inf is not the count, or there is no sum: {key}")
    if counts.keys() != buckets.keys() or sums != buckets.keys():
        wrong.append("a histogram without buckets")
    return wrong


def check(text, least=30):
    wrong, types, seen, done, current = [], {}, set(), set(), None
    if not text.endswith("\n"):
        wrong.append("the last line is not whole")
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if line.startswith("# HELP "):
            name = line.split()[2]
            if name in types or not line.split(" ", 3)[3].strip():
                wrong.append("a second head, or no help: " + line)
            if not lines[i + 1].startswith(f"# TYPE {name} "):
                wrong.append("no type: " + line)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            types[name] = kind
            if current:
                done.add(current)
            current = name
            if (kind == "counter") != name.endswith("_total"):
                wrong.append("counters, and only they, end in _total: " + line)
        else:
            match = SAMPLE.match(line)
            if not match or family_of(match.group(1), types) != current:
                wrong.append("not a sample of this family: " + line)
                continue
            if match.group(1) + (match.group(2) or "") in seen:
                wrong.append("twice: " + line)
            seen.add(match.group(1) + (match.group(2) or ""))
    wrong += histograms(text, types)
    if len(types) < int(least):
        wrong.append(f"{len(types)} families only")
    print("\n".join(wrong[:10]), end="")
    sys.exit(bool(wrong))


def value(text, name, *labels):
    wanted = dict(label.split("=", 1) for label in labels)
    found = [v for n, have, v in samples(text) if n == name and wanted.items() <= have.items()]
    print(f"{sum(found):g}" if found else "none")


def stall(where, n):
    clients = []
    for i in range(2 * int(n)):
        s = connect(where)
        s.setblocking(False)
        try:
            s.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 200 if i < int(n) else b"GET /met")
        except (BlockingIOError, ConnectionError):
            pass
        clients.append(s)
    print("connected", flush=True)
    time.sleep(1000)


HELD = (b"GET /metrics HTTP/1.1\r\nX: ", b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")


def hold_one(where, kind):
    """Of a client that is served only when the others leave it a place."""
    while True:
        try:
            with connect(where) as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                s.settimeout(1)
                s.sendall(HELD[kind])
                while True:
                    time.sleep(1)
                    if kind == 0:
                        s.sendall(b"a")
                    elif kind == 1 and not s.recv(1):
                        break
                    elif kind == 2:
                        s.send(b"")
                        if not s.recv(1, socket.MSG_PEEK):
                            break
        except OSError:
            time.sleep(0.1)


def hold(where, n):
    for i in range(3 * int(n)):
        threading.Thread(target=hold_one, args=(where, i % 3), daemon=True).start()
    time.sleep(3)
    print("connected", flush=True)
    time.sleep(1000)


def dashboard(path, source):
    with open(path, encoding="utf-8") as f:
        panels = json.load(f)["panels"]
    with open(source, encoding="utf-8") as f:
        known = set(re.findall(r'"(saina_[a-z_]+)"', f.read()))
    exprs = [t["expr"] for p in panels for t in p.get("targets", [])]
    for expr in exprs:
        print(expr)
        for name in re.findall(r"saina_[a-z_]+", expr):
            if name == "saina_job":	# the label
                continue
            if name not in known and re.sub("_(bucket|sum|count)$", "", name) not in known:
                sys.exit(f"there is no metric {name}")
    if len(exprs) < 10:
        sys.exit("hardly any expression")


if __name__ == "__main__":
    what, words = sys.argv[1], sys.argv[2:]
    if what in ("check", "value"):
        globals()[what](sys.stdin.read(), *words)
    else:
        {"get": get, "stall": stall, "hold": hold, "dashboard": dashboard}[what](*words)
