# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""PyTorch's DistributedDataParallel with its gradients reduced by the aggregator.

    model = torch.nn.parallel.DistributedDataParallel(net)
    state = saina.torch.State(model, optimizer)      # where the aggregator is: SAINA_AGGREGATOR
    model.register_comm_hook(state, saina.torch.allreduce_hook)

    def step():                                      # all that follows backward
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    for x, y in state.steps(loader, step=step):
        loss(model(x), y).backward()
    print(state.stragglers())

A bucket is sent as soon as it is computed, while backward continues with the others.  Gradients are averaged over
the ranks that were counted; libsaina adds a gradient that was too late to this rank's next one.  All ranks get the
same gradients, bit for bit, so their models are equal.
"""

import errno
import sys
import time
import warnings
import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple, Union

import numpy
import torch

from ._buffer import content
from ._lib import Error
from .absent import Absent
from .accumulated import Accumulated
from .buckets import Bucket, Known, Memory, Started, ids, most_buckets, places, repack, repacked, same_layout, signature
from .c10d import all_reduce
from .checksum import EVERY, checksum
from .late_rule import LateRule
from .loss_factor import present, watch
from .membership import ONE_EACH, Membership, register, unregister
from .preamble import PER_WORKER, Notice, Preamble, Straggler, Stragglers
from .records import Call, Stats, whole
from .recovery import BeforeForward
from .residuals import Residuals, unit
from .statistics import Statistics
from .steps import Steps
from .transfer import Transfer
from .worker import Request, Worker, join
from .wrapper import collective_of

__all__ = ["State", "Straggler", "Stragglers", "all_reduce", "allreduce_hook"]

#: The largest number of arrays that join() can say.
_ARRAYS_MAX = 65535


def _log_line(line: str) -> None:
    print(f"saina: {line}", file=sys.stderr, flush=True)


def _has_too_few(e: Error) -> bool:
    """Has the job too few elements?  An MTU that is too small for its messages has the same errno."""
    return e.errno == errno.EMSGSIZE and " has MTU " not in str(e)


class State(Steps):
    """One rank's membership in a job: what allreduce_hook() keeps from step to step.

    @model, @optimizer, @extra: what a rank that is too far behind, was restarted or comes late fetches from another one,
        and serves to others: the DistributedDataParallel, its optimizer, and other objects with state_dict() and
        load_state_dict() (scheduler, GradScaler, averages).  All ranks name the same.  Without @model such a rank ends
        with an error.
    @aggregator, @job, @worker, @token, @token_file, @join_timeout, @timeout, @log: as of saina.join().
    @start_timeout: seconds to wait for the other ranks when this one joins.
    @round_timeout: seconds that a round may wait for other ranks, as the process group's timeout; -1: no limit.
    @on_dead: when another rank has left or is dead: "raise": backward raises Error (ECONNABORTED), which names it;
        "continue": a line to @log, and the gradients are the mean over the others; None: raise if rounds wait for all
        ranks (policy bsp), else continue.

    The job is joined in the first backward, or by broadcast(); with @model, and without a process group of several ranks, before
    the first forward in training mode.  It must have as many workers as there are ranks.  Each model needs its own State, and
    each State its own job.

    Copies (copy.deepcopy(), pickle, torch.save()) have not joined.  A pickle has no token, log or worker: these
    belong to the process.
    """

    def __init__(self, model: Any = None, optimizer: Any = None, extra: Sequence[Any] = (), *,
                 aggregator: Optional[str] = None, job: Union[int, str, None] = None,
                 worker: Optional[int] = None, token: Optional[str] = None,
                 token_file: Optional[str] = None, join_timeout: float = 30,
                 start_timeout: float = 300, timeout: float = 60, round_timeout: float = 1800,
                 on_dead: Optional[str] = None, log: Optional[Callable[[str], Any]] = None):
        if on_dead not in (None, "raise", "continue"):
            raise ValueError(f'on_dead is "{on_dead}": allowed are None, "raise" and "continue"')
        if model is not None and not isinstance(model, torch.nn.Module):
            raise TypeError(f"State(model, optimizer, extra=[..]): the first is the model (DistributedDataParallel), not {type(model).__name__}")
        if not isinstance(extra, Iterable):
            raise TypeError(f"extra is a list of objects, as extra=[scheduler], not {type(extra).__name__}")
        self._init(dict(aggregator=aggregator, job=job, worker=worker, token=token,
                         token_file=token_file, join_timeout=join_timeout,
                         start_timeout=start_timeout, timeout=timeout, log=log), round_timeout, on_dead)
        if model is not None:
            self._transfer = Transfer([model] + [x for x in (optimizer, *extra) if x is not None])
            self._use(model)
            model.register_forward_pre_hook(BeforeForward(self))

    def _init(self, how: Dict[str, Any], round_timeout: float, on_dead: Optional[str]) -> None:
        self._join_args = how
        self._round_timeout = round_timeout
        self._on_dead = on_dead
        self._worker: Optional[Worker] = None
        self._preamble: Optional[Preamble] = None
        self._absent: Optional[Absent] = None
        self._late_rule: Optional[LateRule] = None
        self._failed: Optional[Error] = None    # of a round that will not finish
        self._layout: Optional[List[Bucket]] = None
        self._signature = 0
        self._residuals: Optional[Residuals] = None
        self._accumulated = Accumulated()
        self._statistics = Statistics(None)
        self._known = Known()
        self._memory = Memory()
        self._scale: Optional[float] = None
        self._round: List[Started] = []    # buckets of the present round
        self._requests: List[Any] = []
        self._rounds = 0
        self._lost = 0
        self._moved = 0
        self._model: Callable[[], Any] = lambda: None
        self._in_body = self._in_step = self._in_round = False
        self._since_join = 0                # rounds
        self._last_end = 0.0
        self._stepped = False               # step() has followed the last round; never in an ordinary loop
        self._recovery_init()
        watch()

    # --- copies -------------------------------------------------------------------------------

    def __deepcopy__(self, memo: Dict[int, Any]) -> "State":
        copy = State.__new__(State)
        copy._init(dict(self._join_args), self._round_timeout, self._on_dead)
        return copy

    def __copy__(self) -> "State":
        return self.__deepcopy__({})

    def __getstate__(self) -> Dict[str, Any]:
        how = {k: v for k, v in self._join_args.items() if k not in ("token", "log", "worker")}
        return {"how": how, "round_timeout": self._round_timeout, "on_dead": self._on_dead}

    def __setstate__(self, saved: Dict[str, Any]) -> None:
        self._init({"token": None, "log": None, "worker": None, **saved["how"]}, saved["round_timeout"], saved["on_dead"])

    # --- the job ----------------------------------------------------------------------------

    @property
    def worker(self) -> Worker:
        """The worker of the job; Error (ENOTCONN) before it has joined."""
        if not self._worker:
            raise Error(errno.ENOTCONN, "this rank has not joined the job yet: it does so in the first backward, or in broadcast()")
        return self._worker

    @property
    def round(self) -> int:
        """Steps of this rank's model: rounds applied by this rank, or by the one that it got its model from."""
        if self._stale and not self._in_body:
            self._boundary()
        return self._rounds

    @property
    def lost(self) -> int:
        """Rounds that were decided without this rank and applied by steps() or catch_up(); `round` includes them."""
        return self._lost

    @property
    def fetched(self) -> int:
        """How often this rank got model and optimizer from another one."""
        return self._fetched

    def state_dict(self) -> Dict[str, int]:
        """For checkpoints: the steps of the model."""
        return {"rounds": self._rounds}

    def load_state_dict(self, saved: Dict[str, int]) -> None:
        """With the checkpoint of a model, before the first forward: steps() drops the batches of these steps.
        TypeError: @saved is not of state_dict()."""
        if not isinstance(saved, dict) or not isinstance(saved.get("rounds"), int):
            raise TypeError(f'load_state_dict() takes the result of State.state_dict(), {{"rounds": N}}, not this {type(saved).__name__}')
        self._ahead += saved["rounds"] - self._rounds
        self._rounds = saved["rounds"]

    @property
    def scale(self) -> float:
        """What the gradients are divided by after backward, besides get_scale() of the scalers in extra: a loss scale, or the
        number of batches or tokens of a round.  Set it before the backward of each round in which it has changed, to the same
        on all ranks: what is kept of late gradients is converted."""
        return self._scale or 1.0

    @scale.setter
    def scale(self, to: float) -> None:
        self._scale = unit(float(to), [])

    @property
    def behind(self) -> int:
        """Rounds that are decided, but not yet applied to this rank's model."""
        return self._worker.behind if self._worker else 0

    def stats(self) -> Stats:
        """Counters of libsaina."""
        return self.worker.stats()

    def stragglers(self) -> Stragglers:
        """Lateness of all ranks, first those that missed most rounds, then the latest; print() shows a table.

        It needs no common clock: a result reaches all ranks at once, so the rank that waited least came last.  Each
        rank sends the time that it waited with the next round.
        """
        return self._preamble.stragglers() if self._preamble else Stragglers()

    def close(self) -> None:
        """Leave the job: the others no longer wait for this rank."""
        self._serve_end()
        self._accumulated.unwatch()
        if self._worker:
            self._worker.close()
        unregister(self)

    def _join(self, parameters: Iterable[torch.Tensor]) -> None:
        """Joins; @parameters: those that have gradients.  The first worker of a job without a size says what their buckets need."""
        parameters = list(parameters)
        numel, arrays = sum(p.numel() for p in parameters), most_buckets(parameters, self._model())
        if self._statistics.numel:
            numel, arrays = numel + self._statistics.numel, arrays + 1
        membership = Membership.of(self._join_args)
        register(self, membership)
        try:
            how = {**self._join_args, "worker": membership.asked}
            try:
                self._worker = join(elements=numel, arrays=min(arrays, _ARRAYS_MAX), per_worker=PER_WORKER, **how)
            except Error as e:
                if _has_too_few(e):
                    raise Error(e.errno, f"{e.strerror}.  This model has {numel} parameters and running statistics: a job with {PER_WORKER} elements "
                                         f"for each worker and a payload for each of {arrays + 1} arrays more, or `elements auto' holds its gradients") from None
                raise
            register(self, membership.found(self._worker.info()))
        except BaseException:
            self.close()
            self._worker = None
            raise
        log = self._join_args["log"] or _log_line
        self._preamble = Preamble(self._worker, log)
        self._residuals = Residuals(self._worker, self._first())
        self._absent = Absent(self._worker, self._preamble, log, self._round_timeout, self._on_dead)
        self._late_rule = LateRule(self._worker, self._transfer.optimizers if self._transfer else list)
        self._late = self._transfer is not None and self._worker.info().round > 0
        self._serve_begin()

    def broadcast(self, module: torch.nn.Module, root: int = 0) -> None:
        """Copies parameters and buffers of rank @root to all ranks, exactly.  All ranks call it, before the first
        backward.  DistributedDataParallel does the same by its process group."""
        copies = [content(t) for t in module.state_dict().values()]
        if not self._worker:
            self._join(module.parameters())
            self._late = False      # all ranks are here
        data = numpy.frombuffer(bytearray(b"".join(part for part, _ in copies)), numpy.uint8)
        self.worker.broadcast(data, root)
        at = 0
        for part, put in copies:
            put(data[at:at + len(part)].tobytes())
            at += len(part)
        self._statistics.take()

    def register(self, model: Any) -> None:
        """model.register_comm_hook(), for a State that was made without the model.  Warns as State(model) does."""
        if not isinstance(model, torch.nn.parallel.DistributedDataParallel):
            raise TypeError(f"register() takes the DistributedDataParallel, not {type(model).__name__}")
        self._check_model(list(model.module.parameters()))
        if self._model() is not model:
            self._use(model)
        model.register_comm_hook(self, allreduce_hook)

    def _use(self, model: Any) -> None:
        """@model: of this State.  Warns about options with which every rank waits for all others."""
        if not self._worker:
            self._statistics = Statistics(model)
            if self._transfer:
                self._transfer.statistics = self._statistics
        self._model = weakref.ref(model)    # weak: the model refers to this State, invisibly to the garbage collector
        found = collective_of(model)
        if found:
            warnings.warn(f"saina: {found.option} means {found.does}: the fast ranks wait for the slow ones there, whatever the job's policy, "
                          f"and steps() skips no lost rounds.  {found.instead}", stacklevel=3)

    # --- a bucket of backward ---------------------------------------------------------------

    def _bucket(self, bucket: Any) -> torch.futures.Future:
        if self._failed:
            raise self._failed
        tensor, parameters = bucket.buffer(), list(bucket.parameters())
        if tensor.layout != torch.strided:
            raise TypeError(f"bucket {bucket.index()} has sparse gradients: saina reduces dense ones; make the layer "
                            "with sparse=False (torch.nn.Embedding, EmbeddingBag)")
        if tensor.dtype != torch.float32:
            raise TypeError(f"bucket {bucket.index()} has gradients of {str(tensor.dtype)[6:]}: saina reduces "
                            "float32 (module.float())")
        if bucket.index() == 0 and self._round:
            self._round_discard(parameters)
        future: torch.futures.Future = torch.futures.Future()
        if self._stale:
            future.set_result(tensor.zero_())
            return future
        self._in_round = True
        of = Bucket.of(parameters, tensor.numel())
        self._round.append(Started(of, tensor, future, self._accumulated.base(of, tensor)))
        self._accumulated.watch(parameters)
        if self._is_known(bucket.index()):
            try:
                if bucket.index() == 0:
                    self._head_start(self._round[0], self._requests)
                self._requests.append(self.worker.start(tensor, base=self._round[-1].base))
            except Error as e:
                if not self._become_stale(e, self._round, self._requests):
                    raise
                return future
        if bucket.is_last():
            self._round_finish()
        return future

    def _round_discard(self, parameters: List[torch.Tensor]) -> None:
        """First bucket, while a round is incomplete: the previous backward failed, or the bucket is another model's."""
        begun = {id(p) for s in self._round for p in s.bucket.parameters}
        if not any(id(p) in begun for p in parameters):
            raise Error(errno.EINVAL, f"two models have gradients for this State in one backward: {ONE_EACH}")
        self._round, self._requests = [], []

    def _is_known(self, index: int) -> bool:
        """Does this round have the layout of the previous one?  Then its buckets are sent one by one; else when all are
        there, because residuals have to be moved first."""
        # DDP's buffers are others when it has rebuilt its buckets, or is another one.
        if not self._layout or self._adopted or self._carried:
            return False
        started = self._round[-1]
        if self._memory.has(index, started.tensor) and index < len(self._layout) and started.bucket.same(self._layout[index]):
            return index == 0 or bool(self._requests)
        if self._requests:
            raise Error(errno.EPROTO, f"bucket {index} has other parameters than in the step before, and the "
                                      "round has begun: buckets may change only between steps")
        return False

    def _round_finish(self) -> bool:
        """Waits for the round; False: this rank is too far behind, and its gradients are zeros."""
        started, self._round = self._round, []
        calls: List[Call] = []
        sent, requests, self._requests = started, self._requests, []
        if not requests:
            # What it refuses has not begun a round: this State's own model can go on.
            sent = self._in_layout(started)
        try:
            if not requests:
                if self._others_have_model():
                    self._layout = None
                    self._give_zeros(started)
                    return False
                self._head_start(started[0], requests)
                for s in sent:
                    requests.append(self.worker.start(s.tensor, base=s.base))
            wait = self._absent.wait(self.worker.info().round, self._offer)
            if requests[0]:
                call = wait(requests[0])
                counted = self._preamble.check(call)
            else:
                (call, counted), self._carried = self._carried, None
            if requests[1]:
                wait(requests[1])
            for s, request in zip(sent, requests[2:]):
                call = wait(request)
                calls.append(call)
                if s.future:
                    s.future.set_result(s.tensor)
            if sent is not started:
                repack(sent, started)
            self._preamble.waited(call)
            self.worker.round_done()
            self._statistics.apply()
            # Of a round before the newest one nothing follows about who is there now.
            if not call.rounds_behind:
                self._absent.check(call, counted)
        except Error as e:
            if self._become_stale(e, started, requests):
                return False
            self._failed = e
            raise
        if started[0].future:
            self._memory.computed([s.tensor for s in started])
        self._accumulated.clear()
        self._rounds += 1
        self._since_join += 1
        self._last_end = time.monotonic()
        self._stepped = False
        if self._transfer:
            self._transfer.mark()
        self._in_round = False
        # Last, because warnings can be made errors.
        self._late_rule.round_add(calls if started[0].future else [])
        return True

    def _in_layout(self, started: List[Started]) -> List[Started]:
        """@started, or the same gradients in the buckets of the other ranks, which DDP has not built here yet."""
        if not started[0].future:
            return started      # of a round that was lost, in this layout
        buckets = [s.bucket for s in started]
        # With other parameters they are of another DDP, as all ranks have one then.
        if self._adopted and (same_layout(buckets, self._layout) or ids(buckets) != ids(self._layout)):
            self._adopted = False
        if not self._adopted:
            self._layout_set(buckets)
            return started
        return repacked(started, self._layout)

    def _head_start(self, first: Started, requests: List[Optional[Request]]) -> None:
        """Begins a round; @first: its first bucket.  Adds to @requests what precedes the buckets: preamble and statistics, None for
        what there is not, or is over."""
        parameters, scale = 0, 0.0
        # A bucket of DistributedDataParallel.join() has no gradient: model and scale are not those of the others meanwhile.
        of_join = first.future and not first.tensor[:4096].any()
        if (self._rounds % EVERY == 0 or self._rounds == 2) and not of_join:
            parameters = checksum(p for b in self._layout for p in b.parameters)
        if first.future:
            scalers = self._transfer.scalers() if self._transfer else []
            scale = unit(self.scale, scalers)
            if not scalers and self._scale is None:
                self._residuals.check_factor(self._layout, present())
            self._residuals.use_unit(self._layout, scale)
            scale = 0.0 if of_join else scale
        notice = Notice(self._signature, checksum=parameters, rounds=self._rounds, scale=scale)
        requests.append(None if self._carried else self._preamble.start(self._address(notice)))
        requests.append(self._statistics.start(self.worker))

    def _check_model(self, parameters: List[torch.Tensor]) -> None:
        """Are @parameters of this State's model?"""
        module = self._module()
        if module is not None:
            self._known.add(module.parameters())
        self._known.check(parameters)

    def _module(self) -> Any:
        """The model, without DistributedDataParallel; None: this State has none, or it is gone."""
        return self._transfer.model if self._transfer else getattr(self._model(), "module", None)

    def _layout_set(self, layout: List[Bucket]) -> None:
        """Sets the buckets of the next rounds."""
        parameters = [p for b in layout for p in b.parameters]
        self._check_model(parameters)
        if not self._worker:
            self._join(parameters)
        info = self.worker.info()
        needed = self._first() + sum(whole(b.numel, info.payload) for b in layout)
        if needed > info.segments * info.payload:
            raise Error(errno.EMSGSIZE, f"the gradients take {needed} elements in {len(layout)} buckets, and job "
                                        f"{info.job} has {info.elements}: make a job with `elements {needed}' or more")
        self._known.add(parameters)
        self._layout_use(layout)

    def _layout_use(self, layout: List[Bucket]) -> None:
        if self._layout and not same_layout(self._layout, layout):
            self._residuals.move(self._layout, layout)
            self._moved += 1
        self._layout = layout
        self._signature = signature(layout, self._statistics.numel)

    def _first(self) -> int:
        """The element at which the first bucket begins."""
        return self._preamble.numel + whole(self._statistics.numel, self.worker.info().payload)

    def _places(self, layout: List[Bucket]) -> Dict[int, Tuple[int, int]]:
        return places(layout, self._first(), self.worker.info().payload)

    def _log(self, line: str) -> None:
        (self._join_args["log"] or _log_line)(line)


def allreduce_hook(state: State, bucket: torch.distributed.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """For DistributedDataParallel.register_comm_hook(): reduces @bucket; the future is the mean over the ranks that
    were counted.  Gradients of float32, on the CPU or (untested) staged through pinned memory of the host.
    Raises TypeError, ValueError or Error, which end the backward with their sentence."""
    if not isinstance(state, State):
        raise TypeError(f"register_comm_hook(state, allreduce_hook) takes a saina.torch.State, not {type(state).__name__}")
    return state._bucket(bucket)
