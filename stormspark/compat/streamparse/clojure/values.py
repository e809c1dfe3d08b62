"""The values of Clojure that have no counterpart in Python. Strings, numbers, booleans and nil are Python's own.

A vector or a list is a tuple, a map is a dict, and a set is a frozenset.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["ClojureError", "JavaValue", "Keyword", "Unknown", "printed"]


class ClojureError(Exception):
    """A file that can't be read as Clojure. ``line`` is the line of the error."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line
        self.problem = problem


@dataclass(frozen=True)
class Keyword:
    """A keyword, such as ``:shuffle``. Its name has no colon."""

    name: str

    def __str__(self) -> str:
        return f":{self.name}"


@dataclass(frozen=True, eq=False)
class Unknown:
    """A value that only Clojure or Java can compute. ``line`` is the line of its form, and ``why`` the reason."""

    line: int
    text: str
    why: str

    def __str__(self) -> str:
        return f"?({self.text})"


@dataclass(eq=False)
class JavaValue:
    """A Java object that Clojure code makes, as in ``(KafkaSpout. config)``: its class, and the arguments of its constructor."""

    class_name: str
    arguments: tuple[Any, ...]
    line: int
    #: The file that has the line, if it is another one than the topology's.
    file: str = ""
    #: The fields that ``set!`` sets, with the lines where it does.
    fields_set: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"({self.class_name}. ...)"


def printed(value: Any) -> str:
    """Return a value as Clojure would print it.

    >>> printed({"k": (1, None, True, Keyword("p"))})
    '{"k" [1 nil true :p]}'
    """
    match value:
        case None:
            return "nil"
        case bool():
            return str(value).lower()
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case dict():
            return "{" + ", ".join(f"{printed(key)} {printed(one)}" for key, one in value.items()) + "}"
        case tuple():
            return f"[{' '.join(map(printed, value))}]"
        case frozenset():
            return "#{" + " ".join(sorted(map(printed, value))) + "}"
    return str(value)
