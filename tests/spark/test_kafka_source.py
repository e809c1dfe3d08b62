"""Spark's own Kafka source as a spout, over a real broker that is killed and comes back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.conformance.components import read_effects, recorded
from tests.kafka_broker import KafkaBroker

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROOT = Path(__file__).parents[2]


def run_topology(broker: KafkaBroker, rows: int, folder: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [
        sys.executable,
        "-m",
        "tests.spark.kafka_topology",
        broker.bootstrap,
        "numbers",
        str(rows),
        str(folder),
    ]
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]


def test_messages_of_a_topic_arrive_once_in_order_and_a_restart_goes_on(
    kafka: KafkaBroker, tmp_path: Path
) -> None:
    """K3, K5: each partition's messages in the order of their offsets; what was read is not read again."""
    kafka.create_topic("numbers", partitions=4)
    kafka.produce("numbers", [str(n).encode() for n in range(1000)])
    run_topology(kafka, 1000, tmp_path)
    kafka.kill()
    kafka.start()
    kafka.produce("numbers", [str(n).encode() for n in range(1000, 1500)])
    run_topology(kafka, 500, tmp_path)
    seen = recorded(read_effects(tmp_path, "record"))
    assert Counter(one.values[0] for one in seen) == Counter(range(1500))
    offsets: dict[tuple[int, int], list[int]] = {}
    for one in seen:
        _, partition, offset = one.values
        offsets.setdefault((one.task, partition), []).append(offset)
    assert all(of == sorted(of) for of in offsets.values())
