"""The replay of one batch of a bolt's task, in this process.

The replay starts from the state before the batch, and executes the recorded inputs. Then it compares the bolt's emits and state
with those of the recorded batch. A deterministic bolt does the same as in the recorded batch. A bolt is not deterministic if it
draws random numbers, uses a clock or a service, or remembers something outside of its state. Such a bolt may do something else
in the replay, and the `Replay` lists the differences.

The calls of an `AsyncBolt` run side by side in the replay, too, because a call may wait for another. They begin in the same
order, but may end in another order. So their emits are compared call by call.

The replay repeats ticks, but no other timers and no threads of the bolt. Emits of timers and threads are missing in the replay,
and are listed as a difference.
"""

from __future__ import annotations

import pickle
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pdb import Pdb
from random import Random
from typing import Any

import cloudpickle

from stormspark.api import (
    TICK_SOURCE,
    BoltAckInfo,
    BoltFailInfo,
    EmitInfo,
    TaskHook,
    Tuple,
    TupleSource,
)
from stormspark.api.streams import SYSTEM_COMPONENT, TICK_STREAM
from stormspark.checkpoint.recorded_inputs import InputFiles, Unpicklable, generation_of_inputs, load_pairs
from stormspark.checkpoint.state_components import component_states
from stormspark.checkpoint.state_table import StateTable
from stormspark.errors import CheckpointError, FailedException
from stormspark.plan.physical import ComponentPlan, PhysicalPlan
from stormspark.worker.asynchronous.bolt_executor import AsyncBoltExecutor
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.core import Worker
from stormspark.worker.host.module_path import search_like_the_driver
from stormspark.worker.replays.comparison import compare_emits, compare_emits_of_calls, compare_states
from stormspark.worker.replays.recording_inputs import BatchBegins, BatchEnds
from stormspark.worker.replays.result import Emitted, Executed, Replay
from stormspark.worker.task import Task

__all__ = ["check_task", "newest_plan", "plan_that_ran", "replay"]


def plan_that_ran(location: str, batch: int) -> PhysicalPlan:
    """Load the plan with which the batch was recorded. Raises `CheckpointError` if there is none, or if it can't be loaded.

    This process looks for modules where the driver did, in the same order.
    """
    files = InputFiles(location)
    pickled = files.plan(generation_of_inputs(files.of_batch(batch)[0]))
    try:
        return _loaded(pickled)
    except Exception as error:
        msg = (
            f"the topology that ran batch {batch} can't be loaded ({type(error).__name__}: {error}): this process does not find "
            f"its modules. Name the topology's file, too"
        )
        raise CheckpointError(msg) from error


def newest_plan(location: str) -> PhysicalPlan | None:
    """Load the plan that ran last, even if no batch was recorded. Return None if there is none, or if it can't be loaded."""
    files = InputFiles(location)
    try:
        generation = files.newest_plan()
        return None if generation is None else _loaded(files.plan(generation))
    except Exception:
        return None


def _loaded(pickled: bytes) -> PhysicalPlan:
    paths, plan = pickle.loads(pickled)
    search_like_the_driver(paths)
    loaded: PhysicalPlan = cloudpickle.loads(plan)
    return loaded


