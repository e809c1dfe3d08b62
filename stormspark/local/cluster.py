"""`LocalCluster`: runs topologies in this process, for tests and development (J25)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace as replaced
from random import Random
from types import TracebackType
from typing import Any, Self

from stormspark.api import Topology
from stormspark.config import merged
from stormspark.engine import AVAILABLE_NOW, TRIGGERS, AliveTopologies
from stormspark.errors import InvalidTopologyError, TopologyNotAliveError
from stormspark.local.clock import SimulatedClock
from stormspark.local.topology import CORES, LocalTopology, steps
from stormspark.plan import PhysicalPlan, log_advice, plan_topology
from stormspark.running import end

__all__ = ["LocalCluster", "running_topologies", "submit"]

_alive = AliveTopologies()  # the topologies that `submit` has started


class LocalCluster:
    """A cluster that runs topologies without Spark or Java. At the end of a ``with`` block, it ends all its topologies.

    With ``simulated_time`` nothing happens by itself. `advance_time` lets time pass, and `LocalTopology.run_until_idle` runs
    batches until no work is left. ``seed`` makes shuffles and edge ids repeatable.

    >>> from stormspark import Fields, TopologyBuilder
    >>> from stormspark.testing import TestWordCounter, FixedTupleSpout
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", FixedTupleSpout([("a",), ("b",), ("a",)], Fields("word")))
    >>> _ = builder.set_bolt("count", TestWordCounter()).fields_grouping("words", Fields("word"))
    >>> with LocalCluster(simulated_time=True) as cluster:
    ...     topology = cluster.submit_topology("demo", {}, builder.create_topology("demo"))
    ...     topology.run_until_idle()
    ...     topology.statistics().components["words"].acked
    3
    """

    def __init__(self, *, simulated_time: bool = False, seed: int | None = None) -> None:
        self._clock = SimulatedClock() if simulated_time else None
        self._random = Random(seed)
        self._topologies: dict[str, LocalTopology] = {}
        self._alive = AliveTopologies()

    def submit_topology(
        self, name: str, conf: Mapping[str, Any], topology: Topology, *, active: bool = True
    ) -> LocalTopology:
        """Run a topology under ``name``. ``conf`` overrides the topology's own configuration (A20).

        If ``active`` is false, the spouts are opened only once `activate` is called (B2, J4).

        Raises `InvalidTopologyError` for a topology that can't run, `TopologyAlreadyRunningError` if a topology of that name
        runs already (A14), and `ComponentError` if a component can't start.
        """
        renamed = replaced(topology, name=name, conf=merged(topology.conf, conf))
        plan = log_advice(plan_topology(renamed, cores=CORES))
        random = Random(self._random.getrandbits(64))
        running = self._alive.start(
            name, lambda: LocalTopology(plan, self._clock or time.monotonic, random, active=active)
        )
        self._topologies[name] = running
        return running

    def advance_time(self, seconds: float) -> None:
        """Let simulated time pass for every topology, in small steps, with a batch after each.

        Raises TypeError if time is real. If a topology ends with an error, raises that error.
        """
        self._advance(seconds, min((t.time_step for t in self._topologies.values()), default=seconds))

    def advance_cluster_time(self, seconds: float, increment: float = 1.0) -> None:
        """Storm's advanceClusterTime: let ``seconds`` of simulated time pass, in jumps of ``increment`` seconds.

        Each topology runs one batch after each jump, and nothing in between. So a topology sees each jump as a gap between two
        batches. At most ``stormspark.clock.gap.ms`` of a gap (1 s by default) counts for message timeouts, because no task can
        have worked during the gap (W2). Timers fire once per jump (C9). With increments of up to a second, time passes as usual.
        A huge increment looks like an outage to the topology.

        Raises ValueError unless ``increment`` is positive. Otherwise, raises what `advance_time` raises.
        """
        if not increment > 0:
            msg = f"an increment must be more than 0 seconds, got {increment!r}"
            raise ValueError(msg)
        self._advance(seconds, increment)

    def _advance(self, seconds: float, increment: float) -> None:
        if self._clock is None:
            msg = "this cluster runs on real time; create it with LocalCluster(simulated_time=True)"
            raise TypeError(msg)
        for step in steps(seconds, increment):
            self._clock.advance(step)
            for topology in self._topologies.values():
                topology.run_batch()

    def activate(self, name: str) -> None:
        """Let the topology's spouts emit again."""
        self._running(name).activate()

    def deactivate(self, name: str) -> None:
        """Stop the topology's spouts from emitting."""
        self._running(name).deactivate()

    def kill_topology(self, name: str) -> None:
        """End a topology gracefully."""
        self._running(name).stop()
        del self._topologies[name]

    def shutdown(self) -> None:
        """End all topologies gracefully."""
        for name in list(self._topologies):
            self.kill_topology(name)

    def _running(self, name: str) -> LocalTopology:
        try:
            return self._topologies[name]
        except KeyError:
            others = ", ".join(map(repr, self._topologies)) or "none"
            msg = f"no topology named {name!r} runs here; the running topologies are: {others}"
            raise TopologyNotAliveError(msg) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()


def submit(
    topology: Topology | PhysicalPlan,
    *,
    conf: Mapping[str, Any] | None = None,
    active: bool = True,
    show: Callable[[str | None, logging.LogRecord], None] | None = None,
    trigger: str = "continuous",
    replace: bool = False,
) -> LocalTopology:
    """Run one topology on real time. This is the local engine's counterpart of `stormspark.spark.submit`.

        with submit(build()) as running:
            running.wait(60)

    The result can be used in a ``with`` statement, which stops the topology at the end of its block. If ``replace`` is true, and
    a topology of the same name runs, that one is stopped first. So a notebook's cell can be run twice.

    ``trigger`` is "continuous" or "available-now". With "available-now" the topology processes the rows that its sources have
    when it starts, and then ends.

    A program that exists for the topology, such as ``stormspark run``, passes ``show``. Then tasks have log files as on Spark,
    also if ``stormspark.log.dir`` is not set. ``show`` gets what tasks log and print: the name of the task, and the record. Until
    the topology ends, nothing else appears on stdout and stderr. Without ``show``, the logging and the output of this process
    stay as they are.

    Raises `InvalidTopologyError` for a topology that can't run, and `ComponentError` if a component can't start. Raises
    `TopologyAlreadyRunningError` while another topology of the same name, submitted with this function, runs (A14).
    """
    if trigger not in TRIGGERS:
        msg = f"trigger must be one of {', '.join(TRIGGERS)}, got {trigger!r}"
        raise InvalidTopologyError(msg)
    plan = (
        topology
        if isinstance(topology, PhysicalPlan)
        else log_advice(plan_topology(topology, conf, cores=CORES))
    )
    available_now = trigger == AVAILABLE_NOW
    return _alive.start(
        plan.topology,
        lambda: LocalTopology(plan, active=active, show=show, available_now=available_now),
        end if replace else None,
    )


def running_topologies() -> dict[str, LocalTopology]:
    """Return the topologies that `submit` has started in this process and that still run, by name."""
    return {name: one for name, one in _alive.running().items() if isinstance(one, LocalTopology)}
