"""Exactly once where work is uneven: one worker has hundreds of rounds of what another one has done in the first."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pytest

from tests.faults.test_kafka_bolt_exactly_once import committed_messages
from tests.kafka_broker import KafkaBroker
from tests.spark.uneven_components import build, placed
from tests.waiting import wait_for, worker_processes

pytestmark = [pytest.mark.spark, pytest.mark.slow]

#: Messages of the two partitions; the long form has the numbers of the issue that this test is of.
FEW = 20
MANY = int(os.environ.get("UNEVEN_MESSAGES", "2500" if "LONG_TESTS" in os.environ else "1500"))


def numbers_in(folder: Path) -> list[int]:
    table = folder / "table"
    if not (table / "_delta_log").exists():
        return []
    return sorted(deltalake.DeltaTable(table).to_pyarrow_table().column("n").to_pylist())


@pytest.mark.parametrize(
    "killed", [pytest.param(False, marks=pytest.mark.long), pytest.param(True, marks=pytest.mark.faults)]
)
def test_every_sink_has_every_message_once(
    killed: bool, kafka: KafkaBroker, start: Callable[..., Any], tmp_path: Path
) -> None:
    """C42, C44, K8: two partitions of 20 and 1500 messages or more, a bolt of 1 ms, rounds that deadlines cut, three sinks.

    Once without anything that dies, and once with a worker that is killed in the middle of a batch.
    """
    name = f"uneven-{'killed' if killed else 'whole'}"
    kafka.create_topic(name, partitions=2)
    kafka.create_topic(f"{name}-out", partitions=2)
    kafka.produce(name, [b"%d" % n for n in range(FEW)], partition=0)
    kafka.produce(name, [b"%d" % n for n in range(FEW, FEW + MANY)], partition=1)
    running = start(
        build(name, kafka.bootstrap, name, f"{name}-out", tmp_path),
        # A superstep is cut after five targets.
        conf={"topology.workers": 2, "stormspark.exactly.once": True, "stormspark.batch.target.ms": 100},
        checkpoint=tmp_path / "checkpoint",
        trigger="available-now",
    )
    if killed:
        wait_for(
            lambda: running.statistics().components["slow"].executed > MANY // 4,
            120,
            "a quarter of the messages",
        )
        next(iter(worker_processes(name).values())).kill()
    assert running.wait(240)
    assert running.error is None, running.error
    everything = list(range(FEW + MANY))
    assert numbers_in(tmp_path) == everything
    assert sorted(int(value) for _, value in committed_messages(kafka, f"{name}-out") if value) == everything
    assert sorted(placed(tmp_path / "files")) == everything
