"""What an expression is known to be without running it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stormspark.porting.findings import Place, Unresolved

if TYPE_CHECKING:
    from tree_sitter import Node

    from stormspark.porting.java.source import JavaClass

__all__ = [
    "Call",
    "Const",
    "Function",
    "Instance",
    "Items",
    "Name",
    "Pair",
    "Pairs",
    "Unknown",
    "Value",
    "field_names",
    "integer",
    "made_by",
    "plain",
    "text",
]


class Value:
    """What all of them share: nothing but a name for it."""


@dataclass(frozen=True)
class Const(Value):
    """A text, a number, a truth value or null; ``unless`` says what else it may be, and where."""

    value: Any
    unless: str = ""


@dataclass(frozen=True)
class Unknown(Value):
    """Not known; ``text`` is what the source says, ``type`` what it is declared to be, if that is known."""

    text: str
    type: str = ""


@dataclass(frozen=True)
class Name(Value):
    """A constant of a class that is not the project's, or a class: ``TimeUnit.SECONDS``, ``Split.class``."""

    text: str


@dataclass(eq=False)
class Items(Value):
    """An array or a list; ``incomplete`` where something was done to it that could not be followed."""

    items: list[Value]
    incomplete: bool = False
    #: Branches and loops that it was made in: of what is done to it, only those inside of these count.
    conditions: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Call:
    """A method that was called on an instance of a library's class, or one of its subclasses."""

    name: str
    arguments: tuple[Value, ...]
    place: Place
    #: Branches and loops that it was called in.
    conditions: tuple[Any, ...] = ()


@dataclass(eq=False)
class Instance(Value):
    """An object: of the project's class, if ``java_class`` is there, or of a library's."""

    type: str
    arguments: tuple[Value, ...]
    place: Place
    java_class: JavaClass | None = None
    fields: dict[str, Value] = field(default_factory=dict)
    #: What was called on it and is no method of the project, in order.
    calls: list[Call] = field(default_factory=list)
    #: What the constructor of the library's class that it extends was given.
    base_arguments: tuple[Value, ...] = ()
    #: Where another object may stand in its place.
    unless: str = ""
    #: Branches and loops that it was made in.
    conditions: tuple[Any, ...] = ()

    @property
    def simple_type(self) -> str:
        """Without packages and classes around it."""
        return self.type.rpartition(".")[2]


@dataclass(eq=False)
class Function(Value):
    """A lambda or a reference to a method."""

    parameters: int
    place: Place
    node: Node


@dataclass(frozen=True)
class Pair:
    """A key that was put into a map."""

    key: Value
    value: Value
    place: Place
    #: Branches and loops that it was put in.
    conditions: tuple[Any, ...] = ()


@dataclass(eq=False)
class Pairs(Value):
    """A map or a configuration: what was put into it, in order."""

    type: str
    place: Place
    pairs: list[Pair] = field(default_factory=list)
    #: Branches and loops that it was made in.
    conditions: tuple[Any, ...] = ()
    #: What else was put into it and could not be followed.
    unknown: list[tuple[str, Place]] = field(default_factory=list)


def text(value: Value | None) -> str | None:
    """The text that it is, if it is one."""
    return value.value if isinstance(value, Const) and isinstance(value.value, str) else None


def integer(value: Value | None) -> int | None:
    """The integer that it is, if it is one."""
    if isinstance(value, Const) and isinstance(value.value, int) and not isinstance(value.value, bool):
        return value.value
    return None


def field_names(value: Value | None) -> tuple[str, ...] | None:
    """The names in ``new Fields(...)``, or in a list or an array of texts."""
    if isinstance(value, Instance) and value.simple_type == "Fields":
        inner = value.arguments
        if len(inner) == 1 and text(inner[0]) is None:
            return field_names(inner[0])
        names = [text(one) for one in inner]
    elif isinstance(value, Items) and not value.incomplete:
        names = [text(one) for one in value.items]
    else:
        return None
    known = tuple(name for name in names if name is not None)
    return known if len(known) == len(names) else None


def made_by(value: Instance) -> str:
    """The expression that makes it: a constructor's or a static method's call.

    >>> made_by(Instance("Split", (), Place("A.java", 1))), made_by(Instance("Reader.getInt", (), Place("A.java", 1)))
    ('new Split(...)', 'Reader.getInt(...)')
    """
    new = "" if value.simple_type[:1].islower() else "new "
    return f"{new}{value.type}(...)"


def plain(value: Value) -> Any:
    """As Python has it; `Unresolved` where it is not known."""
    match value:
        case Const():
            return value.value
        case Items():
            items = [plain(one) for one in value.items]
            unknown = value.incomplete or any(isinstance(one, Unresolved) for one in items)
            return Unresolved("a list") if unknown else items
        case Pairs():
            pairs = {text(pair.key): plain(pair.value) for pair in value.pairs}
            known = None not in pairs and not value.unknown
            return (
                pairs
                if known and not any(isinstance(one, Unresolved) for one in pairs.values())
                else Unresolved("a map")
            )
        case Name():
            return value.text.removesuffix(".class")
        case Unknown():
            return Unresolved(value.text)
        case Instance():
            return Unresolved(made_by(value))
    return Unresolved("")
