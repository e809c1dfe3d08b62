"""Calls of coroutines that await something for ever: another thread sees them, and knows who waits for them (B1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import pytest

from stormspark import AsyncBolt, AsyncSpout, Fields, TopologyBuilder
from stormspark.testing import FixedTupleSpout
from stormspark.user_line import CodePlace
from stormspark.worker.busy import Busy
from stormspark.worker.core import Worker
from stormspark.worker.under_way import _with_blocked
from tests.unit.worker.executors.runs import running, until
from tests.unit.worker.rig import two

#: While it is set, coroutines await something.
_waits = Event()


@pytest.fixture(autouse=True)
def _begin() -> Iterator[None]:
    _waits.set()
    yield
    _waits.clear()


async def _wait() -> None:
    while _waits.is_set():
        await asyncio.sleep(0.002)


async def _answer() -> None:
    await _wait()


ANSWER = f"{__file__}:{_wait.__code__.co_firstlineno + 2}"


class Asks(AsyncBolt):
    """Awaits something in ``prepare`` or in ``execute``, as ``where`` says."""

    def __init__(self, where: str) -> None:
        self.where = where

    async def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        if self.where == "prepare":
            await _answer()

    async def execute(self, tup: Any) -> None:
        if self.where == "execute" and tup[0] == 1:
            await _answer()

    def declare_output_fields(self, declarer: Any) -> None:
        """Emits nothing."""


class Hears(AsyncSpout):
    """Emits one tuple, and awaits something when it hears of its ack."""

    async def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.next = collector, 0

    async def next_tuple(self) -> None:
        if not self.next:
            self.next = 1
            self.collector.emit((0,), message_id=0)
        await asyncio.sleep(1000)

    async def ack(self, message_id: Any) -> None:
        await _answer()

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


def _call_of(worker: Worker, task: str) -> Callable[[], Busy | None]:
    def call() -> Busy | None:
        return next((busy for busy in worker.under_way.calls() if busy.awaits and busy.task == task), None)

    return call


def _seen(worker: Worker, task: str) -> tuple[Busy, CodePlace | None]:
    """Return what another thread sees of a task's call, and the place of the call."""
    until(lambda: (busy := _call_of(worker, task)()) is not None and busy.place is not None)
    busy = _call_of(worker, task)()
    assert busy is not None
    return busy, busy.place


@contextmanager
def _worker_of(builder: TopologyBuilder, **conf: Any) -> Iterator[Worker]:
    with running(builder.create_topology("awaits"), **conf) as started:
        try:
            yield started.workers.workers[0]
        finally:
            _waits.clear()


def test_a_call_that_awaits_for_ever_is_named_with_its_line() -> None:
    """B1: at least once, only its own tuple waits for it."""
    with _worker_of(two(Asks("execute"), [(n,) for n in range(3)])) as worker:
        busy, place = _seen(worker, "b[0]")
        assert (busy.alone, busy.opens, busy.of_spout) == (True, False, False)
        assert place == ("execute", ANSWER)
        assert worker.under_way.calls(1000.0) == []
        _waits.clear()
        until(lambda: _call_of(worker, "b[0]")() is None)


def test_a_batch_of_a_transaction_waits_for_a_call_that_awaits() -> None:
    with _worker_of(
        two(Asks("execute"), [(n,) for n in range(3)]), **{"stormspark.exactly.once": True}
    ) as worker:
        busy, place = _seen(worker, "b[0]")
        assert not busy.alone and place == ("execute", ANSWER)


def test_a_prepare_that_awaits_for_ever_is_named_while_the_worker_opens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker waits for it from its beginning, although the worker's thread looks at it again and again."""
    seen: list[Busy] = []

    def look(worker: Worker) -> None:
        try:
            _seen(worker, "b[0]")
            until(lambda: worker.under_way.calls(0.11) != [])
            seen.extend(worker.under_way.calls())
        finally:
            _waits.clear()

    opens = Worker.open

    def open_and_look(worker: Worker, active: bool = True) -> None:
        Thread(target=look, args=[worker]).start()
        opens(worker, active)

    monkeypatch.setattr(Worker, "open", open_and_look)
    with _worker_of(two(Asks("prepare"), [])):
        until(lambda: bool(seen))
    (busy,) = seen
    assert (busy.task, busy.place) == ("b[0]", ("prepare", ANSWER))
    assert (busy.opens, busy.alone, busy.starts_again) == (True, False, False)


