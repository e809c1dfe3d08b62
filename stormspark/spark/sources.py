"""Opens the streaming DataFrames of a topology's source spouts, and checks them against the spouts' declarations."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cloudpickle
import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, AtomicType, DataType, MapType, StructType, VariantType

from stormspark.api import SourceSpout
from stormspark.errors import (
    CheckpointError,
    InvalidTopologyError,
    StormsparkError,
    UnsupportedEnvironmentError,
)
from stormspark.plan.physical import ComponentPlan, PhysicalPlan
from stormspark.spark.checkpoint_folder import PlannedOffset
from stormspark.spark.feedback import COMPONENT, COMPONENT_TASKS
from stormspark.spark.java_errors import in_full
from stormspark.spark.range_source import PLANNED
from stormspark.spark.trigger_limits import TriggerLimits
from stormspark.spark.versions import TELLS_STARTS, number_of_streams
from stormspark.spi import RangeSpout

__all__ = ["SourceStream", "explain_failure", "hint", "open_sources", "require_known_end"]

#: What Spark's source for Kafka says, and what Spark does not say about it.
_HINTS = {
    "Failed to find data source: kafka": (
        f"Add --packages org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__} to the command; a KafkaSpout needs no "
        f"jars"
    ),
    "does not host this topic-partition": (
        "Kafka has no such topic: create it, and the topology goes on; or stop the topology, and correct the option subscribe"
    ),
}

#: Spark's names for the errors of a view or a function that is missing.
_MISSING = re.compile(r"\[(TABLE_OR_VIEW_NOT_FOUND|UNRESOLVED_ROUTINE)")


@dataclass(frozen=True)
class SourceStream:
    """The stream of rows that Spark reads for one source spout. ``tasks`` are pairs (task id, worker), sorted."""

    spout: str
    rows: DataFrame
    tasks: tuple[tuple[int, int], ...]
    partition_column: str | None
    #: Whether Spark itself plans what a batch reads. Otherwise a `RangePlanner` plans it, and can follow a new limit in each
    #: batch.
    native: bool


def open_sources(
    plan: PhysicalPlan,
    session: SparkSession,
    limits: TriggerLimits,
    planned: Sequence[PlannedOffset | None] = (),
) -> list[SourceStream]:
    """Give each source spout its limit, and ask it for its DataFrame.

    ``planned`` are the offsets of the last batch that was planned, one for each source in the order of the query's plan; the
    first one is that of the ticks. They are for Spark before 4.2, and may be missing.
    Raises `InvalidTopologyError`, which names the component and the user's line, and `CheckpointError` for an offset that is cut
    off.
    """
    found: list[SourceStream] = []
    place = 1
    for component in plan.sources:
        if not TELLS_STARTS:
            offset = planned[place] if place < len(planned) else None
            session.conf.set(PLANNED, json.dumps(offset) if offset else "")
        source = _opened(component, plan, session, limits)
        found.append(source)
        place += number_of_streams(source.rows) if planned else 1
    return found


def require_known_end(plan: PhysicalPlan) -> None:
    """Raise `UnsupportedEnvironmentError` if the plan's sources can't all end by ``trigger="available-now"``.

    Before Spark 4.2, ``Trigger.AvailableNow`` is unknown to Python sources, and only Python sources can do without it.
    """
    if TELLS_STARTS:
        return
    kinds = {isinstance(cloudpickle.loads(one.pickled), RangeSpout): one.place for one in plan.sources}
    if len(kinds) > 1:
        msg = (
            f'before Spark 4.2, trigger="available-now" can\'t end {kinds[True]} together with {kinds[False]}, and this is '
            f"Spark {pyspark.__version__}: run two topologies, or use a newer Spark"
        )
        raise UnsupportedEnvironmentError(msg)


def explain_failure(plan: PhysicalPlan, session: SparkSession, error: str) -> StormsparkError | None:
    """If a source spout knows that no further attempt can help against ``error``, return an error that says why; else None."""
    for component in plan.sources:
        spout: SourceSpout = cloudpickle.loads(component.pickled)
        try:
            reason = spout.explain_failure(error, session)
        except Exception:  # the spout may try to read what has just failed
            reason = None
        if reason is not None:
            return StormsparkError(f"{component.place}: {reason}")
    return None


def hint(error: str) -> str:
    """Return what to do about an error of Spark's source for Kafka; an empty string for any other error."""
    return "".join(f". {what}" for said, what in _HINTS.items() if said in error)


def _opened(
    component: ComponentPlan, plan: PhysicalPlan, session: SparkSession, limits: TriggerLimits
) -> SourceStream:
    place = component.place
    spout: SourceSpout = cloudpickle.loads(component.pickled)
    session.conf.set(COMPONENT, component.id)
    session.conf.set(COMPONENT_TASKS, len(component.tasks))
    if spout.per_trigger is not None:
        spout.limit = limits.open(component.id, spout.per_trigger)
    try:
        rows: Any = spout.stream(session)
    except CheckpointError:
        raise
    except Exception as error:
        what_to_do = hint(str(error))
        msg = f"{place}: stream raised {in_full(error)}{what_to_do}"
        if _MISSING.search(msg):
            msg += "\nA topology sees the temporary views and functions that its session has when submit is called, no later ones"
        raise InvalidTopologyError(msg) from error
    if not isinstance(rows, DataFrame) or not rows.isStreaming:
        got = (
            "a DataFrame that is not a stream: use spark.readStream"
            if isinstance(rows, DataFrame)
            else repr(rows)
        )
        msg = f"{place}: stream must return a streaming DataFrame, got {got}"
        raise InvalidTopologyError(msg)
    wanted = [*spout.id_columns, *([spout.partition_column] if spout.partition_column else [])]
    missing = [column for column in wanted if column not in rows.columns]
    if missing:
        msg = f"{place}: its stream has no column {missing[0]!r}, which the spout needs; it has {', '.join(rows.columns)}"
        raise InvalidTopologyError(msg)
    for name in spout.id_columns:
        kind = rows.schema[name].dataType
        if not _can_be_id(kind):
            msg = (
                f"{place}: id_columns names column {name!r} of type {kind.simpleString()}, but message ids must consist of plain "
                f"values, or of arrays, structs and maps of them: select such values from the column in stream()"
            )
            raise InvalidTopologyError(msg)
    if spout.takes_rows_as_they_are and len(spout.fields) != len(rows.columns):
        msg = (
            f"{place}: its stream has {len(rows.columns)} columns ({', '.join(rows.columns)}), but it declares "
            f"{len(spout.fields)} fields ({', '.join(spout.fields)}); select the columns in stream(), or give a translator"
        )
        raise InvalidTopologyError(msg)
    tasks = tuple((task, plan.tasks[task].worker) for task in component.tasks)
    native = not isinstance(spout, RangeSpout)
    return SourceStream(component.id, rows, tasks, spout.partition_column, native)


def _can_be_id(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _can_be_id(kind.elementType)
    if isinstance(kind, MapType):
        return _can_be_id(kind.keyType) and _can_be_id(kind.valueType)
    if isinstance(kind, StructType):
        return all(_can_be_id(field.dataType) for field in kind)
    return isinstance(kind, AtomicType) and not isinstance(kind, VariantType)
