"""Makes the first message to a child: the configuration, the folder for its PID file, and the task's context (I2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stormspark.api import TopologyContext
from stormspark.grouping import Grouping

__all__ = ["context_message", "setup_message"]

#: For each grouping, its name in Storm. In Storm, a global grouping is a fields grouping without fields (A7).
_TYPES = {
    "all": "ALL",
    "direct": "DIRECT",
    "fields": "FIELDS",
    "global": "FIELDS",
    "load_aware_shuffle": "SHUFFLE",
    "local_first": "LOCAL_OR_SHUFFLE",
    "local_or_shuffle": "LOCAL_OR_SHUFFLE",
    "none": "NONE",
    "shuffle": "SHUFFLE",
}


def setup_message(conf: Mapping[str, Any], context: TopologyContext, pid_dir: str) -> dict[str, Any]:
    """Return the first message. The configuration in it includes the entries that Storm adds."""
    added = {"topology.name": context.topology_name, "storm.id": context.storm_id}
    return {"pidDir": pid_dir, "conf": {**added, **conf}, "context": context_message(context)}


def context_message(context: TopologyContext) -> dict[str, Any]:
    """Return the task's context, with everything that it has in the messages of Storm 0.10 and later.

    >>> from stormspark.testing import make_context
    >>> context_message(make_context("split"))["task->component"]
    {'1': 'split'}
    """
    me = context.this_component_id
    sources: dict[str, dict[str, Any]] = {}
    fields: dict[str, dict[str, Any]] = {}
    for source, grouping in context.sources(me).items():
        sources.setdefault(source.component, {})[source.stream] = _grouping(grouping)
        fields.setdefault(source.component, {})[source.stream] = list(
            context.output_fields(source.component, source.stream)
        )
    return {
        "task->component": {str(task): name for task, name in context.task_to_component.items()},
        "taskid": context.this_task_id,
        "componentid": me,
        "stream->target->grouping": {
            stream: {target: _grouping(grouping) for target, grouping in targets.items()}
            for stream, targets in context.targets(me).items()
        },
        "streams": list(context.this_streams),
        "stream->outputfields": {
            stream: list(context.output_fields(me, stream)) for stream in context.this_streams
        },
        "source->stream->grouping": sources,
        "source->stream->fields": fields,
    }


def _grouping(grouping: Grouping) -> dict[str, Any]:
    kind = _TYPES.get(grouping.kind, "CUSTOM_SERIALIZED")
    return (
        {"type": kind, "fields": list(getattr(grouping, "fields", ()))}
        if kind == "FIELDS"
        else {"type": kind}
    )
