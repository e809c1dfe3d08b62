"""Every case here runs on the local engine, on the in-process supersteps with 2 and 3 workers, and on Spark.

It also runs on the local engine with a thread for each executor, whose calls wait at random.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from random import Random
from typing import Any

import pytest

from stormspark import Topology
from stormspark.metrics import TopologyStatistics
from stormspark.worker.stories.story import Story
from tests.conformance.components import EFFECTS, Failed, Recorded, acked, failed, read_effects, recorded
from tests.conformance.waiting_calls import ON_THREADS, calls_that_wait

_SEED = os.environ.get("TEST_SEED", "1")
ENGINES = [
    pytest.param(("local", 1), id="local"),
    # One worker is enough after an edit.
    pytest.param(("local", 2), id="local-2-workers", marks=pytest.mark.slow),
    pytest.param(("local", 3), id="local-3-workers", marks=pytest.mark.slow),
    pytest.param(("spark", 2), id="spark-2-workers", marks=pytest.mark.spark),
    pytest.param(("threads", 1), id="threads", marks=pytest.mark.slow),
    pytest.param(("threads", 3), id="threads-3-workers", marks=pytest.mark.slow),
]


#: `make test` draws so many of the cases of an engine, of a hundred; `make soak` runs them all. The engines that are not here run
#: all their cases.
_DRAWN = {"threads": 20, "spark": 35}
#: What Spark does differs most from what the local engine does here, so all of these cases run on Spark, too.
_ALL_ON_SPARK = ("test_life.py", "test_state.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave most of the cases that run on threads or on Spark to `make soak`."""
    for item in items:
        engine = re.search(r"^tests/conformance/.*\[(?:.*-)?(threads|spark)\b", item.nodeid)
        if engine is None or (engine[1] == "spark" and item.path.name in _ALL_ON_SPARK):
            continue
        drawn = Random(f"{_SEED} {item.nodeid}").randrange(100) < _DRAWN[engine[1]]
        if not drawn or "LONG_TESTS" in os.environ:
            item.add_marker(pytest.mark.long)


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


def waits_of(engine: str, test: str, settings: dict[str, Any]) -> AbstractContextManager[None]:
    """Set up the engine "threads": each executor gets a thread, and calls on it wait at random. Do nothing for others."""
    if engine != "threads":
        return nullcontext()
    settings.update(ON_THREADS)
    return calls_that_wait(f"{_SEED} {test}")


@pytest.fixture(params=ENGINES)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Run a topology until it is idle, end it gracefully, and return its `Outcome`."""
    engine, workers = request.param
    runs = 0

    def run_topology(
        topology: Topology,
        conf: Mapping[str, Any] | None = None,
        timeout: float = 300.0,
    ) -> Outcome:
        nonlocal runs
        runs += 1
        folder = tmp_path / f"effects-{runs}"
        folder.mkdir()
        settings = {"topology.workers": workers, EFFECTS: str(folder), **(conf or {})}
        if engine != "spark":
            from stormspark.local import submit as submit_locally

            with waits_of(engine, request.node.nodeid, settings):
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
