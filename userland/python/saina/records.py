# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""What libsaina says about a job, a call and a result: its structs, as named tuples."""

import functools
import operator
from typing import Any, Callable, NamedTuple, Type, TypeVar

from ._lib import ffi

T = TypeVar("T", bound=tuple)


class Info(NamedTuple):
    """The job as this worker sees it; see struct saina_job_info in saina.h."""
    job: int
    worker: int
    #: of the job
    workers: int
    #: of the largest round
    elements: int
    segments: int
    #: elements of a segment
    payload: int
    pool: int
    #: rounds that the aggregator keeps
    ring: int
    #: the next one that this worker contributes to
    round: int
    #: mask of live workers, as last heard
    active: int
    #: results come by the slow path, through the agent
    relayed: int
    #: the next one that the aggregator will open, as last heard
    next_round: int
    #: elements on the wire: 1 int32, 2 float32, 3 bfloat16, 4 int16
    type: int
    #: with policy coded, as last heard: this worker computes part @part of @parts of the data; else 0
    part: int
    parts: int
    #: mask of live workers so many rounds behind that round @round does not begin (lead), as last heard
    behind: int
    #: mask of the workers that were counted in round @counted_round, the newest that this worker has heard a result of
    counted: int
    counted_round: int
    #: mask of live workers that round @round has waited for since about a second or longer, as last heard; 0: none, or not said
    missing: int
    #: the policy's time-out, milliseconds, as last heard: a round that waited so long may be decided without live workers; 0: none
    timeout_ms: int
    #: what keeps ranks of @missing away, a sentence; empty: not known
    reason: str
    #: workers of the whole tree that the job is in, and the number of this one among them; without a tree @workers, @worker
    ranks: int
    rank: int
    #: jobs above this one in its tree
    depth: int


class Call(NamedTuple):
    """The outcome of an all-reduce; see struct saina_call in saina.h."""
    round: int
    segments: int
    #: contributors, over the segments
    count_min: int
    count_max: int
    #: workers counted in at least one segment, in every one; bit w is worker w
    mask_any: int
    mask_all: int
    #: decided without this worker: its part is kept in the residual
    late_segments: int
    degraded_segments: int
    skipped_segments: int
    #: further rounds that are known to be decided
    rounds_behind: int
    k: int
    next_k: int
    #: float32 elements that were dropped, or (ssp, asp, grouped) did not fit; see saina_allreduce(3)
    saturated: int
    #: packets
    resent: int
    #: from start to completion, microseconds
    time_us: int
    #: NaN, because a worker's gradient had a NaN or an infinity in them
    nonfinite_segments: int


class Stats(NamedTuple):
    """Since the worker joined; see struct saina_stats in saina.h."""
    rounds: int
    sent: int
    sent_bytes: int
    resent: int
    pulled: int
    results: int
    results_bytes: int
    duplicate_results: int
    late_answers: int
    bad_messages: int
    late_segments: int
    segments: int
    saturated: int
    rejoins: int
    #: smoothed round trip, microseconds
    rtt_us: int
    rto_us: int
    #: messages
    window: int
    asked: int
    nonfinite_segments: int


class Segment(NamedTuple):
    """The contributors of a result's segment; see struct saina_segment in saina.h."""
    round: int
    mask: int
    contributors: int
    k: int
    #: the sums were gradient * 2**exponent (0 for int32; -128: not finite)
    exponent: int
    policy: int
    flags: int
    #: workers in the sum: @contributors, and in a tree those of other jobs
    weight: int


def whole(elements: int, payload: int) -> int:
    """@elements, and the rest of their last segment, of @payload elements: what an array takes in a round."""
    return -(-elements // payload) * payload


@functools.lru_cache(maxsize=None)
def _struct(name: str) -> Any:
    return ffi.typeof(f"struct {name} *"), ffi.sizeof(f"struct {name}")


def sized(name: str) -> Any:
    """A new struct @name, with its size in it."""
    kind, size = _struct(name)
    c = ffi.new(kind)
    c.size = size
    return c


@functools.lru_cache(maxsize=None)
def _members(to: Type[T]) -> Callable[[Any], tuple]:
    return operator.attrgetter(*to._fields)


def values(to: Type[T], c: Any) -> T:
    """The members of struct @c that @to has."""
    return to._make(_members(to)(c))
