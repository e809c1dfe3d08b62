"""A bolt that is slow over Kafka, with our source and with Spark's: what is read follows what it can take."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormspark.api import PerTrigger
from stormspark.connectors import (
    DataFrameSpout,
    FirstPollOffsetStrategy,
    KafkaSpout,
    KafkaSpoutConfig,
    SimpleRecordTranslator,
)
from stormspark.spark import SparkTopology, trigger_limits
from tests.kafka_broker import KafkaBroker
from tests.spark.test_native_sources import set_pace, worked, working
from tests.spark.test_sources import settings
from tests.waiting import wait_for, wait_for_acks, wait_until_idle

pytestmark = [pytest.mark.spark, pytest.mark.slow]
Start = Callable[..., SparkTopology]
ROWS = 5000


def offsets(document: str | None) -> int:
    """All offsets of a document of positions, added up; the topic's id stands beside them.

    Spark 4.0 writes the offsets of a Python source as Python does.

    >>> offsets('{"topic": {"0": 3, "1": 4, "id": "x"}}'), offsets("{'topic': {'0': 3}}")
    (7, 3)
    """
    positions = {} if document in (None, "null", "None") else ast.literal_eval(document)
    return sum(
        offset
        for partitions in positions.values()
        for partition, offset in partitions.items()
        if partition.isdigit()
    )


def handed_out(running: SparkTopology, source: int) -> list[int]:
    """Messages of each of the last batches that had any."""
    assert running.query is not None
    batches = [progress["sources"][source] for progress in running.query.recentProgress]
    counts = [offsets(one["endOffset"]) - offsets(one["startOffset"]) for one in batches]
    return [count for count in counts if count]


def test_what_a_kafka_spout_is_given_follows_its_limit_batch_by_batch(
    kafka: KafkaBroker, start: Start, tmp_path: Path
) -> None:
    """F10, F8, K5: from the first batch on; no restart, no long batch, and little waits in the workers."""
    kafka.create_topic("held", partitions=2)
    for partition in range(2):
        kafka.produce("held", [b"%d" % n for n in range(partition, ROWS, 2)], partition=partition)
    out = tmp_path / "out"
    set_pace(out, 5)
    config = KafkaSpoutConfig(
        kafka.bootstrap,
        ["held"],
        group_id="held",
        first_poll_offset_strategy=FirstPollOffsetStrategy.EARLIEST,
        record_translator=SimpleRecordTranslator(lambda record: (int(record.value),), ["n"]),
    )
    running = start(working("held", KafkaSpout(config)), conf=settings(out))
    most = 0

    def enough() -> bool:
        nonlocal most
        assert running.error is None, running.error
        most = max(most, running.statistics().components["numbers"].queued)
        return worked(out).total() >= 1000

    wait_for(enough, message="1000 rows")
    given = handed_out(running, 1)
    pressure = running.statistics().pressure
    assert pressure is not None
    limits = [change.limit for change in pressure.history if change.limit is not None]
    assert max(given) <= 2 * max(limits), (given, limits)
    assert most <= 2 * max(limits)
    set_pace(out, 0)
    wait_for_acks(running, "numbers", ROWS)
    running.stop()
    assert running.error is None
    assert worked(out) == Counter(range(ROWS))
    assert running.statistics().components["numbers"].failed == 0
    assert running.planned_restarts == 0


@pytest.mark.long
def test_spark_s_kafka_source_has_its_limit_changed(
    kafka: KafkaBroker, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F10, K3: smaller while a bolt is slow, larger when it is fast; every message once, in the checkpoint's order."""
    monkeypatch.setattr(trigger_limits, "TOO_MANY_ROUNDS", 5)
    monkeypatch.setattr(trigger_limits, "_ROUNDS", 1)
    monkeypatch.setattr(trigger_limits, "_PATIENCE", {-1: 5, 1: 4})
    kafka.create_topic("natively-held", partitions=2)
    kafka.produce("natively-held", [b"%d" % n for n in range(ROWS)])
    out = tmp_path / "out"
    set_pace(out, 8)

    options = {
        "kafka.bootstrap.servers": kafka.bootstrap,
        "subscribe": "natively-held",
        "startingOffsets": "earliest",
    }

    def read(spark: Any, limit: int) -> Any:
        rows = spark.readStream.format("kafka").options(**options, maxOffsetsPerTrigger=limit).load()
        return rows.selectExpr("CAST(CAST(value AS STRING) AS LONG) AS n")

    spout = DataFrameSpout(read, ["n"], per_trigger=PerTrigger("maxOffsetsPerTrigger", 2000))
    conf = settings(out, stormspark_batch_target_ms=300)
    running = start(working("natively-held", spout), conf=conf)
    wait_for(lambda: running.planned_restarts, message="a smaller limit")
    assert running.source_limits["numbers"] <= 500
    set_pace(out, 0)
    wait_for_acks(running, "numbers", ROWS)
    wait_until_idle(running)
    running.stop()
    assert running.error is None
    assert worked(out) == Counter(range(ROWS))
    assert running.statistics().components["numbers"].failed == 0
