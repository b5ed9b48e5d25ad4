# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""How a rank that is too far behind, was restarted or comes late gets the state of another one, and serves its own."""

import errno
import socket
import time
import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

import torch

from ._lib import Error
from .absent import Absent
from .accumulated import Accumulated
from .buckets import Bucket, Started, same_layout
from .membership import group_secret, group_wait_joined
from .peer_state import Server, Unavailable, Unfit, address_towards, fetch_any, token_of
from .preamble import JOINING, Notice, Preamble
from .ranks import Ranks
from .records import Call
from .state_check import check_position
from .statistics import Statistics
from .transfer import REST_S, Transfer
from .wrapper import has_group
from .worker import Worker, environment

_NO_SECRET = ("the ranks have neither a token nor a process group in common: set a token by `saina job set JOB token TOKEN', and on all ranks "
              "SAINA_TOKEN")


class Recovery:
    """The part of a State that transfers it from rank to rank."""

    # Of State: the job, its rounds, and the layout of the gradients.
    worker: Worker
    _join: Callable[[Iterable[torch.Tensor]], None]
    _log: Callable[[str], None]
    _layout_use: Callable[[List[Bucket]], None]
    _join_args: Dict[str, Any]
    _worker: Optional[Worker]
    _preamble: Preamble
    _absent: Absent
    _accumulated: Accumulated
    _statistics: Statistics
    _layout: List[Bucket]
    _round: List[Started]
    _requests: List[Any]
    _failed: Optional[Error]
    _in_body: bool
    _in_step: bool
    _in_round: bool
    _rounds: int
    _since_join: int
    _last_end: float
    _stepped: bool

    def _recovery_init(self) -> None:
        self._transfer: Optional[Transfer] = None
        self._server: Optional[Server] = None
        self._secret = ""                   # by which ranks prove that they are of this training; "": there is none
        self._stale = False                 # too far behind: the state of another rank is due
        self._fetched = 0
        self._ahead = 0                     # rounds of the model whose batches steps() has not dropped yet
        self._adopted = False               # the layout is that of the other ranks, and not yet DDP's here
        self._late = False                  # the job had rounds when this rank joined: other ranks may have a model of it
        self._carried: Optional[Tuple[Call, List[int]]] = None      # the preamble of the present round, if it is over

    def _serve_begin(self) -> None:
        if not self._transfer:
            return
        me, info = weakref.ref(self), self.worker.info()
        self._secret = token_of(self._join_args["token"], self._join_args["token_file"]) or group_secret(Ranks(info))
        if self._secret:
            self._server = Server(address_towards(self._join_args["aggregator"] or environment()[0]), self._secret,
                                  lambda: _serve(me()))
        else:
            self._log(f"rank {info.rank} does not serve its model, and cannot get that of another rank: {_NO_SECRET}")

    def _serve_end(self) -> None:
        if self._server:
            self._server.close()
            self._server = None

    def _address(self, notice: Notice) -> Notice:
        """@notice with the address of this rank's server."""
        if not self._server:
            return notice
        host, port = self._server.where
        return notice._replace(address=int.from_bytes(socket.inet_aton(host), "little"), port=port)

    def _offer(self) -> None:
        """In a round, before its result is applied: copies the state if another rank asks for it."""
        # DDP builds its buckets anew after the first round.
        if self._transfer and self._since_join:
            self._transfer.offer(self._position, self._rounds)

    def _position(self) -> Dict[str, Any]:
        """What a rank must know to continue here: the job's round, steps of the model, names and strides of the parameters in each bucket."""
        name = {id(p): n for n, p in self._transfer.parameters().items()}
        return {"round": self.worker.info().round, "rounds": self._rounds,
                "layout": [[name[id(p)] for p in b.parameters] for b in self._layout], "strides": [b.strides for b in self._layout]}

    def _at_rest(self) -> Optional[Tuple[int, Dict[str, Any]]]:
        """Called by the server's thread: the position between two rounds, if step() has followed the last one; None in a round,
        in step() or of a State that has failed."""
        if self._in_round or self._in_step or self._failed or self._stale or self._since_join < 2 or \
                time.monotonic() < self._last_end + REST_S:
            return None
        # An ordinary loop does not say when it steps: it has if its parameters have changed.
        if not self._stepped and not self._transfer.has_changed():
            return None
        return self._rounds, self._position()

    def _become_stale(self, e: Error, started: List[Started], requests: List[Any]) -> bool:
        """@e has ended a round: True if the state of another rank may help; then this round's gradients are zeros."""
        if e.errno != errno.ESTALE or not self._transfer or not self._preamble.peers:
            return False
        self._worker.drain(requests)
        self._carried = None
        self._give_zeros(started)
        return True

    def _give_zeros(self, started: List[Started]) -> None:
        """This rank has no use for the gradients @started: its next step boundary gets the state of another rank."""
        for s in started:
            s.tensor.zero_()
            if s.future and not s.future.done():
                s.future.set_result(s.tensor)
        self._accumulated.clear()
        self._round, self._requests = [], []
        self._stale, self._in_round = True, False

    def _boundary(self) -> None:
        """At a step boundary: gets the state of another rank if it is due.

        A rank waits here for no other one that may be in a collective of the process group, which waits for this rank: so
        it joins in its first backward, where DistributedDataParallel waits for all ranks, too.  A rank without such a group
        joins here, so that it does not compute a batch in vain if the others have a model."""
        if not self._transfer or self._in_body or self._failed:
            return
        if not self._worker and not has_group():
            self._join(p for p in self._transfer.parameters().values() if p.requires_grad)
            self._stale = self._others_have_model()
        if self._stale:
            # A rank that joined late is in a round, whose preamble is over: it may get the model before that round.
            late = self._carried[0].round if self._carried else None
            at = self.worker.info().round
            found = self._fetch(self._preamble.peers, at + 1 if late is None else late,
                                f"is too far behind, in round {at}" if late is None else "has joined late")
            if found["round"] != late:
                if late is not None:
                    self.worker.round_done()
                    self._carried = None
                self.worker.set_round(found["round"])
            self._adopt(found)

    def _others_have_model(self) -> bool:
        """This rank is about to begin its first round.  If the job has had rounds, takes part in the preamble of one, which says
        whether another rank has a model of it."""
        if not self._late:
            return False
        self._late = False
        info = self.worker.info()
        group_wait_joined(Ranks(info), self._join_args["start_timeout"])
        wait = self._absent.wait(self.worker.info().round)
        call = wait(self._preamble.start(self._address(Notice(0, flags=JOINING))))
        self._carried = call, self._preamble.check(call)
        if self._preamble.peers:
            return True
        self._log(f"no other rank has a model of round {call.round}: this rank continues with its own, of {self._rounds} steps")
        return False

    def _fetch(self, peers: Dict[int, Tuple[str, int]], round: int, why: str) -> Dict[str, Any]:
        """The state of one of @peers, of @round or later, loaded into this rank's objects.  Raises Error."""
        me, found = self.worker.info().rank, {}

        def use(state: Dict[str, Any]) -> None:
            check_position(state, self.worker.info().next_round, list(self._transfer.parameters()))
            if state["round"] < round:
                raise Unavailable(f"it is only in round {state['round']}")
            self._transfer.load(state)
            found.update(state)
        try:
            if not self._secret:
                raise Unavailable(_NO_SECRET)
            w = fetch_any(sorted(peers.items(), key=lambda p: -self._preamble.seen[p[0]]), self._secret, use)
        except Unfit as e:
            self._failed = Error(errno.EPROTO, f"this rank ({me}) {why}, and cannot use the state of {e}.  All ranks must give State() the same "
                                               "model, optimizer and extra")
            raise self._failed from e
        except Unavailable as e:
            self._failed = Error(errno.ESTALE, f"this rank ({me}) {why}, and got the model from no other rank: {e}.  Restart this rank; if no other "
                                               "rank has a model either, restart all from a checkpoint")
            raise self._failed from e
        self._log(f"rank {me} {why}: it has the model of rank {w} now, of {found['rounds']} steps (round {found['round']})")
        return found

    def _adopt(self, found: Dict[str, Any]) -> None:
        """Continues at the round of the state @found, which is loaded."""
        parameters = self._transfer.parameters()
        layout = []
        for names in found["layout"]:
            of = [parameters[n] for n in names]
            layout.append(Bucket.of(of))
        if "strides" in found:
            layout = [b._replace(strides=[tuple(s) for s in strides]) for b, strides in zip(layout, found["strides"])]
        if not self._layout or not same_layout(self._layout, layout):
            self._adopted = True
            self._layout_use(layout)
        self._ahead += found["rounds"] - self._rounds
        self._rounds = found["rounds"]
        self._preamble.skipped()
        self._statistics.take()
        self._stale, self._stepped = False, True
        self._fetched += 1


class BeforeForward:
    """Of the model's forward: a step boundary.  Copies of the model have none."""

    def __init__(self, state: Optional[Recovery] = None):
        self._state = weakref.ref(state) if state else lambda: None

    def __call__(self, module: Any, _inputs: Any) -> None:
        state = self._state()
        if state and module.training and torch.is_grad_enabled() and not state._in_round:
            state._boundary()
            state._statistics.begin()

    def __deepcopy__(self, memo: Dict[int, Any]) -> "BeforeForward":
        return BeforeForward()

    def __reduce__(self) -> Tuple:
        return BeforeForward, ()


def _serve(state: Optional[Recovery]) -> Dict[str, Any]:
    """The state of this rank, for another one."""
    if not state or not state._transfer or state._failed or state._stale:
        raise Unavailable("it is too far behind itself, or has failed")
    return state._transfer.take(state._at_rest)
