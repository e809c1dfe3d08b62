"""Translators, which turn a Kafka record into the values of a tuple (K7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from stormspark.api import DEFAULT_STREAM, Fields, Routed
from stormspark.connectors.kafka.record import KafkaRecord
from stormspark.errors import InvalidTopologyError

__all__ = [
    "DEFAULT_FIELDS",
    "ByTopicRecordTranslator",
    "DefaultRecordTranslator",
    "RecordTranslator",
    "SimpleRecordTranslator",
]

DEFAULT_FIELDS = Fields("topic", "partition", "offset", "key", "value")
_Translate = Callable[[KafkaRecord], "Sequence[Any] | Routed | None"]


@runtime_checkable
class RecordTranslator(Protocol):
    """The interface of translators: `apply` turns a record into values, `streams` declares the streams and their fields."""

    def apply(self, record: KafkaRecord) -> Sequence[Any] | Routed | None:
        """Return the values for the default stream, or a `Routed` for another stream.

        If this returns None, the record is acked and nothing is emitted, unless `KafkaSpoutConfig.emit_null_tuples` is set.
        """

    def streams(self) -> Mapping[str, Fields]:
        """Return the fields of each stream."""


class DefaultRecordTranslator:
    """A translator that emits topic, partition, offset, key and value on the default stream."""

    def apply(self, record: KafkaRecord) -> Sequence[Any]:
        """Return the record without its timestamp and headers."""
        return record[:5]

    def streams(self) -> Mapping[str, Fields]:
        """Return the default stream's fields."""
        return {DEFAULT_STREAM: DEFAULT_FIELDS}


class SimpleRecordTranslator:
    """A translator that calls ``function(record)``, which returns the values of ``fields`` for one stream.

    The function may also return None, to skip the record, or a `Routed`, to name another stream. That stream must be in
    ``more_streams``, and has the same fields.

    >>> words = SimpleRecordTranslator(lambda record: (record.value, record.offset), ["word", "offset"])
    >>> words.apply(KafkaRecord("words", 0, 7, None, "storm"))
    ('storm', 7)
    """

    def __init__(
        self,
        function: _Translate,
        fields: Fields | Iterable[str],
        stream: str = DEFAULT_STREAM,
        more_streams: Iterable[str] = (),
    ) -> None:
        self._function = function
        self._fields = fields if isinstance(fields, Fields) else Fields(fields)
        self._stream = stream
        self._more = tuple(more_streams)

    def apply(self, record: KafkaRecord) -> Sequence[Any] | Routed | None:
        """Call the function. Values that it returns without naming a stream are for the translator's stream."""
        values = self._function(record)
        if self._stream == DEFAULT_STREAM or values is None or isinstance(values, Routed):
            return values
        return Routed(values, self._stream)

    def streams(self) -> Mapping[str, Fields]:
        """Return the stream and ``more_streams``, all with the same fields."""
        return dict.fromkeys((self._stream, *self._more), self._fields)


class ByTopicRecordTranslator:
    """A translator that uses one translator for each topic that `for_topic` names, and a default for all other topics.

    `for_topic` raises `InvalidTopologyError` if the topic already has a translator, or if two translators declare different
    fields for one stream.

    >>> by_topic = ByTopicRecordTranslator(lambda record: (record.value,), ["value"])
    >>> _ = by_topic.for_topic("clicks", lambda record: (record.key, record.value), ["user", "page"], "clicks")
    >>> by_topic.apply(KafkaRecord("clicks", 0, 0, "ann", "/home"))
    Routed(values=('ann', '/home'), stream='clicks')
    >>> by_topic.apply(KafkaRecord("other", 0, 0, "ann", "x"))
    ('x',)
    """

    def __init__(
        self,
        default: _Translate | RecordTranslator,
        fields: Fields | Iterable[str] | None = None,
        stream: str = DEFAULT_STREAM,
    ) -> None:
        self._default = as_translator(default, fields, stream)
        self._streams = dict(self._default.streams())
        self._of: dict[str, RecordTranslator] = {}

    def for_topic(
        self,
        topic: str,
        translator: _Translate | RecordTranslator,
        fields: Fields | Iterable[str] | None = None,
        stream: str = DEFAULT_STREAM,
    ) -> ByTopicRecordTranslator:
        """Set the translator of a topic's records.

        If the translator is a function, ``fields`` are the names of its values, and ``stream`` is the stream for them.
        """
        if topic in self._of:
            msg = f"ByTopicRecordTranslator: topic {topic!r} already has a translator"
            raise InvalidTopologyError(msg)
        made = as_translator(translator, fields, stream)
        for name, its_fields in made.streams().items():
            if self._streams.setdefault(name, its_fields) != its_fields:
                msg = (
                    f"ByTopicRecordTranslator: topic {topic!r} declares {its_fields!r} for stream {name!r}, which "
                    f"already has {self._streams[name]!r}: give the topic a stream of its own"
                )
                raise InvalidTopologyError(msg)
        self._of[topic] = made
        return self

    def apply(self, record: KafkaRecord) -> Sequence[Any] | Routed | None:
        """Return the result of the translator for the record's topic."""
        return self._of.get(record.topic, self._default).apply(record)

    def streams(self) -> Mapping[str, Fields]:
        """Return the streams of all translators."""
        return self._streams


def as_translator(
    translator: _Translate | RecordTranslator,
    fields: Fields | Iterable[str] | None = None,
    stream: str = DEFAULT_STREAM,
) -> RecordTranslator:
    """Return a translator unchanged, or make a translator from a function and its fields.

    Raises `InvalidTopologyError` for a function without fields.
    """
    if isinstance(translator, RecordTranslator):
        return translator
    if fields is None:
        msg = "a translator that is a function needs the names of the fields that it returns: fields=[...]"
        raise InvalidTopologyError(msg)
    return SimpleRecordTranslator(translator, fields, stream)
