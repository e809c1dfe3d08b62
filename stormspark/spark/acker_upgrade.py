"""Reads open records from the checkpoint of an earlier version of stormspark, if a topology continues from such a checkpoint.

That version kept the durable acker's changes in a Delta table. A streaming query of Spark, the acker query, read this table with
Delta's jars. The query's state has the records that were open as of one version of the table. This module reads the later changes
from the table's files with delta-rs, so it needs no jars. All open records go into the first commit of the journal, so they are
read only once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from stormspark.checkpoint.state_files import Folder
from stormspark.errors import CheckpointError
from stormspark.spark.checkpoint_folder import CheckpointFolder
from stormspark.spark.java_errors import in_words

__all__ = ["Left", "left_by_earlier_version"]

_DELAY = "stormspark.acker.delay="


class Left(NamedTuple):
    """What an earlier stormspark left: the changes that open its records, the acker's time, and the watermark's delay."""

    changes: pa.Table
    at: int
    delay: float | None


def left_by_earlier_version(
    session: SparkSession, folder: CheckpointFolder, schema: pa.Schema
) -> Left | None:
    """Return the contents for the first commit of the journal; None if no earlier stormspark has kept any records.

    Raises `CheckpointError` if the records can't be read.
    """
    from stormspark.spark.durable_acker import open_records  # that module imports this one

    try:
        if not folder.has_old_acker():
            return None
        table = DeltaTable(folder.old_acker_table)
        there = pa.table(table.get_add_actions(flatten=True))
        if not there.num_rows:  # the earlier driver died before its first commit
            return None
        position = folder.last_offset(folder.old_acker_query)
        known = [] if position is None else [open_records(session, folder.old_acker_query).toArrow()]
        files = Folder(folder.old_acker_table)
        tables = [one.select(schema.names).cast(schema) for one in known]
        for path in _unread(files, position, table.version()):
            with files.read(path) as source:
                tables.append(_rows(pa.parquet.read_table(source), schema))
        newest = pa.compute.max(there["max.created"])
    except (
        PySparkException,
        Py4JError,
        DeltaError,
        OSError,
        LookupError,
        ValueError,
        pa.ArrowException,
    ) as error:
        msg = (
            f"the open rows that an earlier stormspark kept in {folder.old_acker_table} can't be read: {in_words(error)}. "
            f"Work them off with that version (--trigger available-now), or begin with a new checkpoint folder"
        )
        raise CheckpointError(msg) from error
    delay = (table.metadata().description or "").partition(_DELAY)[2]
    at = newest.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).as_py()
    return Left(pa.concat_tables([schema.empty_table(), *tables]), at, float(delay) if delay else None)


def _rows(read: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the changes in a file. Leave out the rows that only moved the watermark.

    The earlier version added such a row to each commit.
    """
    return read.select(schema.names).cast(schema).filter(pa.compute.field("root") != 0)


def _unread(files: Folder, position: dict[str, Any] | None, last: int) -> Iterator[str]:
    """Yield the table's files that the query had not read yet when it stood at ``position``; all files if it had read nothing."""
    begin, index = 0, -1
    if position is not None:
        begin, index = position["reservoirVersion"], position["index"]
        if position["isStartingVersion"] and index >= 0:
            # The query has read all files of this version, because its first batch reads up to a thousand files, and the table
            # never has more.
            begin, index = begin + 1, -1
    for version in range(begin, last + 1):
        with files.read(f"_delta_log/{version:020}.json") as source:
            actions = [json.loads(line) for line in source.read().splitlines()]
        added = [action["add"] for action in actions if "add" in action]
        for number, add in enumerate(added):
            if add["dataChange"] and (version > begin or number > index):
                yield add["path"]
