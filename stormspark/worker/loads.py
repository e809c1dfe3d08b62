"""The loads of tasks, for choosers that *follow load*, which means that they prefer tasks for which few tuples wait (D6).

A task's load is the number of tuples that wait for it, as a fraction of ``topology.executor.receive.buffer.size``. A worker can
count the tuples that wait for its own tasks. For a task of another worker, it adds the tuples in its own lanes to the number
that the other worker sent with the frames of an earlier superstep. So loads are up to a batch old. In Storm they are up to a
second old.

If no grouping of the plan follows load, no worker computes or sends loads, so they cost nothing.
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
    """The loads that worker ``index`` knows."""

    def __init__(self, plan: PhysicalPlan, index: int) -> None:
        edges = [edge for edge in plan.edges if edge.grouping.follows_load]
        self._capacity = plan.settings.receive_buffer_tuples
        self._targets = sorted({task for edge in edges for task in plan.components[edge.target].tasks})
        self._mine = {task for task in self._targets if plan.tasks[task].worker == index}
        #: For each task of another worker, how many tuples waited for the task when its worker last reported.
        self._reported: dict[int, int] = {}
        self._followers: list[LoadFollower] = []
        senders = {plan.tasks[t].worker for edge in edges for t in plan.components[edge.source].tasks}
        #: The other workers whose tasks choose among this worker's tasks by load. These workers need the loads.
        self.listeners = sorted(senders - {index}) if self._mine else []

    def follow(self, edge: EdgePlan, choose: Callable[..., Any]) -> None:
        """If ``choose``, a sender's chooser for ``edge``, follows load, give it the loads from now on."""
        if edge.grouping.follows_load and isinstance(choose, LoadFollower):
            self._followers.append(choose)

    @property
    def followed(self) -> bool:
        """Whether any chooser of this worker follows load."""
        return bool(self._followers)

    def take(self, payload: bytes) -> None:
        """Take in how many tuples wait for each task of another worker."""
        self._reported.update(pickle.loads(payload))

    def refresh(self, waiting_of: Callable[[int], int], in_lanes: Mapping[int, int]) -> None:
        """Give the choosers the current loads.

        ``waiting_of`` counts the tuples that wait for a task of this worker. ``in_lanes``: the number of tuples in lanes, for
        each task of another worker.
        """
        waiting = Counter(self._reported)
        waiting.update(in_lanes)
        loads = {
            task: min(1.0, (waiting_of(task) if task in self._mine else waiting[task]) / self._capacity)
            for task in self._targets
        }
        for follower in self._followers:
            follower.refresh_load(loads)

    def payload(self, waiting_of: Callable[[int], int]) -> bytes:
        """Return the payload for `take` in another worker. It says how many tuples wait for each task of this worker."""
        return pickle.dumps({task: waiting_of(task) for task in self._mine}, 5)
