"""The rows of the table: what is compared with what, which figure counts, and what was promised of it.

A ratio is ours / peer, of one round. ``better`` says which way is up: words a second should be many times the peer's,
milliseconds a part of them. A row without a peer shows a figure of ours as it is. `ROWS` is in the order in which the table
is printed and measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["ROWS", "Row", "Side", "rows_named"]


@dataclass(frozen=True)
class Side:
    """A figure of a measurement (`benchmarks.measurements`)."""

    measurement: str
    figure: str = "words_per_s"

    def of(self, figures: Mapping[str, Any]) -> float:
        """The figure, of what the measurement returned."""
        return float(figures[self.figure])


@dataclass(frozen=True)
class Row:
    """One line of the table. ``first`` and ``goal`` are bounds of the ratio, or of the figure where there is no peer."""

    key: str
    title: str
    ours: Side
    peer: Side | None = None
    first: float | None = None
    goal: float | None = None
    better: Literal["more", "less"] = "more"
    unit: str = "words/s"

    def reaches(self, value: float, bound: float | None) -> bool | None:
        """Whether ``value`` is as good as ``bound``; None where nothing was promised."""
        if bound is None:
            return None
        return value >= bound if self.better == "more" else value <= bound

    @property
    def measurements(self) -> tuple[str, ...]:
        """Ours, then the peer's."""
        names = [self.ours.measurement]
        if self.peer is not None and self.peer.measurement not in names:
            names.append(self.peer.measurement)
        return tuple(names)


_ACKED, _UNACKED = Side("ours/acked"), Side("ours/unacked")
_VECTORISED = Side("ours/vectorised")
#: Where components that wait are measured: what is added to a row's key, and in words.
_WAITING_PLACES = {"": "2 workers on Spark", "_one": "1 worker on Spark", "_local": "local engine"}


def _waiting(case: str, title: str, first: float) -> list[Row]:
    """The rows of a case of `benchmarks.waiting`: of what is possible in each place, and beside Storm."""
    done, possible = (
        ("beside_per_s", "alone_per_s") if case == "polling" else ("executed_per_s", "possible_per_s")
    )
    rows = [
        Row(
            case + suffix,
            f"{title}, {place}",
            Side(f"ours/{case}{suffix}", done),
            Side(f"ours/{case}{suffix}", possible),
            first,
            unit="tuples/s",
        )
        for suffix, place in _WAITING_PLACES.items()
    ]
    ours, storm = Side(f"ours/{case}", "share"), Side(f"storm/{case}", "share")
    return [*rows, Row(f"{case}_storm", f"the share of {case} / that of Storm", ours, storm, unit="of 1")]


