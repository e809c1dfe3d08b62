"""Translates a Kafka producer's options from the Java client's names to librdkafka's. Users may write either name (K8)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from stormspark.errors import InvalidTopologyError

__all__ = ["librdkafka_properties", "serializer"]

_SERIALIZERS: dict[str, Callable[[Any], bytes]] = {
    "IntegerSerializer": struct.Struct(">i").pack,
    "LongSerializer": struct.Struct(">q").pack,
    "DoubleSerializer": struct.Struct(">d").pack,
}
#: Options of Java's producer that have another name in librdkafka.
_RENAMED = {
    "max.request.size": "message.max.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
}
#: Options that are not supported. The values say what to do instead.
_REFUSED = {
    "sasl.jaas.config": "give sasl.username and sasl.password",
    "ssl.truststore.location": "give ssl.ca.location, a PEM file",
    "ssl.truststore.password": "give ssl.ca.location, a PEM file",
    "transactional.id": "give its prefix to with_transactions: each task has an id of its own",
    "interceptor.classes": "interceptors are Java classes; give a function to with_producer_callback",
    "metric.reporters": "reporters are Java classes; librdkafka has statistics.interval.ms",
    "partitioner.class": "give partitioner, by default murmur2_random: the partitions that Java's producer chooses",
}


def serializer(name: str, properties: Mapping[str, Any]) -> Callable[[Any], bytes | None]:
    """Return the function that turns keys or messages into bytes.

    The value of the option ``name`` is this function, or the name of one of Java's serializers for integers, longs and doubles.
    If it is any other name, or the option is not set, strings become UTF-8, bytes and the like become bytes, None stays None, and
    other values raise TypeError.
    """
    given = properties.get(name)
    if callable(given):
        return given  # type: ignore[no-any-return]
    pack = _SERIALIZERS.get(str(given).rpartition(".")[2])
    if pack is not None:
        return lambda value: None if value is None else pack(value)
    return _as_bytes


def _as_bytes(value: Any) -> bytes | None:
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    msg = (
        f"KafkaBolt writes strings and bytes, got {value!r:.100} of type {type(value).__name__}: give it a mapper that returns "
        f"bytes, or the property value.serializer"
    )
    raise TypeError(msg)


def librdkafka_properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options by librdkafka's names, without those that the bolt applies itself.

    Raises `InvalidTopologyError` for an option or a serializer that is not supported, and if no option names the servers.
    """
    found: dict[str, Any] = {}
    for name, value in properties.items():
        if name in _REFUSED:
            msg = f"KafkaBolt: {name} can't be set: {_REFUSED[name]}"
            raise InvalidTopologyError(msg)
        if name in ("key.serializer", "value.serializer"):
            known = {"StringSerializer", "ByteArraySerializer", *_SERIALIZERS}
            if not callable(value) and str(value).rpartition(".")[2] not in known:
                msg = (
                    f"KafkaBolt: {name} must be a function that returns bytes, or one of Java's {', '.join(sorted(known))}, got "
                    f"{value!r}"
                )
                raise InvalidTopologyError(msg)
        elif name == "buffer.memory":
            found["queue.buffering.max.kbytes"] = max(1, int(value) // 1024)
        elif name != "max.block.ms":
            found[_RENAMED.get(name, name)] = str(value).lower() if isinstance(value, bool) else value
    if "bootstrap.servers" not in found and "metadata.broker.list" not in found:
        msg = "KafkaBolt: its producer properties need bootstrap.servers, such as 'kafka-1:9092,kafka-2:9092'"
        raise InvalidTopologyError(msg)
    return found
