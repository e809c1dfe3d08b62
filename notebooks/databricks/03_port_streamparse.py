# Databricks notebook source
# MAGIC %md
# MAGIC # Port a streamparse topology, step by step
# MAGIC
# MAGIC A project for streamparse runs as it is. This notebook takes a small one through four steps:
# MAGIC run it unchanged, look at what it needs, keep its topology and replace one bolt, and write the topology anew.
# MAGIC
# MAGIC The first steps need no Spark, so they run on any compute.
# MAGIC The last cell runs on Spark, and needs compute with dedicated access mode (`docs/databricks.md`).

# COMMAND ----------

# MAGIC %pip install "stormspark[delta,port]"

# COMMAND ----------

# MAGIC %md
# MAGIC ## The project
# MAGIC
# MAGIC Yours is in a Git folder, or in a volume. This one is written by a cell, so that the notebook needs nothing else.
# MAGIC It is on the local disk, because Python on an executor can't see a workspace folder of yours.

# COMMAND ----------

import tempfile
from pathlib import Path

project = Path(tempfile.mkdtemp(), "requests")
FILES = {
    "config.json": '{"envs": {"prod": {"options": {"topology.message.timeout.secs": 60}}}}',
    "src/spouts.py": """
from streamparse import ReliableSpout

REQUESTS = ["GET /tea 200 31", "GET /coffee 200 48", "GET /tea 200 29", "GET /unicorn 404 7"]


class Requests(ReliableSpout):
    outputs = ["line"]

    def initialize(self, stormconf, context):
        self.todo = iter(enumerate(REQUESTS))

    def next_tuple(self):
        number, line = next(self.todo, (None, None))
        if line is not None:
            self.emit([line], tup_id=number)
""",
    "src/bolts.py": """
from collections import Counter

from streamparse import Bolt


class Parse(Bolt):
    outputs = ["path", "ms"]

    def process(self, tup):
        _method, path, _status, ms = tup.values.line.split()
        self.emit([path, int(ms)])


class Count(Bolt):
    outputs = ["path", "requests"]

    def initialize(self, conf, context):
        self.requests = Counter()

    def process(self, tup):
        self.requests[tup.values.path] += 1
        self.logger.info("%s: %d", tup.values.path, self.requests[tup.values.path])
        self.emit([tup.values.path, self.requests[tup.values.path]])
""",
    "topologies/requests.py": """
from bolts import Count, Parse
from spouts import Requests
from streamparse import Grouping, Topology


class RequestCounts(Topology):
    requests = Requests.spec()
    parse = Parse.spec(inputs=[requests], par=2)
    count = Count.spec(inputs={parse: Grouping.fields("path")}, par=2)
""",
}
for name, text in FILES.items():
    file = project / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Step 1: run it unchanged
# MAGIC
# MAGIC `load` reads the project as `sparse` does: `config.json`, `src` and the topology.
# MAGIC The local engine runs it in this process.

# COMMAND ----------

from stormspark.compat.streamparse import load

topology = load(project / "topologies" / "requests.py")
topology

# COMMAND ----------

from stormspark.local import submit as submit_here

with submit_here(topology) as running:
    running.run_until_idle()
running.statistics().to_pandas()[["component", "tasks", "emitted", "executed", "acked", "failed"]]

# COMMAND ----------

assert running.statistics().components["requests"].acked == 4

# COMMAND ----------

# MAGIC %md
# MAGIC ## Step 2: what does a project need?
# MAGIC
# MAGIC `stormspark port` reads a project without running it.
# MAGIC It lists the topologies, the modules that they need, and what would not work.

# COMMAND ----------

import subprocess
import sys

report = subprocess.run(
    [sys.executable, "-m", "stormspark", "port", str(project)], capture_output=True, text=True, check=False
)
print(report.stdout, report.stderr)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Step 3: replace one bolt
# MAGIC
# MAGIC A component of stormspark can stand in a topology of streamparse.
# MAGIC The new bolt has *state*: its counts outlive the worker, and each request counts once.

# COMMAND ----------

from stormspark import Fields, StatefulBolt, TopologyBuilder


class CountOnce(StatefulBolt):
    def prepare(self, conf, context, collector):
        self.collector = collector

    def init_state(self, state):
        self.requests = state

    def execute(self, tup):
        number = self.requests.get(tup["path"], 0) + 1
        self.requests[tup["path"]] = number
        self.collector.emit((tup["path"], number), anchors=[tup])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("path", "requests"))


# COMMAND ----------

# MAGIC %md
# MAGIC ## Step 4: write the topology anew
# MAGIC
# MAGIC The spout and the parser become classes of stormspark, and the builder replaces the class `RequestCounts`.
# MAGIC `declare_output_fields` takes the place of `outputs`, and `set_bolt(...).fields_grouping` that of `inputs`.

# COMMAND ----------

from stormspark import BasicBolt, Spout

REQUESTS = ["GET /tea 200 31", "GET /coffee 200 48", "GET /tea 200 29", "GET /unicorn 404 7"]


class Requests(Spout):
    def open(self, conf, context, collector):
        self.collector, self.todo = collector, dict(enumerate(REQUESTS))

    def next_tuple(self):
        for number, line in self.todo.items():
            self.collector.emit((line,), message_id=number)
            del self.todo[number]
            return

    def fail(self, message_id):
        self.todo[message_id] = REQUESTS[message_id]

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("line"))


class Parse(BasicBolt):
    def execute(self, tup, collector):
        _method, path, _status, ms = tup["line"].split()
        collector.emit((path, int(ms)))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("path", "ms"))


def build():
    builder = TopologyBuilder()
    builder.set_spout("requests", Requests())
    builder.set_bolt("parse", Parse(), 2).shuffle_grouping("requests")
    builder.set_bolt("count", CountOnce(), 2).fields_grouping("parse", Fields("path"))
    return builder.create_topology("request-counts")


build()

# COMMAND ----------

with submit_here(build()) as running:
    running.run_until_idle()
assert running.statistics().components["count"].executed == 4
running

# COMMAND ----------

# MAGIC %md
# MAGIC ## On Spark
# MAGIC
# MAGIC The same call, with the session that the compute has. Outside of Databricks, `submit` starts Spark here.

# COMMAND ----------

from stormspark.spark import submit

with submit(build(), globals().get("spark"), replace=True) as running:
    running.show_progress(until_idle=3)
assert running.statistics().components["requests"].acked == 4
