"""Random topologies on one to three workers, with and without the loss of a worker, against a model of a few lines.

The workers run in this process (`InProcessWorkers`): the same cores, frames and supersteps as on Spark.
"""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stormspark import BasicBolt, FailedException, Fields, Spout, TopologyBuilder
from stormspark.grouping import (
    AllGrouping,
    CustomGrouping,
    CustomStreamGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    LoadAwareShuffleGrouping,
    LocalFirstGrouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
)
from stormspark.local import InProcessWorkers, SimulatedClock
from stormspark.plan import PhysicalPlan, plan_topology
from stormspark.wire.frames import Frame, FrameKind
from stormspark.worker.core import Worker
from stormspark.worker.step import Step


class ToAll(CustomStreamGrouping):
    """All tasks, from the last to the first."""

    def prepare(self, context: Any, stream: Any, target_tasks: list[int]) -> None:
        self.tasks = target_tasks[::-1]

    def choose_tasks(self, task: int, values: Any) -> list[int]:
        return self.tasks


GROUPINGS = [
    ShuffleGrouping(),
    FieldsGrouping("m"),
    AllGrouping(),
    GlobalGrouping(),
    LocalOrShuffleGrouping(),
    PartialKeyGrouping("m"),
    NoneGrouping(),
    LoadAwareShuffleGrouping(),
    LocalFirstGrouping(),
    CustomGrouping(ToAll()),
]

#: What happened, whichever worker it was in: executions by (component, message), verdicts by (spout, life, message).
executions: Counter[tuple[str, Any]] = Counter()
verdicts: dict[tuple[str, int, Any], list[str]] = {}
lives: Counter[str] = Counter()


class Source(Spout):
    """Emits its share of ``n`` messages once, two a call; a message is (component, task index, number)."""

    def __init__(self, name: str, n: int) -> None:
        self.name, self.n = name, n

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.key = f"{self.name}[{context.this_task_index}]"
        lives[self.key] += 1
        self.life = lives[self.key]
        self.todo = [(self.key, self.life, number) for number in range(self.n)]

    def next_tuple(self) -> None:
        for _ in range(2):
            if self.todo:
                message = self.todo.pop()
                verdicts[message] = []
                self.collector.emit((pickle.dumps(message).hex(),), message_id=message)

    def ack(self, message_id: Any) -> None:
        verdicts[message_id].append("acked")

    def fail(self, message_id: Any) -> None:
        verdicts[message_id].append(self.collector.verdict.outcome.name)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("m"))


class Relay(BasicBolt):
    """Emits each tuple ``fan_out`` times; fails every message whose number is in ``fails``."""

    def __init__(self, name: str, fan_out: int, fails: frozenset[int]) -> None:
        self.name, self.fan_out, self.fails = name, fan_out, fails

    def execute(self, tup: Any, collector: Any) -> None:
        message = pickle.loads(bytes.fromhex(tup["m"]))
        executions[self.name, message] += 1
        for _ in range(self.fan_out):
            collector.emit((tup["m"],))
        if message[2] in self.fails:
            raise FailedException(message)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("m"))


@dataclass(frozen=True)
class Node:
    """A bolt of the topology, and of the model."""

    name: str
    tasks: int
    fan_out: int
    fails: frozenset[int]
    inputs: tuple[tuple[str, Grouping], ...]


@st.composite
def topologies(draw: st.DrawFn) -> tuple[dict[str, tuple[int, int]], list[Node]]:
    spouts = {
        f"s{i}": (draw(st.integers(1, 2)), draw(st.integers(1, 6))) for i in range(draw(st.integers(1, 2)))
    }
    nodes: list[Node] = []
    for i in range(draw(st.integers(1, 4))):
        earlier = [*spouts, *(node.name for node in nodes)]
        sources = draw(st.lists(st.sampled_from(earlier), min_size=1, max_size=2, unique=True))
        nodes.append(
            Node(
                name=f"b{i}",
                tasks=draw(st.integers(1, 3)),
                fan_out=draw(st.integers(0, 2)),
                fails=draw(st.frozensets(st.integers(0, 5), max_size=1)),
                inputs=tuple((source, draw(st.sampled_from(GROUPINGS))) for source in sources),
            )
        )
    return spouts, nodes


def planned(spouts: dict[str, tuple[int, int]], nodes: list[Node], workers: int) -> PhysicalPlan:
    builder = TopologyBuilder()
    for name, (tasks, messages) in spouts.items():
        builder.set_spout(name, Source(name, messages), tasks)
    for node in nodes:
        declarer = builder.set_bolt(node.name, Relay(node.name, node.fan_out, node.fails), node.tasks)
        for source, grouping in node.inputs:
            declarer.grouping(source, grouping)
    return plan_topology(builder.create_topology("random"), {"topology.workers": workers})


