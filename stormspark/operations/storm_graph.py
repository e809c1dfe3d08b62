"""What the REST API says of a topology's graph and streams: ``visualization``, ``visualization-init`` and ``metrics``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote_plus
from zlib import adler32

from stormspark.grouping.all import AllGrouping
from stormspark.grouping.base import Grouping
from stormspark.grouping.direct import DirectGrouping
from stormspark.grouping.fields import FieldsGrouping
from stormspark.grouping.global_ import GlobalGrouping
from stormspark.grouping.load_aware import LoadAwareShuffleGrouping
from stormspark.grouping.local_first import LocalFirstGrouping
from stormspark.grouping.local_or_shuffle import LocalOrShuffleGrouping
from stormspark.grouping.local_while_held import LocalWhileHeldGrouping
from stormspark.grouping.none import NoneGrouping
from stormspark.grouping.shuffle import ShuffleGrouping
from stormspark.metrics.windows import ALL_TIME, WINDOWS
from stormspark.operations.facts import Facts, Totals
from stormspark.operations.storm_api import FIRST_PORT, decimals, window_hint
from stormspark.operations.storm_component import inputs_of
from stormspark.plan.physical import ComponentPlan

__all__ = ["metrics", "stream_table", "visualization"]

#: Storm's UI shows so many streams in a row.
_IN_A_ROW = 4
#: Groupings by the names that Storm's Thrift gives them. All others are `_CUSTOM`.
_GROUPINGS: Mapping[type[Grouping], str] = {
    AllGrouping: "all",
    DirectGrouping: "direct",
    FieldsGrouping: "fields",
    GlobalGrouping: "fields",  # as in Storm, where it has no fields
    LoadAwareShuffleGrouping: "shuffle",
    LocalFirstGrouping: "local_or_shuffle",
    LocalOrShuffleGrouping: "local_or_shuffle",
    LocalWhileHeldGrouping: "shuffle",
    NoneGrouping: "none",
    ShuffleGrouping: "shuffle",
}
_CUSTOM = "custom_serialized"


def visualization(facts: Facts, window: str) -> dict[str, Any]:
    """Return ``topology/:id/visualization``: each component with its executors and inputs."""
    return {plan.id: _node(facts, plan, window) for plan in facts.plan.components.values()}


def stream_table(facts: Facts) -> dict[str, Any]:
    """Return ``topology/:id/visualization-init``: the streams that somebody reads, four in a row."""
    streams = dict.fromkeys(edge.stream for edge in facts.plan.edges)
    boxes = [
        {":stream": stream, ":sani-stream": _identifier(stream), ":checked": not stream.startswith("__")}
        for stream in streams
    ]
    rows = [boxes[at : at + _IN_A_ROW] for at in range(0, len(boxes), _IN_A_ROW)]
    return {"visualizationTable": [{":row": row} for row in rows]}


def metrics(facts: Facts, window: str) -> dict[str, Any]:
    """Return ``topology/:id/metrics``: what each component has counted, by stream."""
    plans = facts.plan.components.values()
    return {
        "window": window,
        "window-hint": window_hint(window),
        "spouts": [_spout_streams(facts, one, window) for one in plans if one.kind == "spout"],
        "bolts": [_bolt_streams(facts, one, window) for one in plans if one.kind == "bolt"],
    }


def _node(facts: Facts, plan: ComponentPlan, window: str) -> dict[str, Any]:
    totals, is_spout = facts.of(window, plan.tasks), plan.kind == "spout"
    return {
        ":type": plan.kind,
        ":capacity": 0 if is_spout else facts.capacity(plan.tasks),
        ":latency": totals.mean_ms if is_spout else totals.process_ms,
        ":transferred": totals.transferred,
        ":stats": list(_executors(facts, plan)),
        ":link": f"/component.html?id={quote_plus(plan.id)}&topology_id={quote_plus(facts.id)}",
        ":inputs": [
            {
                ":component": edge.source,
                ":stream": edge.stream,
                ":sani-stream": _identifier(edge.stream),
                ":grouping": _GROUPINGS.get(type(edge.grouping), _CUSTOM),
            }
            for edge in facts.plan.edges
            if edge.target == plan.id
        ],
    }


def _executors(facts: Facts, plan: ComponentPlan) -> Iterator[dict[str, Any]]:
    by_executor: dict[int, list[int]] = {}
    for task in plan.tasks:
        by_executor.setdefault(facts.plan.tasks[task].executor, []).append(task)
    for tasks in by_executor.values():
        place = facts.place(facts.plan.tasks[tasks[0]].worker)
        yield {
            ":host": place.host,
            ":port": FIRST_PORT + place.worker,
            ":uptime_secs": max(0, int(facts.now - place.since)) if place.pid else 0,
            ":transferred": {
                window: {
                    _identifier(stream): facts.on(window, tasks, stream).transferred
                    for stream in plan.streams
                }
                for window in (*WINDOWS, ALL_TIME)
            },
        }


def _identifier(stream: str) -> str:
    """Return a name for a stream that is also an identifier of HTML. Different streams have different ones.

    >>> _identifier("a<b>"), _identifier("__late")
    ('a_b_54395198', 's__late138084965')
    """
    safe = re.sub(r"[^A-Za-z_.-]", "_", stream)
    first = "" if stream[:1].isascii() and stream[:1].isalpha() else "s"
    return f"{first}{safe}{adler32(stream.encode())}"


def _spout_streams(facts: Facts, plan: ComponentPlan, window: str) -> dict[str, Any]:
    outputs = {stream: facts.on(window, plan.tasks, stream) for stream in plan.streams}
    return {
        "id": plan.id,
        **_emits(outputs),
        "acked": [{"stream_id": stream, "value": one.acked} for stream, one in outputs.items()],
        "failed": [{"stream_id": stream, "value": one.failed} for stream, one in outputs.items()],
        "complete_ms_avg": [
            {"stream_id": stream, "value": decimals(one.mean_ms)} for stream, one in outputs.items()
        ],
    }


def _bolt_streams(facts: Facts, plan: ComponentPlan, window: str) -> dict[str, Any]:
    outputs = {stream: facts.on(window, plan.tasks, stream) for stream in plan.streams}
    inputs = inputs_of(facts, plan, window)

    def of_inputs(value: Any) -> list[dict[str, Any]]:
        return [
            {"component_id": source, "stream_id": stream, "value": value(totals)}
            for (source, stream), totals in inputs.items()
        ]

    return {
        "id": plan.id,
        **_emits(outputs),
        "acked": of_inputs(lambda one: one.acked),
        "failed": of_inputs(lambda one: one.failed),
        "process_ms_avg": of_inputs(lambda one: decimals(one.process_ms)),
        "executed": of_inputs(lambda one: one.executed),
        "executed_ms_avg": of_inputs(lambda one: decimals(one.mean_ms)),
    }


def _emits(outputs: Mapping[str, Totals]) -> dict[str, Any]:
    return {
        "emitted": [{"stream_id": stream, "value": one.emitted} for stream, one in outputs.items()],
        "transferred": [{"stream_id": stream, "value": one.transferred} for stream, one in outputs.items()],
    }
