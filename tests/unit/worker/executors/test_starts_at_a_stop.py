"""A topology that stops starts no instance any more, and waits for no start (B1, C1, W22)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from threading import Event, Thread
from typing import Any

import pytest

from stormspark import AsyncBolt, Bolt, Topology, TopologyBuilder
from stormspark.local import submit
from stormspark.local.topology import LocalTopology
from stormspark.worker.executors import executors
from tests.unit.worker.executors.runs import Numbers, Told, tasks, until

_stops, _released, _waits = Event(), Event(), Event()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A stop that waits for a call waits for longer than the test."""
    monkeypatch.setattr(executors, "STOP_SECS", 300.0)
    monkeypatch.setattr("stormspark.worker.asynchronous.life.STOP_SECS", 300.0)
    for event in (_stops, _released, _waits):
        event.clear()
    yield
    _released.set()


class _Tells:
    """Tells of the calls of its life."""

    def __init__(self, told: Told, at_stop: bool = True) -> None:
        self.told, self.at_stop = told, at_stop

    def declare_output_fields(self, declarer: Any) -> None:
        """Declare nothing."""


class Raises(_Tells, Bolt):
    """Raises in ``execute`` once the topology stops, or at once; then its ``prepare`` waits."""

    waits = True

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        """Wait, the second time."""
        self.told("prepare")
        if len(self.told.all) > 1:
            _waits.set()
            _released.wait(60)

    def execute(self, tup: Any) -> None:
        """Raise."""
        if self.at_stop:
            _waits.set()
            _stops.wait(60)
        raise ValueError("no number")

    def cleanup(self) -> None:
        """Tell."""
        self.told("cleanup")


class RaisesAsync(_Tells, AsyncBolt):
    """The same, on the event loop."""

    async def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        """Wait, the second time."""
        self.told("prepare")
        if len(self.told.all) > 1:
            _waits.set()
            await _until(_released)

    async def execute(self, tup: Any) -> None:
        """Raise."""
        if self.at_stop:
            _waits.set()
            await _until(_stops)
        raise ValueError("no number")

    async def cleanup(self) -> None:
        """Tell."""
        self.told("cleanup")


async def _until(event: Event) -> None:
    """Wait on another thread: a coroutine that looks again and again may be seen between two awaits, at no line of its own."""
    await asyncio.to_thread(event.wait, 60)


def _with(spout: Numbers, bolt: Any) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout)
    builder.set_bolt("raises", bolt).shuffle_grouping("numbers")
    return builder.create_topology("starts")


def _begin_to_stop(started: LocalTopology) -> Thread:
    """Let the topology stop, and let its calls go on once it does."""
    limit_waiting = started.workers.limit_waiting

    def limit_and_go_on() -> None:
        limit_waiting()
        _stops.set()

    started.workers.limit_waiting = limit_and_go_on  # type: ignore[method-assign]
    stopping = Thread(target=started.stop, daemon=True)
    stopping.start()
    return stopping


@pytest.mark.parametrize("kind", [Raises, RaisesAsync], ids=["thread", "event loop"])
def test_after_an_error_in_a_call_under_way_no_instance_starts_and_the_old_one_gets_its_cleanup(
    kind: Any,
) -> None:
    told, verdicts = Told(f"life of {kind.__name__} that raises"), Told("verdicts at the error")
    started = submit(_with(Numbers([1], verdicts), kind(told)))
    until(_waits.is_set)
    stopping = _begin_to_stop(started)
    stopping.join(60)
    assert not stopping.is_alive()
    assert told.all == [("prepare",), ("cleanup",)]
    raises = started.statistics().components["raises"]
    assert (raises.errors, raises.restarts, raises.failed) == (1, 0, 1)
    assert raises.last_error is not None and "ValueError: no number" in raises.last_error
    assert "starts again" not in raises.last_error
    assert verdicts.all == [("fail", "1", "ValueError: no number")]


class AllRaise(_Tells):
    """Each call raises once the topology stops, but the call with the last number goes well."""

    TUPLES = 5

    def end(self, number: int) -> None:
        """Raise, but for the last number."""
        if number < self.TUPLES:
            raise ValueError("no number")


