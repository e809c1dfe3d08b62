"""Describes components that are not Python classes: a Java object, or a command (A32)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from stormspark.compat.streamparse.errors import SpecTypeError

__all__ = ["ComponentObject", "JavaObject", "ShellComponent", "checked_arguments"]


@dataclass
class JavaObject:
    """A Java class, and the arguments of its constructor."""

    full_class_name: str
    args_list: list[Any] = field(default_factory=list)


@dataclass
class ShellComponent:
    """A command, and its arguments separated by spaces."""

    execution_command: str
    script: str


@dataclass
class ComponentObject:
    """The object that a component consists of, in the form of Storm's Thrift. Exactly one of the three attributes is set."""

    serialized_java: bytes | None = None
    shell: ShellComponent | None = None
    java_object: JavaObject | None = None


def checked_arguments(arguments: Sequence[Any], where: str) -> list[Any]:
    """Return the arguments of a Java constructor. Raises TypeError unless each argument is a bool, bytes, float, int or str."""
    for argument in arguments:
        if not isinstance(argument, bool | bytes | float | int | str):
            msg = f"{where}: Only basic data types can be arguments of Java constructors. Given: {argument!r}"
            raise SpecTypeError(msg)
    return list(arguments)
