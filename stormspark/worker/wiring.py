"""The wiring of a worker. It consists of the worker's tasks, and of the paths that their streams take.

A sender does not know whether a receiver is in this worker. The sender appends to a list, which is either the inbox of a task
of this worker or a lane to another worker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from stormspark.api import Fields, TupleSource
from stormspark.config import merged
from stormspark.extras import pyarrow as pa
from stormspark.grouping import CustomGrouping, DirectGrouping, GroupingContext
from stormspark.plan.physical import EdgePlan, PhysicalPlan, StreamPlan
from stormspark.plan.supersteps import forward_order
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.bolts.input_counts import InputCounts
from stormspark.worker.departures import Departures
from stormspark.worker.executors.bolt_task import ThreadedBoltTask
from stormspark.worker.executors.spout_task import ThreadedSpoutTask
from stormspark.worker.executors.task import ThreadedTask
from stormspark.worker.loads import Loads
from stormspark.worker.local_choices import LocalChoices
from stormspark.worker.refusals import Refusals
from stormspark.worker.spout_task import SpoutTask
from stormspark.worker.step import ErrorReport
from stormspark.worker.stories.stories import Stories
from stormspark.worker.task import Task
from stormspark.worker.task_host import Host
from stormspark.worker.tuples.outlets import Delivery, Outlet, Subscription, make_outlet
from stormspark.worker.tuples.try_serialize import serializing
from stormspark.worker.vectorised.outlets import (
    BatchOutlet,
    BatchReceiver,
    BatchSubscription,
    Receive,
    as_tuples,
)
from stormspark.worker.vectorised.routing import make_route
from stormspark.worker.vectorised.tasks import ArrowBoltTask, ArrowSpoutTask

__all__ = ["Wiring", "connect", "make_tasks"]


@dataclass(frozen=True)
class Wiring:
    """The tasks of one worker, by id and by kind, and the lists that senders append to."""

    tasks: Mapping[int, Task]
    spouts: Sequence[SpoutTask]
    #: The bolts, senders before receivers. So one pass can carry a tuple through all bolts of this worker, except around a loop.
    bolts: Sequence[BoltTask]
    vectorised_bolts: Sequence[ArrowBoltTask]
    inboxes: Mapping[int, list[Delivery]]
    #: For each task, the function that takes rows of record batches for the task.
    receivers: Mapping[int, Receive]
    #: The streams of all tasks of the topology, in this worker and in others. Each tuple refers to the stream that it came
    #: from.
    sources: Mapping[tuple[int, str], TupleSource]

    @property
    def fatal(self) -> ErrorReport | None:
        """The error with which a task of this worker stops the topology; None while the topology goes on."""
        return next((task.fatal for task in self.tasks.values() if task.fatal is not None), None)

    def waiting_for(self, task: int) -> int:
        """Return how many tuples wait for a bolt's task in this worker."""
        bolt = self.tasks[task]
        assert isinstance(bolt, BoltTask), bolt.name
        return bolt.waiting


def make_tasks(
    plan: PhysicalPlan, index: int, host: Host, refusals: Refusals, *, side_by_side: bool = False
) -> Wiring:
    """Make the tasks of worker ``index``. They are not connected yet.

    If ``side_by_side``, executors whose code may wait get threads of their own.
    """
    tasks: dict[int, Task] = {}
    for placed in plan.tasks_of_worker(index):
        component = plan.components[placed.component]
        conf = merged(plan.conf, component.conf)
        # A recording holds inputs in the order in which they are executed, each followed by its emits. Only one thread can
        # write in this order.
        threaded = side_by_side and bool(component.threads_reason) and not plan.settings.record_inputs
        if component.kind == "bolt":
            bolt: type[BoltTask] = ArrowBoltTask if component.vectorised else BoltTask
            if threaded:
                bolt = ThreadedBoltTask
            tasks[placed.id] = made = bolt(placed, component, conf, host)
            if sum(edge.target == component.id for edge in plan.edges) > 1:
                made.by_input = InputCounts()
        else:
            spout: type[SpoutTask] = ArrowSpoutTask if component.vectorised else SpoutTask
            if threaded:
                spout = ThreadedSpoutTask
            tasks[placed.id] = spout(
                placed,
                component,
                conf,
                host,
                acking=plan.settings.acking,
                waits_for_commit=plan.exactly_once,
            )
    order = forward_order(plan.components, plan.edges)
    downstream = sorted(tasks.values(), key=lambda task: (order[task.component.id], task.id))
    bolts = [task for task in downstream if isinstance(task, BoltTask)]
    tasks_of = Counter(task.component.id for task in bolts)
    for task in bolts:
        if task.component.capacity:
            task.side_by_side = tasks_of[task.component.id]
    return Wiring(
        tasks=tasks,
        spouts=[task for task in tasks.values() if isinstance(task, SpoutTask)],
        bolts=bolts,
        vectorised_bolts=[bolt for bolt in bolts if isinstance(bolt, ArrowBoltTask)],
        inboxes={bolt.id: bolt.inbox for bolt in bolts},
        receivers={
            bolt.id: bolt.receive
            if isinstance(bolt, ArrowBoltTask)
            else as_tuples(bolt.id, bolt.inbox, refusals.refuse_later)
            for bolt in bolts
        },
        sources={
            (task, stream.id): TupleSource(component.id, task, stream.id, Fields(stream.fields))
            for component in plan.components.values()
            for task in component.tasks
            for stream in component.streams.values()
        },
    )


