"""KafkaSpout on Spark, over a real broker: ranges from the driver, messages in the workers, Spark's checkpoint."""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from stormspark import Fields, Topology, TopologyBuilder
from stormspark.connectors import KafkaSpout, KafkaSpoutConfig, SimpleRecordTranslator
from stormspark.driver.source_lag import PartitionLag
from stormspark.errors import InvalidTopologyError
from stormspark.spark import SparkTopology
from tests.conformance.components import EFFECTS, Record, read_effects, recorded
from tests.kafka_broker import KafkaBroker
from tests.waiting import (
    PATIENCE_SECS,
    wait_for,
    wait_for_acks,
    wait_for_batches,
    wait_until_idle,
    worker_processes,
)

pytestmark = [pytest.mark.spark, pytest.mark.slow]
Start = Callable[..., SparkTopology]


def topology(name: str, broker: KafkaBroker, topics: Any, **options: Any) -> Topology:
    """Numbers with their partition and offset, recorded by two tasks."""
    defaults: dict[str, Any] = {
        "group_id": name,
        "offset_commit_period_ms": 0,
        "partition_refresh_period_ms": 200,
        "record_translator": SimpleRecordTranslator(
            lambda record: (int(record.value), record.topic, record.partition, record.offset),
            ["n", "topic", "partition", "offset"],
        ),
    }
    builder = TopologyBuilder()
    config = KafkaSpoutConfig(broker.bootstrap, topics, **(defaults | options))
    builder.set_spout("kafka", KafkaSpout(config), parallelism=2)
    builder.set_bolt("record", Record(), 2).fields_grouping("kafka", Fields("n"))
    return builder.create_topology(name)


def settings(folder: Path, **more: Any) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    return {"topology.workers": 2, EFFECTS: str(folder), **{k.replace("_", "."): v for k, v in more.items()}}


def values_of(folder: Path) -> list[tuple[Any, ...]]:
    """[n, topic, partition, offset] of all effects."""
    return [one.values for one in recorded(read_effects(folder, "record"))]


def numbers(folder: Path) -> Counter[int]:
    return Counter(number for number, *_ in values_of(folder))


def spout_of(running: SparkTopology) -> Any:
    return running.statistics().components["kafka"]


def is_committed(broker: KafkaBroker, group: str, topic: str, offsets: list[int]) -> bool:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    found = consumer.committed([TopicPartition(topic, n) for n in range(len(offsets))], timeout=30)
    consumer.close()
    return [one.offset for one in found] == offsets


def test_topics_are_read_in_order_and_a_restart_goes_on(
    kafka: KafkaBroker, start: Start, tmp_path: Path
) -> None:
    """K3, K5, K6: each message once, each partition in order; the checkpoint is the truth, the group is told."""
    expected: Counter[int] = Counter()
    for topic, partitions in (("spark-a", 3), ("spark-b", 1)):
        kafka.create_topic(topic, partitions=partitions)
    conf = settings(tmp_path / "out")
    for run in range(2):
        for topic, partition in (("spark-a", 0), ("spark-a", 1), ("spark-a", 2), ("spark-b", 0)):
            some = range(run * 200, run * 200 + 200)
            kafka.produce(topic, [b"%d" % n for n in some], partition=partition)
            expected.update(some)
        running = start(
            topology("spark-go-on", kafka, ["spark-a", "spark-b"], first_poll_offset_strategy="EARLIEST"),
            conf=conf,
            checkpoint=tmp_path / "checkpoint",
        )
        wait_for_acks(running, "kafka", 800)
        wait_until_idle(running)
        for topic, partitions in (("spark-a", 3), ("spark-b", 1)):
            wanted = [(run + 1) * 200] * partitions
            wait_for(partial(is_committed, kafka, "spark-go-on", topic, wanted))
        # K9: nothing waits any more.
        upto = (run + 1) * 200
        none_waits = {
            "spark-a": {str(number): PartitionLag(upto, upto) for number in range(3)},
            "spark-b": {"0": PartitionLag(upto, upto)},
        }
        wait_for(lambda: running.lags() == {"kafka": none_waits}, 60, lambda: repr(running.lags()))  # noqa: B023
        running.stop()
        assert running.error is None
        assert numbers(tmp_path / "out") == expected
    order: defaultdict[tuple[int, str, int], list[int]] = defaultdict(list)
    for effect in read_effects(tmp_path / "out", "record"):
        if effect != ["cleanup"]:
            task, _, _, _, topic, partition, offset = effect
            order[task, topic, partition].append(offset)
    assert all(offsets == sorted(offsets) for offsets in order.values())

    # A new checkpoint in the same place is the same deployment: EARLIEST was for its first start.
    shutil.rmtree(tmp_path / "checkpoint")
    kafka.produce("spark-b", [b"5000"])
    running = start(
        topology("spark-go-on", kafka, ["spark-a", "spark-b"], first_poll_offset_strategy="EARLIEST"),
        conf=conf,
        checkpoint=tmp_path / "checkpoint",
    )
    wait_for_acks(running, "kafka", 1)
    wait_until_idle(running)
    running.stop()
    assert numbers(tmp_path / "out") == expected + Counter([5000])


