"""Logs of a real broker that are not what they were: cut, deleted and made again, gone while they are read."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from stormspark.connectors import KafkaSpoutConfig
from stormspark.connectors.kafka import FirstPollOffsetStrategy
from stormspark.connectors.kafka.offsets import Document, as_positions, topic_ids
from stormspark.connectors.kafka.planner import KafkaPlanner, PlannerSettings
from stormspark.connectors.kafka.reader import RangeReader
from tests.kafka_broker import KafkaBroker

pytestmark = pytest.mark.slow


class Reading:
    """A planner and a reader: what a topology does, without an engine."""

    def __init__(self, broker: KafkaBroker, *topics: str) -> None:
        config = KafkaSpoutConfig(
            broker.bootstrap,
            topics,
            first_poll_offset_strategy=FirstPollOffsetStrategy.EARLIEST,
            partition_refresh_period_ms=200,
        )
        self._settings = PlannerSettings.of(config, "test")
        self._conf = config.client_conf
        self.reported: list[str] = []
        self.news: list[Any] = []
        self.values: list[bytes | None] = []
        self.position: Document = {}
        self.begin()

    def begin(self) -> None:
        """A new driver and a new worker; what Spark has written down is kept."""
        self.planner = KafkaPlanner(self._settings)
        self.reader = RangeReader(self._conf, report=self.reported.append)

    def batch(self) -> None:
        start, self.position = self.position, self.planner.latest(self.position)
        for found in self.planner.ranges(start, self.position):
            if found.change is not None:
                self.news.append((found.topic, found.partition, *found.change))
                continue
            at = found.start
            while at < found.end:
                messages, at = self.reader.read(found.topic, found.partition, at, found.end, 512)
                self.values += [message[4] for message in messages]

    def until(self, done: Any, secs: float = 60) -> None:
        until = time.monotonic() + secs
        while not done():
            self.batch()
            assert time.monotonic() < until, (self.position, self.news, self.reported, len(self.values))

    def close(self) -> None:
        self.planner.close()
        self.reader.close()


@pytest.fixture
def readings() -> Iterator[list[Reading]]:
    made: list[Reading] = []
    yield made
    for one in made:
        one.close()


def numbers(*some: int) -> list[bytes]:
    return [b"%d" % n for n in range(*some)]


@pytest.mark.parametrize("restarted", [pytest.param(False, marks=pytest.mark.long), True])
def test_a_log_that_was_cut_goes_on_at_its_end(
    kafka: KafkaBroker, readings: list[Reading], restarted: bool
) -> None:
    """It keeps its id; what is left of it does not come again, and what is written from then on comes."""
    topic = f"cut-{restarted}"
    kafka.create_topic(topic, partitions=3)
    for partition in range(3):
        kafka.produce(topic, numbers(60), partition=partition)
    size = kafka.log_bytes(topic)
    kafka.produce(topic, numbers(60, 100), partition=0)
    readings.append(reading := Reading(kafka, topic))
    reading.until(lambda: len(reading.values) == 220)
    id = topic_ids(reading.position)
    kafka.stop()
    kafka.cut(topic, log_bytes=size)
    kafka.start()
    if restarted:
        reading.close()
        reading.begin()
    reading.until(lambda: reading.news)
    assert reading.news == [(topic, 0, "cut", 60)]
    assert topic_ids(reading.position) == id != {}
    kafka.produce(topic, numbers(1000, 1010), partition=0)
    kafka.produce(topic, numbers(2000, 2010), partition=1)
    reading.until(lambda: len(reading.values) == 240)
    assert Counter(reading.values[220:]) == Counter(numbers(1000, 1010) + numbers(2000, 2010))
    assert sorted(as_positions(reading.position).values()) == [60, 70, 70] and reading.reported == []


@pytest.mark.parametrize("messages", [pytest.param(30, marks=pytest.mark.long), 300])
def test_a_recreated_topic_is_read_from_its_beginning_whatever_its_size(
    kafka: KafkaBroker, readings: list[Reading], messages: int
) -> None:
    """Also where it has more messages by then than the old one had."""
    topic = f"anew-{messages}"
    kafka.create_topic(topic, partitions=2)
    kafka.produce(topic, numbers(100), partition=0)
    readings.append(reading := Reading(kafka, topic))
    reading.until(lambda: len(reading.values) == 100)
    kafka.delete_topic(topic)
    kafka.create_topic(topic, partitions=2)
    kafka.produce(topic, numbers(1000, 1000 + messages), partition=0)
    reading.until(lambda: len(reading.values) == 100 + messages)
    assert reading.values[100:] == numbers(1000, 1000 + messages)
    assert sorted(reading.news) == [(topic, 0, "made anew", 0), (topic, 1, "made anew", 0)]


def test_what_was_handed_out_and_is_gone_is_reported_and_not_waited_for(
    kafka: KafkaBroker, readings: list[Reading]
) -> None:
    """A batch that is run again after a cut, in the middle of its range and before it: it ends, and says what is missing."""
    kafka.create_topic("gone", partitions=2)
    for partition in range(2):
        kafka.produce("gone", numbers(60), partition=partition)
    size = kafka.log_bytes("gone")
    for partition in range(2):
        kafka.produce("gone", numbers(60, 100), partition=partition)
    kafka.stop()
    kafka.cut("gone", 0, log_bytes=size)
    kafka.cut("gone", 1)
    kafka.start()
    readings.append(reading := Reading(kafka, "gone"))
    left = {0: 50, 1: 10}
    found: list[bytes | None] = []
    until = time.monotonic() + 60
    while left:
        for partition, start in list(left.items()):
            messages, left[partition] = reading.reader.read("gone", partition, start, 100, 512)
            found += [message[4] for message in messages]
            if left[partition] == 100:
                del left[partition]
        assert time.monotonic() < until, left
    assert found == numbers(50, 60)
    assert sorted(text.split(" are gone")[0] for text in reading.reported) == [
        "40 messages of gone-0, offsets 60 to 99,",
        "90 messages of gone-1, offsets 10 to 99,",
    ]
    kafka.produce("gone", numbers(7000, 7005), partition=0)
    at, found = 60, []
    while at < 65:
        messages, at = reading.reader.read("gone", 0, at, 65, 512)
        found += [message[4] for message in messages]
        assert time.monotonic() < until + 60, at
    assert found == numbers(7000, 7005)


def test_a_broker_that_comes_back_with_all_it_had_changes_nothing(
    kafka: KafkaBroker, readings: list[Reading]
) -> None:
    """Killed in the middle of a range, whose rest comes later."""
    kafka.create_topic("back")
    kafka.produce("back", numbers(1000))
    readings.append(reading := Reading(kafka, "back"))
    first = reading.reader.read("back", 0, 0, 1000, 10)
    kafka.kill()
    kafka.start()
    at, values = first.next, [message[4] for message in first.messages]
    while at < 1000:
        messages, at = reading.reader.read("back", 0, at, 1000, 512)
        values += [message[4] for message in messages]
    assert values == numbers(1000) and reading.reported == []
