"""Ranges of positions as a Spark source: a planner says what there is, tasks get the ranges as rows and read them themselves.

Spark keeps the planner's positions in its checkpoint, which is the truth. The planner lives in a process that Spark starts on the
driver's host for each run of a query; nobody sees what it prints, and an exception there ends the query.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from stormspark.api import SourceProgress
from stormspark.spark.feedback import COMPONENT, COMPONENT_TASKS, FEEDBACK

__all__ = ["RangePlanner", "range_stream"]

_Positions = dict[str, Any]


class RangePlanner(Protocol):
    """Positions are what JSON can hold. `{}` is before anything was known. It is pickled before it is asked anything."""

    def latest(self, start: _Positions) -> _Positions:
        """Up to where the next batch goes; ``start`` where nothing is new."""

    def known_ends(self, start: _Positions) -> _Positions:
        """Up to where it could go, for those who look at the lag."""

    def ranges(self, start: _Positions, end: _Positions) -> Sequence[tuple[Any, ...]]:
        """The rows of a batch; the last column is the number that says which task gets a range."""

    def prepare_available_now(self) -> None:
        """Nothing that comes from now on is wanted."""

    def told(self, end: _Positions, progress: SourceProgress) -> None:
        """How far tasks had come when the batch that ended at ``end`` was done.

        At first, at `{}`, what is left of an earlier run. Each batch's is told once; low marks may be older than ``end``.
        """

    def commit(self, end: _Positions) -> None:
        """The batch is committed."""

    def close(self) -> None:
        """The query ends; not always called."""


class _Ranges(InputPartition):
    """The ranges of one Spark task: of those that go to the same task of the spout."""

    def __init__(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self.rows = list(rows)


class _Settings(NamedTuple):
    planner: RangePlanner
    schema: str
    component: str
    feedback: Path | None
    tasks: int | None


class _Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, settings: _Settings) -> None:
        self._planner, _, self._component, self._feedback, self._tasks = settings
        self._start: _Positions = {}
        self._heard: tuple[int, int] | None = None
        self._tell({})  # what is there by now is of an earlier run of the query

    def initialOffset(self) -> _Positions:  # noqa: N802
        return {}

    def latestOffset(self, start: _Positions, limit: ReadLimit) -> _Positions:  # noqa: N802
        self._start = start
        self._tell(start)
        return self._planner.latest(start)

    def reportLatestOffset(self) -> _Positions:  # noqa: N802
        return self._planner.known_ends(self._start)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._planner.prepare_available_now()

    def partitions(self, start: _Positions, end: _Positions) -> list[InputPartition]:
        ranges = self._planner.ranges(start, end)
        if self._tasks is None:
            return [_Ranges([row]) for row in ranges]
        groups: dict[int, list[tuple[Any, ...]]] = {}
        for row in ranges:
            groups.setdefault(row[-1] % self._tasks, []).append(row)
        return [_Ranges(rows) for _, rows in sorted(groups.items())]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, _Ranges)
        return iter([tuple(row) for row in partition.rows])

    def commit(self, end: _Positions) -> None:
        self._tell(end)
        self._planner.commit(end)

    def stop(self) -> None:
        self._planner.close()

    def _tell(self, end: _Positions) -> None:
        """What the driver wrote down when the last batch was done."""
        if self._feedback is None:
            return
        try:
            with self._feedback.open("rb") as file:
                written = os.fstat(file.fileno())
                told = json.loads(file.read()).get(self._component)
        except (OSError, ValueError):  # no batch has ended yet
            return
        # Spark plans a batch before it commits the one before it. What that had done, told once more, would be taken for what
        # has become of the new one's ranges.
        if self._heard == (heard := (written.st_ino, written.st_mtime_ns)):
            return
        self._heard = heard
        if told is not None:
            self._planner.told(end, SourceProgress(told["waiting"], told["low_marks"], limit=told["limit"]))


def range_stream(spark: SparkSession, planner: RangePlanner, schema: str) -> DataFrame:
    """The streaming DataFrame of a planner's ranges.

    How far its tasks have come is what `stormspark.spark.feedback` writes; where ``stormspark.component.tasks`` says how
    many they are, ranges for the same task are one partition of Spark's.
    """
    feedback = spark.conf.get(FEEDBACK, None)
    component = spark.conf.get(COMPONENT, None) or "source"
    tasks = spark.conf.get(COMPONENT_TASKS, None)
    settings = _Settings(
        planner,
        schema,
        component,
        Path(feedback) if feedback else None,
        int(tasks) if tasks else None,
    )
    # A class of its own for each spout: what a reader has to know, passwords among it, is in no option that Spark would show.
    name = "stormspark_" + re.sub(r"\W", lambda found: f"_{ord(found[0]):x}_", component)

    class Ranges(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> str:
            return settings.schema

        def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
            return _Reader(settings)

    spark.dataSource.register(Ranges)
    return spark.readStream.format(name).load()
