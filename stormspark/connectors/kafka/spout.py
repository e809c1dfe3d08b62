"""The spout that reads Kafka topics."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from stormspark.api import DEFAULT_STREAM, ExponentialBackoff, Routed
from stormspark.connectors.kafka.config import KafkaSpoutConfig, ProcessingGuarantee
from stormspark.connectors.kafka.offsets import ASKED, Range, blocked, name_of
from stormspark.connectors.kafka.planner import KafkaPlanner, PlannerSettings, check_topics
from stormspark.connectors.kafka.reader import RangeReader
from stormspark.connectors.kafka.record import KafkaRecord
from stormspark.errors import InvalidTopologyError
from stormspark.spi import RangeSpout

if TYPE_CHECKING:
    from stormspark.api import LocalSource, OutputFieldsDeclarer, TopologyContext

__all__ = ["KafkaSpout"]

_SCHEMA = "topic string, partition int, start bigint, end bigint, place int"
#: If the guarantee is AT_LEAST_ONCE, the tasks are asked for their low marks (see `KafkaSpout.low_marks`) in every fourth batch.
#: While nothing happens, this means every few seconds.
_LOW_MARKS_EVERY = 4
_LISTEN_SECS = 5.0
#: Finds, in Spark's error message, the error that the planner raises if ``truncated_log`` is "fail".
_CUT = re.compile(r"the log of \S+ was cut[:,] [^\n]*truncated_log='fail'[^\n]*")
#: The deployments and components whose topics have been found. If the query starts again in this process, the spout does not look
#: for the topics again, because a restart must not fail if a broker does not answer.
_checked: set[str] = set()


class KafkaSpout(RangeSpout):
    """A spout that emits the messages of Kafka topics. It runs on both engines.

    Message ids are (topic, partition, offset). See `KafkaSpoutConfig` for all settings, and ``docs/kafka.md`` for a guide.

    >>> from stormspark import TopologyBuilder
    >>> from stormspark.testing import TestWordCounter
    >>> config = KafkaSpoutConfig("broker:9092", "words", group_id="count")
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", KafkaSpout(config), parallelism=2)
    >>> _ = builder.set_bolt("count", TestWordCounter()).fields_grouping("words", ["value"])
    """

    partition_column = "place"
    _required_modules = ("confluent_kafka",)

    def __init__(self, config: KafkaSpoutConfig) -> None:
        self.config = config
        self._streams = config.record_translator.streams()
        self._null_stream = self._stream_of_null_tuples() if config.emit_null_tuples else DEFAULT_STREAM
        at_least_once = config.processing_guarantee is ProcessingGuarantee.AT_LEAST_ONCE
        retry = config.retry if at_least_once else ExponentialBackoff(max_retries=0)
        super().__init__(next(iter(self._streams.values())), retry=retry)
        self.reliable = config.reliable
        self.low_marks_every = _LOW_MARKS_EVERY if at_least_once else None
        self._logger = logging.getLogger(__name__)
        self._reader: RangeReader | None = None
        self._highest: dict[str, int] = {}
        self._blocked: dict[str, int] = {}
        self._asked = 0

    def _stream_of_null_tuples(self) -> str:
        """Return the default stream if the translator has it, and otherwise the translator's only stream."""
        streams = list(self._streams)
        if DEFAULT_STREAM not in streams and len(streams) > 1:
            names = ", ".join(map(repr, streams))
            msg = (
                f"KafkaSpout: emit_null_tuples emits on the default stream, but the translator has only the streams {names}: "
                f"declare the default stream, or return a Routed with None values from the translator"
            )
            raise InvalidTopologyError(msg)
        return DEFAULT_STREAM if DEFAULT_STREAM in streams else streams[0]

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the translator's streams and fields."""
        for stream, fields in self._streams.items():
            declarer.declare_stream(stream, fields)

    # -- on the driver ---------------------------------------------------------------------------------------

    def stream(self, spark: Any) -> Any:
        """Return a stream of ranges of offsets, planned by the driver. Raises `InvalidTopologyError` as `check_topics` does."""
        from stormspark.spark.feedback import COMPONENT, STORM_ID
        from stormspark.spark.range_source import range_stream

        deployment = spark.conf.get(STORM_ID, None) or str(uuid.uuid4())
        component = spark.conf.get(COMPONENT, None) or "kafka"
        if (start := f"{deployment} {component}") not in _checked:
            check_topics(self.config)
            _checked.add(start)
        planner = KafkaPlanner(PlannerSettings.of(self.config, deployment))
        return range_stream(spark, planner, _SCHEMA)

    def explain_failure(self, error: str, spark: Any) -> str | None:
        """Return the planner's error if the planner stopped because a log was cut. Every further attempt would raise it again.

        Return None for other errors.
        """
        found = _CUT.search(error)
        return found[0] if found else None

    def local_source(self) -> LocalSource | None:
        """Return a source of the same ranges that works without Spark. Only the group's commits outlive this source."""
        from stormspark.connectors.kafka.local import KafkaLocalSource

        check_topics(self.config)
        return KafkaLocalSource(self.config)

    # -- in a worker -----------------------------------------------------------------------------------------

    def open(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Send warnings to the task's log from now on, and check regularly whether the brokers answer."""
        self._logger = context.logger
        context.set_timer(_LISTEN_SECS, self._listen)

    def _listen(self) -> None:
        if self._reader is not None:
            self._reader.listen()

    def read(
        self, range: tuple[Any, ...], limit: int
    ) -> tuple[list[tuple[Hashable, tuple[Any, ...]]], tuple[Any, ...] | None]:
        """Return messages of the range that have arrived, and the rest of the range; the rest is None if nothing is left.

        If the range only says that the partition has changed, report the change, and return no messages.
        """
        wanted = Range(*range)
        topic, partition, start, end, _ = wanted
        if self._reader is None:
            self._reader = RangeReader(
                self.config.client_conf,
                max_records=self.config.max_poll_records,
                wait_secs=self.config.poll_timeout_ms / 1000,
                logger=self._logger,
                report=self.report_error,
            )
        name = name_of(topic, partition)
        if wanted.change is not None:
            self._report_change(wanted)
            return [], None
        self._highest[name] = max(end, self._highest.get(name, 0))
        messages, rest = self._reader.read(topic, partition, start, end, limit)
        left = tuple(wanted._replace(start=rest)) if rest < end else None
        return [(message[:3], message) for message in messages], left

    def _report_change(self, range: Range) -> None:
        """Report to the driver and in the task's log that reading goes on at an offset that was not expected."""
        assert range.change is not None
        change, position = range.change
        name = name_of(range.topic, range.partition)
        self._highest[name] = position
        if change == "cut":
            self.report_error(
                f"the log of {name} was cut: it ended at {position}, but offsets up to {range.start - 1} had been read. Kafka "
                f"has lost those, by the election of a leader that lacked them or by a disk failure. Reading continues at "
                f"{position}; with truncated_log='fail' the topology would stop instead"
            )
        elif change == "cut or made anew":
            if self.config.processing_guarantee is ProcessingGuarantee.AT_MOST_ONCE:
                goes_on = (
                    f"To read nothing twice, {name} is read on from its end, offset {position}. If the topic is a new one, its "
                    f"messages before that are not read"
                )
            else:
                goes_on = (
                    f"To lose nothing, all partitions of the topic are read from their earliest offsets, {name} from offset "
                    f"{position}. If a log was cut, messages that are left in it come twice"
                )
            self.report_error(
                f"the topic {range.topic!r} was deleted and made again, or a log of it was cut: {name} had been read up to "
                f"offset {range.start - 1}, but ends before that. The topic's earlier or present id could show which, but is "
                f"unknown (a checkpoint of an earlier version, positions that the group has committed, brokers before Kafka 2.8, "
                f"or brokers that do not let this user describe the topic). {goes_on}. With truncated_log='fail' the topology "
                f"would stop instead"
            )
        else:
            self.report_error(
                f"the topic {range.topic!r} was deleted and made again: {name} had been read up to offset "
                f"{range.start - 1}, and is read from its beginning now, offset {position}"
            )

    def size(self, range: tuple[Any, ...]) -> int:
        """Return how many offsets the range has. Some of them may have no message."""
        return Range(*range).size

    def partition_of(self, range: tuple[Any, ...]) -> Hashable:
        """Return the range's topic and partition."""
        return range[:2]

    def translate(self, row: tuple[Any, ...]) -> Sequence[Any] | Routed | None:
        """Deserialize the key and the value, and call the translator (K7).

        If a deserializer or the translator raises an exception, the message becomes a dead letter.
        """
        topic, partition, offset, key, value, timestamp, headers = row
        config = self.config
        record = KafkaRecord(
            topic,
            partition,
            offset,
            None if key is None else config.key_deserializer(key),  # type: ignore[operator]
            None if value is None else config.value_deserializer(value),  # type: ignore[operator]
            timestamp,
            headers,
        )
        values = config.record_translator.apply(record)
        if values is None and config.emit_null_tuples:
            nulls = (None,) * len(self._streams[self._null_stream])
            return nulls if self._null_stream == DEFAULT_STREAM else Routed(nulls, self._null_stream)
        return values

    def low_marks(self, ids: Iterable[Hashable], ranges: Iterable[tuple[Any, ...]]) -> Mapping[str, int]:
        """Return the lowest open offset of each partition, and under `ASKED` how often this method was called.

        Warn if a partition has to wait because of its lowest open offset (W13).
        """
        self._asked += 1
        marks: dict[str, int] = {}
        position: Any
        for position in chain(ids, ranges):  # the third value of a range is its start
            topic, partition, offset = position[:3]
            name = name_of(topic, partition)
            if offset < marks.get(name, offset + 1):
                marks[name] = offset
        held_up = blocked(marks, self._highest, self.config.max_uncommitted_offsets)
        for name, offset in held_up.items():
            if self._blocked.get(name) != offset:
                self._logger.warning(
                    "%s is blocked by offset %d: %s offsets after it are handed out, and max_uncommitted_offsets allows no more "
                    "until it is acked or given up (a retry with max_retries gives up)",
                    name,
                    offset,
                    f"{self._highest[name] - offset:,}",
                )
        self._blocked = held_up
        return {**marks, ASKED: self._asked}

    def close(self) -> None:
        """Close the connection to Kafka."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
