"""KafkaBolt without a broker: what it is told to do, and what it says when that can't be."""

from __future__ import annotations

import pickle
import re
import socket
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from stormspark.api import Tuple
from stormspark.checkpoint.key_value_store import KeyValueStore
from stormspark.connectors import (
    FieldIndexTopicSelector,
    FieldNameBasedTupleToKafkaMapper,
    FieldNameTopicSelector,
    KafkaBolt,
)
from stormspark.errors import InvalidTopologyError, UnavailableError, UnsupportedEnvironmentError
from stormspark.testing import RecordingCollector, make_context, make_tuple


def nowhere() -> str:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        return f"127.0.0.1:{held.getsockname()[1]}"


def bolt_for(**properties: Any) -> KafkaBolt:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return (
        KafkaBolt()
        .with_producer_properties({"bootstrap.servers": nowhere()} | named)
        .with_topic_selector("words")
    )


def prepared(
    bolt: KafkaBolt, conf: dict[str, Any] | None = None, *, in_transaction: bool = False
) -> tuple[KafkaBolt, RecordingCollector]:
    """A copy of it, prepared as a task is."""
    task: KafkaBolt = pickle.loads(pickle.dumps(bolt))
    if in_transaction:
        task.init_state(KeyValueStore())
    collector = RecordingCollector(task)
    task.prepare(conf or {}, make_context("sink", task), collector)
    return task, collector


def word(key: Any, message: Any) -> Tuple:
    return make_tuple((key, message), fields=["key", "message"])


def poll_until_settled(bolt: KafkaBolt, collector: RecordingCollector, tuples: int) -> None:
    until = time.monotonic() + 120
    while len(collector.acked) + len(collector.failed) < tuples:
        assert time.monotonic() < until, "no verdict came"
        bolt._producer.poll(0.05)


@pytest.mark.slow
def test_a_message_that_is_not_delivered_in_time_fails_its_tuple_with_the_reason() -> None:
    """K8: asynchronously; the callback is told after the verdict."""
    told: list[Any] = []
    bolt, collector = prepared(bolt_for(message_timeout_ms=300))
    bolt._callback = lambda error, message: told.append((error.str(), len(collector.failed)))
    bolt.execute(word("a", "1"))
    assert not collector.failed
    poll_until_settled(bolt, collector, 1)
    assert collector.reasons == ["Kafka: Local: Message timed out"]
    assert told == [("Local: Message timed out", 1)]
    assert any("not delivered to topic 'words'" in str(error) for error in collector.errors)


def test_a_full_queue_is_waited_for_and_then_fails_the_tuple() -> None:
    """K8: the queue is bounded."""
    bolt, collector = prepared(bolt_for(queue_buffering_max_messages=3, max_block_ms=100))
    for n in range(4):
        bolt.execute(word("a", str(n)))
    assert len(collector.failed) == 1
    assert collector.reasons == [
        "the producer's queue has been full for 0.1 s (max.block.ms): check whether the broker answers"
    ]


@pytest.mark.parametrize("fire_and_forget", [False, True])
def test_in_a_transaction_a_full_queue_fails_the_batch_and_no_tuple(fire_and_forget: bool) -> None:
    """K8, C44: no tuple is to blame for a broker that is away. Tuples after the first one do not wait for it again."""
    configured = bolt_for(
        queue_buffering_max_messages=3, max_block_ms=100, message_timeout_ms=60_000
    ).set_fire_and_forget(fire_and_forget)
    bolt, collector = prepared(configured, in_transaction=True)
    for n in range(6):
        bolt.execute(word("a", str(n)))
    unfit = word("a", 7)
    bolt.execute(unfit)
    assert len(collector.acked) == 6 and collector.failed == [unfit]
    assert len([error for error in collector.errors if "has been full" in str(error)]) == 1
    bolt._producer.purge()  # so that the batch's end need not wait for the broker
    with pytest.raises(
        OSError, match=r"has been full for 0.1 s .* [36] messages of the batch are not written"
    ):
        bolt.pre_save(0)


