"""User code that calls ``sys.exit``, or raises what ends a program: it ends its own call, and no other task (W22)."""

from __future__ import annotations

import gc
from typing import Any
from weakref import ref

import pytest
from greenlet import getcurrent

from stormspark import TopologyBuilder
from stormspark.errors import ComponentError, StormsparkError
from stormspark.local import submit
from tests.unit.worker.executors.runs import Numbers, Repeat, Told, running, tasks, until
from tests.waiting import wait_for

BOTH = pytest.mark.parametrize("threads", ["always", "never"])
ENDS = pytest.mark.parametrize("end", [SystemExit(3), GeneratorExit()], ids=["exit", "generator"])
#: What the code still has to raise.
to_raise: list[BaseException] = []
#: What `RemembersThread` remembers.
hubs: list[Any] = []


def _raise_once() -> None:
    if to_raise:
        raise to_raise.pop()


@pytest.fixture(autouse=True)
def _begin() -> None:
    to_raise.clear()


class Raises(Repeat):
    """Raises once, in one of its methods."""

    def __init__(self, where: str) -> None:
        self.where = where

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        super().prepare(conf, context, collector)
        if self.where == "prepare":
            _raise_once()
        if self.where == "timer":
            context.set_timer(0.001, _raise_once)

    def execute(self, tup: Any) -> None:
        if self.where == "execute":
            _raise_once()
        super().execute(tup)


class RaisingNumbers(Numbers):
    """Raises once, in its first call of ``next_tuple``."""

    def next_tuple(self) -> None:
        _raise_once()
        super().next_tuple()


class RemembersThread(RaisingNumbers):
    """Remembers the main greenlet of the worker's thread, which it does not keep."""

    def next_tuple(self) -> None:
        hubs.append(ref(getcurrent().parent))
        super().next_tuple()


def _topology(spout: Numbers, bolt: Repeat) -> Any:
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout)
    builder.set_bolt("bolt", bolt).shuffle_grouping("numbers")
    builder.set_bolt("end", Repeat()).shuffle_grouping("bolt")
    return builder.create_topology("exits")


@ENDS
@BOTH
def test_an_execute_that_exits_fails_its_tuple_and_restarts_its_task(
    threads: str, end: BaseException
) -> None:
    to_raise.append(end)
    told = Told("exits in execute")
    topology = _topology(Numbers([1, 2, 3], told), Raises("execute"))
    with running(topology, **{"stormspark.executor.threads": threads}) as local:
        until(lambda: len(told.all) == 3)
        assert [task.counters.restarts for task in tasks(local, "bolt")] == [1]
        assert local.error is None
    ((_, message_id, reason),) = (what for what in told.all if what[0] == "fail")
    assert message_id == "1"
    assert type(end).__name__ in reason
    assert sorted(what for what in told.all if what[0] == "ack") == [("ack", "2"), ("ack", "3")]


@ENDS
@BOTH
def test_a_timer_that_exits_restarts_its_task(threads: str, end: BaseException) -> None:
    to_raise.append(end)
    told = Told("exits in a timer")
    topology = _topology(Numbers([1, 2, 3], told), Raises("timer"))
    with running(topology, **{"stormspark.executor.threads": threads}) as local:
        (bolt,) = tasks(local, "bolt")
        until(lambda: len(told.all) == 3 and bolt.counters.restarts == 1)
        assert local.error is None


@ENDS
@BOTH
def test_a_next_tuple_that_exits_restarts_its_task(threads: str, end: BaseException) -> None:
    to_raise.append(end)
    told = Told("exits in next_tuple")
    topology = _topology(RaisingNumbers([1, 2, 3], told), Raises("nowhere"))
    with running(topology, **{"stormspark.executor.threads": threads}) as local:
        until(lambda: len(told.all) == 3)
        assert [task.counters.restarts for task in tasks(local, "numbers")] == [1]
    assert sorted(told.all) == [("ack", "1"), ("ack", "2"), ("ack", "3")]


def test_an_error_that_somebody_keeps_does_not_keep_the_greenlet_of_the_workers_thread() -> None:
    """Else the main thread looks for its owner among all objects, wherever it is, when the worker's thread has ended."""
    hubs.clear()
    kept = ValueError("kept")
    to_raise.append(kept)
    told = Told("keeps an error")
    with running(
        _topology(RemembersThread([1], told), Raises("nowhere")), **{"stormspark.executor.threads": "never"}
    ):
        until(lambda: told.all)

    def is_gone() -> bool:
        gc.collect()  # the spout's task and its greenlets are in cycles
        return hubs[0]() is None

    wait_for(is_gone, message="the greenlet is still there")
    assert kept.__traceback__ is not None


@ENDS
@BOTH
def test_a_prepare_that_exits_is_refused_with_the_reason(threads: str, end: BaseException) -> None:
    to_raise.append(end)
    topology = _topology(Numbers([], Told("exits in prepare")), Raises("prepare"))
    with pytest.raises(ComponentError, match=f"raised in prepare: {type(end).__name__}"):
        submit(topology, conf={"stormspark.executor.threads": threads})


def test_an_interrupt_on_the_workers_thread_ends_the_topology_with_an_error() -> None:
    """There it may be the user who interrupts a test on a simulated clock, so no rule of tasks applies."""
    to_raise.append(KeyboardInterrupt())
    topology = _topology(Numbers([1], Told("interrupts")), Raises("execute"))
    with running(topology, **{"stormspark.executor.threads": "never"}) as local:
        assert local.wait(60)
        with pytest.raises(StormsparkError, match="its code raised KeyboardInterrupt"):
            local.run_until_idle()


def test_an_interrupt_on_an_executors_thread_restarts_its_task() -> None:
    """No user can interrupt that thread."""
    to_raise.append(KeyboardInterrupt())
    told = Told("interrupts a thread")
    topology = _topology(Numbers([1, 2], told), Raises("execute"))
    with running(topology) as local:
        until(lambda: len(told.all) == 2)
        assert local.error is None
    assert told.all[0] == ("fail", "1", "RuntimeError: execute raised KeyboardInterrupt: ")
