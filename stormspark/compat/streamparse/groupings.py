"""The groupings for ``inputs`` (A34)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stormspark.compat.streamparse.errors import SpecTypeError, SpecValueError
from stormspark.compat.streamparse.java import JavaObject, checked_arguments
from stormspark.user_line import user_line

__all__ = ["ChosenGrouping", "Grouping"]


@dataclass(frozen=True, eq=True)
class ChosenGrouping:
    """One of Storm's groupings. ``kind`` is its name in Storm. A fields grouping without ``fields`` is the global grouping."""

    kind: str
    fields: list[str] | None = None
    custom_object: JavaObject | None = None
    custom_serialized: bytes | None = None

    def __hash__(self) -> int:
        return hash((self.kind, tuple(self.fields or ())))

    def __repr__(self) -> str:
        if self.kind == "fields" and self.fields:
            return f"fields({self.fields!r})"
        return "GLOBAL" if self.kind == "fields" else self.kind.upper()


class Grouping:
    """The groupings by which a bolt can subscribe to a stream (A34).

    >>> Grouping.SHUFFLE, Grouping.fields("word"), Grouping.GLOBAL
    (SHUFFLE, fields(['word']), GLOBAL)
    """

    __slots__ = ()

    SHUFFLE = ChosenGrouping("shuffle")
    GLOBAL = ChosenGrouping("fields", [])
    DIRECT = ChosenGrouping("direct")
    ALL = ChosenGrouping("all")
    NONE = ChosenGrouping("none")
    LOCAL_OR_SHUFFLE = ChosenGrouping("local_or_shuffle")

    @classmethod
    def fields(cls, *fields: Any) -> ChosenGrouping:
        """Return a grouping that sends equal values of these fields to the same task.

        Pass names, or one list of names. Raises ValueError if there are no names.
        """
        names = list(fields[0]) if len(fields) == 1 and isinstance(fields[0], list) else list(fields)
        if not names:
            msg = f"{user_line()}: List cannot be empty for fields grouping"  # A36
            raise SpecValueError(msg)
        return ChosenGrouping("fields", names)

    @classmethod
    def custom_object(cls, java_class_name: str, arg_list: Sequence[Any]) -> ChosenGrouping:
        """Return a custom grouping in Java. It can be written to a Flux file, but stormspark can't run it."""
        arguments = checked_arguments(arg_list, user_line())
        return ChosenGrouping("custom_object", custom_object=JavaObject(java_class_name, arguments))

    @classmethod
    def custom_serialized(cls, java_serialized: bytes) -> ChosenGrouping:
        """Return a custom grouping in Java, from its serialized bytes. stormspark can't run it."""
        if not isinstance(java_serialized, bytes):
            msg = (
                f"{user_line()}: Argument to custom_serialized must be a serialized Java class as bytes. Given: "
                f"{java_serialized!r}"
            )
            raise SpecTypeError(msg)
        return ChosenGrouping("custom_serialized", custom_serialized=java_serialized)
