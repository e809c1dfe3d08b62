"""The replay of one batch of a bolt's task, in this process. It starts from the state before, and takes the recorded inputs.

The replay compares what the bolt does now with what it did then. A deterministic bolt does the same. A bolt is not
deterministic if it draws random numbers, uses a clock or a service, or remembers something outside of its state. Then it does
something else, and the `Replay` lists the differences.

Timers, except for ticks, and threads of the bolt's own are not replayed. Their emits are missing, and are listed as a
difference.
"""

from __future__ import annotations

import contextlib
import heapq
import io
import pickle
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pdb import Pdb
from random import Random
from typing import Any, NamedTuple

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
from stormspark.checkpoint.ordered_keys import decode_key
from stormspark.checkpoint.recorded_inputs import InputFiles, Unpicklable, generation_of_inputs, load_pairs
from stormspark.checkpoint.state_components import component_states
from stormspark.checkpoint.state_table import StateTable
from stormspark.errors import CheckpointError, FailedException
from stormspark.plan.physical import ComponentPlan, PhysicalPlan
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.core import Worker
from stormspark.worker.replays.recording_inputs import BatchBegins, BatchEnds
from stormspark.worker.task import Task

__all__ = ["Change", "Emitted", "Executed", "Replay", "plan_that_ran", "replay"]

_MISSING = object()
#: The key of pickled attributes.
_ATTRIBUTES = "attributes"


class Emitted(NamedTuple):
    """A tuple that the bolt emitted, and the ids of the tasks that it went to, which a recording does not have."""

    stream: str
    values: tuple[Any, ...]
    tasks: tuple[int, ...] = ()


class Change(NamedTuple):
    """The change of one key of the state; `missing` stands for no value."""

    key: Any
    before: Any
    after: Any

    @staticmethod
    def missing() -> Any:
        """Return the object that stands for no value."""
        return _MISSING


@dataclass
class Executed:
    """One input, with what the bolt did with it; ``source`` is ``component[task]:stream``."""

    number: int
    source: str
    values: tuple[Any, ...]
    emitted: list[Emitted] = field(default_factory=list)
    acked: bool = False
    failed: bool = False
    #: The traceback of the error in ``execute``, where the replay ends; None without an error.
    raised: str | None = None


@dataclass
class Replay:
    """The result of a replay: what happened, and how it differs from the recording. ``differences`` are sentences."""

    component: str
    task: int
    batch: int
    inputs: list[Executed] = field(default_factory=list)
    #: Emits before, between or after the inputs: in ``prepare``, ``pre_prepare`` and the like.
    outside: list[Emitted] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)


def plan_that_ran(location: str, batch: int) -> PhysicalPlan:
    """Load the plan that the batch was recorded with; raises `CheckpointError`.

    The driver's module path is added behind the path of this process.
    """
    files = InputFiles(location)
    paths, plan = pickle.loads(files.plan(generation_of_inputs(files.of_batch(batch)[0])))
    sys.path.extend(path for path in paths if path not in sys.path)
    try:
        loaded: PhysicalPlan = cloudpickle.loads(plan)
    except Exception as error:
        msg = (
            f"what ran batch {batch} can't be loaded ({type(error).__name__}: {error}): its modules are not to be found here. "
            f"Give the topology's file"
        )
        raise CheckpointError(msg) from error
    return loaded


def replay(
    plan: PhysicalPlan, location: str, component: str, index: int, batch: int, debugger: Pdb | None = None
) -> Replay:
    """Run ``batch`` of task ``index`` of a bolt again; ``location`` is the state table's.

    A ``debugger`` stops at the first ``execute``. Raises `CheckpointError` if the batch was not recorded or its state is not
    retained, and `ComponentError` for an error in ``prepare``.
    """
    declared = _checked(plan, component, index)
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
    watch = _Watch(done)
    task.observers.append(watch)
    with worker.one_task(task_id):
        watch.follow(task, debugger)
        for executed, inputs, emits in _chunks(files, paths, component, index):
            (recorded if executed else recorded_outside).extend(emits)
            if not executed:
                watch.current = None
                for _, event in inputs:
                    _tell(task, event)
                continue
            for source, values in inputs[:executed]:
                if isinstance(values, Unpicklable):
                    done.differences.append(
                        f"input {len(done.inputs) + 1} could not be recorded: {values.shown}"
                    )
                    continue
                _execute(task, source, values, watch)
                if done.inputs[-1].raised:
                    done.differences.append(
                        f"input {done.inputs[-1].number} raised now, and did not then; nothing after it was run"
                    )
                    return done
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
            _compare_states(done, declared, table, dict(changed[0].items))
    now = [one for executed in done.inputs for one in executed.emitted]
    numbers = [executed.number for executed in done.inputs for _ in executed.emitted]
    done.differences += _compare_emits("emit", recorded, now, numbers)
    done.differences += _compare_emits(
        "emit outside of execute (timers and threads are not replayed)", recorded_outside, done.outside, None
    )
    return done


