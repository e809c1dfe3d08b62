"""Statistics for people who look at them: in one line, and as a table for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stormspark.drawing import page, table

if TYPE_CHECKING:
    from stormspark.metrics.statistics import ComponentStatistics, TopologyStatistics

__all__ = ["statistics_html", "statistics_line", "statistics_table"]

_TITLES = ("component", "kind", "tasks", "emitted", "executed", "acked", "failed", "pending", "waiting")
_TIMES = ("mean ms", "p50 ms", "p99 ms")


def statistics_line(statistics: TopologyStatistics) -> str:
    """Return the line for the statistics' ``repr``."""
    counts = ", ".join(
        f"{name} {statistics.total(name, 'spout'):,}" for name in ("emitted", "acked", "failed", "pending")
    )
    return (
        f"<TopologyStatistics {statistics.topology!r} on {statistics.engine}: {statistics.seconds:,.1f} s, "
        f"{statistics.batches:,} batches, {statistics.tuples_per_s:,.0f} tuples/s, {counts}>"
    )


def statistics_html(statistics: TopologyStatistics) -> str:
    """Return the table with a title."""
    return page(
        f"{statistics.topology} on {statistics.engine}: {statistics.seconds:,.1f} s, {statistics.batches:,} batches, "
        f"{statistics.tuples_per_s:,.0f} tuples/s",
        statistics_table(statistics),
    )


def statistics_table(statistics: TopologyStatistics) -> str:
    """Return the HTML of a table with a row for each component. ``late``, ``given up`` and ``errors`` are shown if there are any.

    The times are those from emit to ack for a spout, and those in ``execute`` for a bolt.
    """
    components = statistics.components.values()
    extra = [
        name
        for name in ("late", "shed", "dead_letters", "restarts", "errors")
        if any(getattr(c, name) for c in components)
    ]
    titles = (*_TITLES, *(name.replace("dead_letters", "given up") for name in extra), *_TIMES)
    rows = [_row(name, one, extra) for name, one in statistics.components.items()]
    return table(titles, rows, ("", "", *["number"] * (len(titles) - 2)))


def _row(name: str, one: ComponentStatistics, extra: list[str]) -> tuple[str, ...]:
    counts = ("tasks", "emitted", "executed", "acked", "failed", "pending", "queued", *extra)
    latency = one.latency
    return (
        name,
        one.kind,
        *(f"{getattr(one, count):,}" for count in counts),
        *(_milliseconds(value) for value in (latency.mean, latency.p50, latency.p99)),
    )


def _milliseconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
