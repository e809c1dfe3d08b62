"""One run: a small topology, some batches, and trouble; all of it drawn by a seed."""

from __future__ import annotations

import gc
import logging
import traceback
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import stormspark.worker.executors
from stormspark import TopologyBuilder
from stormspark.driver.transaction import Transaction
from stormspark.local import InProcessWorkers
from stormspark.plan import plan_topology
from stormspark.plan.physical import PhysicalPlan
from stormspark.wire.frames import Frame
from stormspark.worker import foreign_calls
from stormspark.worker.bolts import queue as plain_queue
from stormspark.worker.executors import bell, executors, notes, queue, spout_task, thread, verdicts
from stormspark.worker.executors.bolt_task import ThreadedBoltTask
from stormspark.worker.round_orders import RoundOrders
from stormspark.worker.spout_task import SpoutTask
from stormspark.worker.state.batch_state import BatchState
from stormspark.worker.step import Step, WorkerReport
from stormspark.worker.task import Task
from tests.schedules.interleaved.components import Basic, Count, Feed, Numbers, Route, Work
from tests.schedules.interleaved.scheduler import FoundError, KilledError, Pipes, Primitives, Scheduler
from tests.schedules.interleaved.world import World, begin_world

__all__ = ["FAMILIES", "Result", "find", "run"]

#: What a run is about.
FAMILIES = ("at-least-once", "exactly-once")
#: The files with switch points.
_FILES = {
    str(Path(folder) / name.name)
    for folder in stormspark.worker.executors.__path__
    for name in Path(folder).glob("*.py")
} | {str(plain_queue.__file__), str(Path(__file__).with_name("planted.py"))}
#: Where user code raises; each run has some of them.
_KINDS = (
    "execute", "route of a message", "route of a child", "fail", "FailedException", "next_tuple", "ack", "timer", "open",
    "prepare", "pre_prepare", "lose", "deactivate", "limit",
)  # fmt: skip
#: How many topologies there are, of each family.
_SHAPES = 400
#: In how many batches all has to be done once nothing goes wrong any more.
_MOST_BATCHES = 200
_LAST_BATCHES = 60


class Result:
    """What a run has shown: the rule that is broken, if one is, and a digest that is the same for the same seed."""

    def __init__(self, family: str, seed: int) -> None:
        self.family, self.seed = family, seed
        self.rule, self.what = "", ""
        self.digest, self.steps = "", 0
        self.shape = ""

    def __str__(self) -> str:
        again = f"python -m tests.schedules.interleaved {self.family} --first {self.seed} --runs 1"
        return (
            f"{self.family}, seed {self.seed}: {self.rule}\n  {self.what}\n  {self.shape}\n  again: {again}"
        )


class _BrokenError(BaseException):
    """A rule is broken."""


