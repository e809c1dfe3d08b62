"""Every case here runs on the local engine, on the in-process supersteps with 2 and 3 workers, and on Spark."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from stormspark import Topology
from stormspark.metrics import TopologyStatistics
from stormspark.worker.stories.story import Story
from tests.conformance.components import EFFECTS, Failed, Recorded, acked, failed, read_effects, recorded

ENGINES = [
    pytest.param(("local", 1), id="local"),
    pytest.param(
        ("local", 2), id="local-2-workers", marks=pytest.mark.slow
    ),  # one and three are enough after an edit
    pytest.param(("local", 3), id="local-3-workers"),
    pytest.param(("spark", 2), id="spark-2-workers", marks=pytest.mark.spark),
]


class Outcome:
    """What a finished run left behind."""

    def __init__(self, folder: Path, statistics: TopologyStatistics, stories: list[Story]) -> None:
        self._folder = folder
        self.statistics = statistics
        self.stories = stories

    def effects(self, component: str) -> list[list[Any]]:
        return read_effects(self._folder, component)

    def acked(self, spout: str) -> Counter[Any]:
        """How often the tasks of a spout heard that each message was acked."""
        return acked(self.effects(spout))

    def failed(self, spout: str) -> list[Failed]:
        """What the tasks of a spout wrote down of messages that failed."""
        return failed(self.effects(spout))

    def recorded(self, bolt: str) -> list[Recorded]:
        """The tuples that the tasks of a `Record` wrote down."""
        return recorded(self.effects(bolt))

    def effects_by_task(self, component: str) -> list[list[list[Any]]]:
        """The effects of each task of a component, by task id."""
        paths = self._folder.glob(f"{component}-*.jsonl")
        by_task = sorted(paths, key=lambda path: int(path.stem.rpartition("-")[2]))
        return [[json.loads(line) for line in path.read_text().splitlines()] for path in by_task]


Run = Callable[..., Outcome]


@pytest.fixture(params=ENGINES)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Run a topology until it is idle, end it gracefully, and return its `Outcome`."""
    engine, workers = request.param
    runs = 0

    def run_topology(
        topology: Topology, conf: Mapping[str, Any] | None = None, timeout: float = 300.0
    ) -> Outcome:
        nonlocal runs
        runs += 1
        folder = tmp_path / f"effects-{runs}"
        folder.mkdir()
        settings = {"topology.workers": workers, EFFECTS: str(folder), **(conf or {})}
        if engine == "local":
            from stormspark.local import submit as submit_locally

            local = submit_locally(topology, conf=settings)
            try:
                local.run_until_idle(timeout)
            finally:
                local.stop()
            return Outcome(folder, local.statistics(), local.stories())
        from stormspark.spark import submit
        from tests.waiting import wait_until_idle

        spark = request.getfixturevalue("spark")
        running = submit(topology, spark, conf=settings)
        try:
            wait_until_idle(running, timeout)
        except AssertionError:
            if running.error is not None:
                raise running.error from None  # as the local engine does
            raise
        finally:
            running.stop()
        return Outcome(folder, running.statistics(), running.stories())

    return run_topology
