# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""A model's state from rank to rank: each rank serves its own by HTTP, and one that is too far behind fetches it.

    GET /nonce                         a nonce, of the server
    GET /state?nonce=N&mac=M&mine=C    the state; M is the HMAC of N and C with the job's token; C is the client's nonce

The answer has the HMAC of C and the body in a header, so both ends know the token, and it is never sent.  The body is
what state_format.encode() makes.
"""

import hashlib
import hmac
import http.client
import http.server
import os
import secrets
import socket
import threading
import urllib.parse
from typing import Any, Callable, Dict, Optional, Tuple

from .state_format import decode, encode

#: Seconds without a byte after which a peer is given up; longer than it may take to be at a step boundary.
_TIMEOUT_S = 60
_NONCES_MAX = 64
_MAC = "X-Saina-Mac"


class Unavailable(Exception):
    """This peer has no state to give, with the reason."""


def _mac(token: str, *parts: bytes) -> str:
    h = hmac.new(token.encode(), digestmod=hashlib.sha256)
    for part in parts:
        h.update(len(part).to_bytes(8, "little") + part)
    return h.hexdigest()


def token_of(token: Optional[str], token_file: Optional[str]) -> str:
    """The job's token, found as saina_open() does."""
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


class Server:
    """Serves what @snapshot returns, a dictionary of tensors and numbers, from a thread; it raises Unavailable."""

    def __init__(self, address: str, token: str, snapshot: Callable[[], Dict[str, Any]]):
        nonces: Dict[str, None] = {}

        class Handler(http.server.BaseHTTPRequestHandler):
            timeout = _TIMEOUT_S

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
                if url.path != "/state" or not known or not hmac.compare_digest(
                        q.get("mac", ""), _mac(token, b"state", nonce.encode(), mine.encode())):
                    return self._answer(403, b"the token is another one")
                try:
                    body = encode(snapshot())
                except (Unavailable, TypeError) as e:
                    return self._answer(503, str(e).encode())
                return self._answer(200, body, _mac(token, b"body", mine.encode(), body))

        self._http = http.server.ThreadingHTTPServer((address, 0), Handler)
        self._http.daemon_threads = True
        #: address and port
        self.where: Tuple[str, int] = (address, self._http.server_address[1])
        threading.Thread(target=self._http.serve_forever, name="saina_state", daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


def fetch(where: Tuple[str, int], token: str) -> Dict[str, Any]:
    """The state of the peer at @where.  Raises Unavailable."""
    connection = http.client.HTTPConnection(*where, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", "/nonce")
        nonce, mine = connection.getresponse().read().decode("ascii", "replace"), secrets.token_hex(16)
        mac = _mac(token, b"state", nonce.encode(), mine.encode())
        connection.close()
        connection.request("GET", "/state?" + urllib.parse.urlencode({"nonce": nonce, "mac": mac, "mine": mine}))
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise Unavailable(body[:200].decode(errors="replace"))
        if not hmac.compare_digest(answer.getheader(_MAC, ""), _mac(token, b"body", mine.encode(), body)):
            raise Unavailable("its answer was not made with the job's token")
        return dict(decode(body))
    except (OSError, http.client.HTTPException) as e:
        raise Unavailable(f"{type(e).__name__}: {e}" if str(e) else type(e).__name__) from e
    finally:
        connection.close()
