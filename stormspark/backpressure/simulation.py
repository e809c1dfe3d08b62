"""A simulated topology for tests of a controller. It consists of arithmetic, without Spark, threads or waiting.

It models what matters to a controller. Each worker does one thing at a time. A superstep waits for the slowest worker, and ends
at a deadline. Tuples that are left are executed before new ones. Spouts have a quantum, and each round has overhead. A `Scenario`
says when bolts are slow, when everything stalls, and when load comes suddenly.

Any object that has ``observe`` and ``limits`` can be tested. For comparison with `Controller`, this module has four other
controllers: a limit that never changes, Spark's rate estimator for DStreams, Heron's gate (F10), and Storm's bounded queues (F1,
F3).

>>> slow = Scenario([SimulatedSpout("words")], [SimulatedBolt("count", {"words": 1}, cost=lambda seconds: 1e-3)])
>>> simulation = Simulation(slow, our_controller(slow), Random(1))
>>> executed = sum(one.executed["count"] for one in simulation.run(60))
>>> round(executed / simulation.now)  # the bolt could execute 1000 tuples per second
946
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import inf
from random import Random
from typing import Protocol

from stormspark.backpressure.controller import FIRST_LIMIT, Controller
from stormspark.backpressure.quantum import SpoutQuantum
from stormspark.backpressure.signals import BoltLoad, Limits, SpoutLoad, TaskLoad
from stormspark.backpressure.water_marks import WaterMarks

__all__ = [
    "BoundedQueues",
    "FixedLimit",
    "HeronGate",
    "Pid",
    "Round",
    "Scenario",
    "SimulatedBolt",
    "SimulatedSpout",
    "Simulation",
    "Steers",
    "our_controller",
]

_TUPLE_MARKS = (1_000_000, 500_000)
_BYTE_MARKS = (100 * 1024 * 1024, 50 * 1024 * 1024)
#: About how many turns a simulated spout's task has in its quantum. In a real worker it has more turns, of 64 calls each.
_TURNS = 16
#: If a tuple has more bytes than this, a simulated turn also has 64 calls. In a longer turn, a worker could get far above its
#: marks.
_LARGE = 1000
#: How many times per target a bolt reads the clock.
_LOOKS = 50


def _endless(seconds: float) -> float:
    return inf


@dataclass(frozen=True)
class SimulatedSpout:
    """A simulated spout. Until time t its tasks together can emit ``supply(t)`` tuples. One emit takes ``seconds``."""

    name: str
    workers: Sequence[int] = (0,)  #: the worker of each task
    seconds: float = 1e-6
    supply: Callable[[float], float] = _endless


@dataclass(frozen=True)
class SimulatedBolt:
    """A simulated bolt. For each tuple of component c the bolt gets ``inputs[c]`` tuples. Each takes ``cost(t)`` seconds."""

    name: str
    inputs: Mapping[str, float]
    workers: Sequence[int] = (1,)  #: the worker of each task
    cost: Callable[[float], float] = lambda seconds: 1e-6
    shares: Sequence[float] = ()  #: the share of the bolt's tuples that each task gets; equal shares if empty
    bytes: int = 100  #: per tuple
    jitter: float = 0.0  #: sigma of a lognormal factor of the cost, drawn anew every two targets


@dataclass(frozen=True)
class Scenario:
    """A simulated topology and its surroundings. Components are in the order in which tuples pass through them.

    Times are in seconds, and ``deadline`` is per superstep.
    """

    spouts: Sequence[SimulatedSpout]
    bolts: Sequence[SimulatedBolt]
    target: float = 1.0
    overhead: float = 0.1  #: the time that every round takes in addition to its work
    overhead_jitter: float = 0.1
    deadline: float = 5.0
    #: Delays that no bolt causes: the time at which each begins, and its length.
    pauses: Mapping[float, float] = field(default_factory=dict)
    frozen_quantum: bool = True  #: whether the quantum learns nothing while spouts have limits

    @property
    def components(self) -> list[SimulatedSpout | SimulatedBolt]:
        """All components, in the order in which tuples pass through them."""
        return [*self.spouts, *self.bolts]

    def upstream(self) -> dict[str, set[str]]:
        """Return the spouts from which tuples reach each bolt."""
        reached = {spout.name: {spout.name} for spout in self.spouts}
        for bolt in self.bolts:
            reached[bolt.name] = set().union(*(reached[source] for source in bolt.inputs))
        return {bolt.name: reached[bolt.name] for bolt in self.bolts}

    def tasks(self) -> dict[str, list[int]]:
        """Return the task ids by component."""
        ids = count(1)
        return {one.name: [next(ids) for _ in one.workers] for one in self.components}

    def worker_of(self) -> dict[int, int]:
        """Return the worker of each task."""
        tasks = self.tasks()
        return {
            task: worker
            for one in self.components
            for task, worker in zip(tasks[one.name], one.workers, strict=True)
        }

    def supersteps(self) -> int:
        """Return the number of supersteps per round: 1 + the largest number of subscriptions between workers on any path."""
        depth = {spout.name: 0 for spout in self.spouts}
        home = {one.name: set(one.workers) for one in self.components}
        for bolt in self.bolts:
            depth[bolt.name] = max(
                depth[source] + (len(home[source] | home[bolt.name]) > 1) for source in bolt.inputs
            )
        return 1 + max(depth.values())


class Steers(Protocol):
    """The part of a controller that a simulation uses."""

    @property
    def limits(self) -> Limits: ...  # noqa: D102

    def observe(self, loads: Mapping[int, TaskLoad], seconds: float) -> None: ...  # noqa: D102


@dataclass(frozen=True)
class Round:
    """The figures of a round, by component. ``limits`` are for all tasks of a spout; None if there is no limit."""

    began: float
    seconds: float
    limits: Mapping[str, int | None]
    emitted: Mapping[str, int]
    executed: Mapping[str, int]
    queued: Mapping[str, int]
    queued_bytes: int


@dataclass
class _Task:
    """A task of a spout or a bolt, with its waiting tuples and its work in this round."""

    id: int
    worker: int
    component: SimulatedSpout | SimulatedBolt
    queued: int = 0
    emitted: int = 0
    in_round: int = 0
    seconds: float = 0.0
    left: float = inf
    hungry: bool = False
    factor: float = 1.0  # multiplies the cost, until `factor_until`
    factor_until: float = 0.0
    #: The fraction of a tuple that is still to be sent to each receiving task, by the id of that task.
    carried: dict[int, float] = field(default_factory=dict)


class Simulation:
    """A run of a scenario under a controller. All randomness comes from ``random``."""

    def __init__(self, scenario: Scenario, steers: Steers, random: Random) -> None:
        self.scenario = scenario
        self.steers = steers
        self.now = 0.0
        self._random = random
        ids = scenario.tasks()
        self._tasks = {
            one.name: [
                _Task(task, worker, one) for task, worker in zip(ids[one.name], one.workers, strict=True)
            ]
            for one in scenario.components
        }
        self._spouts = [task for spout in scenario.spouts for task in self._tasks[spout.name]]
        self._bolts = [task for bolt in scenario.bolts for task in self._tasks[bolt.name]]
        self._edges: dict[str, list[tuple[_Task, float]]] = {name: [] for name in self._tasks}
        for bolt in scenario.bolts:
            tasks = self._tasks[bolt.name]
            shares = bolt.shares or [1 / len(tasks)] * len(tasks)
            for source, copies in bolt.inputs.items():
                self._edges[source] += [
                    (task, copies * share) for task, share in zip(tasks, shares, strict=True)
                ]
        workers = sorted({task.worker for task in [*self._spouts, *self._bolts]})
        self._quanta = {worker: SpoutQuantum(scenario.target) for worker in workers}
        self._used_up = dict.fromkeys(workers, False)
        self._on_way: list[tuple[_Task, int]] = []
        self._pauses = dict(scenario.pauses)
        self._large = any(bolt.bytes > _LARGE for bolt in scenario.bolts)

    def run(self, seconds: float) -> list[Round]:
        """Run rounds until `now` is at least ``seconds``."""
        rounds = []
        while self.now < seconds:
            rounds.append(self.run_round())
        return rounds

    def run_round(self) -> Round:
        """Run all supersteps once, and let the controller observe the round."""
        scenario, began, limits = self.scenario, self.now, self.steers.limits
        for task in self._spouts:
            task.in_round, task.hungry, task.left = 0, False, limits.get(task.id, inf)
        for task in self._bolts:
            task.in_round, task.seconds = 0, 0.0
        overhead = scenario.overhead * self._random.lognormvariate(0, scenario.overhead_jitter)
        for superstep in range(scenario.supersteps()):
            self._superstep(superstep == 0)
        self.now += overhead
        for at in [at for at in self._pauses if at <= self.now]:
            self.now += self._pauses.pop(at)
        seconds = self.now - began
        for worker, quantum in self._quanta.items():
            if not (limits and scenario.frozen_quantum):
                quantum.batch_took(seconds, used_up=self._used_up[worker])
        self.steers.observe(self._loads(), seconds)
        return Round(
            began,
            seconds,
            {
                spout.name: sum(limits[task.id] for task in self._tasks[spout.name])
                if self._tasks[spout.name][0].id in limits
                else None
                for spout in scenario.spouts
            },
            {spout.name: sum(task.in_round for task in self._tasks[spout.name]) for spout in scenario.spouts},
            {bolt.name: sum(task.in_round for task in self._tasks[bolt.name]) for bolt in scenario.bolts},
            {bolt.name: sum(task.queued for task in self._tasks[bolt.name]) for bolt in scenario.bolts},
            sum(task.queued * bolt.bytes for bolt in scenario.bolts for task in self._tasks[bolt.name]),
        )

    def _loads(self) -> dict[int, TaskLoad]:
        loads: dict[int, TaskLoad] = {}
        for task in self._spouts:
            limited = task.left <= 0
            loads[task.id] = SpoutLoad(task.in_round, task.hungry or limited, limited)
        for task in self._bolts:
            loads[task.id] = BoltLoad(task.in_round, task.seconds, task.queued, task.queued * _bytes(task))
        return loads

    def _superstep(self, first: bool) -> None:
        """Run every worker by itself. Tuples for other workers arrive in the next superstep."""
        deadline, ends = self.now + self.scenario.deadline, [self.now]
        for task, tuples in self._on_way:
            task.queued += tuples
        self._on_way = []
        for worker in self._quanta:
            now = self._ask(worker) if first else self.now
            ends.append(self._work(worker, now, deadline))
        self.now = max(ends)

    def _ask(self, worker: int) -> float:
        """Run the spouts of a worker, in turn with its bolts, until they can emit no more or their time is up.

        Returns the time at the end.
        """
        spouts = [task for task in self._spouts if task.worker == worker]
        quantum = self._quanta[worker].seconds
        now, until = self.now, self.now + quantum
        self._used_up[worker] = False
        while spouts:
            emitted = 0
            for task in spouts:
                spout = task.component
                assert isinstance(spout, SimulatedSpout)
                if self._is_full(worker):
                    task.hungry = True
                    continue
                there = spout.supply(now) / len(spout.workers) - task.emitted
                turn = 64 if self._large else max(64, int(quantum / spout.seconds / _TURNS / len(spouts)))
                tuples = max(0, int(min(turn, there, task.left)))
                task.emitted += tuples
                task.in_round += tuples
                task.left -= tuples
                emitted += tuples
                now += tuples * spout.seconds
                self._send(task, tuples)
            now = self._work(worker, now, until)
            if now >= until and emitted:
                self._used_up[worker] = True
                for task in spouts:
                    task.hungry = True
            if now >= until or not emitted:
                break
        return now

    def _is_full(self, worker: int) -> bool:
        tuples = sum(task.queued for task in self._bolts if task.worker == worker)
        tuples += sum(number for _, number in self._on_way)
        size = sum(number * _bytes(task) for task, number in self._on_way)
        return tuples > _TUPLE_MARKS[0] or size > _BYTE_MARKS[0]

    def _work(self, worker: int, now: float, until: float) -> float:
        """Run the bolts of a worker, those nearest to the spouts first, until nothing waits or time is up.

        Returns the time at the end.
        """
        step = self.scenario.target / _LOOKS
        for task in self._bolts:
            bolt = task.component
            if task.worker != worker or not isinstance(bolt, SimulatedBolt):
                continue
            while task.queued and now < until:
                if bolt.jitter and now >= task.factor_until:
                    task.factor = self._random.lognormvariate(0, bolt.jitter)
                    task.factor_until = now + 2 * self.scenario.target
                cost = bolt.cost(now) * task.factor
                tuples = min(task.queued, max(1, int(step / cost)))
                now += tuples * cost
                task.seconds += tuples * cost
                task.queued -= tuples
                task.in_round += tuples
                self._send(task, tuples)
        return now

    def _send(self, sender: _Task, tuples: int) -> None:
        for receiver, copies in self._edges[sender.component.name]:
            whole = sender.carried.get(receiver.id, 0.0) + tuples * copies
            arriving = int(whole + 1e-9)
            sender.carried[receiver.id] = whole - arriving
            if receiver.worker == sender.worker:
                receiver.queued += arriving
            elif arriving:
                self._on_way.append((receiver, arriving))


def _bytes(task: _Task) -> int:
    return task.component.bytes if isinstance(task.component, SimulatedBolt) else 0


# -- controllers ---------------------------------------------------------------------------------------------


def our_controller(scenario: Scenario) -> Controller:
    """Return the real controller for a scenario."""
    tasks = scenario.tasks()
    return Controller(
        {spout.name: tasks[spout.name] for spout in scenario.spouts},
        {bolt.name: tasks[bolt.name] for bolt in scenario.bolts},
        scenario.upstream(),
        target=scenario.target,
        worker_of=scenario.worker_of(),
    )


class FixedLimit:
    """A fixed limit, like Spark's ``maxOffsetsPerTrigger``: each task of a spout may emit ``tuples`` per round."""

    def __init__(self, scenario: Scenario, tuples: int) -> None:
        tasks = scenario.tasks()
        self.limits: Limits = {task: tuples for spout in scenario.spouts for task in tasks[spout.name]}

    def observe(self, loads: Mapping[int, TaskLoad], seconds: float) -> None:
        """Do nothing."""