class AllRaiseOnThreads(AllRaise, Bolt):
    """Each executor has one call under way."""

    waits = True

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        """Keep the collector."""
        self.collector = collector

    def execute(self, tup: Any) -> None:
        """Wait, and raise."""
        self.told(tup[0])
        _stops.wait(60)
        self.end(tup[0])
        self.collector.ack(tup)


class AllRaiseAsync(AllRaise, AsyncBolt):
    """All calls of one task are under way."""

    capacity, ordered = AllRaise.TUPLES, True

    async def execute(self, tup: Any) -> None:
        """Wait, and raise."""
        self.told(tup[0])
        await _until(_stops)
        self.end(tup[0])


@pytest.mark.parametrize("kind", [AllRaiseOnThreads, AllRaiseAsync], ids=["threads", "event loop"])
def test_however_many_calls_raise_at_a_stop_the_stop_is_no_error_and_all_calls_get_their_verdicts(
    kind: Any,
) -> None:
    told, verdicts = Told(f"calls of {kind.__name__}"), Told("verdicts of many errors")
    builder = TopologyBuilder()
    numbers = list(range(1, AllRaise.TUPLES + 1))
    builder.set_spout("numbers", Numbers(numbers, verdicts))
    executors_ = AllRaise.TUPLES if kind is AllRaiseOnThreads else 1
    builder.set_bolt("raises", kind(told), executors_).shuffle_grouping("numbers")
    started = submit(builder.create_topology("rows"), conf={"stormspark.task.max.restarts.in.row": 0})
    until(lambda: len(told.all) == AllRaise.TUPLES)
    stopping = _begin_to_stop(started)
    stopping.join(60)
    assert not stopping.is_alive() and started.error is None
    raises = started.statistics().components["raises"]
    assert (raises.errors, raises.restarts, raises.failed, raises.acked) == (4, 0, 4, 1)
    assert sorted(verdict[:2] for verdict in verdicts.all) == [
        ("ack", "5"),
        *(("fail", str(n)) for n in numbers[:-1]),
    ]