def _checked(plan: PhysicalPlan, component: str, index: int) -> ComponentPlan:
    declared = plan.components.get(component)
    if declared is None:
        msg = f"topology {plan.topology!r} has no component {component!r}; it has {', '.join(sorted(plan.components))}"
        raise CheckpointError(msg)
    if declared.kind != "bolt":
        msg = (
            f"{declared.place} is a {declared.kind}: inputs are recorded of bolts, only these can be replayed"
        )
        raise CheckpointError(msg)
    if declared.vectorised:
        msg = f"{declared.place} is vectorised: inputs are recorded of bolts that take tuples, only these can be replayed"
        raise CheckpointError(msg)
    if declared.windowed:
        msg = f"{declared.place} has windows, which fire by the time: that is not recorded, so it can't be replayed"
        raise CheckpointError(msg)
    if not 0 <= index < len(declared.tasks):
        msg = f"{declared.place} has {len(declared.tasks)} tasks, {component}[0] to {component}[{len(declared.tasks) - 1}]"
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
            f"before batch {batch} {component.id!r} had {before.tasks} tasks and {component.place} has {len(component.tasks)}: "
            f"the batch in which state is dealt out anew can't be replayed"
        )
        raise CheckpointError(msg)


def _chunks(
    files: InputFiles, paths: list[str], component: str, index: int
) -> Iterator[tuple[int, list[Any], list[Emitted]]]:
    for chunk in files.chunks(paths, component, index):
        try:
            inputs, emits = load_pairs(chunk.inputs), load_pairs(chunk.emits)
        except Exception as error:
            msg = f"what was recorded can't be unpickled here: {type(error).__name__}: {error}"
            raise CheckpointError(msg) from error
        yield (
            chunk.executed,
            inputs,
            [Emitted(stream, values) for stream, values in emits],
        )


def _execute(task: BoltTask, source: TupleSource, values: tuple[Any, ...], watch: _Watch) -> None:
    if (source.component, source.stream) == (SYSTEM_COMPONENT, TICK_STREAM):
        source = TICK_SOURCE
    watch.begin(f"{source!r}" if source is not TICK_SOURCE else "tick", values)
    task.execute_one((values, source, None))
    if len(task.mailbox):
        task.take_calls()


def _tell(task: BoltTask, event: BatchBegins | BatchEnds) -> None:
    if isinstance(event, BatchBegins):
        task.begin_batch(event.attempt, event.announced)
    else:
        task.end_batch()


class _Watch(TaskHook):
    """A hook that observes what the bolt does, input by input."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self.current: Executed | None = None
        self._bolt: Any = None
        #: All tuples that the bolt was given, because it may ack one much later.
        self._given: dict[int, tuple[Tuple, Executed]] = {}

    def begin(self, source: str, values: tuple[Any, ...]) -> None:
        self.current = Executed(len(self._replay.inputs) + 1, source, values)
        self._replay.inputs.append(self.current)

    def follow(self, task: Task, debugger: Pdb | None) -> None:
        """Wrap the bolt's ``execute``, so that each call is observed."""
        bolt = task.instance
        execute: Callable[..., None] = bolt.execute
        first = debugger

        def watched(tup: Tuple, *collector: Any) -> None:
            nonlocal first
            assert self.current is not None
            self._given[id(tup)] = tup, self.current
            stop, first = first, None
            try:
                if stop is not None:
                    stop.set_trace()
                execute(tup, *collector)
            except FailedException:
                raise
            except Exception:
                self.current.raised = traceback.format_exc()
                raise

        bolt.execute = watched
        self._bolt = bolt

    def leave(self) -> None:
        """Give the bolt its own ``execute`` back after the last input, so that its attributes hold nothing of the replay."""
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
        return self.current if found is None else found[1]  # for a BasicBolt, the hook gets another object


