"""Reads the open trees of a topology that another process runs, from the topology's checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, functions

from stormspark.errors import CheckpointError
from stormspark.spark.checkpoint_folder import CheckpointFolder
from stormspark.spark.durable_acker import open_records
from stormspark.spark.java_errors import in_words
from stormspark.spark.session import local_session
from stormspark.spark.whereabouts import checkpoint_of

__all__ = ["read_pending"]

_NO_CONF: Mapping[str, Any] = MappingProxyType({})


def read_pending(
    topology: str, checkpoint: str | None, most: int, conf: Mapping[str, Any] = _NO_CONF
) -> tuple[int, list[tuple[str, int, int]], list[dict[str, Any]]] | None:
    """Return the number of open trees, a tuple (component, task, number of open trees) per task, and the ``most`` oldest trees.

    The topology is a name, or its checkpoint folder if there is no other ``checkpoint``.
    Only trees of sources' rows count, and only if they were open when their batch ended. The checkpoint has no other trees.
    Each of the oldest trees is a dict of root (hexadecimal), component, task, batch, opened (UTC, the acker's time) and
    message_id. The figures are as of the acker query's last batch, some seconds ago. Uses the active Spark session, or else a
    local one, with the settings of ``conf``. Returns None if the topology has recorded nothing. Raises `CheckpointError` if the
    checkpoint can't be read.
    """
    location = checkpoint or checkpoint_of(topology)
    session = SparkSession.getActiveSession() or local_session(
        2, {**conf, "spark.sql.session.timeZone": "UTC"}
    )
    folder = CheckpointFolder(session, location)
    try:
        if not folder.has_acker_state():
            return None
        records = open_records(session, folder.acker_query).drop("row", "value").cache()
        try:
            by_task = records.groupBy("component", "task").count().orderBy("component", "task").collect()
            rows = (
                records.orderBy("created", "root")
                .limit(most)
                .withColumn("hex", functions.hex("root"))
                .collect()
            )
        finally:
            records.unpersist()
    except (PySparkException, Py4JError, OSError) as error:
        msg = f"the open trees of {topology} in {location} can't be read: {in_words(error)}"
        raise CheckpointError(msg) from error
    oldest = [
        {
            "root": row["hex"].lower().rjust(16, "0"),
            "component": row["component"],
            "task": row["task"],
            "batch": row["batch"],
            "opened": row["created"],
            "message_id": row["message_id"],
        }
        for row in rows
    ]
    counts = [(row["component"], row["task"], row["count"]) for row in by_task]
    return sum(count for _, _, count in counts), counts, oldest
