"""A component raises, and then its ``prepare`` or ``open`` raises, as what it needs is still away: the task starts again after
pauses (W22).
"""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from stormspark import AsyncSpout, BasicBolt, Bolt, Fields, Spout, TopologyBuilder
from stormspark.api import SourceSpout
from stormspark.errors import ComponentError
from tests.unit.worker.components import Collect, Script
from tests.unit.worker.executors.runs import Numbers, Told, running, until
from tests.unit.worker.rig import Rig


class Database:
    """What the components need; all instances share it."""

    away = False
    #: How often a bolt was prepared, and the tuples that were executed.
    prepared: ClassVar[list[bool]] = []
    executed: ClassVar[list[int]] = []
    cleaned = 0
    #: The other calls that a spout got, and how many rows there are for it.
    calls: ClassVar[list[str]] = []
    rows = 10

    @classmethod
    def begin(cls) -> None:
        cls.away, cls.cleaned, cls.rows = False, 0, 10
        cls.prepared.clear()
        cls.executed.clear()
        cls.calls.clear()

    @classmethod
    def connect(cls) -> None:
        cls.prepared.append(not cls.away)
        if cls.away:
            msg = "the database is away"
            raise ConnectionError(msg)

    @classmethod
    def use(cls, tup: Any) -> None:
        if cls.away:
            msg = "the connection is lost"
            raise ConnectionError(msg)
        cls.executed.append(tup[0])


@pytest.fixture(autouse=True)
def database() -> None:
    Database.begin()


class Basic(BasicBolt):
    def prepare(self, conf: Any, context: Any) -> None:
        context.set_timer(1000.0, lambda: None)
        Database.connect()

    def execute(self, tup: Any, collector: Any) -> None:
        Database.use(tup)

    def cleanup(self) -> None:
        Database.cleaned += 1


class Plain(Bolt):
    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        Database.connect()

    def execute(self, tup: Any) -> None:
        Database.use(tup)
        self.collector.ack(tup)

    def cleanup(self) -> None:
        Database.cleaned += 1


def _rows(count: int) -> list[tuple[Any, ...]]:
    return [(n,) for n in range(count)]


def _builder(bolt: Any, count: int) -> TopologyBuilder:
    builder = TopologyBuilder()
    builder.set_spout("a", Script(_rows(count)))
    builder.set_bolt("b", bolt).shuffle_grouping("a")
    builder.set_bolt("c", Collect()).shuffle_grouping("a")
    return builder


@pytest.mark.parametrize("bolt", [Basic(), Plain()], ids=["basic", "plain"])
def test_a_start_that_fails_is_told_by_one_traceback_without_the_error_before_it(bolt: Any) -> None:
    """C4."""
    rig = Rig(_builder(bolt, 5), 1)
    Database.away = True
    rig.batches(2)
    first, second = rig.errors
    assert first.count("Traceback") == 1 and first.endswith("ConnectionError: the connection is lost")
    assert second.startswith("starts again in 0.1 s (restart 2 of at most ")
    assert second.count("Traceback") == 1 and second.endswith("ConnectionError: the database is away")
    assert "the connection is lost" not in second


@pytest.mark.parametrize("bolt", [Basic(), Plain()], ids=["basic", "plain"])
def test_a_bolt_whose_database_is_away_starts_again_and_its_tuples_wait(bolt: Any) -> None:
    """Each start that fails is one more error in the row, and the pauses double; other tasks go on."""
    rig = Rig(_builder(bolt, 20), 1)
    Database.away = True
    rig.batches(2)
    (task,) = rig.tasks("b")
    assert Database.prepared == [True, False] and task.fatal is None
    assert task.waiting == 19
    assert task.read_counters().down == 1, "the driver hears that it waits for its restart"
    assert len(rig.users("c")[0].seen) == 20, "the other bolt goes on"
    rig.batches(2)
    assert len(Database.prepared) == 2, "the first pause is not over"
    for pause in (0.1, 0.2, 0.4):
        before = len(Database.prepared)
        rig.advance(pause * 0.9)
        assert len(Database.prepared) == before
        rig.advance(pause * 0.2)
        assert len(Database.prepared) == before + 1
    Database.away = False
    rig.advance(0.9, batches=3)
    assert Database.prepared == [True, False, False, False, False, True]
    assert task.read_counters().down == 0
    assert Database.executed == list(range(1, 20))
    heard = rig.users("a")[0].heard
    assert sorted(message for what, message, *_ in heard if what == "ack") == list(range(1, 20))
    assert [message for what, message, *_ in heard if what == "fail"] == [0]
    assert task.counters.restarts == 5
    rig.cluster.close()
    assert Database.cleaned == 1


def test_too_many_starts_that_fail_stop_the_topology_with_the_reason() -> None:
    rig = Rig(_builder(Basic(), 3), 1, stormspark_task_max_restarts_in_row=3)
    Database.away = True
    rig.batches(2)
    (task,) = rig.tasks("b")
    for _ in range(10):
        rig.advance(1.0)
    assert Database.prepared == [True, False, False, False]
    assert task.fatal is not None
    assert "raised 4 times in a row" in task.fatal.text and "last in prepare" in task.fatal.text
    assert "the database is away" in task.fatal.text


