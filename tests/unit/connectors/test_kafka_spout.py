"""KafkaSpout on the local engine, over a real broker."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from stormspark import BasicBolt, Bolt, FailedException, TopologyBuilder
from stormspark.api import ExponentialBackoff
from stormspark.connectors import (
    ByTopicRecordTranslator,
    KafkaSpout,
    KafkaSpoutConfig,
    SimpleRecordTranslator,
)
from stormspark.driver.source_lag import PartitionLag
from stormspark.errors import InvalidTopologyError
from stormspark.local import LocalTopology, submit
from tests.kafka_broker import KafkaBroker
from tests.waiting import wait_for, wait_for_acks

pytestmark = pytest.mark.slow


class See(BasicBolt):
    """Keeps (task of the spout, stream, values) of all tuples; fails values that are in ``bad``, as often as they come."""

    seen: ClassVar[list[tuple[int, str, tuple[Any, ...]]]] = []
    bad: ClassVar[set[Any]] = set()

    def execute(self, tup: Any, collector: Any) -> None:
        See.seen.append((tup.source_task, tup.source_stream, tuple(tup.values)))
        if tup.values[-1] in See.bad:
            raise FailedException("bad")


class Hold(Bolt):
    """Acks all but what is in ``held``, until ``go``."""

    held: ClassVar[set[Any]] = set()
    go = threading.Event()
    seen: ClassVar[list[Any]] = []

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.kept = collector, []
        context.set_timer(0.05, self.look)

    def look(self) -> None:
        if Hold.go.is_set():
            for tup in self.kept:
                self.collector.ack(tup)
            self.kept = []

    def execute(self, tup: Any) -> None:
        Hold.seen.append(tup["value"])
        if tup["value"] in Hold.held and not Hold.go.is_set():
            self.kept.append(tup)
        else:
            self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        pass


Run = Callable[..., LocalTopology]


@pytest.fixture
def run() -> Iterator[Run]:
    """Start a topology of one KafkaSpout and one bolt; what still runs at the end is killed."""
    See.seen, See.bad = [], set()
    Hold.seen, Hold.held = [], set()
    Hold.go.clear()
    started: list[LocalTopology] = []

    def start(config: KafkaSpoutConfig, bolt: Any = None, tasks: int = 2, **conf: Any) -> LocalTopology:
        builder = TopologyBuilder()
        spout = KafkaSpout(config)
        builder.set_spout("kafka", spout, tasks)
        declared = builder.set_bolt("see", bolt or See())
        for stream in spout._streams:
            declared.shuffle_grouping("kafka", stream)
        named = {name.replace("_", "."): value for name, value in conf.items()}
        started.append(
            submit(builder.create_topology(f"kafka-{len(started)}"), conf={"topology.workers": 2} | named)
        )
        return started[-1]

    yield start
    for topology in started:
        if not topology.wait(0):
            topology.kill()
            topology.wait(30)


def values() -> list[Any]:
    return [seen[2][-1] for seen in See.seen]


def spout_of(topology: LocalTopology) -> Any:
    return topology.statistics().components["kafka"]


def config(broker: KafkaBroker, topics: Any, **options: Any) -> KafkaSpoutConfig:
    group = (
        topics
        if isinstance(topics, str)
        else "-".join(topics)
        if isinstance(topics, list)
        else topics.pattern[:4]
    )
    defaults: dict[str, Any] = {"group_id": group, "partition_refresh_period_ms": 100}
    return KafkaSpoutConfig(broker.bootstrap, topics, **(defaults | options))


def committed(broker: KafkaBroker, topic: str, partitions: int, group: str | None = None) -> list[int]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group or topic})
    until = time.monotonic() + 120
    while True:
        try:
            found = consumer.committed([TopicPartition(topic, n) for n in range(partitions)], timeout=30)
            break
        except KafkaException as error:  # a broker that has just begun looks for the coordinator of a group
            if not error.args[0].retriable() or time.monotonic() > until:
                raise
            time.sleep(0.1)
    consumer.close()
    return [one.offset for one in found]


def test_a_stop_commits_what_was_acked_since_tasks_were_asked_last(
    kafka: KafkaBroker, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graceful stop commits what was acked since the tasks were asked last (K5)."""
    monkeypatch.setattr("stormspark.connectors.kafka.spout._LOW_MARKS_EVERY", 10**9)
    kafka.create_topic("last", partitions=2)
    kafka.produce("last", [b"%d" % n for n in range(50)], keys=[b"key"] * 50, partition=1)
    topology = run(config(kafka, ["last"], group_id="last"))
    wait_for_acks(topology, "kafka", 50)
    done = {"kafka": {"last": {"0": PartitionLag(0, 0), "1": PartitionLag(50, 50)}}}
    wait_for(lambda: topology.lags() == done)
    topology.stop()
    assert committed(kafka, "last", 2, "last") == [0, 50]


