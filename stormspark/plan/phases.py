"""The phases of planning, in order. The body of `plan_topology` is their documentation.

graph -> validated -> shuffles that follow load, if wanted (D6) -> tasks (A16-A18) -> packed into workers ->
edges that can cross -> supersteps -> physical plan
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stormspark.api import Topology
from stormspark.config import Settings, for_component, merged
from stormspark.plan.batches import check_batches, ends_of_batches
from stormspark.plan.crossing import cut_edges
from stormspark.plan.load_awareness import follow_load
from stormspark.plan.packing import pack
from stormspark.plan.physical import ComponentPlan, PhysicalPlan, StreamPlan
from stormspark.plan.settings import settings_of
from stormspark.plan.state import check_state, is_exactly_once, kind_of_state
from stormspark.plan.supersteps import count_supersteps, stages
from stormspark.plan.tasks import number_tasks, size_component, system_tasks, wanted_tasks
from stormspark.plan.validation import validate
from stormspark.plan.windows import check_windows

__all__ = ["plan_topology"]


def plan_topology(topology: Topology, conf: Mapping[str, Any] | None = None) -> PhysicalPlan:
    """Plan ``topology``; ``conf`` overrides its own configuration, as a command line does (A20).

    Raises `InvalidTopologyError` naming component, stream and the user's line (J5).

    >>> from stormspark import Fields, TopologyBuilder
    >>> from stormspark.testing import TestWordCounter, TestWordSpout
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", TestWordSpout(), parallelism=2)
    >>> _ = builder.set_bolt("count", TestWordCounter(), parallelism=2).fields_grouping("words", Fields("word"))
    >>> plan = plan_topology(builder.create_topology("demo"), {"topology.workers": 2})
    >>> plan.supersteps, [(task.id, task.component, task.worker) for task in plan.tasks.values()]
    (1, [(3, 'count', 0), (4, 'count', 1), (5, 'words', 0), (6, 'words', 1)])
    """
    conf = merged(topology.conf, conf or {})
    validate(topology, conf)
    settings = Settings.read(conf)
    check_state(topology, conf)
    exactly_once = is_exactly_once(topology, conf)
    check_windows(topology, conf, exactly_once=exactly_once)
    check_batches(topology)
    topology = follow_load(topology, settings)
    sizes = {one.id: size_component(one, settings) for one in topology.components.values()}
    numbered = number_tasks(sizes, system_tasks(settings, conf))
    tasks = pack(numbered, settings.workers)
    edges = cut_edges(topology, tasks)
    supersteps = count_supersteps(edges)
    stage_of = stages(topology.components, edges)
    ends = ends_of_batches(topology, edges)
    return PhysicalPlan(
        topology=topology.name,
        conf=conf,
        settings=settings,
        components={
            one.id: ComponentPlan(
                id=one.id,
                kind=one.kind,
                pickled=one.pickled,
                streams={
                    s.id: StreamPlan(s.id, tuple(s.fields), s.direct, s.schema) for s in one.streams.values()
                },
                conf=for_component(one.conf),
                settings=settings_of(one, conf, settings),
                parallelism=sizes[one.id].executors,
                tasks=tuple(task.id for task in tasks.values() if task.component == one.id),
                declared_at=one.declared_at,
                kind_of_source=one.kind_of_source,
                kind_of_state=kind_of_state(one, conf, exactly_once),
                windowed=one.window_time is not None and exactly_once,
                kind_of_batch=one.kind_of_batch,
                vectorised=one.vectorised,
                own_conf=one.conf,
                wanted_tasks=wanted_tasks(one, settings),
            )
            for one in topology.components.values()
        },
        tasks=tasks,
        edges=edges,
        workers=settings.workers,
        supersteps=supersteps,
        worker_hooks=topology.worker_hooks,
        exactly_once=exactly_once,
        ends_of_batches={bolt: (number, stage_of[bolt]) for bolt, number in ends.items()},
    )
