# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""The preamble of a round: its first elements, by which the ranks exchange what they are about to reduce.

Each worker has elements of its own, to which the others add 0, so that the sum has the values of all.  One byte an
element: exact in jobs of any type.  The elements of a worker are a Notice.
"""

import collections
import errno
import socket
import struct
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy

from ._lib import Error
from .ranks import Ranks
from .records import Call, whole
from .worker import Request, Worker, rank_list

_NOTICE = struct.Struct("<IIIIIHHd")
#: Elements of the preamble for each worker of the job.
PER_WORKER = _NOTICE.size
#: Flag of a rank that has no model of this job yet.
JOINING = 1
#: Flag of all: without it there is no notice.
_PRESENT = 2


class Notice(NamedTuple):
    """What a rank tells the others about itself at the beginning of a round."""
    #: of the layout
    signature: int
    #: microseconds that it waited in the previous round, plus 1; 0: not known
    waited: int = 0
    #: of the parameters before this round; 0: not computed
    checksum: int = 0
    #: rounds that its model has
    rounds: int = 0
    #: where it serves its state: the bytes of its IPv4 address as a little-endian number, and the port; 0: it does not
    address: int = 0
    port: int = 0
    flags: int = 0
    #: what its gradients are divided by after backward; 0: it has none
    scale: float = 0.0


class Straggler(NamedTuple):
    """Lateness of one rank, since the job was joined.  None: nothing is known."""
    rank: int
    #: behind the first rank of the round, on average; milliseconds
    late_ms: Optional[float]
    #: the maximum of all rounds; milliseconds
    worst_ms: Optional[float]
    #: rounds in which it came last of all, of `rounds`
    last: int
    #: rounds that were decided without it, of `of`
    missed: int
    #: rounds in which its lateness is known
    rounds: int
    #: the last round it was counted in
    seen: Optional[int]
    #: rounds of this rank
    of: int


class Stragglers(List[Straggler]):
    """All ranks, those first that missed most rounds, then the latest.  str(): a table."""

    def __str__(self) -> str:
        def number(value: Optional[float], form: str) -> str:
            return "-" if value is None else format(value, form)

        rows = [("rank", "late ms", "worst ms", "came last", "missed", "seen in round")]
        rows += [(str(s.rank), number(s.late_ms, ".1f"), number(s.worst_ms, ".1f"),
                  f"{s.last} of {s.rounds}" if s.rounds else "-", f"{s.missed} of {s.of}", number(s.seen, "d")) for s in self]
        widths = [max(map(len, column)) for column in zip(*rows)]
        return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(row, widths)) for row in rows)


class Preamble:
    """@log: called with lines for the user.  numel: elements of the preamble, in whole segments."""

    def __init__(self, worker: Worker, log: Callable[[str], Any]):
        info = worker.info()
        self._worker = worker
        self._log = log
        self._ranks = Ranks(info)
        self._me = info.rank
        self._workers = info.ranks
        self._type = numpy.int32 if info.type == 1 else numpy.float32
        self._n = _NOTICE.size * info.ranks
        self.numel = whole(self._n, info.payload)
        self._sent = Notice(0)
        self._wait_us = 0
        self._elements = numpy.zeros(self._n, self._type)
        self._mine = self._elements[_NOTICE.size * self._me:_NOTICE.size * (self._me + 1)]
        self._has_residual = True           # possibly, of a round that it missed
        self._of = 0                        # rounds
        self._late_us = [0] * info.ranks
        self._worst_us = [0] * info.ranks
        self._last = [0] * info.ranks
        self._missed = [0] * info.ranks
        self._rounds = [0] * info.ranks
        #: the last round that each rank was counted in, -1: none; the first round
        self.seen = [-1] * info.ranks
        self.first = info.round
        #: where other ranks serve their state; ranks that had no model of this job in the last round
        self.peers: Dict[int, Tuple[str, int]] = {}
        self.joining: set = set()

    def start(self, notice: Notice) -> Request:
        """Starts the preamble's all-reduce; @notice: of this rank; waited is added."""
        self._sent = notice._replace(waited=min(self._wait_us, 2**32 - 1), flags=notice.flags | _PRESENT)
        self._elements.fill(0)
        self._mine[:] = list(_NOTICE.pack(*self._sent))
        if self._has_residual:
            # libsaina adds the residual: subtract it before.
            self._elements -= self._worker.residual(0, self._n, self._type)
        return self._worker.start(self._elements, "sum")

    def check(self, call: Call) -> List[int]:
        """@call: of start()'s request.  Returns the ranks that were counted; Error (EPROTO) if their signatures
        differ, Error (EILSEQ) if this rank's parameters differ from those of the others, Error (EOPNOTSUPP) if it was a step, or coded
        and this program does not know its part."""
        if not call.mask_any and not self._ranks.tree:
            raise Error(errno.EOPNOTSUPP, "the job's policy has steps (ssp, asp, grouped), after which the models of the ranks differ; "
                                          "DistributedDataParallel needs equal models.  Set a policy with rounds (`saina job set JOB policy "
                                          "bsp'), or train without DistributedDataParallel (worker.allreduce())")
        parts = self._worker.info().parts
        if parts and not self._worker.part_known:
            raise Error(errno.EOPNOTSUPP, f"the job's policy is coded: {self._workers} ranks compute {parts} parts of the data, and of the ranks of a part "
                                          "one is counted, so each of them must compute the same.  This program has not asked for its part "
                                          "(state.worker.coded_part, before each step), and the other ranks' data would be lost.  Ask for it, or set "
                                          "another policy (`saina job set JOB policy bsp')")
        data = self._elements.astype(numpy.uint8).tobytes()
        possible = range(self._workers) if self._ranks.tree else self._ranks.local(call.mask_all)
        notices = {w: Notice(*_NOTICE.unpack_from(data, w * _NOTICE.size)) for w in possible}
        if self._ranks.tree:
            notices = {w: n for w, n in notices.items() if n.flags & _PRESENT}
        counted = list(notices)
        self.joining = {w for w, n in notices.items() if n.flags & JOINING}
        self.peers.update({w: (socket.inet_ntoa(struct.pack("<I", n.address)), n.port) for w, n in notices.items()
                           if n.port and w not in self.joining and w != self._me})
        known = {w: n for w, n in notices.items() if w not in self.joining}
        others = [w for w, n in known.items() if n.signature != self._sent.signature]
        if others and not self._sent.flags & JOINING:
            self._raise_mismatch(counted, others)
        # What is counted in the first rounds may be of processes that ran before these.
        if call.round >= self.first + 2:
            self._check_scales(call.round, known)
            self._check_models(call.round, known)
        self._has_residual = self._me not in counted
        self._lateness_add({w: n.waited for w, n in notices.items()})
        for w in counted:
            self.seen[w] = call.round
        return counted

    def _check_scales(self, round: int, notices: Dict[int, Notice]) -> None:
        """Compares the units of the gradients."""
        mine, who = self._sent.scale, {w: n.scale for w, n in notices.items() if n.scale and n.scale != self._sent.scale}
        if mine and who:
            raise Error(errno.EPROTO, f"this rank ({self._me}) divides its gradients by {mine:g} in round {round}, "
                                      f"{', '.join(f'rank {w} by {s:g}' for w, s in sorted(who.items()))}: the loss scale (GradScaler, State.scale) must "
                                      "be the same on all ranks, so call scaler.update() in step(), and give the scaler to State(extra=[scaler])")

    def _check_models(self, round: int, notices: Dict[int, Notice]) -> None:
        """Compares the models of the ranks that were counted, and of this one."""
        notices = {**notices, self._me: self._sent}
        steps = collections.Counter(n.rounds for n in notices.values()).most_common()
        if len(steps) > 1:
            others = sorted(w for w, n in notices.items() if n.rounds != steps[0][0])
            if self._me in others or steps[0][1] == steps[1][1]:
                raise Error(errno.EILSEQ, f"this rank ({self._me}) has a model of {self._sent.rounds} steps in round {round}, and "
                                          f"{', '.join(f'rank {w} one of {n.rounds}' for w, n in sorted(notices.items()) if w != self._me)}: "
                                          "load the same checkpoint on all ranks.  A rank that joins late needs State(model, optimizer), which "
                                          "fetches the model of the others")
            have, end = ("have models", "end") if len(others) > 1 else ("has a model", "ends")
            self._log(f"{rank_list(others)} {have} of another number of steps, and {end} with an error")
            return
        checksums = {w: (n.rounds, n.checksum) for w, n in notices.items() if n.checksum}
        votes = collections.Counter(checksums.values()).most_common()
        if len(votes) < 2:
            return
        tie = votes[0][1] == votes[1][1]
        differ = sorted(checksums if tie else (w for w, v in checksums.items() if v != votes[0][0]))
        step = self._sent.rounds
        if tie or self._me in differ:
            what = f"{rank_list(differ)} have different parameters" if tie else f"this rank ({self._me}) has other parameters than the other ranks"
            raise Error(errno.EILSEQ, f"{what} before step {step} (round {round}): something changes the model outside step(), the ranks "
                                      "began with different models, or step() does not do the same on every rank")
        have, end = ("have", "end") if len(differ) > 1 else ("has", "ends")
        self._log(f"{rank_list(differ)} {have} other parameters than the other ranks before step {step} (round {round}), and {end} with an error")

    def _raise_mismatch(self, counted: List[int], others: List[int]) -> None:
        if len(others) > len(counted) / 2:
            who = f"this rank ({self._me}) is"
        else:
            who = f"{rank_list(others)} {'are' if len(others) > 1 else 'is'}"
        raise Error(errno.EPROTO, f"{who} about to reduce other buckets than the others: the models differ, or "
                                  "the buckets' sizes or order (bucket_cap_mb and all options of "
                                  "DistributedDataParallel must be the same)")

    def skipped(self) -> None:
        """Rounds were skipped: this rank's last one may have left a residual."""
        self._has_residual = True
        self._wait_us = 0

    def waited(self, call: Call) -> None:
        """@call: this rank's last all-reduce of the round."""
        self._wait_us = 0 if call.late_segments else call.time_us + 1

    def _lateness_add(self, waited: Dict[int, int]) -> None:
        """@waited: of the ranks that were counted, in the previous round: the rank that waited least came last.  Missed
        rounds include this one."""
        self._of += 1
        for w in range(self._workers):
            if w not in waited:
                self._missed[w] += 1
        known = [w for w in waited if waited[w]]
        if len(known) < 2:
            return
        most = max(waited[w] for w in known)
        late = {w: most - waited[w] for w in known}
        for w, us in late.items():
            self._late_us[w] += us
            self._worst_us[w] = max(self._worst_us[w], us)
            self._rounds[w] += 1
        self._last[max(late, key=lambda w: late[w])] += 1

    def stragglers(self) -> Stragglers:
        """All ranks; first those that missed rounds, then by lateness."""
        found = []
        for w in range(self._workers):
            n, seen = self._rounds[w], self.seen[w]
            found.append(Straggler(w, self._late_us[w] / n / 1000 if n else None, self._worst_us[w] / 1000 if n else None,
                                   self._last[w], self._missed[w], n, None if seen < 0 else seen, self._of))
        return Stragglers(sorted(found, key=lambda s: (-s.missed, -(s.late_ms or 0), s.rank)))
