"""A declared topology for people who look at it: in one line, and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stormspark.api.declarers import ComponentDeclaration
from stormspark.api.streams import DEFAULT_STREAM
from stormspark.drawing import Box, Link, details, graph_svg, page, paragraph, table

__all__ = ["topology_html", "topology_line"]

#: A line names at most so many components.
_NAMED = 8


def topology_line(name: str, components: Mapping[str, ComponentDeclaration]) -> str:
    """Return the line for a topology's ``repr``."""
    named = [f"{one.kind} {one.id} x{one.parallelism}" for one in list(components.values())[:_NAMED]]
    if len(components) > _NAMED:
        named.append(f"{len(components) - _NAMED} more")
    return f"<Topology {name!r}: {', '.join(named) or 'no components'}>"


def topology_html(name: str, components: Mapping[str, ComponentDeclaration]) -> str:
    """Return the graph of a topology, and a table of its components. A thing that is not declared is drawn, too."""
    many = f"{len(components)} component{'s' * (len(components) != 1)}"
    picture = graph_svg(
        [_box(one) for one in components.values()],
        list(_links(components)),
        f"the graph of topology {name}",
    )
    rows = [
        (
            one.id,
            one.kind,
            one.type_name,
            f"{one.parallelism:,}",
            "" if one.num_tasks is None else f"{one.num_tasks}",
            "\n".join(
                f"{_from(source.component, source.stream)}: {how.describe()}"
                for source, how in one.inputs.items()
            ),
            "\n".join(f"{stream.id}({', '.join(stream.fields)})" for stream in one.streams.values()),
            one.declared_at,
        )
        for one in components.values()
    ]
    titles = ("component", "kind", "class", "parallelism", "tasks", "subscribes to", "emits", "declared at")
    looks = ("", "", "", "number", "number", "wide", "wide", "")
    return page(
        f"topology {name}: {many}",
        picture or (paragraph("too large for a picture") if components else paragraph("no components")),
        details("components", table(titles, rows, looks), opened=not picture),
    )


def _box(one: ComponentDeclaration) -> Box:
    tasks = "" if one.num_tasks is None else f", {one.num_tasks} tasks"
    tip = f"{one.kind} {one.type_name}, declared at {one.declared_at}"
    return Box(one.id, one.id, (f"{one.kind} x {one.parallelism}{tasks}",), one.kind, tip=tip)


def _links(components: Mapping[str, ComponentDeclaration]) -> Iterable[Link]:
    for one in components.values():
        for source, grouping in one.inputs.items():
            stream = "" if source.stream == DEFAULT_STREAM else f"{source.stream}: "
            yield Link(source.component, one.id, f"{stream}{grouping.describe()}")


def _from(component: str, stream: str) -> str:
    return component if stream == DEFAULT_STREAM else f"{component}:{stream}"
