"""`complete_topology`: run a topology to its end and look at every tuple that it emitted (J25, W10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import cloudpickle

from stormspark.api import DEFAULT_STREAM, Topology
from stormspark.errors import InvalidTopologyError
from stormspark.local import LocalTopology, SimulatedClock
from stormspark.metrics import TopologyStatistics
from stormspark.plan import plan_topology
from stormspark.testing.components import FixedTuple, FixedTupleSpout
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.outlets import Outlet, Send

__all__ = ["CompletedTopology", "complete_topology"]


@dataclass(frozen=True)
class CompletedTopology:
    """What `complete_topology` saw: every tuple by (component, stream), in the order of emission, and the
    statistics.
    """

    tuples: Mapping[tuple[str, str], list[tuple[Any, ...]]]
    statistics: TopologyStatistics

    def read_tuples(self, component: str, stream: str = DEFAULT_STREAM) -> list[tuple[Any, ...]]:
        """The values of all tuples that ``component`` emitted on ``stream``; raises KeyError that lists what
        there is.
        """
        try:
            return self.tuples[component, stream]
        except KeyError:
            msg = f"no stream {stream!r} of component {component!r}; there are {sorted(self.tuples)}"
            raise KeyError(msg) from None


def complete_topology(
    topology: Topology,
    mocked_sources: Mapping[str, Iterable[Sequence[Any] | FixedTuple]] | None = None,
    conf: Mapping[str, Any] | None = None,
    *,
    timeout: float = 60.0,
    seed: int = 0,
) -> CompletedTopology:
    """Run ``topology`` on the local engine, in simulated time, until nothing is emitted or pending any more.

    ``mocked_sources`` replaces spouts by given tuples, emitted once and reliably. ``conf`` overrides the
    topology's. Raises InvalidTopologyError for a mock of what is no spout, TimeoutError when a spout never
    ends, ComponentError as engines do.

    >>> from stormspark import Fields, TopologyBuilder
    >>> from stormspark.testing import TestWordCounter, TestWordSpout
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", TestWordSpout())
    >>> _ = builder.set_bolt("count", TestWordCounter(), 2).fields_grouping("words", Fields("word"))
    >>> done = complete_topology(builder.create_topology("demo"), {"words": [("a",), ("b",), ("a",)]})
    >>> sorted(done.read_tuples("count"))
    [('a', 1), ('a', 2), ('b', 1)]
    """
    mocked = _with_mocks(topology, mocked_sources or {})
    running = LocalTopology(plan_topology(mocked, conf), SimulatedClock(), Random(seed))
    seen: dict[tuple[str, str], list[tuple[Any, ...]]] = {
        (component.id, stream): [] for component in mocked.components.values() for stream in component.streams
    }
    for worker in running.workers.workers:
        for task in worker.tasks.values():
            for stream, outlet in task.outlets.items():
                task.outlets[stream] = _recording(outlet, seen[task.component.id, stream])
            if isinstance(task, BoltTask):
                task.connect()
    running.run_until_idle(timeout)
    running.stop()
    return CompletedTopology(seen, running.statistics())


def _with_mocks(topology: Topology, mocks: Mapping[str, Iterable[Sequence[Any] | FixedTuple]]) -> Topology:
    components = dict(topology.components)
    for name, tuples in mocks.items():
        original = components.get(name)
        if original is None or original.kind != "spout":
            spouts = [c.id for c in components.values() if c.kind == "spout"]
            msg = f"mocked_sources names {name!r}, which is no spout of topology {topology.name!r}; its spouts are {spouts}"
            raise InvalidTopologyError(msg)
        mock = FixedTupleSpout(tuples, streams=original.streams.values())
        components[name] = replace(original, pickled=cloudpickle.dumps(mock))
    return replace(topology, components=components)


def _recording(outlet: Outlet, seen: list[tuple[Any, ...]]) -> Outlet:
    send_on, send_direct_on = outlet.send, outlet.send_direct

    def send(values: tuple[Any, ...], roots: Any) -> list[int]:
        tasks = send_on(values, roots)
        seen.append(values)
        return tasks

    def send_direct(task: int, values: tuple[Any, ...], roots: Any) -> int:
        sent = send_direct_on(task, values, roots)
        seen.append(values)
        return sent

    recording: Send = send
    return replace(outlet, send=recording, send_direct=send_direct)