def replay(
    plan: PhysicalPlan, location: str, component: str, index: int, batch: int, debugger: Pdb | None = None
) -> Replay:
    """Run ``batch`` of task ``index`` of a bolt again. ``location`` is the place of the state table.

    A ``debugger`` stops at the first ``execute``. Raises `CheckpointError` if this task can't be replayed, if the batch was not
    recorded or can't be read, or if the state before the batch is gone. Raises `ComponentError` for an error in ``prepare``.
    """
    declared = check_task(plan, component, index)
    table = StateTable(location)
    table.refresh()
    files = InputFiles(location)
    paths = files.of_batch(batch)
    _check_tasks(table, declared, batch)
    task_id = declared.tasks[index]
    worker = Worker(plan, plan.tasks[task_id].worker, random=Random(batch))
    done = Replay(component, index, batch)
    task = worker.tasks[task_id]
    assert isinstance(task, BoltTask)
    if task.state is not None and batch > table.oldest_txid:
        task.state.load(table.restore(component, index, batch - 1))
    recorded: list[Emitted] = []
    recorded_outside: list[Emitted] = []
    recorded_of_calls: dict[int, list[Emitted]] = {}
    watch = _Watch(done)
    task.observers.append(watch)
    task.follower = watch
    with worker.one_task(task_id):
        watch.follow(task, debugger)
        for executed, inputs, emits in _chunks(files, paths, component, index):
            for stream, emitted in emits:
                if isinstance(stream, tuple):
                    recorded_of_calls.setdefault(stream[1], []).append(Emitted(stream[0], emitted))
                else:
                    (recorded if executed else recorded_outside).append(Emitted(stream, emitted))
            if not executed:
                watch.current = None
                for _, event in inputs:
                    _repeat(task, event)
                continue
            for source, values in inputs[:executed]:
                watch.number += 1
                if isinstance(values, Unpicklable):
                    done.differences.append(f"input {watch.number} could not be recorded: {values.shown}")
                    continue
                _execute(task, source, values, watch)
                if watch.raised is not None:
                    return _raised(done, watch.raised)
        _wait(task, watch, lambda: bool(task.outside))
        if watch.raised is not None:
            return _raised(done, watch.raised)
        watch.leave()
        if task.aborts is not None:
            done.differences.append(f"{task.aborts} now, and did not then")
            return done
        if task.state is not None:
            changed = task.prepare_state(batch)
            if changed is None:
                done.differences.append(
                    f"pre_prepare or pre_save raised now, and did not then: {task.reports.errors[-1].text}"
                )
                return done
            compare_states(done, declared, table, dict(changed[0].items))
    now = [one for executed in done.inputs for one in executed.emitted]
    numbers = [executed.number for executed in done.inputs for _ in executed.emitted]
    if watch.is_async:
        done.differences += compare_emits_of_calls(recorded_of_calls, done.inputs)
    else:
        done.differences += compare_emits("emit", recorded, now, numbers)
    done.differences += compare_emits(
        "emit outside of execute (timers and threads are not replayed)", recorded_outside, done.outside, None
    )
    return done


def _raised(done: Replay, raised: Executed) -> Replay:
    done.differences.append(f"input {raised.number} raised now, and did not then; nothing after it was run")
    return done


def check_task(plan: PhysicalPlan, component: str, index: int) -> ComponentPlan:
    """Return the plan of a bolt of which task ``index`` can be replayed. Raises `CheckpointError` if it can't."""
    declared = plan.components.get(component)
    if declared is None:
        msg = f"topology {plan.topology!r} has no component {component!r}; it has {', '.join(sorted(plan.components))}"
        raise CheckpointError(msg)
    if declared.kind != "bolt":
        msg = f"{declared.place} is a {declared.kind}: only bolts are recorded, so only bolts can be replayed"
        raise CheckpointError(msg)
    if declared.vectorised:
        msg = f"{declared.place} is vectorised: only bolts that take tuples are recorded, so only these can be replayed"
        raise CheckpointError(msg)
    if declared.windowed:
        msg = f"{declared.place} has windows: the times at which they fire are not recorded, so it can't be replayed"
        raise CheckpointError(msg)
    if not 0 <= index < len(declared.tasks):
        tasks = len(declared.tasks)
        msg = f"{declared.place} has {tasks} tasks, {component}[0] to {component}[{tasks - 1}], and no {component}[{index}]"
        raise CheckpointError(msg)
    return declared


def _check_tasks(table: StateTable, component: ComponentPlan, batch: int) -> None:
    if not component.kind_of_state or batch <= table.oldest_txid:
        if batch <= table.oldest_txid and table.oldest_txid > 0:
            msg = (
                f"the state before batch {batch} is not retained in {table.location}: the oldest batch that can be replayed is "
                f"{table.oldest_txid + 1}"
            )
            raise CheckpointError(msg)
        return
    before = component_states(table.metadata(batch - 1)).get(component.id)
    if before is not None and before.tasks != len(component.tasks):
        msg = (
            f"{component.id!r} had {before.tasks} tasks before batch {batch}, and {component.place} has {len(component.tasks)}: "
            f"a batch in which the number of tasks changed can't be replayed"
        )
        raise CheckpointError(msg)


def _chunks(
    files: InputFiles, paths: list[str], component: str, index: int
) -> Iterator[tuple[int, list[Any], list[Any]]]:
    for chunk in files.chunks(paths, component, index):
        try:
            inputs, emits = load_pairs(chunk.inputs), load_pairs(chunk.emits)
        except Exception as error:
            msg = f"the recorded inputs of {component}[{index}] can't be unpickled here: {type(error).__name__}: {error}"
            raise CheckpointError(msg) from error
        yield chunk.executed, inputs, emits


