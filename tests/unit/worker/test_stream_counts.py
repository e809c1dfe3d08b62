"""What tasks count by stream, for components that have several (J11), and the process latency of bolts (J15)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stormspark import AsyncBolt, BasicBolt, Bolt, Fields, Spout, TopologyBuilder
from stormspark.errors import FailedException
from stormspark.metrics import TaskCounters
from stormspark.metrics.streams import StreamCounts
from stormspark.spi import ACK, AutoAckBolt
from tests.unit.worker.rig import Rig

EACH = 8


class Letters(Spout):
    """Emits each number on the default stream, and every fourth one on the stream ``rare``, too."""

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.number = collector, 0

    def next_tuple(self) -> None:
        if self.number == EACH:
            return
        self.collector.emit((self.number,), message_id=self.number)
        if self.number % 4 == 0:
            self.collector.emit((self.number,), stream="rare", message_id=-1 - self.number)
        self.number += 1

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))
        declarer.declare_stream("rare", Fields("n"))


class Basic(BasicBolt):
    """Fails number 4 of the rare stream."""

    def execute(self, tup: Any, collector: Any) -> None:
        if tup.source_stream == "rare" and tup[0] == 4:
            raise FailedException

    def declare_output_fields(self, declarer: Any) -> None:
        pass


class Acks(Bolt):
    """Does the same by a collector."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Any) -> None:
        if tup.source_stream == "rare" and tup[0] == 4:
            self.collector.fail(tup)
        else:
            self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        pass


class Waits(Acks):
    """Says that its code waits, so that its executors have threads."""

    waits = True


class Auto(AutoAckBolt):
    """Does the same as a bolt of a front-end, which acks by what it returns."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def connected(self, line: Any) -> None:
        pass

    def execute(self, tup: Any) -> object:  # type: ignore[override]
        if tup.source_stream == "rare" and tup[0] == 4:
            self.collector.fail(tup)
        return ACK

    def declare_output_fields(self, declarer: Any) -> None:
        pass


class Keeps(Acks):
    """Acks each tuple when the next one comes."""

    kept: Any = None

    def execute(self, tup: Any) -> None:
        if self.kept is not None:
            super().execute(self.kept)
        self.kept = tup


class InCoroutines(AsyncBolt):
    """Does the same in coroutines, each of which takes a moment."""

    async def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        pass

    async def execute(self, tup: Any) -> None:
        await asyncio.sleep(0.01)
        if tup.source_stream == "rare" and tup[0] == 4:
            raise FailedException

    def declare_output_fields(self, declarer: Any) -> None:
        pass


def counted(bolt: Any, workers: int = 1) -> tuple[Rig, dict[str, list[TaskCounters]]]:
    builder = TopologyBuilder()
    builder.set_spout("letters", Letters())
    (
        builder.set_bolt("both", bolt, parallelism=2)
        .shuffle_grouping("letters")
        .shuffle_grouping("letters", "rare")
    )
    rig = Rig(builder, workers)
    rig.batches(6)
    return rig, {name: [task.read_counters() for task in rig.tasks(name)] for name in ("letters", "both")}


@pytest.mark.parametrize("bolt", [Basic, Acks, Waits, Auto])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_bolt_that_reads_several_streams_counts_each(bolt: Any, workers: int) -> None:
    _, counts = counted(bolt(), workers)
    total = TaskCounters()
    for one in counts["both"]:
        total.merge(one)
    common, rare = total.inputs["letters", "default"], total.inputs["letters", "rare"]
    assert (common.executed, common.acked, common.failed, common.calls) == (8, 8, 0, 8)
    assert (rare.executed, rare.acked, rare.failed, rare.calls) == (2, 1, 1, 2)
    assert (total.executed, total.acked, total.failed) == (10, 9, 1)


def test_the_calls_of_an_async_bolt_count_with_their_time() -> None:
    _, counts = counted(InCoroutines())
    for one in counts["both"]:
        inputs = one.inputs.values()
        assert one.latency.count == one.executed == sum(each.executed for each in inputs)
        assert sum(each.calls for each in inputs) == one.latency.count
        assert sum(each.call_seconds for each in inputs) == pytest.approx(one.latency.seconds)
        assert one.latency.seconds > 0
        assert (one.acked, one.failed) == tuple(
            sum(getattr(each, name) for each in inputs) for name in ("acked", "failed")
        )


def test_a_spout_counts_how_the_trees_of_each_stream_ended() -> None:
    _, counts = counted(Acks())
    (spout,) = counts["letters"]
    common, rare = spout.outputs["default"], spout.outputs["rare"]
    assert common[:2] + common[3:5] == (8, 8, 8, 0)
    assert rare[:2] + rare[3:5] == (2, 2, 1, 1)
    assert (common.calls, rare.calls) == (8, 1)


def test_who_has_one_stream_counts_nothing_by_stream() -> None:
    _, counts = counted(Basic())
    assert all(not one.outputs for one in counts["both"])
    assert counts["letters"][0].inputs == {}


def test_the_process_latency_is_that_until_the_ack() -> None:
    builder = TopologyBuilder()
    builder.set_spout("letters", Letters())
    builder.set_bolt("keeps", Keeps()).shuffle_grouping("letters").shuffle_grouping("letters", "rare")
    rig = Rig(builder, 1)
    rig.batches(1)
    (task,) = rig.tasks("keeps")
    before = task.read_counters().processed
    (kept,) = [tup for tup, _ in task.held()]
    rig.clock.advance(5.0)
    task.bolt.collector.ack(kept)
    counters = task.read_counters()
    assert counters.processed == before + 1
    assert counters.process_seconds >= 5.0
    assert sum(one.processed for one in counters.inputs.values()) == counters.processed
    assert counters.acked == counters.processed


def test_totals_of_several_tasks_are_added_by_stream() -> None:
    one = TaskCounters(processed=1, process_seconds=0.5, outputs={"a": StreamCounts(1, 2)})
    one.merge(
        TaskCounters(
            processed=2, process_seconds=0.25, outputs={"a": StreamCounts(1, 1), "b": StreamCounts(5)}
        )
    )
    assert (one.processed, one.process_seconds) == (3, 0.75)
    assert one.outputs == {"a": StreamCounts(2, 3), "b": StreamCounts(5)}