def _compare_emits(
    what: str, then: list[Emitted], now: list[Emitted], numbers: list[int] | None
) -> Iterator[str]:
    """Describe the first difference, because most others follow from it."""
    for position, (old, new) in enumerate(zip(then, now, strict=False)):
        if isinstance(old.values, Unpicklable) and old.stream == new.stream:
            continue
        if old.stream != new.stream or not _same(old.values, new.values):
            where = f" (input {numbers[position]})" if numbers else ""
            yield (
                f"{what} {position + 1}{where} was {old.values!r} on {old.stream}, and is {new.values!r} on {new.stream}"
            )
            break
    if len(then) != len(now):
        yield f"{what}: {len(then)} were recorded, and there are {len(now)}"


def _compare_states(
    done: Replay, component: ComponentPlan, table: StateTable, changed: dict[bytes, bytes | None]
) -> None:
    """Note which keys have changed now, and where that differs from the table."""

    def rows(as_of: int, which: int) -> Iterator[tuple[bytes, int, bytes | None]]:
        for found in table.restore(component.id, done.task, as_of):
            for row in found.to_pylist():
                yield row["key"], which, row["value"]

    before = rows(done.batch - 1, 0) if done.batch > table.oldest_txid else iter(())
    then = rows(done.batch, 1)
    now = ((key, 2, value) for key, value in sorted(changed.items()))
    for key, same_key in groupby(heapq.merge(before, then, now), key=itemgetter(0)):
        found = {which: value for _, which, value in same_key}
        was, became = found.get(0), found.get(1)
        is_now = found.get(2, was)
        for name, old, recorded, new in _taken_apart(component, key, was, became, is_now):
            if not _same(old, new):
                done.changes.append(Change(name, old, new))
            if not _same(recorded, new):
                done.differences.append(
                    f"state of key {name!r} became {_shown(recorded)}, and becomes {_shown(new)}"
                )


def _taken_apart(
    component: ComponentPlan, key: bytes, *pickled: bytes | None
) -> Iterable[tuple[Any, Any, Any, Any]]:
    """Return a key with its values; if these are pickled attributes, return each attribute instead."""
    name = decode_key(key)
    values = [_MISSING if one is None else _loaded(one) for one in pickled]
    if component.kind_of_state == "pickle" and name == _ATTRIBUTES:
        parts = [_loaded(one) if isinstance(one, bytes) else {} for one in values]
        if all(isinstance(one, dict) for one in parts):
            attributes = dict.fromkeys(
                attribute
                for one in parts
                for attribute, value in one.items()
                if not isinstance(value, _Surrounding)
            )
            return [(f".{one}", *(part.get(one, _MISSING) for part in parts)) for one in attributes]
    return [(name, *values)]


class _Surrounding(str):
    """A stand-in for an object that belongs to the process and is no state."""

    __slots__ = ()


class _WithoutSurroundings(pickle.Unpickler):
    def persistent_load(self, name: str) -> _Surrounding:
        """Return a stand-in for a bolt's collector or context, by its name."""
        return _Surrounding(f"<{name}>")


def _loaded(data: bytes) -> Any:
    try:
        return _WithoutSurroundings(io.BytesIO(data)).load()
    except Exception:
        return data


def _same(one: Any, other: Any) -> bool:
    """Return whether two values are equal, or equal when pickled.

    Some equal values don't compare as equal: NaN, arrays, and objects without ``__eq__``.
    """
    if one is _MISSING or other is _MISSING:
        return one is other
    with contextlib.suppress(Exception):
        if bool(one == other):
            return True
    with contextlib.suppress(Exception):
        return cloudpickle.dumps(one) == cloudpickle.dumps(other)  # type: ignore[no-any-return]
    return False


def _shown(value: Any) -> str:
    return "nothing" if value is _MISSING else repr(value)