class StartsAgain(Asks):
    """Raises in ``execute``, and awaits something in the ``prepare`` that follows."""

    raised = Event()

    async def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        if StartsAgain.raised.is_set():
            await _answer()

    async def execute(self, tup: Any) -> None:
        StartsAgain.raised.set()
        raise ValueError("a bad tuple")


def test_a_prepare_at_a_restart_is_known_to_hold_up_its_own_task_alone() -> None:
    """There may be a limit for it nevertheless."""
    StartsAgain.raised.clear()
    with _worker_of(two(StartsAgain("execute"), [(1,)])) as worker:
        until(lambda: (busy := _call_of(worker, "b[0]")()) is not None and busy.opens)
        busy, place = _seen(worker, "b[0]")
        assert (busy.opens, busy.starts_again, busy.alone) == (True, True, False)
        assert place == ("prepare", ANSWER)


def test_an_ack_of_a_spout_that_awaits_for_ever_is_named_and_a_next_tuple_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("stormspark.worker.asynchronous.spout_executor.STOP_SECS", 0.0)
    builder = TopologyBuilder()
    builder.set_spout("a", Hears())
    builder.set_bolt("b", Asks("nowhere")).shuffle_grouping("a")
    with _worker_of(builder) as worker:
        busy, place = _seen(worker, "a[0]")
        assert (busy.alone, busy.of_spout, place) == (True, True, ("ack", ANSWER))


BLOCKED = Busy("b[0]", 3.0, alone=True, on_loop=True, place=CodePlace("execute", "b.py:7"))
WAITS = Busy("b[0]", 4.0, awaits=True)


def test_a_batch_waits_also_for_a_call_that_blocks_the_loop() -> None:
    assert _with_blocked([WAITS], BLOCKED) == [BLOCKED._replace(alone=False)]
    assert _with_blocked([WAITS._replace(opens=True)], BLOCKED) == [BLOCKED._replace(alone=False, opens=True)]


def test_calls_that_only_wait_for_a_blocked_loop_are_not_named() -> None:
    """Also if short calls of one task block the loop again and again, nobody waits for one call of it."""
    assert _with_blocked([Busy("c[0]", 4.0, alone=True, awaits=True)], BLOCKED) == [BLOCKED]
    assert _with_blocked([WAITS._replace(seconds=1.0)], BLOCKED) == [BLOCKED]


class WaitsAlways(Asks):
    """Awaits something for each tuple."""

    async def execute(self, tup: Any) -> None:
        await _answer()


def test_an_end_cuts_off_calls_that_wait_for_a_blocked_loop_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """B1, C1: of each task, the oldest call is named, and the others are counted."""
    builder = two(WaitsAlways("execute"), [(n,) for n in range(3)])
    builder.set_bolt("c", WaitsAlways("execute")).all_grouping("a")
    with _worker_of(builder) as worker:

        def others() -> dict[str, int]:
            return {busy.task: busy.others for busy in worker.under_way.all() if busy.component in "bc"}

        until(lambda: others() == {"b[0]": 2, "c[0]": 2})
        blocked = BLOCKED._replace(seconds=1000.0)
        monkeypatch.setattr(worker.services, "blocked_loop", lambda: blocked)
        assert [busy for busy in worker.under_way.calls() if busy.component in "bc"] == [blocked]
        first, second = (busy for busy in worker.under_way.all() if busy.component in "bc")
        assert first == blocked._replace(others=2)
        assert (second.task, second.place, second.others) == ("c[0]", ("execute", ANSWER), 2)


@pytest.mark.parametrize(("parallel", "most"), [(3, 2), (3, 3), (3, 6), (1, 6)])
def test_a_heartbeat_has_some_calls_and_counts_all(
    parallel: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J2: a second Ctrl-C on Spark names and counts what it does on the local engine."""
    monkeypatch.setattr("stormspark.worker.under_way._MOST_IN_BEAT", most)
    builder = TopologyBuilder()
    builder.set_spout("a", FixedTupleSpout([(n,) for n in range(4)], Fields("n")))
    builder.set_bolt("b", WaitsAlways("execute"), parallel).all_grouping("a")
    with _worker_of(builder) as worker:
        until(lambda: sum(busy.calls for busy in worker.under_way.all() if busy.awaits) == 4 * parallel)
        every = worker.under_way.all()
        monkeypatch.setattr(worker.under_way, "all", lambda: every)  # the spout may begin a call meanwhile
        some = worker.under_way.some()
        assert len(some) == min(len(every), most)
        assert [busy.code for busy in some] == [busy.code for busy in every[: len(some)]]
        assert sum(busy.calls for busy in some) == sum(busy.calls for busy in every)
