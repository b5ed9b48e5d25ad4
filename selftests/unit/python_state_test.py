#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The transfer of a state from rank to rank, without a job: its bytes (state_format.py), and what a rank does with them (transfer.py).
Also where gradients lie in buckets, and how many of these a model can have (buckets.py), what is kept of gradients (residuals.py,
accumulated.py), when a State warns about late ones (late_rule.py), and which refusals mean that a job is too small (torch.py).  TAP.

Skipped where python3 has no torch.
"""

import copy
import errno
import json
import os
import random
import struct
import sys
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
from saina import Error
from saina.accumulated import Accumulated
from saina.buckets import Bucket, Known, Memory, Started, most_buckets, repack, repacked, set_gradients, signature, strides_of
from saina.late_rule import LateRule
from saina.membership import group_secret
from saina.ranks import Ranks
from saina.records import Info
from saina.recovery import Recovery
from saina.peer_state import Server, Unavailable
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


def group():
    """The secret of a process group of one rank."""
    def secret(job, workers):
        """Of a job that has so many workers."""
        info = {**dict.fromkeys(Info._fields, 0), "job": job, "workers": workers, "ranks": workers}
        return group_secret(Ranks(Info(**info)))

    point(secret(3, 1) == "", "without a process group there is no secret")
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    found = [secret(job, workers) for job, workers in ((3, 1), (3, 1), (4, 1), (3, 2))]
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


def training(seed):
    """A model, Adam with a step, a scheduler, an average and what a user has made."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    opt = torch.optim.Adam(model.parameters(), lr=0.1 * seed)
    model(torch.randn(4, 3)).square().sum().backward()
    opt.step()
    return [model, opt, torch.optim.lr_scheduler.StepLR(opt, 10), copy.deepcopy(model[0]), Refusing()]


def rank(objects):
    """A rank too far behind, with these objects, of a job without an aggregator."""
    state = Recovery()
    state._recovery_init()
    state._transfer, state._secret, state._failed, state._log = Transfer(objects), "s3cret", None, lambda _: None
    state._worker = state.worker = types.SimpleNamespace(info=lambda: types.SimpleNamespace(rank=0, next_round=120, round=3))
    state._preamble = types.SimpleNamespace(seen=[0, 2, 1])
    return state


def state_of(objects):
    return {"round": 100, "rounds": 90, "layout": [["0.weight", "0.bias"], ["1.weight", "1.bias"]],
            "objects": [copy.deepcopy(x.state_dict()) for x in objects]}


def put(*path):
    """A change of a state: the value @path[-1] at the keys before it; no key is added twice."""
    def change(state):
        for key in path[:-2]:
            state = state[key]
        state[path[-2]] = path[-1]
    return change


def removed(*path):
    def change(state):
        for key in path[:-1]:
            state = state[key]
        del state[path[-1]]
    return change


MODEL, ADAM, STEP, AVERAGE, OWN = (("objects", i) for i in range(5))
GROUP, FIRST = (*ADAM, "param_groups", 0), (*ADAM, "state", 0)
ODD = {
    "no round": removed("round"), "a negative round": put("round", -1), "a huge round": put("round", 2**40), "a round after the last": put("round", 2**31 - 1),
    "True for the round": put("round", True), "100.5 for the round": put("round", 100.5), "NaN for the round": put("round", float("nan")),
    "a text for the round": put("round", "100"), "a tensor for the round": put("round", torch.tensor(100)), "a list for the round": put("round", [[100]]),
    "-1 steps": put("rounds", -1), "2**32 steps": put("rounds", 2**32), "NaN steps": put("rounds", float("nan")), "None for the steps": put("rounds", None),
    "no layout": removed("layout"), "a text for the layout": put("layout", "0.weight"), "a layout of texts": put("layout", ["0.weight"]),
    "a number for a parameter's name": put("layout", 0, 0, 7), "a list for a parameter's name": put("layout", 0, 0, ["0.weight"]),
    "an unknown parameter": put("layout", 0, 0, "2.weight"), "a parameter that is in two buckets": put("layout", 0, 0, "1.bias"), "an empty bucket": put("layout", 0, []),
    "no objects": removed("objects"), "None for the objects": put("objects", None), "a dictionary for the objects": put("objects", {0: 1}),
    "a tensor for the objects": put("objects", torch.zeros(5)), "one object less": removed("objects", 4), "a model that is a list": put(*MODEL, [1, 2]),
    "a model that is None": put(*MODEL, None), "a number for a weight": put(*MODEL, "0.weight", 1.5), "a weight of another type": put(*MODEL, "0.weight", torch.zeros(2, 3).double()),
    "a weight of another shape": put(*MODEL, "0.weight", torch.zeros(3, 2)), "a weight less": removed(*MODEL, "0.weight"), "a number for a weight's name": put(*MODEL, 7, torch.zeros(1)),
    "a count of another type": put(*MODEL, "1.num_batches_tracked", torch.tensor(float("nan"))),
    "an optimizer that is a text": put(*ADAM, "Adam"), "an optimizer without groups": removed(*ADAM, "param_groups"), "a group that is a list": put(*GROUP, []),
    "groups that are a dictionary": put(*ADAM, "param_groups", {}), "no lr": removed(*GROUP, "lr"), "a text for the lr": put(*GROUP, "lr", "0.1"),
    "NaN for the lr": put(*GROUP, "lr", float("nan")), "a tensor for the lr": put(*GROUP, "lr", torch.zeros(2)), "three betas": put(*GROUP, "betas", (0.1, 0.2, 0.3)),
    "a text in betas": put(*GROUP, "betas", (0.1, "x")), "a number for amsgrad": put(*GROUP, "amsgrad", 7), "no params": removed(*GROUP, "params"),
    "params of texts": put(*GROUP, "params", ["a", "b", "c", "d"]), "one parameter four times": put(*GROUP, "params", [0, 0, 0, 0]),
    "a state that is a list": put(*ADAM, "state", []), "a state of a parameter that there is not": put(*ADAM, "state", 9, {"step": 1}),
    "a state of a text": put(*ADAM, "state", "0", {}), "a parameter's state that is a tensor": put(*FIRST, torch.zeros(2)),
    "an average of another shape": put(*FIRST, "exp_avg", torch.zeros(7)), "an average of another type": put(*FIRST, "exp_avg", torch.zeros(2, 3, dtype=torch.int64)),
    "a number for an average": put(*FIRST, "exp_avg", 0.5), "no average": removed(*FIRST, "exp_avg_sq"), "NaN for the count of steps": put(*FIRST, "step", torch.tensor(float("nan"))),
    "a text for the count of steps": put(*FIRST, "step", "1"), "a number for the name of an average": put(*FIRST, 3, torch.zeros(1)),
    "a scheduler that is None": put(*STEP, None), "a text for a scheduler's epoch": put(*STEP, "last_epoch", "3"), "no epoch": removed(*STEP, "last_epoch"),
    "a scheduler's optimizer": put(*STEP, "optimizer", 5), "a scheduler's method": put(*STEP, "step", 5), "a number for a scheduler's name": put(*STEP, 5, 5),
    "a module's average of another shape": put(*AVERAGE, "bias", torch.zeros(9)), "a user's object that refuses": put(*OWN, "b", 8), "a user's object that is a list": put(*OWN, [1]),
}


