"""The throttle of one topology. It passes the workers' reports to the controller of backpressure, and returns the controller's
limits. Both engines use it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from stormspark.backpressure import (
    Controller,
    LimitedSpout,
    Limits,
    LocalPreference,
    PendingCost,
    Pressure,
    SpoutPressure,
)
from stormspark.plan.physical import PhysicalPlan
from stormspark.plan.reachability import spouts_of
from stormspark.worker.step import WorkerReport, merge_loads

__all__ = ["Throttle", "upstream_spouts"]


class Throttle:
    """A thread-safe wrapper of the controller that computes the limits of one topology's spouts."""

    def __init__(self, plan: PhysicalPlan) -> None:
        settings = plan.settings
        components = plan.components.values()
        self._slows = settings.backpressure_strategy == "slow"
        self._lock = threading.Lock()
        self._controller = Controller(
            {component.id: component.tasks for component in components if component.kind == "spout"},
            {component.id: component.tasks for component in components if component.kind == "bolt"},
            upstream_spouts(plan),
            target=settings.batch_target_ms / 1000,
            worker_of={task.id: task.worker for task in plan.tasks.values()},
            tuple_marks=settings.tuple_marks,
            byte_marks=settings.byte_marks,
            tree_marks=settings.tree_marks,
        )
        self._limited = {
            component.id: LimitedSpout(component.tasks, component.settings.max_spout_pending)
            for component in components
            if component.kind == "spout" and component.settings.max_spout_pending and settings.acking
        }
        self._cost = PendingCost(self._limited, {task.id: task.worker for task in plan.tasks.values()})
        self._local = LocalPreference(
            self._limited,
            lower=settings.locality_lower_bound,
            higher=settings.locality_higher_bound,
        )

    def begin(self) -> None:
        """Begin with new workers, whose speed is not known yet."""
        with self._lock:
            self._controller.begin()

    def observe(self, reports: Sequence[WorkerReport], seconds: float, *, first: bool = False) -> None:
        """Take in the reports of a round that took ``seconds``.

        The ``first`` round of an attempt may include the start of workers. For this round, only the time in which workers were at
        work counts.
        """
        loads = merge_loads(reports)
        worked = max((report.worked for report in reports), default=0.0)
        filled = max((report.filled for report in reports), default=0.0)
        with self._lock:
            if first:
                self._controller.observe(loads, worked, pause=seconds - worked, whole=False)
            else:
                self._controller.observe(loads, seconds, filled=filled)
                self._cost.observe(loads)
                self._local.observe(loads, seconds, worked=[report.worked for report in reports])

    @property
    def limits(self) -> Limits | None:
        """The limits of the spouts in the next round; None if the topology does not slow down spouts."""
        with self._lock:
            return self._controller.limits if self._slows else None

    @property
    def held(self) -> frozenset[str]:
        """The spouts that max spout pending held back in the last round."""
        with self._lock:
            return self._local.held

    @property
    def staying_local(self) -> frozenset[str]:
        """The spouts whose tuples stay in their workers in the next round, where the grouping allows it."""
        with self._lock:
            return self._local.staying

    @property
    def round_target(self) -> float:
        """How long the next round should be, in seconds."""
        with self._lock:
            return self._controller.round_target

    def limit_of(self, spout: str) -> int | None:
        """Return the limit of all tasks of a spout together; None if there is no limit."""
        with self._lock:
            return self._controller.limit_of(spout) if self._slows else None

    def is_behind(self, spouts: Iterable[str]) -> bool:
        """Return whether so many rows and tuples of one of these source spouts wait that no more rows should be read now."""
        with self._lock:
            return self._slows and any(self._controller.is_behind(spout) for spout in spouts)

    def pressure(self) -> Pressure:
        """Return the controller's whole state, and what is known of max spout pending, for people."""
        with self._lock:
            pressure = self._controller.pressure()
            if not self._slows:
                unthrottled = dict.fromkeys(pressure.spouts, SpoutPressure(None, None, {}))
                pressure = replace(pressure, spouts=unthrottled, limit_changes=0, history=())
            # Without the limit, rounds would be as long as the controller wants them to be.
            open_secs = self._controller.round_target
            spouts = {
                name: replace(
                    spout,
                    max_pending=self._limited[name].limit,
                    unfelt_max_pending=self._cost.unfelt(name, open_secs),
                )
                if name in self._limited
                else spout
                for name, spout in pressure.spouts.items()
            }
            return replace(pressure, spouts=spouts)


def upstream_spouts(plan: PhysicalPlan) -> Mapping[str, frozenset[str]]:
    """Return, for each bolt, the spouts from which tuples reach it, directly or through other bolts."""
    spouts = spouts_of(plan.components, plan.edges)
    return {name: spouts[name] for name, component in plan.components.items() if component.kind == "bolt"}