def test_each_error_says_which_restart_in_a_row_follows_and_when() -> None:
    """The error that stops the topology is followed by none. The error itself stays the last line."""
    rig = Rig(_builder(Basic(), 3), 1, stormspark_task_max_restarts_in_row=3)
    Database.away = True
    rig.batches(2)
    for _ in range(10):
        rig.advance(1.0)
    (task,) = rig.tasks("b")
    assert task.fatal is not None
    lines = [text.splitlines() for text in rig.errors]
    first = lines[3][0]
    assert first.startswith(f"{__file__}:") and first.endswith(": Traceback (most recent call last):")
    assert [one[0] for one in lines] == [
        "starts again at once (restart 1 of at most 3 in a row):",
        "starts again in 0.1 s (restart 2 of at most 3 in a row):",
        "starts again in 0.2 s (restart 3 of at most 3 in a row):",
        first,
    ]
    assert lines[0][-1] == "ConnectionError: the connection is lost"
    assert "the database is away" in lines[1][-1]


def test_a_spout_says_it_too() -> None:
    class Raises(Script):
        def next_tuple(self) -> None:
            msg = "no file"
            raise OSError(msg)

    builder = TopologyBuilder()
    builder.set_spout("a", Raises([]))
    rig = Rig(builder, 1)
    rig.batches(1)
    assert rig.errors[0].startswith("starts again at once (restart 1 of at most 10 in a row):\n")
    assert rig.errors[0].splitlines()[1].endswith(": Traceback (most recent call last):")


def test_a_start_that_goes_well_does_not_end_the_row_but_a_tuple_that_goes_well_does() -> None:
    rig = Rig(_builder(Basic(), 3), 1, stormspark_task_max_restarts_in_row=3)
    Database.away = True
    rig.batches(2)
    (task,) = rig.tasks("b")
    Database.away = False
    rig.advance(1.0, batches=2)
    assert Database.executed == [1, 2] and task._raised_in_row == 0


def test_the_first_prepare_that_raises_stops_the_topology() -> None:
    Database.away = True
    with pytest.raises(ComponentError, match="the database is away"):
        Rig(_builder(Basic(), 3), 1)


def test_a_topology_that_stops_while_a_bolt_is_down_calls_no_cleanup_of_it() -> None:
    rig = Rig(_builder(Plain(), 3), 1)
    Database.away = True
    rig.batches(2)
    rig.cluster.close()
    assert Database.cleaned == 0


def test_in_a_transaction_a_prepare_that_raises_stops_the_topology() -> None:
    """The batch is taken back anyway."""
    rig = Rig(_builder(Basic(), 3), 1, stormspark_exactly_once=True)
    Database.away = True
    rig.batches(1)
    (task,) = rig.tasks("b")
    assert task.fatal is not None and "the database is away" in task.fatal.text


@pytest.mark.slow
@pytest.mark.parametrize("bolt", [Basic(), Plain()], ids=["basic", "plain"])
def test_a_bolt_on_its_own_thread_starts_again_too(bolt: Any) -> None:
    told = Told("told")
    builder = TopologyBuilder()
    builder.set_spout("a", Numbers(list(range(20)), told))
    builder.set_bolt("b", bolt).shuffle_grouping("a")
    topology = builder.create_topology("down")

    with running(topology) as started:
        until(lambda: len(told.all) == 20)
        Database.away = True
        spout = next(
            task for task in started.workers.workers[0].tasks.values() if task.component.id == "a"
        ).instance
        spout.left = [100, 101, 102]
        until(lambda: Database.prepared.count(False) >= 2)
        Database.away = False
        until(lambda: len(told.all) == 23)
        assert sorted(message for what, message, *_ in told.all if what == "ack") == sorted(
            [*map(str, range(20)), "101", "102"]
        )
        assert started.error is None


class Pulls(Spout):
    """Emits the numbers from 0 that no instance has emitted so far, below ``Database.rows``."""

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        context.set_timer(1000.0, lambda: None)
        Database.connect()

    def next_tuple(self) -> None:
        n = len(Database.executed)
        if n < Database.rows:
            Database.use((n,))
            self.collector.emit((n,), message_id=n)

    def activate(self) -> None:
        Database.calls.append("activate")

    def deactivate(self) -> None:
        Database.calls.append("deactivate")

    def close(self) -> None:
        Database.calls.append("close")

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


def _pulls(**settings: Any) -> Rig:
    """A spout that has emitted ten of twenty numbers when the database goes away, beside another spout."""
    builder = TopologyBuilder()
    builder.set_spout("a", Pulls())
    builder.set_spout("other", Script(_rows(30)))
    builder.set_bolt("c", Collect()).shuffle_grouping("a")
    builder.set_bolt("d", Collect()).shuffle_grouping("other")
    rig = Rig(builder, 1, **settings)
    rig.batches(1)
    Database.away, Database.rows = True, 20
    rig.batches(2)
    return rig


