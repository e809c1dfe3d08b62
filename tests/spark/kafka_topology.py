"""Runs a topology over a Kafka topic until so many rows are acked. Arguments: bootstrap servers, topic, rows, folder.

A process of its own, because the connectors' jars have to be on the class path when the JVM starts.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from stormspark import Fields, TopologyBuilder
from stormspark.api import SourceSpout
from stormspark.spark import local_session, submit
from tests.conformance.components import EFFECTS, Record
from tests.spark_jars import connector_conf
from tests.waiting import wait_for_acks


class Messages(SourceSpout):
    """Numbers in a topic, read by Spark's own Kafka source."""

    id_columns = ("partition", "offset")
    partition_column = "partition"

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(["n", "partition", "offset"])
        self.options = {
            "kafka.bootstrap.servers": bootstrap,
            "subscribe": topic,
            "startingOffsets": "earliest",
        }

    def stream(self, spark: Any) -> Any:
        rows = spark.readStream.format("kafka").options(**self.options).load()
        return rows.selectExpr("CAST(CAST(value AS STRING) AS LONG) AS n", "partition", "offset")


def main(bootstrap: str, topic: str, rows: str, folder: str) -> None:
    builder = TopologyBuilder()
    builder.set_spout("messages", Messages(bootstrap, topic), parallelism=2)
    builder.set_bolt("record", Record(), 2).fields_grouping("messages", Fields("n"))
    spark = local_session(3, {**connector_conf(), "stormspark.log.dir": folder})
    conf = {"topology.workers": 2, EFFECTS: folder}
    running = submit(
        builder.create_topology("kafka"), spark, conf=conf, checkpoint=Path(folder) / "checkpoint"
    )
    wait_for_acks(running, "messages", int(rows))
    running.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
