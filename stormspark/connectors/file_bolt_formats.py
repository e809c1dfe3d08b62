"""The formats of the records that a `FileBolt` writes, and of its files' names (K10)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from stormspark.api import Fields, TopologyContext, Tuple

__all__ = ["DefaultFileNameFormat", "DelimitedRecordFormat", "JsonRecordFormat"]


@dataclass(frozen=True)
class DefaultFileNameFormat:
    """The default format of file names: ``{prefix}{component}-{task}-{rotation}-{timestamp}{extension}``.

    The timestamp is in ms.

    >>> from stormspark.testing import make_context
    >>> DefaultFileNameFormat("day-", ".log")(make_context("lines"), 3, 1700000000000)
    'day-lines-1-3-1700000000000.log'
    """

    prefix: str = ""
    extension: str = ".txt"

    def __call__(self, context: TopologyContext, rotation: int, timestamp_ms: int) -> str:
        """Return the name of a task's file. ``rotation`` is the file's number."""
        task = f"{context.this_component_id}-{context.this_task_id}"
        return f"{self.prefix}{task}-{rotation}-{timestamp_ms}{self.extension}"


class DelimitedRecordFormat:
    r"""A record format that joins values, as strings, with ``field_delimiter``, and ends the record with ``record_delimiter``.

    The record has the values of ``fields``, by default of all fields. Nothing is quoted. None becomes an empty string.

    >>> from stormspark.testing import make_tuple
    >>> tup = make_tuple(("a", 1, None), fields=["word", "n", "note"])
    >>> DelimitedRecordFormat("|")(tup), DelimitedRecordFormat(fields=["n", "word"])(tup)
    ('a|1|\n', '1,a\n')
    """

    def __init__(
        self, field_delimiter: str = ",", record_delimiter: str = "\n", fields: Iterable[str] | None = None
    ) -> None:
        self.field_delimiter, self.record_end = field_delimiter, record_delimiter
        self.fields = None if fields is None else Fields(list(fields))

    def __call__(self, tup: Tuple) -> str:
        """Return the record of a tuple."""
        values = tup.values if self.fields is None else tup.select(self.fields)
        return self.field_delimiter.join("" if v is None else str(v) for v in values) + self.record_end


class JsonRecordFormat:
    r"""A record format that writes one JSON object per line, with the names and values of ``fields``, by default of all fields.

    >>> from stormspark.testing import make_tuple
    >>> JsonRecordFormat()(make_tuple(("a", 1), fields=["word", "n"]))
    '{"word": "a", "n": 1}\n'
    """

    record_end = "\n"

    def __init__(self, fields: Iterable[str] | None = None) -> None:
        self.fields = None if fields is None else list(fields)

    def __call__(self, tup: Tuple) -> str:
        """Return the line of a tuple. Raises TypeError for values that JSON can't express."""
        record = tup.as_dict() if self.fields is None else {name: tup[name] for name in self.fields}
        return json.dumps(record, ensure_ascii=False) + "\n"
