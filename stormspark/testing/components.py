"""Ready components for tests: Storm's own test spouts and bolts (J25)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from stormspark.api import (
    DEFAULT_STREAM,
    BasicBolt,
    BasicOutputCollector,
    Fields,
    OutputFieldsDeclarer,
    Spout,
    SpoutOutputCollector,
    StreamDeclaration,
    TopologyContext,
    Tuple,
)

__all__ = ["FixedTuple", "FixedTupleSpout", "TestGlobalCount", "TestWordCounter", "TestWordSpout"]


class FixedTuple(NamedTuple):
    """A tuple for a certain stream of a `FixedTupleSpout`."""

    values: tuple[Any, ...]
    stream: str = DEFAULT_STREAM


class FixedTupleSpout(Spout):
    """Emits given tuples once, each with its position as message id, dealt out to the spout's tasks in turn.

    ``tuples`` are values for the default stream, or `FixedTuple`. Nothing is replayed.
    """

    def __init__(
        self,
        tuples: Iterable[Sequence[Any] | FixedTuple],
        fields: Fields | None = None,
        streams: Iterable[StreamDeclaration] = (),
    ) -> None:
        self._tuples = [one if isinstance(one, FixedTuple) else FixedTuple(tuple(one)) for one in tuples]
        self._streams = [StreamDeclaration(DEFAULT_STREAM, fields)] if fields is not None else list(streams)

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        """Find this task's share."""
        self._collector = collector
        tasks = len(context.component_tasks(context.this_component_id))
        self._mine = range(context.this_task_index, len(self._tuples), tasks)
        self._next = 0

    def next_tuple(self) -> None:
        """Emit the next one."""
        if self._next < len(self._mine):
            position = self._mine[self._next]
            self._next += 1
            values, stream = self._tuples[position]
            self._collector.emit(values, stream, message_id=position)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare what was given."""
        for stream in self._streams:
            declarer.declare_stream(stream.id, stream.fields, stream.direct)


class TestWordSpout(Spout):
    """Emits random names for ever, as Storm's TestWordSpout: nathan, mike, jackson, golda, bertels.

    ``limit`` ends it after so many words a task; ``reliable`` gives each a message id, and failed ones are
    emitted again.
    """

    __test__ = False  # not a test case, whatever its name says
    WORDS = ("nathan", "mike", "jackson", "golda", "bertels")

    def __init__(self, limit: int | None = None, reliable: bool = True) -> None:
        self.limit = limit
        self.reliable = reliable

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        """Seed the choice by the task, so that runs can be repeated."""
        self._collector = collector
        self._random = Random(context.this_task_id)
        self._emitted = 0
        self._open: dict[Hashable, str] = {}

    def next_tuple(self) -> None:
        """Emit one word."""
        if self.limit is None or self._emitted < self.limit:
            word = self._random.choice(self.WORDS)
            self._emitted += 1
            if self.reliable:
                self._open[self._emitted] = word
                self._collector.emit((word,), message_id=self._emitted)
            else:
                self._collector.emit((word,))

    def ack(self, message_id: Hashable) -> None:
        """Forget the word."""
        del self._open[message_id]

    def fail(self, message_id: Hashable) -> None:
        """Emit the word again."""
        self._collector.emit((self._open[message_id],), message_id=message_id)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """One field, ``word``."""
        declarer.declare(Fields("word"))


class TestWordCounter(BasicBolt):
    """Counts its input's first value and emits (value, count so far)."""

    __test__ = False

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Begin with nothing counted."""
        self._counts: Counter[Any] = Counter()

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Count and emit."""
        self._counts[tup[0]] += 1
        collector.emit((tup[0], self._counts[tup[0]]))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """``word`` and ``count``."""
        declarer.declare(Fields("word", "count"))


class TestGlobalCount(BasicBolt):
    """Counts all tuples and emits (count so far)."""

    __test__ = False

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Begin at zero."""
        self._count = 0

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Count and emit."""
        self._count += 1
        collector.emit((self._count,))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """One field, ``global-count``."""
        declarer.declare(Fields("global-count"))
