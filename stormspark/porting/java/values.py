"""The values of Java's expressions, as far as they are known without running the code."""

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
    """The base class of all values. Type hints need it."""


@dataclass(frozen=True)
class Const(Value):
    """A string, a number, a boolean or null. ``unless`` is the condition under which the value differs, with its place."""

    value: Any
    unless: str = ""


@dataclass(frozen=True)
class Unknown(Value):
    """A value that is not known. ``text`` is its source text. ``type`` is its declared type, if the type is known."""

    text: str
    type: str = ""


@dataclass(frozen=True)
class Name(Value):
    """A constant or a class that is only known by its name, such as ``TimeUnit.SECONDS`` or ``Split.class``."""

    text: str


@dataclass(eq=False)
class Items(Value):
    """An array or a list. ``incomplete`` is true if it may have more items than ``items``."""

    items: list[Value]
    incomplete: bool = False
    #: The branches and loops around the line that creates the value. If a later change of the value is in no further branch or
    #: loop, the change certainly happens.
    conditions: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Call:
    """A call of a method on an object. The project does not define the method."""

    name: str
    arguments: tuple[Value, ...]
    place: Place
    #: The branches and loops around the call.
    conditions: tuple[Any, ...] = ()


@dataclass(eq=False)
class Instance(Value):
    """An object. Its class is the project's class ``java_class``. If ``java_class`` is None, its class is in a library."""

    type: str
    arguments: tuple[Value, ...]
    place: Place
    java_class: JavaClass | None = None
    fields: dict[str, Value] = field(default_factory=dict)
    #: The calls of the object's methods that the project does not define, in order.
    calls: list[Call] = field(default_factory=list)
    #: If the object's class extends a library's class, the arguments that the library's constructor gets.
    base_arguments: tuple[Value, ...] = ()
    #: The condition under which another object is used in place of this one; empty if there is no such condition.
    unless: str = ""
    #: The branches and loops around the line that creates this value.
    conditions: tuple[Any, ...] = ()

    @property
    def simple_type(self) -> str:
        """The name of the object's type, without its package and without the classes around it."""
        return self.type.rpartition(".")[2]


@dataclass(eq=False)
class Function(Value):
    """A lambda or a reference to a method."""

    parameters: int
    place: Place
    node: Node


@dataclass(frozen=True)
class Pair:
    """A key and a value that the code puts into a map."""

    key: Value
    value: Value
    place: Place
    #: The branches and loops around the call that put the pair into the map.
    conditions: tuple[Any, ...] = ()


@dataclass(eq=False)
class Pairs(Value):
    """A map or a configuration. It has the pairs that the code puts into it, in order."""

    type: str
    place: Place
    pairs: list[Pair] = field(default_factory=list)
    #: The branches and loops around the line that creates this value.
    conditions: tuple[Any, ...] = ()
    #: Descriptions of code that may change the map but could not be followed, each with its place.
    unknown: list[tuple[str, Place]] = field(default_factory=list)


def text(value: Value | None) -> str | None:
    """Return the string if the value is a known string, else None."""
    return value.value if isinstance(value, Const) and isinstance(value.value, str) else None


def integer(value: Value | None) -> int | None:
    """Return the integer if the value is a known integer, else None."""
    if isinstance(value, Const) and isinstance(value.value, int) and not isinstance(value.value, bool):
        return value.value
    return None


def field_names(value: Value | None) -> tuple[str, ...] | None:
    """Return the names in ``new Fields(...)``, or in a list or an array of strings. Returns None if a name is not known."""
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
    """Return the expression that makes the object. It calls a constructor or a static method.

    >>> made_by(Instance("Split", (), Place("A.java", 1))), made_by(Instance("Reader.getInt", (), Place("A.java", 1)))
    ('new Split(...)', 'Reader.getInt(...)')
    """
    new = "" if value.simple_type[:1].islower() else "new "
    return f"{new}{value.type}(...)"


def plain(value: Value) -> Any:
    """Return the value as a Python object, or an `Unresolved` if it is not known."""
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
