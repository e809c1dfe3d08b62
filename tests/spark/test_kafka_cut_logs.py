"""KafkaSpout on Spark over logs that are not what they were: cut, and topics that were deleted and made again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormspark.errors import StormsparkError
from stormspark.spark import SparkTopology
from tests.kafka_broker import KafkaBroker
from tests.spark.test_kafka_spout import settings, spout_of, topology, values_of
from tests.waiting import PATIENCE_SECS, wait_for, wait_for_acks, wait_until_idle

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.faults]
Start = Callable[..., SparkTopology]


def numbers(*some: int) -> list[bytes]:
    return [b"%d" % n for n in range(*some)]


def counted(folder: Path) -> Counter[tuple[str, int]]:
    """How often each (topic, number) was recorded."""
    return Counter((topic, number) for number, topic, *_ in values_of(folder))


def expected(topic: str, *some: int) -> Counter[tuple[str, int]]:
    return Counter((topic, n) for n in range(*some))


def wait_for_both_to_be_told(running: SparkTopology, cut_at: int) -> None:
    """Each is an error of a task of the spout; the last one can be read."""
    wait_for(lambda: spout_of(running).errors == 2, message="two errors")
    text = spout_of(running).last_error
    assert (
        f"the log of spark-cut-0 was cut: it ended at {cut_at}" in text
        or "the topic 'spark-anew' was deleted and made again: spark-anew-0" in text
    )


@pytest.mark.long
def test_cut_logs_and_recreated_topics_while_it_runs_and_while_it_does_not(
    kafka: KafkaBroker, start: Start, tmp_path: Path
) -> None:
    """The log goes on at its end, the topic at its beginning; each message once, and the driver is told of both."""
    kafka.create_topic("spark-cut")
    kafka.create_topic("spark-anew")
    kafka.produce("spark-cut", numbers(60))
    size = kafka.log_bytes("spark-cut")
    kafka.produce("spark-cut", numbers(60, 100))
    kafka.produce("spark-anew", numbers(100))
    options: dict[str, Any] = {"conf": settings(tmp_path / "out"), "checkpoint": tmp_path / "checkpoint"}
    built = topology("cut-logs", kafka, ["spark-cut", "spark-anew"])
    running = start(built, **options)
    wait_for_acks(running, "kafka", 200)
    kafka.stop()
    kafka.cut("spark-cut", log_bytes=size)
    kafka.start()
    kafka.delete_topic("spark-anew")
    kafka.create_topic("spark-anew")
    kafka.produce("spark-anew", numbers(1000, 1300))  # more than there were
    wait_for_both_to_be_told(running, 60)
    kafka.produce("spark-cut", numbers(2000, 2010))
    wait_for_acks(running, "kafka", 510)
    wait_until_idle(running)
    running.stop()
    assert running.error is None
    so_far = expected("spark-cut", 100) + expected("spark-cut", 2000, 2010)
    so_far += expected("spark-anew", 100) + expected("spark-anew", 1000, 1300)
    assert counted(tmp_path / "out") == so_far

    # The same while it does not run: the checkpoint's positions are beyond what there is.
    kafka.stop()
    kafka.cut("spark-cut")
    kafka.start()
    kafka.delete_topic("spark-anew")
    kafka.create_topic("spark-anew")
    kafka.produce("spark-anew", numbers(3000, 3005))
    running = start(built, **options)
    wait_for_both_to_be_told(running, 0)
    kafka.produce("spark-cut", numbers(4000, 4005))
    wait_for_acks(running, "kafka", 10)
    wait_until_idle(running)
    running.stop()
    assert running.error is None
    so_far += expected("spark-anew", 3000, 3005) + expected("spark-cut", 4000, 4005)
    assert counted(tmp_path / "out") == so_far


@pytest.mark.long
def test_a_topology_may_stop_where_a_log_was_cut(kafka: KafkaBroker, start: Start, tmp_path: Path) -> None:
    """With the component and the user's line, and without another attempt."""
    kafka.create_topic("spark-stops")
    kafka.produce("spark-stops", numbers(50))
    running = start(
        topology("cut-stops", kafka, "spark-stops", truncated_log="fail"), conf=settings(tmp_path / "out")
    )
    wait_for_acks(running, "kafka", 50)
    kafka.stop()
    kafka.cut("spark-stops")
    kafka.start()
    assert running.wait(PATIENCE_SECS)
    with pytest.raises(
        StormsparkError, match=r"spout 'kafka': the log of spark-stops-0 was cut: it ended at 0"
    ):
        raise running.error or AssertionError
