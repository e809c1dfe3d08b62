"""Topologies in notebooks of an imitated Databricks: Spark belongs to nobody, and Python processes come and go beside it."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from tests.databricks_compute import Compute
from tests.refusing_folder import build
from tests.waiting import wait_for

# `tests/unit/spark/test_left_queries.py` shows in short what is stopped.
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

BEGIN = """
from stormspark import Bolt, TopologyBuilder
from stormspark.api import ExponentialBackoff
from stormspark.connectors import DataFrameSpout
from stormspark.spark import submit
from tests.spark.endless import numbers

class Hold(Bolt):
    def prepare(self, conf, context, collector):
        pass
    def execute(self, tup):
        pass
    def declare_output_fields(self, declarer):
        pass

def holds(folder):
    builder = TopologyBuilder()
    spout = DataFrameSpout(lambda spark: spark.readStream.text(folder), ["value"], retry=ExponentialBackoff())
    builder.set_spout("rows", spout)
    builder.set_bolt("hold", Hold()).shuffle_grouping("rows")
    return builder.create_topology("holds", {"topology.workers": 1})

def after(running, batches=1):
    while running.statistics().batches < batches and not running.wait(0.1):
        pass
    return running

def queries():
    active = spark._jsparkSession.sharedState().activeStreamingQueries()
    return sorted(active[key].name() for key in list(active))
"""


@pytest.fixture(scope="module")
def compute() -> Iterator[Compute]:
    compute = Compute()
    yield compute
    compute.end()


def workers(topology: str) -> int:
    """How many workers of a topology there are on this host."""
    found = 0
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        found += "stormspark.worker" in line and topology in line
    return found


def test_python_starts_again_beside_the_same_spark(compute):
    """One query waits for its trigger. Spark would later call a function of the new process in its place."""
    rows, checkpoint = compute.folder / "rows", str(compute.folder / "holds")
    rows.mkdir()
    (rows / "a.txt").write_text("one\ntwo\n")
    holds = f"running = submit(holds({str(rows)!r}), checkpoint={checkpoint!r})\n"
    with compute.notebook() as notebook:
        notebook.run(BEGIN)
        hour = {"stormspark.trigger.interval.ms": 3_600_000}
        notebook.run(f"waits = after(submit(numbers('waits'), conf={hour}))")
        said = notebook.run(
            f"{holds}while 'holds: acker' not in queries() and not running.wait(0.1):\n    pass\nprint(queries())"
        )
        assert said == "['holds', 'holds: acker', 'waits']\n", said + notebook.log()
        notebook.restart_python()
        assert notebook.run(BEGIN) == ""
        assert "'waits'" in notebook.run("print(queries())"), "Spark keeps it"
        said = notebook.run(
            "with submit(numbers('other')) as running:\n    after(running)\n    print(queries())"
        )
        assert said == "['other']\n", said + notebook.log()
        assert "left a query in Spark, which this start stops: waits" in notebook.log()
        wait_for(
            lambda: workers("holds") + workers("waits") == 0, message="the first process's workers to end"
        )
        said = notebook.run(f"{holds}after(running, 2)\nprint(running.error, running.generation)")
        assert said == "None 1\n", said + notebook.log()
        assert workers("holds") == 1
        assert notebook.run("running.stop(); print(spark.range(3).count(), queries())") == "3 []\n"


def test_cells_that_are_run_twice_and_cancelled(compute):
    with compute.notebook() as notebook:
        notebook.run(BEGIN)
        cell = "running = after(submit(numbers('cells'), replace=True)); print(running.error, queries())"
        assert notebook.run(cell) == notebook.run(cell) == "None ['cells']\n", notebook.log()
        assert workers("cells") == 1

        notebook.begin("print('waits')\nrunning.wait()")
        notebook.read("waits")
        assert "KeyboardInterrupt" in notebook.cancel()
        said = notebook.run("after(running, running.statistics().batches + 2); print(running.wait(0))")
        assert said == "False\n", "a cancelled cell leaves the topology as it is"

        said = notebook.run("running.show_progress(seconds=1)")
        assert "displayed: " in said and "<svg" in said
        assert notebook.run("print('<svg' in running._repr_html_())") == "True\n"

        notebook.begin("with running:\n    print('in the block')\n    running.wait()")
        notebook.read("in the block")
        assert "KeyboardInterrupt" in notebook.cancel()
        said = notebook.run("print(running.wait(0), running.error, spark.range(3).count(), queries())")
        assert said == "True None 3 []\n", said + notebook.log()


def test_a_checkpoint_in_a_folder_that_refuses_renames(compute, tmp_path):
    library = build(tmp_path)
    if library is None:
        pytest.skip("needs Linux and a C compiler")
    folder = tmp_path / "mounted"
    folder.mkdir()
    refusing = {"LD_PRELOAD": str(library), "REFUSING_FOLDER": str(folder), "REFUSES": "rename,replace"}
    with compute.notebook(**refusing) as notebook:
        notebook.run(BEGIN)
        said = notebook.run(f"submit(numbers('refused'), checkpoint={str(folder / 'flow')!r})")
        assert "Its file system does not replace files" in said
        assert notebook.run("print(queries(), spark.range(3).count())") == "[] 3\n"
