"""How async components start and stop: beside the other tasks of their worker, and without holding up its end."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from stormspark import AsyncBolt, AsyncSpout, Fields, TaskHook, TopologyBuilder
from stormspark.api import OutputFieldsDeclarer
from stormspark.errors import ComponentError
from stormspark.metrics import CountMetric
from stormspark.worker.asynchronous import bolt_executor, life, spout_executor
from stormspark.worker.executors import executors
from tests.unit.worker.components import Script, acks_of
from tests.unit.worker.executors.runs import running, until
from tests.unit.worker.rig import Rig, two
from tests.unit.worker.test_async_components import Keep, _rig, _until
from tests.waiting import wait_for

ROWS = [(n,) for n in range(5)]
#: What the components told, and the events on the loop that they wait for, by name.
TOLD: list[tuple[str, Any]] = []
GATES: dict[str, Gate] = {}
_LONG = 60.0


class Gate:
    """Coroutines wait at it until the test opens it. A test that fails waits not for ever."""

    def __init__(self) -> None:
        self.opened = False

    async def wait(self) -> None:
        """Wait, for a minute at most."""
        deadline = time.monotonic() + _LONG
        while not self.opened:
            if time.monotonic() > deadline:
                raise TimeoutError("nobody has opened the gate")
            await asyncio.sleep(0.001)


@pytest.fixture(autouse=True)
def _begin() -> Iterator[None]:
    TOLD.clear()
    GATES.clear()
    GATES["gate"] = Gate()
    yield
    GATES["gate"].opened = True


def _open() -> None:
    GATES["gate"].opened = True


def _told(what: str) -> list[Any]:
    return [value for name, value in TOLD if name == what]


class Acts(AsyncBolt):
    """Does in each of its methods what the test says: ``waits``, ``raises`` or ``blocks``; ``executes`` is for ``execute``."""

    def __init__(self, prepares: str = "", executes: str = "", cleans: str = "", first: bool = True) -> None:
        self.prepares, self.executes, self.cleans, self.first = prepares, executes, cleans, first

    async def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        TOLD.append(("prepare", self))
        if self.first or len(_told("prepare")) > 1:
            await _do(self.prepares)
        TOLD.append(("prepared", self))

    async def execute(self, tup: Any) -> None:
        TOLD.append(("execute", tup[0]))
        await _do(self.executes)
        self.collector.emit((tup[0],))

    async def cleanup(self) -> None:
        TOLD.append(("cleanup", self))
        await _do(self.cleans)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n"))


async def _do(what: str) -> None:
    if what == "waits":
        await GATES["gate"].wait()
    elif what == "raises":
        raise KeyError("raised by the test")
    elif what == "raises once" and len(_told("prepare")) == 1:
        raise KeyError("raised once")
    elif what == "blocks":
        while not GATES["gate"].opened:
            time.sleep(0.001)


# -- the start -----------------------------------------------------------------------------------------------------


def test_a_prepare_that_waits_after_a_restart_holds_up_its_own_task_alone() -> None:
    """A16, W22: its tuples wait in its queue meanwhile."""
    builder = two(Acts(prepares="waits", executes="raises once", first=False), ROWS)
    builder.set_spout("others", Script([(n,) for n in range(100, 110)]))
    builder.set_bolt("keep", Keep()).shuffle_grouping("others").shuffle_grouping("b")
    rig = _rig(builder)
    keep = rig.users("keep")[0]
    _until(rig, lambda: len(_told("prepare")) == 2)
    (task,) = rig.tasks("b")
    _until(rig, lambda: {n for n in keep.came if n >= 100} == set(range(100, 110)))
    rig.batches(2)
    assert task.starts_on_loop and task.ready == 0 and task.outside == 1
    assert len(_told("prepared")) == 1
    assert task.load().seconds < _LONG / 2, "the start is no work of the bolt"
    _open()
    _until(rig, lambda: not task.starts_on_loop)
    assert rig.errors and task.fatal is None
    rig.cluster.abandon()


class Meets(Acts):
    """Ten tasks have to be in ``prepare`` at the same time."""

    async def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        TOLD.append(("prepare", self))
        while len(_told("prepare")) < 10:
            await asyncio.sleep(0.001)


def test_the_tasks_of_a_worker_are_prepared_side_by_side() -> None:
    """A16."""
    builder = TopologyBuilder()
    builder.set_spout("a", Script(ROWS))
    builder.set_bolt("b", Meets(), 10).shuffle_grouping("a")
    rigs: list[Rig] = []
    starting = threading.Thread(target=lambda: rigs.append(_rig(builder)), daemon=True)
    starting.start()
    starting.join(_LONG)
    assert rigs and not any(task.starts_on_loop for task in rigs[0].tasks("b"))
    rigs[0].cluster.abandon()


@pytest.mark.slow
def test_a_prepare_that_raises_after_a_restart_counts_as_one_more_error_in_the_row() -> None:
    """W22: the task starts again after a pause, or the topology stops if there are too many."""
    builder = two(Acts(prepares="raises", executes="raises once", first=False), ROWS)
    rig = _rig(builder, stormspark_task_max_restarts_in_row=3)
    (task,) = rig.tasks("b")
    _until(rig, lambda: task.fatal)
    assert task.counters.restarts == 3
    assert "raised 4 times in a row" in task.fatal.text and "last in prepare" in task.fatal.text
    assert "raised by the test" in task.fatal.text
    rig.cluster.abandon()


class Acting(AsyncSpout):
    """Does in the method named ``where`` what the test says, and tells of all of its methods."""

    def __init__(self, where: str = "", does: str = "") -> None:
        self.where, self.does = where, does

    async def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.emitted = collector, 0
        await self._tell("open")

    async def next_tuple(self) -> None:
        self.emitted += 1
        self.collector.emit((self.emitted,), message_id=self.emitted)
        await asyncio.sleep(0.001)

    async def ack(self, message_id: Any) -> None:
        if self.where == "ack":
            await self._tell("ack")

    async def activate(self) -> None:
        await self._tell("activate")

    async def deactivate(self) -> None:
        await self._tell("deactivate")

    async def close(self) -> None:
        await self._tell("close")

    async def _tell(self, method: str) -> None:
        TOLD.append(("began", method))
        if self.where == method:
            await _do(self.does)
        TOLD.append(("ended", method))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n"))


def _acting(spout: AsyncSpout, **conf: Any) -> Rig:
    builder = TopologyBuilder()
    builder.set_spout("s", spout)
    builder.set_bolt("keep", Keep()).shuffle_grouping("s")
    return _rig(builder, **conf)


@pytest.mark.parametrize("where", ["activate", "deactivate"])
def test_activate_and_deactivate_hold_up_nobody_and_come_one_after_another(where: str) -> None:
    """A16, B13."""
    rig = _acting(Acting(where, "waits"))
    wait_for(lambda: "activate" in _told("began"))
    rig.workers[0].set_active(False)
    rig.workers[0].set_active(True)
    rig.batches(3)
    assert where not in _told("ended")
    _open()
    wait_for(lambda: len(_told("ended")) == 4)
    calls = ["open", "activate", "deactivate", "activate"]
    assert _told("began") == _told("ended") == calls
    keep = rig.users("keep")[0]
    came = len(keep.came)
    _until(rig, lambda: len(keep.came) > came)
    rig.cluster.abandon()


@pytest.mark.parametrize("where", ["activate", "deactivate"])
def test_an_error_in_activate_or_deactivate_stops_the_topology(where: str) -> None:
    """W22."""
    rig = _acting(Acting(where, "raises"))
    rig.workers[0].set_active(False)
    (task,) = rig.tasks("s")
    _until(rig, lambda: task.fatal)
    assert f"raised in {where}" in task.fatal.text and "raised by the test" in task.fatal.text
    rig.cluster.abandon()


def test_an_error_in_the_first_open_is_raised() -> None:
    """B2."""
    with pytest.raises(ComponentError, match=r"s\[0\].*raised in open(.|\n)*raised by the test"):
        _acting(Acting("open", "raises"))
    assert _told("began") == ["open"]


def test_what_starts_as_inactive_is_opened_by_the_first_activation() -> None:
    """B2: and an error in ``open`` stops the topology then."""
    builder = TopologyBuilder()
    builder.set_spout("s", Acting("open", "raises"))
    rig = Rig(builder, 1, active=False)
    rig.batches(2)
    assert TOLD == []
    rig.workers[0].set_active(True)
    (task,) = rig.tasks("s")
    _until(rig, lambda: task.fatal)
    assert "raised in open" in task.fatal.text
    assert _told("began") == ["open"]
    rig.cluster.abandon()


# -- what an instance asks of its context --------------------------------------------------------------------------


class Counts(TaskHook):
    """Counts emits."""

    def prepare(self, conf: Any, context: Any) -> None:
        TOLD.append(("hook", "prepared"))

    def emit(self, info: Any) -> None:
        TOLD.append(("emit", info.values))


class Asks(Acts):
    """Uses all services of its context."""

    async def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.context = collector, context
        context.add_task_hook(Counts())
        self.seen = context.register_metric("seen", CountMetric(), 1)
        with pytest.raises(RuntimeError, match="there is a metric 'seen' already"):
            context.register_metric("seen", CountMetric(), 1)
        context.set_timer(0.001, lambda: TOLD.append(("timer", threading.get_ident())))
        collector.emit((-1,), anchors=())
        await asyncio.sleep(0)

    async def execute(self, tup: Any) -> None:
        self.seen.incr()
        with pytest.raises(RuntimeError, match="too late: register it in open or prepare"):
            self.context.register_metric("more", CountMetric(), 1)
        with pytest.raises(RuntimeError, match="too late: add it in open or prepare"):
            self.context.add_task_hook(Counts())
        self.collector.emit((tup[0],))


def test_timers_metrics_and_hooks_of_an_async_component() -> None:
    """W20, J18, J21: and hooks hear of the emits of ``prepare``."""
    builder = two(Asks(), ROWS)
    builder.set_bolt("keep", Keep()).shuffle_grouping("b")
    rig = _rig(builder)
    _until(rig, lambda: len(acks_of(rig.users("a")[0])) == 5 and _told("timer"))
    assert _told("hook") == ["prepared"]
    assert sorted(_told("emit")) == [(n,) for n in range(-1, 5)]
    assert set(_told("timer")) == {threading.get_ident()}
    (task,) = rig.tasks("b")
    assert task.counters.restarts == 0
    rig.cluster.abandon()


# -- the end -------------------------------------------------------------------------------------------------------


def _close(rig: Rig) -> None:
    closing = threading.Thread(target=rig.workers[0].close, daemon=True)
    closing.start()
    closing.join(_LONG)
    assert not closing.is_alive()


@pytest.fixture
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "STOP_SECS", 2.0)
    monkeypatch.setattr(spout_executor, "STOP_SECS", 2.0)


class Neighbour(Acts):
    """Is in the same worker, and waits for nothing."""


def _with_neighbour(bolt: AsyncBolt) -> Rig:
    builder = two(bolt, ROWS[:1])
    builder.set_bolt("z", Neighbour()).shuffle_grouping("b")
    return _rig(builder)


@pytest.mark.slow
@pytest.mark.usefixtures("_short")
def test_a_cleanup_that_never_returns_takes_no_cleanup_from_another_task(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """C1."""
    rig = _with_neighbour(Acts(cleans="waits"))
    _close(rig)
    assert {type(one) for one in _told("cleanup")} == {Acts, Neighbour}
    assert f"b[0]: has not returned from its cleanup ({__file__}:" in caplog.text


@pytest.mark.slow
@pytest.mark.usefixtures("_short")
def test_a_call_that_blocks_the_loop_does_not_hold_up_a_stop_for_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """C1: the warning names the line that blocks."""
    rig = _with_neighbour(Acts(executes="blocks"))
    _until(rig, lambda: _told("execute"))
    _close(rig)
    assert _told("cleanup") == []
    for task in ("b[0]", "z[0]"):
        assert f"{task}: its cleanup could not begin, because the event loop is blocked at" in caplog.text
    assert "test_async_life.py" in caplog.text


@pytest.mark.slow
@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("where", ["deactivate", "close"])
def test_a_last_call_of_a_spout_that_never_returns_does_not_hold_up_a_stop_for_ever(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    """B1, B13."""
    rig = _acting(Acting(where, "waits"))
    _close(rig)
    assert _told("began")[-1] == where
    assert f"s[0]: has not returned from its {where} ({__file__}:" in caplog.text


@pytest.mark.slow
@pytest.mark.usefixtures("_short")
def test_a_spout_whose_ack_never_returns_is_closed_nevertheless(caplog: pytest.LogCaptureFixture) -> None:
    """B1, B3."""
    rig = _acting(Acting("ack", "waits"))
    _until(rig, lambda: "ack" in _told("began"))
    _close(rig)
    assert _told("ended")[-2:] == ["deactivate", "close"]
    place = f"{__file__}:{Gate.wait.__code__.co_firstlineno + 6}"
    assert f"ack of s[0] ({place}) has not returned for" in caplog.text
    assert [call.code for call in rig.workers[0].services.not_returned.values()] == [f"ack of s[0] ({place})"]


@pytest.mark.slow
def test_an_async_call_that_never_returns_holds_up_the_stop_of_an_exactly_once_topology_for_some_seconds_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """C44: the batch is taken back."""
    monkeypatch.setattr(executors, "STOP_SECS", 0.3)
    builder = two(Acts(executes="waits"), ROWS[:1])
    with running(builder.create_topology("once"), **{"stormspark.exactly.once": True}) as topology:
        until(lambda: _told("execute"))
        stopping = threading.Thread(target=topology.stop, daemon=True)
        stopping.start()
        stopping.join(_LONG)
        assert not stopping.is_alive()
    assert topology.error is None
    call = f"execute of b[0] ({__file__}:{Gate.wait.__code__.co_firstlineno + 6})"
    assert (
        f"1 of its calls have not returned, and the topology stops; {call} has been under way for"
        in caplog.text
    )
    assert [left.code for left in topology.statistics().components["b"].not_returned] == [call]
    assert len(_told("cleanup")) == 1


# -- calls that emit a lot -----------------------------------------------------------------------------------------


class Floods(Acts):
    """Emits 20,000 tuples per call, and awaits something after each."""

    capacity = 2

    def __init__(self, ordered: bool) -> None:
        self.ordered = ordered

    async def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    async def execute(self, tup: Any) -> None:
        for n in range(20_000):
            self.collector.emit((n,))
            TOLD.append(("emitted", tup[0]))
            await asyncio.sleep(0)


@pytest.mark.slow
@pytest.mark.parametrize("ordered", [False, True])
def test_a_call_that_emits_for_long_waits_for_room(ordered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """F3: at most 4,096 notes of a task wait, and one more per call. If results leave in order, the notes of each later call are
    counted with its own.
    """
    most = 0

    def full(self: Any, call: Any) -> bool:
        nonlocal most
        most = max(most, len(self._notes) + len(call.notes))
        return is_full(self, call)

    is_full = bolt_executor.AsyncBoltExecutor._is_full
    monkeypatch.setattr(bolt_executor.AsyncBoltExecutor, "_is_full", full)
    builder = two(Floods(ordered), ROWS[:2])
    builder.set_bolt("keep", Keep()).shuffle_grouping("b")
    rig = _rig(builder)
    (task,) = rig.tasks("b")
    _until(rig, lambda: task.outside == 2)
    wait_for(lambda: task.bolt._lacks_room)
    keep = rig.users("keep")[0]
    _until(rig, lambda: len(keep.came) == 40_000)
    _until(rig, lambda: len(acks_of(rig.users("a")[0])) == 2)
    assert most <= (2 * 4096 if ordered else 4096) + 2
    rig.cluster.abandon()
