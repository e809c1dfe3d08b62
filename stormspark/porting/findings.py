"""What reading a legacy project found, as plain data: topologies, and statements that say how they were checked.

Nothing here says more than was looked at. A statement's grade is ``parsed`` (the source text says so), ``imported`` (a front-end
of stormspark loaded it and planned it), or ``not checked``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal

__all__ = [
    "UNRESOLVED",
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

#: ``runs``: as it is. ``change``: something has to be done, which ``todo`` names. ``unread``: what could not be made out.
#: ``note``: worth knowing, nothing to do.
Kind = Literal["runs", "change", "unread", "note"]
Grade = Literal["parsed", "imported", "not checked"]


@dataclass(frozen=True)
class Unresolved:
    """A value that reading alone can't tell, as the source writes it."""

    text: str

    def __str__(self) -> str:
        return f"?({self.text})" if self.text else "?"


#: A value that the source gives no text for.
UNRESOLVED: Final = Unresolved("")


@dataclass(frozen=True, order=True)
class Place:
    """A line of a file; the file's path is relative to the project.

    >>> str(Place("src/Split.java", 31))
    'src/Split.java:31'
    """

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Statement:
    """One thing that the report says, where it is seen, how it was checked, and what to do about it."""

    kind: Kind
    text: str
    place: Place | None = None
    todo: str = ""
    grade: Grade = "parsed"


@dataclass(frozen=True)
class StreamFound:
    """A stream that a component declares; ``fields`` is None where they could not be made out."""

    id: str
    fields: tuple[str, ...] | None
    place: Place
    direct: bool = False


@dataclass(frozen=True)
class InputFound:
    """A subscription. ``grouping`` is one of our names: shuffle, fields, all, ..., custom. ``source``, ``stream`` and ``fields``
    are None where they could not be made out.
    """

    source: str | None
    stream: str | None
    grouping: str
    place: Place
    fields: tuple[str, ...] | None = ()
    #: What is behind ``custom``: a class's name.
    custom: str = ""

    @property
    def resolved(self) -> bool:
        """Whether all of it is known."""
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
    """A configuration key as found, with its value or an `Unresolved`; ``component`` is empty for the topology's."""

    key: str
    value: Any
    place: Place
    component: str = ""


@dataclass
class ComponentFound:
    """A spout or bolt as the topology declares it; an id that could not be made out is None, and so is a parallelism."""

    id: str | None
    kind: Literal["spout", "bolt"]
    type_name: str
    place: Place
    parallelism: int | None = 1
    tasks: int | None = None
    #: None: not made out at all.
    streams: tuple[StreamFound, ...] | None = ()
    inputs: list[InputFound] = field(default_factory=list)
    #: Of a class in Java: what it extends, emits, acks and fails, each in some words with its lines.
    does: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """For sentences: ``bolt 'split'``."""
        return f"{self.kind} {self.id!r}" if self.id is not None else f"a {self.kind} at {self.place}"

    @property
    def resolved(self) -> bool:
        """Whether its id, parallelism and subscriptions are known; its streams are told apart."""
        return self.id is not None and self.parallelism is not None and all(i.resolved for i in self.inputs)


@dataclass
class TopologyFound:
    """One topology: what declares it, its graph, its settings, and what is to be said of it."""

    name: str
    #: ``streamparse``, ``heronpy``, ``heronpy-streamlet``, ``flux``, ``java``, ``java-transactional``, ``java-drpc``, ...
    front_end: str
    place: Place
    components: list[ComponentFound] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    #: The Python file that was written for it, relative to the output folder.
    skeleton: str = ""
    #: The first line of its plan, where it was imported.
    plan: str = ""

    def say(self, kind: Kind, text: str, place: Place | None = None, todo: str = "") -> None:
        """Add a statement once."""
        statement = Statement(kind, text, place, todo)
        if statement not in self.statements:
            self.statements.append(statement)

    @property
    def inputs(self) -> Iterator[tuple[ComponentFound, InputFound]]:
        """All subscriptions, with who subscribes."""
        return ((component, one) for component in self.components for one in component.inputs)

    @property
    def complete(self) -> bool:
        """Whether ids, parallelism and subscriptions of all components are known."""
        return bool(self.components) and all(component.resolved for component in self.components)


@dataclass
class Findings:
    """What was found in a project."""

    root: str
    topologies: list[TopologyFound] = field(default_factory=list)
    #: Of the project as a whole, and of files that belong to no topology.
    statements: list[Statement] = field(default_factory=list)
    #: How many files of each kind were read: ``{"java": 40}``.
    files: dict[str, int] = field(default_factory=dict)

    def say(self, kind: Kind, text: str, place: Place | None = None, todo: str = "") -> None:
        """Add a statement once."""
        statement = Statement(kind, text, place, todo)
        if statement not in self.statements:
            self.statements.append(statement)
