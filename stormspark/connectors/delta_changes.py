"""What an error of Delta's stream says of columns that have changed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["SchemaChange", "schema_change"]

_COLUMN = re.compile(r"^[ |]*-- (?P<name>.+): (?P<type>\S+) \(nullable")


class _Column(NamedTuple):
    key: str  # what stays the same when it is renamed, where Delta maps columns
    name: str
    type: str


@dataclass(frozen=True)
class SchemaChange:
    """``read`` are the columns that the query read; ``text`` tells how these differ from what it met in the table's history."""

    read: list[str]
    text: str


def schema_change(error: str) -> SchemaChange | None:
    """Out of a text with two schemas, that of the query and that of the data; None where it has none.

    >>> change = schema_change('''[DELTA_SCHEMA_CHANGED_WITH_VERSION] Detected schema change in version 6:
    ... streaming source schema: root
    ...  -- n: string (nullable = true)
    ...  -- t: string (nullable = true)
    ...
    ... data file schema: root
    ...  -- n: long (nullable = true)
    ...  -- s: string (nullable = true)
    ... ''')
    >>> change.read, change.text
    (['n', 't'], "'n' was long, 's' is gone, 't' is new, in version 6")
    """
    schemas = _of_json(error) or _of_tree(error)
    if schemas is None:
        return None
    read, data = schemas
    now, before = {column.key: column for column in read}, {column.key: column for column in data}
    said = []
    for key, old in before.items():
        new = now.get(key)
        if new is None:
            said.append(f"{old.name!r} is gone")
        elif new.name != old.name:
            said.append(f"{old.name!r} is called {new.name!r}")
        elif new.type != old.type:
            said.append(f"{old.name!r} was {old.type}")
    said += [f"{column.name!r} is new" for key, column in now.items() if key not in before]
    version = re.search(r"schema change in version (\d+)", error)
    text = ", ".join(said) or "their order or properties"
    return SchemaChange(
        [column.name for column in read], text + (f", in version {version[1]}" if version else "")
    )


def _of_json(error: str) -> tuple[list[_Column], list[_Column]] | None:
    found = [re.search(mark + r" schema: (?={)", error) for mark in ("Read", "Incompatible data")]
    schemas = []
    for mark in found:
        if mark is None:
            return None
        try:
            fields = json.JSONDecoder().raw_decode(error, mark.end())[0]["fields"]
        except ValueError:  # it was cut off
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
    """The columns of the first level, which stand furthest left."""
    lines = [(line.index("--"), match) for line in tree.splitlines() if (match := _COLUMN.match(line))]
    first = min((indent for indent, _ in lines), default=0)
    return [
        _Column(match["name"], match["name"], match["type"]) for indent, match in lines if indent == first
    ]
