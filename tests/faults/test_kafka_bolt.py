"""KafkaBolt over a real broker, which is killed and comes back: nothing is acked that is not in the topic."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Hashable
from typing import Any

import pytest

from stormspark import Fields, Spout, TopologyBuilder
from stormspark.connectors import FieldNameTopicSelector, KafkaBolt
from stormspark.local import LocalTopology, submit
from tests.kafka_broker import KafkaBroker
from tests.waiting import wait_for_acks

pytestmark = [pytest.mark.faults, pytest.mark.slow]


class Until(Spout):
    """Emits numbers, each under two topics' names in turn, until it is told to stop; emits again what failed."""

    stop = threading.Event()
    acked: set[Hashable]
    failed = 0

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.next, self.again = collector, 0, []
        Until.acked, Until.failed = set(), 0

    def next_tuple(self) -> None:
        if self.again:
            n = self.again.pop()
        elif not Until.stop.is_set():
            n, self.next = self.next, self.next + 1
        else:
            return
        self.collector.emit((f"{n % 10}", str(n), f"topic-{n % 2}"), message_id=n)

    def ack(self, message_id: Hashable) -> None:
        Until.acked.add(message_id)

    def fail(self, message_id: Hashable) -> None:
        Until.failed += 1
        self.again.append(message_id)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("key", "message", "to"))


def run(bolt: KafkaBolt, pending: int, **conf: Any) -> LocalTopology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Until()).set_max_spout_pending(pending)
    builder.set_bolt("sink", bolt, 2).fields_grouping("numbers", Fields("key"))
    return submit(builder.create_topology("to-kafka"), conf=conf)


def numbers_in(broker: KafkaBroker, topic: str) -> Counter[int]:
    return Counter(int(message.value() or b"-1") for message in broker.messages(topic))


@pytest.mark.parametrize(
    "asynchronous", [True, pytest.param(False, marks=pytest.mark.long)], ids=["async", "sync"]
)
def test_nothing_is_acked_that_is_not_in_the_topic(kafka: KafkaBroker, asynchronous: bool) -> None:
    """K8: with two topics, a broker that is killed twice, and messages that time out meanwhile."""
    prefix = f"bolt-{asynchronous}-"
    for n in range(2):
        kafka.create_topic(f"{prefix}topic-{n}", partitions=2)
    bolt = (
        KafkaBolt()
        .with_producer_properties(
            {
                "bootstrap.servers": kafka.bootstrap,
                "message.timeout.ms": 1500,
                "reconnect.backoff.max.ms": 500,
            }
        )
        .with_topic_selector(Prefixed(prefix))
        .set_async(asynchronous)
    )
    Until.stop.clear()
    running = run(bolt, pending=500)
    try:
        for _ in range(2):
            wait_for_acks(running, "numbers", len(Until.acked) + 200)
            kafka.kill()
            time.sleep(2)  # longer than a message may take: some fail, and are emitted again
            kafka.start()
        wait_for_acks(running, "numbers", len(Until.acked) + 200)
        Until.stop.set()
        running.run_until_idle(60)
    finally:
        running.stop()
    assert running.error is None
    written = numbers_in(kafka, f"{prefix}topic-0") + numbers_in(kafka, f"{prefix}topic-1")
    assert set(written) == Until.acked == set(range(len(Until.acked))), "all is written, and nothing else"
    assert Until.failed > 0, "the outage was felt"
    assert all(n % 2 == 0 for n in numbers_in(kafka, f"{prefix}topic-0"))


class Prefixed:
    """The topic is a field's value behind a prefix."""

    def __init__(self, prefix: str) -> None:
        self.prefix, self.field = prefix, FieldNameTopicSelector("to")

    def __call__(self, tup: Any) -> str:
        return f"{self.prefix}{self.field(tup)}"


def test_keys_find_their_partition_and_the_callback_is_called(kafka: KafkaBroker) -> None:
    """K8: a key's messages are in one partition in order, the one that Java's producer would choose."""
    kafka.create_topic("keyed", partitions=4)
    told: list[int] = []
    _told.append(told)
    bolt = (
        KafkaBolt()
        .with_producer_properties({"bootstrap.servers": kafka.bootstrap})
        .with_topic_selector("keyed")
        .with_producer_callback(note)
    )
    Until.stop.clear()
    running = run(bolt, pending=1000)
    try:
        wait_for_acks(running, "numbers", len(Until.acked) + 2000)
        Until.stop.set()
        running.run_until_idle(60)
    finally:
        running.stop()
    messages = kafka.messages("keyed")
    partitions: dict[bytes, set[int]] = {}
    values: dict[bytes, list[int]] = {}
    for message in messages:
        key, value, partition = message.key(), message.value(), message.partition()
        assert key is not None and value is not None and partition is not None
        partitions.setdefault(key, set()).add(partition)
        values.setdefault(key, []).append(int(value))
    assert all(len(found) == 1 for found in partitions.values())
    assert all(found == sorted(found) for found in values.values())
    # murmur2 of "0" and "1" with its sign bit cleared, modulo 4: as Java's DefaultPartitioner.
    assert partitions[b"0"] == {_murmur2(b"0") % 4} and partitions[b"1"] == {_murmur2(b"1") % 4}
    assert len(told) == len(messages) == len(Until.acked)


_told: list[list[int]] = []


def note(error: Any, message: Any) -> None:
    _told[-1].append(message.offset())


def _murmur2(data: bytes) -> int:
    """Of up to three bytes, as Kafka's clients compute it."""
    assert len(data) < 4
    h = 0x9747B28C ^ len(data)
    for position in reversed(range(len(data))):
        h ^= data[position] << 8 * position
    h = h * 0x5BD1E995 & 0xFFFFFFFF
    h ^= h >> 13
    h = h * 0x5BD1E995 & 0xFFFFFFFF
    return (h ^ h >> 15) & 0x7FFFFFFF
