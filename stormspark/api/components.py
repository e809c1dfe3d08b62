"""Spouts and bolts: the classes that users subclass (B1, C1, C5).

A component is made and pickled where the topology is built; every task works on a copy of its own (A3). So
keep what can't be pickled (connections, files, locks) out of ``__init__`` and make it in ``open`` or
``prepare``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stormspark.api.collector import BasicOutputCollector, OutputCollector, SpoutOutputCollector
    from stormspark.api.context import TopologyContext
    from stormspark.api.streams import OutputFieldsDeclarer
    from stormspark.api.tuples import Tuple

__all__ = ["BasicBolt", "Bolt", "Component", "Spout", "TickTupleAwareBolt"]


class Component:
    """What spouts and bolts share."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the streams that this component emits; a sink declares none."""

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """Settings of this component alone; they override the topology's (A20)."""
        return None


class Spout(Component, ABC):
    """A source of tuples (B1). All of its methods run on one thread, and `next_tuple` must not block for
    long.

    >>> from stormspark import Fields
    >>> class Numbers(Spout):
    ...     def open(self, conf, context, collector):
    ...         self.collector, self.n = collector, 0
    ...     def next_tuple(self):
    ...         self.collector.emit((self.n,), message_id=self.n)
    ...         self.n += 1
    ...     def declare_output_fields(self, declarer):
    ...         declarer.declare(Fields("number"))
    """

    @abstractmethod
    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        """Called once, in the worker, before anything else (B2)."""

    @abstractmethod
    def next_tuple(self) -> None:
        """Emit what there is; emit nothing if there is nothing, and return (B3, B12)."""

    def ack(self, message_id: Hashable) -> None:
        """The tree of an emit with this id is fully processed."""

    def fail(self, message_id: Hashable) -> None:
        """The tree of an emit with this id failed; ``collector.verdict`` says why. Emit it again to replay it
        (E11).
        """

    def activate(self) -> None:
        """Called after `open`, and whenever the topology becomes active again."""

    def deactivate(self) -> None:
        """`next_tuple` will not be called until `activate`; acks and fails still are (B13)."""

    def close(self) -> None:
        """The topology ends. Not called when a worker is killed (B1)."""


class Bolt(Component, ABC):
    """Processes tuples (C1); acks or fails each of them by itself, then or later.

    >>> from stormspark import Fields
    >>> class Double(Bolt):
    ...     def prepare(self, conf, context, collector):
    ...         self.collector = collector
    ...     def execute(self, tup):
    ...         self.collector.emit((2 * tup["number"],), anchors=[tup])
    ...         self.collector.ack(tup)
    ...     def declare_output_fields(self, declarer):
    ...         declarer.declare(Fields("number"))
    """

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Called once, in the worker, before any tuple."""

    @abstractmethod
    def execute(self, tup: Tuple) -> None:
        """Process one tuple. What it raises fails the tuple and restarts this task alone."""

    def cleanup(self) -> None:
        """The topology ends. Not called when a worker is killed (C1)."""


class TickTupleAwareBolt(Bolt):
    """A bolt with a method of its own for ticks (C9, Storm's BaseTickTupleAwareRichBolt).

    >>> class Flush(TickTupleAwareBolt):
    ...     def get_component_configuration(self):
    ...         return {"topology.tick.tuple.freq.secs": 10}
    ...     def prepare(self, conf, context, collector):
    ...         self.collector, self.held = collector, []
    ...     def process(self, tup):
    ...         self.held.append(tup)
    ...     def on_tick_tuple(self, tick):
    ...         for tup in self.held:
    ...             self.collector.ack(tup)
    ...         self.held.clear()
    """

    def execute(self, tup: Tuple) -> None:
        """Tell ticks and other tuples apart."""
        if tup.is_tick:
            self.on_tick_tuple(tup)
        else:
            self.process(tup)

    @abstractmethod
    def process(self, tup: Tuple) -> None:
        """Process a tuple that is no tick."""

    def on_tick_tuple(self, tick: Tuple) -> None:
        """Some time has passed."""


class BasicBolt(Component, ABC):
    """A bolt whose emits are anchored to the tuple at hand, which is acked when `execute` returns (C5).

    Raise `FailedException` to fail the tuple; anything else fails it too and restarts the task.

    >>> from stormspark import Fields
    >>> class Split(BasicBolt):
    ...     def execute(self, tup, collector):
    ...         for word in tup["sentence"].split():
    ...             collector.emit((word,))
    ...     def declare_output_fields(self, declarer):
    ...         declarer.declare(Fields("word"))
    """

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Called once, in the worker, before any tuple."""

    @abstractmethod
    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Process one tuple."""

    def cleanup(self) -> None:
        """The topology ends. Not called when a worker is killed (C1)."""
