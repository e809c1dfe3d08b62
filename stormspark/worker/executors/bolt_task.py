"""The task of a bolt, for an executor with a thread of its own.

The executor's thread takes tuples out of the task's queue, one at a time, and executes them. During each call it makes notes
for the worker's thread, in order: one for each emit, ack and fail, and one for the end of the call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

from stormspark.api import TICK_SOURCE, BasicBolt, Bolt, BoltFailInfo, TaskHook, Tuple
from stormspark.api.tuple_state import SETTLED
from stormspark.backpressure import BoltLoad
from stormspark.errors import ComponentError, FailedException
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.bolts.runner import Runner
from stormspark.worker.errors_of_code import contained
from stormspark.worker.executors.bolt_collectors import ThreadedBasicCollector
from stormspark.worker.executors.bolt_runner import ThreadedRunner, threaded_runner_for
from stormspark.worker.executors.notes import InstanceEnded, Notes
from stormspark.worker.executors.queue import SharedQueue
from stormspark.worker.executors.task import ThreadedTask
from stormspark.worker.tuples.edges import close_edges
from stormspark.worker.tuples.outlets import Delivery

__all__ = ["ThreadedBoltTask"]


class _InOrder:
    """A call of a thread of user code, which is carried out after the notes that were made before it."""

    __slots__ = ("_call", "_mark", "_notes", "_task")

    def __init__(self, task: ThreadedBoltTask, notes: Notes, call: Callable[[], object]) -> None:
        self._task, self._notes, self._call = task, notes, call
        self._mark = notes.add_mark()

    @property
    def may_come(self) -> bool:
        """Whether no earlier note waits."""
        return self._mark is None or self._mark.is_passed

    def __call__(self) -> None:
        task, notes = self._task, self._notes
        while not (self.may_come or notes.ended or task.fatal is not None):
            task.take_notes(notes)
        if not notes.ended:
            self._call()


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
        #: For how many seconds the calls for ticks have lasted that have ended. `TaskCounters.latency` includes them.
        self._in_ticks = 0.0

    def _new_queue(self) -> SharedQueue:
        return SharedQueue()

    def _new_runner(self, instance: Bolt | BasicBolt) -> Runner:
        return threaded_runner_for(self, instance, self.notes)

    # -- on the executor's thread ------------------------------------------------------------------------------

    def take_turn(self) -> bool:
        """Execute the tuple that has waited longest. See `stormspark.worker.executors.thread.Taker`."""
        if self.is_held or self.is_stopping or self.begins_no_call:
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
            self._note(notes, partial(self._settle, tup, begun))
        self._note(notes, partial(self._executed, tup, begun, took, error))
        error = None  # else this frame and the error's traceback would refer to each other
        self.queue.is_executed = False
        return True

    def _begin_tuple(self, runner: ThreadedRunner, delivery: Delivery) -> tuple[Tuple, float]:
        tup, begun = runner.new_tuple(delivery), self._clock()
        self.under_way[tup] = begun
        return tup, begun

    def may_hold(self, tup: Tuple) -> bool:
        """Return whether this task has got ``tup``, a tuple in a tree, and may not have acked or failed it. Any thread may call
        this.
        """
        # `_hold` adds a tuple to the second dictionary before it removes the tuple from the first one.
        return tup in self.under_way or tup in self.held_weakly

    def post(self, notes: Notes, call: Callable[[], object]) -> None:
        """See `ThreadedTask.post`. The worker's thread carries out the call after everything that was noted before it.

        Otherwise the ack of a thread could come before an emit of ``execute`` that is anchored to the same tuple.
        """
        super().post(notes, _InOrder(self, notes, call))

    # -- on the worker's thread --------------------------------------------------------------------------------

    def take_calls_at_hand(self) -> None:
        """Carry out the calls that other threads made before the note that is being taken now."""
        mailbox = self.mailbox
        if mailbox.at_hand and not mailbox.is_taking:
            mailbox.take(mailbox.at_hand, lambda call: not isinstance(call, _InOrder) or call.may_come)

    def _executed(self, tup: Tuple, begun: float, took: float, error: BaseException | None) -> None:
        counters = self.counters
        counters.latency.add(took, 1)
        if tup._source is TICK_SOURCE:
            self._in_ticks += took
        else:
            counters.executed += 1
            if self.by_input is not None:
                self.by_input.add_of(tup._source, 1, took, acked=self._runner.acks_on_return)
        if error is None:
            self._raised_in_row = 0
            self._settle(tup, begun)
            return
        if isinstance(error, InstanceEnded):
            error = RuntimeError("execute has gone on after the end of its instance")
        self._fail_and_restart("execute", contained("execute", error), tup)
        if tup in self.under_way:
            self._hold(tup, begun)  # another thread has acked it, and the ack is not carried out yet
        self._go_on()

    def _settle(self, tup: Tuple, begun: float) -> None:
        """Ack an executed tuple, if the bolt leaves acks to its task. If the bolt holds the tuple, remember the tuple.

        A tuple that is no longer under way is acked or failed. The state does not tell: another thread may have set it, and the
        tuple is held until this thread carries out that ack or fail.
        """
        self.take_calls_at_hand()
        if tup not in self.under_way:
            return
        if not self._runner.acks_on_return:
            self._hold(tup, begun)
        else:
            del self.under_way[tup]
            tup.state = SETTLED
            self.counters.acked += tup._source is not TICK_SOURCE
            if tup.roots is not None:
                close_edges(self._ledger, tup.roots)

    def _hold(self, tup: Tuple, begun: float) -> None:
        """Remember that a tuple is no longer under way, and that the bolt still has to ack or fail it."""
        if tup.roots is not None:
            self.held_weakly[tup] = begun
        del self.under_way[tup]  # not earlier, because of `may_hold`

    def _fail_and_restart(self, where: str, error: BaseException, tup: Tuple | None) -> None:
        """See `BoltTask._fail_and_restart`. Before a restart the queue is shut, so that the old instance gets no more tuples, and
        `held` returns all unsettled tuples that it got. An instance that stays, because the topology stops, gets more.
        """
        if not (isinstance(error, FailedException) or self.starts_no_more):
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
                busy = self.executor.busy
                self.reports.add_failure(
                    "hooks",
                    f"the task hooks do not hear of all fails: {busy.code} has not returned for {busy.seconds:.0f} s, "
                    f"and {len(fails):,} fails already wait for its return",
                )
            self._fails_missed += 1
            return
        if self._fails_missed and not fails:
            self.reports.add_failure(
                "hooks",
                f"the task hooks have missed {self._fails_missed:,} fails",  # J21
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

    def no_longer_held(self, tup: Tuple) -> bool:
        """Forget ``tup``, because the bolt no longer holds it. Return whether it was held or under way."""
        was_under_way = self.under_way.pop(tup, None) is not None
        return self.held_weakly.pop(tup, None) is not None or was_under_way

    def count_if_held(self, tup: Tuple) -> None:
        """Count the process latency of a tuple that is about to be acked, if its execute has returned (J15)."""
        begun = self.held_weakly.get(tup)
        if begun is not None and tup not in self.under_way:
            self.count_processed(tup._source, begun)

    @property
    def ready(self) -> int:
        """Always 0, because the executor's thread takes the tuples by itself."""
        return 0

    @property
    def calls_under_way(self) -> int:
        """How many calls of this task are due or under way on the executor's thread, plus the notes that wait to be taken."""
        # The end of a call is noted before `is_executed` becomes false. So no call is missed if the terms are read in this order.
        # A stop waits for calls, but for no start, because no call follows it.
        starts = self.is_starting and not self.is_ending
        return self.queue.is_executed + self.notes.calls_due + starts + len(self.notes)

    @property
    def has_work(self) -> bool:
        """Whether tuples wait that the executor's thread will take, or calls are under way; see `calls_under_way`."""
        if self.begins_no_call or (self.is_ending and (self.is_held or self.is_starting or self.is_down)):
            return bool(self.calls_under_way)
        return bool(self.queue.waiting or self.calls_under_way)

    @property
    def behind_call_secs(self) -> float:
        """See `BoltTask.behind_call_secs`. It is always 0 in a transaction, which waits for its calls anyway."""
        return 0.0 if self.in_transactions else self.executor.at_for[1]

    def held(self) -> list[tuple[Tuple, float]]:
        """See `BoltTask.held`. The tuples that are under way count as well."""
        return [*super().held(), *self.under_way.items()]

    def in_calls(self) -> tuple[float, float]:
        """See `BoltTask.in_calls`. Calls for ticks do not count, because a bolt that only ticks is idle."""
        now = self._clock()
        begun = [since for tup, since in [*self.under_way.items()] if tup._source is not TICK_SOURCE]
        return now, self.counters.latency.seconds - self._in_ticks + sum(now - since for since in begun)

    def load(self) -> BoltLoad:
        """See `BoltTask.load`. The time is divided by the number of executors that run side by side."""
        load = super().load()
        is_executed = self.queue.is_executed
        under_way = self.executor.at_for[1] if is_executed else 0.0
        latency = self.counters.latency
        return load._replace(
            seconds=load.seconds / self.side_by_side,
            queued=load.queued + is_executed,
            alongside=True,
            under_way=under_way / self.side_by_side,
            in_calls=int(is_executed),
            # The queue of one executor gets shorter by its own calls alone, however many others run beside it.
            pace=self.call_secs(latency.seconds) if latency.count else under_way,
            first_call=0.0 if latency.count else under_way,
        )
