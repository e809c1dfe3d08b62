"""Finds out which columns of a table have changed, from an error of Delta's stream."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["columns_read", "schema_change"]

_COLUMN = re.compile(r"^[ |]*-- (?P<name>.+): (?P<type>\S+) \(nullable")


class _Column(NamedTuple):
    key: str  # with column mapping, a name that stays the same if the column is renamed; otherwise ``name``
    name: str
    type: str


def columns_read(error: str, path: str) -> tuple[list[str], int] | None:
    """Return the columns of the table at ``path`` that the failed query knew and that the error names, and how many it knew.

    The columns come from the query's plan, which is part of the error. If a table has many columns, Spark names only the first
    ones, and how many more there are. Returns None if the error has no such plan.

    >>> columns_read("+- ~StreamingExecutionRelation DeltaSource[file:/data/t], [n#1L, the price#2], name=x", "/data/t")
    (['n', 'the price'], 2)
    """
    found = re.search(
        r"DeltaSource\[(?:file:(?://)?)?" + re.escape(path) + r"/?\], \[(.*?)\](?:,|$)", error, re.MULTILINE
    )
    if found is None:
        return None
    names = [re.sub(r"#\d+L?$", "", name) for name in found[1].split(", ")]
    more = re.fullmatch(r"\.\.\. (\d+) more fields", names[-1])
    if more is None:
        return names, len(names)
    return names[:-1], len(names) - 1 + int(more[1])


def schema_change(error: str, now: Sequence[str]) -> str | None:
    """Describe how the columns of a table have changed, from an error of Delta's stream.

    The error has two schemas. One is from before the change, and the other has the table's present columns, whose names are
    ``now``. Returns None if the error has no such schemas.

    >>> schema_change('''[DELTA_SCHEMA_CHANGED_WITH_VERSION] Detected schema change in version 6:
    ... streaming source schema: root
    ...  -- n: string (nullable = true)
    ...  -- t: string (nullable = true)
    ...
    ... data file schema: root
    ...  -- n: long (nullable = true)
    ...  -- s: string (nullable = true)
    ... ''', ["n", "t"])
    "'n' was long, 's' is gone, 't' is new, in version 6"
    """
    schemas = _of_json(error) or _of_tree(error)
    if schemas is None:
        return None
    one, other = schemas
    if [column.name for column in one] == list(now):
        one, other = other, one
    if [column.name for column in other] != list(now):
        return None
    before, after = {column.key: column for column in one}, {column.key: column for column in other}
    changes = []
    for key, old in before.items():
        new = after.get(key)
        if new is None:
            changes.append(f"{old.name!r} is gone")
        elif new.name != old.name:
            changes.append(f"{old.name!r} is now called {new.name!r}")
        elif new.type != old.type:
            changes.append(f"{old.name!r} was {old.type}")
    changes += [f"{column.name!r} is new" for key, column in after.items() if key not in before]
    version = re.search(r"schema change in version (\d+)", error)
    return (", ".join(changes) or "their order or properties") + (
        f", in version {version[1]}" if version else ""
    )


def _of_json(error: str) -> tuple[list[_Column], list[_Column]] | None:
    found = [re.search(mark + r" schema: (?={)", error) for mark in ("Read", "Incompatible data")]
    schemas = []
    for mark in found:
        if mark is None:
            return None
        try:
            fields = json.JSONDecoder().raw_decode(error, mark.end())[0]["fields"]
        except ValueError:  # the error was truncated
            return None
        schemas.append(
            [
                _Column(
                    field["metadata"].get("delta.columnMapping.physicalName", field["name"]),
                    field["name"],
                    json.dumps(field["type"]).strip('"'),
                )
                for field in fields
            ]
        )
    return schemas[0], schemas[1]


def _of_tree(error: str) -> tuple[list[_Column], list[_Column]] | None:
    head, found, tail = error.partition("data file schema: root")
    begin = head.rfind("streaming source schema: root")
    if not found or begin < 0:
        return None
    return _columns(head[begin:]), _columns(tail)


def _columns(tree: str) -> list[_Column]:
    """Return the columns of the first level, which have the smallest indent."""
    lines = [(line.index("--"), match) for line in tree.splitlines() if (match := _COLUMN.match(line))]
    first = min((indent for indent, _ in lines), default=0)
    return [
        _Column(match["name"], match["name"], match["type"]) for indent, match in lines if indent == first
    ]