def test_in_a_transaction_a_useless_producer_fails_the_batch_and_no_tuple() -> None:
    """K8, C44: the next attempt has another producer. Without transactions the task restarts."""

    class Useless:
        def poll(self, seconds: float) -> int:
            return 0

        def produce(self, *message: Any, **options: Any) -> None:
            raise KafkaException(KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "a gap", fatal=True))

        def flush(self, seconds: float) -> int:
            return 0

    bolt, collector = prepared(bolt_for(), in_transaction=True)
    bolt._producer = Useless()
    tup = word("a", "1")
    bolt.execute(tup)
    assert collector.acked == [tup]
    with pytest.raises(OSError, match="a gap"):
        bolt.pre_save(0)
    bolt, _ = prepared(bolt_for())
    bolt._producer = Useless()
    with pytest.raises(KafkaException):
        bolt.execute(tup)


def test_messages_that_cleanup_cant_deliver_are_an_error() -> None:
    """So the topology does not end with exit code 0."""
    bolt, _ = prepared(bolt_for().set_fire_and_forget(True))
    bolt._producer = SimpleNamespace(flush=lambda seconds: 3)
    with pytest.raises(UnavailableError, match="3 messages were not delivered within 9 s"):
        bolt.cleanup()


@pytest.mark.slow
def test_sync_waits_for_the_verdict_and_fire_and_forget_for_nothing() -> None:
    """A synchronous bolt waits until Kafka has answered; fire-and-forget acks at once (K8)."""
    bolt, collector = prepared(bolt_for(message_timeout_ms=200).set_async(False))
    bolt.execute(word("a", "1"))
    assert collector.reasons == ["Kafka: Local: Message timed out"]
    bolt, collector = prepared(bolt_for().set_fire_and_forget(True))
    tup = word("a", "1")
    bolt.execute(tup)
    assert collector.acked == [tup]


def test_a_tuple_without_topic_is_skipped_and_acked_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A tuple for which the selector names no topic is acked, with a warning in the log (K8)."""
    bolt, collector = prepared(bolt_for().with_topic_selector(FieldNameTopicSelector("to")))
    tup = word("a", "1")
    bolt.execute(tup)
    assert collector.acked == [tup]
    assert "skipping key = 'a', topic selector returned None" in caplog.text


def test_ticks_are_acked_and_not_written() -> None:
    """Ticks are acked, and nothing is written to Kafka (K8, C9)."""
    bolt, collector = prepared(bolt_for())
    tick = make_tuple((1,), component="__system", stream="__tick", fields=["rate_secs"], task=-1)
    bolt.execute(tick)
    assert collector.acked == [tick] and bolt._producer.flush(1) == 0


def test_selectors_and_mappers() -> None:
    """K8: by field, by position, by a function; a key may be absent, a message may not."""
    tup = make_tuple(("errors", "x"), fields=["to", "message"])
    assert FieldNameTopicSelector("to")(tup) == "errors"
    assert FieldNameTopicSelector("where", "rest")(tup) == "rest"
    assert FieldIndexTopicSelector(0)(tup) == "errors"
    assert FieldIndexTopicSelector(7, "rest")(tup) == "rest"
    assert FieldIndexTopicSelector(7)(tup) is None
    assert FieldNameBasedTupleToKafkaMapper()(tup) == (None, "x")
    with pytest.raises(KeyError, match="no field 'message'"):
        FieldNameBasedTupleToKafkaMapper()(make_tuple((1,), fields=["n"]))


@pytest.mark.parametrize(
    ("tup", "reason"),
    [
        (make_tuple((1,), fields=["n"]), "KeyError: .*no field 'message'"),
        (word("a", 1), "TypeError: KafkaBolt writes strings and bytes, got 1 of type int"),
    ],
)
def test_a_tuple_that_can_not_be_written_fails_alone(tup: Tuple, reason: str) -> None:
    """A tuple without a message field, or with a value of a wrong type, fails alone and with the reason (K8)."""
    bolt, collector = prepared(bolt_for())
    bolt.execute(tup)
    bolt.execute(word("a", "1"))
    assert collector.failed == [tup] and not collector.acked
    assert collector.reasons[0] is not None and re.match(reason, collector.reasons[0])


def five(tup: Tuple) -> Any:
    return 5


@pytest.mark.parametrize("in_transactions", [False, True])
@pytest.mark.parametrize("topic", ["", "..", "a b", "ä", "a\0", "x" * 250, five])
def test_a_tuple_whose_topic_can_not_exist_fails_alone(topic: Any, in_transactions: bool) -> None:
    """K8, C42: in an outbox its message could never be delivered, and would hold up all later ones for ever."""
    selector = topic if callable(topic) else FieldNameTopicSelector("to", "words")
    configured = bolt_for().with_topic_selector(selector)
    if in_transactions:
        configured.with_transactions("t")
    bolt, collector = prepared(configured, in_transaction=in_transactions)
    tup = make_tuple((topic, "a", "1"), fields=["to", "key", "message"])
    bolt.execute(tup)
    assert collector.failed == [tup] and not collector.acked
    reason = collector.reasons[0]
    assert reason is not None and "is the name of no topic" in reason and len(reason) < 500


def test_values_are_made_bytes_as_java_does() -> None:
    """K8: Java's own serializers by name, or any function."""
    bolt, _ = prepared(
        bolt_for(
            key_serializer="org.apache.kafka.common.serialization.LongSerializer",
            value_serializer=bytes.fromhex,
        )
    )
    assert bolt._key_bytes(258) == b"\0\0\0\0\0\0\1\2"
    assert bolt._key_bytes(None) is None
    assert bolt._message_bytes("0aff") == b"\x0a\xff"
    plain, _ = prepared(bolt_for(key_serializer="org.apache.kafka.common.serialization.StringSerializer"))
    assert [plain._key_bytes(value) for value in ("é", b"\xff", bytearray(b"x"), None)] == [
        b"\xc3\xa9",
        b"\xff",
        b"x",
        None,
    ]


