"""What a planner hears of the batches, in the order in which Spark asks a source."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from stormspark.api import SourceProgress
from stormspark.spark.range_source import _Reader, _Settings
from stormspark.spark.versions import ReadAllAvailable


class Planner:
    """Hands out ten more each time, and writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def latest(self, start: dict[str, Any]) -> dict[str, Any]:
        self.heard.append("plan")
        return {"end": start.get("end", 0) + 10}

    def known_ends(self, start: dict[str, Any]) -> dict[str, Any]:
        return start

    def ranges(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[tuple[Any, ...]]:
        return [(start["end"], end["end"], 0)]

    def prepare_available_now(self) -> None:
        pass

    def observe(self, end: dict[str, Any], progress: SourceProgress) -> None:
        self.heard.append(progress.waiting)

    def commit(self, end: dict[str, Any]) -> None:
        self.heard.append("commit")

    def close(self) -> None:
        pass


@pytest.fixture
def feedback(tmp_path: Path) -> Path:
    return tmp_path / "feedback.json"


def batch_ends(feedback: Path, waiting: int) -> None:
    """As `stormspark.spark.feedback` does: by a new file in the old one's place."""
    new = feedback.with_suffix(".new")
    new.write_text(json.dumps({"kafka": {"waiting": waiting, "low_marks": None, "limit": None}}))
    new.replace(feedback)


def test_what_a_batch_has_done_is_reported_once(feedback: Path) -> None:
    """F13: Spark plans the next batch before it commits the last one. Told again by then, with what was handed out since, nothing
    that waited would pass for emitted, and ever more would be handed out.
    """
    planner = Planner()
    reader = _Reader(_Settings(planner, "", "kafka", feedback, None))
    first = reader.latestOffset({}, ReadAllAvailable())
    batch_ends(feedback, waiting=7)
    second = reader.latestOffset(first, ReadAllAvailable())
    reader.commit(first)
    batch_ends(feedback, waiting=7)  # the same as before, but news
    reader.latestOffset(second, ReadAllAvailable())
    reader.commit(second)
    assert planner.heard == ["plan", 7, "plan", "commit", 7, "plan", "commit"]


def test_what_is_left_of_an_earlier_run_is_reported_at_first(feedback: Path) -> None:
    """K3: before anything is planned."""
    batch_ends(feedback, waiting=3)
    planner = Planner()
    reader = _Reader(_Settings(planner, "", "kafka", feedback, None))
    reader.latestOffset({}, ReadAllAvailable())
    assert planner.heard == [3, "plan"]


def test_before_spark_4_2_a_reader_finds_the_start_of_a_batch_by_itself(feedback: Path) -> None:
    """Spark gives no arguments then. A first run begins at the beginning, and each batch where the last one has ended."""
    reader = _Reader(_Settings(Planner(), "", "kafka", feedback, None))
    assert [reader.latestOffset(), reader.latestOffset()] == [{"end": 10}, {"end": 20}]


def test_before_spark_4_2_a_later_run_begins_where_the_last_batch_was_planned_to_end(feedback: Path) -> None:
    reader = _Reader(_Settings(Planner(), "", "kafka", feedback, None, planned={"end": 70}))
    assert [reader.latestOffset(), reader.latestOffset()] == [{"end": 80}, {"end": 90}]


def test_before_spark_4_2_a_reader_that_ends_fixes_its_end_once(feedback: Path) -> None:
    class Ending(Planner):
        def prepare_available_now(self) -> None:
            self.heard.append("ends")

    planner = Ending()
    reader = _Reader(_Settings(planner, "", "kafka", feedback, None, available_now=True))
    reader.latestOffset()
    reader.latestOffset()
    assert planner.heard == ["ends", "plan", "plan"]
