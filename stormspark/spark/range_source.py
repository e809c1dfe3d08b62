"""A Spark source whose rows are ranges of positions.

A planner decides which ranges a batch has. The tasks of the spout get the ranges, and read the data in them.

Spark keeps the planner's positions in its checkpoint, and the next planner continues from them. For each run of a query, Spark
starts a process on the driver's host, and the planner lives in it. Nobody sees what that process prints, and an exception in it
ends the query.
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

from stormspark.api import SourceProgress
from stormspark.spark.checkpoint_folder import PlannedOffset
from stormspark.spark.feedback import COMPONENT, COMPONENT_TASKS, FEEDBACK
from stormspark.spark.versions import LimitedReader

__all__ = ["AVAILABLE_NOW", "PLANNED", "RangePlanner", "range_stream"]

#: Settings of the session for the next stream, before Spark 4.2: the end of the last batch that an earlier run has planned, as
#: JSON of a `PlannedOffset`; and whether the stream ends with what is there now.
PLANNED, AVAILABLE_NOW = "stormspark.source.planned", "stormspark.source.available.now"

_Positions = dict[str, Any]


class RangePlanner(Protocol):
    """Decides which ranges each batch has. A planner is pickled before any of its methods is called.

    Positions can be anything that JSON can express. `{}` stands for the time before any position was known.
    """

    def latest(self, start: _Positions) -> _Positions:
        """Return the end of the next batch; ``start`` if there is nothing new."""

    def known_ends(self, start: _Positions) -> _Positions:
        """Return the end that the next batch could reach, for people who look at the lag."""

    def ranges(self, start: _Positions, end: _Positions) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a batch. Each row is a range. The number in its last column decides which task gets the range."""

    def prepare_available_now(self) -> None:
        """Read nothing that appears from now on."""

    def observe(self, end: _Positions, progress: SourceProgress) -> None:
        """Learn how far tasks had come when the batch that ended at ``end`` was done.

        If an earlier run of the query has left its progress, the first call has that progress and ``end={}``. Later there is one
        call per batch. The low marks in ``progress`` may be older than ``end``.
        """

    def commit(self, end: _Positions) -> None:
        """Called when the batch that ended at ``end`` is committed."""

    def close(self) -> None:
        """Called when the query ends. Spark does not always call this."""


class _Ranges(InputPartition):
    """The ranges of one Spark task. All of them go to the same task of the spout."""

    def __init__(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self.rows = list(rows)


class _Settings(NamedTuple):
    planner: RangePlanner
    schema: str
    component: str
    feedback: Path | None
    tasks: int | None
    planned: _Positions | None = None
    available_now: bool = False


class _Reader(LimitedReader):
    def __init__(self, settings: _Settings) -> None:
        self._planner, self._component, self._feedback = (
            settings.planner,
            settings.component,
            settings.feedback,
        )
        self._tasks, self._planned, self._ends = settings.tasks, settings.planned, settings.available_now
        self._start: _Positions = {}
        self._passed: tuple[int, int] | None = None
        self._pass_feedback({})  # at this time, the file has the feedback of an earlier run of the query

    def next_offset(self, start: _Positions) -> _Positions:
        if self._ends:
            self.prepareForTriggerAvailableNow()
            self._ends = False
        self._start = start
        self._pass_feedback(start)
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
        self._pass_feedback(end)
        self._planner.commit(end)

    def stop(self) -> None:
        self._planner.close()

    def _pass_feedback(self, end: _Positions) -> None:
        """Pass on the feedback that the driver wrote when the last batch was done."""
        if self._feedback is None:
            return
        try:
            with self._feedback.open("rb") as file:
                version = os.fstat(file.fileno())
                written = json.loads(file.read()).get(self._component)
        except (OSError, ValueError):  # no batch has ended yet
            return
        # Spark plans a batch before it commits the previous one. If the planner got the previous batch's progress a second time,
        # it would take this for the progress of the new ranges.
        if self._passed == (passed := (version.st_ino, version.st_mtime_ns)):
            return
        self._passed = passed
        if written is not None:
            self._planner.observe(
                end, SourceProgress(written["waiting"], written["low_marks"], limit=written["limit"])
            )


def range_stream(spark: SparkSession, planner: RangePlanner, schema: str) -> DataFrame:
    """Make the streaming DataFrame of a planner's ranges.

    The planner gets the tasks' progress, which comes from `stormspark.spark.feedback`. If ``stormspark.component.tasks`` gives
    the number of tasks, Spark has one partition for all ranges of the same task. Raises `CheckpointError` if the offset log that
    Spark before 4.2 left is cut off.
    """
    feedback = spark.conf.get(FEEDBACK, None)
    component = spark.conf.get(COMPONENT, None) or "source"
    tasks = spark.conf.get(COMPONENT_TASKS, None)
    planned = spark.conf.get(PLANNED, None)
    settings = _Settings(
        planner,
        schema,
        component,
        Path(feedback) if feedback else None,
        int(tasks) if tasks else None,
        PlannedOffset(*json.loads(planned)).positions() if planned else None,
        spark.conf.get(AVAILABLE_NOW, None) == "true",
    )
    # Each spout gets a class of its own, which holds the settings. If the settings were passed as options, Spark would show them,
    # and a password may be among them.
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
