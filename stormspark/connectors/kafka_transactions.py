"""Delivers batches of messages to Kafka. Each batch is one Kafka transaction, which also commits the batch's number (K8, C42).

The transaction commits the number as an offset, at partition 0 of a topic, for a consumer group that only this writer uses. Kafka
commits both the messages and the number, or neither. The next writer makes a producer with the same ``transactional.id``. Kafka
then fences the former producer and ends its open transaction. Only after that does the writer read the number, so the number
can't change any more.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from stormspark.errors import InvalidTopologyError
from stormspark.extras import require

__all__ = ["Message", "TransactionalProducer"]

_TRANSACTION_MS = 60_000
#: Properties whose names begin with one of these are needed by the producer and by the consumer. They say where the brokers are,
#: and how to connect to them.
_OF_CLIENTS = (
    "bootstrap.servers", "metadata.broker.list", "client.", "broker.", "reconnect.", "socket.", "security.", "sasl.", "ssl.",
)  # fmt: skip


class Message(NamedTuple):
    """A message for one topic, as bytes."""

    topic: str
    key: bytes | None
    value: bytes | None


class TransactionalProducer:
    """A producer that delivers each batch in one Kafka transaction, under the transactional id ``name``.

    It takes librdkafka's ``properties``, and waits for no broker before the first call of `deliver` or `find`. It waits about
    ``block_secs`` for an answer. The delivery of a batch's messages may take longer, by ``transaction.timeout.ms`` or by
    ``message.timeout.ms``, whichever is less.

    Raises `UnsupportedEnvironmentError` without confluent-kafka, and `InvalidTopologyError` for properties that can't work.
    """

    def __init__(
        self, name: str, properties: Mapping[str, Any], logger: logging.Logger, *, block_secs: float = 5.0
    ) -> None:
        self._kafka: Any = require("confluent_kafka", "KafkaBolt")
        self.name, self._logger = name, logger
        self._properties = {
            "transaction.timeout.ms": _TRANSACTION_MS,
            # Otherwise some calls wait a minute for a broker that does not answer, even if they have a shorter timeout.
            "socket.timeout.ms": max(1000, int(block_secs * 1000)),
            # When a transaction begins, the coordinator may need some ms more to end the last one. So retry soon.
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
        self._made()  # make the producer now, so that wrong properties are rejected at once

    def deliver(
        self,
        txid: int,
        messages: Sequence[Message],
        marked_at: str,
        callback: Callable[[Any, Any], None] | None = None,
    ) -> None:
        """Deliver all messages in order, and commit the number ``txid`` at topic ``marked_at``.

        Does nothing if Kafka already has that number or a later one. After an exception, mostly a KafkaException, it is unknown
        whether the batch was delivered. The next call finds that out.
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
        """Return the number of the last delivered batch, as Kafka has it, or -1. Raises KafkaException."""
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
        """Fence the former producer, then read the number of the last delivered batch."""
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
        self.delivered = max(-1, marker.offset - 1)  # a negative offset means that no number is committed

    def _transact(
        self,
        txid: int,
        messages: Sequence[Message],
        marked_at: str,
        callback: Callable[[Any, Any], None] | None,
    ) -> None:
        producer = self._producer
        errors: list[str] = []

        def delivered(error: Any, message: Any) -> None:
            if error is not None and not errors:
                errors.append(f"not delivered to topic {message.topic()!r}: {error}")
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
            if errors:
                raise OSError(
                    errors[0]
                ) from error  # name the cause, and not only that the transaction can't be committed
            raise

    def _within(self, secs: float, call: Callable[[], object]) -> None:
        """Make a call that may never return. Raises KafkaException if it has not returned after ``secs``.

        Versions of librdkafka without the fixes of its issues 5456 and 5511 ignore the timeout while they wait for the group's
        coordinator. If the coordinator could not be reached, they wait for a connection that they have closed for good. After the
        exception the call goes on in its thread. The next producer fences this producer, so the call can't have an effect any
        more.
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
        """Drop this producer, whose state is unknown. The next producer asks Kafka which batch was delivered last."""
        producer, self._producer = self._producer, None
        group, self._group = self._group, None
        if producer is not None:
            producer.purge()
        if group is not None:
            group.close()

    def close(self) -> None:
        """Drop the producer, and the consumer that reads the number."""
        self._give_up()
