"""Reads the state of a topology's components as DataFrames, now and as of earlier batches (C35, C36)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from stormspark.launcher import in_databricks, is_checkpoint, on_databricks

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["state", "state_table_of"]


@overload
def state(
    topology: str | Path,
    component: str,
    txid: int | None = None,
    spark: None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> pd.DataFrame: ...


@overload
def state(
    topology: str | Path,
    component: str,
    txid: int | None = None,
    spark: Any = None,  # a SparkSession, and the result is pyspark's DataFrame
    *,
    storage_options: Mapping[str, str] | None = None,
) -> Any: ...


def state(
    topology: str | Path,
    component: str,
    txid: int | None = None,
    spark: Any = None,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> Any:
    """Return the state of a bolt or spout as a DataFrame with the columns ``task``, ``key`` and ``value``.

    ``topology`` is a checkpoint folder, or the name of a topology. A name stands for the last topology of that name that this
    user has started on this host. ``txid`` is a batch; the default is the last committed batch.
    ``stormspark.state.retain.txids`` and ``stormspark.state.retain.hours`` say how many earlier batches can be read. ``task`` is
    the task's index among the tasks of its component. With ``topology.state.pickle``, each pickled attribute is a row.

    Without ``spark`` the result is a pandas DataFrame, and the whole state passes through this process. In this frame, keys and
    values that are plain data are Python objects. All others are bytes, as in the table.

    With a Spark session as ``spark``, the result is a Spark DataFrame. Spark reads the state of each task in a Spark task of its
    own. The columns ``key`` and ``value`` have the common type of all their entries, such as strings, numbers or structs. If the
    entries of a column have no common type, or are not plain data, the column has the table's bytes, encoded or pickled.

    ``storage_options`` are options of delta-rs for tables that are not on a local disk. If only Spark can read the table, pass a
    session.

    The topology may run meanwhile. Raises `CheckpointError` if there is no such state, and `TopologyNotAliveError` for an unknown
    name.

    >>> import tempfile
    >>> state(tempfile.mkdtemp(), "count")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    stormspark.errors.CheckpointError: there is no state table at ...
    """
    from stormspark.checkpoint.plain_state import Entry, find_state, state_in

    location = state_table_of(topology)
    if spark is not None:
        from stormspark.spark.spark_state_table import SparkStateTable, is_for_spark
        from stormspark.spark.state_frame import state_frame

        if is_for_spark(None, location):
            found = state_in(SparkStateTable(spark, location), component, txid)
        else:
            found = find_state(location, component, txid, storage_options)
        return state_frame(spark, found)
    import pandas as pd

    found = find_state(location, component, txid, storage_options)
    columns: dict[str, list[Any]] = {name: [] for name in Entry._fields}
    for entries in found.batches():
        for name, column in zip(columns.values(), zip(*entries, strict=True), strict=True):
            name.extend(column)
    # Each value is one cell, even if it is a list or a dict.
    series = {
        name: pd.Series(pd.array(column, dtype="int32"))
        if name == "task"
        else pd.Series(_objects(column)).infer_objects()
        for name, column in columns.items()
    }
    frame = pd.DataFrame(series)
    frame.attrs.update(component=component, txid=found.txid, tasks=found.tasks)
    return frame


def _objects(values: list[Any]) -> Any:
    import numpy as np

    array = np.empty(len(values), dtype=object)
    for position, value in enumerate(values):
        array[position] = value
    return array


def state_table_of(topology: str | Path) -> str:
    """Return where the state table is, for a checkpoint folder or the name of a topology. Raises `TopologyNotAliveError`."""
    location = str(topology)
    if not is_checkpoint(location):
        from stormspark.spark.whereabouts import Whereabouts

        location = Whereabouts.read(location).checkpoint
    if on_databricks():
        location = in_databricks(location)
    if location.startswith("file:"):
        from urllib.parse import unquote, urlsplit

        location = unquote(urlsplit(location).path)
    return f"{location.rstrip('/')}/stormspark/state"