class _Clock:
    """The clock of a run, which is no `SimulatedClock`, so that executors get threads."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def __call__(self) -> float:
        return self._scheduler.clock()


class _Cluster(InProcessWorkers):
    """Workers of which a batch can be lost in the middle."""

    def lose_batch(self, supersteps: int) -> None:
        """Run so many supersteps of a round; then all frames between workers are lost, and another attempt begins."""
        orders = RoundOrders(committed=self._committed)
        if self.plan.exactly_once:
            transaction = Transaction(self.plan)
            orders = replace(orders, may_prepare=transaction.may_prepare, asks_spouts=transaction.asks_spouts)
        inbound: list[list[Frame]] = [[] for _ in self.workers]
        for superstep in range(supersteps):
            step = Step(self._batch, self._attempt, superstep, orders)
            replies = [worker.run(step, inbound[worker.index]) for worker in self.workers]
            inbound = [
                sorted(
                    (frame for reply in replies for frame in reply if frame.target == index),
                    key=lambda frame: (frame.sender, frame.sequence),
                )
                for index in range(len(self.workers))
            ]
        self._attempt += 1
        for worker in self.workers:
            worker.begin_attempt("planned: a worker is gone", self._batch)


@lru_cache(maxsize=2 * _SHAPES)
def _plan(shape: int, *, exactly_once: bool) -> PhysicalPlan:
    draw = Random(shape)
    threads = draw.choice(("all", "some"))
    builder = TopologyBuilder()
    conf: dict[str, Any] = {
        "topology.workers": draw.choice((1, 1, 2)),
        "topology.message.timeout.secs": 100_000,
        "stormspark.max.attempts": 100,
        "stormspark.batch.target.ms": draw.choice((10, 50)),
        "stormspark.exactly.once": exactly_once,
    }
    if draw.random() < 0.4:
        conf["topology.max.spout.pending"] = draw.choice((1, 2, 5))

    def add(declarer: Any, parallelism: int) -> Any:
        declarer.set_num_tasks(parallelism + draw.choice((0, 0, 1)))
        always = threads == "all" or draw.random() < 0.75
        declarer.add_configuration("stormspark.executor.threads", "always" if always else "never")
        return declarer

    def chance(likely: float) -> bool:
        return draw.random() < likely

    feeds = []
    if not exactly_once or chance(0.5):
        parallelism = draw.choice((1, 1, 2))
        spout = Feed(draw.choice((1, 1, 3)), hooks=chance(0.2), looks=chance(0.2))
        add(builder.set_spout("feed", spout, parallelism), parallelism)
        feeds.append("feed")
    if exactly_once and (not feeds or chance(0.5)):
        parallelism = draw.choice((1, 2))
        add(builder.set_spout("numbers", Numbers(draw.choice((1, 2, 4))), parallelism), parallelism)
        feeds.append("numbers")
    before = feeds
    names = ("first", "second")[: draw.choice((1, 2, 2))]
    for name in names:
        last = name == names[-1]
        children = 0 if last else draw.choice((0, 1, 1) if exactly_once else (0, 1, 2))
        parallelism = draw.choice((1, 1, 2))
        hooks, looks, timer = chance(0.2), chance(0.2), chance(0.2)
        holds = False
        bolt: Any
        if exactly_once and chance(0.7):
            bolt = Count(children, hooks=hooks)
        elif chance(0.4):
            bolt = Basic(children, hooks=hooks, looks=looks, timer=timer)
        else:
            holds = chance(0.5) and not exactly_once
            beside = shape % 3 == 0
            bolt = Work(children, holds=holds, hooks=hooks, looks=looks, timer=timer, beside=beside)
        declared = add(builder.set_bolt(name, bolt, parallelism), parallelism)
        if holds or chance(0.2):
            declared.add_configuration("topology.tick.tuple.freq.secs", 1)
        for feed in before:
            declared.custom_grouping(feed, Route())
        before = [name]
    return plan_topology(builder.create_topology("interleaved"), conf)


@contextmanager
def _simulated(scheduler: Scheduler, world: World, draw: Random) -> Iterator[None]:
    """Let all that executors wait with be the scheduler's, and watch what only the worker knows."""
    primitives, pipes = Primitives(scheduler), Pipes(scheduler)
    ends_previous, prepares = Task._end_previous, BatchState.prepare

    def end_previous(self: Task) -> None:
        ends_previous(self)
        world.instances[self.id] += 1

    def prepare(self: BatchState, txid: int) -> Any:
        for worker in world.workers:
            if worker._parts.states is self:
                for task in worker.tasks.values():
                    inside = world.inside(task.id)
                    if inside.startswith("execute") or (
                        inside.startswith("next_tuple") and task.state is not None
                    ):
                        world.broken("a batch is prepared during a call", f"batch {txid}: {inside}")
                for bolt in worker._executors.bolts:
                    if len(bolt.notes):
                        world.broken(
                            "a batch is prepared before all of it is carried out",
                            f"batch {txid}: {bolt.name}",
                        )
        return prepares(self, txid)

    changed: dict[tuple[Any, str], Any] = {
        (notes, "threading"): primitives,
        (thread, "threading"): primitives,
        (spout_task, "threading"): primitives,
        (foreign_calls, "threading"): primitives,
        (thread, "start_unwatched"): primitives.start,
        (queue, "Lock"): primitives.Lock,
        (bell, "os"): pipes,
        (bell, "select"): pipes,
        (executors, "time"): SimpleNamespace(monotonic=scheduler.clock, sleep=scheduler.sleep),
        (Task, "_end_previous"): end_previous,
        (BatchState, "prepare"): prepare,
        (SpoutTask, "_emits_per_turn"): draw.choice((1, 2, 1024)),
        (notes, "_MOST"): draw.choice((1, 3, 4096)),
        (notes, "_TURN"): draw.choice((4, 16, 1024)),
        (verdicts, "_VERDICTS_PER_TURN"): draw.choice((1, 64)),
    }
    logging.disable(logging.CRITICAL)
    collects = gc.isenabled()
    gc.disable()  # so that nothing ends by chance
    try:
        with ExitStack() as stack:
            for (owner, name), value in changed.items():
                stack.enter_context(patch.object(owner, name, value))
            yield
    finally:
        if collects:
            gc.enable()
        logging.disable(logging.NOTSET)


