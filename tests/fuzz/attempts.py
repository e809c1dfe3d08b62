"""The workers of a topology in this process, superstep by superstep: attempts that end anywhere, workers that die."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

from stormspark.local import SimulatedClock
from stormspark.plan import PhysicalPlan
from stormspark.wire.frames import Frame, FrameKind
from stormspark.worker.core import Worker
from stormspark.worker.step import Step, WorkerReport

__all__ = ["Attempts", "RoughClock", "exchange", "small_pieces"]


class Attempts:
    """What Spark and the supervisor do: batches of supersteps, a new attempt where one has failed."""

    def __init__(self, plan: PhysicalPlan, clock: Callable[[], float], random: Random) -> None:
        self.plan, self.random = plan, random
        self._clock = clock
        self.batch = self.attempt = 0
        self.workers = [self._new_worker(index) for index in range(plan.workers)]

    def _new_worker(self, index: int) -> Worker:
        worker = Worker(
            self.plan,
            index,
            incarnation=self.attempt,
            clock=self._clock,
            epoch=0.0,
            random=Random(self.random.getrandbits(64)),
        )
        worker.open()
        return worker

    def run_batch(self) -> list[WorkerReport]:
        """A whole batch."""
        frames = self._run_supersteps(self.plan.last_superstep)
        self.batch += 1
        return [pickle.loads(frame.payload) for frame in frames if frame.kind == FrameKind.REPORT]

    def fail_attempt(self, supersteps: int, victim: int | None) -> None:
        """Some supersteps of the batch; then all that is under way is lost, and ``victim`` with its memory."""
        self._run_supersteps(min(supersteps, self.plan.last_superstep))
        self.attempt += 1
        if victim is not None:
            self.workers[victim] = self._new_worker(victim)
        for worker in self.workers:
            if worker.index != victim:
                worker.begin_attempt("the attempt has failed")

    def _run_supersteps(self, last: int) -> list[Frame]:
        inbound: list[list[Frame]] = [[] for _ in self.workers]
        for superstep in range(last + 1):
            step = Step(self.batch, self.attempt, superstep)
            replies = [worker.run(step, inbound[worker.index]) for worker in self.workers]
            for reply in replies:
                self.random.shuffle(reply)  # Spark promises no order of rows
            inbound = exchange(replies, self.plan.workers)
            for worker in self.workers:
                worker.validate()
        return [frame for frames in inbound for frame in frames]

    def tasks(self, kind: type) -> list[Any]:
        """All tasks that are of a class."""
        return [task for worker in self.workers for task in worker.tasks.values() if isinstance(task, kind)]


def exchange(replies: Sequence[Sequence[Frame]], workers: int) -> list[list[Frame]]:
    """What Spark does between two supersteps: each worker gets what is addressed to it, in order."""
    frames = [frame for reply in replies for frame in reply]
    return [
        sorted((f for f in frames if f.target == worker), key=lambda f: (f.sender, f.sequence))
        for worker in range(workers)
    ]


class RoughClock(SimulatedClock):
    """Jumps when it is looked at, with the probability ``chance``, so that deadlines pass anywhere."""

    def __init__(self, random: Random, chance: float) -> None:
        super().__init__()
        self.chance = chance
        self._random = random

    def __call__(self) -> float:
        if self._random.random() < self.chance:
            self.advance(self._random.choice((0.1, 0.3, 2.0)))
        return super().__call__()


@contextmanager
def small_pieces(size: int) -> Iterator[None]:
    """Frames, chunks and the spouts' turns are of so many tuples."""
    with (
        patch("stormspark.worker.departures._FRAME_TUPLES", size),
        patch("stormspark.worker.turns._BURST", size),
        patch("stormspark.worker.bolts.chunks._CHUNK_MOST", size),
    ):
        yield
