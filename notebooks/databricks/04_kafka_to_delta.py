# Databricks notebook source
# MAGIC %md
# MAGIC # From Kafka to a Delta table, exactly once
# MAGIC
# MAGIC A topology adds up what each customer spends. Orders come from Kafka, totals go to a Delta table,
# MAGIC and the state of the bolt can be read with SQL while the topology runs.
# MAGIC
# MAGIC It needs compute with dedicated access mode and Databricks Runtime 19 or newer (`docs/databricks.md`).

# COMMAND ----------

# MAGIC %pip install "stormspark[delta,kafka]"

# COMMAND ----------

# MAGIC %md
# MAGIC ## Where everything is
# MAGIC
# MAGIC The checkpoint is a folder in a volume. It has the offsets, the state and what a restart needs. Each topology has its own.
# MAGIC The table is at the URL of an external location. A bolt can't write it into a volume, because delta-rs needs more than the
# MAGIC mount of a volume offers. And Unity Catalog lets only its own writers into managed tables.
# MAGIC `STORAGE` has the credentials for the table, best from a secret scope.

# COMMAND ----------

import os

KAFKA = os.environ.get("KAFKA_SERVERS", "broker.example.com:9092")
FOLDER = os.environ.get("NOTEBOOK_FOLDER", "/Volumes/main/default/flows")
CHECKPOINT = f"{FOLDER}/checkpoints/totals"
TABLE = os.environ.get("NOTEBOOK_TABLE", "s3://my-bucket/tables/totals")
STORAGE = {}  # {"AWS_ACCESS_KEY_ID": dbutils.secrets.get("flows", "id"), ...}

# COMMAND ----------

# MAGIC %md
# MAGIC ## The topology
# MAGIC
# MAGIC With `stormspark.exactly.once`, a batch is a transaction: the offsets of Kafka, the state of `Totals` and the rows of the
# MAGIC table are committed together. If a worker, an executor or the driver dies, the batch runs again.
# MAGIC No order counts twice.

# COMMAND ----------

import json

import pyarrow as pa

from stormspark import BasicBolt, Fields, StatefulBolt, TopologyBuilder
from stormspark.connectors import DeltaBolt, KafkaSpout, KafkaSpoutConfig, SimpleRecordTranslator

COLUMNS = pa.schema([("customer", pa.string()), ("cents", pa.int64())])


class Parse(BasicBolt):
    def execute(self, tup, collector):
        order = json.loads(tup["line"])
        collector.emit((order["customer"], int(order["cents"])))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("customer", "cents"))


class Totals(StatefulBolt):
    def prepare(self, conf, context, collector):
        self.collector = collector

    def init_state(self, state):
        self.totals = state

    def execute(self, tup):
        total = self.totals.get(tup["customer"], 0) + tup["cents"]
        self.totals[tup["customer"]] = total
        self.collector.emit((tup["customer"], total), anchors=[tup])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("customer", "cents"))


def build():
    lines = SimpleRecordTranslator(lambda record: (record.value,), ["line"])
    orders = KafkaSpoutConfig(KAFKA, ["orders"], group_id="totals", record_translator=lines)
    builder = TopologyBuilder()
    builder.set_spout("orders", KafkaSpout(orders))
    builder.set_bolt("parse", Parse(), 2).shuffle_grouping("orders")
    builder.set_bolt("totals", Totals(), 2).fields_grouping("parse", Fields("customer"))
    builder.set_bolt("table", DeltaBolt(TABLE, schema=COLUMNS, storage_options=STORAGE)).shuffle_grouping(
        "totals"
    )
    return builder.create_topology("totals", {"stormspark.exactly.once": True})


build()

# COMMAND ----------

# MAGIC %md
# MAGIC ## Run it
# MAGIC
# MAGIC `replace=True` lets the cell be run again: the topology of the first time is stopped before.
# MAGIC The topology goes on after the cell has ended.

# COMMAND ----------

from stormspark.spark import submit

spark = globals().get("spark")  # Databricks has set it
running = submit(build(), spark, checkpoint=CHECKPOINT, replace=True)
running.show_progress(seconds=60)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Its state, with SQL
# MAGIC
# MAGIC The DataFrame has the state as of the last committed batch. `state(CHECKPOINT, "totals", txid=12)` has that of batch 12.
# MAGIC `state(CHECKPOINT, "totals", spark=session).write.mode("overwrite").saveAsTable("main.default.totals")` makes a managed
# MAGIC table of it.

# COMMAND ----------

from pyspark.sql import SparkSession

from stormspark import state

session = SparkSession.getActiveSession()
state(CHECKPOINT, "totals", spark=session).createOrReplaceTempView("totals_now")
session.sql(
    "SELECT key AS customer, value / 100 AS spent FROM totals_now ORDER BY spent DESC LIMIT 10"
).show()

# COMMAND ----------

# MAGIC %md
# MAGIC ## Stop, and start again
# MAGIC
# MAGIC The new topology goes on behind the last committed batch. The totals stay, and no order is counted again.

# COMMAND ----------

running.stop()
before = running.statistics()
running = submit(build(), spark, checkpoint=CHECKPOINT)
running.show_progress(seconds=30)

# COMMAND ----------

running.stop()
running