class Pid:
    """Spark's rate estimator for DStreams, with its default parameters. A round stands for one batch of DStreams."""

    def __init__(
        self, scenario: Scenario, proportional: float = 1.0, integral: float = 0.2, least: float = 100.0
    ) -> None:
        self._target = scenario.target
        self._proportional, self._integral, self._least = proportional, integral, least
        tasks = scenario.tasks()
        self._spouts = [task for spout in scenario.spouts for task in tasks[spout.name]]
        self._rate: float | None = None
        self._backlog = 0.0
        self.limits: Limits = dict.fromkeys(self._spouts, FIRST_LIMIT)

    def observe(self, loads: Mapping[int, TaskLoad], seconds: float) -> None:
        """Adjust the rate. The error is the previous rate minus the rate of this round. ``integral`` is the weight of late
        tuples.
        """
        emitted = sum(load.emitted for load in loads.values() if isinstance(load, SpoutLoad))
        if not emitted or seconds <= 0:
            return
        # A batch of DStreams ends when all its tuples are done. So tuples that wait after a simulated round would still belong to
        # the batch of DStreams.
        left = max((_backlog(load) for load in loads.values()), default=0.0)
        rate = emitted / (seconds + max(0.0, left - self._backlog))
        self._backlog = left
        if self._rate is None:
            self._rate = rate
        late = max(0.0, seconds - self._target) + left
        error, late_rate = self._rate - rate, late * rate / self._target
        self._rate = max(self._rate - self._proportional * error - self._integral * late_rate, self._least)
        share = max(1, int(self._rate * self._target / len(self._spouts)))
        self.limits = dict.fromkeys(self._spouts, share)


