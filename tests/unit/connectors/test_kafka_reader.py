"""Reading ranges of offsets from a real broker: holes, ends, what is gone, a broker that goes away."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterator
from typing import Any

import confluent_kafka.admin
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from stormspark.connectors import KafkaSpoutConfig
from stormspark.connectors.kafka.brokers import Brokers
from stormspark.connectors.kafka.offsets import Partition
from stormspark.connectors.kafka.reader import Message, RangeReader
from stormspark.errors import InvalidTopologyError
from tests.kafka_broker import KafkaBroker

pytestmark = pytest.mark.slow


def conf(broker: KafkaBroker, **props: Any) -> dict[str, Any]:
    named = {name.replace("_", "."): value for name, value in props.items()}
    return KafkaSpoutConfig(broker.bootstrap, "any", props=named).client_conf


@pytest.fixture
def reader(kafka: KafkaBroker) -> Iterator[RangeReader]:
    made = RangeReader(conf(kafka))
    yield made
    made.close()


def read(reader: RangeReader, *ranges: tuple[str, int, int, int], limit: int = 512) -> list[Message]:
    """All of some ranges, one piece of each in turn, as a task does."""
    left, found, until = list(ranges), [], time.monotonic() + 120
    while left:
        topic, partition, start, end = left.pop(0)
        chunk = reader.read(topic, partition, start, end, limit)
        assert len(chunk.messages) <= limit and start <= chunk.next <= end
        found += chunk.messages
        if chunk.next < end:
            left.append((topic, partition, chunk.next, end))
        assert time.monotonic() < until, f"still to be read: {left}"
    return found


def offsets(messages: list[Message]) -> list[tuple[int, int]]:
    return [message[1:3] for message in messages]


def test_a_message_comes_with_all_that_it_has(kafka: KafkaBroker, reader: RangeReader) -> None:
    """K7: key, value, timestamp and headers."""
    kafka.create_topic("reader-all")
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    producer.produce("reader-all", b"v", b"k", timestamp=1234, headers=[("a", b"1"), ("a", None)])
    producer.produce("reader-all", None, None, timestamp=5678)
    producer.flush(30)
    assert read(reader, ("reader-all", 0, 0, 2)) == [
        ("reader-all", 0, 0, b"k", b"v", 1234, (("a", b"1"), ("a", None))),
        ("reader-all", 0, 1, None, None, 5678, ()),
    ]


def test_ranges_are_read_whole_and_in_order_wherever_they_begin(
    kafka: KafkaBroker, reader: RangeReader
) -> None:
    """K5: also where reading begins anew again and again, before and behind where it was."""
    kafka.create_topic("reader-ranges", partitions=3)
    for partition in range(3):
        kafka.produce("reader-ranges", [b"%d" % n for n in range(5000)], partition=partition)
    everything = read(reader, *(("reader-ranges", p, 0, 5000) for p in range(3)))
    assert sorted(offsets(everything)) == [(p, n) for p in range(3) for n in range(5000)]
    assert all(message[4] == b"%d" % message[2] for message in everything)
    dice = random.Random(7)
    for _ in range(40):
        wanted = []
        for partition in dice.sample(range(3), dice.randrange(1, 4)):
            start = dice.randrange(4900)
            wanted.append(("reader-ranges", partition, start, min(5000, start + dice.choice([1, 5, 600]))))
        found = read(reader, *wanted, limit=dice.choice([1, 7, 512]) if len(wanted) == 1 else 512)
        for _, partition, start, end in wanted:
            assert [n for p, n in offsets(found) if p == partition] == list(range(start, end))


def test_what_comes_while_others_are_asked_for_is_kept_up_to_a_bound(
    kafka: KafkaBroker, reader: RangeReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K5: one busy partition fills no memory, and loses nothing by being stopped and going on."""
    monkeypatch.setattr("stormspark.connectors.kafka.reader._KEEP_MESSAGES", 700)
    kafka.create_topic("reader-bound", partitions=2)
    kafka.produce("reader-bound", [b"x"] * 20_000, partition=0)
    read(reader, ("reader-bound", 0, 0, 1))
    for n in range(30):
        kafka.produce("reader-bound", [b"y"], partition=1)
        assert offsets(read(reader, ("reader-bound", 1, n, n + 1))) == [(1, n)]
        assert len(reader._feeds["reader-bound", 0].messages) <= 700 + 500
    assert offsets(read(reader, ("reader-bound", 0, 1, 20_000))) == [(0, n) for n in range(1, 20_000)]


