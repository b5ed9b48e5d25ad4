# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""What of a training is transferred from rank to rank, and when it may be copied."""

import copy
import threading
import time
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from .peer_link import Unavailable
from .state_check import Before, check_objects
from .statistics import Statistics

#: Seconds after its last round in which a rank is given the time to begin the next one.
REST_S = 1.0
#: Seconds in which the parameters must not change while they are copied between rounds.
_STABLE_S = 0.3
#: Seconds in which a state must be found.
_SNAPSHOT_S = 40


def _weak(x: Any) -> Callable[[], Any]:
    """A weak reference where @x allows one: the model refers to the State, invisibly to the garbage collector."""
    try:
        return weakref.ref(x)
    except TypeError:
        return lambda: x


class Transfer:
    """@objects: what is transferred, the model first; each has state_dict() and load_state_dict()."""

    def __init__(self, objects: List[Any]):
        for x in objects:
            if not (hasattr(x, "state_dict") and hasattr(x, "load_state_dict")):
                raise TypeError(f"{type(x).__name__} has no state_dict() and load_state_dict(): it cannot be transferred")
        self._objects = [_weak(x) for x in objects]
        self._lock = threading.Lock()
        self._wanted = 0                        # requests that wait for a snapshot
        self._ready = threading.Condition()
        self._snapshot: Optional[Tuple[int, Dict[str, Any]]] = None
        self._marked: List[int] = []
        #: of the model: in a round its own have changed already
        self.statistics = Statistics(None)

    @property
    def model(self) -> Any:
        """The module, without DistributedDataParallel; None: it is gone."""
        model = self._objects[0]()
        return getattr(model, "module", model)

    def parameters(self) -> Dict[str, torch.nn.Parameter]:
        return dict(self.model.named_parameters())

    def optimizers(self) -> List[Any]:
        """Those of the objects that are there and have param_groups."""
        return [x for x in (o() for o in self._objects) if hasattr(x, "param_groups")]

    def scalers(self) -> List[Any]:
        """Those that say what the gradients are divided by after backward, as GradScaler does."""
        return [x for x in (o() for o in self._objects) if hasattr(x, "get_scale")]

    def _present(self) -> List[Any]:
        found = [self.model] + [o() for o in self._objects[1:]]
        if any(x is None for x in found):
            raise Unavailable("its model, optimizer or another object is gone")
        return found

    def copy(self, at: Dict[str, Any]) -> Dict[str, Any]:
        """A copy of the states of all objects, with the entries of @at: where in the job it is."""
        objects = [copy.deepcopy(x.state_dict()) for x in self._present()]
        objects[0].update(self.statistics.state())
        return {**at, "objects": objects}

    def load(self, snapshot: Dict[str, Any]) -> None:
        """Loads copy()'s.  Raises ValueError with a sentence if it does not fit; then nothing is changed."""
        mine, theirs = self._present(), snapshot.get("objects")
        check_objects(mine, theirs)
        before = []
        # The model last: it is the least likely to refuse what fits.
        for x, state in zip(mine[1:] + mine[:1], theirs[1:] + theirs[:1]):
            try:
                before.append(Before(x))
                x.load_state_dict(state)
            except Exception as e:
                for was in before:
                    was.restore()
                raise ValueError(f"{type(x).__name__}: {e}") from e

    # --- snapshots ----------------------------------------------------------------------------

    def offer(self, at: Callable[[], Dict[str, Any]], key: int) -> None:
        """Called by the rank's own thread, where the model has the first @key rounds: makes a copy if one is wanted."""
        with self._ready:
            if self._wanted and (not self._snapshot or self._snapshot[0] != key):
                self._snapshot = (key, self.copy(at()))
                self._ready.notify_all()

    def take(self, rest: Callable[[], Optional[Tuple[int, Dict[str, Any]]]]) -> Dict[str, Any]:
        """Called by the server's thread: a copy, made by the rank's own thread in a round, or here while it rests.

        @rest: the number of rounds and where in the job it is, between two rounds; None: in a round or in step().
        """
        end = time.monotonic() + _SNAPSHOT_S
        with self._ready:
            self._wanted += 1
            self._snapshot = None
            try:
                while time.monotonic() < end:
                    self._ready.wait(REST_S)
                    if self._snapshot:
                        return self._snapshot[1]
                    found = self._copy_at_rest(rest)
                    if found:
                        return found
            finally:
                self._wanted -= 1
        raise Unavailable(f"it reached no step boundary within {_SNAPSHOT_S} s")

    def _copy_at_rest(self, rest: Callable[[], Optional[Tuple[int, Dict[str, Any]]]]) -> Optional[Dict[str, Any]]:
        before, versions = rest(), self._versions()
        if not before:
            return None
        self._ready.wait(_STABLE_S)
        found = self.copy(before[1])
        after = rest()
        return found if after and after[0] == before[0] and versions == self._versions() else None

    def mark(self) -> None:
        """A round has ended, whose gradients are not in the parameters yet."""
        self._marked = self._versions()

    def has_changed(self) -> bool:
        """Since mark(): have the parameters?"""
        return self._marked != self._versions()

    def _versions(self) -> List[int]:
        """Numbers that change when the parameters do."""
        return [p._version for p in self.model.parameters()]
