"""The settings of a Kafka spout: Storm's KafkaSpoutConfig, with Python's spelling (K1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from stormspark.api import DEFAULT_STREAM, ExponentialBackoff, Fields, Routed
from stormspark.connectors.kafka.properties import client_conf, java_deserializers
from stormspark.connectors.kafka.record import Deserializer, KafkaRecord, deserializer_of
from stormspark.connectors.kafka.translators import (
    DefaultRecordTranslator,
    RecordTranslator,
    as_translator,
)
from stormspark.errors import InvalidTopologyError

__all__ = ["FirstPollOffsetStrategy", "KafkaSpoutConfig", "KafkaSpoutConfigBuilder", "ProcessingGuarantee"]


class ProcessingGuarantee(StrEnum):
    """How often each message is processed: at least once, at most once, or without a guarantee (K2)."""

    AT_LEAST_ONCE = "AT_LEAST_ONCE"
    AT_MOST_ONCE = "AT_MOST_ONCE"
    NO_GUARANTEE = "NO_GUARANTEE"


class FirstPollOffsetStrategy(StrEnum):
    """A strategy that decides where a topology without a checkpoint begins to read (K3).

    The UNCOMMITTED strategies go on from the offsets that the consumer group has committed, if there are any. The other
    strategies go on from such offsets only if the topology itself has committed them since it was first deployed.
    """

    EARLIEST = "EARLIEST"
    LATEST = "LATEST"
    TIMESTAMP = "TIMESTAMP"
    UNCOMMITTED_EARLIEST = "UNCOMMITTED_EARLIEST"
    UNCOMMITTED_LATEST = "UNCOMMITTED_LATEST"
    UNCOMMITTED_TIMESTAMP = "UNCOMMITTED_TIMESTAMP"


@dataclass(frozen=True, kw_only=True)
class _Options:
    """The settings that have defaults. Times are in ms, as in Storm; only those in `retry` are in seconds."""

    #: Settings of the consumer, by the names of librdkafka or of the Java client. No repr shows them, because they may hold
    #: passwords.
    props: Mapping[str, Any] = field(default_factory=dict, repr=False)
    #: The consumer group under whose name offsets are committed; by default ``group.id`` in `props`. If there is neither, nothing
    #: is committed.
    group_id: str | None = None
    processing_guarantee: ProcessingGuarantee = ProcessingGuarantee.AT_LEAST_ONCE
    first_poll_offset_strategy: FirstPollOffsetStrategy = FirstPollOffsetStrategy.UNCOMMITTED_EARLIEST
    #: For the TIMESTAMP strategies: ms since 1970, or a datetime.
    start_timestamp: int | datetime | None = None
    offset_commit_period_ms: int = 30_000
    #: How many offsets of a partition may be handed out beyond its lowest open message. Further offsets of the partition have to
    #: wait (W13).
    max_uncommitted_offsets: int = 10_000_000
    #: A task takes at most this many messages from Kafka at once.
    max_poll_records: int = 500
    #: How long a task waits for the next message that it has to read, if that message has not arrived yet.
    poll_timeout_ms: int = 50
    #: How often the spout looks for new partitions, and for new topics that match a pattern.
    partition_refresh_period_ms: int = 2_000
    #: When a failed message is emitted again (K4).
    retry: ExponentialBackoff = field(default_factory=ExponentialBackoff)
    record_translator: RecordTranslator = field(default_factory=DefaultRecordTranslator)
    #: Whether the spout emits a tuple of None values if the translator returns None (K7). By default it emits nothing. The tuple
    #: goes to the default stream. If the translator does not have the default stream, it must have exactly one stream, and the
    #: tuple goes to that stream.
    emit_null_tuples: bool = False
    #: Whether tuples have message ids even if the guarantee needs none. Max spout pending and the statistics need message ids.
    tuple_tracking_enforced: bool = False
    #: One batch reads at most this many offsets from all partitions together. If it is None, a batch reads as many as the tasks
    #: can process.
    max_offsets_per_trigger: int | None = None
    #: What happens if a topic does not exist when the topology starts: that is an error, or the spout waits for the topic.
    unknown_topic: Literal["fail", "wait"] = "fail"
    #: What the topology does if a partition's log was cut (a new leader did not have all of it, or a disk was lost): continue at
    #: the log's new end, or stop. If the brokers give topics no ids, nobody can tell whether the log was cut or the topic was
    #: made again. In this case "continue" reads the whole topic again, but with AT_MOST_ONCE it continues at the new end.
    truncated_log: Literal["continue", "fail"] = "continue"
    key_deserializer: str | Deserializer = "str"
    value_deserializer: str | Deserializer = "str"


@dataclass(frozen=True)
class KafkaSpoutConfig(_Options):
    """The configuration of a `KafkaSpout`: which topics it reads from which servers, and how.

    ``topics`` is a topic's name, several names, or a compiled pattern that must match a topic's whole name.

    Raises `InvalidTopologyError` for settings that can't work.

    >>> config = KafkaSpoutConfig("broker:9092", ["clicks", "orders"], group_id="shop", max_uncommitted_offsets=100_000)
    >>> config.first_poll_offset_strategy
    <FirstPollOffsetStrategy.UNCOMMITTED_EARLIEST: 'UNCOMMITTED_EARLIEST'>
    >>> KafkaSpoutConfig.builder("broker:9092", "clicks").set_group_id("shop").build().names
    ('clicks',)
    """

    servers: str | Sequence[str]
    topics: str | Iterable[str] | re.Pattern[str]

    def __post_init__(self) -> None:
        for name, value in self._checked().items():
            object.__setattr__(self, name, value)

    def _checked(self) -> dict[str, Any]:
        """Check the settings. Return those that have to be stored in another form."""
        topics = self.topics if isinstance(self.topics, re.Pattern) else _names(self.topics)
        servers = self.servers if isinstance(self.servers, str) else ",".join(self.servers)
        if not servers:
            _refuse("servers must name at least one broker, such as 'broker:9092'")
        client_conf(servers, self.group_id, self.props)
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                _refuse(f"{name} must be a whole number, at least {least}, got {value!r}")
        limit = self.max_offsets_per_trigger
        if limit is not None and (not isinstance(limit, int) or limit < 1):
            _refuse(f"max_offsets_per_trigger must be a whole number, at least 1, or None, got {limit!r}")
        if self.unknown_topic not in ("fail", "wait"):
            _refuse(f"unknown_topic must be 'fail' or 'wait', got {self.unknown_topic!r}")
        if self.truncated_log not in ("continue", "fail"):
            _refuse(f"truncated_log must be 'continue' or 'fail', got {self.truncated_log!r}")
        if not isinstance(self.retry, ExponentialBackoff):
            _refuse(f"retry must be an ExponentialBackoff, got {self.retry!r}")
        strategy = _member(
            FirstPollOffsetStrategy, self.first_poll_offset_strategy, "first_poll_offset_strategy"
        )
        start = self.start_timestamp
        if start is not None and not isinstance(start, int | datetime):
            _refuse(f"start_timestamp must be a whole number of ms since 1970, or a datetime, got {start!r}")
        if strategy.endswith("TIMESTAMP") and start is None:
            _refuse(f"first_poll_offset_strategy {strategy} needs start_timestamp")
        named = java_deserializers(self.props)
        return {
            "topics": topics,
            "servers": servers,
            "group_id": self.group_id or self.props.get("group.id"),
            "processing_guarantee": _member(
                ProcessingGuarantee, self.processing_guarantee, "processing_guarantee"
            ),
            "first_poll_offset_strategy": strategy,
            "start_timestamp": int(start.timestamp() * 1000) if isinstance(start, datetime) else start,
            "record_translator": as_translator(self.record_translator),
            "key_deserializer": deserializer_of(named.get("key", self.key_deserializer), "key_deserializer"),
            "value_deserializer": deserializer_of(
                named.get("value", self.value_deserializer), "value_deserializer"
            ),
        }

    @staticmethod
    def builder(
        servers: str | Sequence[str], topics: str | Iterable[str] | re.Pattern[str], *more_topics: str
    ) -> KafkaSpoutConfigBuilder:
        """Return Storm's builder for the same settings."""
        if more_topics:
            topics = [*([topics] if isinstance(topics, str) else topics), *more_topics]  # type: ignore[misc]
        return KafkaSpoutConfigBuilder(servers, topics)

    @property
    def names(self) -> tuple[str, ...]:
        """The topics' names; empty if there is a pattern."""
        return () if isinstance(self.topics, re.Pattern) else tuple(self.topics)

    @property
    def pattern(self) -> re.Pattern[str] | None:
        """The pattern of the topics' names, or None."""
        return self.topics if isinstance(self.topics, re.Pattern) else None

    @property
    def client_conf(self) -> dict[str, Any]:
        """The configuration for librdkafka."""
        return client_conf(str(self.servers), self.group_id, self.props)

    @property
    def reliable(self) -> bool:
        """Whether tuples have message ids (K2)."""
        return self.processing_guarantee is ProcessingGuarantee.AT_LEAST_ONCE or self.tuple_tracking_enforced


