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
from typing import Any, NamedTuple

from stormspark.backpressure import Limits
from stormspark.local import InProcessWorkers
from stormspark.worker.garbage import GarbageBetweenBatches

__all__ = ["Case", "Prepared", "Turn", "in_turn"]


class Prepared(NamedTuple):
    """A cluster that is open, the components whose executed tuples count, and what spouts may emit in a batch (None: all)."""

    cluster: InProcessWorkers
    counted: tuple[str, ...]
    limits: Limits | None = None


class Turn(NamedTuple):
    """What one turn took: CPU nanoseconds a tuple; and how many tuples and batches that was."""

    ns: float
    tuples: int
    batches: int


@dataclass(frozen=True)
class Case:
    """How one case is made: ``make(*arguments)``."""

    make: Callable[..., Prepared]
    arguments: tuple[Any, ...] = ()


def _serve(case: Case, asked: Connection) -> None:
    """Make the cluster, then answer each request for a turn of so many seconds."""
    garbage = GarbageBetweenBatches()
    cluster, counted, limits = case.make(*case.arguments)
    tasks: list[Any] = [
        task for worker in cluster.workers for task in worker.tasks.values() if task.component.id in counted
    ]

    def executed() -> int:
        return sum(task.counters.executed for task in tasks)

    asked.send(None)
    while (seconds := asked.recv()) is not None:
        before, batches = executed(), 0
        used, ends = time.process_time(), time.process_time() + seconds
        while time.process_time() < ends or executed() == before:
            cluster.run_batch(limits)
            garbage.collect()
            batches += 1
        used, tuples = time.process_time() - used, executed() - before
        asked.send(Turn(used / tuples * 1e9, tuples, batches))


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
