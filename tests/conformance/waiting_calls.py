"""Executors on threads of their own, whose calls and emits wait at random."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from threading import current_thread, local
from typing import Any
from unittest.mock import patch

from stormspark.worker.executors.notes import Notes
from stormspark.worker.executors.thread import ExecutorThread

__all__ = ["ON_THREADS", "calls_that_wait"]

#: Each executor has a thread, whatever the code of its component.
ON_THREADS = {"stormspark.executor.threads": "always"}
_MOST_SECS = 0.003
#: One in so many calls, emits and acks waits. Later it is one in ten times as many, because some tests send thousands of tuples.
_ONE_IN = 4
_OFTEN = 200


class _Waits(local):
    """The waits of one thread: they follow from the seed and the name of the thread."""

    def __init__(self, seed: object) -> None:
        self.random = Random(f"{seed} {current_thread().name}")
        self.number = 0

    def maybe(self) -> None:
        self.number += 1
        one_in = _ONE_IN if self.number < _OFTEN else 10 * _ONE_IN
        if self.random.random() * one_in < 1:
            time.sleep(self.random.uniform(0, _MOST_SECS))


@contextmanager
def calls_that_wait(seed: object) -> Iterator[None]:
    """Let user code on executors' threads wait for up to 3 ms, now and then: as it is called, and before and after what it does.

    Every order of events that comes of this is one that waiting user code may cause.
    """
    waits = _Waits(seed)

    def waiting(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *args: Any) -> Any:
            if name == "add":
                waits.maybe()
            result = real(self, *args)
            waits.maybe()
            return result

        return call

    with (
        patch.object(ExecutorThread, "enter", waiting("enter", ExecutorThread.enter)),
        patch.object(Notes, "add", waiting("add", Notes.add)),
    ):
        yield
