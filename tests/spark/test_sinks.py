"""Sinks in worker processes: what a topology on Spark writes to Kafka and to files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stormspark import TopologyBuilder
from stormspark.connectors import FileBolt, FileSpout, KafkaBolt
from stormspark.spark import SparkTopology
from tests.kafka_broker import KafkaBroker
from tests.waiting import wait_for_acks, wait_until_idle

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_lines_go_to_kafka_and_to_files(
    start: Callable[..., SparkTopology], kafka: KafkaBroker, tmp_path: Path
) -> None:
    """K8, K10: each line once in both, acked when it is in both."""
    folder = tmp_path / "in"
    folder.mkdir()
    lines = [str(n) for n in range(3000)]
    (folder / "a.txt").write_text("\n".join(lines))
    kafka.create_topic("lines", partitions=2)
    to_kafka = (
        KafkaBolt()
        .with_producer_properties({"bootstrap.servers": kafka.bootstrap})
        .with_topic_selector("lines")
        .with_tuple_to_kafka_mapper(lambda tup: (None, tup["line"]))
    )
    builder = TopologyBuilder()
    builder.set_spout("lines", FileSpout(folder))
    builder.set_bolt("kafka", to_kafka, 2).shuffle_grouping("lines")
    to_files = FileBolt(tmp_path / "out").with_tick_tuple_interval_seconds(1)
    builder.set_bolt("files", to_files, 2).shuffle_grouping("lines")
    running = start(builder.create_topology("sinks"), conf={"topology.workers": 2})
    wait_for_acks(running, "lines", 3000)
    wait_until_idle(running)
    running.stop()
    assert sorted(m.value() or b"" for m in kafka.messages("lines")) == sorted(map(str.encode, lines))
    files = list((tmp_path / "out").iterdir())
    assert all(file.name.startswith("files-") for file in files), "a graceful end leaves nothing unfinished"
    written = [line for file in files for line in file.read_text().splitlines()]
    assert sorted(written) == sorted(lines)