_LEAST = {
    "offset_commit_period_ms": 0,
    "max_uncommitted_offsets": 1,
    "max_poll_records": 1,
    "poll_timeout_ms": 0,
    "partition_refresh_period_ms": 1,
}


def _names(topics: str | Iterable[str]) -> tuple[str, ...]:
    names = (topics,) if isinstance(topics, str) else tuple(dict.fromkeys(topics))
    if not names:
        _refuse("topics must name at least one topic, or be a compiled pattern")
    for name in names:
        # This is Kafka's own rule for names. It also rejects a pattern that somebody forgot to compile.
        if not isinstance(name, str) or not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name):
            _refuse(
                f"{name!r} is not a topic's name, which has only letters, digits, '.', '_' and '-'; give a pattern as "
                f"re.compile({name!r})"
            )
    return names


def _member(kind: type[StrEnum], value: object, option: str) -> Any:
    try:
        return kind(str(value).upper())
    except ValueError:
        _refuse(f"{option} must be one of {', '.join(kind)}, got {value!r}")


def _refuse(problem: str) -> Any:
    msg = f"KafkaSpoutConfig: {problem}"
    raise InvalidTopologyError(msg)


class KafkaSpoutConfigBuilder:
    """A builder of a `KafkaSpoutConfig`, as in Storm: setters return the builder, and `build` returns the configuration (K1)."""

    def __init__(self, servers: str | Sequence[str], topics: str | Iterable[str] | re.Pattern[str]) -> None:
        self._servers, self._topics = servers, topics
        self._options: dict[str, Any] = {}

    def _with(self, **options: Any) -> KafkaSpoutConfigBuilder:
        self._options.update(options)
        return self

    def set_prop(self, key: str, value: Any) -> KafkaSpoutConfigBuilder:
        """Add one setting of the consumer."""
        return self.set_props({key: value})

    def set_props(self, props: Mapping[str, Any]) -> KafkaSpoutConfigBuilder:
        """Add settings of the consumer to those that were set before."""
        return self._with(props={**self._options.get("props", {}), **props})

    def set_group_id(self, group_id: str) -> KafkaSpoutConfigBuilder:
        """Set the consumer group under whose name offsets are committed."""
        return self._with(group_id=group_id)

    def set_processing_guarantee(self, guarantee: ProcessingGuarantee | str) -> KafkaSpoutConfigBuilder:
        """Set how often each message is processed. The default is at least once (K2)."""
        return self._with(processing_guarantee=guarantee)

    def set_first_poll_offset_strategy(
        self, strategy: FirstPollOffsetStrategy | str
    ) -> KafkaSpoutConfigBuilder:
        """Set where a topology without a checkpoint begins to read (K3)."""
        return self._with(first_poll_offset_strategy=strategy)

    def set_start_timestamp(self, timestamp: int | datetime) -> KafkaSpoutConfigBuilder:
        """Set the time at which the TIMESTAMP strategies begin, in ms since 1970 or as a datetime."""
        return self._with(start_timestamp=timestamp)

    def set_offset_commit_period_ms(self, period: int) -> KafkaSpoutConfigBuilder:
        """Set how often offsets are committed for the group."""
        return self._with(offset_commit_period_ms=period)

    def set_max_uncommitted_offsets(self, offsets: int) -> KafkaSpoutConfigBuilder:
        """Set how many offsets of a partition may be handed out beyond its lowest open message."""
        return self._with(max_uncommitted_offsets=offsets)

    def set_max_poll_records(self, records: int) -> KafkaSpoutConfigBuilder:
        """Set how many messages a task may take from Kafka at once."""
        return self._with(max_poll_records=records)

    def set_poll_timeout_ms(self, timeout: int) -> KafkaSpoutConfigBuilder:
        """Set how long a task waits for the next message that it has to read."""
        return self._with(poll_timeout_ms=timeout)

    def set_partition_refresh_period_ms(self, period: int) -> KafkaSpoutConfigBuilder:
        """Set how often the spout looks for new partitions and topics."""
        return self._with(partition_refresh_period_ms=period)

    def set_retry(self, retry: ExponentialBackoff) -> KafkaSpoutConfigBuilder:
        """Set when failed messages are emitted again (K4)."""
        return self._with(retry=retry)

    def set_record_translator(
        self,
        translator: RecordTranslator | Callable[[KafkaRecord], Sequence[Any] | Routed | None],
        fields: Fields | Iterable[str] | None = None,
        stream: str = DEFAULT_STREAM,
    ) -> KafkaSpoutConfigBuilder:
        """Set the translator.

        If it is a function, ``fields`` name the values that it returns, and ``stream`` is their stream (K7).
        """
        return self._with(record_translator=as_translator(translator, fields, stream))

    def set_emit_null_tuples(self, emit: bool) -> KafkaSpoutConfigBuilder:
        """Set whether a tuple of None values is emitted if the translator returns None."""
        return self._with(emit_null_tuples=emit)

    def set_tuple_tracking_enforced(self, enforced: bool) -> KafkaSpoutConfigBuilder:
        """Set whether tuples have message ids even if the guarantee needs none."""
        return self._with(tuple_tracking_enforced=enforced)

    def set_max_offsets_per_trigger(self, offsets: int | None) -> KafkaSpoutConfigBuilder:
        """Set how many offsets one batch may read from all partitions together."""
        return self._with(max_offsets_per_trigger=offsets)

    def set_unknown_topic(self, what: Literal["fail", "wait"]) -> KafkaSpoutConfigBuilder:
        """Set what happens if a topic does not exist at the start: that is an error, or the spout waits for the topic."""
        return self._with(unknown_topic=what)

    def set_truncated_log(self, what: Literal["continue", "fail"]) -> KafkaSpoutConfigBuilder:
        """Set whether the topology goes on or stops if a partition's log was cut."""
        return self._with(truncated_log=what)

    def set_key_deserializer(self, deserializer: str | Deserializer) -> KafkaSpoutConfigBuilder:
        """Set the deserializer of keys: ``str``, ``bytes``, ``json``, or a function of bytes."""
        return self._with(key_deserializer=deserializer)

    def set_value_deserializer(self, deserializer: str | Deserializer) -> KafkaSpoutConfigBuilder:
        """Set the deserializer of values: ``str``, ``bytes``, ``json``, or a function of bytes."""
        return self._with(value_deserializer=deserializer)

    def build(self) -> KafkaSpoutConfig:
        """Return the configuration. Raises `InvalidTopologyError` for settings that can't work."""
        return KafkaSpoutConfig(self._servers, self._topics, **self._options)
