"""Tells who has started Spark for this process, if it was somebody else.

A program that ``spark-submit`` has started, and a notebook or a job on Databricks, have a Spark already. Such a program takes the
session that is there. It never starts another one, and never stops the one that it was given: on Databricks that is everybody's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

__all__ = ["DATABRICKS", "SPARK_SUBMIT", "on_databricks", "spark_launcher"]

DATABRICKS, SPARK_SUBMIT = "Databricks", "spark-submit"


def spark_launcher(environment: Mapping[str, str] | None = None) -> str | None:
    """Return who has started this process's Spark; None if nobody has, so that this process may start one.

    >>> spark_launcher({"DATABRICKS_RUNTIME_VERSION": "19.3"}), spark_launcher({"PYSPARK_GATEWAY_PORT": "4711"})
    ('Databricks', 'spark-submit')
    >>> spark_launcher({})
    """
    given = os.environ if environment is None else environment
    if given.get("DATABRICKS_RUNTIME_VERSION"):
        return DATABRICKS
    return SPARK_SUBMIT if given.get("PYSPARK_GATEWAY_PORT") else None


def on_databricks() -> bool:
    """Whether this process runs on a cluster of Databricks."""
    return spark_launcher() == DATABRICKS
