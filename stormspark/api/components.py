"""Spouts and bolts: the classes that users subclass (B1, C1, C5).

A component is constructed and pickled where the topology is built, and every task works on a copy of its own (A3).
So create objects that can't be pickled (connections, files, locks) in ``open`` or ``prepare``, not in ``__init__``.
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

__all__ = ["BasicBolt", "Bolt", "Component", "Spout", "TickTupleAwareBolt", "overrides"]


def overrides(component: object, method: str, *kinds: type) -> bool:
    """Return whether ``component`` is of one of these kinds, and has a ``method`` of its own.

    >>> class Quiet(Component): ...
    >>> overrides(Quiet(), "get_component_configuration", Component)
    False
    """
    own = getattr(type(component), method, None)
    return callable(own) and any(
        isinstance(component, kind) and own is not getattr(kind, method) for kind in kinds
    )


class Component:
    """The base class of spouts and bolts."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the streams that this component emits. A sink declares none."""

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """Return settings for this component alone. They override the topology's settings (A20)."""
        return None


class Spout(Component, ABC):
    """A component that emits tuples and receives none (B1). One thread runs all methods of an instance.

    This is the worker's thread, unless the spout's code may wait. Then its executor has a thread of its own (A16).
    `stormspark.waiting_code` reads the code to find out whether it may wait. A class attribute ``waits``, True or False,
    overrides the answer.

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
        """Emit what is available, or nothing, and return (B3, B12)."""

    def is_done(self) -> bool:
        """Return whether this instance will emit nothing more, because its input has an end.

        A spout that emits failed messages again returns False while such a message waits. stormspark asks between two calls of
        `next_tuple`. Once all spouts of a topology are done, bolts flush what they hold (`Bolt.end_of_input`), and the topology
        ends. Storm has no such method. A spout without it never says that it is done. Nor does one whose `is_done` raises.
        """
        return False

    def ack(self, message_id: Hashable) -> None:
        """Called when the tree of an emit with this id is fully processed."""

    def fail(self, message_id: Hashable) -> None:
        """Called when the tree of an emit with this id has failed; ``collector.verdict`` says why.

        To replay the message, emit it again (E11).
        """

    def activate(self) -> None:
        """Called after `open`, unless the topology is deactivated, and whenever the topology becomes active again."""

    def deactivate(self) -> None:
        """Called when the topology is deactivated.

        `next_tuple` is not called until `activate`; `ack` and `fail` still are (B13).
        """

    def close(self) -> None:
        """Called when the topology ends, but not when a worker is killed (B1)."""


class Bolt(Component, ABC):
    """A bolt that acks or fails each of its tuples itself, at once or later (C1).

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
        """Process one tuple. `FailedException` fails the tuple. Any other exception also restarts this one task."""

    def end_of_input(self) -> None:
        """Called when the input has ended: emit, write, ack or fail what the bolt holds.

        All components that send to this bolt have ended before, and the bolt has executed all of their tuples. Tuples that fail
        now may come again, and then there is another call. Storm has no such method. If a bolt without it gets ticks, it gets one
        last tick at this point.
        """

    def cleanup(self) -> None:
        """Called when the topology ends, but not when a worker is killed (C1)."""


class TickTupleAwareBolt(Bolt):
    """A bolt with a separate method for ticks (C9, Storm's BaseTickTupleAwareRichBolt).

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
        """Pass ticks to `on_tick_tuple` and all other tuples to `process`."""
        if tup.is_tick:
            self.on_tick_tuple(tup)
        else:
            self.process(tup)

    @abstractmethod
    def process(self, tup: Tuple) -> None:
        """Process a tuple that is not a tick."""

    def on_tick_tuple(self, tick: Tuple) -> None:
        """Called for each tick, every ``topology.tick.tuple.freq.secs``."""


class BasicBolt(Component, ABC):
    """A bolt that anchors its emits to the current tuple, and acks it when `execute` returns (C5).

    Raise `FailedException` to fail the tuple. Any other exception also fails it, and restarts the task.

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

    def end_of_input(self, collector: BasicOutputCollector) -> None:
        """Called when the input has ended, to emit what the bolt still has to emit; see `Bolt.end_of_input`.

        What it emits belongs to no tree.
        """

    def cleanup(self) -> None:
        """Called when the topology ends, but not when a worker is killed (C1)."""
