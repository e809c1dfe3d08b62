"""A thread of a bolt may ack a tuple at any time, also in the moment in which ``execute`` returns."""

from __future__ import annotations

from threading import Thread
from typing import Any

from stormspark import Tuple
from stormspark.api.tuple_state import HELD
from stormspark.worker.executors.bolt_runner import ThreadedRunner


class _Looks:
    """Stands for the set of the tuples that may be held: it looks at the tuples that it gets."""

    def __init__(self) -> None:
        self.states: list[int] = []

    def add(self, tup: Tuple) -> None:
        """Look at the state."""
        thread = Thread(target=lambda: self.states.append(tup.state))
        thread.start()
        thread.join()


def test_a_tuple_is_known_to_the_bolts_task_before_it_is_held() -> None:
    runner = ThreadedRunner.__new__(ThreadedRunner)
    runner.bolt = type("Keeps", (), {"execute": lambda self, tup: None})()
    looks: Any = _Looks()
    runner.may_hold = looks
    roots: Any = object()
    tup = Tuple((1,), None, roots)  # type: ignore[arg-type]
    runner.call(tup)
    assert tup.state == HELD
    assert HELD not in looks.states
