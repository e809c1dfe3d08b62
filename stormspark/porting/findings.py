"""What the modules that read a legacy project have found, as plain data: the project's topologies, and statements about them.

The grade of a statement says how it was checked. ``parsed`` means that the statement follows from the source text. ``imported``
means that a front-end of stormspark has tried to load and plan the topology. The third grade is ``not checked``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "ComponentFound",
    "Findings",
    "Grade",
    "InputFound",
    "Kind",
    "Place",
    "Setting",
    "Statement",
    "StreamFound",
    "TopologyFound",
    "Unresolved",
]

#: The kinds of statements. ``runs``: something works unchanged. ``change``: something needs a change. ``unread``: something could
#: not be made out. ``note``: something is worth knowing.
Kind = Literal["runs", "change", "unread", "note"]
Grade = Literal["parsed", "imported", "not checked"]


@dataclass(frozen=True)
class Unresolved:
    """A value that can't be made out without running code. ``text`` is its expression in the source."""

    text: str

    def __str__(self) -> str:
        return f"?({self.text})" if self.text else "?"


@dataclass(frozen=True, order=True)
class Place:
    """A line of a file. If the file is in the project, its path is relative to the project's folder.

    >>> str(Place("src/Split.java", 31))
    'src/Split.java:31'
    """

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Statement:
    """One statement of the report. It has a kind, a place, the way in which it was checked, and the user's next step, if any."""

    kind: Kind
    text: str
    place: Place | None = None
    todo: str = ""
    grade: Grade = "parsed"


@dataclass(frozen=True)
class StreamFound:
    """A stream that a component declares. ``fields`` is None if the fields could not be made out."""

    id: str
    fields: tuple[str, ...] | None
    place: Place
    direct: bool = False


@dataclass(frozen=True)
class InputFound:
    """A subscription. ``grouping`` is stormspark's name of the grouping, such as shuffle, fields, all or custom.

    Each of ``source``, ``stream`` and ``fields`` is None if it could not be made out.
    """

    source: str | None
    stream: str | None
    grouping: str
    place: Place
    fields: tuple[str, ...] | None = ()
    #: For a custom grouping, the name of its class, or its expression in the source.
    custom: str = ""

    @property
    def resolved(self) -> bool:
        """Whether source, stream and fields are known."""
        return self.source is not None and self.stream is not None and self.fields is not None

    def __str__(self) -> str:
        stream = "" if self.stream == "default" else f":{self.stream or '?'}"
        by = self.grouping
        if self.grouping in ("fields", "partial_key"):
            by += f"({', '.join(self.fields) if self.fields is not None else '?'})"
        if self.custom:
            by += f"({self.custom})"
        return f"{self.source or '?'}{stream} {by}"


@dataclass(frozen=True)
class Setting:
    """A configuration key with its value, which may be an `Unresolved`. ``component`` is empty if the topology sets the key."""

    key: str
    value: Any
    place: Place
    component: str = ""


@dataclass
class ComponentFound:
    """A spout or bolt as the topology declares it. ``id`` and ``parallelism`` are None if they could not be made out."""

    id: str | None
    kind: Literal["spout", "bolt"]
    type_name: str
    place: Place
    parallelism: int | None = 1
    tasks: int | None = None
    #: The streams that the component declares; None if no stream could be made out.
    streams: tuple[StreamFound, ...] | None = ()
    inputs: list[InputFound] = field(default_factory=list)
    #: For a class in Java: the class that it extends, and its emits, acks and other actions, with their lines.
    does: tuple[str, ...] = ()
    #: For a component that runs a child process: the words of its command, if they are known.
    command: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The component's name in the sentences of the report, such as ``bolt 'split'``."""
        return f"{self.kind} {self.id!r}" if self.id is not None else f"a {self.kind} at {self.place}"

    @property
    def resolved(self) -> bool:
        """Whether the component's id, parallelism and subscriptions are known. Its streams need not be known."""
        return self.id is not None and self.parallelism is not None and all(i.resolved for i in self.inputs)


@dataclass
class TopologyFound:
    """One topology: the place that declares it, its graph, its settings, and the statements about it."""

    name: str
    #: The API that the topology uses: ``streamparse``, ``heronpy``, ``heronpy-streamlet``, ``petrel``, ``flux``, ``java``,
    #: ``java-transactional``, ``java-drpc``, ...
    front_end: str
    place: Place
    components: list[ComponentFound] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    #: The name of the topology's skeleton in the output folder; empty if it has no skeleton.
    skeleton: str = ""
    #: The command that runs the topology as it is, in the project's folder; empty if `port` does not know one.
    command: str = ""
    #: The first line of the topology's plan, if the topology was imported and planned.
    plan: str = ""

    def report(self, kind: Kind, text: str, place: Place | None = None, todo: str = "") -> None:
        """Add a statement, unless the same statement was added before."""
        statement = Statement(kind, text, place, todo)
        if statement not in self.statements:
            self.statements.append(statement)

    @property
    def inputs(self) -> Iterator[tuple[ComponentFound, InputFound]]:
        """All subscriptions, each with the component that subscribes."""
        return ((component, one) for component in self.components for one in component.inputs)

    @property
    def complete(self) -> bool:
        """Whether the topology has components, and the id, parallelism and subscriptions of each component are known."""
        return bool(self.components) and all(component.resolved for component in self.components)


@dataclass
class Findings:
    """Everything that was found in a project."""

    root: str
    topologies: list[TopologyFound] = field(default_factory=list)
    #: Statements about the project as a whole, and about files that belong to no topology.
    statements: list[Statement] = field(default_factory=list)
    #: How many files of each kind were read: ``{"java": 40}``.
    files: dict[str, int] = field(default_factory=dict)
    #: For each file in Python 2, the diff between it and its draft in Python 3.
    python3: dict[str, str] = field(default_factory=dict)

    def report(self, kind: Kind, text: str, place: Place | None = None, todo: str = "") -> None:
        """Add a statement, unless the same statement was added before."""
        statement = Statement(kind, text, place, todo)
        if statement not in self.statements:
            self.statements.append(statement)