@pytest.mark.faults
@pytest.mark.long  # the local engine has the short form (tests/unit/connectors/test_kafka_spout.py)
def test_an_outage_ends_no_query_and_new_partitions_are_found(
    kafka: KafkaBroker, start: Start, tmp_path: Path
) -> None:
    """K1, K5, W2: the broker is killed while messages wait, and comes back; the same query goes on."""
    kafka.create_topic("outage", partitions=2)
    kafka.produce("outage", [b"%d" % n for n in range(6000)])
    running = start(topology("spark-outage", kafka, "outage"), conf=settings(tmp_path / "out"))
    wait_for(lambda: len(values_of(tmp_path / "out")) > 1000, message="the first messages")
    assert running.query is not None
    first = running.query.runId
    try:
        kafka.kill()
        wait_for_batches(running, 5)
    finally:
        kafka.start()
    kafka.produce("outage", [b"%d" % n for n in range(6000, 7000)])
    wait_for_acks(running, "kafka", 7000)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_partitions([NewPartitions("outage", 4)])["outage"].result(30)
    wait_for(lambda: produced(kafka, "outage", 7000, partition=3))
    wait_for_acks(running, "kafka", 7001)
    wait_until_idle(running)
    assert running.query.runId == first
    running.stop()
    assert running.error is None and numbers(tmp_path / "out") == Counter(range(7001))
    assert spout_of(running).failed == 0


def produced(kafka: KafkaBroker, topic: str, n: int, partition: int) -> bool:
    """Whether the broker knows the partition by now."""
    try:
        kafka.produce(topic, [b"%d" % n], partition=partition)
    except Exception:
        return False
    return True


@pytest.mark.faults
@pytest.mark.long  # `tests/faults/nothing_lost` kills workers too
@pytest.mark.parametrize("guarantee", ["AT_LEAST_ONCE", "AT_MOST_ONCE"])
def test_a_killed_worker(kafka: KafkaBroker, start: Start, tmp_path: Path, guarantee: Any) -> None:
    """K2: no message is lost, or none comes twice; the other worker's ranges are read on."""
    topic = f"spark-{guarantee}"
    kafka.create_topic(topic, partitions=3)
    kafka.produce(topic, [b"%d" % n for n in range(3000)])
    running = start(
        topology(topic, kafka, topic, processing_guarantee=guarantee, max_offsets_per_trigger=300),
        conf=settings(tmp_path / "out"),
        checkpoint=tmp_path / "checkpoint",
    )
    for victim in (0, 1):
        seen = len(values_of(tmp_path / "out"))
        wait_for(lambda seen=seen: len(values_of(tmp_path / "out")) > seen + 400)  # type: ignore[misc]
        os.kill(worker_processes(topic)[victim].pid, signal.SIGKILL)
    wait_for_batches(running, 2)  # at most once: what is in the batch that it was killed in may not come
    kafka.produce(topic, [b"%d" % n for n in range(3000, 3500)])
    wait_for(lambda: set(range(3000, 3500)) <= numbers(tmp_path / "out").keys())
    wait_until_idle(running)
    running.stop()
    assert running.error is None
    counts = numbers(tmp_path / "out")
    if guarantee == "AT_LEAST_ONCE":
        assert counts.keys() == set(range(3500))
    else:
        assert max(counts.values()) == 1 and len(counts) > 1500


@pytest.mark.long  # `test_uneven_batches.py` works a topic off, `test_available_now.py` goes on behind it
def test_what_there_is_now_is_worked_off_and_no_more(
    kafka: KafkaBroker, start: Start, tmp_path: Path
) -> None:
    """K1: in pieces of max_offsets_per_trigger; a later run goes on behind it."""
    kafka.create_topic("spark-now", partitions=2)
    for run in range(2):
        kafka.produce("spark-now", [b"%d" % n for n in range(run * 300, run * 300 + 300)])
        running = start(
            topology("spark-now", kafka, "spark-now", max_offsets_per_trigger=100),
            conf=settings(tmp_path / "out"),
            checkpoint=tmp_path / "checkpoint",
            trigger="available-now",
        )
        assert running.wait(PATIENCE_SECS)
        assert running.error is None
        assert numbers(tmp_path / "out") == Counter(range(run * 300 + 300))
        assert running.statistics().batches >= 3


def test_a_topic_that_is_not_there_stops_the_topology_or_is_waited_for(
    kafka: KafkaBroker, start: Start, tmp_path: Path
) -> None:
    """K1: with the topic, the servers, and the user's line."""
    running = start(topology("spark-missing", kafka, "spark-missing"), conf=settings(tmp_path / "out"))
    assert running.wait(PATIENCE_SECS)
    with pytest.raises(
        InvalidTopologyError,
        match=rf"test_kafka_spout\.py:\d+: spout 'kafka': .*{kafka.bootstrap} has no topic",
    ):
        raise running.error or AssertionError
    running = start(
        topology(
            "spark-missing", kafka, "spark-missing", unknown_topic="wait", first_poll_offset_strategy="LATEST"
        ),
        conf=settings(tmp_path / "out"),
    )
    wait_for_batches(running, 2)
    kafka.create_topic("spark-missing")
    kafka.produce("spark-missing", [b"1", b"2"])
    wait_for_acks(running, "kafka", 2)
    running.stop()
    assert running.error is None
