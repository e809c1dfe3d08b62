"""What the user's Spark session sees of a topology, and what the topology sees of the session."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from stormspark import Bolt, Fields, Topology, TopologyBuilder, Tuple
from stormspark.connectors import DataFrameSpout
from stormspark.driver.batch_counts import BatchCounts
from stormspark.metrics import TopologyStatistics
from stormspark.spark import SparkTopology, submit
from tests.conformance.components import Record
from tests.spark.test_sources import recorded, settings, write_numbers
from tests.spark.topologies import Count, Sentences, Split
from tests.waiting import wait_for, wait_for_acks, wait_until_idle, worker_processes

pytestmark = pytest.mark.spark


class Listener(StreamingQueryListener):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.started: list[tuple[str, str]] = []
        self.ended: dict[str, str | None] = {}
        #: By run and batch: the counts.
        self.counts: dict[tuple[str, int], Mapping[str, Any]] = {}

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        self.started.append((event.name, str(event.runId)))

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        progress = event.progress
        self.counts[str(progress.runId), progress.batchId] = progress.observedMetrics["stormspark"].asDict()

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        self.ended[str(event.runId)] = event.exception

    def total(self, name: str) -> int:
        return sum(counts[name] for counts in self.counts.values())

    def wait_for_the_end(self) -> None:
        """Events come in order, so no progress comes after the ends."""
        wait_for(lambda: self.started and all(run in self.ended for _, run in self.started))


class FailsOnce(Bolt):
    """Fails some messages when they come for the first time."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.failed = collector, set[str]()

    def execute(self, tup: Tuple) -> None:
        text = tup["sentence"]
        if text.endswith("7") and text not in self.failed:
            self.failed.add(text)
            self.collector.fail(tup)
        else:
            self.collector.ack(tup)


@pytest.fixture
def user(spark: SparkSession) -> SparkSession:
    """A session of a user's own, with queries, listeners and views of its own."""
    return spark.newSession()


@pytest.fixture
def begin(user: SparkSession) -> Iterator[Callable[..., SparkTopology]]:
    """`submit` in that session; what a test leaves running is killed."""
    started: list[SparkTopology] = []

    def submit_here(topology: Topology, **options: Any) -> SparkTopology:
        started.append(submit(topology, user, **options))
        return started[-1]

    yield submit_here
    for running in started:
        if not running.wait(0):
            running.kill()


def confs(session: SparkSession) -> dict[str, str]:
    return dict(session.conf.getAll)


def names(session: SparkSession) -> list[str | None]:
    return sorted((query.name for query in session.streams.active), key=str)


def same_totals(listener: Listener, statistics: TopologyStatistics) -> None:
    """The numbers of all batches, added up, are those of the topology."""
    assert {
        name: listener.total(name) for name in ("emitted", "transferred", "executed", "acked", "failed")
    } == {
        "emitted": statistics.total("emitted"),
        "transferred": statistics.total("transferred"),
        "executed": statistics.total("executed", "bolt"),
        "acked": statistics.total("acked", "spout"),
        "failed": statistics.total("failed", "spout"),
    }
    measured = [c for c in listener.counts.values() if c["complete_latency_ms"] is not None]
    acked = sum(c["acked"] for c in measured)
    mean = sum(c["complete_latency_ms"] * c["acked"] for c in measured) / acked
    spouts = [c.histogram for c in statistics.components.values() if c.kind == "spout"]
    expected = 1000 * sum(one.seconds for one in spouts) / sum(one.count for one in spouts)
    assert mean == pytest.approx(expected, rel=0.01)


def numbers_and_sentences(folder: Path, name: str) -> Topology:
    """Rows of files that are joined with the view ``wanted`` and passed to the function ``shout``, and messages that fail."""
    path = (folder / "in").as_uri()

    def stream(spark: Any) -> Any:
        rows = spark.readStream.schema("n long, text string").json(path)
        return rows.join(spark.table("wanted"), "n").selectExpr("n", "shout(text) AS text")

    builder = TopologyBuilder()
    builder.set_spout("numbers", DataFrameSpout(stream, ["n", "text"])).set_max_spout_pending(20)
    builder.set_bolt("record", Record(), 2).fields_grouping("numbers", Fields("n"))
    builder.set_spout("sentences", Sentences(100), 2)
    builder.set_bolt("fails", FailsOnce(), 2).shuffle_grouping("sentences")
    return builder.create_topology(name)