def test_a_spout_that_is_deactivated_falls_behind(kafka: KafkaBroker, run: Run) -> None:
    """K9: the lag is there without a batch that reads."""
    kafka.create_topic("behind", partitions=1)
    kafka.produce("behind", [b"1", b"2"])
    topology = run(config(kafka, ["behind"], group_id="behind", first_poll_offset_strategy="EARLIEST"))
    wait_for_acks(topology, "kafka", 2)
    topology.deactivate()
    kafka.produce("behind", [b"%d" % n for n in range(30)])
    wait_for(lambda: topology.lags()["kafka"]["behind"]["0"].lag == 30)


def test_topics_are_read_in_order_and_a_restart_goes_on(kafka: KafkaBroker, run: Run) -> None:
    """K1, K3, K5, K6, K7: each partition by one task, sorted partition i by task i mod n; the group keeps the position."""
    kafka.create_topic("local-a", partitions=3)
    kafka.create_topic("local-b", partitions=2)
    for topic, partitions in (("local-a", 3), ("local-b", 2)):
        for partition in range(partitions):
            kafka.produce(topic, [b"%d" % n for n in range(200)], keys=[b"key"] * 200, partition=partition)
    asked = config(kafka, ["local-a", "local-b"], group_id="local")
    topology = run(asked)
    wait_for_acks(topology, "kafka", 1000)
    topology.run_until_idle()
    topology.stop()
    by_partition: defaultdict[tuple[str, int], list[Any]] = defaultdict(list)
    tasks: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    for task, _, (topic, partition, offset, key, value) in See.seen:
        by_partition[topic, partition].append((offset, key, value))
        tasks[topic, partition].add(task)
    assert dict(by_partition) == {
        (topic, n): [(m, "key", str(m)) for m in range(200)]
        for topic, count in (("local-a", 3), ("local-b", 2))
        for n in range(count)
    }
    first, second = sorted(set().union(*tasks.values()))
    assert [tasks[partition] for partition in sorted(tasks)] == [
        {first},
        {second},
        {first},
        {second},
        {first},
    ]
    assert (
        committed(kafka, "local-a", 3, "local") == [200] * 3
        and committed(kafka, "local-b", 2, "local") == [200] * 2
    )

    See.seen = []
    kafka.produce("local-b", [b"new"], partition=1)
    topology = run(asked)
    wait_for_acks(topology, "kafka", 1)
    topology.run_until_idle()
    topology.stop()
    assert [seen[2] for seen in See.seen] == [("local-b", 1, 200, None, "new")]


def test_new_partitions_and_new_topics_of_a_pattern_are_read_from_their_beginning(
    kafka: KafkaBroker, run: Run
) -> None:
    """K1, K3: though what was there before is not."""
    kafka.create_topic("pat-1")
    kafka.create_topic("other-pat-1")
    kafka.produce("pat-1", [b"old"])
    topology = run(config(kafka, re.compile("pat-.*"), first_poll_offset_strategy="LATEST"))
    source_has_begun(topology)
    kafka.produce("pat-1", [b"a"])
    wait_for(lambda: values() == ["a"])
    kafka.create_topic("pat-2")
    kafka.produce("pat-2", [b"b", b"c"])
    kafka.produce("other-pat-1", [b"no"])
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_partitions([NewPartitions("pat-1", 2)])["pat-1"].result(30)
    wait_for(lambda: values() == ["a", "b", "c"])
    produce_soon(kafka, "pat-1", b"d", partition=1)
    wait_for(lambda: sorted(values()) == ["a", "b", "c", "d"])
    topology.stop()


def source_has_begun(topology: LocalTopology) -> None:
    """LATEST is where the partition ended when Kafka was asked first."""
    source: Any = topology._sources._sources[0].source
    wait_for(lambda: source._position != {})


def produce_soon(kafka: KafkaBroker, topic: str, value: bytes, partition: int) -> None:
    """A partition that was just made may not be known yet."""
    for _ in range(50):
        try:
            kafka.produce(topic, [value], partition=partition)
        except Exception:
            time.sleep(0.2)
        else:
            return


