"""A Kafka message, and the deserializers that turn its bytes into values."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from stormspark.errors import InvalidTopologyError

__all__ = ["Deserializer", "KafkaRecord", "deserializer_of"]

Deserializer = Callable[[bytes], Any]


class KafkaRecord(NamedTuple):
    """A message with its deserialized key and value, as a translator receives it.

    ``timestamp`` is in ms since 1970, or None if the message has none.
    """

    topic: str
    partition: int
    offset: int
    key: Any
    value: Any
    timestamp: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def _text(data: bytes) -> str:
    return data.decode()


def _bytes(data: bytes) -> bytes:
    return data


def _json(data: bytes) -> Any:
    return json.loads(data)


#: The deserializers that have names in stormspark.
_NAMED: dict[str, Deserializer] = {"str": _text, "bytes": _bytes, "json": _json}
#: Maps the names of Java's deserializers to stormspark's.
_JAVA = {"StringDeserializer": "str", "ByteArrayDeserializer": "bytes"}


def deserializer_of(name: str | Deserializer, option: str) -> Deserializer:
    """Return the deserializer of that name: ``str`` (UTF-8), ``bytes`` or ``json``.

    For the first two, the name of the Java client's class is also allowed. A function of bytes is returned unchanged. Raises
    `InvalidTopologyError` for other names.

    >>> deserializer_of("json", "value_deserializer")(b"[1, 2]")
    [1, 2]
    >>> deserializer_of("org.apache.kafka.common.serialization.StringDeserializer", "key.deserializer")(b"key")
    'key'
    """
    if callable(name):
        return name
    found = _NAMED.get(_JAVA.get(name.rpartition(".")[2], name))
    if found is None:
        msg = (
            f"{option} must be 'str', 'bytes', 'json' or a function of bytes, got {name!r}: give a function for a "
            f"deserializer of your own"
        )
        raise InvalidTopologyError(msg)
    return found