def connect(
    wiring: Wiring,
    plan: PhysicalPlan,
    index: int,
    departures: Departures,
    loads: Loads,
    local_choices: LocalChoices,
    stories: Stories,
    random: Random,
) -> None:
    """Give each task the outlets of its streams."""
    connector = _Connector(wiring, plan, index, departures, loads, local_choices, stories, random)
    for task in wiring.tasks.values():
        connector.connect(task)


@dataclass(frozen=True)
class _Connector:
    """An object that makes all outlets of one worker's tasks."""

    wiring: Wiring
    plan: PhysicalPlan
    index: int
    departures: Departures
    loads: Loads
    local_choices: LocalChoices
    stories: Stories
    random: Random

    def connect(self, task: Task) -> None:
        """Make the outlets of a task's streams."""
        if isinstance(task, ArrowBoltTask):
            for edge in self.plan.edges:
                if edge.target == task.component.id:
                    task.subscribe(edge.source, edge.stream, self._schema(edge))
        if isinstance(task, ArrowBoltTask | ArrowSpoutTask):
            for typed in task.component.streams.values():
                task.batch_outlets[typed.id] = self._batch_outlet(task, typed)
        else:
            for stream in task.component.streams:
                task.outlets[stream] = self._outlet(task, stream)

    def _schema(self, edge: EdgePlan) -> pa.Schema:
        return self.plan.components[edge.source].streams[edge.stream].schema

    def _outlet(self, task: Task, stream: str) -> Outlet:
        source = self.wiring.sources[task.id, stream]
        subscriptions = [self._subscription(source, edge) for edge in self._edges(source)]
        outlet = make_outlet(source, subscriptions, task.logger.warning)
        outlet = serializing(outlet) if self.plan.settings.try_serialize else outlet
        if isinstance(task, SpoutTask) and task.by_stream is not None and task.outlets:
            outlet = task.by_stream.observed(outlet)  # a stream that is not the first
        if isinstance(task, BoltTask) and task.inputs is not None:
            outlet = task.inputs.observed(outlet)
        return outlet

    def _edges(self, source: TupleSource) -> Iterator[EdgePlan]:
        """Iterate over the subscriptions to this stream."""
        for edge in self.plan.edges:
            if (edge.source, edge.stream) == (source.component, source.stream):
                yield edge

    def _subscription(self, source: TupleSource, edge: EdgePlan) -> Subscription:
        inboxes: dict[int, list[Delivery]] = {}
        for target in self.plan.components[edge.target].tasks:
            worker = self.plan.tasks[target].worker
            if worker == self.index:
                inboxes[target] = self.wiring.inboxes[target]
            else:
                inboxes[target] = self.departures.lanes[worker].inbox(source.task, target)
        context, choose = self._chooser(source, edge)
        # A grouping that is `single` and has no key fields does not look at a tuple's values. A user's own grouping may look at
        # the values, but is never `single`.
        candidates = edge.grouping.candidates(context.targets, context.local_targets)
        blind = edge.grouping.single and not edge.grouping.key_fields
        return Subscription(
            consumer=edge.target,
            choose=choose,
            single=edge.grouping.single,
            direct=isinstance(edge.grouping, DirectGrouping),
            inboxes=inboxes,
            only=candidates[0] if blind and len(candidates) == 1 else None,
        )

    def _batch_outlet(self, task: Task, stream: StreamPlan) -> BatchOutlet:
        """Make the outlet of a stream of a vectorised task."""
        source = self.wiring.sources[task.id, stream.id]
        subscriptions = []
        for edge in self._edges(source):
            context, choose = self._chooser(source, edge)
            subscriptions.append(
                BatchSubscription(
                    edge.target,
                    make_route(edge.grouping, choose, context),
                    isinstance(edge.grouping, DirectGrouping),
                    {target: self._receiver(target) for target in context.targets},
                )
            )
        return BatchOutlet(source, stream.schema, subscriptions, self.stories.scene)

    def _receiver(self, target: int) -> BatchReceiver:
        placed = self.plan.tasks[target]
        here = placed.worker == self.index
        receive = (
            self.wiring.receivers[target]
            if here
            else self.departures.batch_lanes[placed.worker].inbox(target)
        )
        return BatchReceiver(receive, f"{placed.component}[{placed.index}]", here)

    def _chooser(self, source: TupleSource, edge: EdgePlan) -> tuple[GroupingContext, Callable[..., Any]]:
        """Make the chooser of one sender for one subscription. Also return the context that the chooser got.

        If the sender's executor has a thread, a custom grouping is prepared there, where it will choose (D13).
        """
        settings = self.plan.settings
        targets = self.plan.components[edge.target].tasks
        context = GroupingContext(
            source=edge.source,
            stream=edge.stream,
            fields=tuple(source.fields),
            sender=source.task,
            targets=targets,
            local_targets=tuple(target for target in targets if target in self.wiring.inboxes),
            random=self.random,
            ints=settings.fields_ints,
            consumer=edge.target,
            tasks={component.id: component.tasks for component in self.plan.components.values()},
            conf=self.plan.conf,
            higher_bound=settings.locality_higher_bound,
            lower_bound=settings.locality_lower_bound,
        )
        choose: Callable[..., Any]
        sender = self.wiring.tasks[source.task]
        if isinstance(sender, ThreadedTask) and isinstance(edge.grouping, CustomGrouping):
            choose = edge.grouping.unprepared_chooser(context)
            sender.to_prepare.append(choose.prepare)
        else:
            choose = edge.grouping.chooser(context)
        self.loads.follow(edge, choose)
        self.local_choices.follow(edge, choose)
        return context, choose