@pytest.mark.parametrize(
    ("strategy", "read"),
    [("EARLIEST", "01234"), ("LATEST", ""), ("TIMESTAMP", "34"), ("UNCOMMITTED_EARLIEST", "234"), ("UNCOMMITTED_LATEST", "234")],
)  # fmt: skip
def test_where_it_begins(kafka: KafkaBroker, run: Run, strategy: Any, read: str) -> None:
    """K3: 5 messages, of which another reader has committed 2, and 3 are older than the start timestamp."""
    topic = f"first-{strategy}"
    kafka.create_topic(topic)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for n in range(5):
        producer.produce(topic, b"%d" % n, timestamp=1_000_000 + n)
    producer.flush(30)
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": topic})
    consumer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    consumer.close()
    topology = run(config(kafka, topic, first_poll_offset_strategy=strategy, start_timestamp=1_000_003))
    source_has_begun(topology)
    kafka.produce(topic, [b"new"])
    wait_for(lambda: "new" in values())
    topology.stop()
    assert values() == [*read, "new"]


def test_null_values_skipped_records_and_dead_letters(kafka: KafkaBroker, run: Run, tmp_path: Path) -> None:
    """K4, K7, W13: a tombstone is a value of None; what can't be read, and what fails for good, become dead letters."""
    kafka.create_topic("letters")
    kafka.produce("letters", [b"a", None, b"\xff", b"skip", b"bad", b"z"])

    def translate(record: Any) -> Any:
        return None if record.value == "skip" else (record.offset, record.value)

    See.bad = {"bad"}
    topology = run(
        config(
            kafka,
            "letters",
            record_translator=SimpleRecordTranslator(translate, ["offset", "value"]),
            retry=ExponentialBackoff(max_retries=2),
        ),
        stormspark_dead_letter_dir=str(tmp_path),
    )
    wait_for(lambda: spout_of(topology).dead_letters == 2)
    topology.run_until_idle()
    topology.stop()
    assert Counter(seen[2] for seen in See.seen) == {(0, "a"): 1, (1, None): 1, (4, "bad"): 3, (5, "z"): 1}
    letters = [json.loads(line) for path in tmp_path.iterdir() for line in path.read_text().splitlines()]
    found = {letter["message_id"][2]: (letter["reason"], letter["row"][:3]) for letter in letters}
    assert found[2][0].startswith("translate raised UnicodeDecodeError")
    assert found[4][0].startswith("given up after its last retry: failed by a bolt: see[")
    assert found[4][1] == ["letters", 0, 4]
    assert committed(kafka, "letters", 1) == [6], "a dead letter is done with"


def test_each_topic_has_a_translator_and_a_stream(kafka: KafkaBroker, run: Run) -> None:
    """K7: and a record that is nothing becomes a tuple of None where that is wanted."""
    for topic in ("by-pairs", "by-other"):
        kafka.create_topic(topic)
    translator = ByTopicRecordTranslator(lambda record: None, ["value"])
    translator.for_topic("by-pairs", lambda record: (record.key, record.value), ["key", "value"], "pairs")
    kafka.produce("by-pairs", [b"v"], keys=[b"k"])
    kafka.produce("by-other", [b"v"])
    topology = run(
        config(kafka, ["by-pairs", "by-other"], record_translator=translator, emit_null_tuples=True)
    )
    wait_for(lambda: len(See.seen) == 2)
    topology.stop()
    assert sorted((stream, values) for _, stream, values in See.seen) == [
        ("default", (None,)),
        ("pairs", ("k", "v")),
    ]


