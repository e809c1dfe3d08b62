"""pystorm's bolts (C12-C18)."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from inspect import getattr_static
from typing import TYPE_CHECKING, Any

from stormspark.compat.streamparse.component import Component
from stormspark.compat.streamparse.tuples import Tuple

if TYPE_CHECKING:
    from stormspark.compat.streamparse.bolt_adapter import BoltSurroundings

__all__ = ["BatchingBolt", "Bolt", "TicklessBatchingBolt"]

#: The bolt's switches: attributes that say whether tuples are anchored and acked automatically.
SWITCHES = ("auto_anchor", "auto_ack")


class _Switch:
    """One of the bolt's `SWITCHES`.

    When user code sets the attribute, the bolt's `Passage` is notified. So `Passage` need not read the attribute for each tuple.
    """

    def __init__(self, name: str, by_default: object) -> None:
        # Don't access the bolt's __dict__: this would make all of the bolt's attributes slower from then on.
        self._name, self._by_default = f"_stormspark_{name}", by_default

    def __get__(self, bolt: Bolt | None, kind: type | None = None) -> Any:
        return self._by_default if bolt is None else getattr(bolt, self._name, self._by_default)

    def __set__(self, bolt: Bolt, value: object) -> None:
        setattr(bolt, self._name, value)
        surroundings = getattr(bolt, "_stormspark", None)
        if surroundings is not None:
            surroundings.passage.turned()


class Bolt(Component):
    """A bolt of pystorm, whose ``process`` gets each tuple.

    By default a tuple is acked when ``process`` returns, and failed when ``process`` raises. Emits that name no anchors are
    anchored to the tuple while ``process`` runs. A class may turn off each of these with ``auto_ack``, ``auto_fail`` and
    ``auto_anchor`` (C12, C13).

    >>> class Split(Bolt):
    ...     def process(self, tup):
    ...         for word in tup.values[0].split():
    ...             self.emit([word])
    """

    #: Whether emits without anchors are anchored to the current tuple.
    auto_anchor: Any = _Switch("auto_anchor", by_default=True)
    #: Whether a tuple is acked when ``process`` returns.
    auto_ack: Any = _Switch("auto_ack", by_default=True)
    #: Whether a tuple is failed when ``process`` raises.
    auto_fail = True

    _stormspark: BoltSurroundings
    # The task sets this attribute of the instance to the fastest function for emits.
    _emit: Callable[..., list[int] | None]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in SWITCHES:
            value = getattr_static(cls, name)
            if not isinstance(value, _Switch | property):
                setattr(cls, name, _Switch(name, value))

    def _notifies_of_switches(self) -> bool:
        """Return whether a change of the bolt's switches notifies its `Passage`. False if a subclass has replaced a switch."""
        return all(isinstance(getattr_static(type(self), name), _Switch) for name in SWITCHES)

    @staticmethod
    def is_tick(tup: Tuple) -> bool:
        """Return whether the tuple is a tick, which arrives every ``topology.tick.tuple.freq.secs`` (C15)."""
        return tup.component == "__system" and tup.stream == "__tick"

    def process(self, tup: Tuple) -> None:
        """Process one tuple."""
        raise NotImplementedError

    def process_tick(self, tup: Tuple) -> None:
        """Process a tick."""

    def emit(
        self,
        tup: Sequence[Any],
        stream: str | None = None,
        anchors: Iterable[Tuple | str] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool | None = None,
    ) -> list[int] | None:
        """Emit a list of values. With ``need_task_ids``, returns the ids of the tasks that the tuple goes to; else None (C12).

        Raises TypeError if ``tup`` is not a list or tuple. Raises `stormspark.errors.EmitError` if the stream or the number of
        values is wrong, or if an anchor was already acked or failed.
        """
        return self._emit(tup, stream, anchors, direct_task, need_task_ids)

    def emit_many(self, tuples: Sequence[Sequence[Any]], *args: Any, **kwargs: Any) -> list[list[int] | None]:
        """Emit several lists of values, as ``emit`` does. This is a method of streamparse 1 and 2 (C12)."""
        return [self.emit(tup, *args, **kwargs) for tup in _several(tuples)]

    def ack(self, tup: Tuple | str) -> None:
        """Ack a tuple. Pass the tuple or its id."""
        self._stormspark.ack(tup)

    def fail(self, tup: Tuple | str) -> None:
        """Fail a tuple. Pass the tuple or its id."""
        self._stormspark.fail(tup)

    @property
    def _current_tups(self) -> list[Tuple]:
        """The tuples that emits are anchored to."""
        return self._stormspark.anchors

    @_current_tups.setter
    def _current_tups(self, tups: list[Tuple]) -> None:
        self._stormspark.batch = tups

    def _handle_run_exception(self, exc: Exception) -> None:
        if self.exit_on_exception:
            return  # the task fails the tuple, reports the error and starts again
        tups = self._current_tups
        self.raise_exception(exc, tups[0] if len(tups) == 1 else None)
        if self.auto_fail:
            for tup in tups:
                self._stormspark.fail_open(tup, exc)


