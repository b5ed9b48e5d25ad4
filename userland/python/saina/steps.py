# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""The loop around the hook: which batches a rank computes, and what follows each round."""

import errno
from typing import Any, Callable, Iterable, Iterator, TypeVar, Union

import torch

from ._lib import Error
from .buckets import Memory, Started, ids, set_gradients
from .recovery import Recovery
from .wrapper import collective_of, without_sync

T = TypeVar("T")


class Steps(Recovery):
    """The part of a State that calls step() after each round, also after those that were decided without this rank."""

    # Of State.
    behind: int
    _model: Callable[[], Any]
    _module: Callable[[], Any]
    _memory: Memory
    _round_finish: Callable[[], bool]
    _lost: int

    def catch_up(self, step: Callable[[], Any]) -> int:
        """Applies the rounds that were decided without this rank, without computing them, as steps() does.

        @step: of steps(): called for each round, with the gradients of the others.

        Returns the number of rounds.  This rank's model then equals that of the others, bit for bit.  Before its second
        backward a rank applies none and returns 0: DistributedDataParallel rebuilds its buckets in the second forward, and
        the gradients of the others are in the rebuilt ones.  The same holds always for a model that has a collective of the
        process group in every step (find_unused_parameters, broadcast_buffers of buffers).
        """
        n = 0
        while self._lost_apply(step):
            n += 1
        return n

    def _lost_apply(self, step: Callable[[], Any]) -> bool:
        """Applies one round that was decided without this rank; False: there is none, or this rank must compute it."""
        if not self._layout or not self.behind:
            return False
        # DDP rebuilds its buckets in the second forward; until then this rank does not know those of the others.
        if self._memory.rounds < 2 and not self._adopted:
            return False
        module = self._module()
        if module is not None and {id(p) for p in module.parameters() if p.requires_grad} != ids(self._layout):
            return False        # layers were frozen or thawed: the same
        # The other ranks wait for this one in each of these collectives: it computes such a round, and gets its result at once.
        if collective_of(self._model()):
            return False
        if self._failed:
            raise self._failed
        self._round = [Started(b, torch.zeros(b.numel), None) for b in self._layout]
        gradients = self._round
        self._requests = []
        if not self._round_finish():
            return False
        set_gradients(gradients)
        try:
            self._step(step)
        except Exception as e:
            raise self._failed from e
        self._lost += 1
        return True

    def _step(self, step: Callable[[], Any]) -> None:
        """Calls step().  If it raises anything, Ctrl-C included, this State has failed."""
        self._in_step = True
        try:
            step()
            self._stepped = True
        except BaseException as e:
            # Set before _in_step is reset: the server's thread must not copy this model.
            self._failed = Error(errno.ECANCELED, f"step() raised {type(e).__name__} ({e}) in round {self._rounds - 1}: the model of this rank "
                                                  "may lack that round, which the others have; restart this rank")
            raise
        finally:
            self._in_step = False

    def steps(self, batches: Union[int, Iterable[T]], step: Callable[[], Any], accumulate: int = 1) -> Iterator[T]:
        """Yields the batches that this rank has to compute, and calls step() after each round.

        @batches: an iterable, as a DataLoader; a number n stands for range(n).
        @step: everything between one backward and the next forward: unscale, clip, optimizer.step(), scheduler,
            exponential averages, zero_grad().  Called once for each round, also for rounds that were decided without this
            rank: then with the gradients of the others, and a batch is dropped instead of computed.  So all ranks have the
            same model, whoever was late.
        @accumulate: batches of a round: of all but the last, the gradients are only added up.  The loop's body needs no no_sync()
            if this State has the model (State(model, ..) or register(model)); else it computes these in no_sync() itself.

        The loop's body runs forward and backward.  If step() raises, the loop ends, and later backwards of this State
        raise Error (ECANCELED), because this rank's model may differ from those of the others.
        """
        if accumulate < 1:
            raise ValueError(f"accumulate is {accumulate}: a round has one batch or more")
        if not callable(step):
            raise TypeError("step is a function that steps() calls after each round (step=optimizer.step, without parentheses)")
        source = iter(range(batches) if isinstance(batches, int) else batches)
        return self._steps(source, step, accumulate)

    def _steps(self, source: Iterator[Any], step: Callable[[], Any], accumulate: int) -> Iterator[Any]:
        # Between the batches of a round the parameters have gradients of this rank: nothing is applied there.
        n = 0       # batches of the present round that this rank has computed
        for batch in source:
            if not n and self._is_past(step):
                for _ in range(accumulate - 1):
                    next(source, None)
                continue
            before, n = self._rounds, n + 1
            self._in_body = True
            try:
                with without_sync(self._model() if n < accumulate else None):
                    yield batch
            finally:
                self._in_body = False
            rounds = self._rounds - before
            if n < accumulate and (rounds or self._stale):
                raise Error(errno.EINVAL, f"batch {n} of a round had an all-reduce, which only the last of accumulate={accumulate} may have: make the "
                                          "State with the model, State(model, ..), by which steps() computes the others in no_sync(), or "
                                          "compute them in model.no_sync()")
            if rounds > 1:
                raise Error(errno.EINVAL, f"a batch of steps() had {rounds} backwards with an all-reduce: only one is "
                                          "allowed, since step() follows each round; run the others in no_sync()")
            if self._stale:
                # Its round is in the state that this rank is about to get.
                n = 0
                self._ahead -= 1
            elif rounds:
                n = 0
                self._step(step)
            elif n >= accumulate and not self._since_join:
                raise Error(errno.EINVAL, f"{n} batches of steps() had no backward with an all-reduce of this State: is its hook "
                                          "registered, by model.register_comm_hook(state, saina.torch.allreduce_hook)?  With "
                                          "no_sync(), set accumulate=.. to the number of batches of a round")
        # The last round may have been one that this rank was too late for.
        if not n:
            self._boundary()

    def _is_past(self, step: Callable[[], Any]) -> bool:
        """At a step boundary: is the next batch one of a round that this rank's model has, or has now?"""
        while True:
            self._boundary()
            if self._ahead > 0:
                self._ahead -= 1
                return True
            if self._lost_apply(step):
                return True
            if not self._stale:
                return False
