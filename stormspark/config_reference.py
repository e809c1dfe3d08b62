"""What each setting means: the keys that the engine reads, and those of Storm and Heron, in words.

The words are the comments at the fields of `stormspark.config.Settings`, so that a setting is described once.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import Field, fields
from functools import cache
from typing import Any, NamedTuple

from stormspark.config import Settings, is_of_components
from stormspark.storm_keys import STORM_KEYS

__all__ = ["Entry", "described", "matching"]

_TYPES = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    list: "list",
    dict: "mapping",
}
#: The least value of settings that must be above 0.
_TINY = 1e-6
_FIELD = re.compile(r"    (\w+): .*= _setting\(")
_COMMENT = re.compile(r"    #: ?(.*)")
#: A name of a field of `Settings` in a comment.
_NAME = re.compile(r"(?<!`)`(\w+)`(?!`)")


class Entry(NamedTuple):
    """A key of a configuration."""

    key: str
    #: The default, and the values that the key may have, in words. Both are empty for keys without effect.
    default: str
    values: str
    #: What the key does, or why it has no effect.
    meaning: str
    has_effect: bool = True
    #: Whether a component's own configuration may set it.
    of_components: bool = False


@cache
def described() -> tuple[Entry, ...]:
    """Return all keys, in the order of their names: those that have an effect first.

    >>> next(entry for entry in described() if entry.key == "topology.max.task.parallelism")[1:4]
    ('none', 'whole number of at least 1', 'The largest number of tasks of any component (A16); none: there is no cap.')
    """
    comments = _comments()
    keys = {field.name: field.metadata["key"] for field in fields(Settings)}
    read = [
        Entry(
            key,
            _default(field),
            _values(field),
            _NAME.sub(lambda name: f"`{keys.get(name[1], name[1])}`", comments[field.name]),
            of_components=is_of_components(key),
        )
        for field in fields(Settings)
        for key in (field.metadata["key"],)
    ]
    useless = [
        Entry(key, "", "", one.useless_because, has_effect=False)
        for key, one in STORM_KEYS.items()
        if one.useless_because
    ]
    return (*sorted(read), *sorted(useless))


def matching(words: tuple[str, ...]) -> list[Entry]:
    """Return the keys in whose name or meaning all ``words`` occur.

    >>> [entry.key for entry in matching(("spout", "pending"))]
    ['topology.max.spout.pending']
    """
    wanted = [word.lower() for word in words]
    return [one for one in described() if all(word in f"{one.key} {one.meaning}".lower() for word in wanted)]


def _comments() -> Mapping[str, str]:
    """Return the comment at each field of `Settings`."""
    found: dict[str, str] = {}
    lines: list[str] = []
    for line in inspect.getsource(Settings).splitlines():
        if comment := _COMMENT.match(line):
            lines.append(comment[1])
            continue
        if field := _FIELD.match(line):
            found[field[1]] = " ".join(lines).replace("``", "`").replace("None: ", "none: ")
        lines = []
    return found


def _default(field: Field[Any]) -> str:
    match field.default:
        case None:
            return "none"
        case bool():
            return str(field.default).lower()
        case str():
            return f"{field.default}"
        case _:
            return str(field.default)


def _values(field: Field[Any]) -> str:
    if words := field.metadata["one_of"]:
        return ", ".join(words)
    kinds = list(_kinds(field.metadata["types"]))
    least = field.metadata["least"]
    if least is None:
        return " or ".join(kinds)
    return f"{' or '.join(kinds)} {'above 0' if least == _TINY else f'of at least {least:g}'}"


def _kinds(types: tuple[type, ...]) -> Iterator[str]:
    for kind in types:
        if not (kind is int and float in types):  # a number may be whole
            yield _TYPES[kind]
