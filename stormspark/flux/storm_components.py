"""Stand-ins for stock components of Storm. Their constructors take Java's arguments (K23)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from stormspark.api import (
    BasicBolt,
    BasicOutputCollector,
    Fields,
    GlobalStreamId,
    OutputFieldsDeclarer,
    Spout,
    SpoutOutputCollector,
    TopologyContext,
    Tuple,
)
from stormspark.errors import InvalidTopologyError
from stormspark.grouping import CustomStreamGrouping, GroupingContext

__all__ = ["LogInfoBolt", "NGrouping", "TestWordSpout"]


class TestWordSpout(Spout):
    """A spout that emits a random name every 100 ms, without a message id, as Storm's TestWordSpout does.

    ``stormspark.testing.TestWordSpout`` is faster. It can end, and it can be reliable.
    """

    __test__ = False  # pytest must not collect it, despite its name
    WORDS = ("nathan", "mike", "jackson", "golda", "bertels")
    PERIOD_MS = 100

    def __init__(self, is_distributed: bool = True) -> None:
        self.is_distributed = is_distributed

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        """Start the clock, so that the first word is due at once."""
        self._context, self._collector = context, collector
        self._random = Random(context.this_task_id)
        self._due_ms = context.now_ms()

    def next_tuple(self) -> None:
        """Emit a word if one is due. After a long delay, at most one of the missed words is emitted late."""
        now_ms = self._context.now_ms()
        if now_ms >= self._due_ms:
            self._due_ms = max(self._due_ms + self.PERIOD_MS, now_ms)
            self._collector.emit((self._random.choice(self.WORDS),))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare one field, ``word``."""
        declarer.declare(Fields("word"))

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """Return the setting that limits the spout to one task, unless it is distributed."""
        return None if self.is_distributed else {"topology.max.task.parallelism": 1}


class LogInfoBolt(BasicBolt):
    """A bolt that logs each tuple at level INFO, and emits nothing."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Keep the task's logger."""
        self._logger = context.logger

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Log one tuple."""
        self._logger.info("%s", tup)


class NGrouping(CustomStreamGrouping):
    """A grouping that sends every tuple to the first ``number`` tasks."""

    def __init__(self, number: int) -> None:
        self.number = number

    def prepare(self, context: GroupingContext, stream: GlobalStreamId, target_tasks: list[int]) -> None:
        """Choose the first ``number`` tasks. Raises `InvalidTopologyError` if there are fewer tasks."""
        if self.number > len(target_tasks):
            msg = f"NGrouping({self.number}) needs {self.number} tasks, but {context.consumer!r} has {len(target_tasks)}"
            raise InvalidTopologyError(msg)
        self._chosen = sorted(target_tasks)[: self.number]

    def choose_tasks(self, task: int, values: Sequence[Any]) -> list[int]:
        """Return the chosen tasks, which are always the same."""
        return self._chosen