def test_a_spout_whose_database_is_away_starts_again_and_others_go_on() -> None:
    rig = _pulls()
    (task,) = rig.tasks("a")
    assert Database.prepared == [True, False] and task.fatal is None
    assert len(rig.users("d")[0].seen) == 30, "the other spout goes on"
    (report,) = rig.cluster.run_batch()
    assert report.backlog, "the topology is not idle while a spout is down"
    rig.batches(2)
    for pause in (0.1, 0.2, 0.4):
        before = len(Database.prepared)
        rig.advance(pause * 0.9)
        assert len(Database.prepared) == before
        rig.advance(pause * 0.2)
        assert len(Database.prepared) == before + 1
    Database.away = False
    rig.advance(0.9, batches=3)
    assert Database.prepared == [True, False, False, False, False, True]
    assert Database.executed == list(range(20))
    assert task.counters.restarts == 5 and task._raised_in_row == 0
    assert Database.calls == ["activate", "activate"]
    rig.cluster.close()
    assert Database.calls == ["activate", "activate", "deactivate", "close"]


def test_too_many_opens_that_fail_stop_the_topology_with_the_reason() -> None:
    rig = _pulls(stormspark_task_max_restarts_in_row=3)
    (task,) = rig.tasks("a")
    for _ in range(10):
        rig.advance(1.0)
    assert Database.prepared == [True, False, False, False]
    assert task.fatal is not None
    assert "raised 4 times in a row" in task.fatal.text and "last in open" in task.fatal.text
    assert "the database is away" in task.fatal.text


def test_a_spout_that_is_down_may_be_deactivated_and_starts_again_inactive() -> None:
    rig = _pulls()
    rig.workers[0].set_active(False)
    Database.away = False
    rig.advance(1.0, batches=2)
    assert Database.prepared == [True, False, True]
    assert Database.executed == list(range(10)) and Database.calls == ["activate"]
    rig.workers[0].set_active(True)
    rig.batches(2)
    assert Database.executed == list(range(20)) and Database.calls == ["activate", "activate"]


def test_a_topology_that_stops_while_a_spout_is_down_calls_no_close_of_it() -> None:
    rig = _pulls()
    rig.cluster.close()
    assert Database.calls == ["activate"]


def test_the_first_open_that_raises_stops_the_topology() -> None:
    Database.away = True
    builder = TopologyBuilder()
    builder.set_spout("a", Pulls())
    with pytest.raises(ComponentError, match="the database is away"):
        Rig(builder, 1)


def test_in_a_transaction_an_open_that_raises_stops_the_topology() -> None:
    rig = _pulls(stormspark_exactly_once=True)
    (task,) = rig.tasks("a")
    assert task.fatal is not None and "the database is away" in task.fatal.text


class PullsAsync(AsyncSpout):
    """Does the same as `Pulls`, on the event loop."""

    async def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        Database.connect()

    async def next_tuple(self) -> None:
        n = len(Database.executed)
        if n < Database.rows:
            Database.use((n,))
            self.collector.emit((n,), message_id=n)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


@pytest.mark.slow
@pytest.mark.parametrize("spout", [Pulls(), PullsAsync()], ids=["on a thread", "on the event loop"])
def test_a_spout_on_its_own_thread_or_on_the_event_loop_starts_again_too(spout: Any) -> None:
    builder = TopologyBuilder()
    builder.set_spout("a", spout)
    builder.set_bolt("c", Collect()).shuffle_grouping("a")

    with running(builder.create_topology("down")) as started:
        until(lambda: len(Database.executed) == 10)
        Database.away, Database.rows = True, 20
        until(lambda: Database.prepared.count(False) >= 2)
        Database.away = False
        started.run_until_idle()
        assert Database.executed == list(range(20))
        assert started.error is None


class Lines(SourceSpout):
    """A source spout. Acks of its rows use the database, too."""

    def open(self, conf: Any, context: Any) -> None:
        Database.connect()

    def ack(self, message_id: Any) -> None:
        Database.use((message_id,))

    def stream(self, spark: Any) -> Any:
        raise AssertionError


def test_rows_of_a_source_wait_while_its_spout_is_down() -> None:
    builder = TopologyBuilder()
    builder.set_spout("a", Lines(["line"]))
    builder.set_bolt("c", Collect()).shuffle_grouping("a")
    rig = Rig(builder, 1)
    (task,) = rig.tasks("a")
    task.add_rows(0, 0, [("one",), ("two",)])
    rig.batches(1)
    Database.away = True
    task.add_rows(1, 0, [("three",)])
    rig.batches(2)
    assert task.is_down and task.fatal is None
    task.add_rows(3, 0, [("four",)])
    rig.batches(2)
    assert task.rows_waiting
    Database.away = False
    rig.advance(0.2, batches=3)
    assert {line for _, line in rig.users("c")[0].seen} == {"one", "two", "three", "four"}
    assert not task.is_down and not task.rows_waiting