class HeronGate:
    """Heron's gate: from the time a queue is above the high mark until it is below the low mark, no spout emits (F9, F10)."""

    def __init__(self, scenario: Scenario, marks: tuple[int, int] = _BYTE_MARKS) -> None:
        tasks = scenario.tasks()
        self._spouts = [task for spout in scenario.spouts for task in tasks[spout.name]]
        self._marks = WaterMarks(*marks)
        self.limits: Limits = {}

    def observe(self, loads: Mapping[int, TaskLoad], seconds: float) -> None:
        """Open or close the gate."""
        level = max((load.queued_bytes for load in loads.values() if isinstance(load, BoltLoad)), default=0)
        self.limits = dict.fromkeys(self._spouts, 0) if self._marks.observe(level) else {}


class BoundedQueues:
    """Storm's bounded queues: spouts together may emit, per round, as many tuples as the fullest queue has room for (F1, F3)."""

    def __init__(self, scenario: Scenario, room: int = 32_768) -> None:
        tasks = scenario.tasks()
        self._spouts = [task for spout in scenario.spouts for task in tasks[spout.name]]
        self._room = room
        self.limits: Limits = self._share(room)

    def observe(self, loads: Mapping[int, TaskLoad], seconds: float) -> None:
        """Compute the room that waiting tuples leave."""
        fullest = max((load.queued for load in loads.values() if isinstance(load, BoltLoad)), default=0)
        self.limits = self._share(max(0, self._room - fullest))

    def _share(self, room: int) -> Limits:
        return dict.fromkeys(self._spouts, room // len(self._spouts))


def _backlog(load: TaskLoad) -> float:
    return load.queued * load.seconds / load.executed if isinstance(load, BoltLoad) and load.executed else 0.0
