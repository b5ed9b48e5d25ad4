# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""A model's state from rank to rank: each rank serves its own (peer_link.py), and one that is too far behind fetches it.

The secret is the job's token, or what the ranks share by their process group (membership.group_secret()).  The bytes are what
state_format.encode() makes.
"""

import os
import socket
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from .peer_link import Listener, Silent, Unavailable, receive
from .state_format import decode, pieces

#: How often each peer is asked; seconds of pause after the first time, doubled each time; seconds after which no peer is asked again.
TRIES, _PAUSE_S, _TRIES_S = 6, 0.2, 300


class Unfit(Exception):
    """The states of all peers are for another model."""


def token_of(token: Optional[str], token_file: Optional[str]) -> str:
    """The job's token, found as saina_open() does; "": none."""
    path = token_file
    if token is None and path is None:
        token, path = os.environ.get("SAINA_TOKEN"), os.environ.get("SAINA_TOKEN_FILE")
    if token is None and path:
        with open(path, encoding="utf-8") as f:
            token = f.readline().strip()
    return token or ""


def address_towards(aggregator: str) -> str:
    """This host's IPv4 address on the route to @aggregator, "ADDRESS[:PORT]"."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect((aggregator.split(":")[0], 1))
        return str(s.getsockname()[0])


class Server(Listener):
    """Serves what @snapshot returns, a dictionary of tensors and numbers, from a thread; it raises Unavailable."""

    def __init__(self, address: str, secret: str, snapshot: Callable[[], Dict[str, Any]]):
        super().__init__(address, secret, lambda: pieces(snapshot()))


def fetch(where: Tuple[str, int], secret: str) -> Dict[str, Any]:
    """The state of the peer at @where.  Raises Unavailable; ValueError if it is not one."""
    found = decode(receive(where, secret))
    if not isinstance(found, dict):
        raise ValueError("its state is not a dictionary")
    return found


def fetch_any(peers: List[Tuple[int, Tuple[str, int]]], secret: str, use: Callable[[Dict[str, Any]], None]) -> int:
    """Gives @use the state of one of @peers, [(rank, address and port)], the first of which is asked first.

    @use: raises Unavailable, or ValueError with a sentence, if it cannot use the state; then the next peer is asked, as after
    any other error.

    A peer is asked TRIES times, unless it is silent or its state does not fit.  Returns the rank whose state @use has
    got.  Raises Unavailable, or Unfit if no state fits; each with the reasons of all peers.
    """
    reasons: Dict[int, str] = {}
    unfit, left, begun = set(), list(peers), time.monotonic()
    for i in range(TRIES):
        for w, where in list(left):
            try:
                use(fetch(where, secret))
                return w
            except Unavailable as e:
                reasons[w] = str(e)
                if isinstance(e, Silent):
                    left.remove((w, where))
            except Exception as e:      # of whatever kind: it is about what another rank has sent
                reasons[w] = str(e) if isinstance(e, ValueError) else f"its state cannot be used: {type(e).__name__}: {e}"
                unfit.add(w)
                left.remove((w, where))
            if time.monotonic() - begun > _TRIES_S:
                left = []
                break
        if left and i + 1 < TRIES:
            time.sleep(_PAUSE_S * 2 ** i)
    text = "; ".join(f"rank {w}: {r}" for w, r in sorted(reasons.items())) or "none is known"
    raise Unfit(text) if unfit and len(unfit) == len(peers) else Unavailable(text)
