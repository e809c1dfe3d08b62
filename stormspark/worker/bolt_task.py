"""The task of a bolt. It takes tuples from its queue and executes them, one chunk at a time.

How a chunk is executed depends on the kind of bolt; see `stormspark.worker.bolts.runner`. Three parts of the task have modules of
their own: `stormspark.worker.bolts.failing` handles errors, `stormspark.worker.bolts.work_done` says how much the bolt works, and
`stormspark.worker.bolts.hook_calls` calls hooks.
"""

from __future__ import annotations

import select
from collections.abc import Iterator, MutableMapping
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from stormspark.api import (
    AsyncBolt,
    BasicBolt,
    BasicOutputCollector,
    Bolt,
    TopologyContext,
    Tuple,
    WindowedBolt,
)
from stormspark.api.components import overrides
from stormspark.spi import BatchAware, TransactionAttempt
from stormspark.worker.asynchronous.bolt_collector import FollowsCalls
from stormspark.worker.asynchronous.flushing_executor import executor_of
from stormspark.worker.bolts.chunks import CHUNK_SECONDS, ChunkSize
from stormspark.worker.bolts.hook_calls import CallsHooks
from stormspark.worker.bolts.kinds import runner_for
from stormspark.worker.bolts.queue import TupleQueue
from stormspark.worker.bolts.runner import Runner
from stormspark.worker.errors_of_code import ERRORS_OF_CODE
from stormspark.worker.replays.recording_inputs import BatchBegins, BatchEnds, TaskInputs
from stormspark.worker.shedding import Shedding
from stormspark.worker.tuples.collectors import BasicCollector
from stormspark.worker.tuples.outlets import Delivery, Outlet
from stormspark.worker.windows.window_state import WindowState
from stormspark.worker.windows.windowed_bolt import WindowedBoltExecutor

__all__ = ["BoltTask"]

#: If a chunk takes longer than this many seconds, its tuples have become slow, and another thread cuts the chunk short.
_CHUNK_LONGEST = 0.1
#: A replay waits at most this long before it asks a bolt again for answers from outside of the worker.
_REPLAY_PATIENCE_SECS = 0.05


