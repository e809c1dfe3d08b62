"""The base classes of users' spouts and bolts (B21, C20).

The task makes the instance, with a ``delegate`` that emits, acks and logs for the instance. So don't override ``__init__``. Set
the instance up in ``initialize``.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from stormspark.compat.heronpy.component_spec import HeronComponentSpec
from stormspark.compat.heronpy.stream import Stream
from stormspark.compat.heronpy.tuples import TupleHelper
from stormspark.user_line import user_line

if TYPE_CHECKING:
    from stormspark.compat.heronpy.delegates import BoltDelegate, SpoutDelegate

__all__ = ["BaseBolt", "BaseComponent", "BaseSpout", "Bolt", "Spout"]


class BaseComponent:
    """The common base of spouts and bolts."""

    def __init__(self, delegate: Any) -> None:
        self.delegate = delegate
        self.logger: logging.Logger = delegate.logger

    def log(self, message: str, level: str | None = None) -> None:
        """Write to the task's log. ``level`` is trace, debug, info, warn or error; by default info."""
        self.delegate.log(message, level)


def _outputs(cls: type, optional: Any) -> Any:
    """Return the outputs of the class, together with the ``optional`` outputs that it has in this topology only (A41)."""
    own = getattr(cls, "outputs", [])
    if optional is None:
        return own
    if not isinstance(optional, list | tuple) or not all(isinstance(one, str | Stream) for one in optional):
        msg = f"{user_line()}: optional_outputs must be a list of strings or Streams, given: {optional!r}"
        raise TypeError(msg)
    return [*own, *optional] if isinstance(own, list | tuple) else own


class BaseSpout(BaseComponent):
    """The methods of a spout that users call."""

    delegate: SpoutDelegate

    @classmethod
    def spec(
        cls, name: str | None = None, par: int = 1, config: Any = None, optional_outputs: Any = None
    ) -> HeronComponentSpec:
        """Return this spout as a topology's component (A41). Raises `InvalidTopologyError` or TypeError with the user's line."""
        path = f"{cls.__module__}.{cls.__name__}"
        outputs = _outputs(cls, optional_outputs)
        return HeronComponentSpec(name, path, True, par, None, outputs, config, component=cls)

    def emit(
        self,
        tup: Sequence[Any],
        tup_id: Any = None,
        stream: str = Stream.DEFAULT_STREAM_ID,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emit a tuple (B22). With ``need_task_ids``, returns the ids of the tasks that the tuple goes to.

        If you pass a ``tup_id``, `ack` or `fail` is called with this id later. If the topology does not track tuples, `ack` is
        called as soon as ``next_tuple`` returns (B23).

        Raises RuntimeError for a stream that is not declared, or for a wrong number of values.
        """
        return self.delegate.emit(tup, tup_id, stream, direct_task, need_task_ids)


class Spout(BaseSpout):
    """A spout of heronpy (B21).

    >>> class WordSpout(Spout):
    ...     outputs = ["word"]
    ...     def initialize(self, config, context):
    ...         self.words = iter(["storm", "heron"])
    ...     def next_tuple(self):
    ...         for word in self.words:
    ...             self.emit([word], tup_id=word)
    >>> sorted(WordSpout.spec("words").get_out_streamids())
    ['default']
    """

    @abstractmethod
    def initialize(self, config: dict[str, Any], context: Any) -> None:
        """Called first, in the task."""

    @abstractmethod
    def close(self) -> None:
        """Clean up. Called when the task ends gracefully."""

    @abstractmethod
    def next_tuple(self) -> None:
        """Emit the tuples that are available, and return."""
        msg = f"{type(self).__name__} has no next_tuple(): Spout not implementing next_tuple() method."
        raise NotImplementedError(msg)

    @abstractmethod
    def ack(self, tup_id: Any) -> None:
        """Called when the tuple with this id is fully processed."""

    @abstractmethod
    def fail(self, tup_id: Any) -> None:
        """Called when the tuple with this id has failed. Emit the tuple again, or give it up."""

    @abstractmethod
    def activate(self) -> None:
        """Called when the topology is active again after a deactivation. It is not called at the start."""

    @abstractmethod
    def deactivate(self) -> None:
        """Called when the topology is deactivated. `next_tuple` is not called until `activate`."""


class BaseBolt(BaseComponent):
    """The methods of a bolt that users call."""

    delegate: BoltDelegate

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        inputs: Any = None,
        par: int = 1,
        config: Any = None,
        optional_outputs: Any = None,
    ) -> HeronComponentSpec:
        """Return this bolt as a topology's component (A41). Raises `InvalidTopologyError` or TypeError with the user's line."""
        path = f"{cls.__module__}.{cls.__name__}"
        outputs = _outputs(cls, optional_outputs)
        return HeronComponentSpec(name, path, False, par, inputs, outputs, config, component=cls)

    def emit(
        self,
        tup: Sequence[Any],
        stream: str = Stream.DEFAULT_STREAM_ID,
        anchors: Iterable[Any] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emit a tuple. The tuple is tracked only if you pass ``anchors``, because nothing is anchored automatically (C20).

        Raises RuntimeError for a stream that is not declared, or for a wrong number of values.
        """
        return self.delegate.emit(tup, stream, anchors, direct_task, need_task_ids)

    @staticmethod
    def is_tick(tup: Any) -> bool:
        """Return whether the tuple is a tick."""
        return bool(tup.stream == TupleHelper.TICK_TUPLE_ID)

    def ack(self, tup: Any) -> None:
        """Ack ``tup``. Nothing is acked automatically (C20)."""
        self.delegate.ack(tup)

    def fail(self, tup: Any) -> None:
        """Fail the trees of ``tup``."""
        self.delegate.fail(tup)


class Bolt(BaseBolt):
    """A bolt of heronpy (C20).

    >>> class CountBolt(Bolt):
    ...     outputs = ["word", "count"]
    ...     def initialize(self, config, context):
    ...         self.counts = {}
    ...     def process(self, tup):
    ...         word = tup.values[0]
    ...         self.counts[word] = self.counts.get(word, 0) + 1
    ...         self.emit([word, self.counts[word]], anchors=[tup])
    ...         self.ack(tup)
    """

    @abstractmethod
    def initialize(self, config: dict[str, Any], context: Any) -> None:
        """Called first, in the task."""

    @abstractmethod
    def process(self, tup: Any) -> None:
        """Process one tuple that is not a tick."""
        msg = f"{type(self).__name__} has no process(): Bolt not implementing process() method."
        raise NotImplementedError(msg)

    @abstractmethod
    def process_tick(self, tup: Any) -> None:
        """Process a tick, which arrives every ``topology.tick.tuple.freq.secs``."""
