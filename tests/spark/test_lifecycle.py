"""Starting, stopping, starting again; several topologies at once; what is refused."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from stormspark import Fields, TopologyBuilder
from stormspark.errors import CheckpointError, ComponentError
from stormspark.spark.query_run import QueryRun
from stormspark.testing import IdentityBolt, TestWordSpout
from tests.spark.topologies import (
    FOLDER,
    ExecuteRaises,
    PrepareRaises,
    broken,
    counted,
    expected_counts,
    word_count,
)
from tests.waiting import (
    PATIENCE_SECS,
    wait_for,
    wait_for_batches,
    wait_until_gone,
    wait_until_idle,
    worker_processes,
)

pytestmark = pytest.mark.spark


def test_two_topologies_run_in_one_session(spark, start, tmp_path):
    runs = {}
    for name, total in (("first", 500), ("second", 700)):
        folder = tmp_path / name
        folder.mkdir()
        conf = {"topology.workers": 2, FOLDER: str(folder)}
        runs[name] = (start(word_count(total, name), conf=conf), folder, total)
    for running, _, _ in runs.values():
        wait_until_idle(running)
    for running, folder, total in runs.values():
        running.stop()
        assert running.error is None
        assert counted(folder) == expected_counts(total)
    assert not spark.streams.active, "the user's session has nothing to do with our queries"


def test_a_stopped_topology_goes_on_from_its_checkpoint(start, tmp_path):
    conf = {"topology.workers": 2, FOLDER: str(tmp_path)}
    checkpoint = tmp_path / "checkpoint"
    generations, committed = [], []
    for _ in range(2):
        running = start(word_count(100), checkpoint=checkpoint, conf=conf)
        try:
            wait_for_batches(running, 2)
        finally:
            running.stop()
        assert running.error is None
        generations.append(running.generation)
        committed.append(max(int(file.name) for file in (checkpoint / "spark" / "commits").glob("[0-9]*")))
    assert generations == [0, 1]
    assert committed[1] >= committed[0] + 2, "batches are numbered on"
    assert json.loads((checkpoint / "stormspark" / "control.json").read_text())["generation"] == 1


def test_a_stop_leaves_the_batch_that_runs_committed(start, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    conf = {"topology.workers": 1, FOLDER: str(tmp_path)}
    running = start(word_count(100), checkpoint=checkpoint, conf=conf)
    wait_for_batches(running, 1)
    running.stop()
    commits = {int(file.name) for file in (checkpoint / "spark" / "commits").glob("[0-9]*")}
    assert commits == set(range(running.statistics().batches))
    assert running.query.exception() is None


@pytest.mark.long
def test_a_stop_completes_what_workers_have_gone_on_with(start):
    """F6: they ask spouts between supersteps too, and whoever stops a topology finds nothing open."""
    builder = TopologyBuilder()
    builder.set_spout("endless", TestWordSpout(), 2)
    builder.set_bolt("pass-on", IdentityBolt(Fields("word")), 2).shuffle_grouping("endless")
    builder.set_bolt("end", IdentityBolt(Fields("word")), 2).fields_grouping("pass-on", Fields("word"))
    running = start(builder.create_topology("endless"), conf={"topology.workers": 2})
    wait_for(lambda: "filled" in running.statistics().phases, message="a worker that goes on")
    # Four more: by then a gap ends before its time is used up, with tuples on their way.
    wait_for_batches(running, running.statistics().batches + 4)
    running.stop()
    assert running.error is None
    components = running.statistics().components
    assert components["endless"].emitted == components["endless"].acked > 0
    assert components["end"].executed == components["pass-on"].emitted == components["endless"].emitted


def test_a_checkpoint_folder_of_another_topology_is_refused(start, tmp_path):
    folder = {FOLDER: str(tmp_path)}
    running = start(word_count(1), checkpoint=tmp_path / "here", conf=folder)
    running.stop()
    with pytest.raises(
        CheckpointError, match="belongs to the topology 'tested-word-count', not to 'other'"
    ) as refused:
        start(word_count(1, "other"), checkpoint=tmp_path / "here", conf=folder)
    assert "\n" not in str(refused.value)


def test_a_bolt_that_raises_in_prepare_stops_the_topology(start, tmp_path):
    running = start(broken(PrepareRaises()), conf={FOLDER: str(tmp_path)})
    assert running.wait(PATIENCE_SECS)
    assert isinstance(running.error, ComponentError)
    for word in ("broken", "no such table: words", "prepare", "topologies.py"):
        assert word in str(running.error)
    wait_for(lambda: not worker_processes("broken"))


def test_a_bolt_that_always_raises_stops_the_topology(start, tmp_path):
    conf = {FOLDER: str(tmp_path), "stormspark.task.max.restarts.in.row": 3}
    running = start(broken(ExecuteRaises()), conf=conf)
    assert running.wait(PATIENCE_SECS)
    assert isinstance(running.error, ComponentError)
    assert "always" in str(running.error)
    wait_for(lambda: not worker_processes("broken"))


def test_kill_ends_everything_at_once(start, tmp_path):
    running = start(word_count(10**9), conf={"topology.workers": 2, FOLDER: str(tmp_path)})
    wait_for_batches(running, 1)
    workers = worker_processes("tested-word-count").values()
    killer = threading.Thread(target=running.kill)
    killer.start()
    assert running.wait(PATIENCE_SECS)
    killer.join()
    wait_until_gone(workers)
    assert running.error is None
    assert not list(tmp_path.glob("counts-*")), "nothing was cleaned up"


def test_nothing_is_left_behind_in_the_file_system(start, tmp_path, monkeypatch):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    conf = {FOLDER: str(tmp_path), "stormspark.log.dir": str(tmp_path / "logs")}
    running = start(word_count(10), conf=conf)
    wait_until_idle(running)
    running.stop()
    assert list(Path(tmp_path / "t").iterdir()) == []


def test_a_batch_that_spark_interrupts_ends_although_nobody_waits_for_it(start, monkeypatch, tmp_path):
    """C38: as when another driver of this session takes the checkpoint; Spark then waits for the thread of the query."""
    to_the_gate, late = QueryRun._to_the_gate, threading.Event()

    def comes_late(run):
        time.sleep(3)  # meanwhile the supervisor sees that the query is not active
        # Perhaps it was the interrupt that made the batch fail; then none is left to wake the thread at the gate.
        run.session.sparkContext._jvm.java.lang.Thread.interrupted()
        late.set()
        to_the_gate(run)

    builder = TopologyBuilder()
    builder.set_spout("endless", TestWordSpout(), 1)
    builder.set_bolt("end", IdentityBolt(Fields("word")), 1).shuffle_grouping("endless")
    topology = builder.create_topology("interrupted")
    monkeypatch.setattr(QueryRun, "_to_the_gate", comes_late)
    while not late.is_set():  # at first it may be stopped between two batches
        running = start(topology, checkpoint=tmp_path)
        wait_for_batches(running, 2)
        stopping = threading.Thread(target=running.query.stop, daemon=True)
        stopping.start()
        stopping.join(60)
        assert not stopping.is_alive(), "Spark still waits for the query's thread"
        assert running.wait(PATIENCE_SECS) and running.error is None