@pytest.mark.parametrize("kind", [Raises, RaisesAsync], ids=["thread", "event loop"])
def test_nobody_waits_for_a_start_and_an_instance_that_has_not_started_gets_no_cleanup(
    kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    told = Told(f"life of {kind.__name__} that starts again")
    started = submit(_with(Numbers([1], Told("verdicts")), kind(told, at_stop=False)))
    until(_waits.is_set)
    stopping = _begin_to_stop(started)
    stopping.join(60)
    assert not stopping.is_alive(), "the stop waits for the start"
    (left,) = started.statistics().components["raises"].not_returned
    assert left.task == "raises[0]" and left.code.startswith("prepare of raises[0] (")
    _released.set()
    if kind is Raises:
        assert "raises[0] gets no close or cleanup: prepare of raises[0] (" in caplog.text
        (bolt,) = (task for task in started.workers.workers[0].tasks.values() if task.name == "raises[0]")
        until(lambda: bolt.executor.is_idle)  # type: ignore[attr-defined]
    assert told.all == [("prepare",), ("prepare",)]


class FailsToStart(Raises):
    """Raises; then its ``prepare`` waits until the topology stops, and raises, too."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        """Wait and raise, the second time."""
        self.told("prepare")
        if len(self.told.all) > 1:
            _waits.set()
            _stops.wait(60)
            raise ConnectionError("the database is away")


class Holds(Bolt):
    """Its call lasts until the start has failed."""

    waits = True

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        """Keep the collector."""
        self.collector = collector

    def execute(self, tup: Any) -> None:
        """Wait, and ack."""
        _released.wait(60)
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        """Declare nothing."""


def test_a_start_that_fails_while_the_topology_stops_is_an_error_of_the_task_and_not_of_the_topology() -> (
    None
):
    verdicts = Told("verdicts beside a start that fails")
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([1], verdicts))
    builder.set_bolt(
        "raises", FailsToStart(Told("life of one that fails to start"), at_stop=False)
    ).shuffle_grouping("numbers")
    builder.set_bolt("holds", Holds()).shuffle_grouping("numbers")
    started = submit(builder.create_topology("failing"), conf={"stormspark.task.max.restarts.in.row": 1})
    until(_waits.is_set)
    stopping = _begin_to_stop(started)
    (raises,) = tasks(started, "raises")
    until(lambda: raises.is_down or raises.fatal is not None)
    _released.set()
    stopping.join(60)
    assert not stopping.is_alive() and started.error is None
    statistics = started.statistics().components
    assert (statistics["raises"].errors, statistics["raises"].not_returned) == (2, ())
    assert statistics["raises"].last_error is not None
    assert "starts again" not in statistics["raises"].last_error
    assert statistics["holds"].acked == 1


class RaisesInAck(Numbers):
    """Raises when it hears of its first ack, after the topology has begun to stop."""

    waits = True

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        """Tell."""
        super().open(conf, context, collector)
        self.told("open")

    def ack(self, message_id: Any) -> None:
        """Raise, the first time."""
        super().ack(message_id)
        if ("ack", message_id) == self.told.all[1]:
            raise ValueError("no such message")

    def close(self) -> None:
        """Tell."""
        self.told("close")


class Acks(Raises):
    """Acks once the topology stops."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        """Keep the collector."""
        self.collector = collector

    def execute(self, tup: Any) -> None:
        """Wait, and ack."""
        self.told(tup[0])
        _stops.wait(60)
        self.collector.ack(tup)


def test_a_spout_that_raises_at_an_ack_hears_the_other_acks_and_is_not_opened_anew() -> None:
    told, begun = Told("life of a spout"), Told("calls at the stop")
    builder = TopologyBuilder()
    builder.set_spout("numbers", RaisesInAck([1, 2, 3], told))
    builder.set_bolt("acks", Acks(begun), 3).shuffle_grouping("numbers")
    started = submit(builder.create_topology("acks"))
    until(lambda: len(begun.all) == 3)
    stopping = _begin_to_stop(started)
    stopping.join(60)
    assert not stopping.is_alive()
    assert told.all[0] == ("open",) and told.all[-1] == ("close",)
    assert sorted(told.all[1:-1]) == [("ack", "1"), ("ack", "2"), ("ack", "3")]
    numbers = started.statistics().components["numbers"]
    assert (numbers.acked, numbers.restarts) == (3, 0)


class InPairs(Raises):
    """The first call raises. The second one, of the other task of the executor, waits until the topology stops."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        """Tell."""
        self.told("prepare")

    def execute(self, tup: Any) -> None:
        """Raise, or wait."""
        self.told("execute")
        if self.told.all.count(("execute",)) == 1:
            _waits.wait(60)
            raise ValueError("no number")
        _stops.wait(60)


def _start_behind_two_calls(start: Callable[[], None], told: Told) -> None:
    until(lambda: told.all.count(("execute",)) == 2)
    start()


def test_a_start_that_has_not_begun_does_not_begin_and_only_the_other_task_gets_its_cleanup() -> None:
    told = Told("life of two tasks of one executor")
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([1], Told("verdicts of two tasks")))
    builder.set_bolt("pair", InPairs(told)).set_num_tasks(2).all_grouping("numbers")
    started = submit(builder.create_topology("pair"))
    pair: list[Any] = tasks(started, "pair")
    until(lambda: ("execute",) in told.all and any(task.queue.waiting for task in pair))
    for task in pair:  # the start is due while the other task's call goes on, and not before it
        task.start = partial(_start_behind_two_calls, task.start, told)
    _waits.set()
    until(lambda: told.all.count(("execute",)) == 2 and any(task.is_starting for task in pair))
    stopping = _begin_to_stop(started)
    stopping.join(60)
    assert not stopping.is_alive()
    assert told.all == [("prepare",), ("prepare",), ("execute",), ("execute",), ("cleanup",)]
    statistics = started.statistics().components["pair"]
    assert statistics.not_returned == ()
    assert (statistics.failed, statistics.acked) == (1, 0)
