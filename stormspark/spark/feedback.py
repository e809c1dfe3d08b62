"""How far the tasks of source spouts have come, for Python data sources: their readers live in processes of their own.

A file on the driver's host, replaced after each batch:

    {"<component>": {"waiting": 12, "low_marks": {"words-0": 4711}, "limit": 2000}}

``low_marks`` are those of the last batch in which the tasks were asked, null before that. ``limit`` is what they may emit in
the next batch, null where nothing holds them; it is there before the first one, too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from stormspark.worker.step import WorkerReport, merge_progress

__all__ = ["COMPONENT", "COMPONENT_TASKS", "FEEDBACK", "STORM_ID", "Feedback"]

#: What a source spout finds in the configuration of the session that its ``stream`` is called with: the path of this file, its
#: own component id and number of tasks, and what tells this deployment of the topology, with its checkpoint, from every other.
FEEDBACK, COMPONENT, STORM_ID = "stormspark.feedback", "stormspark.component", "stormspark.storm.id"
COMPONENT_TASKS = "stormspark.component.tasks"


class Feedback:
    """Writes the file in ``folder``."""

    def __init__(self, session: SparkSession, folder: Path, storm_id: str) -> None:
        self.path = folder / "feedback.json"
        self._low_marks: dict[str, Mapping[str, int]] = {}
        session.conf.set(FEEDBACK, str(self.path))
        session.conf.set(STORM_ID, storm_id)

    def begin(self, components: Iterable[str], limit_of: Callable[[str], int | None]) -> None:
        """Before the first batch of all: nothing waits, and a topology that begins takes little."""
        if not self.path.exists():
            nothing = {"waiting": 0, "low_marks": None}
            self._replace({component: {**nothing, "limit": limit_of(component)} for component in components})

    def write(self, reports: Iterable[WorkerReport], limit_of: Callable[[str], int | None]) -> None:
        """After a batch; ``limit_of`` says how many tuples a spout may emit in the next one."""
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
