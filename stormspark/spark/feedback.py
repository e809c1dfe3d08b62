"""Feedback: a file that tells the readers of Python data sources how far the tasks of source spouts have come.

These readers live in processes of their own on the driver's host. The driver replaces the file after each batch:

    {"<component>": {"waiting": 12, "low_marks": {"words-0": 4711}, "limit": 2000}}

``waiting`` is the number of rows that no task has emitted yet. ``low_marks`` has for each partition the lowest position of a row
that is still open (`SourceProgress`). The marks are those that the tasks reported last; before the first report they are null.
``limit`` is the number of tuples that the tasks may emit in the next batch; null if nothing limits them. The file exists before
the first batch, too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from stormspark.worker.step import WorkerReport, merge_progress

__all__ = ["COMPONENT", "COMPONENT_TASKS", "FEEDBACK", "STORM_ID", "Feedback"]

#: A source spout finds these keys in the configuration of the session that its ``stream`` method gets. They hold the path of the
#: feedback file, the spout's component id, an id that only this topology with this checkpoint has, and the spout's number of
#: tasks.
FEEDBACK, COMPONENT, STORM_ID = "stormspark.feedback", "stormspark.component", "stormspark.storm.id"
COMPONENT_TASKS = "stormspark.component.tasks"


class Feedback:
    """The writer of the feedback file, which is in ``folder``."""

    def __init__(self, session: SparkSession, folder: Path, storm_id: str) -> None:
        self.path = folder / "feedback.json"
        self._low_marks: dict[str, Mapping[str, int]] = {}
        session.conf.set(FEEDBACK, str(self.path))
        session.conf.set(STORM_ID, storm_id)

    def begin(self, components: Iterable[str], limit_of: Callable[[str], int | None]) -> None:
        """Unless an earlier run has left the file, write it before the first batch, so that sources know their first limit."""
        if not self.path.exists():
            nothing = {"waiting": 0, "low_marks": None}
            self._replace({component: {**nothing, "limit": limit_of(component)} for component in components})

    def write(self, reports: Iterable[WorkerReport], limit_of: Callable[[str], int | None]) -> None:
        """Write the file after a batch. ``limit_of`` returns how many tuples a spout may emit in the next batch."""
        content: dict[str, object] = {}
        for component, (waiting, low_marks, *_) in merge_progress(r.sources for r in reports).items():
            if low_marks is not None:
                self._low_marks[component] = low_marks
            content[component] = {
                "waiting": waiting,
                "low_marks": self._low_marks.get(component),
                "limit": limit_of(component),
            }
        if content:
            self._replace(content)

    def _replace(self, content: Mapping[str, object]) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(content), encoding="utf-8")
        os.replace(new, self.path)
