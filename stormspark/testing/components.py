"""Spouts and bolts for tests. They correspond to Storm's own test spouts and bolts (J25, B15)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from stormspark.api import (
    DEFAULT_STREAM,
    BasicBolt,
    BasicOutputCollector,
    Bolt,
    Fields,
    OutputCollector,
    OutputFieldsDeclarer,
    Spout,
    SpoutOutputCollector,
    StreamDeclaration,
    TopologyContext,
    Tuple,
)
from stormspark.testing.acks import AckTracker

__all__ = [
    "FixedTuple",
    "FixedTupleSpout",
    "IdentityBolt",
    "TestAggregatesCounter",
    "TestGlobalCount",
    "TestPlannerBolt",
    "TestPlannerSpout",
    "TestWordCounter",
    "TestWordSpout",
]


class FixedTuple(NamedTuple):
    """A tuple for a `FixedTupleSpout`, with the stream on which it is emitted."""

    values: tuple[Any, ...]
    stream: str = DEFAULT_STREAM


class FixedTupleSpout(Spout):
    """Emits given tuples once. The message id of a tuple is its index. The tuples are dealt to the spout's tasks in turn.

    Each of ``tuples`` is a sequence of values for the default stream, or a `FixedTuple`. Nothing is emitted again: as in Storm, a
    failed tuple counts as completed. The instance with which the topology was built counts the completed tuples of all tasks on
    its host, even if the tasks run in other processes.

    >>> from stormspark import TopologyBuilder
    >>> from stormspark.local import LocalCluster
    >>> spout = FixedTupleSpout([("a",), ("b",)], Fields("word"))
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", spout)
    >>> _ = builder.set_bolt("count", TestWordCounter()).fields_grouping("words", Fields("word"))
    >>> with LocalCluster(simulated_time=True) as cluster:
    ...     cluster.submit_topology("demo", {}, builder.create_topology("demo")).run_until_idle()
    >>> spout.completed, spout.is_exhausted
    (2, True)
    """

    waits = False  # the spout's tracker has a lock, but no thread holds it for long

    def __init__(
        self,
        tuples: Iterable[Sequence[Any] | FixedTuple],
        fields: Fields | None = None,
        streams: Iterable[StreamDeclaration] = (),
    ) -> None:
        self._tuples = [one if isinstance(one, FixedTuple) else FixedTuple(tuple(one)) for one in tuples]
        self._streams = [StreamDeclaration(DEFAULT_STREAM, fields)] if fields is not None else list(streams)
        self._tracker: AckTracker | None = AckTracker()

    @property
    def source_tuples(self) -> list[FixedTuple]:
        """The tuples of all tasks of the spout."""
        return list(self._tuples)

    @property
    def completed(self) -> int:
        """How many tuples were acked or have failed."""
        return len(self._tracker.acked) + len(self._tracker.failed) if self._tracker is not None else 0

    @property
    def is_exhausted(self) -> bool:
        """Whether all tuples were acked or have failed."""
        return self.completed == len(self._tuples)

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        """Choose this task's share of the tuples."""
        self._collector = collector
        if self._tracker is not None and not self._tracker.is_reachable:
            context.logger.warning(
                "FixedTupleSpout %r was created on another host, or by a process that has ended: its completed tuples are not "
                "counted",
                context.this_component_id,
            )
            self._tracker = None
        tasks = len(context.component_tasks(context.this_component_id))
        self._mine = range(context.this_task_index, len(self._tuples), tasks)
        self._next = 0

    def next_tuple(self) -> None:
        """Emit the next tuple."""
        if self._next < len(self._mine):
            position = self._mine[self._next]
            self._next += 1
            values, stream = self._tuples[position]
            self._collector.emit(values, stream, message_id=position)

    def ack(self, message_id: Hashable) -> None:
        """Count the tuple as completed."""
        if self._tracker is not None:
            self._tracker.ack(message_id)

    def fail(self, message_id: Hashable) -> None:
        """Count the tuple as completed."""
        if self._tracker is not None:
            self._tracker.fail(message_id)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the given streams."""
        for stream in self._streams:
            declarer.declare_stream(
                stream.id, stream.fields if stream.schema is None else stream.schema, stream.direct
            )


class TestWordSpout(Spout):
    """Emits random names for ever, as Storm's TestWordSpout does: nathan, mike, jackson, golda, bertels.

    With ``limit``, each task stops after this many words. With ``reliable``, each word has a message id, and failed words are
    emitted again.
    """

    __test__ = False  # pytest must not collect it, despite its name
    WORDS = ("nathan", "mike", "jackson", "golda", "bertels")

    def __init__(self, limit: int | None = None, reliable: bool = True) -> None:
        self.limit = limit
        self.reliable = reliable

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        """Seed the random choice by the task, so that runs can be repeated."""
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
        """Declare one field, ``word``."""
        declarer.declare(Fields("word"))


class TestWordCounter(BasicBolt):
    """Counts how often each first value of a tuple occurs. Emits (value, count so far)."""

    __test__ = False

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Begin with no counts."""
        self._counts: Counter[Any] = Counter()

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Count and emit."""
        self._counts[tup[0]] += 1
        collector.emit((tup[0], self._counts[tup[0]]))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare ``word`` and ``count``."""
        declarer.declare(Fields("word", "count"))


class TestGlobalCount(BasicBolt):
    """Counts all tuples. For each tuple, emits the count so far."""

    __test__ = False

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Begin at zero."""
        self._count = 0

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Count and emit."""
        self._count += 1
        collector.emit((self._count,))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare one field, ``global-count``."""
        declarer.declare(Fields("global-count"))


class TestAggregatesCounter(Bolt):
    """Receives (key, count), and keeps the last count of every key. Emits the sum of these counts, unanchored as in Storm."""

    __test__ = False

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Begin with no keys."""
        self._collector = collector
        self._counts: dict[Any, int] = {}

    def execute(self, tup: Tuple) -> None:
        """Keep the count, emit the sum, and ack."""
        self._counts[tup[0]] = tup[1]
        self._collector.emit((sum(self._counts.values()),))
        self._collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare one field, ``agg-global``."""
        declarer.declare(Fields("agg-global"))


class IdentityBolt(BasicBolt):
    """Emits the values that it receives. ``fields`` are the names of the values."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Emit the same values."""
        collector.emit(tup.values)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the given fields."""
        declarer.declare(self._fields)


class TestPlannerSpout(Spout):
    """A spout for tests of planning. It emits nothing. Unless ``distributed``, it has one task, whatever its parallelism is."""

    __test__ = False

    def __init__(self, fields: Fields | None = None, *, distributed: bool = True) -> None:
        self._fields = fields or Fields("field1", "field2")
        self._distributed = distributed

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        """Do nothing."""

    def next_tuple(self) -> None:
        """Emit nothing."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the given fields, by default ``field1`` and ``field2``."""
        declarer.declare(self._fields)

    def get_component_configuration(self) -> Mapping[str, Any]:
        """Return the setting that limits the spout to one task, unless it is distributed."""
        return {} if self._distributed else {"topology.max.task.parallelism": 1}


class TestPlannerBolt(Bolt):
    """A bolt for tests of planning. It receives tuples, and neither emits nor acks."""

    __test__ = False

    def execute(self, tup: Tuple) -> None:
        """Do nothing."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare ``field1`` and ``field2``."""
        declarer.declare(Fields("field1", "field2"))
