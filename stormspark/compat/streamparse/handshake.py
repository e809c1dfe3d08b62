"""What ``initialize`` is given: Storm's configuration and context, as the multilang handshake has them (I2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stormspark.api import TopologyContext
from stormspark.grouping import Grouping

__all__ = ["handshake_conf", "handshake_context"]

#: Storm's names, where ours are others.
_STORM_KINDS = {"global": "FIELDS", "load_aware_shuffle": "SHUFFLE", "local_first": "LOCAL_OR_SHUFFLE"}
_STORM_CUSTOM = ("custom", "partial_key")


def handshake_conf(conf: Mapping[str, Any], context: TopologyContext) -> dict[str, Any]:
    """The configuration of the component, with the topology's name."""
    return {"topology.name": context.topology_name, **conf}


def handshake_context(context: TopologyContext) -> dict[str, Any]:
    """The component's place in the topology, as plain data."""
    me = context.this_component_id
    return {
        "taskid": context.this_task_id,
        "componentid": me,
        "task->component": {str(task): name for task, name in context.task_to_component.items()},
        "streams": list(context.this_streams),
        "stream->outputfields": {
            stream: list(context.output_fields(me, stream)) for stream in context.this_streams
        },
        "stream->target->grouping": {
            stream: {target: _described(grouping) for target, grouping in targets.items()}
            for stream, targets in context.targets(me).items()
            if targets
        },
        "source->stream->grouping": _by_source(context, lambda key, grouping: _described(grouping)),
        "source->stream->fields": _by_source(
            context, lambda key, grouping: list(context.this_input_fields[key])
        ),
    }


def _by_source(context: TopologyContext, what: Any) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for key, grouping in context.sources(context.this_component_id).items():
        found.setdefault(key.component, {})[key.stream] = what(key, grouping)
    return found


def _described(grouping: Grouping) -> dict[str, Any]:
    kind = grouping.kind
    if kind in _STORM_CUSTOM:
        return {"type": "CUSTOM_SERIALIZED"}
    described: dict[str, Any] = {"type": _STORM_KINDS.get(kind, kind.upper())}
    if described["type"] == "FIELDS":
        described["fields"] = list(grouping.key_fields)
    return described