class BoltTask(CallsHooks):
    """One task of a `Bolt`, `BasicBolt`, `WindowedBolt` or `AsyncBolt`."""

    _first_call = "prepare"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.queue = self._new_queue()
        self.bolt: Bolt | BasicBolt
        self._runner = Runner(self)
        #: The tuples that `PlainRunner.held` returns. The task's instances share this dictionary, one after another, because a
        #: user's variable may keep a collector longer than its instance lives.
        self.held_weakly: MutableMapping[Tuple, float] = WeakKeyDictionary()
        self._end_collector = BasicCollector(self, self._ledger)  # the collector that ``end_batch`` gets
        self._chunk_size = ChunkSize()
        self._begun = 0.0  # when the running part of the chunk began
        #: The deliveries that the running loop executes; `look` may shorten the list.
        self._piece: list[Delivery] = []
        #: Drops or fails tuples above the high water marks; None if the strategy is to slow down spouts instead.
        slows = self._settings.backpressure_strategy == "slow"
        self.shedding = None if slows else Shedding(self, self._ledger, self._settings)
        #: Records the inputs and emits of the bolt; None if inputs are not recorded.
        self.inputs: TaskInputs | None = None
        #: Follows the calls of an `AsyncBolt`, for recordings and replays; otherwise None.
        self.follower: FollowsCalls | None = None

    def _new_queue(self) -> TupleQueue:
        return TupleQueue()

    def _new_runner(self, instance: Bolt | BasicBolt) -> Runner:
        return runner_for(self, instance)

    # -- life ------------------------------------------------------------------------------------------------

    def _end_previous(self) -> None:
        """See `Task._end_previous`. Ticks begin anew with each instance."""
        super()._end_previous()
        if self._settings.tick_freq_secs:
            self._host.set_timer(self, self._settings.tick_freq_secs, self._tick)

    def _begin(self, instance: Bolt | BasicBolt | WindowedBolt | AsyncBolt, context: TopologyContext) -> None:
        """Choose the runner for this kind of bolt, and prepare the bolt."""
        if isinstance(instance, WindowedBolt):
            instance = WindowedBoltExecutor(
                instance, self._window_state(), self._count_late, lambda: self.input_ended
            )
        elif isinstance(instance, AsyncBolt):
            instance = executor_of(
                instance,
                self._host.event_loop,
                self.call_ended,
                self.counters.latency,
                self.follower,
                self.by_input,
            )
        if self.state is not None:
            self.state.before(instance)
        runner = self._runner = self._new_runner(instance)
        try:
            runner.prepare(self._conf, context)
        except BaseException:
            self._runner = Runner(self)  # an instance that was not prepared must not be asked about its work
            self._let_go(instance)
            raise
        self.bolt = instance
        if self.state is not None:
            self.state.after(instance, context=context, collector=runner.collector, conf=self._conf)

    def _window_state(self) -> WindowState | None:
        windows = None if self.state is None else self.state.windows
        if windows is None:
            return None
        return WindowState(windows, f"{self.component.place} ({self.name})", self.abort)

    def _count_late(self) -> None:
        self.counters.late += 1

    def end_input(self) -> None:
        """Let the bolt flush what it holds, because its input has ended. A bolt that gets ticks and has no ``end_of_input`` gets
        one last tick.
        """
        bolt = self.instance
        if self.is_down or bolt is None:
            return
        self.counters.unwritten = 0
        if isinstance(bolt, BasicBolt) and overrides(bolt, "end_of_input", BasicBolt):
            self.call_once(partial(bolt.end_of_input, self._collector_for_end()), "end_of_input")
        elif isinstance(bolt, Bolt) and overrides(bolt, "end_of_input", Bolt):
            self.call_once(bolt.end_of_input, "end_of_input")
        elif self._settings.tick_freq_secs:
            self.queue.add_tick(self._settings.tick_freq_secs)

    @property
    def holds_for_watermark(self) -> bool:
        """Whether the tuples that the bolt holds wait for a watermark, so that they are not late."""
        bolt = self.instance
        return isinstance(bolt, WindowedBoltExecutor) and bolt.waits_for_watermarks

    @property
    def instance(self) -> Bolt | BasicBolt | None:
        """The bolt; None before it is prepared."""
        return getattr(self, "bolt", None)

    def begin_batch(self, attempt: TransactionAttempt, announced: Any) -> None:
        """See `Task.begin_batch`."""
        if self.inputs is not None:
            self.inputs.note(BatchBegins(attempt, announced))
        super().begin_batch(attempt, announced)

    def end_batch(self) -> None:
        """Call the bolt's ``end_batch``, because this task has executed all tuples of the batch (G6)."""
        assert isinstance(self.bolt, BatchAware)
        collector = self._collector_for_end()
        if self.inputs is not None:
            self.inputs.note(BatchEnds())
        try:
            self._run(self.bolt.end_batch, collector)
        except ERRORS_OF_CODE as error:
            self._fail_and_restart("finish_batch", error, None)

    def _collector_for_end(self) -> BasicOutputCollector:
        """Return the collector that ``end_batch`` gets."""
        self._end_collector.connect(guarded=self.guarded)
        return self._end_collector

    def forget_tuples(self) -> None:
        """Drop all tuples that wait for the bolt, and all that the bolt holds."""
        self.queue.clear()
        self._runner.forget_all()

    def _tick(self) -> None:
        """Queue a tick (C9). At a stop there is none, because the stop would work off one tick after the other."""
        assert self._settings.tick_freq_secs is not None  # else there is no timer
        if self.is_ending:
            return
        self.queue.add_tick(self._settings.tick_freq_secs)

    def connect(self) -> None:
        """Give the bolt and its collector the current outlets."""
        self._runner.connect()

    def unguarded_outlet(self, stream: str) -> Outlet | None:
        """Return a stream's outlet if the bolt may emit to it without the collector, else None; see `AutoAckBolt.connected`."""
        return None if self.guarded else self.outlets.get(stream)

    def has(self, collector: object) -> bool:
        """See `Task.has`."""
        return self._runner.collector is collector

    def guard(self) -> None:
        """See `Task.guard`."""
        self._runner.guard()
        self._end_collector.connect(guarded=True)

    def stop(self) -> None:
        """Call ``cleanup``. Errors are reported, and stop nothing."""
        if not self.is_down:
            self._call_last(self._run, self.bolt.cleanup)
        super().stop()

    # -- what waits ------------------------------------------------------------------------------------------

    @property
    def inbox(self) -> list[Delivery]:
        """The list that senders append to."""
        return self.queue.inbox

    @property
    def waiting(self) -> int:
        """How many tuples wait to be executed."""
        return self.queue.waiting

    @property
    def ready(self) -> int:
        """How many of the waiting tuples the bolt could execute now."""
        if self.is_down:
            return 0
        waiting = self.queue.waiting
        return min(waiting, self._runner.room) if waiting and self._runner.works_outside else waiting

    def waiting_deliveries(self) -> Iterator[Delivery]:
        """Iterate over the tuples that wait to be executed, in order."""
        return self.queue.deliveries()

    def not_reached(self) -> Iterator[Delivery]:
        """Iterate over the waiting tuples that already waited when this method was called the previous time."""
        return self.queue.not_reached()

    @property
    def behind_call_secs(self) -> float:
        """The seconds since the start of the call that holds up the waiting tuples; 0 if no call of the bolt can run between
        two supersteps.
        """
        return 0.0

    # -- work outside of the worker ----------------------------------------------------------------------------

    @property
    def works_outside(self) -> bool:
        """Whether the bolt's tuples are processed outside of the worker, so that the worker has to wait for answers; see
        `WorksOutside`.
        """
        return self._runner.works_outside

    @property
    def outside(self) -> int:
        """How many of the executed tuples are still in progress outside of the worker."""
        return self._runner.outside

    @property
    def waits_for_answer(self) -> bool:
        """Whether the worker has to process answers from outside as soon as they come."""
        return self._runner.waits_for_answer

    def fileno(self) -> int:
        """Return the file descriptor that is readable when `take_in` has something to do; -1 if there is none."""
        return self._runner.fileno()

    def take_in(self) -> int:
        """Process answers from outside. An error in the bolt's ``take_in`` counts as an error in ``execute``.

        Returns how many tuples were settled. After an error it returns 1, although a restart settles all held tuples.
        """
        try:
            done = self._runner.take_in()
        except ERRORS_OF_CODE as error:
            self._fail_and_restart(self._runner.works_in, error, None)
            return 1
        if done:
            self._raised_in_row = 0
        return done

    # -- execution -------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Execute one chunk of the waiting tuples; return how many tuples were executed."""
        queue, size, counters, clock = self.queue, self._chunk_size, self.counters, self._clock
        most = min(size.most, self._runner.room) if self._runner.works_outside else size.most
        batch = queue.take(most) if most > 0 else []
        if not batch:
            return 0
        done = 0
        started = begun = clock()
        while done < len(batch) and self.fatal is None and not self.is_down:
            self._begun = begun
            # The piece is a copy, because `look` may shorten it, and the rest of the chunk must not be lost.
            self._piece = piece = batch[done : done + 1] if size.timed_alone else batch[done:]
            step = self._execute(piece)
            now = clock()
            took = (now - begun) / step
            begun = now
            if not self._runner.works_outside:
                counters.latency.add(took, step)
            elif not self.component.capacity:  # a call of an async bolt adds its time when it ends
                counters.latency.add_mean(took, step)
            counters.executed += step
            if queue.ticks:  # ticks are not counted, because the counters are for users' tuples only (J15)
                ticks = queue.count_ticks(batch, done, done + step)
                counters.executed -= ticks
                if self._runner.acks_on_return:
                    counters.acked -= ticks
            if self.by_input is not None:
                each = 0.0 if self.component.capacity else took  # see above
                self.by_input.add(batch[done : done + step], each, acked=self._runner.acks_on_return)
            size.add(took, step)
            done += step
            if size.timed_alone and now - started > CHUNK_SECONDS:
                break  # the bolt has become slow, but other bolts need their turn, and the superstep has to end
        queue.executed += done
        self._piece = []  # forgets the executed tuples, because the next chunk may come much later
        if done < len(batch):
            queue.put_back(batch[done:])
        return done

    def look(self) -> bool:
        """Shorten a chunk that takes too long, so that the chunk ends with the call that runs now; see `Task.look`.

        The loops read the length of their list before each tuple anyway, so a list that may shrink costs them nothing. The
        first item stays, because a loop that has just begun reads it.
        """
        piece = self._piece
        if self._clock() - self._begun > _CHUNK_LONGEST:
            del piece[1:]
        return False

    def _execute(self, batch: list[Delivery]) -> int:
        """Execute tuples up to the end of the chunk, or up to the first tuple that raises. Return how many were executed."""
        inputs = self.inputs
        if inputs is None:
            return self._execute_now(batch)
        inputs.begins(batch)
        executed = self._execute_now(batch)
        inputs.ended(executed)
        return executed

    def execute_one(self, delivery: Delivery) -> None:
        """Execute one tuple now. Only replays call this, and they wait for the work outside of the worker (`take_in_soon`)."""
        self._begun = self._clock()
        self._execute_now([delivery])

    @property
    def room(self) -> int:
        """How many more tuples the bolt can take now."""
        return self._runner.room

    def take_in_soon(self) -> None:
        """Wait a moment for an answer from outside of the worker, and process it. Only replays call this."""
        waiting = select.poll()  # not select.select, which takes no descriptor above 1023
        waiting.register(self, select.POLLIN)
        waiting.poll(_REPLAY_PATIENCE_SECS * 1000)
        self.take_in()

    def _execute_now(self, batch: list[Delivery]) -> int:
        runner = self._runner
        try:
            executed = self._execute_observed(batch) if self.hooks else runner.run(batch, self._begun)
        except ERRORS_OF_CODE as error:
            if runner.position and not runner.works_outside:  # the tuples before the failed one went well
                self._raised_in_row = 0
            self._fail_and_restart("execute", error, runner.current)
            return runner.position + 1
        if not runner.works_outside:
            self._raised_in_row = 0
            return executed
        # The tuples are executed, but not done. `take_in` finds out when they are done.
        try:
            runner.send()
        except ERRORS_OF_CODE as error:
            self._fail_and_restart("execute", error, None)
        return executed