def _execute(task: BoltTask, source: TupleSource, values: tuple[Any, ...], watch: _Watch) -> None:
    if (source.component, source.stream) == (SYSTEM_COMPONENT, TICK_STREAM):
        source = TICK_SOURCE
    if watch.is_async:
        _wait(task, watch, lambda: task.room <= 0)
        if watch.raised is not None:
            return
    watch.begin(f"{source!r}" if source is not TICK_SOURCE else "tick", values)
    task.execute_one((values, source, None))
    if watch.is_async:
        watch.current = None  # what no call has emitted belongs to no input
    else:
        _wait(task, watch, lambda: bool(task.outside))
    if len(task.mailbox):
        task.take_calls()


def _wait(task: BoltTask, watch: _Watch, must_wait: Callable[[], bool]) -> None:
    """Take in answers from outside of the worker as long as ``must_wait``, unless a call raises."""
    while must_wait() and task.fatal is None and task.aborts is None and watch.raised is None:
        task.take_in_soon()


def _repeat(task: BoltTask, event: BatchBegins | BatchEnds) -> None:
    """Repeat the call of the bolt's method that ``event`` records."""
    if isinstance(event, BatchBegins):
        task.begin_batch(event.attempt, event.announced)
    else:
        task.end_batch()


class _Watch(TaskHook):
    """A hook that observes what the bolt does, input by input."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self.current: Executed | None = None
        #: How many inputs were read.
        self.number = 0
        #: The input whose execution has raised; None as long as there is none.
        self.raised: Executed | None = None
        #: Whether the bolt is an `AsyncBolt`.
        self.is_async = False
        self._bolt: Any = None
        #: All tuples that the bolt has got. They are kept, because the bolt may ack a tuple much later.
        self._given: dict[int, tuple[Tuple, Executed]] = {}

    def begin(self, source: str, values: tuple[Any, ...]) -> None:
        self.current = Executed(self.number, source, values)
        self._replay.inputs.append(self.current)

    def follow(self, task: Task, debugger: Pdb | None) -> None:
        """Wrap the bolt's ``execute``, so that each call is observed."""
        bolt: Any = task.instance
        if isinstance(bolt, AsyncBoltExecutor):
            self.is_async = True
            if debugger is not None:
                bolt.timeout = None  # else a call takes too long while the debugger waits for its user
            bolt = bolt.bolt
        execute: Callable[..., Any] = bolt.execute
        first = debugger

        def stop() -> None:
            nonlocal first
            stops, first = first, None
            if stops is not None:
                stops.set_trace(sys._getframe(1))

        def watched(tup: Tuple, *collector: Any) -> None:
            self.given(tup)
            with self._watching(tup):
                stop()
                execute(tup, *collector)

        async def watched_on_loop(tup: Tuple) -> None:
            with self._watching(tup):
                stop()
                await execute(tup)

        bolt.execute = watched_on_loop if self.is_async else watched
        self._bolt = bolt

    @contextmanager
    def _watching(self, tup: Tuple) -> Iterator[None]:
        executed = self._given[id(tup)][1]
        try:
            yield
        except FailedException:
            raise
        except Exception:
            executed.raised, self.raised = traceback.format_exc(), executed
            raise

    def given(self, tup: Tuple) -> None:
        """See `FollowsCalls.given`."""
        assert self.current is not None
        self._given[id(tup)] = tup, self.current

    def carry_out(self, tup: Tuple, note: Callable[[], object]) -> None:
        """See `FollowsCalls.carry_out`."""
        self.current = self._given[id(tup)][1]
        try:
            note()
        finally:
            self.current = None

    def leave(self) -> None:
        """Remove the wrapper from the bolt's ``execute`` after the last input, so that the bolt's attributes hold nothing of
        the replay.
        """
        self.current = None
        del self._bolt.execute

    def emit(self, info: EmitInfo) -> None:
        emitted = Emitted(info.stream, info.values, info.out_tasks)
        (self._replay.outside if self.current is None else self.current.emitted).append(emitted)

    def bolt_ack(self, info: BoltAckInfo) -> None:
        executed = self._of(info.tuple)
        if executed is not None and not executed.failed:
            executed.acked = True

    def bolt_fail(self, info: BoltFailInfo) -> None:
        executed = self._of(info.tuple)
        if executed is not None:
            executed.failed = True

    def _of(self, tup: Tuple) -> Executed | None:
        found = self._given.get(id(tup))
        return self.current if found is None else found[1]  # a BasicBolt's hook gets another object
