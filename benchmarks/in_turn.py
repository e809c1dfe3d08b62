"""Workers without an engine, each case in a process of its own, run in turn: what disturbs one disturbs all.

A `Case` is made in its process by a function that can be pickled. Its process runs batches and collects garbage between them as
a worker's does; its answer to each turn is the CPU that a tuple took. Nothing else runs at the same time: all but one wait.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from random import Random
from typing import Any, NamedTuple

from stormspark.backpressure import Limits
from stormspark.local import InProcessWorkers
from stormspark.plan.physical import PhysicalPlan
from stormspark.worker.host.garbage import GarbageBetweenBatches

__all__ = ["Case", "Prepared", "Turn", "in_this_process", "in_turn", "opened"]


def opened(plan: PhysicalPlan) -> InProcessWorkers:
    """Make the workers of a plan in this process, and open them. What they draw at random is the same each time."""
    cluster = InProcessWorkers(plan, time.monotonic, Random(5))
    cluster.open()
    return cluster


class Prepared(NamedTuple):
    """A cluster that is open, the components whose executed tuples count, and what spouts may emit in a batch (None: all)."""

    cluster: InProcessWorkers
    counted: tuple[str, ...]
    limits: Limits | None = None


class Turn(NamedTuple):
    """What one turn took: CPU nanoseconds per tuple, how many tuples and batches that was, and the seconds that passed."""

    ns: float
    tuples: int
    batches: int
    wall_s: float


@dataclass(frozen=True)
class Case:
    """How one case is made: ``make(*arguments)``."""

    make: Callable[..., Prepared]
    arguments: tuple[Any, ...] = ()


class _Runner:
    """A case that has been made; `turn` after `turn`."""

    def __init__(self, case: Case, garbage: GarbageBetweenBatches | None) -> None:
        self._cluster, counted, self._limits = case.make(*case.arguments)
        self._garbage = garbage
        self._tasks: list[Any] = [
            task
            for worker in self._cluster.workers
            for task in worker.tasks.values()
            if task.component.id in counted
        ]

    def turn(self, seconds: float) -> Turn:
        """Run batches until so many seconds of CPU are gone, at least one that does something."""
        before, batches = self._executed(), 0
        began, began_at = time.process_time(), time.perf_counter()
        while time.process_time() - began < seconds or self._executed() == before:
            self._cluster.run_batch(self._limits)
            if self._garbage is not None:
                self._garbage.collect()
            batches += 1
        used, tuples = time.process_time() - began, self._executed() - before
        return Turn(used / tuples * 1e9, tuples, batches, time.perf_counter() - began_at)

    def _executed(self) -> int:
        return sum(task.counters.executed for task in self._tasks)


def in_this_process(case: Case, seconds: float) -> Turn:
    """One turn here, to see that it runs: garbage is collected as Python sees fit, and figures mean nothing."""
    return _Runner(case, None).turn(seconds)


def _serve(case: Case, asked: Connection) -> None:
    """Make the case, then answer each request for a turn of so many seconds."""
    runner = _Runner(case, GarbageBetweenBatches())
    asked.send(None)
    while (seconds := asked.recv()) is not None:
        asked.send(runner.turn(seconds))


def in_turn(cases: Sequence[Case], rounds: int, seconds: float = 1.0) -> list[list[Turn]]:
    """Each case's turns, of so many seconds of CPU each; a first one of each warms up and is left out.

    Raises EOFError where a case's process dies: it says why by itself.
    """
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    try:
        for case in cases:
            mine, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(case, theirs), daemon=True)
            process.start()
            theirs.close()  # so that the end of that process is noticed
            pipes.append(mine)
            processes.append(process)
        for pipe in pipes:
            pipe.recv()
        taken: list[list[Turn]] = [[] for _ in cases]
        for _ in range(rounds + 1):
            for pipe, turns in zip(pipes, taken, strict=True):
                pipe.send(seconds)
                turns.append(pipe.recv())
    finally:
        for process in processes:
            process.kill()
            process.join()
    return [turns[1:] for turns in taken]
