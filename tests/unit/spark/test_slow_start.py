"""A start of Spark that takes long is spoken of, and one that does not is not."""

from __future__ import annotations

import logging
import threading

import pytest

pytest.importorskip("pyspark")

from stormspark.spark.slow_start import said_if_slow


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.came = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        self.came.set()


@pytest.fixture
def lines() -> Lines:
    return Lines()


def test_a_cluster_without_room_for_the_application(lines: Lines) -> None:
    log = logging.getLogger("stormspark.spark.slow_start")
    log.addHandler(lines)
    try:
        with said_if_slow("words", 0.0):
            assert lines.came.wait(60)
        with said_if_slow("words", 60.0):
            pass
    finally:
        log.removeHandler(lines)
    [line] = lines.lines
    assert line.startswith("words: Spark has not started within 0 s.")
    assert "the cluster has no room for the application" in line