def test_transactions_leave_holes(kafka: KafkaBroker, reader: RangeReader) -> None:
    """K5: marks and aborted messages have offsets; open transactions are not read, unless isolation.level says so."""
    kafka.create_topic("reader-tx")
    brokers, partition = Brokers(conf(kafka)), Partition("reader-tx", 0)
    dirty = Brokers(conf(kafka, isolation_level="read_uncommitted"))
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "reader-tx"})
    producer.init_transactions(30)

    def end_is(wanted: int) -> None:
        until = time.monotonic() + 120
        while brokers.ends([partition])[partition] != wanted:
            assert time.monotonic() < until
            time.sleep(0.05)

    def begin(value: bytes) -> None:
        producer.begin_transaction()
        for _ in range(3):
            producer.produce("reader-tx", value)
        producer.flush(30)

    begin(b"kept")
    producer.commit_transaction(30)
    end_is(4)
    assert offsets(read(reader, ("reader-tx", 0, 0, 4))) == [(0, 0), (0, 1), (0, 2)]
    begin(b"aborted")
    producer.abort_transaction(30)
    end_is(8)
    assert read(reader, ("reader-tx", 0, 4, 8)) == []
    begin(b"open")
    assert brokers.ends([partition]) == {partition: 8}
    assert dirty.ends([partition]) == {partition: 11}
    uncommitted = RangeReader(conf(kafka, isolation_level="read_uncommitted"))
    assert [message[4] for message in read(uncommitted, ("reader-tx", 0, 2, 11))] == [b"kept"] + [
        b"aborted"
    ] * 3 + [b"open"] * 3
    producer.commit_transaction(30)
    end_is(12)
    assert offsets(read(reader, ("reader-tx", 0, 8, 12))) == [(0, 8), (0, 9), (0, 10)]
    fresh = RangeReader(conf(kafka))
    assert read(fresh, ("reader-tx", 0, 5, 6)) == []  # ends inside a hole, begins in one
    assert offsets(read(fresh, ("reader-tx", 0, 6, 9))) == [(0, 8)]
    assert offsets(read(fresh, ("reader-tx", 0, 9, 12))) == [(0, 9), (0, 10)]
    for client in (fresh, uncommitted, brokers, dirty):
        client.close()


def test_compaction_leaves_holes(kafka: KafkaBroker) -> None:
    """K5: offsets that are compacted away count as acked."""
    kinds: Any = confluent_kafka.admin
    topic, admin = "reader-compacted", AdminClient({"bootstrap.servers": kafka.bootstrap})
    often = kinds.ConfigEntry(
        "log.cleaner.backoff.ms", "100", incremental_operation=kinds.AlterConfigOpType.SET
    )
    broker = kinds.ConfigResource(kinds.ConfigResource.Type.BROKER, "1", incremental_configs=[often])
    admin.incremental_alter_configs([broker])[broker].result(30)
    settings = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "100"}
    admin.create_topics([NewTopic(topic, 1, 1, config=settings)])[topic].result(30)
    until, written = time.monotonic() + 60, 0
    while True:  # compaction comes when it comes, and leaves the newest segment alone
        kafka.produce(topic, [b"x" * 100] * 200, keys=[b"%d" % (n % 3) for n in range(200)], partition=0)
        written += 200
        reader = RangeReader(conf(kafka))
        found = read(reader, (topic, 0, 0, written))
        reader.close()
        if len(found) < written - 300:
            break
        assert time.monotonic() < until, f"{len(found)} of {written} messages are left: nothing is compacted"
        time.sleep(0.5)
    assert offsets(found) == sorted(set(offsets(found)))
    assert {message[3] for message in found} == {b"0", b"1", b"2"} and found[-1][2] == written - 1


