"""Streams: their ids, and how a component declares what it emits (A10, A13)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stormspark.api.fields import Fields
from stormspark.errors import InvalidTopologyError
from stormspark.grouping import DEFAULT_STREAM, GlobalStreamId

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "DEFAULT_STREAM",
    "SYSTEM_COMPONENT",
    "TICK_STREAM",
    "GlobalStreamId",
    "OutputFieldsDeclarer",
    "StreamDeclaration",
]

#: The component and stream of tick tuples (C9, A13).
SYSTEM_COMPONENT = "__system"
TICK_STREAM = "__tick"


@dataclass(frozen=True)
class StreamDeclaration:
    """A declared output stream. On a ``direct`` stream the producer chooses the receiving task (A10, D11).

    ``schema`` gives the types of the values, if they were declared. Vectorised bolts need it.
    """

    id: str
    fields: Fields
    direct: bool = False
    schema: pa.Schema | None = None


class OutputFieldsDeclarer:
    """The object that collects a component's declarations (A10).

    >>> declarer = OutputFieldsDeclarer("split")
    >>> declarer.declare(Fields("word"))
    >>> declarer.declare_stream("long words", Fields("word", "length"))
    >>> sorted(declarer.streams)
    ['default', 'long words']

    A stream is *typed* if a ``pyarrow.Schema`` declares its fields. Its tuples may then go to vectorised bolts.

    >>> import pyarrow as pa
    >>> declarer.declare_stream("typed", pa.schema({"word": pa.string(), "length": pa.int64()}))
    >>> declarer.streams["typed"].fields
    Fields('word', 'length')
    """

    def __init__(self, component: str) -> None:
        self._component = component
        self._streams: dict[str, StreamDeclaration] = {}

    def declare(self, fields: Fields | Iterable[str] | pa.Schema, direct: bool = False) -> None:
        """Declare the default stream."""
        self.declare_stream(DEFAULT_STREAM, fields, direct=direct)

    def declare_stream(
        self, stream: str, fields: Fields | Iterable[str] | pa.Schema, direct: bool = False
    ) -> None:
        """Declare a stream. Raises `InvalidTopologyError` if it has no name, is already declared, or has wrong fields."""
        if not isinstance(stream, str) or not stream:
            msg = f"component {self._component!r} declares a stream without a name: {stream!r}"
            raise InvalidTopologyError(msg)
        if stream in self._streams:
            msg = f"component {self._component!r} declares stream {stream!r} twice"
            raise InvalidTopologyError(msg)
        schema = _schema(fields)
        if schema is not None:
            fields = schema.names
        named = fields if isinstance(fields, Fields) else Fields(fields)
        self._streams[stream] = StreamDeclaration(stream, named, direct, schema)

    @property
    def streams(self) -> Mapping[str, StreamDeclaration]:
        """All declared streams, by stream id."""
        return self._streams


def _schema(fields: Any) -> pa.Schema | None:
    """Return ``fields`` if it is a schema, else None.

    Code that has made a schema has imported pyarrow, so this module need not import it.
    """
    pyarrow = sys.modules.get("pyarrow")
    return fields if pyarrow is not None and isinstance(fields, pyarrow.Schema) else None
