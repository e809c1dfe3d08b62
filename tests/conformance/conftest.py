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
    # Three are more of the same.
    pytest.param(("local", 2), id="local-2-workers", marks=[pytest.mark.slow, pytest.mark.long]),
    pytest.param(("local", 3), id="local-3-workers", marks=pytest.mark.slow),
    pytest.param(("spark", 2), id="spark-2-workers", marks=pytest.mark.spark),
    pytest.param(("threads", 1), id="threads", marks=pytest.mark.slow),
    pytest.param(("threads", 3), id="threads-3-workers", marks=pytest.mark.slow),
]


#: `make test` draws so many of the cases on threads, of a hundred; `make soak` runs them all.
_DRAWN_ON_THREADS = 10
#: What `make test` runs on Spark: of each feature, the cases that need most of Spark. What a case shows hardly depends on Spark,
#: and the local engine runs them all with 1 and 3 workers. `make soak` runs them all on Spark, too. Of a case with parameters,
#: the first one runs.
ON_SPARK = {
    "test_acker.py": {"test_a_second_ack_or_fail_is_reported_and_changes_nothing"},
    "test_arrow.py": {"test_mixed_topologies"},
    "test_async.py": {"test_calls_that_wait_run_side_by_side_and_every_tuple_has_one_verdict"},
    "test_building.py": {"test_functions_are_spouts_and_bolts"},
    "test_cycles.py": {"test_a_fail_in_a_late_round_fails_its_message_once_and_no_other"},
    "test_delivery.py": {
        "test_every_tuple_arrives_once_and_every_message_is_acked_once",
        "test_a_bolt_that_always_raises_stops_the_topology_with_its_error",
    },
    "test_flux.py": {"test_components_groupings_and_sizes"},
    "test_groupings.py": {"test_several_subscribers_of_a_stream_are_served_each_by_its_own_grouping"},
    "test_heronpy.py": {"test_what_comes_once_is_taken_once"},
    "test_life.py": {
        "test_ticks_reach_every_task_of_a_bolt",
        "test_hooks_and_metrics",
        "test_a_spout_that_raises_restarts_and_hears_nothing_of_its_old_messages",
    },
    "test_multilang.py": {"test_word_count_equals_a_plain_count"},
    "test_state.py": {
        "test_the_order_of_a_stateful_bolts_calls",
        "test_a_batch_with_a_failing_tuple_is_taken_back_everywhere",
        "test_attributes_of_a_bolt_that_knows_nothing_of_state",
        "test_a_row_of_a_source_that_always_fails_is_a_dead_letter",
    },
    "test_streamlet.py": {"test_element_by_element"},
    "test_streamparse.py": {"test_words_are_counted"},
    "test_testing_kit.py": {"test_a_tracked_wait_counts_on_from_the_waits_before"},
    "test_threads.py": {"test_a_shared_pool_may_emit_ack_and_fail"},
    "test_transactional.py": {"test_a_source_is_transactional_by_itself"},
    "test_windows.py": {
        "test_event_time_with_lag_and_late_tuples",
        "test_exactly_once_counts_are_acked_with_their_batch",
    },
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave most of the cases that run on threads or on Spark to `make soak`."""
    on_spark = set()
    for item in items:
        engine = re.search(r"^tests/conformance/.*\[(?:.*-)?(threads|spark)\b", item.nodeid)
        if engine is None:
            continue
        case = item.nodeid.partition("[")[0]
        if engine[1] == "threads":
            here = Random(f"{_SEED} {item.nodeid}").randrange(100) < _DRAWN_ON_THREADS
        else:
            here = case not in on_spark and case.rpartition("::")[2] in ON_SPARK.get(item.path.name, ())
            on_spark.add(case)
        if not here or "LONG_TESTS" in os.environ:
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