ROWS = (
    Row("acked", "acked word count, 2 workers on Spark / Storm", _ACKED, Side("storm/acked"), 1.5, 3.0),
    Row("pystorm", "acked word count / pystorm on Storm", _ACKED, Side("storm/pystorm"), 40.0, 80.0),
    Row("bytewax", "acked word count / Bytewax, which has no acks", _ACKED, Side("bytewax/unacked")),
    Row("bare_acked", "acked word count / bare PySpark, mapInArrow", _ACKED, Side("bare/map_in_arrow")),
    Row("unacked", "unacked word count / Storm", _UNACKED, Side("storm/unacked"), 0.7, 1.5),
    Row("bytewax_unacked", "unacked word count / Bytewax", _UNACKED, Side("bytewax/unacked")),
    Row(
        "heron_acked",
        "Heron's word count, acked / Storm",
        Side("ours/heron_acked"),
        Side("storm/heron_acked"),
        0.8,
        2.0,
    ),
    Row(
        "heron_unacked",
        "Heron's word count, unacked / Storm",
        Side("ours/heron_unacked"),
        Side("storm/heron_unacked"),
        0.5,
        1.0,
    ),
    Row(
        "streamparse",
        "a streamparse project / pystorm on Storm",
        Side("ours/streamparse"),
        Side("storm/pystorm"),
    ),
    Row(
        "streamparse_one",
        "a streamparse project in one worker, as Storm has one / pystorm on Storm",
        Side("ours/streamparse_one"),
        Side("storm/pystorm"),
    ),
    Row("arrow", "Arrow bolts / bare PySpark, mapInArrow", _VECTORISED, Side("bare/map_in_arrow"), 0.8, None),
    Row("arrow_sql", "Arrow bolts / bare PySpark, native SQL", _VECTORISED, Side("bare/sql"), None, 1.0),
    Row(
        "arrow_combined",
        "Arrow bolts that first count within a record batch / native SQL, which does so",
        Side("ours/vectorised_combined"),
        Side("bare/sql"),
    ),
    Row(
        "async",
        "AsyncBolt, 1,000 calls of 100 ms under way / 1,000 / 100 ms",
        Side("ours/async_1000", "calls_per_s"),
        Side("ours/async_1000", "possible_per_s"),
        0.9,
        None,
        unit="calls/s",
    ),
    Row(
        "async_10000_of_1_s",
        "AsyncBolt, 10,000 calls of 1 s under way / 10,000 / 1 s",
        Side("ours/async_10000_of_1_s", "calls_per_s"),
        Side("ours/async_10000_of_1_s", "possible_per_s"),
        0.9,
        None,
        unit="calls/s",
    ),
    Row(
        "async_10000",
        "AsyncBolt, 10,000 calls of 100 ms under way / asyncio alone",
        Side("ours/async_10000", "calls_per_s"),
        Side("bare/asyncio", "calls_per_s"),
        unit="calls/s",
    ),
    *_waiting("waiting", "40 executors that wait 5 ms for each tuple / 40 / 5 ms", 0.9),
    *_waiting("waiting_chain", "the end of three bolts of 10 executors that wait 5 ms / 10 / 5 ms", 0.9),
    *_waiting("polling", "a spout and its bolt beside a spout that waits 0.5 s / alone", 0.95),
    Row(
        "idle_batch",
        "a batch with nothing to do / a bare query with as many stages",
        Side("both/idle_batch", "topology_ms"),
        Side("both/idle_batch", "bare_ms"),
        1.5,
        1.1,
        "less",
        "ms",
    ),
    Row(
        "latency",
        "latency at 100 sentences/s, Spark / a batch of the bare query",
        Side("both/latency", "latency_ms"),
        Side("both/latency", "bare_batch_ms"),
        2.0,
        1.2,
        "less",
        "ms",
    ),
    Row(
        "latency_local",
        "latency at 100 sentences/s, local engine",
        Side("ours/latency_local", "latency_ms"),
        None,
        10.0,
        2.0,
        "less",
        "ms",
    ),
    Row(
        "idle_cpu",
        "cores of an idle topology / of Storm at 1 sentence/s, which spins",
        Side("ours/idle_cpu", "cores"),
        Side("storm/idle_spin", "cores"),
        1.0,
        0.3,
        "less",
        "cores",
    ),
    Row(
        "open_trees",
        "CPU per word with 1 M open trees / with none",
        Side("ours/open_trees", "full_ns"),
        Side("ours/open_trees", "empty_ns"),
        1.1,
        None,
        "less",
        "ns",
    ),
    Row(
        "state_keys",
        "CPU per word with 10 M keys of state / with 10,000 keys",
        Side("ours/state_keys", "full_ns"),
        Side("ours/state_keys", "empty_ns"),
        1.1,
        None,
        "less",
        "ns",
    ),
    Row(
        "pending_1000",
        "acked word count, max spout pending 1000, 1 worker / Storm",
        Side("ours/pending_1000"),
        Side("storm/pending_1000"),
        0.5,
        1.0,
    ),
    Row(
        "memory",
        "memory growth, bolt 100x slower than its spout / high mark of the bolt's queue",
        Side("ours/slow_bolt", "grown_mb"),
        Side("ours/slow_bolt", "high_mark_mb"),
        1.0,
        None,
        "less",
        "MB",
    ),
)


def rows_named(keys: list[str] | None) -> list[Row]:
    """The rows of these keys, in the table's order; all where none are given. Raises KeyError for one that is not there."""
    known = {row.key: row for row in ROWS}
    for key in keys or ():
        known[key]
    return [row for row in ROWS if not keys or row.key in keys]