def test_what_retention_has_removed_is_skipped_and_reported(
    kafka: KafkaBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """K5: with counts; it counts as acked."""
    kafka.create_topic("reader-gone")
    kafka.produce("reader-gone", [b"x"] * 100)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    gone = admin.delete_records([TopicPartition("reader-gone", 0, 40)])
    for answer in gone.values():
        answer.result(30)
    with caplog.at_level(logging.WARNING):
        reader = RangeReader(conf(kafka))
        assert read(reader, ("reader-gone", 0, 10, 30)) == []
        assert offsets(read(reader, ("reader-gone", 0, 30, 100))) == [(0, n) for n in range(40, 100)]
        assert read(reader, ("reader-gone", 0, 500, 510)) == []
        reader.close()
    assert [message.split(":")[0] for message in caplog.messages] == [
        "20 messages of reader-gone-0, offsets 10 to 29, are gone and count as acked",
        "10 messages of reader-gone-0, offsets 30 to 39, are gone and count as acked",
        "10 messages of reader-gone-0, offsets 500 to 509, are gone and count as acked",
    ]
    assert "the first offset that is left is 40" in caplog.messages[0]
    assert "the partition ends at 100" in caplog.messages[2]


@pytest.mark.faults
def test_a_broker_that_is_away_brings_nothing_and_holds_nobody_up(
    kafka: KafkaBroker, reader: RangeReader, caplog: pytest.LogCaptureFixture
) -> None:
    """K5: what was fetched ahead comes, the rest when it is back; the log says it once."""
    kafka.create_topic("reader-away")
    kafka.produce("reader-away", [b"%d" % n for n in range(2000)])
    assert len(read(reader, ("reader-away", 0, 0, 100))) == 100
    kafka.produce("reader-away", [b"%d" % n for n in range(2000, 3000)])
    try:
        kafka.kill()
        found, position, began = 100, 100, time.monotonic()
        with caplog.at_level(logging.WARNING):
            while time.monotonic() < began + 3:
                asked = time.monotonic()
                chunk = reader.read("reader-away", 0, position, 3000, 512)
                assert time.monotonic() - asked < 10, "it waits for nobody"
                found, position = found + len(chunk.messages), chunk.next
                assert chunk.messages or chunk.next == position
                reader.listen()
        assert [message.split(";")[0] for message in caplog.messages] == ["no broker of Kafka can be reached"]
    finally:
        kafka.start()
    rest = read(reader, ("reader-away", 0, position, 3000)) if position < 3000 else []
    assert offsets(rest) == [(0, n) for n in range(position, 3000)] and found + len(rest) == 3000


def test_a_new_reader_of_a_broker_that_is_away_waits(kafka: KafkaBroker) -> None:
    """K5: nothing comes, nothing is raised, and who waits long is told of."""
    now = 0.0
    told: list[logging.LogRecord] = []
    logger = logging.Logger("test")
    logger.addHandler(type("Keep", (logging.Handler,), {"emit": lambda self, record: told.append(record)})())
    away = RangeReader(
        conf(kafka) | {"bootstrap.servers": "127.0.0.1:1"}, wait_secs=0.0, logger=logger, clock=lambda: now
    )
    for _ in range(20):
        assert away.read("t", 0, 5, 9, 10) == ([], 5)
        now += 10
    away.close()
    assert any("t-0: waiting for offsets" in record.getMessage() for record in told)


# -- what the driver's side asks -----------------------------------------------------------------------------------


def test_offsets_of_partitions_and_what_a_group_has_committed(kafka: KafkaBroker) -> None:
    """K3, K5: ends, beginnings, times; a commit says which deployment made it."""
    kafka.create_topic("ask", partitions=2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for n in range(5):
        producer.produce("ask", b"x", partition=0, timestamp=1000 + n)
    producer.flush(30)
    brokers = Brokers(conf(kafka, group_id="ask-group"))
    zero, one = Partition("ask", 0), Partition("ask", 1)
    assert brokers.partitions(["ask", "no-such-topic"], None) == [zero, one]
    assert brokers.ends([zero, one]) == {zero: 5, one: 0}
    assert brokers.earliest([zero]) == {zero: 0}
    assert brokers.at_timestamp([zero, one], 1003) == {zero: 3, one: -1}
    assert brokers.committed([zero, one]) == {}
    brokers.commit({zero: 3}, "mine", wait_secs=5)
    assert brokers.committed([zero, one]) == {zero: (3, "mine")}
    assert brokers.ends([]) == {}
    brokers.close()


def test_a_broker_that_is_away_does_not_hold_up_the_end(
    kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K5: with a commit that nobody answers."""
    brokers = Brokers(conf(kafka, group_id="away") | {"bootstrap.servers": "127.0.0.1:1"})
    with pytest.raises(KafkaException, match="Timed out"):
        brokers.commit({Partition("t", 0): 3}, "mine", wait_secs=0.5)
    brokers.commit({Partition("t", 0): 4}, "mine")
    began = time.monotonic()
    brokers.close()
    assert time.monotonic() - began < 30


class Coordinator:
    """Stands for a consumer whose commits get the given answers, one after the other: the code of an error, or 0."""

    def __init__(self, brokers: Brokers, *answers: int) -> None:
        self.brokers, self.answers = brokers, list(answers)
        self.sent: list[int] = []

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> None:
        assert asynchronous
        self.sent += [one.offset for one in offsets]

    def poll(self, timeout: float) -> None:
        if self.brokers._committing and self.answers:
            code = self.answers.pop(0)
            self.brokers._on_commit(KafkaError(code) if code else None, [])

    def close(self) -> None:
        pass


def test_a_commit_that_is_waited_for_outlasts_a_coordinator_that_loads_or_moves(kafka: KafkaBroker) -> None:
    """K5: a broker that has just started refuses commits for some seconds. What will not pass is raised at once."""
    brokers = Brokers(conf(kafka, group_id="loads"))
    loads, moved = KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR
    brokers._consumer = consumer = Coordinator(brokers, loads, moved, KafkaError._TRANSPORT, 0)  # type: ignore[assignment]
    brokers.commit({Partition("t", 0): 3}, "mine", wait_secs=60)
    assert consumer.sent == [3, 3, 3, 3]
    consumer.answers = [KafkaError.GROUP_AUTHORIZATION_FAILED, 0]
    with pytest.raises(KafkaException, match="GROUP_AUTHORIZATION_FAILED"):
        brokers.commit({Partition("t", 0): 4}, "mine", wait_secs=60)
    assert consumer.sent[4:] == [4]


def test_settings_that_librdkafka_refuses_are_reported_in_its_words(kafka: KafkaBroker) -> None:
    """K6: SASL and TLS options reach it."""
    cases: list[tuple[dict[str, Any], str]] = [
        (
            {"security_protocol": "nonsense"},
            'Invalid value "nonsense" for configuration property "security.protocol"',
        ),
        ({"foo_bar": 1}, 'No such configuration property: "foo.bar"'),
        ({"security_protocol": "ssl", "ssl_ca_location": "/nowhere.pem"}, "ssl.ca.location failed"),
        ({"security_protocol": "sasl_plaintext", "sasl_mechanism": "NONSENSE"}, "NONSENSE"),
    ]
    for props, error in cases:
        with pytest.raises(InvalidTopologyError) as raised:
            Brokers(conf(kafka, **props))
        assert error in str(raised.value) and kafka.bootstrap in str(raised.value)