def expected(nodes: list[Node], message: tuple[str, int, int]) -> tuple[dict[str, int], bool]:
    """How often each bolt executes a tuple of ``message``, and whether one of them fails it."""
    emitted = {message[0].partition("[")[0]: 1}
    executed: dict[str, int] = {}
    for node in nodes:  # in the order of the edges
        copies: dict[type[Grouping], int] = {AllGrouping: node.tasks, CustomGrouping: node.tasks}
        executed[node.name] = sum(
            emitted.get(source, 0) * copies.get(type(grouping), 1) for source, grouping in node.inputs
        )
        emitted[node.name] = executed[node.name] * node.fan_out
    failed = any(executed[node.name] and message[2] in node.fails for node in nodes)
    return executed, failed


def forget_all() -> None:
    executions.clear()
    verdicts.clear()
    lives.clear()


@given(topology=topologies(), workers=st.integers(1, 3), seed=st.integers(0, 2**32))
def test_every_message_gets_its_verdict_and_every_bolt_its_tuples(
    topology: tuple[dict[str, tuple[int, int]], list[Node]], workers: int, seed: int
) -> None:
    """E20, E22-E26: the same on one, two and three workers."""
    forget_all()
    spouts, nodes = topology
    cluster = InProcessWorkers(planned(spouts, nodes, workers), SimulatedClock(), Random(seed))
    cluster.open()
    for _ in range(4):
        reports = cluster.run_batch()
        for worker in cluster.workers:
            worker.validate()
    assert [report.backlog for report in reports] == [0] * workers
    assert len(verdicts) == sum(tasks * messages for tasks, messages in spouts.values())
    for message, heard in verdicts.items():
        counts, failed = expected(nodes, message)
        assert heard == (["FAILED"] if failed else ["acked"])
        assert {node.name: executions[node.name, message] for node in nodes} == counts
    for worker in cluster.workers:
        statistics = worker.statistics()
        assert (statistics.open, statistics.known_outside, statistics.parts) == (0, 0, 0)


@given(
    topology=topologies(),
    workers=st.integers(2, 3),
    seed=st.integers(0, 2**32),
    victim=st.integers(0, 2),
    dies_in=st.integers(0, 3),
)
def test_a_lost_worker_costs_no_message_its_verdict(
    topology: tuple[dict[str, tuple[int, int]], list[Node]],
    workers: int,
    seed: int,
    victim: int,
    dies_in: int,
) -> None:
    """A worker dies in a superstep of the first batch, with its memory and all frames under way.

    Spouts elsewhere hear one verdict for each of their messages, and ``acked`` only of what was executed whole; the spouts of
    the lost worker are opened anew (B10), and their messages end as if nothing had been.
    """
    forget_all()
    spouts, nodes = topology
    plan = planned(spouts, nodes, workers)
    random = Random(seed)
    clock = SimulatedClock()
    cores = [Worker(plan, i, clock=clock, random=Random(random.getrandbits(64))) for i in range(workers)]
    for core in cores:
        core.open()
    victim %= workers
    inbound: list[list[Frame]] = [[] for _ in cores]
    for superstep in range(min(dies_in, plan.last_superstep) + 1):
        inbound = exchange([core.run(Step(0, 0, superstep), inbound[core.index]) for core in cores], workers)
    dead = {f"{plan.tasks[t].component}[{plan.tasks[t].index}]" for t in cores[victim].tasks}
    cores[victim] = Worker(plan, victim, incarnation=1, clock=clock, random=Random(random.getrandbits(64)))
    cores[victim].open()
    for core in cores:
        if core.index != victim:
            core.begin_attempt("a worker was lost")
    for batch in range(4):
        inbound = [[] for _ in cores]
        for superstep in range(plan.last_superstep + 1):
            inbound = exchange(
                [core.run(Step(batch, 1, superstep), inbound[core.index]) for core in cores], workers
            )
        for core in cores:
            core.validate()
    for message, heard in verdicts.items():
        counts, failed = expected(nodes, message)
        if message[0] in dead and message[1] == 1:
            assert len(heard) <= 1  # its spout is gone; it may have heard before
            continue
        (verdict,) = heard
        if verdict == "acked":
            assert not failed
            assert all(executions[name, message] >= count for name, count in counts.items())
        else:
            assert (verdict == "FAILED" and failed) or (verdict == "WORKER_LOST" and message[1] == 1)
    for core in cores:
        assert core.statistics().open == 0


def exchange(replies: list[list[Frame]], workers: int) -> list[list[Frame]]:
    frames = [frame for reply in replies for frame in reply if frame.kind != FrameKind.REPORT]
    return [
        sorted((f for f in frames if f.target == worker), key=lambda f: (f.sender, f.sequence))
        for worker in range(workers)
    ]
