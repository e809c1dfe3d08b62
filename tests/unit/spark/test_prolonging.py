"""A batch goes on while it is behind, by what the last round's reports say."""

from __future__ import annotations

import pytest

from stormspark import TopologyBuilder
from stormspark.api import SourceProgress
from stormspark.backpressure import BoltLoad, SpoutLoad, TaskLoad
from stormspark.connectors import DataFrameSpout
from stormspark.driver.throttle import Throttle
from stormspark.plan import plan_topology
from stormspark.spark.prolonging import Prolonging
from stormspark.spark.trigger_limits import Bite
from stormspark.testing import TestWordCounter
from stormspark.worker.step import WorkerReport


class Batch:
    """Rounds of a second, in each of which the bolt spends ten milliseconds on a tuple."""

    def __init__(self, **conf: object) -> None:
        builder = TopologyBuilder()
        builder.set_spout("words", DataFrameSpout(lambda spark: None, ["word"]))
        builder.set_bolt("count", TestWordCounter()).shuffle_grouping("words")
        self.plan = plan_topology(builder.create_topology("batch"), conf)
        self.throttle = Throttle(self.plan)
        self.prolonging = Prolonging(self.plan, self.throttle, ["words"])
        self.prolonging.begin()

    def round(self, *, came: int = 0, emitted: int = 100, waiting: int = 0) -> bool:
        """Whether another one is wanted."""
        (words,), (count,) = (self.plan.components[name].tasks for name in ("words", "count"))
        loads: dict[int, TaskLoad] = {
            words: SpoutLoad(emitted, waiting > 0, waiting > 0, waiting),
            count: BoltLoad(emitted, emitted / 100, 0, 0),
        }
        sources = {"words": SourceProgress(waiting, None, came)}
        report = WorkerReport(0, 0, 0, {}, (), None, waiting, loads=loads, sources=sources)
        self.throttle.observe([report], emitted / 100 + 0.2)
        self.prolonging.observe([report])
        return self.prolonging.wanted


def test_without_a_durable_acker_it_goes_on_while_rows_wait() -> None:
    """E15: nobody keeps them beyond the batch, so Spark must not commit it, however little is left."""
    batch = Batch()
    assert batch.round(came=10, emitted=5, waiting=5) is False
    for native in ([], ["words"]):
        batch.prolonging = Prolonging(batch.plan, batch.throttle, native, unkept=["words"])
        assert batch.round(came=10, emitted=5, waiting=5) is True
        assert batch.round(emitted=4, waiting=1) is True
        assert batch.round(emitted=1, waiting=0) is False


def test_it_goes_on_above_the_high_mark_until_it_is_below_the_low_one() -> None:
    """F10: two targets of work are behind, half of one is not; a bite is told with all of its rounds."""
    batch = Batch()
    assert [batch.round(came=500 * (n == 0), waiting=400 - 100 * n) for n in range(5)] == [
        True,
        True,
        True,
        True,
        False,
    ]
    assert batch.prolonging.expected, "and so may be the next one"
    (bite,) = batch.prolonging.bites().values()
    assert bite == Bite(came=500, rounds=5, held=bite.held, busy=5.0)
    assert batch.prolonging.came.total() == 500
    batch.prolonging.begin()
    assert batch.round(came=100, waiting=0) is False
    assert not batch.prolonging.expected
    assert batch.prolonging.bites()["words"].rounds == 1


def test_rows_that_nobody_takes_hold_the_next_ones_back() -> None:
    """W1, B13: without a cost that could be known; and it is told that they are not going to be taken soon."""
    batch = Batch()
    stalled = []
    for _ in range(5):
        assert batch.round(came=10, emitted=0, waiting=10)
        stalled.append(batch.prolonging.stalled)
    assert stalled[-1]
    assert not stalled[0]
    assert batch.round(emitted=5, waiting=5) is False
    assert batch.prolonging.bites()["words"].rounds == 1


@pytest.mark.parametrize("strategy", ["drop", "fail"])
def test_where_tuples_are_dropped_nothing_is_held_back(strategy: str) -> None:
    """X51: reading goes on."""
    batch = Batch(**{"stormspark.backpressure.strategy": strategy})
    assert not batch.round(came=10_000, waiting=9_900)


def test_without_native_sources_there_is_one_round() -> None:
    """F8: Kafka's spout hears of its limit batch by batch."""
    batch = Batch()
    batch.prolonging = Prolonging(batch.plan, batch.throttle, ())
    assert not batch.round(came=10_000, waiting=9_900)
    assert not batch.prolonging.expected
