"""The services of a worker for its tasks: contexts, timers, worker hooks, and a pool of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from threading import Lock
from typing import Any

from stormspark.acker import Ledger
from stormspark.api import Fields, TopologyContext, WorkerUserContext
from stormspark.grouping import without_wrapping
from stormspark.plan.physical import PhysicalPlan
from stormspark.worker.asynchronous.event_loop import EventLoop
from stormspark.worker.busy import Busy
from stormspark.worker.current_call import CurrentCall
from stormspark.worker.foreign_calls import watch_for_threads
from stormspark.worker.pools import SharedPool, end_pool
from stormspark.worker.stories.stories import Stories
from stormspark.worker.task import Task
from stormspark.worker.timers import Timers
from stormspark.worker.worker_hooks import WorkerHooks

__all__ = ["TaskServices"]

#: For how long `TaskServices.wait_for_starts` waits for a note before it looks at its tasks again.
_WAIT_SECONDS = 0.1


class TaskServices:
    """The services of one worker for its tasks. This class implements `stormspark.worker.task_host.Host`.

    ``epoch`` is the time, in seconds since 1970, at which ``clock`` stood at 0.
    """

    def __init__(
        self,
        plan: PhysicalPlan,
        index: int,
        *,
        clock: Callable[[], float],
        epoch: float,
        storm_id: str,
        call: CurrentCall,
        ledger: Ledger,
        stories: Stories,
    ) -> None:
        self.clock, self.ledger, self.stories = clock, ledger, stories
        self._plan, self._index, self._storm_id = plan, index, storm_id
        self._epoch, self._call = epoch, call
        self.timers = Timers(clock)
        self._hooks = WorkerHooks(plan, index, storm_id)
        self._executor_data: dict[tuple[str, int], dict[str, Any]] = {}
        self._threads: SharedPool | None = None
        self._making_threads = Lock()
        self._event_loop: EventLoop | None = None
        #: The tasks of the worker, once it opens. Any thread may read this.
        self.tasks: Iterable[Task] = ()
        #: The task whose ``execute`` or timer runs. That code may wait for threads that it has started.
        self.executing: Task | None = None
        #: The calls that had not returned when the topology stopped (B1, C1), by task, and by whether they blocked the loop.
        self.not_returned: dict[tuple[str, bool], Busy] = {}
        #: Whether user code has threads of its own (W26).
        self.guarded = False
        self._tasks_are_guarded = False
        #: Called when the worker ends, in whatever way.
        self.at_end: list[Callable[[], object]] = []

    def start(self, tasks: Iterable[Task]) -> None:
        """Start the worker hooks, and watch for threads that the code of these tasks starts."""
        self.tasks = tasks
        watch_for_threads(self)
        self._hooks.start()

    def shut_down(self) -> None:
        """End the worker hooks, the event loop and the shared threads."""
        self.end_event_loop()
        self._hooks.shutdown()
        self._end_pool()

    def cut_off(self) -> None:
        """Wait for no coroutine any longer. Any thread may call this."""
        if (loop := self._event_loop) is not None:
            loop.is_given_up = True

    def abandon(self) -> None:
        """End the event loop and the shared threads, and leave the worker hooks as they are."""
        self.end_event_loop()
        self._end_pool()

    @property
    def worker_context(self) -> WorkerUserContext:
        """The context of worker hooks and event loggers."""
        return self._hooks.context

    def _end_pool(self) -> None:
        for call in self.at_end:
            call()
        if self._threads is not None:
            end_pool(self._threads)

    def end_event_loop(self) -> None:
        """Cancel all coroutines."""
        if self._event_loop is not None:
            self._event_loop.end()
            self._event_loop = None

    # -- for tasks -----------------------------------------------------------------------------------------------

    @property
    def thread(self) -> int:
        """The id of the worker's thread."""
        return self._call.thread

    def epoch(self) -> float:
        """Return the time, in seconds since 1970, at which the clock stood at 0."""
        return self._epoch

    def set_timer(
        self, task: Task, seconds: float, callback: Callable[[], None], first: float | None = None
    ) -> None:
        """Call ``callback`` every ``seconds``. If ``first`` is given, make the first call after ``first`` seconds."""
        self.timers.add(task, seconds, callback, first)

    def clear_timers(self, task: Task) -> None:
        """Drop all timers of ``task``, because its instance has ended."""
        self.timers.remove(task)

    @property
    def shared_executor(self) -> Executor:
        """The thread pool of all tasks. It is made at its first use (A28)."""
        with self._making_threads:  # executors with threads of their own may read this at the same time
            if self._threads is None:
                self._threads = SharedPool(
                    self._plan.settings.shared_threads, f"{self._plan.topology}-{self._index}"
                )
            return self._threads

    def event_loop(self) -> EventLoop:
        """Return the event loop of all async components. It is made at its first use."""
        if self._event_loop is None:
            self._event_loop = EventLoop(
                f"asyncio-{self._plan.topology}-{self._index}", self._call.context_of
            )
        return self._event_loop

    def hear_loop(self) -> None:
        """Do what coroutines have noted for the worker's thread."""
        if self._event_loop is not None:
            self._event_loop.take_notes()

    def look_at_loop(self) -> None:
        """Look at where the event loop is; see `EventLoop.look`. Another thread calls this."""
        if (loop := self._event_loop) is not None:
            loop.look()

    def blocked_loop(self) -> Busy | None:
        """Return the call of a coroutine that blocks the event loop, if there is one. Another thread calls this."""
        return None if (loop := self._event_loop) is None else loop.blocked()

    def longest_blocks(self) -> tuple[Busy, ...]:
        """Return, for each component that has blocked the event loop, the call that did so longest at a time."""
        return () if (loop := self._event_loop) is None else tuple(loop.longest_blocks.values())

    def loop_has_notes(self) -> bool:
        """Return whether coroutines have noted something for the worker's thread."""
        return self._event_loop is not None and self._event_loop.has_notes()

    def wait_for_starts(self, tasks: Iterable[Task]) -> None:
        """Wait until all tasks of async components have started. Raise the `ComponentError` of the first one that can't start."""
        while task := next((task for task in tasks if task.starts_on_loop), None):
            assert self._event_loop is not None
            self._call.enter(task)
            self._event_loop.take_notes(_WAIT_SECONDS)
            for one in tasks:
                if one.start_error is not None:
                    raise one.start_error

    def gave_up(self, call: Busy | None) -> None:
        """Remember a call that had not returned when the topology stopped, if it is known which call that is."""
        if call is not None:
            self.not_returned[call.task, call.on_loop] = call

    @property
    def opening(self) -> bool:
        """Whether the worker is being opened. Meanwhile an error in ``open`` or ``prepare`` is raised. Later, such an error stops
        the running topology.
        """
        return self._call.opening

    def context(self, task: Task) -> TopologyContext:
        """Make the context for a new instance of ``task``."""
        plan = self._plan
        placed = plan.tasks[task.id]
        return TopologyContext(
            topology=plan.topology,
            storm_id=self._storm_id,
            component=placed.component,
            task=task.id,
            worker=self._index,
            tasks={component.id: component.tasks for component in plan.components.values()},
            worker_tasks=tuple(one.id for one in plan.tasks_of_worker(self._index)),
            streams={
                component.id: {stream.id: Fields(stream.fields) for stream in component.streams.values()}
                for component in plan.components.values()
            },
            edges=tuple((e.source, e.stream, e.target, without_wrapping(e.grouping)) for e in plan.edges),
            services=task,
            executor_data=self._executor_data.setdefault((placed.component, placed.executor), {}),
            resources=self._hooks.resources,
            max_message_timeout=max(one.settings.message_timeout_secs for one in plan.components.values()),
        )

    # -- for `watch_for_threads` ---------------------------------------------------------------------------------

    def runs_user_code(self, thread: int) -> bool:
        """Return whether this thread is in a task's code now."""
        return self._call.runs_in(thread)

    def guard(self) -> None:
        """Prepare all tasks for calls from other threads, because user code has started a thread."""
        self.guarded = True
        # Executors with threads of their own set `guarded`, too, but they do not call `guard` of the tasks.
        if not self._tasks_are_guarded:
            self._tasks_are_guarded = True
            for task in self.tasks:
                task.guard()
