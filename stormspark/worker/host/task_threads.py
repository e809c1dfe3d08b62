"""Finds out which task's code the calling thread runs, for logs, for prints, and if that code ends the process.

Five kinds of threads run code of tasks:

- The worker's thread and the executors' own threads say when they enter the code of a task (`TaskThreads.enter`).
- The coroutines of async components share a thread. Each one carries the name of its task in a context variable, which the
  coroutines and calls of ``asyncio.to_thread`` that it starts inherit.
- The pool of threads that all tasks share runs each call as code of the task that has submitted the call (`carry`).
- A thread that code of a task has started belongs to that task (`inherit`), and so do the threads that this thread starts.

Nothing here runs once per tuple, except for one assignment when another task's turn begins.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from functools import partial
from threading import get_ident
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary

__all__ = ["RunningCode", "TaskThreads", "as_code", "carry", "inherit", "running_code", "running_task"]

_T = TypeVar("_T")


class RunningCode(NamedTuple):
    """Code of a topology that runs now. ``task`` is the name of its task; None for code of the worker itself."""

    threads: TaskThreads
    task: str | None


#: For each thread that is the worker's thread of a topology or of several ones, these topologies' `TaskThreads`. A program that
#: drives the clock of local topologies has several of them on one thread.
_workers: dict[int, tuple[TaskThreads, ...]] = {}
#: For each of the executors' own threads, its topology's `TaskThreads`.
_executors: dict[int, TaskThreads] = {}
#: The code that has started a thread of user code.
_started: WeakKeyDictionary[threading.Thread, RunningCode] = WeakKeyDictionary()
#: For each thread that does something for other code, this code (`as_code`).
_stands_for: dict[int, RunningCode | None] = {}
#: The task of a coroutine.
_coroutine: ContextVar[RunningCode | None] = ContextVar("stormspark_task", default=None)


class TaskThreads:
    """The threads of one topology in this process. The thread that has called `follow` last is the worker's thread."""

    def __init__(self) -> None:
        #: The task whose code the worker's thread runs; None for the worker's own code.
        self.current: str | None = None
        self._on_threads: dict[int, str] = {}
        self._contexts: dict[str, Context] = {}
        self._worker = 0

    def follow(self) -> None:
        """Take the calling thread for the worker's thread from now on."""
        self._leave_worker()
        self._worker = get_ident()
        _workers[self._worker] = (*_workers.get(self._worker, ()), self)

    def enter_on_thread(self, task: str) -> None:
        """Remember that the calling thread, an executor's own, runs code of ``task`` from now on."""
        thread = get_ident()
        self._on_threads[thread] = task
        _executors[thread] = self

    def context_of(self, task: str) -> Context:
        """Return a context for a coroutine of ``task``."""
        context = self._contexts.get(task)
        if context is None:
            context = self._contexts[task] = copy_context()
            context.run(_coroutine.set, RunningCode(self, task))
        return context.copy()

    def forget(self) -> None:
        """Forget all threads, because the topology has ended."""
        self._leave_worker()
        for thread in list(self._on_threads):
            if _executors.get(thread) is self:
                del _executors[thread]

    def _leave_worker(self) -> None:
        others = tuple(one for one in _workers.get(self._worker, ()) if one is not self)
        if others:
            _workers[self._worker] = others
        else:
            _workers.pop(self._worker, None)

    def on_executor(self, thread: int) -> RunningCode:
        """Return the code that an executor's own thread runs."""
        return RunningCode(self, self._on_threads.get(thread))


def running_code(thread: int | None = None) -> RunningCode | None:
    """Return the code of a topology that a thread runs, by default the calling one. None for a thread of nobody's."""
    here = get_ident()
    thread = thread or here
    if thread in _stands_for:
        return _stands_for[thread]
    if owners := _workers.get(thread):
        busy = next((one for one in owners if one.current is not None), owners[-1])
        return RunningCode(busy, busy.current)
    if executor := _executors.get(thread):
        return executor.on_executor(thread)
    if thread != here:
        return None
    return _coroutine.get() or _started.get(threading.current_thread())


def running_task() -> str | None:
    """Return the task whose code runs on the calling thread, such as ``count[2]``; None if it is nobody's."""
    code = running_code()
    return None if code is None else code.task


@contextmanager
def as_code(code: RunningCode | None) -> Iterator[None]:
    """Let the calling thread count as a thread that runs ``code`` while the block lasts."""
    thread = get_ident()
    _stands_for[thread] = code
    try:
        yield
    finally:
        del _stands_for[thread]


def carry(call: Callable[..., _T]) -> Callable[..., _T]:
    """Return a function that calls ``call`` in another thread as code of the task that runs now. Return ``call`` if none runs."""
    code = running_code()
    if code is None or code.task is None:
        return call
    return partial(code.threads.context_of(code.task).run, call)


def inherit(thread: threading.Thread) -> None:
    """Remember that ``thread``, which is about to start, belongs to the task whose code starts it, if that is a task."""
    code = running_code()
    if code is not None and code.task is not None:
        _started[thread] = code