def prepare(user: SparkSession, folder: Path) -> None:
    write_numbers(folder / "in", "0.json", range(200))
    user.range(0, 200, 2).withColumnRenamed("id", "n").createOrReplaceTempView("wanted")
    user.udf.register("shout", lambda text: text.upper(), "string")


def test_the_users_session_sees_the_query_and_the_query_sees_the_session(
    user: SparkSession, begin: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    """Views, functions, listeners from before and after `submit`, the query and its name; the session's settings stay."""
    prepare(user, tmp_path)
    user.conf.set("spark.sql.shuffle.partitions", 7)
    before = confs(user)
    early, late = Listener(), Listener()
    user.streams.addListener(early)
    try:
        running = begin(numbers_and_sentences(tmp_path, "seen"), conf=settings(tmp_path / "out"))
        user.streams.addListener(late)
        wait_for_acks(running, "numbers", 100)
        wait_for_acks(running, "sentences", 100)
        assert names(user) == ["seen"] and confs(user) == before
        query = user.streams.active[0]
        assert user.streams.get(query.id) is not None
        assert not user.streams.awaitAnyTermination(1)
        wait_until_idle(running)
        assert running.query is not None
        plan = running.query._jsq.explainInternal(False)
        assert "MapInArrow numbers(" in plan and "MapInArrow record, fails(" in plan, plan
        descriptions = jobs_of(user, "seen")
        assert any("superstep 0: numbers, sentences" in text for text in descriptions)
        assert any(", round " in text for text in descriptions)
        running.stop()
        assert running.error is None and user.streams.active == [] and confs(user) == before
        user.streams.awaitAnyTermination()
        early.wait_for_the_end()
        wait_for(lambda: late.ended)
    finally:
        user.streams.removeListener(early)
        user.streams.removeListener(late)
    assert {name for name, _ in early.started} == {"seen"} and set(early.ended.values()) == {None}
    statistics = running.statistics()
    assert recorded(tmp_path / "out") == Counter(range(0, 200, 2))
    assert statistics.total("failed", "spout") > 0
    same_totals(early, statistics)
    columns = {field.name for field in fields(BatchCounts)}
    assert all(set(counts) == columns for counts in early.counts.values())


def jobs_of(session: SparkSession, topology: str) -> list[str]:
    """The descriptions of the topology's jobs, from the store that Spark's UI shows."""
    jobs = session.sparkContext._jsc.sc().statusStore().jobsList(None)
    texts = [jobs.apply(number).description() for number in range(jobs.size())]
    return [text.get() for text in texts if text.isDefined() and text.get().startswith(f"{topology}: ")]


def count_words(name: str, total: int = 50) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences(total), 2)
    builder.set_bolt("split", Split(), 2).shuffle_grouping("sentences")
    builder.set_bolt("count", Count(), 2).fields_grouping("split", Fields("word"))
    return builder.create_topology(name)


