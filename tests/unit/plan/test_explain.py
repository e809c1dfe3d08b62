"""The plan as people see it: snapshots."""

import time

from stormspark import (
    AsyncBolt,
    BasicBolt,
    BasicOutputCollector,
    Fields,
    OutputFieldsDeclarer,
    TopologyBuilder,
    Tuple,
)
from stormspark.connectors import DataFrameSpout
from stormspark.plan import explain_mermaid, explain_text, plan_topology
from stormspark.plan.explain import superstep_names
from stormspark.testing import TestGlobalCount, TestWordCounter, TestWordSpout

TEXT = """\
topology demo: 3 components, 6 tasks, 2 workers, 2 exchanges and one more for the acks

components
  spout words: 1 task, ids 8
        emits default(word)
  bolt  count: 4 tasks in 2 executors, ids 3-6
        emits default(word, count)
  bolt  total: 1 task, ids 7
        emits default(global-count)

edges
  words -> count: fields(word), crosses workers
  count -> total: global, crosses workers

workers (topology.workers is 2)
  worker 0: count[0]=3, count[1]=4, total[0]=7
  worker 1: count[2]=5, count[3]=6, words[0]=8

memory beside Spark's JVM
  a worker: 284 MB (Python 120, tuples that wait 100, kept replies 64)
  a Spark executor with 1 worker: spark.executor.memoryOverhead=850m

a batch
  superstep 0: spouts emit; tuples travel on inside their worker
  repartitionById(2, worker) -> superstep 1
  repartitionById(2, worker) -> superstep 2
  repartitionById(2, worker) -> superstep 3 (acks come home, the reports go to the driver)"""

MERMAID = """\
flowchart LR
    c0(["words<br/>1 task"])
    c1["count<br/>4 tasks"]
    c2["total<br/>1 task"]
    c0 ==>|"fields(word)"| c1
    c1 ==>|"global"| c2"""


def test_text_and_mermaid() -> None:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    builder.set_bolt("count", TestWordCounter(), 2).set_num_tasks(4).fields_grouping("words", Fields("word"))
    builder.set_bolt("total", TestGlobalCount()).global_grouping("count")
    plan = plan_topology(builder.create_topology("demo"), {"topology.workers": 2})
    assert explain_text(plan) == TEXT
    assert explain_mermaid(plan) == MERMAID
    assert superstep_names(plan) == ["words", "count", "total", "acks"]


def test_supersteps_are_named_after_their_components() -> None:
    """Arrows are subscriptions; the last superstep of a source spout's topology has its acks."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    builder.set_bolt("count", TestWordCounter(), 2).fields_grouping("words", Fields("word"))
    builder.set_bolt("total", TestGlobalCount()).global_grouping("count")
    builder.set_bolt("again", TestGlobalCount()).global_grouping("count")
    topology = builder.create_topology("demo")
    assert superstep_names(plan_topology(topology, {"topology.workers": 1})) == [
        "words -> count -> total, again"
    ]
    builder = TopologyBuilder()
    rows = DataFrameSpout(lambda spark: spark.readStream.text("/data"), ["word"])
    builder.set_spout("rows", rows)
    builder.set_bolt("count", TestWordCounter(), 2).fields_grouping("rows", Fields("word"))
    topology = builder.create_topology("demo")
    assert superstep_names(plan_topology(topology, {"topology.workers": 1})) == ["rows -> count", "acks"]


def test_a_spout_that_spark_reads_for_is_shown_as_such() -> None:
    """Its rows come in superstep 0, and the report waits for all of them: one exchange, also with one worker."""
    builder = TopologyBuilder()
    builder.set_spout("lines", DataFrameSpout(lambda spark: None, ["line"]))
    plan = plan_topology(builder.create_topology("t"))
    text = explain_text(plan)
    assert "1 worker, one exchange, for the report" in text
    assert "spout lines: 1 task, ids 2, read by Spark" in text
    assert "superstep 0: rows of Spark's sources arrive, spouts emit" in text
    assert plan.last_superstep == 1


class Asks(BasicBolt):
    """Waits for an answer."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Ask."""
        time.sleep(0.01)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare no stream."""


def test_a_component_with_threads_is_shown_with_the_reason() -> None:
    """A16, X93: so a user sees which executors wait beside the others, and who computes on the worker's thread."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    builder.set_bolt("ask", Asks(), 2).shuffle_grouping("words")
    topology = builder.create_topology("t")
    text = explain_text(plan_topology(topology))
    assert "  bolt  ask: 2 tasks, ids 2-3\n        threads: execute uses time.sleep (test_explain.py:" in text
    assert text.count("threads:") == 1
    always = explain_text(plan_topology(topology, {"stormspark.executor.threads": "always"}))
    assert always.count("        threads: stormspark.executor.threads is 'always'") == 2
    assert "threads:" not in explain_text(plan_topology(topology, {"stormspark.executor.threads": "never"}))


class Price(AsyncBolt):
    capacity = 1000

    async def execute(self, tup: Tuple) -> None:
        pass


def test_an_async_bolt_is_shown_with_the_calls_that_may_be_under_way_at_once() -> None:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    builder.set_bolt("price", Price()).shuffle_grouping("words")
    builder.set_bolt("prices", Price(), 2).shuffle_grouping("words")
    plan = plan_topology(builder.create_topology("demo"))
    lines = explain_text(plan).splitlines()
    assert [line.strip() for line in lines if "async" in line] == [
        "async: up to 1000 calls at once",
        "async: up to 1000 calls at once in each task, 2000 in all",
    ]
    assert [one.calls_at_once for one in plan.components.values()] == [0, 1000, 2000]
