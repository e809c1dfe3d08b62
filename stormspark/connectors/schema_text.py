"""Parses Spark's schema strings, and converts the values in files to the columns' types. So files can be read without Spark.

>>> [(column.name, column.type) for column in read_schema("id long, `the price` decimal(10,2) NOT NULL, at timestamp")]
[('id', 'bigint'), ('the price', 'decimal(10,2)'), ('at', 'timestamp')]
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

from stormspark.errors import InvalidTopologyError

__all__ = ["Column", "read_schema"]

_COLUMN = re.compile(
    r"\s*(?:`(?P<quoted>[^`]+)`|(?P<name>\w+))\s*[:\s]\s*(?P<type>\w+\s*(?:\([\d\s,]*\))?)"
    r"(?:\s+NOT\s+NULL)?(?:\s+COMMENT\s+(?:'[^']*'|\"[^\"]*\"))?\s*(?:,|$)",
    re.IGNORECASE,
)
_SAME = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": "decimal",
}
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


@dataclass(frozen=True)
class Column:
    """One column of a file.

    ``of_json`` and ``of_text`` convert a value to the column's type. A value that does not fit becomes None, as in Spark.
    """

    name: str
    type: str

    def of_json(self, value: Any) -> Any:
        """Convert a value that comes from JSON."""
        if value is None:
            return None
        if self.type == "string":
            return (
                value
                if isinstance(value, str)
                else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
            )
        if self.type == "boolean":
            return value if isinstance(value, bool) else None
        if self.type in _BITS:
            return _fitting(value, _BITS[self.type]) if type(value) is int else None
        if self.type in ("float", "double"):
            return float(value) if type(value) in (int, float) else None
        return self.of_text(str(value))

    def of_text(self, text: str) -> Any:
        """Convert a string, such as a field of a CSV file. An empty string becomes None."""
        if text == "":
            return None
        try:
            return _of_text(self.type)(text)
        except (ValueError, InvalidOperation):
            return None


def read_schema(text: str) -> list[Column]:
    """Return the columns of a schema. Raises `InvalidTopologyError` for types that it can't parse, such as nested types."""
    columns, at = [], 0
    while at < len(text):
        found = _COLUMN.match(text, at)
        kind = re.sub(r"\s", "", found["type"].lower()) if found else ""
        base = kind.partition("(")[0]
        kind = _SAME.get(base, base) + kind[len(base) :]
        if found is None or not _is_known(kind):
            msg = (
                f"the schema {text!r} has {text[at:].strip()!r}, whose type can't be read without Spark: use string, "
                f"boolean, tinyint, smallint, int, bigint, float, double, decimal, date, timestamp"
            )
            raise InvalidTopologyError(msg)
        columns.append(Column(found["quoted"] or found["name"], kind))
        at = found.end()
    return columns


def _is_known(kind: str) -> bool:
    try:
        _of_text(kind)
    except KeyError:
        return False
    return True


def _of_text(kind: str) -> Callable[[str], Any]:
    if kind.startswith("decimal"):
        numbers = [int(number) for number in re.findall(r"\d+", kind)]
        digits, scale = (numbers or [10])[0], (numbers[1:] or [0])[0]
        return lambda text: _decimal(text, digits, scale)
    return _TEXTS[kind]


def _boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.strip().lower())


def _decimal(text: str, digits: int, scale: int) -> Decimal | None:
    value = Decimal(text.strip()).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    return value if abs(value) < 10 ** (digits - scale) else None


def _whole(bits: int) -> Callable[[str], int | None]:
    return lambda text: _fitting(int(text), bits)


def _fitting(value: int, bits: int) -> int | None:
    return value if -(1 << bits - 1) <= value < 1 << bits - 1 else None


def _timestamp(text: str) -> datetime:
    """Parse a timestamp. Without a zone it is in UTC, which is the zone of stormspark's Spark sessions."""
    at = datetime.fromisoformat(text.strip())
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


_TEXTS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "boolean": _boolean,
    **{kind: _whole(bits) for kind, bits in _BITS.items()},
    "float": float,
    "double": float,
    "date": lambda text: date.fromisoformat(text.strip()),
    "timestamp": _timestamp,
    "timestamp_ntz": lambda text: datetime.fromisoformat(text.strip()),
}
