"""The Kafka source of the local engine. When a run ends, only the offsets that it has committed for the consumer group remain."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from stormspark.api import SourceProgress
from stormspark.connectors.kafka.config import KafkaSpoutConfig
from stormspark.connectors.kafka.offsets import Document
from stormspark.connectors.kafka.planner import KafkaPlanner, PlannerSettings

__all__ = ["KafkaLocalSource"]

#: At least this many seconds pass between two requests for the ends of partitions. A batch of the local engine may take less than
#: 1 ms, so there would be too many requests otherwise.
_PAUSE_SECS = 0.02


class KafkaLocalSource:
    """A `LocalSource` that returns ranges of offsets. Each start of a topology counts as a new deployment, as in Storm (K3)."""

    def __init__(self, config: KafkaSpoutConfig) -> None:
        settings = PlannerSettings.of(config, str(uuid.uuid4()))
        self._planner = KafkaPlanner(settings, pause_secs=_PAUSE_SECS)
        self._position: Document = {}

    def poll(self) -> Iterable[tuple[int, Sequence[tuple[Any, ...]]]]:
        """Return new ranges, each with the index of its partition in the sorted list of partitions."""
        start, self._position = self._position, self._planner.latest(self._position)
        return [(found.place, [tuple(found)]) for found in self._planner.ranges(start, self._position)]

    def positions(self) -> tuple[Document, Document]:
        """Return what was handed out, and the last known ends."""
        start = self._position
        return start, self._planner.known_ends(start)

    def prepare_available_now(self) -> None:
        """Read up to the present ends of the partitions."""
        self._planner.prepare_available_now()

    def is_done(self) -> bool:
        """Return whether all ranges up to the end are handed out, if there is an end."""
        return self._planner.has_handed_out(self._position)

    def told(self, progress: SourceProgress) -> None:
        """Pass on the tasks' progress, and commit for the group from time to time."""
        self._planner.observe(self._position, progress)
        self._planner.commit(self._position)

    def close(self) -> None:
        """Commit the finished positions, and close the connection to Kafka."""
        self._planner.commit(self._position, now=True)
        self._planner.close()
