"""How loaded tasks are: what choosers that follow load are told, and what workers tell each other for it (D6).

A task's load is the tuples that wait for it, as a part of ``topology.executor.receive.buffer.size``. Of a task
here a worker knows them; of one elsewhere it knows those in its own lanes, and what the other worker told it
with the frames of an earlier superstep. So loads are up to a batch old; Storm's are up to a second.

A plan in which no grouping follows load has nothing to tell and nobody to be told, and this costs it nothing.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from stormspark.grouping import LoadFollower
from stormspark.plan.physical import EdgePlan, PhysicalPlan

__all__ = ["Loads"]


class Loads:
    """The loads as worker ``index`` knows them."""

    def __init__(self, plan: PhysicalPlan, index: int) -> None:
        edges = [edge for edge in plan.edges if edge.grouping.follows_load]
        self._capacity = plan.settings.receive_buffer_tuples
        self._targets = sorted({task for edge in edges for task in plan.components[edge.target].tasks})
        self._mine = {task for task in self._targets if plan.tasks[task].worker == index}
        self._told: dict[int, int] = {}
        self._followers: list[LoadFollower] = []
        senders = {plan.tasks[t].worker for edge in edges for t in plan.components[edge.source].tasks}
        #: The workers that want to hear from this one.
        self.listeners = sorted(senders - {index}) if self._mine else []

    def follow(self, edge: EdgePlan, choose: Callable[..., Any]) -> None:
        """Tell ``choose``, a sender's chooser for ``edge``, of the loads from now on, if it wants to know."""
        if edge.grouping.follows_load and isinstance(choose, LoadFollower):
            self._followers.append(choose)

    @property
    def followed(self) -> bool:
        """Whether anything here wants to know the loads."""
        return bool(self._followers)

    def take(self, payload: bytes) -> None:
        """Take in what another worker tells."""
        self._told.update(pickle.loads(payload))

    def refresh(self, waiting_of: Callable[[int], int], in_lanes: Mapping[int, int]) -> None:
        """Tell the choosers: ``waiting_of`` gives what waits for a task here, ``in_lanes`` what waits for tasks elsewhere."""
        waiting = Counter(self._told)
        waiting.update(in_lanes)
        loads = {
            task: min(1.0, (waiting_of(task) if task in self._mine else waiting[task]) / self._capacity)
            for task in self._targets
        }
        for follower in self._followers:
            follower.refresh_load(loads)

    def telling(self, waiting_of: Callable[[int], int]) -> bytes:
        """What `take` in another worker takes: the tuples that wait for tasks here."""
        return pickle.dumps({task: waiting_of(task) for task in self._mine}, 5)