def _several(tuples: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
    if not isinstance(tuples, list | tuple):
        msg = f"Tuples should be a list of lists/tuples, received {type(tuples)!r} instead."
        raise TypeError(msg)
    return tuples


class BatchingBolt(Bolt):
    """A bolt that collects tuples between ticks, and then processes them together (C17).

    The bolt needs ``topology.tick.tuple.freq.secs``. By default emits are anchored to all tuples of the batch, and these tuples
    are acked when ``process_batch`` returns.

    >>> class Count(BatchingBolt):
    ...     def group_key(self, tup):
    ...         return tup.values[0]
    ...     def process_batch(self, key, tups):
    ...         self.emit([key, len(tups)])
    """

    #: How many ticks pass without effect before a tick processes the batches.
    ticks_between_batches = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._batches: dict[Hashable, list[Tuple]] = defaultdict(list)
        self._tick_counter = 0
        self._current_key: Hashable = None

    def group_key(self, tup: Tuple) -> Hashable:
        """Return the key of the batch that a tuple belongs to. By default there is only one batch."""
        return None

    def process_batch(self, key: Hashable, tups: list[Tuple]) -> None:
        """Process the tuples of one batch."""
        raise NotImplementedError

    def emit(self, tup: Sequence[Any], *args: Any, **kwargs: Any) -> list[int] | None:
        """Emit a list of values, by default anchored to the tuples of the batch. This never returns task ids (C17)."""
        kwargs["need_task_ids"] = False
        return super().emit(tup, *args, **kwargs)

    def process_tick(self, tick_tup: Tuple) -> None:
        """Count the tick. Process the batches if there were more than ``ticks_between_batches`` ticks since the last time."""
        self._tick_counter += 1
        self.ack(tick_tup)
        if self._tick_counter > self.ticks_between_batches and self._batches:
            self.process_batches()
            self._tick_counter = 0

    def process_batches(self) -> None:
        """Process all batches, ack their tuples if ``auto_ack`` is on, and begin new batches."""
        for key, batch in self._batches.items():
            self._current_tups = batch
            self._current_key = key
            self.process_batch(key, batch)
            if self.auto_ack:
                for tup in batch:
                    self.ack(tup)
            self._current_key = None
            self._batches[key] = []  # this batch is done, even if the next batch raises
        self._batches = defaultdict(list)

    def process(self, tup: Tuple) -> None:
        """Put a tuple into its batch."""
        self._batches[self.group_key(tup)].append(tup)

    def _handle_run_exception(self, exc: Exception) -> None:
        if self.exit_on_exception:
            return  # the task fails all batches, reports the error and starts again
        current = self._current_tups
        self.raise_exception(exc, current)
        if not self.auto_fail:
            return
        for tup in current:
            self._stormspark.fail_open(tup, exc)
        for key, batch in self._batches.items():
            if batch is current:
                self._batches[key] = []
        self._current_key = None


class TicklessBatchingBolt(BatchingBolt):
    """A `BatchingBolt` whose batches are processed every ``secs_between_batches`` (C18).

    A timer of the task calls `process_batches` between two tuples. So nothing runs in parallel to ``process``, and exceptions are
    handled as usual.
    """

    #: Seconds between two batches; fractions are allowed. The task reads the attribute once, when it starts.
    secs_between_batches: float = 2

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: A lock for subclasses that use pystorm's lock. stormspark itself never takes it.
        self._batch_lock = threading.RLock()

    def process_tick(self, tick_tup: Tuple) -> None:
        """Ack the tick. Ticks have no effect on this bolt."""
        self.ack(tick_tup)
