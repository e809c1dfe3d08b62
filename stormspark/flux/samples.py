"""Stand-ins for the components of Storm's own example topologies, so that these run as they are (K23)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

from stormspark.api import (
    BasicBolt,
    BasicOutputCollector,
    Bolt,
    Fields,
    OutputCollector,
    OutputFieldsDeclarer,
    Spout,
    SpoutOutputCollector,
    TopologyContext,
    Tuple,
    TupleWindow,
    WindowedBolt,
)
from stormspark.api.state import KeyValueState, StatefulBolt
from stormspark.connectors import KafkaRecord, SimpleRecordTranslator

__all__ = [
    "RandomSentenceSpout",
    "SplitSentence",
    "StatefulWordCounter",
    "TestPrintBolt",
    "TestWindowBolt",
    "WordCount",
    "WordCounter",
    "only_value",
]


class RandomSentenceSpout(Spout):
    """A random sentence each 100 ms, on field ``word``, with the sentence as message id."""

    SENTENCES = (
        "a storm in a teacup",
        "one swallow does not make a summer",
        "the early bird catches the worm",
        "still waters run deep and slow",
        "many hands make light work of many sheaves",
    )
    PERIOD_MS = 100

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        """Begin with a sentence at once."""
        self._context, self._collector = context, collector
        self._random = Random(context.this_task_id)
        self._due_ms = context.now_ms()

    def next_tuple(self) -> None:
        """Emit a sentence if one is due."""
        now_ms = self._context.now_ms()
        if now_ms >= self._due_ms:
            self._due_ms = max(self._due_ms + self.PERIOD_MS, now_ms)
            sentence = self._random.choice(self.SENTENCES)
            self._collector.emit((sentence,), message_id=sentence)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """One field, ``word``."""
        declarer.declare(Fields("word"))


class SplitSentence(BasicBolt):
    """Emits the words of its input's first value."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Split at white space."""
        for word in tup[0].split():
            collector.emit((word,))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """One field, ``word``."""
        declarer.declare(Fields("word"))


class _WordsAndCounts(BasicBolt):
    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """``word`` and ``count``."""
        declarer.declare(Fields("word", "count"))


class WordCount(_WordsAndCounts):
    """Emits each word with how often it came so far."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Begin with nothing counted."""
        self._counts: Counter[str] = Counter()

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Count and emit."""
        self._counts[tup[0]] += 1
        collector.emit((tup[0], self._counts[tup[0]]))


class WordCounter(_WordsAndCounts):
    """Emits each word with a one: whoever gets it does the counting."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Emit."""
        collector.emit((tup[0], 1))


class StatefulWordCounter(StatefulBolt[KeyValueState[str, int]], Bolt):
    """Counts words in its state."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Keep the collector."""
        self._collector = collector

    def init_state(self, state: KeyValueState[str, int]) -> None:
        """Go on with what was counted before."""
        self._counts = state

    def execute(self, tup: Tuple) -> None:
        """Count, emit, ack."""
        count = self._counts.get(tup[0], 0) + 1
        self._counts.put(tup[0], count)
        self._collector.emit((tup[0], count), anchors=[tup])
        self._collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """``word`` and ``count``."""
        declarer.declare(Fields("word", "count"))


class TestWindowBolt(WindowedBolt):
    """Emits how many tuples a window has."""

    __test__ = False  # not a test case, whatever its name says

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Keep the collector."""
        self._collector = collector

    def execute(self, window: TupleWindow) -> None:
        """Emit their number."""
        self._collector.emit((len(window),))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """One field, ``count``."""
        declarer.declare(Fields("count"))


class TestPrintBolt(BasicBolt):
    """Prints what it gets to its worker's standard output."""

    __test__ = False

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Print one tuple."""
        print(tup)  # noqa: T201 - it is what this bolt is for


def _value(record: KafkaRecord) -> tuple[Any]:
    return (record.value,)


def only_value() -> SimpleRecordTranslator:
    """A Kafka record's value, on field ``value``."""
    return SimpleRecordTranslator(_value, Fields("value"))
