# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Whether the state of another rank fits this one's objects, before any of it is loaded; and how loading is undone.

What load_state_dict() accepts may still end the next step(): an optimizer takes tensors of any shape, and a scheduler any
attribute.  So the state is compared with this rank's own.  Whatever does not fit raises ValueError, with a sentence.
"""

import contextlib
import copy
import math
from typing import Any, Dict, List, Optional, Sequence, Set

import torch

#: The last round of a job; of a model's steps.
_ROUND_MAX, _STEPS_MAX = 2**31 - 1, 2**32 - 1
#: Rounds that a job may go on while a state is transferred.
_AHEAD_MAX = 1 << 20
#: Optimizers of torch whose state has tensors of other shapes than their parameters'.
_OTHER_SHAPES = {"LBFGS", "Adafactor"}


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def _text(x: Any) -> str:
    if isinstance(x, torch.Tensor):
        return f"{tuple(x.shape)} of {str(x.dtype)[6:]}"
    return repr(x)[:60] if isinstance(x, (int, float, str, type(None))) else f"a {type(x).__name__}"


def _refuse(what: str, mine: str, theirs: str) -> None:
    raise ValueError(f"{what} is {mine} on this rank and {theirs} on the other one")


def _compare(what: str, mine: Any, theirs: Any) -> None:
    """Of the same kind?  None may become anything, lists may grow, and dictionaries may have more keys."""
    if mine is None:
        return
    if isinstance(mine, torch.Tensor):
        same = isinstance(theirs, torch.Tensor) and theirs.dtype == mine.dtype and theirs.shape == mine.shape
    elif _is_number(mine):
        same = _is_number(theirs)
    elif isinstance(mine, dict):
        same = isinstance(theirs, dict)
    else:
        # What is of no kind that is transferred, this rank cannot judge.
        same = isinstance(theirs, type(mine)) or not isinstance(mine, (bool, str, list, tuple))
    if not same:
        _refuse(what, _text(mine), _text(theirs))
    if isinstance(mine, dict):
        for k, v in mine.items():
            if k not in theirs:
                _refuse(f"{k} of {what}", _text(v), "not there")
            _compare(f"{k} of {what}", v, theirs[k])
    elif isinstance(mine, tuple) and len(mine) != len(theirs):
        _refuse(what, f"of {len(mine)} values", f"of {len(theirs)}")
    elif isinstance(mine, (list, tuple)):
        for i, (v, w) in enumerate(zip(mine, theirs)):
            _compare(f"{what}[{i}]", v, w)


def _module(module: torch.nn.Module, theirs: Any, what: str) -> None:
    if not isinstance(theirs, dict):
        _refuse(what, "a dictionary", _text(theirs))
    a = dict(module.state_dict())
    for k in list(a) + list(theirs):
        if k not in a or k not in theirs:
            _refuse(f"{k} of {what}", *(str(tuple(d[k].shape)) if isinstance(d.get(k), torch.Tensor) else "there" if k in d else "not there"
                                        for d in (a, theirs)))
        if isinstance(a[k], torch.Tensor):
            if isinstance(theirs[k], torch.Tensor) and theirs[k].dtype == a[k].dtype and theirs[k].shape != a[k].shape:
                _refuse(f"{k} of {what}", str(tuple(a[k].shape)), str(tuple(theirs[k].shape)))
            _compare(f"{k} of {what}", a[k], theirs[k])


def _new_state(optimizer: Any, group: Dict[str, Any], p: torch.Tensor) -> Dict[str, Any]:
    """What a step makes of the state of a parameter like @p that has none; {}: not known."""
    if not type(optimizer).__module__.startswith("torch.optim"):
        return {}
    try:
        # Of the type of @p, but of two elements, on the CPU.
        like = torch.nn.Parameter(torch.ones(2, dtype=p.dtype))
        other = type(optimizer)([like], **{k: group[k] for k in optimizer.defaults})
        like.grad = torch.ones_like(like)
        other.step()
        return dict(other.state[like])
    except Exception:       # it steps in another way
        return {}


def _is_nan(x: Any) -> bool:
    return bool(torch.isnan(x).any()) if isinstance(x, torch.Tensor) else isinstance(x, float) and math.isnan(x)


def _parameter_state(optimizer: Any, group: Dict[str, Any], p: torch.Tensor, theirs: Any, what: str) -> None:
    """Of the parameter @p."""
    if not isinstance(theirs, dict):
        _refuse(what, "a dictionary", _text(theirs))
    mine = optimizer.state.get(p)
    known = mine or _new_state(optimizer, group, p)
    for k, v in known.items():
        if k not in theirs:
            _refuse(f"{k} of {what}", _text(v), "not there")
        if not mine and isinstance(v, torch.Tensor) and v.shape == (2,):
            v = v.new_empty(1).expand(p.shape)
        _compare(f"{k} of {what}", v, theirs[k])
    for k, v in theirs.items():
        if not isinstance(k, str):
            raise ValueError(f"{what} has {_text(k)} for a key")
        if k == "step" and _is_nan(v):
            raise ValueError(f"{k} of {what} is not a number on the other rank")
        if k not in known and isinstance(v, torch.Tensor) and v.numel() != 1 and v.shape != p.shape and \
                type(optimizer).__module__.startswith("torch.optim") and type(optimizer).__name__ not in _OTHER_SHAPES:
            _refuse(f"{k} of {what}", f"like {tuple(p.shape)}", _text(v))


def _optimizer(optimizer: Any, theirs: Any) -> None:
    what = type(optimizer).__name__
    if not isinstance(theirs, dict) or not isinstance(theirs.get("param_groups"), list) or not isinstance(theirs.get("state"), dict):
        raise ValueError(f"the state of {what} is {_text(theirs)} without param_groups and state on the other rank")
    groups = theirs["param_groups"]
    if len(groups) != len(optimizer.param_groups):
        raise ValueError(f"{what}: {len(optimizer.param_groups)} parameter groups on this rank, and {len(groups)} on the other one")
    parameter: Dict[int, Any] = {}
    for i, (group, other) in enumerate(zip(optimizer.param_groups, groups)):
        at = f"param_groups[{i}] of {what}"
        _compare(at, {k: v for k, v in group.items() if k != "params"}, other)
        if any(_is_nan(v) for v in other.values()):
            raise ValueError(f"{at} has a value that is not a number on the other rank")
        names = other.get("params")
        if not isinstance(names, list) or len(names) != len(group["params"]) or not all(type(n) is int for n in names):
            _refuse(f"params of {at}", f"a list of {len(group['params'])} numbers", _text(names) if not isinstance(names, list) else f"a list of {len(names)}")
        parameter.update({n: (group, p) for n, p in zip(names, group["params"])})
    if len(parameter) != sum(len(g["params"]) for g in optimizer.param_groups):
        raise ValueError(f"{what}: a parameter is twice in its groups on the other rank")
    for n, state in theirs["state"].items():
        if type(n) is not int or n not in parameter:
            raise ValueError(f"the state of {what} is of a parameter {_text(n)}, which there is not")
        _parameter_state(optimizer, *parameter[n], state, f"the state of parameter {n} of {what}")


def _other(x: Any, theirs: Any) -> None:
    """A scheduler, a GradScaler or what the user has made."""
    what, mine = type(x).__name__, x.state_dict()
    if not type(x).__module__.startswith("torch."):
        if isinstance(mine, (dict, list, tuple)) and not isinstance(theirs, (dict if isinstance(mine, dict) else type(mine))):
            _refuse(f"the state of {what}", _text(mine), _text(theirs))
        return
    _compare(f"the state of {what}", mine, theirs)
    # They become attributes.
    for k in set(theirs) - set(mine) if isinstance(theirs, dict) else ():
        if not isinstance(k, str) or hasattr(x, k):
            raise ValueError(f"the state of {what} has {_text(k)}, which is none of its values")


def check_objects(mine: List[Any], theirs: Any) -> None:
    """@mine: this rank's, the model first.  @theirs: the state of each, of another rank."""
    if not isinstance(theirs, list):
        raise ValueError(f"its objects are {_text(theirs)}, not a list")
    if len(mine) != len(theirs):
        raise ValueError(f"this rank's State has {len(mine)} objects (model, optimizer, extra), the other one's {len(theirs)}")
    for i, (x, state) in enumerate(zip(mine, theirs)):
        if isinstance(x, torch.nn.Module):
            _module(x, state, "the model" if not i else type(x).__name__)
        elif hasattr(x, "param_groups") and hasattr(x, "state"):
            _optimizer(x, state)
        else:
            _other(x, state)