class _Run:
    def __init__(self, scheduler: Scheduler, world: World, cluster: _Cluster, draw: Random) -> None:
        self.scheduler, self.world, self.cluster, self.draw = scheduler, world, cluster, draw
        self.stopped = False

    def batch(self, limits: dict[int, int] | None = None) -> None:
        world = self.world
        before = [len(one.carried) for one in world.emissions]
        self.see(self.cluster.run_batch(limits))
        if limits and not world.transactions:
            self.check_limits(limits, before)

    def see(self, reports: Any) -> None:
        report: WorkerReport
        for report in reports:
            for error in report.errors:
                if "planned: " not in error.text:
                    self.world.broken("an error that nobody has planned", error.text)
            if report.fatal is not None:
                self.stopped = True
                if "planned: " not in report.fatal.text:
                    self.world.broken("the topology stops", report.fatal.text)
        self.check()

    def check(self) -> None:
        if self.world.broken_rules:
            raise _BrokenError
        for worker in self.cluster.workers:
            try:
                worker.validate()
            except AssertionError as error:
                self.world.broken("an invariant of the worker", str(error))
                raise _BrokenError from None

    def check_limits(self, limits: dict[int, int], before: list[int]) -> None:
        emissions = self.world.emissions
        for task, limit in limits.items():
            # Those that were called earlier do not count, for the worker may have granted them before it knew of the limit.
            new = sum(one.task == task and () in one.carried for one in emissions[len(before) :])
            if new > limit + 2:
                self.world.broken(
                    "a limit is exceeded", f"task {task}: {new} emits, and the limit is {limit}"
                )

    def trouble(self) -> None:
        """Do something between two batches, perhaps."""
        world, cluster, draw = self.world, self.cluster, self.draw
        if draw.random() < 0.5:
            self.scheduler.sleep(draw.choice((0.0001, 0.003, 0.3, 1.1)))
        if world.may("deactivate"):
            cluster.set_active(False)
            if draw.random() < 0.5:
                self.batch()
            cluster.set_active(True)
        if world.may("lose"):
            world.lossy = cluster.plan.workers > 1
            saved = dict(world.saved)
            cluster.lose_batch(draw.randint(0, cluster.plan.last_superstep + 1))
            world.saved = saved  # what was saved is lost, too
        self.check()

    def drain(self) -> None:
        """Let all be done, and check that it is."""
        world = self.world
        world.calm = True
        for _ in range(_MOST_BATCHES):
            if world.is_done() or self.stopped:
                break
            self.scheduler.sleep(0.25)
            self.batch()
        if not self.stopped:
            for _ in range(_LAST_BATCHES):  # the last verdicts, and a tick or a timer
                self.scheduler.sleep(0.05)
                self.batch()
                if not self.under_way() and not self.stopped:
                    break
            world.check_end()
            for bolt in self.bolts():
                held = [tup for tup, _ in bolt.held() if tup in getattr(bolt.bolt, "acked", ())]
                if held:
                    world.broken("a tuple counts as held after its ack", f"{bolt.name}: {held}")
            if self.under_way():
                world.broken("a call is under way for ever", self.under_way())
            self.check()

    def bolts(self) -> list[ThreadedBoltTask]:
        """Return the bolts' tasks that have threads."""
        return [bolt for worker in self.cluster.workers for bolt in worker._executors.bolts]

    def under_way(self) -> str:
        """Name a bolt of which a call is under way, as far as its worker knows. What is noted will be taken in."""
        return next(
            (
                bolt.name
                for bolt in self.bolts()
                if bolt.under_way or (bolt.calls_under_way and not len(bolt.notes))
            ),
            "",
        )

    def check_states(self, *, at_least: bool) -> None:
        """Check that each message counts once; at least once if a spout without a state has forgotten what was acked."""
        world = self.world
        counts: dict[tuple[str, int], int] = {}
        counting: dict[str, bool] = {}
        for worker in self.cluster.workers:
            for task in worker.tasks.values():
                bolt = task.instance
                if isinstance(bolt, Count):
                    counting[task.component.id] = True
                    for message, count in bolt.state.items():
                        key = task.component.id, message
                        counts[key] = counts.get(key, 0) + count
        complete = counting.get("first", False)
        messages = {message for mine in world.mine.values() for message in mine}
        for message in sorted(messages):
            count = counts.get(("first", message), 0)
            if complete and (count < 1 if at_least else count != 1):
                world.broken(
                    "a state is wrong",
                    f"first has counted message {message} {count} times: {world.all_of(message)}",
                )
        for (component, message), count in counts.items():
            if count != 1 and not at_least:
                world.broken(
                    "a state is wrong",
                    f"{component} has counted {message} {count} times: {world.all_of(message)}",
                )
        self.check()


