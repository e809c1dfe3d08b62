"""A topology on Spark is laid out anew while it runs: other workers, other executors, more tasks (J3, C45, W16)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import stormspark
from stormspark import Fields, TopologyBuilder, Tuple
from stormspark.errors import InvalidTopologyError, StatusError
from stormspark.grouping.hashing import fields_task_index
from stormspark.operations.client import Client
from stormspark.spark import SparkTopology
from stormspark.testing import TestWordCounter, TestWordSpout
from tests.spark.test_durable_acker import Held
from tests.spark.test_state import BY_KEYS, Keys, Sums
from tests.spark.test_state import topology as sums_by_key
from tests.waiting import entry_of_driver, wait_for, wait_until_idle, worker_processes

pytestmark = pytest.mark.spark


def executed(running: SparkTopology, component: str) -> int:
    return running.statistics().components[component].executed


def test_keyed_state_is_dealt_out_to_more_tasks_in_the_middle_of_the_work(
    start: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    """J3, C36, W16: two, five, and one executor of the same bolt; each number counts once, and totals go on."""
    n = 40_000
    conf = {"test.effects": str(tmp_path), "topology.workers": 2}
    running = start(sums_by_key(n, 2, **BY_KEYS), checkpoint=tmp_path / "checkpoint", conf=conf)
    wait_for(lambda: executed(running, "sums") > 500)
    running.rebalance(workers=3, executors={"sums": 5})
    assert (running.plan.workers, len(running.plan.components["sums"].tasks)) == (3, 5)
    assert len(worker_processes("sums")) == 3
    so_far = executed(running, "sums")
    assert so_far > 500
    wait_for(lambda: executed(running, "sums") > so_far)
    running.rebalance(workers=1, executors={"sums": 1, "mixed": 4})
    assert len(running.plan.components["sums"].tasks) == 5, "as in Storm, tasks stay"
    wait_until_idle(running)
    assert executed(running, "sums") == n
    running.stop()
    assert running.error is None
    rows = stormspark.state(tmp_path / "checkpoint", "sums").to_dict("records")
    assert {row["key"]: (row["task"], row["value"]) for row in rows} == {
        key: (fields_task_index((key,), 5), n // 10) for key in range(10)
    }


class Elsewhere(Sums):
    """Whose keys are not those of its grouping, although its setting says so."""

    def execute(self, tup: Tuple) -> None:
        key = tup["key"] + 101
        self.state[key] = self.state.get(key, 0) + 1
        self.collector.ack(tup)


def test_a_layout_that_can_not_start_is_taken_back_in_the_middle_of_the_work(
    start: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    """C36: only the new workers find out that keys can't be dealt out. Each number counts once all the same."""
    n = 5000
    builder = TopologyBuilder()
    builder.set_spout("numbers", Keys(n))
    sums = builder.set_bolt("sums", Elsewhere(), 2).fields_grouping("numbers", Fields("key"))
    sums.add_configurations(BY_KEYS)
    conf = {"test.effects": str(tmp_path), "topology.workers": 2}
    running = start(builder.create_topology("taken-back"), checkpoint=tmp_path / "checkpoint", conf=conf)
    before = running.plan
    wait_for(lambda: executed(running, "sums") > 500)
    refused = r"could not start with 3 workers and \d executors, and runs with 2 and \d as before: NotDealtOutError: "
    with pytest.raises(StatusError, match=refused):
        running.rebalance(workers=3, executors={"sums": 5})
    assert running.plan is before
    assert len(worker_processes("taken-back")) == 2
    wait_until_idle(running)
    assert executed(running, "sums") == n
    running.stop()
    assert running.error is None
    rows = stormspark.state(tmp_path / "checkpoint", "sums").to_dict("records")
    assert {row["key"]: row["value"] for row in rows} == {key + 101: n // 10 for key in range(10)}


@pytest.mark.faults
def test_rows_that_a_bolt_holds_come_again_once_and_are_acked(
    start: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    """E16: rows of batches that are long committed, which only the durable acker knows; without a restart of the driver."""
    held = Held(start, tmp_path)
    running = held.start()
    running.rebalance(workers=1, executors={"hold": 3})
    held.wait_for(lambda _: held.replayed(2))
    held.finish(running)
    assert held.replayed(2)


def test_a_command_rebalances_and_spouts_wait_meanwhile(start: Callable[..., SparkTopology]) -> None:
    """J2, J8: over the REST API, with a wait; then the topology has the state that it had, and unknown names change nothing."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout(), parallelism=2)
    builder.set_bolt("count", TestWordCounter(), parallelism=2).fields_grouping("words", Fields("word"))
    running = start(builder.create_topology("laid-out-anew"), conf={"topology.workers": 2})
    wait_for(lambda: executed(running, "count") > 0)
    client = Client(entry_of_driver("laid-out-anew", os.getpid()))
    with pytest.raises(StatusError, match="there is no component 'cuont'; did you mean 'count'"):
        client.do("rebalance/0", {"rebalanceOptions": {"executors": {"cuont": 3}}})
    assert client.summary()["status"] == "ACTIVE"
    options = {"rebalanceOptions": {"numWorkers": 1, "executors": {"count": "1"}}}
    answer = client.do("rebalance/1", options)
    assert answer["topologyOperation"] == "rebalance"
    assert client.summary()["status"] == "REBALANCING"
    with pytest.raises(StatusError, match="is REBALANCING: deactivate is not possible until that is done"):
        client.do("deactivate")
    wait_for(lambda: client.summary()["status"] == "ACTIVE")
    assert (client.summary()["workersTotal"], client.summary()["executorsTotal"]) == (1, 3)
    so_far = executed(running, "count")
    wait_for(lambda: executed(running, "count") > so_far, message="the spouts emit again")
    client.do("deactivate")
    client.do("rebalance/0", {"rebalanceOptions": {"numWorkers": 2}})
    wait_for(lambda: client.summary()["status"] == "INACTIVE")
    so_far = running.statistics().components["words"].emitted
    running.end_input()
    running.stop()
    assert running.statistics().components["words"].emitted == so_far, "the spouts stay deactivated"
    with pytest.raises(StatusError, match="ends, so it can't be rebalanced now"):
        running.rebalance(workers=1)


@pytest.mark.long  # a few seconds of Spark
def test_a_stop_in_the_middle_ends_the_topology(start: Callable[..., SparkTopology]) -> None:
    for moment in (0.0, 0.3, 1.0, 2.0):
        builder = TopologyBuilder()
        builder.set_spout("words", TestWordSpout(), parallelism=2)
        builder.set_bolt("count", TestWordCounter(), parallelism=2).fields_grouping("words", Fields("word"))
        running = start(builder.create_topology(f"stopped-{moment * 10:g}"), conf={"topology.workers": 2})
        wait_for(lambda running=running: executed(running, "count") > 0)  # type: ignore[misc]
        laid_out = threading.Thread(target=running.rebalance, kwargs={"workers": 1})
        laid_out.start()
        laid_out.join(moment)
        running.stop()
        laid_out.join(20)
        assert not laid_out.is_alive()
        assert running.error is None
        assert not worker_processes(running.name)


@pytest.mark.long
def test_what_can_not_be_changes_nothing(start: Callable[..., SparkTopology], tmp_path: Path) -> None:
    """C36: state whose keys are not said to be those of the grouping stays with its tasks."""
    conf = {"test.effects": str(tmp_path)}
    running = start(sums_by_key(1000, 2), checkpoint=tmp_path / "checkpoint", conf=conf)
    with pytest.raises(
        InvalidTopologyError, match=r"'sums' has 2 tasks and can't have 3.*stormspark\.state\.keys"
    ):
        running.rebalance(executors={"sums": 3})
    wait_until_idle(running)
    assert executed(running, "sums") == 1000
