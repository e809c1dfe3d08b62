"""The call of user code that runs now in a worker: whose code it is, and when the call began."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from threading import get_ident

from stormspark.user_line import CodePlace
from stormspark.worker.asynchronous.life import AsyncExecutor
from stormspark.worker.busy import Busy
from stormspark.worker.host.task_logs import TaskLogs
from stormspark.worker.host.watchman import note_task, note_thread
from stormspark.worker.task import Task

__all__ = ["CurrentCall"]

#: If a worker has been in one task's code for longer than this, another thread checks whether that is one long call.
_LONG_SECONDS = 0.1


class CurrentCall:
    """The current call of a worker's thread. That thread writes it. Another thread reads it, to say why the worker does not
    answer. Calls on executors' own threads are not recorded here.

    If ``logs`` is not None, it is switched to the log file of each task whose code runs.
    """

    def __init__(self, clock: Callable[[], float], logs: TaskLogs | None = None) -> None:
        self._clock, self._logs = clock, logs
        #: The name of the task whose code runs, or of other code such as a worker hook, and the time when the code began. None
        #: while no user code runs.
        self.at: tuple[str, float] | None = None
        #: Whether the worker is starting, which may take long.
        self.opening = False
        #: The worker's thread.
        self.thread = get_ident()
        self._inside: Task | None = None
        #: The value of `at` that `look` saw, and the time when `look` last noticed that a call of that task had returned. Only
        #: the thread that calls `look` writes this attribute. So `look` can't undo what the worker's thread writes to `at` at
        #: the same time.
        self._looked: tuple[tuple[str, float], float] | None = None

    def enter(self, task: Task | None) -> None:
        """Remember that the code of ``task`` runs from now on. If ``task`` is None, no user code runs."""
        self._inside = task
        name = None if task is None else task.name
        self.at = None if name is None else (name, self._clock())
        note_task(name)
        if self._logs is not None:
            self._logs.enter(name)

    def enter_on_thread(self, task: str) -> None:
        """Switch the log of the calling thread, which is an executor's own, to the log of the task named ``task``."""
        note_thread(task)
        if self._logs is not None:
            self._logs.enter_on_thread(task)

    def context_of(self, task: str) -> Context | None:
        """Return a context for a coroutine of the task named ``task``, in which logs and prints go to the task's log. None if
        tasks have no logs of their own.
        """
        return None if self._logs is None else self._logs.context_of(task)

    def enter_other(self, name: str | None) -> None:
        """Remember that user code outside of tasks runs from now on, such as code of a class whose object is unpickled. If
        ``name`` is None, this code has returned.
        """
        self.at = None if name is None else (name, self._clock())

    def returned(self, task: Task, now: float) -> None:
        """Remember that a chunk of calls of ``task`` has returned. The last call of `enter` must have named the same task."""
        self.at = (task.name, now)

    def runs_in(self, thread: int) -> bool:
        """Return whether ``thread`` is the worker's thread, and is in user code now."""
        return thread == self.thread and self.at is not None

    # -- on the other thread -------------------------------------------------------------------------------------

    def busy(self) -> Busy | None:
        """Return which call the worker's thread is in, and for how long; None if it is in no call.

        `Busy.opens` is true while an instance starts. Instances start not only with the worker, but also after an exception, at
        an activation, and when a batch runs again.
        """
        at, task = self.at, self._inside
        if at is None:
            return None
        now, begins = self._clock(), None if task is None else task.begins_since
        if begins is not None:
            return Busy(at[0], now - begins, True)
        since = self._since(at)
        return Busy(at[0], now - max(since, since if task is None else task.begun_at), self.opening)

    @property
    def place_on_loop(self) -> CodePlace | None:
        """If the worker's thread waits for a coroutine of the task, such as its ``cleanup``, where the coroutine is."""
        instance = None if (task := self._inside) is None else task.instance
        return instance.place_in_code if isinstance(instance, AsyncExecutor) else None

    def look(self) -> None:
        """If the task has long been in a loop over many calls, cut the loop short, or notice that its calls do return.

        Otherwise `busy` would take the whole loop for one long call. Another thread calls this method several times per second.
        """
        at, task = self.at, self._inside
        if at is None or task is None or self._clock() - self._since(at) < _LONG_SECONDS:
            return
        if task.look():
            self._looked = at, self._clock()

    def _since(self, at: tuple[str, float]) -> float:
        """Return the time when ``at`` began, or the time when `look` last saw one of its calls return, if that was later."""
        looked = self._looked
        return looked[1] if looked is not None and looked[0] is at else at[1]
