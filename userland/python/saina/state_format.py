# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""State dictionaries as bytes, without pickle: reading foreign bytes runs no code.

    8 bytes, little endian: length of the JSON text; the text; elements of the tensors, one after the other

In the text each value is a list: a tag and what belongs to it.
"""

import json
import sys
from typing import Any, List

_PLAIN = (bool, int, float, str, type(None))


def encode(value: Any) -> bytes:
    """@value: dictionaries, lists, tuples, tensors, numbers, strings, None.  Raises TypeError for anything else."""
    return b"".join(pieces(value))


def pieces(value: Any) -> List[Any]:
    """encode(), as buffers to be joined."""
    torch: Any = sys.modules.get("torch")       # without it there are no tensors
    parts: List[Any] = []

    def walk(x: Any) -> Any:
        if type(x) in _PLAIN:
            return ["v", x]
        if isinstance(x, dict):
            return ["d", [[walk(k), walk(v)] for k, v in x.items()]]
        if isinstance(x, (list, tuple)):
            return ["t" if isinstance(x, tuple) else "l", [walk(v) for v in x]]
        if torch and isinstance(x, torch.Tensor):
            x = x.detach().cpu().contiguous()
            parts.append(x.reshape(-1).view(torch.uint8).numpy())
            return ["x", str(x.dtype)[6:], list(x.shape), len(parts[-1])]
        if hasattr(x, "item") and getattr(x, "shape", None) == ():      # a number of numpy
            return ["v", x.item()]
        if isinstance(x, (int, float)):
            return ["v", float(x) if isinstance(x, float) else int(x)]
        raise TypeError(f"its state has a {type(x).__name__}, which cannot be transferred (dictionaries, lists, tuples, tensors, numbers, "
                        "strings and None can)")

    text = json.dumps(walk(value)).encode()
    return [len(text).to_bytes(8, "little"), text, *parts]


def decode(data: Any) -> Any:
    """What encode() got; tensors are on the CPU.  Raises ValueError."""
    at = 8 + int.from_bytes(data[:8], "little")

    def walk(node: Any) -> Any:
        nonlocal at
        tag = node[0]
        if tag == "v":
            return node[1]
        if tag == "d":
            return {walk(k): walk(v) for k, v in node[1]}
        if tag in ("l", "t"):
            found = [walk(v) for v in node[1]]
            return tuple(found) if tag == "t" else found
        import torch
        dtype = vars(torch).get(node[1])        # unlike getattr(), this imports nothing
        if tag != "x" or not isinstance(dtype, torch.dtype) or at + node[3] > len(data):
            raise ValueError("malformed")
        raw = torch.frombuffer(bytearray(data[at:at + node[3]]), dtype=torch.uint8) if node[3] else torch.zeros(0, dtype=torch.uint8)
        at += node[3]
        return raw.view(dtype).reshape(node[2])

    try:
        return walk(json.loads(bytes(data[8:at])))
    except Exception as e:      # of whatever kind: nothing here runs what was read
        raise ValueError(f"its state cannot be read: {e}") from e
