"""The thread of one executor."""

from __future__ import annotations

import threading
import time
from collections import deque

import pytest

from stormspark.worker.executors.bell import Bell
from stormspark.worker.executors.thread import ExecutorThread
from tests.waiting import wait_for


class Turns:
    """A task that has some turns to take, and writes down which thread takes them."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self.log = name, log
        self.left: deque[int] = deque()
        self.threads: set[int] = set()

    def take_turn(self) -> bool:
        if not self.left:
            return False
        self.left.popleft()
        self.threads.add(threading.get_ident())
        self.log.append(self.name)
        return True


def thread(bell: Bell | None = None) -> ExecutorThread:
    rung = bell or Bell()
    return ExecutorThread(
        "bolt:0", clock=time.monotonic, ring=rung.ring, serve=lambda _: None, enter=lambda _: None
    )


def test_tasks_of_one_executor_take_turns_on_one_thread() -> None:
    """A16, A17."""
    log: list[str] = []
    executor, one, two = thread(), Turns("one", log), Turns("two", log)
    executor.tasks += [one, two]
    one.left.extend(range(3))
    two.left.extend(range(3))
    executor.wake()
    wait_for(lambda: len(log) == 6, message="six turns")
    assert log == ["one", "two"] * 3
    assert len(one.threads) == 1 and one.threads == two.threads
    assert threading.get_ident() not in one.threads
    executor.end()


def test_a_call_is_waited_for_and_its_error_raised() -> None:
    """It runs on the executor's thread."""
    executor = thread()
    assert executor.run("bolt[0]", threading.get_ident) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        executor.run("bolt[0]", lambda: 1 // 0)
    executor.end()


@pytest.mark.slow
def test_no_wake_up_is_lost() -> None:
    """A thread that is about to sleep looks again."""
    log: list[str] = []
    executor, task = thread(), Turns("one", log)
    executor.tasks.append(task)
    for number in range(300):
        task.left.append(number)
        executor.wake()
        if number % 30 == 0:
            wait_for(lambda: not task.left, message="the turn")
    wait_for(lambda: len(log) == 300, message="all turns")
    executor.end()


def test_a_call_that_runs_is_named() -> None:
    """B1: with the time since when it runs."""
    executor, goes_on = thread(), threading.Event()
    executor.submit("bolt[0]", goes_on.wait)
    wait_for(lambda: executor.at is not None, message="the call")
    assert executor.at is not None and executor.at[0] == "bolt[0]"
    assert executor.at_for[0] == "bolt[0]" and executor.at_for[1] >= 0
    goes_on.set()
    wait_for(lambda: executor.at is None, message="its end")
    executor.end()


class Slow(ExecutorThread):
    """Is slow to go on after a call."""

    def _do_one_thing(self) -> bool:
        busy = super()._do_one_thing()
        time.sleep(0.001)
        return busy

    def __setattr__(self, name: str, value: object) -> None:
        if name == "at" and value is None:
            time.sleep(0.001)
        super().__setattr__(name, value)


def test_no_call_is_under_way_once_it_was_waited_for() -> None:
    """The next task of the executor would think that the call is stuck, and get no cleanup."""
    executor = Slow(
        "bolt:0",
        clock=time.monotonic,
        ring=lambda: None,
        serve=lambda _: time.sleep(0),
        enter=lambda _: None,
    )
    try:
        for n in range(20):
            assert executor.run("bolt[0]", lambda n=n: n) == n
            assert executor.at is None
    finally:
        executor.end()
