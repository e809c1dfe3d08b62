"""A topic with a backlog, and a bolt that is slow at first: the lag falls as fast as the bolt can take it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession

from stormspark import TopologyBuilder
from stormspark.connectors import KafkaSpout, KafkaSpoutConfig, SimpleRecordTranslator
from stormspark.spark import SparkTopology
from tests.faults.backpressure.components import Dial, Slow, sender_of_record
from tests.faults.backpressure.rounds import rate, utilisation
from tests.faults.backpressure.watch import LONG_SECS, Say, Watch, flatness
from tests.kafka_broker import KafkaBroker
from tests.waiting import PATIENCE_SECS, wait_until_idle

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.slow, pytest.mark.alone]

MESSAGES = 500_000 if LONG_SECS else 60_000
PARTITIONS = 4
#: What a short run still has to do after its slow part is done in a moment.
SLOW_SECS, FAST_SECS = 0.003, 0.0003 if LONG_SECS else 0.0
SLOW_PART_SECS = LONG_SECS / 2 or 6.0
#: Offsets that may be handed out and not read yet, by far fewer than there are messages.
MOST_WAITING = 52_000
#: Of the rate that the bolts could do; a round over Kafka takes half a second beside them. A short run is the beginning only,
#: while Kafka and Spark warm up: it says nothing of this.
LEAST_SHARE = 0.8 if LONG_SECS else 0.01
_LEAST_ROUNDS = 3
MAY_RISE, SLACK_MB = (0.05, 10.0) if LONG_SECS else (0.2, 25.0)


def committed(broker: KafkaBroker, group: str) -> int:
    """Messages of all partitions that the group is done with."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    try:
        found = consumer.committed([TopicPartition(group, n) for n in range(PARTITIONS)], timeout=30)
    finally:
        consumer.close()
    return sum(max(0, one.offset) for one in found)


def test_the_lag_falls_as_fast_as_the_bolts_can_take_it(
    start: Callable[..., SparkTopology],
    spark: SparkSession,
    kafka: KafkaBroker,
    tmp_path: Path,
    folder: Path,
    note: Callable[..., None],
    say: Say,
) -> None:
    """F14, F13: what is read and not worked off stays bounded, whatever waits in Kafka; no tree fails; then all of it is done."""
    name = "kafka-lag"
    kafka.create_topic(name, PARTITIONS)
    per_partition = MESSAGES // PARTITIONS
    for partition in range(PARTITIONS):
        kafka.produce(name, (b"%d" % n for n in range(per_partition)), partition=partition)
    dial = Dial(tmp_path / "dial")
    dial.set(SLOW_SECS)
    config = KafkaSpoutConfig(
        kafka.bootstrap,
        name,
        group_id=name,
        offset_commit_period_ms=200,
        record_translator=SimpleRecordTranslator(sender_of_record, ["sender", "number", "payload"]),
    )
    builder = TopologyBuilder()
    builder.set_spout("kafka", KafkaSpout(config), 2)
    builder.set_bolt("slow", Slow(tmp_path / "dial"), 2).shuffle_grouping("kafka")
    conf = {"topology.workers": 2, "stormspark.log.dir": str(tmp_path)}
    running = start(builder.create_topology(name), conf=conf, checkpoint=tmp_path / "checkpoint")
    watch = Watch(running, spark, say)
    watch.until(lambda: any(one.executed for one in watch.rounds), PATIENCE_SECS, "the first messages")
    watch.begin()
    began = time.monotonic()
    lags = [(began, MESSAGES - committed(kafka, name))]

    held = 0

    def watch_lag(seconds: float) -> None:
        nonlocal held
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            watch.run(min(watch.period, left))
            lags.append((time.monotonic(), MESSAGES - committed(kafka, name)))
            held = max(held, watch.statistics().components["kafka"].queued)

    watch_lag(SLOW_PART_SECS)
    settled_at = began + SLOW_PART_SECS / 5
    while len(slow := watch.rounds.since(settled_at)) < _LEAST_ROUNDS:
        watch_lag(1)
    waited = max(one.queued for one in watch.rounds)
    dial.set(FAST_SECS)
    faster, slow_samples = time.monotonic(), len(watch.samples)
    watch.until(
        lambda: watch.statistics().components["kafka"].acked >= MESSAGES,
        PATIENCE_SECS + LONG_SECS,
        "all acks",
    )
    took = time.monotonic() - faster
    fast = [one for one in watch.rounds.since(faster) if one.executed]
    wait_until_idle(running)
    watch.until(lambda: committed(kafka, name) == MESSAGES, PATIENCE_SECS, "all commits")
    watch.save(folder)
    now = watch.statistics()
    running.stop()

    could = rate(slow) / utilisation(slow)
    settled = [(at, lag) for at, lag in lags if at >= settled_at]
    fell = -statistics.linear_regression(*zip(*settled, strict=True)).slope
    spout = now.components["kafka"]
    workers = [sample.worker_mb for sample in watch.samples]
    # A fast bolt needs more of what is fetched ahead, so each part is flat by itself; a short run is too short to say so.
    parts = [workers[:slow_samples], workers[slow_samples:]] if LONG_SECS else [workers]
    rise, peak = max(flatness(part, skip=0.3) for part in parts)
    note(
        "A backlog in Kafka",
        messages=f"{MESSAGES:,}",
        slow_for_s=f"{SLOW_PART_SECS:.0f}",
        bolts_could_do_per_s=f"{could:.0f}",
        they_did=f"{utilisation(slow):.1%}",
        lag_fell_by_per_s=f"{fell:.0f} ({fell / could:.1%})",
        then=f"{FAST_SECS * 1000:g} ms a tuple, rest took {took:.1f} s, they did {utilisation(fast):.1%}",
        offsets_handed_out_and_waiting=held,
        queued_at_most=waited,
        limit_changes=now.pressure.limit_changes if now.pressure else "",
        failed=spout.failed,
        timed_out=spout.timed_out,
        worker_MB=f"{sorted(workers)[len(workers) // 2]:.0f}, rise {rise:+.1f}, peak {peak:+.1f}",
    )
    assert running.error is None
    slow_bolt = now.components["slow"]
    assert spout.failed == spout.timed_out == slow_bolt.errors == 0, slow_bolt.last_error
    assert spout.acked == MESSAGES == slow_bolt.executed
    assert utilisation(slow) >= LEAST_SHARE
    assert not LONG_SECS or fell >= LEAST_SHARE * could
    assert all(later <= earlier for (_, earlier), (_, later) in pairwise(lags)), lags
    assert held + waited <= MOST_WAITING
    assert rise <= MAY_RISE * workers[-1] + SLACK_MB, workers
