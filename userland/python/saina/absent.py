# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Reports absent ranks: those missing in finished rounds, and those that the present round waits for.

A result names the ranks that were counted; the agent names those that an open round has waited for since about a
second or longer.
"""

import errno
import time
from typing import Any, Callable, List, Optional

from ._lib import Error
from .preamble import Preamble
from .ranks import Ranks
from .records import Call
from .worker import Request, Worker, rank_list

#: Seconds of waiting after which a rank reports the ones that its round waits for.
_REPORT_S = 12
#: Seconds between checks of a rank that waits.
_POLL_S = 0.2
#: Seconds after which a rank knows who lives: some heartbeats.
_KNOWN_S = 1.0


class Absent:
    """@log: called with lines for the user.  @timeout: seconds that a round may wait, -1: no limit.
    @on_dead: "raise", "continue", or None: raise if rounds wait for all ranks; see torch.State."""

    def __init__(self, worker: Worker, preamble: Preamble, log: Callable[[str], Any], timeout: float,
                 on_dead: Optional[str] = None):
        info = worker.info()
        self.worker, self.preamble, self.log, self.timeout = worker, preamble, log, timeout
        self.ranks = Ranks(info)
        self.me, self.workers = info.rank, info.ranks
        self._ring = info.ring
        self._named: set = set()            # dead, or alive and in no round; until they take part again
        self._dead: set = set()
        self._on_dead = on_dead
        #: the last round without dead ranks waited for all, and the next was to do so, too, as with policy bsp
        self._waits_for_all = False

    def last(self, ranks: List[int]) -> str:
        """Text: the last round of @ranks."""
        seen = {self.preamble.seen[w] for w in ranks}
        rounds = sorted(seen - {-1})
        if not rounds:
            return "took part in no round"
        return f"last took part in round{'s' if len(rounds) > 1 else ''} {', '.join(map(str, rounds))}" + (", or in none" if -1 in seen else "")

    def check(self, call: Call, counted: List[int]) -> None:
        """@call: of a round that is finished, with the ranks @counted: reports changes.  Raises Error (ECONNABORTED) if
        a rank is dead and on_dead says so."""
        for w in sorted(self._named & set(counted)):
            self.log(f"rank {w} takes part again, from round {call.round} on")
            self._named.discard(w)
        missing = set(range(self.workers)) - set(counted) - {self.me}
        dead: set = set()
        if missing:
            info = self.worker.info()
            # After its time-out a round does without live ranks, too.
            waits_for_all = self._waits_for_all and not info.timeout_ms
            until = time.monotonic() + (_KNOWN_S if waits_for_all else 0)
            # This knowledge is as old as a heartbeat: a rank that has just left still counts as alive.
            while any(self.ranks.is_alive(w, info.active) for w in missing - self._named) and time.monotonic() < until:
                time.sleep(_KNOWN_S / 50)
                info = self.worker.info()
            dead = {w for w in missing if not self.ranks.is_alive(w, info.active)}
            for w in sorted(missing - dead - self._named):
                since = max(self.preamble.seen[w], self.preamble.first)
                # With a coded policy another rank may always be counted for it.
                if not info.parts and call.round - since > 2 * self._ring:
                    self._named.add(w)
                    self.log(f"rank {w} has been in no round since round {since}: it stopped computing, or is always too slow to be counted")
            new = sorted(dead - self._dead)
            self._dead = dead
            self._named |= dead
            if new:
                self._report_dead(new, self.workers - len(dead) if self.ranks.tree else bin(info.active).count("1"), waits_for_all)
        if not dead:
            self._dead = dead
            self._waits_for_all = min(call.k, call.next_k) >= self.ranks.workers

    def _report_dead(self, dead: List[int], alive: int, waits_for_all: bool) -> None:
        seen = max(self.preamble.seen[w] for w in dead)
        since = f"since round {seen + 1}" if seen >= 0 else "and took part in no round"
        text = f"{rank_list(dead)} {'have' if len(dead) > 1 else 'has'} left the job, or {'are' if len(dead) > 1 else 'is'} dead, {since}"
        if self._on_dead == "raise" or (self._on_dead is None and waits_for_all):
            raise Error(errno.ECONNABORTED, f"{text}.  {alive} of {self.workers} ranks remain: with "
                                            'State(on_dead="continue") they would go on, and the gradients would be the mean over them')
        self.log(f"{text}: {alive} of {self.workers} ranks go on, and the gradients are the mean over them")

    def wait(self, round: int, meanwhile: Callable[[], Any] = lambda: None) -> "_Wait":
        """Waits for the results of @round: call = absent.wait(round)(request).

        @meanwhile: called again and again while it waits, and at least once."""
        return _Wait(self, round, meanwhile)


class _Wait:
    """This rank has started all its buckets of a round, and waits for the results."""

    def __init__(self, absent: Absent, round: int, meanwhile: Callable[[], Any]):
        self._absent, self._round, self._meanwhile = absent, round, meanwhile
        self._since = time.monotonic()
        self._reported = False
        meanwhile()

    def __call__(self, request: Request) -> Call:
        """request.wait(); Error (ETIMEDOUT) when the round takes too long."""
        while not request.done(_POLL_S):
            self._meanwhile()
            waited = time.monotonic() - self._since
            if waited >= _REPORT_S and not self._reported:
                self._reported = True
                self._absent.log(f"round {self._round} waits for {self._missing()}")
            if 0 <= self._absent.timeout <= waited:
                raise Error(errno.ETIMEDOUT, f"round {self._round} has waited {waited:.0f} s for {self._missing()}.  All ranks must run "
                                             "backward equally often (DistributedDataParallel.join() helps where they have "
                                             "unequal data).  State(round_timeout=..) sets the limit")
        return request.wait()

    def _missing(self) -> str:
        a, info = self._absent, self._absent.worker.info()
        absent = a.ranks.local(info.missing)
        why = f" ({info.reason})" if info.reason else ""
        return f"{rank_list(absent)}, which {a.last(absent)}{why}" if absent else "other ranks (`saina job show' on the bridge's host names them)"
