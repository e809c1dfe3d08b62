"""Spark's own Kafka source as a spout, over a real broker that is killed and comes back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormspark import Fields, Topology, TopologyBuilder
from stormspark.api import SourceSpout
from stormspark.spark import SparkTopology
from tests.conformance.components import EFFECTS, Record, read_effects, recorded
from tests.kafka_broker import KafkaBroker
from tests.waiting import wait_for_acks

pytestmark = [pytest.mark.spark, pytest.mark.slow]


class Messages(SourceSpout):
    """Numbers in a topic, read by Spark's own Kafka source."""

    id_columns = ("partition", "offset")
    partition_column = "partition"

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(["n", "partition", "offset"])
        self.options = {
            "kafka.bootstrap.servers": bootstrap,
            "subscribe": topic,
            "startingOffsets": "earliest",
        }

    def stream(self, spark: Any) -> Any:
        rows = spark.readStream.format("kafka").options(**self.options).load()
        return rows.selectExpr("CAST(CAST(value AS STRING) AS LONG) AS n", "partition", "offset")


def topology(broker: KafkaBroker) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("messages", Messages(broker.bootstrap, "numbers"), parallelism=2)
    builder.set_bolt("record", Record(), 2).fields_grouping("messages", Fields("n"))
    return builder.create_topology("kafka")


def test_messages_of_a_topic_arrive_once_in_order_and_a_restart_goes_on(
    kafka: KafkaBroker, start: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    """K3, K5: each partition's messages in the order of their offsets; what was read is not read again."""

    def run(rows: int) -> None:
        running = start(
            topology(kafka),
            conf={"topology.workers": 2, EFFECTS: str(tmp_path)},
            checkpoint=tmp_path / "checkpoint",
        )
        wait_for_acks(running, "messages", rows)
        running.stop()
        assert running.error is None

    kafka.create_topic("numbers", partitions=4)
    kafka.produce("numbers", [str(n).encode() for n in range(1000)])
    run(1000)
    kafka.kill()
    kafka.start()
    kafka.produce("numbers", [str(n).encode() for n in range(1000, 1500)])
    run(500)
    seen = recorded(read_effects(tmp_path, "record"))
    assert Counter(one.values[0] for one in seen) == Counter(range(1500))
    offsets: dict[tuple[int, int], list[int]] = {}
    for one in seen:
        _, partition, offset = one.values
        offsets.setdefault((one.task, partition), []).append(offset)
    assert all(of == sorted(of) for of in offsets.values())
