# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""A model's state from rank to rank: each rank serves its own by HTTP, and one that is too far behind fetches it.

    GET /nonce                         a nonce, of the server
    GET /state?nonce=N&mac=M&mine=C    the state; M is the HMAC of N and C with the secret; C is the client's nonce

The answer has the HMAC of C and the body in a header.  So each end proves that it knows the secret, which is never sent.
The secret is the job's token, or what the ranks share by their process group (membership.group_secret()).  The body is what
state_format.encode() makes.
"""

import hashlib
import hmac
import http.client
import http.server
import os
import secrets
import socket
import sys
import threading
import time
import urllib.parse
from typing import Any, Callable, Dict, List, Optional, Tuple

from .state_format import decode, encode

#: Seconds without a byte after which a peer is given up.  It has a nonce at once; before it sends its state it may take
#: transfer._SNAPSHOT_S to reach a step boundary.
NONCE_S, STATE_S = 10, 60
#: Bytes a second that a peer must have sent on average, with STATE_S to begin with.
_RATE_MIN = 64 << 10
#: How often each peer is asked; seconds of pause after the first time, doubled each time; seconds after which no peer is asked again.
TRIES, _PAUSE_S, _TRIES_S = 6, 0.2, 300
_NONCES_MAX = 64
_MAC = "X-Saina-Mac"


class Unavailable(Exception):
    """This peer has no state to give; the text is the reason."""


class Silent(Unavailable):
    """This peer did not answer in time: it is not asked again."""


class Unfit(Exception):
    """The states of all peers are for another model."""


def _mac(secret: str, *parts: bytes) -> str:
    h = hmac.new(secret.encode(), digestmod=hashlib.sha256)
    for part in parts:
        h.update(len(part).to_bytes(8, "little") + part)
    return h.hexdigest()


def _equal(a: str, b: str) -> bool:
    """In constant time; either may be of any characters."""
    return hmac.compare_digest(a.encode(), b.encode())


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


class _HTTPServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that has gone asks another peer.
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Server:
    """Serves what @snapshot returns, a dictionary of tensors and numbers, from a thread; it raises Unavailable."""

    def __init__(self, address: str, secret: str, snapshot: Callable[[], Dict[str, Any]]):
        nonces: Dict[str, None] = {}

        class Handler(http.server.BaseHTTPRequestHandler):
            timeout = STATE_S

            def log_message(self, *_: Any) -> None:
                pass

            def _answer(self, status: int, body: bytes, mac: str = "") -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.send_header(_MAC, mac)
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self) -> None:       # noqa: N802: named by http.server
                url = urllib.parse.urlsplit(self.path)
                if url.path == "/nonce":
                    nonce = secrets.token_hex(16)
                    while len(nonces) >= _NONCES_MAX:
                        nonces.pop(next(iter(nonces)), None)
                    nonces[nonce] = None
                    return self._answer(200, nonce.encode())
                q = dict(urllib.parse.parse_qsl(url.query))
                nonce, mine = q.get("nonce", ""), q.get("mine", "")
                known = nonce in nonces
                nonces.pop(nonce, None)     # each is good for one request
                if url.path != "/state" or not known or not _equal(
                        q.get("mac", ""), _mac(secret, b"state", nonce.encode(), mine.encode())):
                    return self._answer(403, b"wrong token, or wrong secret of the process group")
                try:
                    body = encode(snapshot())
                except (Unavailable, TypeError) as e:
                    return self._answer(503, str(e).encode())
                return self._answer(200, body, _mac(secret, b"body", mine.encode(), body))

        self._http = _HTTPServer((address, 0), Handler)
        #: address and port
        self.where: Tuple[str, int] = (address, self._http.server_address[1])
        threading.Thread(target=self._http.serve_forever, name="saina_state", daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


def _read(answer: http.client.HTTPResponse) -> bytearray:
    """The body of @answer, while its peer sends it fast enough."""
    size, body, begun = answer.length, bytearray(), time.monotonic()
    if size is None:
        raise Unavailable("its answer has no length")
    while len(body) < size:
        part = answer.read1(min(size - len(body), 1 << 20))
        if not part:
            raise Unavailable(f"it broke off after {len(body)} of {size} bytes")
        body += part
        if time.monotonic() - begun > STATE_S + len(body) / _RATE_MIN:
            raise Silent(f"it is too slow: {len(body)} of {size} bytes in {time.monotonic() - begun:.0f} s")
    return body


def fetch(where: Tuple[str, int], secret: str) -> Dict[str, Any]:
    """The state of the peer at @where.  Raises Unavailable; ValueError if it is not one."""
    connection = http.client.HTTPConnection(*where, timeout=NONCE_S)
    try:
        connection.request("GET", "/nonce")
        nonce, mine = _read(connection.getresponse()).decode("ascii", "replace"), secrets.token_hex(16)
        mac = _mac(secret, b"state", nonce.encode(), mine.encode())
        connection.close()
        connection.timeout = STATE_S
        connection.request("GET", "/state?" + urllib.parse.urlencode({"nonce": nonce, "mac": mac, "mine": mine}))
        answer = connection.getresponse()
        body = _read(answer)
        if answer.status != 200:
            raise Unavailable(body[:200].decode(errors="replace"))
        if not _equal(answer.getheader(_MAC, ""), _mac(secret, b"body", mine.encode(), body)):
            raise Unavailable("its answer was not made with the job's token, or the process group's secret")
        found = decode(body)
        if not isinstance(found, dict):
            raise ValueError("its state is not a dictionary")
        return found
    except socket.timeout as e:
        raise Silent(f"it has not answered for {connection.timeout:g} s") from e
    except (OSError, http.client.HTTPException) as e:
        raise Unavailable(f"{type(e).__name__}: {e}" if str(e) else type(e).__name__) from e
    finally:
        connection.close()


def fetch_any(peers: List[Tuple[int, Tuple[str, int]]], secret: str, use: Callable[[Dict[str, Any]], None]) -> int:
    """Gives @use the state of one of @peers, [(rank, address and port)], the first of which is asked first.

    @use: raises Unavailable or ValueError if it cannot use the state; then the next peer is asked.

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
            except ValueError as e:
                reasons[w] = str(e)
                unfit.add(w)
                left.remove((w, where))
            if time.monotonic() - begun > _TRIES_S:
                left = []
                break
        if left and i + 1 < TRIES:
            time.sleep(_PAUSE_S * 2 ** i)
    text = "; ".join(f"rank {w}: {r}" for w, r in sorted(reasons.items())) or "none is known"
    raise Unfit(text) if unfit and len(unfit) == len(peers) else Unavailable(text)
