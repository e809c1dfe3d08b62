"""Reads the dead letters of a topology whose checkpoint only Spark can reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from stormspark.checkpoint.dead_letters import LetterTable
from stormspark.errors import CheckpointError
from stormspark.spark.checkpoint_folder import CheckpointFolder
from stormspark.spark.java_errors import in_words
from stormspark.spark.session import local_session

__all__ = ["letters_at_url"]


def letters_at_url(url: str, conf: Mapping[str, Any]) -> tuple[LetterTable, int]:
    """Return the dead letters in the checkpoint folder at ``url``, and the last batch that Spark has committed.

    Uses the active Spark session, or else a local one with the settings of ``conf``. Raises `CheckpointError` if the folder can't
    be read.
    """
    session = SparkSession.getActiveSession() or local_session(
        1, {**conf, "spark.sql.session.timeZone": "UTC"}
    )
    try:
        folder = CheckpointFolder(session, url)
        return folder.dead_letters(), folder.last_committed_batch()
    except (PySparkException, Py4JError, OSError) as error:
        msg = f"the checkpoint folder {url} can't be read: {in_words(error)}"
        raise CheckpointError(msg) from error
