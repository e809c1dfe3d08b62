"""Kafka for the local engine: the group's commits are all that is kept from one run to the next."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from stormspark.api import SourceProgress
from stormspark.connectors.kafka.config import KafkaSpoutConfig
from stormspark.connectors.kafka.offsets import Document
from stormspark.connectors.kafka.planner import KafkaPlanner, PlannerSettings

__all__ = ["KafkaLocalSource"]

#: Kafka is asked so often for the ends of partitions; batches of the local engine may take less than a ms.
_PAUSE_SECS = 0.02


class KafkaLocalSource:
    """A `LocalSource` of ranges. Each start is a deployment of its own, as in Storm (K3)."""

    def __init__(self, config: KafkaSpoutConfig) -> None:
        settings = PlannerSettings.of(config, str(uuid.uuid4()))
        self._planner = KafkaPlanner(settings, pause_secs=_PAUSE_SECS)
        self._position: Document = {}

    def poll(self) -> Iterable[tuple[int, Sequence[tuple[Any, ...]]]]:
        """New ranges, by the place of their partition in the sorted list."""
        start, self._position = self._position, self._planner.latest(self._position)
        return [(found.place, [tuple(found)]) for found in self._planner.ranges(start, self._position)]

    def told(self, progress: SourceProgress) -> None:
        """Commits to the group from time to time."""
        self._planner.told(self._position, progress)
        self._planner.commit(self._position)

    def close(self) -> None:
        """Commits what is done with, and hangs up."""
        self._planner.commit(self._position, now=True)
        self._planner.close()