@pytest.mark.parametrize(
    ("properties", "error"),
    [
        ({}, "need bootstrap.servers"),
        ({"bootstrap.servers": "k:9092", "sasl.jaas.config": "..."}, "sasl.username and sasl.password"),
        ({"bootstrap.servers": "k:9092", "ssl.truststore.location": "t.jks"}, "ssl.ca.location"),
        ({"bootstrap.servers": "k:9092", "transactional.id": "t"}, "can't be set"),
        (
            {"bootstrap.servers": "k:9092", "key.serializer": "com.acme.Mine"},
            "function that returns bytes, or one of Java's",
        ),
    ],
)
def test_options_that_can_not_be_are_refused_at_once(properties: dict[str, Any], error: str) -> None:
    """K8: and it is said what to do."""
    with pytest.raises(InvalidTopologyError, match=error):
        KafkaBolt().with_producer_properties(properties)


def test_options_of_java_and_of_librdkafka_reach_the_producer() -> None:
    """K8: SASL and TLS go through; what librdkafka does not know or allow is its error, in one line."""
    prepared(
        bolt_for(
            acks="all",
            buffer_memory=33554432,
            max_request_size=1048576,
            linger_ms=5,
            retries=3,
            enable_idempotence=False,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_username="me",
            sasl_password="secret",
        )
    )
    with pytest.raises(InvalidTopologyError, match=r'KafkaBolt: No such configuration property: "lingr\.ms"'):
        prepared(bolt_for(lingr_ms=5))
    with pytest.raises(InvalidTopologyError, match=r"security\.protocol"):
        prepared(bolt_for(security_protocol="NONSENSE"))
    with pytest.raises(InvalidTopologyError, match="ssl"):
        prepared(bolt_for(security_protocol="SSL", ssl_ca_location="/no/such/file.pem"))


def test_the_topic_may_come_from_the_configuration() -> None:
    """K8: else it has to be given."""
    bolt = KafkaBolt().with_producer_properties({"bootstrap.servers": nowhere()})
    task, _ = prepared(bolt, {"topic": "words"})
    assert task._selector is not None and task._selector(word("a", "b")) == "words"
    with pytest.raises(InvalidTopologyError, match="KafkaBolt has no topic"):
        prepared(bolt)


def test_a_message_timeout_of_months_is_one_that_librdkafka_takes() -> None:
    """K8, C27: windows of weeks need such a timeout, without transactions."""
    bolt = bolt_for()
    context = make_context("sink", bolt)
    context.max_topology_message_timeout = 60 * 86_400
    bolt.prepare({}, context, RecordingCollector(bolt))
    assert bolt._end_secs * 1000 < 2**31


def test_without_confluent_kafka_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """K8: in one line."""
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(
        UnsupportedEnvironmentError, match=r"^KafkaBolt needs confluent-kafka: pip install .*$"
    ):
        prepared(bolt_for())
