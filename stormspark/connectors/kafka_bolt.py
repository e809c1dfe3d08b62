"""A bolt that writes tuples to Kafka, and acks them once the broker has them (K8)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

from stormspark.api import OutputCollector, TickTupleAwareBolt, TopologyContext, Tuple
from stormspark.api.state import KeyValueState, TransactionalSink
from stormspark.connectors.kafka_transactions import Message, TransactionalProducer
from stormspark.connectors.outbox import Outbox
from stormspark.connectors.producer_properties import librdkafka_properties, serializer
from stormspark.errors import InvalidTopologyError, UnavailableError
from stormspark.extras import require

__all__ = [
    "FieldIndexTopicSelector",
    "FieldNameBasedTupleToKafkaMapper",
    "FieldNameTopicSelector",
    "KafkaBolt",
]

#: Returns the name of the topic that a tuple goes to. If it returns None, the tuple is skipped.
TopicSelector = Callable[[Tuple], str | None]
#: Returns a tuple's key and message.
TupleToKafkaMapper = Callable[[Tuple], tuple[Any, Any]]
#: Is called for each message. The first argument is the error, or None; the second is confluent-kafka's message.
ProducerCallback = Callable[[Any, Any], None]

_POLL_SECS = 0.01
_BLOCK_MS, _BLOCK_MS_IN_TRANSACTIONS = 1000, 5000
_END_SECS = 9.0
#: The longest message.timeout.ms: librdkafka's times have 32 bits, and `_end_secs` is a second longer.
_MOST_MS = 2_147_000_000
#: The names that a topic of Kafka can have, but for "." and "..".
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
#: librdkafka's message.max.bytes.
_MOST_BYTES = 1_000_000
#: Keys of the task's state. `_MARKED_AT` holds the name of a topic. Kafka keeps the number of the last delivered batch there, as
#: the offset that a consumer group of this task has committed. `_DELIVERED` holds the number of the last batch that the bolt
#: knows to be delivered.
_MARKED_AT, _DELIVERED = "kafka.marked_at", "kafka.delivered"


@dataclass(frozen=True)
class FieldNameTopicSelector:
    """A topic selector that takes the topic from a field. If a tuple does not have the field, its topic is ``default``.

    >>> from stormspark.testing import make_tuple
    >>> select = FieldNameTopicSelector("to", "others")
    >>> select(make_tuple(("errors", "x"), fields=["to", "n"])), select(make_tuple(("x",), fields=["n"]))
    ('errors', 'others')
    """

    field: str
    default: str | None = None

    def __call__(self, tup: Tuple) -> str | None:
        """Return the topic of a tuple."""
        topic = tup.get(self.field, self.default)
        return None if topic is None else str(topic)


@dataclass(frozen=True)
class FieldIndexTopicSelector:
    """A topic selector that takes the topic from the value at a position. If a tuple is shorter, its topic is ``default``."""

    index: int
    default: str | None = None

    def __call__(self, tup: Tuple) -> str | None:
        """Return the topic of a tuple."""
        topic = tup[self.index] if self.index < len(tup) else self.default
        return None if topic is None else str(topic)


@dataclass(frozen=True)
class FieldNameBasedTupleToKafkaMapper:
    """A mapper that takes the key and the message from two fields. A tuple without the key's field has no key.

    >>> from stormspark.testing import make_tuple
    >>> FieldNameBasedTupleToKafkaMapper("word", "n")(make_tuple(("storm", 3), fields=["word", "n"]))
    ('storm', 3)
    """

    key: str = "key"
    message: str = "message"

    def __call__(self, tup: Tuple) -> tuple[Any, Any]:
        """Return the key and the message of a tuple. Raises KeyError if the tuple has no message field."""
        return tup.get(self.key), tup[self.message]


@lru_cache(maxsize=1024)
def _check_topic(topic: str) -> None:
    """Raise ValueError if Kafka can have no topic with this name. A message for such a topic could never be delivered."""
    if not isinstance(topic, str) or topic in (".", "..") or not _TOPIC.fullmatch(topic):
        msg = (
            f"{topic!r:.300} is the name of no topic: a name has 1 to 249 letters of ASCII, digits, dots, underscores and "
            f"hyphens; let the topic selector return such a name"
        )
        raise ValueError(msg)


@dataclass(frozen=True)
class _DefaultTopicSelector:
    topic: str

    def __call__(self, tup: Tuple) -> str:
        return self.topic


class KafkaBolt(TransactionalSink, TickTupleAwareBolt):
    """A bolt that writes each tuple to Kafka as one message, and acks the tuple once the broker has the message (K8).

    If the delivery fails, the tuple fails with the reason. Strings are written as UTF-8, bytes unchanged, and None as a null.
    For other values, set a serializer, or a mapper that returns bytes. The bolt needs confluent-kafka.

    If the topology's batches are transactions (C42), a batch is committed only after the broker has its messages, but
    `set_fire_and_forget` turns this off. If the broker can't be reached, no tuple fails, and the batch runs again. The messages
    are written while the batch runs, so a batch that runs again writes them again.

    With `with_transactions`, the messages are delivered after their batch is committed, and each is written once.

    >>> bolt = (
    ...     KafkaBolt()
    ...     .with_producer_properties({"bootstrap.servers": "kafka:9092", "compression.type": "zstd"})
    ...     .with_topic_selector("counts")
    ...     .with_tuple_to_kafka_mapper(FieldNameBasedTupleToKafkaMapper("word", "count"))
    ... )
    """

    _required_modules = ("confluent_kafka",)
    #: The task's state. This attribute and the next ones are used only if batches are transactions.
    _state: KeyValueState[Any, Any] | None = None
    #: The messages that are not delivered yet.
    _outbox: Outbox[list[Message]] | None = None
    #: Why messages of this batch could not be delivered (`_lost`), and the number of these messages (`_losses`).
    _lost, _losses = "", 0

    def __init__(self) -> None:
        self._properties: dict[str, Any] = {}
        self._selector: TopicSelector | None = None
        self._mapper: TupleToKafkaMapper = FieldNameBasedTupleToKafkaMapper()
        self._asynchronous = True
        self._fire_and_forget = False
        self._callback: ProducerCallback | None = None
        self._transactions, self._transactional_id = False, ""

    def with_transactions(self, transactional_id: str | None = None) -> Self:
        """Write each message exactly once, for consumers with ``isolation.level=read_committed``.

        The topology's batches become transactions (C42), and each task writes its messages of a batch in one Kafka transaction.
        The messages are first committed with the batch, in the task's state, and then delivered. The Kafka transaction also
        commits the batch's number, as the offset of a consumer group that belongs to this task.

        The name of this group is also the producer's transactional id. It consists of ``transactional_id``, the component's id
        and a random id of the task, which stays the same when the topology starts again. ``transactional_id`` is ``stormspark-``
        and the topology's name by default.

        Brokers forget the batch's number after a week (``offsets.retention.minutes``). If a topology starts again after that,
        the messages of its last batch may be written twice, and the bolt reports that.

        While the broker can't be reached, batches go on, and up to 64 MB of messages per task wait in the state. Each try to
        deliver them blocks the worker, usually for up to ``max.block.ms`` (5000 by default with `with_transactions`). A try
        during which the broker goes away can also take ``message.timeout.ms``.
        """
        self._transactions, self._transactional_id = True, transactional_id or ""
        return self

    @property
    def needs_transactions(self) -> bool:
        """Whether `with_transactions` was called."""
        return self._transactions

    def with_producer_properties(self, properties: Mapping[str, Any]) -> Self:
        """Set the producer's options, by the names of librdkafka or of Java's producer. ``bootstrap.servers`` is required.

        - ``key.serializer`` and ``value.serializer`` are functions that return bytes, or the names of Java's classes for
          strings, bytes, integers, longs and doubles.
        - ``max.block.ms`` (1000 by default) is how long a tuple may wait for room in the producer's queue. After that the tuple
          fails or, if batches are transactions, its batch fails. While it waits, all tasks of the worker wait,
          unless the bolt's executors have threads of their own.
        - ``message.timeout.ms`` is how long a message may stay in the queue. The default is the topology's message timeout,
          and with `with_transactions` ``transaction.timeout.ms`` at most. After that time the tuple's tree has timed out, and the
          spout emits the message again. So a later delivery would only
          write the message twice.

        As with Java's producer, the producer is idempotent and keeps the order of messages.

        Raises `InvalidTopologyError` for an option that is not supported. The message says what to do instead.
        """
        self._properties = dict(properties)
        librdkafka_properties(self._properties)
        return self

    def with_topic_selector(self, selector: str | TopicSelector) -> Self:
        """Set the topic. ``selector`` is a name, or a function that returns the name for a tuple.

        If the function returns None, the tuple is skipped and acked, with a warning. Without a selector, the topic is the
        value of ``topic`` in the topology's configuration.
        """
        self._selector = _DefaultTopicSelector(selector) if isinstance(selector, str) else selector
        return self

    def with_tuple_to_kafka_mapper(self, mapper: TupleToKafkaMapper) -> Self:
        """Set the function that returns a tuple's key and message.

        The default takes them from the fields ``key`` and ``message``.
        """
        self._mapper = mapper
        return self

    def set_async(self, asynchronous: bool) -> Self:
        """Set whether the bolt goes on before a tuple is delivered. By default it does.

        With False, the bolt waits for the delivery of each tuple. That is slow. The whole worker waits, unless the
        bolt's executors have threads of their own.
        """
        self._asynchronous = asynchronous
        return self

    def set_fire_and_forget(self, fire_and_forget: bool) -> Self:
        """Set whether tuples are acked at once. By default they are not.

        With True, only the producer callback hears of deliveries that fail. `with_transactions` makes this setting useless.
        """
        self._fire_and_forget = fire_and_forget
        return self

    def with_producer_callback(self, callback: ProducerCallback) -> Self:
        """Call ``callback(error, message)`` for each message, after its tuple is acked or failed."""
        self._callback = callback
        return self

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Make the producer.

        Raises `InvalidTopologyError` for settings that can't work, and `UnsupportedEnvironmentError` without confluent-kafka.
        """
        self._collector, self._logger = collector, context.logger
        self._block_secs = float(self._properties.get("max.block.ms", _BLOCK_MS)) / 1000
        self._key_bytes = serializer("key.serializer", self._properties)
        self._message_bytes = serializer("value.serializer", self._properties)
        if self._selector is None:
            if not isinstance(conf.get("topic"), str):
                msg = "KafkaBolt has no topic: give it one with with_topic_selector, or set 'topic' in the configuration"
                raise InvalidTopologyError(msg)
            self._selector = _DefaultTopicSelector(conf["topic"])
        timeout_ms = int(min(context.max_topology_message_timeout * 1000, _MOST_MS))
        self._end_secs = timeout_ms / 1000 + 1
        if self._transactions:
            self._begin_transactions(context, timeout_ms)
        else:
            self._producer = self._make_producer(timeout_ms)
            context.set_timer(_POLL_SECS, self._serve)

    def _make_producer(self, timeout_ms: int) -> Any:
        kafka = require("confluent_kafka", "KafkaBolt")
        self._kafka_error = kafka.KafkaException
        try:
            return kafka.Producer(self._librdkafka_properties(timeout_ms), logger=self._logger)
        except kafka.KafkaException as error:
            msg = f"KafkaBolt: {error.args[0].str()}"
            raise InvalidTopologyError(msg) from error

    def _librdkafka_properties(self, timeout_ms: int) -> dict[str, Any]:
        properties = {"enable.idempotence": True, "partitioner": "murmur2_random"} | librdkafka_properties(
            self._properties
        )
        if not {"message.timeout.ms", "delivery.timeout.ms"} & properties.keys():
            properties["message.timeout.ms"] = timeout_ms
        properties.setdefault("error_cb", lambda error: self._collector.report_error(f"Kafka: {error}"))
        return properties

    # -- batches that are transactions -----------------------------------------------------------------------

    def init_state(self, state: KeyValueState[Any, Any]) -> None:  # type: ignore[override]
        """Keep the task's state, which exists only if batches are transactions.

        Make the outbox if `with_transactions` was called.
        """
        self._state = state
        self._outbox = Outbox(state, self._deliver) if self._transactions else None

    def pre_save(self, checkpoint_id: int) -> None:
        """If `with_transactions` was called, put the batch's messages into the outbox. Otherwise wait until the broker
        has them, unless `set_fire_and_forget` was called.

        Raises `UnavailableError` if the outbox is full, and OSError if the broker does not get the messages. The batch then runs
        again.
        """
        if self._outbox is not None:
            self._save(self._outbox, checkpoint_id)
            return
        left = 0 if self._fire_and_forget else self._producer.flush(self._end_secs)
        if left or self._lost:
            msg = f"{self._lost or 'the broker does not answer'}: {left + self._losses} messages of the batch are not written"
            raise OSError(msg)

    def post_save(self, checkpoint_id: int) -> None:
        """Deliver the messages in the outbox. If this raises an error, the bolt tries again at the end of a later batch."""
        if self._outbox is not None:
            self._outbox.deliver(checkpoint_id)

    def _begin_transactions(self, context: TopologyContext, timeout_ms: int) -> None:
        assert self._outbox is not None and self._state is not None
        properties = self._librdkafka_properties(timeout_ms)
        self._most_bytes = int(properties.get("message.max.bytes", _MOST_BYTES))
        prefix = self._transactional_id or f"stormspark-{context.topology_name}"
        name = f"{prefix}-{context.this_component_id}-{self._outbox.name}"
        block_secs = float(self._properties.get("max.block.ms", _BLOCK_MS_IN_TRANSACTIONS)) / 1000
        self._batches = TransactionalProducer(name, properties, self._logger, block_secs=block_secs)
        self._messages: list[Message] = []
        self._marked_at: str | None = self._state.get(_MARKED_AT)

    def _save(self, outbox: Outbox[list[Message]], txid: int) -> None:
        assert self._state is not None
        messages, self._messages = self._messages, []
        size = sum(len(one.key or b"") + len(one.value or b"") + 64 for one in messages)
        outbox.save(txid, messages or None, size)
        if self._marked_at is None and messages:
            self._marked_at = messages[0].topic
            self._state.put(_MARKED_AT, self._marked_at)
        if self._batches.delivered > self._state.get(_DELIVERED, -1):
            self._state.put(_DELIVERED, self._batches.delivered)

    def _deliver(self, txid: int, messages: list[Message]) -> None:
        assert self._marked_at is not None and self._state is not None
        known = self._state.get(_DELIVERED, -1)
        if self._batches.delivered < known and self._batches.find(self._marked_at) < known:
            self._collector.report_error(
                f"Kafka has forgotten that batch {known} was delivered (offsets.retention.minutes, or topic {self._marked_at!r} "
                f"was deleted): messages of the next batch may come twice"
            )
        self._batches.deliver(txid, messages, self._marked_at, self._callback)

    # -- tuples ----------------------------------------------------------------------------------------------

    def process(self, tup: Tuple) -> None:
        """Hand the tuple's message to the producer, or keep it until the batch ends."""
        if self._outbox is None:
            self._producer.poll(0)
        assert self._selector is not None
        try:
            key, message = self._mapper(tup)
            topic = self._selector(tup)
            if topic is None:
                self._logger.warning("skipping key = %r, topic selector returned None.", key)
                self._collector.ack(tup)
                return
            _check_topic(topic)
            key, message = self._key_bytes(key), self._message_bytes(message)
        except Exception as error:  # the user's code is wrong, or the tuple does not fit it
            self._collector.report_error(error)
            self._collector.fail(tup, f"{type(error).__name__}: {error}")
            return
        if self._outbox is not None:
            self._keep(topic, key, message, tup)
            return
        if self._lost:
            self._lose(tup, self._lost)
            return
        if not self._produce(topic, key, message, tup):
            return
        if self._fire_and_forget or self._state is not None:
            self._collector.ack(tup)  # in a transaction, the batch as a whole succeeds or fails
        elif not self._asynchronous:
            while tup.state != 1:
                self._producer.poll(0.1)  # until the message is delivered, or its message.timeout.ms is over

    def _keep(self, topic: str, key: bytes | None, message: bytes | None, tup: Tuple) -> None:
        if (size := len(key or b"") + len(message or b"")) > self._most_bytes:
            reason = f"its message has {size} bytes, but message.max.bytes allows only {self._most_bytes}"
            self._collector.report_error(reason)
            self._collector.fail(tup, reason)
            return
        self._messages.append(Message(topic, key, message))
        self._collector.ack(tup)  # the batch as a whole succeeds or fails

    def on_tick_tuple(self, tick: Tuple) -> None:
        """Ack the tick, and do nothing else."""
        self._collector.ack(tick)

    def cleanup(self) -> None:
        """Wait up to nine seconds for messages that are not delivered yet, because a stop gives this call ten. Raises
        `UnavailableError` if some are still not delivered.

        With `with_transactions` there is no need to wait, because messages in the outbox stay in it until the next start.
        """
        if self._outbox is not None:
            self._batches.close()
        elif left := self._producer.flush(_END_SECS):
            msg = f"{left:,} messages were not delivered within {_END_SECS:g} s of the topology's end"
            raise UnavailableError(msg)

    def _produce(self, topic: str, key: bytes | None, message: bytes | None, tup: Tuple) -> bool:
        """Queue a message as soon as there is room for it. Returns false if there was no room, or if its tuple has failed."""
        wait_until = None
        while True:
            try:
                self._producer.produce(topic, message, key, on_delivery=self._when_delivered(tup))
                return True
            except BufferError:
                wait_until = wait_until or time.monotonic() + self._block_secs
                if time.monotonic() >= wait_until:
                    reason = (
                        f"the producer's queue has been full for {self._block_secs:g} s (max.block.ms): "
                        "check whether the broker answers"
                    )
                    self._collector.report_error(reason)
                    if self._state is not None:
                        self._lose(tup, reason)
                    else:
                        self._collector.fail(tup, reason)
                    return False
                self._producer.poll(min(0.05, self._block_secs))
            except self._kafka_error as error:
                if error.args[0].fatal() and self._state is None:
                    raise  # this producer can't be used any more, so the task starts again
                self._collector.report_error(error)
                if error.args[0].fatal():
                    self._lose(tup, f"Kafka: {error.args[0].str()}")  # the next try has another producer
                    return False
                self._collector.fail(tup, f"Kafka: {error.args[0].str()}")
                return False

    def _lose(self, tup: Tuple, reason: str) -> None:
        """In a transaction, ack a tuple that can't be written now. `pre_save` then raises ``reason``, so the batch runs again."""
        self._lost = self._lost or reason
        self._losses += 1
        self._collector.ack(tup)

    def _when_delivered(self, tup: Tuple) -> ProducerCallback | None:
        if self._fire_and_forget:
            return self._callback
        collector, callback = self._collector, self._callback
        in_batch = self._state is not None

        def delivered(error: Any, message: Any) -> None:
            if in_batch:
                if error is not None:
                    self._lost = self._lost or f"not delivered to topic {message.topic()!r}: {error}"
                    self._losses += 1
            elif error is None:
                collector.ack(tup)
            else:
                collector.report_error(f"not delivered to topic {message.topic()!r}: {error}")
                collector.fail(tup, f"Kafka: {error.str()}")
            if callback is not None:
                callback(error, message)

        return delivered

    def _serve(self) -> None:
        """Run the callbacks of deliveries, even while no tuple arrives."""
        self._producer.poll(0)
