"""The jars that let Spark read Kafka and Delta, for a session on this host.

    local_session(2, connector_conf())

Users need none of this where their registry is complete: ``spark.jars.packages`` names the two connectors and
Spark fetches what these depend on.
"""

from __future__ import annotations

import os
from pathlib import Path

from stormspark.spark.versions import release
from tests.maven_jars import maven_jars
from tests.quick_jvm import CONNECTORS, options

__all__ = ["connector_conf", "connector_jars"]


def connector_jars() -> list[Path]:
    """Spark's Kafka source and Delta, with what they need beside Spark's own jars."""
    spark = ".".join(map(str, release()))
    return maven_jars("spark-connectors", spark=spark, kafka=f"{spark}.0")


def connector_conf() -> dict[str, str]:
    """What a local session needs to use `connector_jars`: its class path, and Delta's SQL.

    ``spark.jars`` would do as well here; the class path copies nothing at start.
    """
    class_path = os.pathsep.join(map(str, connector_jars()))
    return {
        "spark.driver.extraClassPath": class_path,
        # Where tests have drivers start quickly (`tests/conftest.py`); benchmarks use this too, and measure what users have.
        "spark.driver.extraJavaOptions": options(CONNECTORS) if os.environ.get("SPARK_SUBMIT_OPTS") else "",
        "spark.executor.extraClassPath": class_path,  # executors of a local-cluster are processes of their own
        "spark.databricks.delta.snapshotPartitions": "2",  # 50 tasks where a table has been changed
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
