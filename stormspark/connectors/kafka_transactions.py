"""Batches of messages to Kafka, each in one Kafka transaction that has its number beside it (K8, C42).

The number is the committed offset of a consumer group of the writer's own, at partition 0 of a topic: Kafka commits it together
with the messages, or neither. Whoever writes next makes a producer with the same ``transactional.id``; that fences a former one
off and ends what it had begun, and only then the number is read: so it says for good what is delivered.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from stormspark.errors import InvalidTopologyError, UnsupportedEnvironmentError

__all__ = ["Message", "TransactionalProducer"]

_TRANSACTION_MS = 60_000
#: What a consumer needs to know too: where the brokers are, and how to talk to them.
_OF_CLIENTS = (
    "bootstrap.servers", "metadata.broker.list", "client.", "broker.", "reconnect.", "socket.", "security.", "sasl.", "ssl.",
)  # fmt: skip


class Message(NamedTuple):
    """For one topic, in bytes."""

    topic: str
    key: bytes | None
    value: bytes | None


class TransactionalProducer:
    """Delivers batches as ``name``, with librdkafka's ``properties``. Connects with the first one.

    ``block_secs`` is how long it waits for an answer; to deliver messages takes ``message.timeout.ms`` more, at most.

    Raises `UnsupportedEnvironmentError` without confluent-kafka, and `InvalidTopologyError` for properties that can't be.
    """

    def __init__(
        self, name: str, properties: Mapping[str, Any], logger: logging.Logger, *, block_secs: float = 5.0
    ) -> None:
        try:
            import confluent_kafka
        except ImportError as error:
            msg = "KafkaBolt needs confluent-kafka: pip install confluent-kafka"
            raise UnsupportedEnvironmentError(msg) from error
        self._kafka: Any = confluent_kafka
        self.name, self._logger = name, logger
        self._properties = {
            "transaction.timeout.ms": _TRANSACTION_MS,
            # Else some calls wait a minute for a broker that is gone, whatever they are told.
            "socket.timeout.ms": max(1000, int(block_secs * 1000)),
            # The next transaction comes at once, and the coordinator has been at the last one for some milliseconds then.
            "retry.backoff.ms": 20,
        } | dict(properties)
        limit = int(self._properties["transaction.timeout.ms"])
        for timeout in "message.timeout.ms", "delivery.timeout.ms":
            if timeout in self._properties:
                limit = self._properties[timeout] = min(limit, int(self._properties[timeout]))
        self._block_secs, self._deliver_secs = block_secs, limit / 1000 + block_secs
        self._properties["transactional.id"] = name
        self._producer: Any = None
        self._group: Any = None
        #: The last batch that is known to be delivered.
        self.delivered = -1
        self._made()  # now, so that properties that can't be are told of at once

    def deliver(
        self,
        txid: int,
        messages: Sequence[Message],
        marked_at: str,
        callback: Callable[[Any, Any], None] | None = None,
    ) -> None:
        """All messages, in order, and the number ``txid`` at topic ``marked_at``: or, if it is there already, nothing.

        After an exception, KafkaException mostly, nobody knows what came of it, until the next call finds out.
        """
        if txid <= self.find(marked_at):
            return
        try:
            self._transact(txid, messages, marked_at, callback)
            self.delivered = txid
        except BaseException:
            self._give_up()
            raise

    def find(self, marked_at: str) -> int:
        """What is delivered, as Kafka knows it; raises KafkaException."""
        try:
            if self._group is None:
                self._begin(marked_at)
        except BaseException:
            self._give_up()
            raise
        return self.delivered

    def _made(self) -> Any:
        try:
            if self._producer is None:
                self._producer = self._kafka.Producer(self._properties, logger=self._logger)
        except self._kafka.KafkaException as error:
            msg = f"KafkaBolt: {error.args[0].str()}"
            raise InvalidTopologyError(msg) from error
        return self._producer

    def _begin(self, marked_at: str) -> None:
        """Fence off who was before, then see what is delivered."""
        self._made().init_transactions(self._block_secs)
        properties = {key: value for key, value in self._properties.items() if key.startswith(_OF_CLIENTS)}
        group = self._kafka.Consumer(
            properties
            | {"group.id": self.name, "isolation.level": "read_committed", "enable.auto.commit": False},
            logger=self._logger,
        )
        try:
            (marker,) = group.committed([self._kafka.TopicPartition(marked_at, 0)], self._block_secs)
            if marker.error is not None:
                raise self._kafka.KafkaException(marker.error)
        except BaseException:
            group.close()
            raise
        self._group = group
        self.delivered = max(-1, marker.offset - 1)  # a negative one: there is none

    def _transact(
        self,
        txid: int,
        messages: Sequence[Message],
        marked_at: str,
        callback: Callable[[Any, Any], None] | None,
    ) -> None:
        producer = self._producer
        refused: list[str] = []

        def delivered(error: Any, message: Any) -> None:
            if error is not None and not refused:
                refused.append(f"not delivered to topic {message.topic()!r}: {error}")
            if callback is not None:
                callback(error, message)

        producer.begin_transaction()
        try:
            for message in messages:
                while True:
                    try:
                        producer.produce(message.topic, message.value, message.key, on_delivery=delivered)
                        break
                    except BufferError:
                        producer.poll(0.05)
                producer.poll(0)
            marker = self._kafka.TopicPartition(marked_at, 0, txid + 1)
            group = self._group.consumer_group_metadata()
            self._within(
                2 * self._block_secs,
                lambda: producer.send_offsets_to_transaction([marker], group, self._block_secs),
            )
            producer.commit_transaction(self._deliver_secs)
        except self._kafka.KafkaException as error:
            if refused:
                raise OSError(
                    refused[0]
                ) from error  # why, and not only that the transaction can't be committed
            raise

    def _within(self, secs: float, call: Callable[[], object]) -> None:
        """A call that may never return; raises KafkaException if it has not after ``secs``.

        Before librdkafka has the fixes of its issues 5456 and 5511, it does not look at the time while it waits for the group's
        coordinator, and waits for a connection that it has closed for good if that broker was away. The call is left to itself
        then: whatever it still does is fenced off by the next producer.
        """
        raised: list[BaseException] = []

        def run() -> None:
            try:
                call()
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=run, name="kafka-transaction", daemon=True)
        thread.start()
        thread.join(secs)
        if thread.is_alive():
            reason = f"no answer from the coordinator of group {self.name!r} in {secs:g} s"
            raise self._kafka.KafkaException(
                self._kafka.KafkaError(self._kafka.KafkaError._TIMED_OUT, reason)
            )
        if raised:
            raise raised[0]

    def _give_up(self) -> None:
        """Of this producer nothing more is known: the next one asks."""
        producer, self._producer = self._producer, None
        group, self._group = self._group, None
        if producer is not None:
            producer.purge()
        if group is not None:
            group.close()

    def close(self) -> None:
        """Nothing more will be delivered."""
        self._give_up()
