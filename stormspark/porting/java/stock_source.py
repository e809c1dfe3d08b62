"""Writes Python source for Kafka spouts, Kafka bolts and windows, from objects in Java code and the calls of their methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from stormspark.connectors import KafkaSpoutConfig
from stormspark.errors import StormsparkError
from stormspark.porting.findings import Unresolved
from stormspark.porting.java.python_text import python_name, quoted, shown
from stormspark.porting.java.values import (
    Call,
    Instance,
    Items,
    Name,
    Pair,
    Pairs,
    Unknown,
    Value,
    integer,
    plain,
    text,
)

__all__ = ["Use", "kafka_bolt", "kafka_spout", "window_calls"]

#: A function that adds an import of a dotted name to the file. It returns the name by which the file can use the object.
Use: TypeAlias = Callable[[str], str]

_WINDOW_CALLS: Final = {
    "withWindow": "with_window",
    "withTumblingWindow": "with_tumbling_window",
    "withTimestampField": "with_timestamp_field",
    "withLag": "with_lag",
    "withLateTupleStream": "with_late_tuple_stream",
    "withWatermarkInterval": "with_watermark_interval",
    "withMessageIdField": "with_message_id_field",
    "withPersistence": "with_persistence",
    "withMaxEventsInMemory": "with_max_events_in_memory",
}
_UNITS: Final = {
    "MILLISECONDS": 1,
    "SECONDS": 1000,
    "MINUTES": 60_000,
    "HOURS": 3_600_000,
    "DAYS": 86_400_000,
}


def kafka_spout(instance: Instance, ours: str, use: Use) -> str | None:
    """Return the source of a KafkaSpout with the known part of its configuration.

    Return None if the configuration or a topic is not known, or if the spout has a translator. Then the skeleton gets a class for
    the spout. In place of unknown servers, the source has ``localhost:9092``.
    """
    config = instance.arguments[0] if instance.arguments else None
    if not isinstance(config, Instance) or len(config.arguments) < 2:
        return None
    if any(call.name == "setRecordTranslator" for call in config.calls):
        return None  # a class in the skeleton can declare the translator's streams
    servers, *topics = config.arguments
    if config.simple_type == "SpoutConfig":  # of storm-kafka: Zookeeper, topic, a folder in Zookeeper, id
        servers, topics = Unknown(""), topics[:1]
    names = [text(one) for value in topics for one in (value.items if isinstance(value, Items) else [value])]
    known = [name for name in names if name is not None]
    if len(known) < len(names) or not known:
        return None
    try:
        KafkaSpoutConfig.builder("localhost:9092", known).build()
    except StormsparkError:
        return None
    use("stormspark.connectors.KafkaSpoutConfig")
    line = f"KafkaSpoutConfig.builder({quoted(text(servers) or 'localhost:9092')}, {shown(known)})"
    line += "".join(_kafka_options(config.calls))
    return f"{use(ours)}({line}.build())"


def _kafka_options(calls: list[Call]) -> Iterator[str]:
    builder = KafkaSpoutConfig.builder("localhost:9092", ["t"])
    for call in calls:
        name = python_name(call.name)
        values = [
            one.text.rpartition(".")[2] if isinstance(one, Name) else plain(one) for one in call.arguments
        ]
        try:
            getattr(builder, name)(*values).build()
        except Exception:
            continue
        yield f".{name}({', '.join(map(shown, values))})"


def kafka_bolt(instance: Instance, ours: str, use: Use) -> str:
    """Return the source of a KafkaBolt, with its topic, its producer's properties and its mapper, as far as they are known.

    In place of unknown servers, the source has ``localhost:9092``.
    """
    line = f"{use(ours)}()"
    properties: dict[str, object] = {"bootstrap.servers": "localhost:9092"}
    for call in instance.calls:
        first = call.arguments[0] if call.arguments else None
        if call.name == "withTopicSelector":
            topic = text(first)
            if (
                isinstance(first, Instance)
                and first.simple_type == "DefaultTopicSelector"
                and first.arguments
            ):
                topic = text(first.arguments[0])
            if topic is not None:
                line += f".with_topic_selector({quoted(topic)})"
        elif call.name == "withProducerProperties" and isinstance(first, Pairs):
            known = {text(p.key): plain(p.value) for p in first.pairs}
            kept = {
                k: v
                for k, v in known.items()
                if k and not isinstance(v, Unresolved) and "serializer" not in k
            }
            properties |= kept
        elif call.name == "withTupleToKafkaMapper" and isinstance(first, Instance):
            names = [text(one) for one in first.arguments]
            if first.simple_type == "FieldNameBasedTupleToKafkaMapper" and None not in names:
                use("stormspark.connectors.FieldNameBasedTupleToKafkaMapper")
                quoted_names = ", ".join(quoted(name) for name in names if name is not None)
                line += f".with_tuple_to_kafka_mapper(FieldNameBasedTupleToKafkaMapper({quoted_names}))"
    return f"{line}.with_producer_properties({shown(properties)})"


def window_calls(instance: Instance | None, own_conf: list[Pair], use: Use) -> Iterator[str]:
    """Yield the calls that set the window, such as ``.with_window(...)``.

    If the length of the window is not known, yield a window of 1 tuple, so that the topology can be planned.
    """
    long = False
    for call in instance.calls if instance else ():
        if call.name not in _WINDOW_CALLS:
            continue
        arguments = [_window_argument(value, use) for value in call.arguments]
        if None in arguments:
            continue
        long = long or call.name in ("withWindow", "withTumblingWindow")
        yield f".{_WINDOW_CALLS[call.name]}({', '.join(one for one in arguments if one is not None)})"
    if not long and not any(
        (text(pair.key) or "").startswith("topology.bolts.window.length") for pair in own_conf
    ):
        use("stormspark.Count")
        yield ".with_tumbling_window(Count(1))"


def _window_argument(value: Value, use: Use) -> str | None:
    if (string := text(value)) is not None:
        return quoted(string)
    if (events := integer(value)) is not None:
        return str(events)
    if not isinstance(value, Instance):
        return None
    kind, arguments = value.type, value.arguments
    number = integer(arguments[0]) if arguments else None
    if number is None:
        return None
    if kind.endswith(("Count", "Count.of")):
        return f"{use('stormspark.Count')}({number})"
    if ".Duration." in f".{kind}":
        unit = kind.rpartition(".")[2].upper()
        return _duration(number * _UNITS.get(unit, 1), use)
    if kind.endswith("Duration") and len(arguments) == 2 and isinstance(arguments[1], Name):
        unit = arguments[1].text.rpartition(".")[2]
        return _duration(number * _UNITS[unit], use) if unit in _UNITS else None
    return None


def _duration(milliseconds: int, use: Use) -> str:
    name = use("stormspark.Duration")
    return (
        f"{name}.seconds({milliseconds // 1000})" if milliseconds % 1000 == 0 else f"{name}({milliseconds})"
    )