def whole(objects):
    """All that the objects are, and which tensors they have."""
    return encode([x.state_dict() for x in objects]), [sorted(map(str, vars(x))) for x in objects], \
        [id(p) for p in objects[0].parameters()], [id(v) for s in objects[1].state.values() for v in s.values()], objects[2].optimizer is objects[1]


def odd_states():
    """States of peers that know the secret, and are odd in one place."""
    good, wrong, changed, unusable = state_of(training(2)), {}, [], {}
    for fresh in (False, True):
        for what, change in ODD.items():
            mine, bad = training(1), copy.deepcopy(good)
            if fresh:
                mine[1].state.clear()       # it has made no step
            change(bad)
            me, was = rank(mine), whole(mine)
            try:
                servers = [Server("127.0.0.1", "s3cret", lambda: bad), Server("127.0.0.1", "s3cret", lambda: good)]
                try:
                    me._fetch({1: servers[0].where}, 50, "is behind")
                    wrong[what, fresh] = "it was taken"
                except Error as e:
                    if "rank 1: " not in str(e):
                        wrong[what, fresh] = e
                if whole(mine) != was:
                    changed.append((what, fresh))
                me._failed = None
                found = me._fetch({1: servers[0].where, 2: servers[1].where}, 50, "is behind")
                mine[1].step()
                if found["rounds"] != 90 or not same(mine[3].state_dict(), good["objects"][3]):
                    unusable[what, fresh] = "not that of the next rank"
            except Exception as e:      # pylint: disable=broad-except
                wrong[what, fresh] = f"{type(e).__name__}: {e}"
            finally:
                for server in servers:
                    server.close()
    n = len(ODD)
    point(not wrong, f"{n} odd states, with and without a state of the optimizer here: refused, and the rank is named", wrong)
    point(not changed, f"{n} odd states: model, optimizer, scheduler and all else are as before, to the bit", changed)
    point(not unusable, f"{n} odd states: the next rank's is taken, and the next step is made", unusable)


def unlike_states():
    """States that differ as those of ranks do, whose training has gone on."""
    refused_ = {}
    makes = {"SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), "SGD without momentum": lambda p: torch.optim.SGD(p, lr=0.1)}
    makes.update({o.__name__: lambda p, o=o: o(p) for o in (
        torch.optim.Adam, torch.optim.AdamW, torch.optim.Adadelta, torch.optim.Adagrad, torch.optim.Adamax, torch.optim.ASGD, torch.optim.LBFGS,
        torch.optim.NAdam, torch.optim.RAdam, torch.optim.RMSprop, torch.optim.Rprop)})
    for what, make in makes.items():
        for steps in (0, 1):
            pairs = []
            for n in (steps, 3):
                model = torch.nn.Linear(3, 2)
                opt = make(model.parameters())
                plan = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=0)
                for i in range(n):
                    model(torch.ones(3)).sum().backward()
                    opt.step(lambda model=model: model(torch.ones(3)).sum())
                    plan.step(1.0 + i)
                pairs.append([model, opt, plan])
            theirs = decode(encode(Transfer(pairs[1]).copy({})))
            try:
                Transfer(pairs[0]).load(theirs)
                pairs[0][0](torch.ones(3)).sum().backward()
                pairs[0][1].step(lambda: pairs[0][0](torch.ones(3)).sum())
            except Exception as e:      # pylint: disable=broad-except
                refused_[what, steps] = f"{type(e).__name__}: {e}"
    point(not refused_, "all optimizers of torch, with a scheduler: the state of a rank that has made more steps is loaded, by one that has made none, too", refused_)


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
    point(len(said) == 1 and "in the last 20 rounds 50% were late" in said[0] and "SGD has momentum" in said[0] and "`saina job set 7 policy POLICY,late=drop'" in said[0],
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
    """most_buckets() compared with what PyTorch makes of random models whose gradients come in any order."""
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
group()
at_rest()
loads()
odd_states()
unlike_states()
late_rule()
too_few()
buckets()
tap.end()