def check_position(state: Dict[str, Any], latest: int, parameters: Sequence[str]) -> None:
    """Where in the job @state is: its round, the steps of its model, and the names of @parameters in each bucket.  @latest: the
    job's round, as last heard."""
    if not {"round", "rounds", "layout", "objects"} <= set(state):
        raise ValueError("its state is of another version of saina")
    for key, most in (("round", min(_ROUND_MAX, latest + _AHEAD_MAX)), ("rounds", _STEPS_MAX)):
        if type(state[key]) is not int or not 0 <= state[key] <= most:
            raise ValueError(f"its state says {_text(state[key])} for its {key}, which cannot be")
    layout, known, seen = state["layout"], set(parameters), set()   # type: Any, Set[str], Set[str]
    if not isinstance(layout, list) or not all(isinstance(names, list) and names for names in layout):
        raise ValueError("its state has no list of buckets, each a list of parameters")
    for name in (n for names in layout for n in names):
        if not isinstance(name, str) or name not in known or name in seen:
            raise ValueError(f"{_text(name)} is in its buckets, and {'in two of them' if isinstance(name, str) and name in seen else 'no parameter of this model'}")
        seen.add(name)
    if "strides" in state:
        _check_strides(state["strides"], layout)


def _check_strides(strides: Any, layout: List[List[str]]) -> None:
    def is_list(x: Any, n: int) -> bool:
        return isinstance(x, (list, tuple)) and (n < 0 or len(x) == n)

    if not is_list(strides, len(layout)) or not all(
            is_list(bucket, len(names)) and all(is_list(s, -1) and all(type(n) is int and n >= 0 for n in s) for s in bucket)
            for bucket, names in zip(strides, layout)):
        raise ValueError("its state has no strides of each parameter in its buckets")


class Before:
    """The state of @x, to which restore() takes it back, also what load_state_dict() has replaced or added."""

    def __init__(self, x: Any):
        self._x = x
        self._attributes: Optional[Dict[str, Any]] = dict(vars(x)) if hasattr(x, "__dict__") else None
        # In the host's memory: there may be none for two models on a GPU.
        self._state = {k: v.detach().to("cpu", copy=True) if isinstance(v, torch.Tensor) else copy.deepcopy(v) for k, v in x.state_dict().items()} \
            if isinstance(x, torch.nn.Module) else copy.deepcopy(x.state_dict())
        found = [*getattr(x, "param_groups", ())] + [s for s in getattr(x, "state", {}).values() if isinstance(s, dict)] \
            if isinstance(x, torch.optim.Optimizer) else []
        self._dictionaries = [(d, dict(d)) for d in found]

    def restore(self) -> None:
        with contextlib.suppress(Exception):
            self._x.load_state_dict(self._state)
        for d, was in [*self._dictionaries, (vars(self._x), self._attributes)] if self._attributes is not None else self._dictionaries:
            for k in set(d) - set(was):
                del d[k]
            d.update(was)
