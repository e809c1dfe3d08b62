"""Stand-ins for the components of Storm's example topologies, so that the examples run unmodified (K23)."""

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
    """A spout that emits a random sentence every 100 ms, in field ``word``. The sentence is also its message id."""

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
        """Start the clock, so that the first sentence is due at once."""
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
        """Declare one field, ``word``."""
        declarer.declare(Fields("word"))


class SplitSentence(BasicBolt):
    """A bolt that emits the words of each tuple's first value."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Split at white space."""
        for word in tup[0].split():
            collector.emit((word,))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare one field, ``word``."""
        declarer.declare(Fields("word"))


class _WordsAndCounts(BasicBolt):
    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the fields ``word`` and ``count``."""
        declarer.declare(Fields("word", "count"))


class WordCount(_WordsAndCounts):
    """A bolt that emits each word with its count so far."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Start with no counts."""
        self._counts: Counter[str] = Counter()

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Count the word, and emit its count."""
        self._counts[tup[0]] += 1
        collector.emit((tup[0], self._counts[tup[0]]))


class WordCounter(_WordsAndCounts):
    """A bolt that emits each word with the number 1. The next bolt adds these numbers up."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Emit the word with the number 1."""
        collector.emit((tup[0], 1))


class StatefulWordCounter(StatefulBolt[KeyValueState[str, int]], Bolt):
    """A bolt that counts words in its state."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Keep the collector."""
        self._collector = collector

    def init_state(self, state: KeyValueState[str, int]) -> None:
        """Continue with the counts in the state."""
        self._counts = state

    def execute(self, tup: Tuple) -> None:
        """Count the word, emit its count, and ack the tuple."""
        count = self._counts.get(tup[0], 0) + 1
        self._counts.put(tup[0], count)
        self._collector.emit((tup[0], count), anchors=[tup])
        self._collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the fields ``word`` and ``count``."""
        declarer.declare(Fields("word", "count"))


class TestWindowBolt(WindowedBolt):
    """A bolt that emits the number of tuples in each window."""

    __test__ = False  # pytest must not collect it, despite its name

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Keep the collector."""
        self._collector = collector

    def execute(self, window: TupleWindow) -> None:
        """Emit the number of tuples."""
        self._collector.emit((len(window),))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare one field, ``count``."""
        declarer.declare(Fields("count"))


class TestPrintBolt(BasicBolt):
    """A bolt that prints each tuple to its worker's standard output."""

    __test__ = False

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Print one tuple."""
        print(tup)  # noqa: T201 - printing is the purpose of this bolt


def _value(record: KafkaRecord) -> tuple[Any]:
    return (record.value,)


def only_value() -> SimpleRecordTranslator:
    """Return a translator that emits a Kafka record's value in field ``value``."""
    return SimpleRecordTranslator(_value, Fields("value"))