def test_a_stuck_message_stops_its_partition_alone_and_visibly(
    kafka: KafkaBroker, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """K5, W13: at max_uncommitted_offsets beyond it; the commit waits before it; all goes on when it is acked."""
    kafka.create_topic("stuck", partitions=2)
    Hold.held = {"0-5"}
    asked = config(kafka, "stuck", max_uncommitted_offsets=50, offset_commit_period_ms=50)
    with caplog.at_level(logging.WARNING):
        topology = run(asked, Hold(), topology_message_timeout_secs=600)
        for n in range(6):
            for partition in range(2):
                some = [b"%d-%d" % (partition, m) for m in range(n * 30, n * 30 + 30)]
                kafka.produce("stuck", some, partition=partition)
            wait_for(lambda n=n: f"1-{n * 30 + 29}" in Hold.seen)  # type: ignore[misc]
        wait_for(lambda: "stuck-0 is blocked by offset 5" in caplog.text, message="the warning")
    assert max(int(value[2:]) for value in Hold.seen if value[0] == "0") < 5 + 50 + 30
    wait_for(lambda: committed(kafka, "stuck", 2) == [5, 180], message="the commit before the stuck message")
    Hold.go.set()
    wait_for(lambda: Counter(Hold.seen) == Counter(f"{p}-{n}" for p in range(2) for n in range(180)))
    wait_for(lambda: committed(kafka, "stuck", 2) == [180, 180])
    topology.stop()
    assert caplog.text.count("is blocked by") == 1


@pytest.mark.parametrize(
    ("guarantee", "enforced"), [("AT_MOST_ONCE", False), ("AT_MOST_ONCE", True), ("NO_GUARANTEE", False)]
)
def test_without_at_least_once_nothing_is_emitted_again(
    kafka: KafkaBroker, run: Run, guarantee: Any, enforced: bool
) -> None:
    """K2: what fails is done with; what was handed out is committed, before that in the case of at most once."""
    topic = f"once-{guarantee}-{enforced}"
    kafka.create_topic(topic)
    kafka.produce(topic, [b"%d" % n for n in range(100)])
    See.bad = {"7", "8"}
    asked = config(
        kafka,
        topic,
        processing_guarantee=guarantee,
        tuple_tracking_enforced=enforced,
        offset_commit_period_ms=0,
    )
    topology = run(asked)
    wait_for(lambda: len(See.seen) >= 100)
    topology.run_until_idle()
    wait_for(lambda: committed(kafka, topic, 1) == [100])
    topology.kill()
    topology.wait(30)
    assert values() == [str(n) for n in range(100)]
    assert spout_of(topology).failed == (2 if enforced else 0)
    topology = run(asked)
    kafka.produce(topic, [b"new"])
    wait_for(lambda: values()[100:] == ["new"])


def test_a_topic_that_is_not_there(kafka: KafkaBroker, run: Run) -> None:
    """K1: an error that names the topic, the servers and the user's line; or it is waited for."""
    with pytest.raises(InvalidTopologyError) as raised:
        run(config(kafka, ["late-topic"]))
    assert re.search(
        rf"test_kafka_spout\.py:\d+: spout 'kafka': Kafka at {kafka.bootstrap} has no topic 'late-topic': create it, or wait",
        str(raised.value),
    )
    topology = run(config(kafka, "late-topic", unknown_topic="wait", first_poll_offset_strategy="LATEST"))
    source_has_begun(topology)
    kafka.create_topic("late-topic")
    kafka.produce("late-topic", [b"a"])
    wait_for(lambda: values() == ["a"])


def test_servers_that_do_not_answer_and_settings_that_do_not_fit(
    kafka: KafkaBroker, run: Run, monkeypatch: Any
) -> None:
    """K6: in librdkafka's words, which say what it tried."""
    monkeypatch.setattr("stormspark.connectors.kafka.planner._CHECK_SECS", 4.0)
    with pytest.raises(InvalidTopologyError, match=r"does not answer: .*refused.*set unknown_topic='wait'"):
        run(KafkaSpoutConfig("127.0.0.1:1", "t"))
    with pytest.raises(
        InvalidTopologyError, match=r"does not answer: .*SSL (handshake failed|connection closed)"
    ):
        run(config(kafka, "t", props={"security.protocol": "SSL"}))
    with pytest.raises(
        InvalidTopologyError, match=r'Invalid value "nonsense" for configuration property "security.protocol"'
    ):
        run(config(kafka, "t", props={"security.protocol": "nonsense"}))


@pytest.mark.faults
def test_a_broker_that_is_killed_and_comes_back(kafka: KafkaBroker, run: Run) -> None:
    """K5: twice, in the middle of it; every message comes, in order, and nothing fails."""
    kafka.create_topic("killed", partitions=2)
    written = 0
    topology = run(config(kafka, "killed", offset_commit_period_ms=50))
    try:
        for _ in range(2):
            for partition in range(2):
                some = [b"%d" % n for n in range(written, written + 3000)]
                kafka.produce("killed", some, partition=partition)
            written += 3000
            wait_for(lambda most=2 * written: len(See.seen) > most - 3000)  # type: ignore[misc]
            kafka.kill()
            time.sleep(1)
            assert topology.error is None
            kafka.start()
    finally:
        kafka.start()
    wait_for(lambda: len(See.seen) >= 2 * written)
    topology.run_until_idle()
    topology.stop()
    for partition in range(2):
        assert [int(s[2][4]) for s in See.seen if s[2][1] == partition] == list(range(written))
    assert spout_of(topology).failed == 0 and committed(kafka, "killed", 2) == [written] * 2
