"""Enters the declared components and their subscriptions into the plan, with the settings that hold for each component.

Each configuration is read once, and the plan keeps the settings that were read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from stormspark.api import ComponentDeclaration
from stormspark.config import Settings, for_component, merged
from stormspark.grouping import Grouping
from stormspark.plan.context import PlanningContext
from stormspark.plan.others_code import Found, of_groupings, of_hooks
from stormspark.plan.physical import ComponentPlan, EdgePlan, PhysicalPlan, StreamPlan

__all__ = ["enter_components"]


def enter_components(plan: PhysicalPlan, context: PlanningContext) -> PhysicalPlan:
    """Enter components, subscriptions and worker hooks into the plan.

    Raises `InvalidTopologyError` for settings that contradict each other.
    """
    settings = Settings.read(plan.conf)
    components = context.topology.components.values()
    subscribers: dict[str, list[tuple[str, Grouping]]] = {one: [] for one in context.topology.components}
    for one in components:
        for (source, _), grouping in one.inputs.items():
            subscribers[source].append((one.id, grouping))
    return replace(
        plan,
        settings=settings,
        components={one.id: _component(one, plan.conf, settings, subscribers[one.id]) for one in components},
        edges=tuple(
            EdgePlan(source, stream, one.id, grouping, crosses=False)
            for one in components
            for (source, stream), grouping in one.inputs.items()
        ),
        worker_hooks=context.topology.worker_hooks,
    )


def _component(
    component: ComponentDeclaration,
    topology_conf: Mapping[str, Any],
    of_topology: Settings,
    subscribers: Sequence[tuple[str, Grouping]],
) -> ComponentPlan:
    settings = _settings(component, topology_conf, of_topology)
    others = [*of_groupings(subscribers), *of_hooks(settings.auto_hooks or ())]
    threads_reason = _threads_reason(component, settings, others)
    return ComponentPlan(
        id=component.id,
        kind=component.kind,
        pickled=component.pickled,
        streams={
            one.id: StreamPlan(one.id, tuple(one.fields), one.direct, one.schema)
            for one in component.streams.values()
        },
        conf=for_component(component.conf),
        settings=settings,
        parallelism=component.parallelism,
        tasks=(),
        declared_at=component.declared_at,
        kind_of_source=component.kind_of_source,
        kind_of_batch=component.kind_of_batch,
        flushes=component.flushes or (component.kind == "bolt" and bool(settings.tick_freq_secs)),
        vectorised=component.vectorised,
        capacity=component.capacity,
        threads_reason=threads_reason,
        holds_up=()
        if threads_reason or settings.executor_threads == "never"
        else tuple(found.known_to_wait for found in others if found.known_to_wait),
        waits_all_the_same=component.waits_all_the_same if settings.executor_threads == "auto" else "",
        says_that_it_computes=component.says_that_it_computes,
        blocks_the_loop="" if settings.executor_threads == "never" else component.blocks_the_loop,
        misspelt=component.misspelt,
        own_conf=component.conf,
    )


def _threads_reason(component: ComponentDeclaration, settings: Settings, others: Iterable[Found]) -> str:
    """Return why each executor of the component has a thread of its own; empty if the executors run on the worker's thread."""
    if component.on_workers_thread or settings.executor_threads == "never":
        return ""
    if settings.executor_threads == "always":
        return "stormspark.executor.threads is 'always'"
    if component.may_wait or component.says_that_it_computes:
        return component.may_wait
    return next((found.may_wait for found in others if found.may_wait), "")


def _settings(
    component: ComponentDeclaration, topology_conf: Mapping[str, Any], of_topology: Settings
) -> Settings:
    """Return the settings of the component's tasks: the topology's, and those that a component may set for itself (A20, A21).

    A component without its own configuration gets the topology's `Settings` object, so a pickled plan holds this object only
    once.
    """
    if not component.conf:
        return of_topology
    # No key of a component may contradict the topology's keys. This includes keys that a component can't set for itself.
    with_all_keys = Settings.read(merged(topology_conf, component.conf))
    conf = for_component(component.conf)
    if len(conf) == len(component.conf):
        return with_all_keys
    return Settings.read(merged(topology_conf, conf)) if conf else of_topology