def run(family: str, seed: int, *, opcodes: bool = False) -> Result:
    """Run one schedule."""
    result = Result(family, seed)
    draw = Random(seed * 3 + len(family))
    exactly_once = family == "exactly-once"
    plan = _plan(draw.randrange(_SHAPES), exactly_once=exactly_once)
    scheduler = Scheduler(seed, _FILES, opcodes=opcodes)
    kinds = set(draw.sample(_KINDS, draw.choice((1, 2, 3, len(_KINDS)))))
    if draw.random() < 0.4:  # of all errors it is the one that meets a call under way
        kinds.add(draw.choice(("route of a message", "route of a child")))
    world = World(seed, scheduler, plan, faults=draw.choice((0, 1, 2, 4, 6)), kinds=kinds)
    begin_world(world)
    number = 0
    for component in plan.components.values():
        if component.kind == "spout":
            for task in component.tasks:
                size = draw.choice((1, 3, 8, 12))
                world.mine[task] = list(range(number, number + size))
                world.todo[task] = deque(world.mine[task])
                number += size
                if component.id == "numbers":
                    world.saved[task] = 0
                if not exactly_once:
                    world.untracked.update(one for one in world.mine[task] if draw.random() < 0.2)
    shape = [
        (one.id, one.tasks, one.parallelism, bool(one.threads_reason)) for one in plan.components.values()
    ]
    result.shape = f"{dict(plan.conf)}; {shape}"
    with _simulated(scheduler, world, draw):
        try:
            cluster = _Cluster(plan, _Clock(scheduler), Random(seed))
            world.workers = cluster.workers
            scheduler.begin()
            _drive(_Run(scheduler, world, cluster, draw), exactly_once=exactly_once)
        except FoundError as error:
            result.rule, _, result.what = str(error).partition("\n")
            frames = traceback.extract_tb(error.__traceback__)[:-3]
            result.what += "\n  the worker: " + " > ".join(f"{one.name}:{one.lineno}" for one in frames[-8:])
        except KilledError:
            result.rule, _, result.what = scheduler.found.partition("\n")
        except _BrokenError:
            pass
        except Exception as error:
            result.rule = f"{type(error).__name__} in the worker"
            result.what = "".join(traceback.format_exception(error)[-4:])
        finally:
            if not result.rule and world.broken_rules:
                result.rule, result.what = world.broken_rules[0]
            result.shape += f"; {dict(world.happened)}"
            result.digest, result.steps = scheduler.digest, scheduler.steps
            scheduler.end()
    return result


def find(family: str, seeds: Iterable[int]) -> Result | None:
    """Run these seeds, and return the first result that breaks a rule."""
    return next((result for seed in seeds if (result := run(family, seed)).rule), None)


def _drive(run: _Run, *, exactly_once: bool) -> None:
    cluster, world, draw = run.cluster, run.world, run.draw
    active = draw.random() < 0.85
    cluster.open(active)
    if not active:
        cluster.set_active(True)
    for _ in range(draw.randint(1, 4)):
        limits = None
        if world.may("limit"):
            limits = {task: draw.choice((0, 1, 2)) for task in world.mine}
        run.batch(limits)
        if run.stopped:
            break
        run.trouble()
    how = draw.random()
    if how < 0.75 and not run.stopped:
        run.drain()
        if exactly_once and not run.stopped:
            forgetful = any(world.instances[task] > 1 for task in world.mine if task not in world.saved)
            run.check_states(at_least=forgetful)
    if how < 0.9:
        cluster.close()
    else:
        cluster.abandon()
    run.scheduler.finish()
    if world.broken_rules:
        raise _BrokenError
