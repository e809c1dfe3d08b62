"""The task of a bolt, for an executor with a thread of its own.

The executor's thread takes tuples out of the task's queue, one at a time, and executes them. During each call it makes notes
for the worker's thread, in order: one for each emit, ack and fail, and one for the end of the call.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from math import inf
from typing import Any

from stormspark.api import TICK_SOURCE, BasicBolt, Bolt, BoltFailInfo, TaskHook, Tuple
from stormspark.api.tuple_state import HELD, SETTLED
from stormspark.backpressure import BoltLoad
from stormspark.errors import ComponentError, FailedException
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.bolts.runner import Runner
from stormspark.worker.executors.bolt_collectors import ThreadedBasicCollector
from stormspark.worker.executors.bolt_runner import ThreadedRunner, threaded_runner_for
from stormspark.worker.executors.notes import InstanceEnded
from stormspark.worker.executors.queue import SharedQueue
from stormspark.worker.executors.task import ThreadedTask
from stormspark.worker.tuples.edges import close_edges
from stormspark.worker.tuples.outlets import Delivery

__all__ = ["ThreadedBoltTask"]


class ThreadedBoltTask(ThreadedTask, BoltTask):
    """One task of a `Bolt`, `BasicBolt` or `WindowedBolt` whose executor has a thread of its own."""

    queue: SharedQueue
    _runner: Runner

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: The tuples that the executor's thread has taken, each with the time when it was taken. A tuple stays in this
        #: dictionary until the worker's thread knows how its call has ended, even if the instance of the bolt ends earlier.
        self.under_way: dict[Tuple, float] = {}
        #: `_fails`: the failed tuples that hooks have to hear of, each with its hooks. `_tells_fails`: whether the executor's
        #: thread has been told to call the hooks.
        self._fails: deque[tuple[tuple[TaskHook, ...], Tuple]] = deque()
        self._tells_fails = False
        #: How many fails the hooks have missed since `_fails` was empty.
        self._fails_missed = 0
        #: How many executors of this component run side by side in this worker.
        self.side_by_side = 1

    def _new_queue(self) -> SharedQueue:
        return SharedQueue()

    def _new_runner(self, instance: Bolt | BasicBolt) -> Runner:
        return threaded_runner_for(self, instance, self.notes)

    # -- on the executor's thread ------------------------------------------------------------------------------

    def take_turn(self) -> bool:
        """Execute the tuple that has waited longest. See `stormspark.worker.executors.thread.Taker`."""
        if self.is_held or self.is_stopping:
            return False
        runner = self._runner
        if not isinstance(runner, ThreadedRunner):
            return False  # no instance has been prepared
        taken = self.queue.next(partial(self._begin_tuple, runner))
        if taken is None:
            return False
        tup, begun = taken
        notes, clock = runner.notes, self._clock
        self.executor.enter(self.name)
        error: BaseException | None = None
        is_executed = False
        try:
            runner.call(tup)
            is_executed = True
            took = clock() - begun
            if self.hooks:
                runner.call_hooks(tup, took)
        except BaseException as raised:
            took = clock() - begun
            error = raised
            # Nothing more may be executed before the worker's thread has handled the error.
            self.is_held = True
        if is_executed and error is not None:
            # A hook has raised, which must not fail a tuple that has been executed.
            self._note(notes, partial(self._settle, tup, begun, tup.state == HELD))
        self._note(notes, partial(self._executed, tup, begun, took, error, tup.state == HELD))
        self.queue.is_executed = False
        return True

    def _begin_tuple(self, runner: ThreadedRunner, delivery: Delivery) -> tuple[Tuple, float]:
        tup, begun = runner.new_tuple(delivery), self._clock()
        self.under_way[tup] = begun
        return tup, begun

    def may_hold(self, tup: Tuple) -> bool:
        """Return whether this task has got ``tup``, and has neither acked nor failed it. Only the executor's thread calls
        this.
        """
        runner = self._runner
        return isinstance(runner, ThreadedRunner) and tup in runner.may_hold

    # -- on the worker's thread --------------------------------------------------------------------------------

    def _executed(
        self, tup: Tuple, begun: float, took: float, error: BaseException | None, is_held: bool
    ) -> None:
        self.under_way.pop(tup, None)
        counters = self.counters
        counters.latency.add(took, 1)
        is_tick = tup._source is TICK_SOURCE
        if not is_tick:
            counters.executed += 1
        if error is None:
            self._raised_in_row = 0
            self._settle(tup, begun, is_held)
            return
        if isinstance(error, InstanceEnded):
            error = RuntimeError("execute has gone on after the end of its instance")
        elif not isinstance(error, Exception):
            error = RuntimeError(f"execute raised {type(error).__name__}: {error}")
        self._fail_and_restart("execute", error, tup)
        self._go_on()

    def _settle(self, tup: Tuple, begun: float, is_held: bool) -> None:
        """Ack an executed tuple, if the bolt leaves acks to its task. If the bolt holds the tuple, remember the tuple."""
        self.take_calls_at_hand()
        if self._runner.acks_on_return:
            tup.state = SETTLED
            self.counters.acked += tup._source is not TICK_SOURCE
            if tup.roots is not None:
                close_edges(self._ledger, tup.roots)
        elif is_held and tup.state == HELD:
            self.held_weakly[tup] = begun

    def _fail_and_restart(self, where: str, error: BaseException, tup: Tuple | None) -> None:
        """See `BoltTask._fail_and_restart`. Before a restart the queue is shut, so that the old instance gets no more tuples, and
        `held` returns all unsettled tuples that it got.
        """
        if not isinstance(error, FailedException):
            self.queue.shut()
        super()._fail_and_restart(where, error, tup)

    def end_thread_work(self) -> None:
        """See `ThreadedTask.end_thread_work`."""
        self.queue.shut()
        super().end_thread_work()

    def _has_begun(self, failure: ComponentError | None) -> None:
        self.queue.is_shut = False
        super()._has_begun(failure)

    def _collector_for_end(self) -> ThreadedBasicCollector:
        return ThreadedBasicCollector(self, self.notes)

    def call_fail_hooks(self, tup: Tuple, most: float = inf) -> None:
        """See `BoltTask.call_fail_hooks`. The executor's thread calls the hooks between two calls of user code."""
        if not self.hooks:
            return
        fails = self._fails
        if len(fails) >= most:
            if not self._fails_missed:
                name, seconds = self.executor.at_for
                self.reports.add_failure(
                    "hooks",
                    f"the task hooks do not hear of all fails (J21): the code of {name} has not returned for {seconds:.0f} s, "
                    f"and {len(fails):,} fails already wait for its return",
                )
            self._fails_missed += 1
            return
        if self._fails_missed and not fails:
            self.reports.add_failure(
                "hooks", f"the task hooks have missed {self._fails_missed:,} fails (J21)"
            )
            self._fails_missed = 0
        fails.append((tuple(self.hooks), tup))
        if not self._tells_fails:
            self._tells_fails = True
            self.executor.submit(self.name, self._tell_fails)

    def _tell_fails(self) -> None:
        """Call the hooks, on the executor's thread, for all failed tuples in `_fails`."""
        self._tells_fails = False  # first, so that a fail that comes from now on submits another call
        while self._fails:
            hooks, tup = self._fails.popleft()
            for hook in hooks:
                try:
                    hook.bolt_fail(BoltFailInfo(tup, self.id))
                except Exception as error:
                    self.report_error(error)

    def no_longer_held(self, tup: Tuple) -> None:
        """Forget ``tup``, because the bolt no longer holds it."""
        self.under_way.pop(tup, None)
        self.held_weakly.pop(tup, None)

    @property
    def ready(self) -> int:
        """Always 0, because the executor's thread takes the tuples by itself."""
        return 0

    @property
    def calls_under_way(self) -> int:
        """How many calls of this task are due or under way on the executor's thread, plus the notes that wait to be taken."""
        # The end of a call is noted before `is_executed` becomes false. So no call is missed if the terms are read in this order.
        return self.queue.is_executed + self.notes.calls_due + self.is_starting + len(self.notes)

    @property
    def behind_call_secs(self) -> float:
        """See `BoltTask.behind_call_secs`. It is always 0 in a transaction, which waits for its calls anyway."""
        return 0.0 if self.in_transactions else self.executor.at_for[1]

    def held(self) -> list[tuple[Tuple, float]]:
        """See `BoltTask.held`. The tuples that are under way count as well."""
        return [*super().held(), *self.under_way.items()]

    def load(self) -> BoltLoad:
        """See `BoltTask.load`. The time is divided by the number of executors that run side by side."""
        load = super().load()
        under_way = self.executor.at_for[1] if self.queue.is_executed else 0.0
        return load._replace(
            seconds=load.seconds / self.side_by_side,
            queued=load.queued + self.queue.is_executed,
            alongside=True,
            under_way=under_way / self.side_by_side,
        )