def test_whoever_stops_the_query_stops_the_topology(
    user: SparkSession, begin: Callable[..., SparkTopology], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its workers close, and it goes on from its checkpoint when it is submitted again."""
    write_numbers(tmp_path / "in", "0.json", range(100))
    path = (tmp_path / "in").as_uri()
    builder = TopologyBuilder()
    stream = DataFrameSpout(lambda s: s.readStream.schema("n long, text string").json(path), ["n", "text"])
    builder.set_spout("numbers", stream)
    builder.set_bolt("record", Record(), 2).fields_grouping("numbers", Fields("n"))
    topology = builder.create_topology("stopped")
    options = {"conf": settings(tmp_path / "out"), "checkpoint": tmp_path / "checkpoint"}
    running = begin(topology, **options)
    wait_for_acks(running, "numbers", 100)
    user.streams.active[0].stop()
    assert running.wait(60) and running.error is None
    assert user.streams.active == [] and worker_processes("stopped") == {}
    assert "its query was stopped in the Spark session" in caplog.text
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
    write_numbers(tmp_path / "in", "1.json", range(100, 150))
    again = begin(topology, **options)
    wait_for(lambda: set(recorded(tmp_path / "out")) == set(range(150)))
    wait_until_idle(again)
    again.stop()
    assert again.error is None


@pytest.mark.long
def test_two_topologies_in_one_session_and_a_lost_worker(
    user: SparkSession, begin: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    """A new attempt has the old one's name; `awaitAnyTermination` waits for the end of a topology, and not of an attempt."""
    listener = Listener()
    user.streams.addListener(listener)
    mine = user.readStream.format("rate").load().writeStream.format("noop").queryName("one").start()
    try:
        one, two = (
            begin(count_words(name), conf={"topology.workers": 2, "test.folder": str(tmp_path)})
            for name in ("one", "two")
        )
        wait_for_acks(one, "sentences", 50)
        wait_for_acks(two, "sentences", 50)
        assert names(user) == ["one", "one (generation 0)", "two"]
        killed = worker_processes("two")[1]
        killed.kill()
        wait_for(lambda: worker_processes("two").get(1) not in (None, killed))
        wait_until_idle(two)
        assert names(user) == ["one", "one (generation 0)", "two"]
        assert not user.streams.awaitAnyTermination(1)
        two.stop()
        assert user.streams.awaitAnyTermination(60) and names(user) == ["one", "one (generation 0)"]
        mine.stop()
        one.stop()
        listener.wait_for_the_end()
    finally:
        user.streams.removeListener(listener)
    runs = Counter(name for name, _ in listener.started)
    assert runs["two"] == 2 and set(listener.ended.values()) == {None}


@pytest.mark.long
def test_a_topology_that_fails_ends_the_wait_of_its_session_with_its_error(
    user: SparkSession, begin: Callable[..., SparkTopology]
) -> None:
    """As the end of any other query does that has failed."""
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences(5))
    builder.set_bolt("broken", Broken()).shuffle_grouping("sentences")
    running = begin(
        builder.create_topology("failing"), conf={"topology.workers": 1, "stormspark.max.attempts": 1}
    )
    with pytest.raises(Exception, match="prepare"):
        user.streams.awaitAnyTermination()
    assert running.wait(60) and running.error is not None


class Broken(Bolt):
    """Can't be prepared."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        raise ValueError("broken")

    def execute(self, tup: Tuple) -> None:
        pass


@pytest.mark.long
def test_available_now(user: SparkSession, begin: Callable[..., SparkTopology], tmp_path: Path) -> None:
    """The totals are exact, and a second run with the same checkpoint has only what is new."""
    prepare(user, tmp_path)
    for part in range(2):
        listener = Listener()
        user.streams.addListener(listener)
        try:
            running = begin(
                numbers_and_sentences(tmp_path, "finite"),
                conf=settings(tmp_path / "out"),
                checkpoint=tmp_path / "checkpoint",
                trigger="available-now",
            )
            assert running.wait(300), "the topology does not end"
            listener.wait_for_the_end()
        finally:
            user.streams.removeListener(listener)
        assert running.error is None
        assert running.statistics().components["numbers"].acked == (100, 50)[part]
        same_totals(listener, running.statistics())
        write_numbers(tmp_path / "in", "1.json", range(100))


UI = """
import re, sys, urllib.request
from stormspark.spark import local_session, submit
from tests.spark.test_what_spark_shows import count_words
from tests.waiting import wait_for_acks
spark = local_session(2, {"spark.ui.enabled": "true", "spark.ui.port": "0", "stormspark.log.dir": sys.argv[1]})
running = submit(count_words("shown"), spark, conf={"topology.workers": 2, "test.folder": sys.argv[1]})
wait_for_acks(running, "sentences", 50)
for page in ("jobs/", "StreamingQuery/"):
    print(urllib.request.urlopen(f"{spark.sparkContext.uiWebUrl}/{page}").read().decode())
running.stop()
spark.stop()
"""


@pytest.mark.long
def test_sparks_ui_shows_the_topology(tmp_path: Path) -> None:
    """Where the user has it on."""
    done = subprocess.run(
        [sys.executable, "-c", UI, str(tmp_path)], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"shown: batch \d+<br\s*/>superstep 0: sentences", done.stdout)
    assert "superstep 1: split" in done.stdout and ">shown<" in re.sub(r"\s+", "", done.stdout)
