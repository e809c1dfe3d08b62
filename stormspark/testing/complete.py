"""`complete_topology` runs a topology to its end, and returns every tuple that the topology has emitted (J25, W10)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import cloudpickle

from stormspark.api import DEFAULT_STREAM, ComponentDeclaration, Topology
from stormspark.config import merged
from stormspark.engine import RunningTopology
from stormspark.errors import EmitError, InvalidTopologyError, TopologyNotCompleteError
from stormspark.local import CORES, LocalTopology, SimulatedClock
from stormspark.metrics import Quiet, TopologyStatistics
from stormspark.plan import plan_topology
from stormspark.testing.components import FixedTuple, FixedTupleSpout
from stormspark.testing.recording import AUTO_HOOKS, Recording

__all__ = ["CompletedTopology", "MockedTuples", "complete_topology"]

#: The tuples that a mocked spout emits. Each is a sequence of values for the default stream, or a `FixedTuple` for any stream.
MockedTuples = Iterable[Sequence[Any] | FixedTuple]

_POLL_SECS = 0.02
#: If trees are open and nothing happens, the simulated clock advances by this time, again and again, until the trees go on or
#: time out.
_PATIENCE_SECS = 1.0
_HOUR = 3600.0


@dataclass(frozen=True)
class CompletedTopology:
    """The result of `complete_topology`.

    ``tuples`` has, for each (component, stream), all tuples in the order in which they were emitted. ``tasks`` has, in the same
    order, the task that has emitted each tuple.
    """

    tuples: Mapping[tuple[str, str], list[tuple[Any, ...]]]
    statistics: TopologyStatistics
    tasks: Mapping[tuple[str, str], list[int]]

    def read_tuples(
        self, component: str, stream: str = DEFAULT_STREAM, *, task: int | None = None
    ) -> list[tuple[Any, ...]]:
        """Return the values of all tuples that ``component``, or one of its tasks, has emitted on ``stream``.

        Raises a KeyError that lists the streams if there is no such stream.
        """
        try:
            values, tasks = self.tuples[component, stream], self.tasks[component, stream]
        except KeyError:
            msg = f"no stream {stream!r} of component {component!r}; there are {sorted(self.tuples)}"
            raise KeyError(msg) from None
        return [one for one, by in zip(values, tasks, strict=True) if task in (None, by)]


def complete_topology(
    topology: Topology,
    mocked_sources: Mapping[str, MockedTuples] | None = None,
    conf: Mapping[str, Any] | None = None,
    *,
    engine: str = "local",
    spark: Any = None,
    timeout: float = 60.0,
    most: int = 1_000_000,
    seed: int = 0,
) -> CompletedTopology:
    """Run ``topology`` until its spouts emit nothing more and all emitted tuples are processed. Then end it gracefully.

    ``mocked_sources`` maps the ids of spouts to tuples. Each of these spouts is replaced by a spout that emits its tuples once,
    with message ids. Other spouts run as they are. A spout that emits nothing in two batches counts as ended. ``conf`` overrides
    the topology's configuration.

    On the ``"local"`` engine, time is simulated. It passes only while trees are open or tuples wait, and nothing happens. Then
    ticks arrive, windows end, and tuples that no bolt acks time out. Tuples in windows of event time do not time out. If only
    they are left, the input ends, so that these windows fire (`RunningTopology.end_input`).

    On ``"spark"``, time is real. ``spark`` is the session, as for `stormspark.spark.submit`, and the workers must run on this
    host.

    Raises `InvalidTopologyError` if a mocked component is not a spout, and `EmitError` if a mocked tuple does not fit its stream.
    After ``timeout`` real seconds, or when a task has emitted more than ``most`` tuples, raises `TopologyNotCompleteError` (a
    TimeoutError). Its message names the components that are still busy. Raises `ComponentError` for the same reasons as the
    engines.

    >>> from stormspark import Fields, TopologyBuilder
    >>> from stormspark.testing import TestWordCounter, TestWordSpout
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", TestWordSpout())
    >>> _ = builder.set_bolt("count", TestWordCounter(), 2).fields_grouping("words", Fields("word"))
    >>> done = complete_topology(builder.create_topology("demo"), {"words": [("a",), ("b",), ("a",)]})
    >>> sorted(done.read_tuples("count"))
    [('a', 1), ('a', 2), ('b', 1)]
    """
    if engine not in ("local", "spark"):
        msg = f"engine must be 'local' or 'spark', got {engine!r}"
        raise ValueError(msg)
    mocked = _with_mocks(topology, mocked_sources or {})
    with Recording(in_process=engine == "local", most=most) as recording:
        recorded, settings = _with_recording(mocked, conf or {}, recording)
        run = (
            _locally(recorded, settings, seed, recording)
            if engine == "local"
            else _on_spark(recorded, settings, spark)
        )
        with run as (running, go_on, clock):
            _complete(running, go_on, clock, recording, timeout)
        emissions = recording.look()
        keys = [(one.id, stream) for one in mocked.components.values() for stream in one.streams]
        tuples: dict[tuple[str, str], list[tuple[Any, ...]]] = {key: [] for key in keys}
        tasks: dict[tuple[str, str], list[int]] = {key: [] for key in keys}
        for _, component, task, stream, values in emissions:
            tuples[component, stream].append(values)
            tasks[component, stream].append(task)
        return CompletedTopology(tuples, running.statistics(), tasks)


# -- running it ------------------------------------------------------------------------------------------------

#: A function that lets the topology run for a moment. Its argument is true if trees are open but nothing happens.
_GoOn = Callable[[bool], None]


@contextmanager
def _locally(
    topology: Topology, conf: Mapping[str, Any], seed: int, recording: Recording
) -> Iterator[tuple[RunningTopology, _GoOn, Callable[[], float]]]:
    clock = SimulatedClock()
    # The simulated clock stands still during a batch. Without this jump, a batch with a spout that emits for ever would not end.
    recording.on_endless = lambda: clock.advance(_HOUR)
    running = LocalTopology(plan_topology(topology, conf, cores=CORES), clock, Random(seed))

    def go_on(stuck: bool) -> None:
        if stuck:
            running.advance_time(_PATIENCE_SECS)
        else:
            running.run_batch()

    try:
        yield running, go_on, clock
    finally:
        running.stop()


@contextmanager
def _on_spark(
    topology: Topology, conf: Mapping[str, Any], spark: Any
) -> Iterator[tuple[RunningTopology, _GoOn, Callable[[], float]]]:
    from stormspark.spark import submit  # imported late, so that this package needs no Spark

    running = submit(topology, spark, conf=conf)

    def go_on(stuck: bool) -> None:
        if running.wait(_POLL_SECS) and running.error is not None:
            raise running.error

    try:
        yield running, go_on, time.monotonic
    except BaseException:
        running.kill()
        raise
    running.stop()


def _complete(
    running: RunningTopology, go_on: _GoOn, clock: Callable[[], float], recording: Recording, timeout: float
) -> None:
    message_timeout = running.plan.settings.timeout_secs
    until_all_have_timed_out = 2 * (message_timeout or 0.0) + _PATIENCE_SECS
    moved = clock()
    deadline = time.monotonic() + timeout
    quiet = Quiet()
    before = now = running.statistics()
    too_much_at: int | None = None
    while not (quiet.reached(now) or running.wait(0)):
        if not quiet.waits:
            moved = clock()
        elif clock() - moved > until_all_have_timed_out:
            running.end_input()
        go_on(quiet.waits)
        latest = running.statistics()
        if latest.batches != now.batches:
            before, now = now, latest
        recording.look()
        if recording.endless is not None:
            too_much_at = now.batches if too_much_at is None else too_much_at
            # The current batch may have begun before a task emitted too much. One more batch shows which components are busy.
            if now.batches >= too_much_at + 2:
                reason = f"a task of {recording.endless!r} has emitted more tuples than are recorded (most)"
                raise TopologyNotCompleteError(_not_complete(reason, before, now))
        if time.monotonic() > deadline:
            raise TopologyNotCompleteError(_not_complete(f"after {timeout:g} s", before, now))


def _not_complete(reason: str, before: TopologyStatistics, now: TopologyStatistics) -> str:
    """Describe the components that are still busy. The last two batches show which these are."""
    why = []
    for name, component in now.components.items():
        more = component.emitted - before.components[name].emitted
        if component.kind == "spout" and more:
            why.append(
                f"spout {name!r} still emits, {component.emitted} tuples so far: give it an end, or replace it with "
                f"mocked_sources"
            )
        elif component.kind == "spout" and component.pending:
            why.append(
                f"spout {name!r} waits for the end of {component.pending} trees: check that every bolt acks"
            )
        elif component.queued:
            why.append(f"{component.queued} tuples wait for bolt {name!r}")
        elif more:
            why.append(f"bolt {name!r} still emits, {component.emitted} tuples so far")
    return (
        f"topology {now.topology!r} is not complete, {reason}: {'; '.join(why) or 'no batch has ended yet'}"
    )


# -- the topology that is run ----------------------------------------------------------------------------------


def _with_recording(
    topology: Topology, conf: Mapping[str, Any], recording: Recording
) -> tuple[Topology, Mapping[str, Any]]:
    def recorded(component: ComponentDeclaration) -> ComponentDeclaration:
        if AUTO_HOOKS not in component.conf:
            return component
        hooks = recording.hook_conf(component.conf[AUTO_HOOKS])[AUTO_HOOKS]
        return replace(component, conf={**component.conf, AUTO_HOOKS: hooks})

    everything = merged(topology.conf, conf)
    components = {name: recorded(component) for name, component in topology.components.items()}
    settings = merged(everything, recording.hook_conf(everything.get(AUTO_HOOKS)))
    return replace(topology, components=components), settings


def _with_mocks(topology: Topology, mocks: Mapping[str, MockedTuples]) -> Topology:
    components = dict(topology.components)
    for name, tuples in mocks.items():
        original = components.get(name)
        if original is None or original.kind != "spout":
            spouts = [c.id for c in components.values() if c.kind == "spout"]
            msg = f"mocked_sources names {name!r}, which is not a spout of topology {topology.name!r}; its spouts are {spouts}"
            raise InvalidTopologyError(msg)
        mock = FixedTupleSpout(tuples, streams=original.streams.values())
        for one in mock.source_tuples:
            _check_mock(original, one)
        components[name] = replace(
            original,
            pickled=cloudpickle.dumps(mock),
            kind_of_source="",
            type_name="FixedTupleSpout",
            vectorised=False,
        )
    return replace(topology, components=components)


def _check_mock(spout: ComponentDeclaration, mocked: FixedTuple) -> None:
    declared = spout.streams.get(mocked.stream)
    if declared is None:
        streams = ", ".join(map(repr, spout.streams)) or "no streams"
        msg = f"mocked_sources of {spout.id!r}: {mocked!r} is for an unknown stream; the spout declares {streams}"  # B9
        raise EmitError(msg)
    if len(mocked.values) != len(declared.fields):
        msg = (
            f"mocked_sources of {spout.id!r}: stream {mocked.stream!r} has {len(declared.fields)} fields "
            f"({', '.join(declared.fields)}), got {mocked.values!r}"  # A12
        )
        raise EmitError(msg)
