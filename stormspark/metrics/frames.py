"""Statistics as a table, for pandas and Spark: a row for each component, and columns whose names have units.

All frames of one version have the same columns, so frames of several moments can be put under each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from stormspark.metrics.statistics import ComponentStatistics, TopologyStatistics

__all__ = ["COLUMNS", "SCHEMA", "MakesFrames", "rows"]


class MakesFrames(Protocol):
    """What a SparkSession can do, one of Spark Connect, too."""

    def createDataFrame(self, data: Any, schema: Any) -> Any:  # noqa: N802 - Spark's name
        """Make a DataFrame of rows."""


class _Column(NamedTuple):
    name: str
    #: Spark's name of the type.
    type: str
    value: Callable[[TopologyStatistics, str, ComponentStatistics], Any]

    @property
    def dtype(self) -> str:
        """The type of the column in pandas."""
        return {"STRING": "object", "DOUBLE": "float64", "BIGINT": "int64"}[self.type]


def _counts(*names: str) -> list[_Column]:
    return [_Column(name, "BIGINT", _count(name)) for name in names]


def _count(name: str) -> Callable[[TopologyStatistics, str, ComponentStatistics], int]:
    return lambda statistics, component, one: int(getattr(one, name))


def _latency(name: str) -> _Column:
    return _Column(
        f"latency_{name}_ms", "DOUBLE", lambda statistics, component, one: getattr(one.latency, name)
    )


def _throttled_secs(statistics: TopologyStatistics, component: str, one: ComponentStatistics) -> float | None:
    spouts = {} if statistics.pressure is None else statistics.pressure.spouts
    return sum(spouts[component].throttled_ms.values()) / 1000 if component in spouts else None


def _throttled_by(statistics: TopologyStatistics, component: str, one: ComponentStatistics) -> str | None:
    spouts = {} if statistics.pressure is None else statistics.pressure.spouts
    return spouts[component].throttled_by if component in spouts else None


def _per_second(name: str) -> Callable[[TopologyStatistics, str, ComponentStatistics], float | None]:
    return lambda statistics, component, one: (
        getattr(one, name) / statistics.seconds if statistics.seconds else None
    )


COLUMNS = (
    _Column("topology", "STRING", lambda statistics, component, one: statistics.topology),
    _Column("seconds", "DOUBLE", lambda statistics, component, one: statistics.seconds),
    _Column("component", "STRING", lambda statistics, component, one: component),
    _Column("kind", "STRING", lambda statistics, component, one: one.kind),
    *_counts("tasks", "emitted", "transferred", "executed", "acked", "failed"),
    *_counts("failed_by_bolt", "timed_out", "worker_lost", "late", "shed", "dead_letters"),
    *_counts("pending", "queued", "queued_bytes"),
    _Column("emitted_per_s", "DOUBLE", _per_second("emitted")),
    _Column("executed_per_s", "DOUBLE", _per_second("executed")),
    *(_latency(name) for name in ("mean", "p50", "p99")),
    _Column("throttled_s", "DOUBLE", _throttled_secs),
    _Column("throttled_by", "STRING", _throttled_by),
    _Column("paused_s", "DOUBLE", lambda statistics, component, one: one.skipped_max_spout_ms / 1000),
    _Column("calls_under_way", "DOUBLE", lambda statistics, component, one: float(one.calls_under_way)),
    *_counts("calls_at_once", "restarts", "down", "errors"),
    _Column("last_error", "STRING", lambda statistics, component, one: one.last_error),
)
#: The schema of the Spark DataFrame.
SCHEMA = ", ".join(f"{column.name} {column.type}" for column in COLUMNS)


def rows(statistics: TopologyStatistics) -> list[tuple[Any, ...]]:
    """Return the row of each component."""
    return [
        tuple(column.value(statistics, name, one) for column in COLUMNS)
        for name, one in statistics.components.items()
    ]
