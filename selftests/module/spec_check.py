#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Does everybody who speaks the family agree with its description?

Compares Documentation/netlink/specs/saina.yaml with the uapi headers, the
module's policies and commands, the agent's decoder and the tool's tables.
TAP; needs neither root nor a kernel.
"""
import os
import re
import sys

import yaml

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
points = 0
failed = 0


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        return f.read()


def check(name, problems):
    """One TAP point: good if there are no problems."""
    global points, failed
    points += 1
    if problems:
        failed += 1
    print(f"{'not ' if problems else ''}ok {points} - {name}")
    for p in problems:
        print(f"#   {p}")


def const(*parts):
    return "_".join(parts).upper().replace("-", "_")


def enums(text):
    """Every enumerator of a header with its value."""
    values = {}
    for body in re.findall(r"enum\s*\w*\s*\{(.*?)\}", text, re.S):
        body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
        n = -1
        for item in body.split(","):
            m = re.match(r"\s*(\w+)(?:\s*=\s*(\w+)(\s*-\s*1)?)?\s*$", item)
            if not m:
                continue
            if m.group(2):
                base = m.group(2)
                n = values[base] if base in values else int(base, 0)
                if m.group(3):
                    n -= 1
            else:
                n += 1
            values[m.group(1)] = n
    return values


def table_rows(text, name):
    """[ATTR] = initialiser of a policy table."""
    m = re.search(r"\b%s\[.*?\] = \{(.*?)\n\};" % name, text, re.S)
    if not m:
        return None
    return dict(re.findall(r"\[(SAINA_A_\w+)\] = (.*?),\n", m.group(1) + "\n"))


spec = yaml.safe_load(read("Documentation/netlink/specs/saina.yaml"))
uapi = read("uapi/linux/saina.h")
header = {"linux/saina.h": enums(uapi),
          "saina/proto.h": enums(read("uapi/saina/proto.h")),
          "saina/bpf.h": enums(read("uapi/saina/bpf.h"))}
sets = {s["name"]: s for s in spec["attribute-sets"]}
attrs = {s: {a["name"]: a for a in sets[s]["attributes"]} for s in sets}
ops = {o["name"]: o for o in spec["operations"]["list"]}

# --- uapi headers ---------------------------------------------------------------

bad = []
want = {}
for s in sets.values():
    prefix = s["name-prefix"]
    want[const(prefix + "unspec")] = 0
    for n, a in enumerate(s["attributes"], 1):
        want[const(prefix + a["name"])] = n
    want["__" + const(prefix + "max")] = len(s["attributes"]) + 1
    want[const(prefix + "max")] = len(s["attributes"])
prefix = spec["operations"]["name-prefix"]
want[const(prefix + "unspec")] = 0
for n, o in enumerate(ops, 1):
    want[const(prefix + o)] = n
want["__" + const(prefix + "max")] = len(ops) + 1
want[const(prefix + "max")] = len(ops)
have = {k: v for k, v in header["linux/saina.h"].items()
        if re.match(r"_*SAINA_(A|CMD)_", k)}
for k in sorted(want.keys() | have.keys()):
    if want.get(k) != have.get(k):
        bad.append(f"{k}: spec {want.get(k)}, header {have.get(k)}")
check("uapi/linux/saina.h numbers attributes and commands as the spec does", bad)

bad = []
prefixes = {"plane": "saina-plane-", "job-state": "saina-job-", "elem-type": "saina-elem-",
            "worker-state": "saina-worker-state-", "port-mode": "saina-port-mode-",
            "event-type": "saina-ev-"}
for d in spec["definitions"]:
    if d["type"] != "enum":
        continue
    h = header[d.get("header", "linux/saina.h")]
    prefix = const(prefixes[d["name"]])
    want = {prefix + const(e["name"]): e["value"] for e in d["entries"]}
    text = read("uapi/" + d.get("header", "linux/saina.h"))
    body = re.search(r"enum saina_%s \{(.*?)\}" % d["name"].replace("-", "_"), text, re.S)
    have = enums(body.group(0)) if body else {}
    if want != have:
        bad.append(f"{d['name']}: spec {want}, header {have}")
    for k, v in want.items():
        if h.get(k) != v:
            bad.append(f"{k}: spec {v}, header {h.get(k)}")
for n, flag in enumerate(next(d for d in spec["definitions"] if d["name"] == "groups")["entries"]):
    m = re.search(r"#define SAINA_GROUPS_%s\s+(\w+)" % flag.upper(), uapi)
    if not m or int(m.group(1), 0) != 1 << n:
        bad.append(f"flag {flag} is not bit {n} in the header")
check("enumerations of the headers have the spec's names and values", bad)

bad = []
if f'SAINA_FAMILY_NAME		"{spec["name"]}"' not in uapi:
    bad.append("name of the family")
for g in spec["mcast-groups"]["list"]:
    if not re.search(r'#define SAINA_MCGRP_%s\s+"%s"' % (g["name"].upper(), g["name"]), uapi):
        bad.append(f"group {g['name']}")
check("family and groups are called the same", bad)

# --- the module -------------------------------------------------------------------

gen = read("kmod/netlink/netlink_gen.c")


def kernel_type(a):
    t, checks = a["type"], a.get("checks", {})
    if t == "string":
        return {31: "NAME", 32: "TOKEN", 95: "POLICY"}.get(checks.get("max-len"))
    if t == "binary":
        return "NLA_POLICY_ETH_ADDR" if checks.get("exact-len") == 6 else None
    if a.get("byte-order") == "big-endian":
        t = t.replace("u", "be")
    return "{ .type = NLA_%s }" % t.upper()


bad = []
tables = re.findall(r"nla_policy (\w+_nl_policy)\[SAINA_A_(\w+)_MAX \+ 1\]", gen)
for table, obj in tables:
    rows = table_rows(gen, table)
    by_const = {const(f"saina-a-{obj}-{n}"): a for n, a in attrs[obj.lower()].items()}
    for k, init in (rows or {}).items():
        if k not in by_const:
            bad.append(f"{table}: {k} is not in the spec")
        elif kernel_type(by_const[k]) != init:
            bad.append(f"{table}: {k} is {init}, spec says {kernel_type(by_const[k])}")
    if not rows:
        bad.append(f"{table} is empty")
if len(tables) < 7:
    bad.append(f"only {len(tables)} policies found")
check("types and lengths of the module's policies are the spec's", bad)

bad = []
rows = re.findall(r"\{ OP\((\w+), (\w+), (\w+)\),(.*?)\}", gen, re.S)
seen = {}
tops = dict(re.findall(r"TOP\((\w+), (SAINA_A_\w+), \w+\);", gen))
for cmd, top, who, rest in rows:
    name = cmd.lower().replace("_", "-")
    seen[name] = True
    o = ops.get(name)
    if not o:
        bad.append(f"{cmd} is not in the spec")
        continue
    if ("do" in o) != (".doit" in rest):
        bad.append(f"{cmd}: spec and module differ on do")
    if ("dump" in o) != (".dumpit" in rest):
        bad.append(f"{cmd}: spec and module differ on dump")
    if ("uns-admin-perm" in o.get("flags", [])) != (who == "ADMIN"):
        bad.append(f"{cmd}: spec and module differ on who may")
    if top not in ("agent", "empty"):
        takes = o.get("do", o.get("dump")).get("request", {}).get("attributes", [])
        if [const("saina-a-" + t) for t in takes] != [tops.get(top)]:
            bad.append(f"{cmd}: takes {takes} in the spec, {tops.get(top)} in the module")
for name, o in ops.items():
    if ("do" in o or "dump" in o) and name not in seen:
        bad.append(f"{name} is not served")
check("the module serves the spec's commands, to whom it says", bad)

bad = []
for g in spec["mcast-groups"]["list"]:
    if f"SAINA_MCGRP_{g['name'].upper()}" not in gen:
        bad.append(g["name"])
check("the module has the spec's groups", bad)

# --- the agent ----------------------------------------------------------------------

decode = read("userland/agent/control/decode.c")
agent = {"u8": "U8", "s8": "U8", "u16": "U16", "u32": "U32", "u64": "U64", "string": "STRING",
         "binary": "BINARY"}
bad = []
rules = re.findall(r"\tRULE\((\w+), (\w+), (\w+), ([^)]+)\)", decode)
size = {"SAINA_NAME_LEN - 1": 31, "SAINA_TOKEN_LEN": 32, "IFNAMSIZ - 1": 15}
for obj, attr, kind, length in rules:
    a = attrs[obj.lower()].get(attr.lower().replace("_", "-"))
    if not a:
        bad.append(f"{obj}.{attr} is not in the spec")
        continue
    if agent.get(a["type"]) != kind:
        bad.append(f"{obj}.{attr} is {kind}, spec says {a['type']}")
    most = a.get("checks", {}).get("max-len", a.get("checks", {}).get("exact-len", 0))
    if size.get(length.strip(), None if not length.strip().isdigit() else int(length)) != most:
        bad.append(f"{obj}.{attr}: length {length}, spec says {most}")
if len(rules) < 40:
    bad.append(f"only {len(rules)} rules found")
check("the agent decodes the spec's types and lengths", bad)

# --- the tool -------------------------------------------------------------------------

obj_c = read("userland/ctl/obj.c")
bad = []
for cls, body in re.findall(r"saina_ctl_field (\w+)_fields\[\] = \{(.*?)\};", obj_c, re.S):
    rows = {m[0].lower().replace("_", "-"): m[1] for m in re.findall(r"R\((\w+), (\w+), ", body)}
    for name, a in attrs[cls].items():
        if a["type"] == "pad":
            continue
        kind = {"binary": "WORDS" if a.get("sub-type") == "u64" else "BYTES",
                "string": "STRING", "s8": "U8"}.get(a["type"], a["type"].upper())
        if rows.get(name) != kind:
            bad.append(f"{cls}.{name}: {rows.get(name)}, spec says {a['type']}")
    for name in rows:
        if name not in attrs[cls]:
            bad.append(f"{cls}.{name} is not in the spec")
if len(re.findall(r"CLASS\(\w+, \w+\);", obj_c)) != len(sets) - 1:
    bad.append("not every object has a table")
check("the tool's tables have every attribute with the spec's type", bad)

monitor = read("tools/saina/monitor.c")
names = set(re.findall(r"\[SAINA_CMD_(\w+)\] = \"", monitor))
cases = set(re.findall(r"case SAINA_CMD_(\w+):", monitor))
bad = [name for name, o in ops.items() if "notify" in o and const(name) not in names & cases]
bad += [n for n in names if "notify" not in ops.get(n.lower().replace("_", "-"), {})]
check("saina monitor prints every notification of the spec", bad)

print(f"1..{points}")
sys.exit(1 if failed else 0)
