"""Writes the findings as Markdown for people, and as JSON for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from stormspark.porting.findings import (
    ComponentFound,
    Findings,
    Kind,
    Setting,
    Statement,
    StreamFound,
    TopologyFound,
    Unresolved,
)

__all__ = ["SUMMARY", "as_json", "as_markdown", "summary_rows"]

#: The columns of the summary.
SUMMARY = (
    "topology",
    "from",
    "components",
    "subscriptions",
    "settings",
    "runs",
    "change",
    "unread",
    "skeleton",
    "plan",
)

_TITLES: dict[Kind, str] = {
    "runs": "Runs unchanged",
    "change": "Needs a change",
    "unread": "Could not be made out",
    "note": "Worth knowing",
}


def summary_rows(findings: Findings) -> Iterator[tuple[str, ...]]:
    """Yield one row per topology, with the columns of `SUMMARY`. A cell 3/4 means that three of four items are known."""
    for one in findings.topologies:
        components = [component.resolved for component in one.components]
        inputs = [each.resolved for _, each in one.inputs]
        counts = [str(sum(s.kind == kind for s in one.statements)) for kind in ("runs", "change", "unread")]
        yield (
            one.name,
            f"{one.front_end}, {one.place}",
            _of(components),
            _of(inputs),
            str(len(one.settings)),
            *counts,
            one.skeleton,
            one.plan.partition(": ")[2] or one.plan,
        )


def as_json(findings: Findings) -> str:
    """Return all findings as JSON. A value that could not be made out becomes ``{"unresolved": "source text"}``."""
    return json.dumps(_plain(asdict(findings)), indent=2)


def as_markdown(findings: Findings) -> str:
    """Return the whole report as Markdown."""
    return "\n".join(_lines(findings)) + "\n"


def _lines(findings: Findings) -> Iterator[str]:
    files = ", ".join(f"{count} of {kind}" for kind, count in findings.files.items())
    yield f"# Porting {findings.root}"
    yield ""
    yield f"Files that were read: {files or 'none'}. No code of the project was run, except for statements that are *imported*."
    yield ""
    yield "Each statement ends with the way it was checked:"
    yield ""
    yield "- *parsed*: it follows from the source text. The code may do something else when it runs."
    yield "- *imported*: the front-end loaded and planned the topology. No tuple went through it."
    yield "- *not checked*: nothing was checked."
    yield ""
    yield from _table(SUMMARY, summary_rows(findings))
    for kind, title in _TITLES.items():
        yield from _statements(f"## {title}: the project", kind, findings.statements)
    for topology in findings.topologies:
        yield from _topology(topology)


def _topology(topology: TopologyFound) -> Iterator[str]:
    yield ""
    yield f"## {topology.name} ({topology.place})"
    yield ""
    yield f"Written for {topology.front_end}."
    if topology.skeleton:
        yield f"Its skeleton is [{topology.skeleton}]({topology.skeleton}): `stormspark explain {topology.skeleton}`."
    if topology.command:
        yield f"To run it, call `{topology.command}` in the project's folder."
    if topology.components:
        yield ""
        yield from _table(
            ("component", "class", "parallelism", "emits", "takes", "where"),
            map(_component, topology.components),
        )
    if does := {one.type_name: one.does for one in topology.components if one.does}:
        yield ""
        yield from _table(
            ("class", "what it does"), ((name, "; ".join(actions)) for name, actions in does.items())
        )
    if topology.settings:
        yield ""
        yield from _table(("setting", "value", "of", "where"), map(_setting, topology.settings))
    for kind, title in _TITLES.items():
        yield from _statements(f"### {title}", kind, topology.statements)


def _component(one: ComponentFound) -> tuple[str, ...]:
    tasks = f" ({one.tasks} tasks)" if one.tasks is not None else ""
    parallelism = "?" if one.parallelism is None else f"{one.parallelism}{tasks}"
    if one.streams is None:
        emits = "?"
    else:
        emits = "; ".join(
            f"{'' if s.id == 'default' else s.id}({_fields(s)}){' direct' if s.direct else ''}"
            for s in one.streams
        )
    return (
        f"{one.kind} {one.id or '?'}",
        one.type_name,
        parallelism,
        emits,
        "; ".join(map(str, one.inputs)),
        str(one.place),
    )


def _fields(stream: StreamFound) -> str:
    return "?" if stream.fields is None else ", ".join(stream.fields)


def _setting(one: Setting) -> tuple[str, ...]:
    value = str(one.value) if isinstance(one.value, Unresolved) else json.dumps(_plain(one.value))
    return one.key, value, one.component or "the topology", str(one.place)


def _statements(title: str, kind: Kind, statements: Iterable[Statement]) -> Iterator[str]:
    of_kind = [one for one in statements if one.kind == kind]
    if not of_kind:
        return
    yield ""
    yield title
    yield ""
    for one in of_kind:
        where = f" ({one.place})" if one.place else ""
        todo = f": {_marked(one.todo)}" if one.todo else ""
        yield f"- {_marked(one.text)}{where}{todo} *{one.grade}*"


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    names = list(columns)
    yield f"| {' | '.join(names)} |"
    yield f"| {' | '.join('---' for _ in names)} |"
    for row in rows:
        yield f"| {' | '.join(_escaped(cell).replace('|', chr(92) + '|') for cell in row)} |"


def _of(known: list[bool]) -> str:
    return f"{sum(known)}/{len(known)}"


def _escaped(text: str, *, strip: bool = True) -> str:
    escaped = text.replace("<", "&lt;")
    return " ".join(escaped.split()) if strip else escaped


#: Commands that statements tell people to call, with their arguments; and what is in backticks already.
_COMMAND = re.compile(
    r"(`[^`]*`)|\b((?:stormspark (?:run|explain|port|replay)|pip install|patch -p1|python -m) [^;,`()]*[^;,`()\s.:])"
)


def _marked(text: str) -> str:
    """Return a sentence with its commands in backticks, in which nothing needs escaping.

    >>> _marked("apply it: patch -p1 -d COPY < DIR/python3.diff; or <write> it")
    'apply it: `patch -p1 -d COPY < DIR/python3.diff`; or &lt;write> it'
    """
    parts, end = [], 0
    for found in _COMMAND.finditer(text):
        parts += [_escaped(text[end : found.start()], strip=False), found[1] or f"`{found[2]}`"]
        end = found.end()
    return " ".join("".join([*parts, _escaped(text[end:], strip=False)]).split())


def _plain(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"text"}:  # asdict has made this dict from an Unresolved
        return {"unresolved": value["text"]}
    if isinstance(value, Unresolved):
        return {"unresolved": value.text}
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value
