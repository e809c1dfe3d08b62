"""The state of a topology's components as DataFrames, now and as of earlier batches (C35, C36)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

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
    """The state of a bolt or spout as a DataFrame with the columns ``task``, ``key`` and ``value``.

    ``topology`` is its checkpoint folder, or the name of the last topology of that name that this user started on this host.
    ``txid`` is a batch, by default the last one that was committed; so many before it can be read as
    ``stormspark.state.retain.txids`` and ``stormspark.state.retain.hours`` say. ``task`` is the task's index among those of its
    component. Of pickled attributes (``topology.state.pickle``) each is a row.

    Without ``spark`` it is a pandas DataFrame: keys and values are Python's where they are plain data, else the pickled bytes.
    The whole state goes through this process. With a session it is Spark's DataFrame, which reads each task's state in a Spark
    task of its own. Its columns ``key`` and ``value`` have the type that all entries have there, texts or numbers or structs for
    instance; where they differ, or are no plain data, the column has them as the table does, encoded and pickled.
    ``storage_options`` are delta-rs's, for tables that are not on a local disk; where only Spark reads one, give a session.

    The topology may run meanwhile. Raises `CheckpointError` where there is no such state, and `TopologyNotAliveError` for a name
    that nobody knows.

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
    # One cell a value, also where it is a list or a dict.
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
    """Where the state table is: below a checkpoint folder, or by the name of a topology; raises `TopologyNotAliveError`."""
    location = str(topology)
    if "/" not in location and not Path(location, "stormspark").is_dir():
        from stormspark.spark.whereabouts import Whereabouts

        location = Whereabouts.read(location).checkpoint
    if location.startswith("file:"):
        from urllib.parse import unquote, urlsplit

        location = unquote(urlsplit(location).path)
    return f"{location.rstrip('/')}/stormspark/state"
