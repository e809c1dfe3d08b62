"""What a KafkaSpout can be told, and what it says when that can't work; no broker is asked."""

from __future__ import annotations

import logging
import pickle
import re
from datetime import UTC, datetime
from typing import Any

import cloudpickle
import pytest

from stormspark import Fields
from stormspark.api import ExponentialBackoff, OutputFieldsDeclarer, Routed
from stormspark.connectors import (
    ByTopicRecordTranslator,
    FirstPollOffsetStrategy,
    KafkaRecord,
    KafkaSpout,
    KafkaSpoutConfig,
    ProcessingGuarantee,
    SimpleRecordTranslator,
)
from stormspark.connectors.kafka import DefaultRecordTranslator, RecordTranslator
from stormspark.connectors.kafka.planner import KafkaPlanner, PlannerSettings
from stormspark.errors import InvalidTopologyError

RECORD = KafkaRecord("t", 2, 7, "key", "value", 1000, (("h", b"x"),))


def test_the_builder_and_the_keywords_make_the_same() -> None:
    """K1: Storm's setters, with Python's spelling, in any order."""
    retry, at = ExponentialBackoff(max_retries=3), datetime(2024, 1, 1, tzinfo=UTC)
    built = (
        KafkaSpoutConfig.builder("a:1,b:2", "t", "u")
        .set_prop("client.id", "me")
        .set_props({"fetch.min.bytes": 2})
        .set_group_id("g")
        .set_processing_guarantee("AT_MOST_ONCE")
        .set_first_poll_offset_strategy(FirstPollOffsetStrategy.TIMESTAMP)
        .set_start_timestamp(at)
        .set_offset_commit_period_ms(1)
        .set_max_uncommitted_offsets(2)
        .set_max_poll_records(3)
        .set_poll_timeout_ms(4)
        .set_partition_refresh_period_ms(5)
        .set_retry(retry)
        .set_emit_null_tuples(True)
        .set_tuple_tracking_enforced(True)
        .set_max_offsets_per_trigger(6)
        .set_unknown_topic("wait")
        .set_truncated_log("fail")
        .set_key_deserializer("bytes")
        .set_value_deserializer("json")
        .build()
    )
    said = KafkaSpoutConfig(
        ["a:1", "b:2"],
        ["t", "u"],
        props={"client.id": "me", "fetch.min.bytes": 2},
        group_id="g",
        processing_guarantee=ProcessingGuarantee.AT_MOST_ONCE,
        first_poll_offset_strategy="TIMESTAMP",  # type: ignore[arg-type]
        start_timestamp=1_704_067_200_000,
        offset_commit_period_ms=1,
        max_uncommitted_offsets=2,
        max_poll_records=3,
        poll_timeout_ms=4,
        partition_refresh_period_ms=5,
        retry=retry,
        record_translator=built.record_translator,
        emit_null_tuples=True,
        tuple_tracking_enforced=True,
        max_offsets_per_trigger=6,
        unknown_topic="wait",
        truncated_log="fail",
        key_deserializer="bytes",
        value_deserializer="json",
    )
    assert built == said


def test_the_defaults_are_storms() -> None:
    """K1-K4, K7: but for the poll timeout, which nobody should notice here."""
    config = KafkaSpoutConfig("a:1", "t")
    assert (config.offset_commit_period_ms, config.max_uncommitted_offsets) == (30_000, 10_000_000)
    assert (config.partition_refresh_period_ms, config.max_poll_records) == (2_000, 500)
    assert (config.emit_null_tuples, config.tuple_tracking_enforced) == (False, False)
    assert config.processing_guarantee is ProcessingGuarantee.AT_LEAST_ONCE
    assert config.first_poll_offset_strategy is FirstPollOffsetStrategy.UNCOMMITTED_EARLIEST
    assert config.retry == ExponentialBackoff(0, 0.002, 10, None)
    assert config.record_translator.streams() == {
        "default": Fields("topic", "partition", "offset", "key", "value")
    }


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"props": {"enable.auto.commit": "false"}}, r"enable\.auto\.commit can't be set: .*processing_guarantee"),
        ({"props": {"sasl.jaas.config": "..."}}, r"sasl\.jaas\.config can't be set: .*sasl\.username and sasl\.password"),
        ({"props": {"ssl.truststore.location": "x.jks"}}, r"ssl\.truststore\.location can't be set: .*ssl\.ca\.location"),
        ({"props": {"bootstrap.servers": "b:2"}}, r"bootstrap\.servers can't be set: give the servers as the first argument"),
        ({"props": {"auto.offset.reset": "latest"}}, r"auto\.offset\.reset='latest' is not supported: use first_poll"),
        ({"props": {"value.deserializer": "com.my.AvroDeserializer"}}, r"value_deserializer must be .* give a function"),
        ({"topics": []}, "topics must name at least one topic"),
        ({"topics": "clicks-.*"}, r"'clicks-\.\*' is not a topic's name.*re\.compile"),
        ({"servers": ""}, "servers must name at least one broker"),
        ({"first_poll_offset_strategy": "TIMESTAMP"}, "needs start_timestamp"),
        ({"first_poll_offset_strategy": "OLDEST"}, "must be one of EARLIEST, LATEST, TIMESTAMP, .* got 'OLDEST'"),
        ({"processing_guarantee": "EXACTLY_ONCE"}, "must be one of AT_LEAST_ONCE, .* got 'EXACTLY_ONCE'"),
        ({"max_uncommitted_offsets": 0}, "max_uncommitted_offsets must be a whole number, at least 1, got 0"),
        ({"offset_commit_period_ms": "30"}, "offset_commit_period_ms must be a whole number, at least 0, got '30'"),
        ({"max_offsets_per_trigger": 0}, "max_offsets_per_trigger must be a whole number, at least 1, or None, got 0"),
        ({"max_offsets_per_trigger": "10"}, "max_offsets_per_trigger must be a whole number, at least 1, or None, got '10'"),
        (
            {"first_poll_offset_strategy": "TIMESTAMP", "start_timestamp": "x"},
            r"start_timestamp must be a whole number of ms since 1970, or a datetime, got 'x'",
        ),
        ({"start_timestamp": 1.5}, "start_timestamp must be a whole number of ms since 1970, or a datetime, got 1.5"),
        ({"unknown_topic": "ignore"}, "unknown_topic must be 'fail' or 'wait'"),
        ({"truncated_log": "ignore"}, "truncated_log must be 'continue' or 'fail'"),
        ({"retry": 3}, r"retry must be an ExponentialBackoff"),
        ({"record_translator": lambda record: (record.value,)}, r"needs the names of the fields .*"),
        ({"key_deserializer": "utf8"}, "key_deserializer must be 'str', 'bytes', 'json' or a function"),
    ],
)  # fmt: skip
def test_what_can_not_work_is_refused_at_once(arguments: dict[str, Any], error: str) -> None:
    """K1, K2, K3, K6, K7: where the configuration is written, with what to do instead."""
    with pytest.raises(InvalidTopologyError, match=error):
        KafkaSpoutConfig(**({"servers": "a:1", "topics": "t"} | arguments))


def test_java_names_become_librdkafkas_and_options_pass_through() -> None:
    """K6: SASL and TLS among them."""
    given = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": "secret",
        "ssl.ca.location": "/ca.pem",
        "fetch.max.wait.ms": 7,
        "receive.buffer.bytes": 8,
        "auto.offset.reset": "earliest",
    }
    conf = KafkaSpoutConfig("a:1", "t", props=given | {"group.id": "mine"}).client_conf
    for name in ("security.protocol", "sasl.mechanism", "sasl.username", "sasl.password", "ssl.ca.location"):
        assert conf[name] == given[name]
    assert (conf["fetch.wait.max.ms"], conf["socket.receive.buffer.bytes"], conf["group.id"]) == (
        7,
        8,
        "mine",
    )
    assert (conf["enable.auto.commit"], conf["auto.offset.reset"]) == (False, "error")


def test_passwords_are_in_no_text() -> None:
    """K6: neither of the configuration nor of what is made of it."""
    config = KafkaSpoutConfig("a:1", "t", props={"sasl.password": "secret"})
    planner = KafkaPlanner(PlannerSettings.of(config, "mine"))
    assert config.client_conf["sasl.password"] == "secret"
    assert "secret" not in repr(config) + repr(planner) + repr(KafkaSpout(config))


def test_what_means_nothing_here_is_dropped_aloud(caplog: pytest.LogCaptureFixture) -> None:
    """K6: as of the consumers that share out partitions."""
    with caplog.at_level(logging.WARNING):
        conf = KafkaSpoutConfig("a:1", "t", props={"session.timeout.ms": 1}).client_conf
    assert "session.timeout.ms" not in conf
    assert "session.timeout.ms has no effect here and is ignored" in caplog.text


def test_a_pattern_is_a_compiled_one() -> None:
    """K1: whole names must match."""
    config = KafkaSpoutConfig("a:1", re.compile("clicks-.*"))
    assert config.names == () and config.pattern == re.compile("clicks-.*")
    assert KafkaSpoutConfig("a:1", ["t", "u", "t"]).names == ("t", "u")


@pytest.mark.parametrize(
    ("guarantee", "enforced", "reliable"),
    [("AT_LEAST_ONCE", False, True), ("AT_MOST_ONCE", False, False), ("NO_GUARANTEE", False, False),
     ("NO_GUARANTEE", True, True)],
)  # fmt: skip
def test_message_ids_are_for_at_least_once_or_where_tracking_is_enforced(
    guarantee: Any, enforced: bool, reliable: bool
) -> None:
    """The Kafka spout emits with message ids for at-least-once, or when tracking is enforced (K2)."""
    config = KafkaSpoutConfig("a:1", "t", processing_guarantee=guarantee, tuple_tracking_enforced=enforced)
    assert KafkaSpout(config).reliable is reliable


# -- translators -------------------------------------------------------------------------------------------------


def row(key: bytes | None = b"key", value: bytes | None = b"value") -> tuple[Any, ...]:
    return ("t", 2, 7, key, value, 1000, ())


def spout(**options: Any) -> KafkaSpout:
    return KafkaSpout(KafkaSpoutConfig("a:1", "t", **options))


def test_the_default_translator_gives_topic_partition_offset_key_and_value() -> None:
    """K6, K7: key and value are UTF-8 text; none stays none."""
    assert spout().translate(row()) == ("t", 2, 7, "key", "value")
    assert spout().translate(row(None, None)) == ("t", 2, 7, None, None)
    assert DefaultRecordTranslator().apply(RECORD) == ("t", 2, 7, "key", "value")


@pytest.mark.parametrize(
    ("deserializer", "data", "value"),
    [
        ("str", "ü".encode(), "ü"),
        ("bytes", b"\xff", b"\xff"),
        ("json", b'{"a": 1}', {"a": 1}),
        (len, b"four", 4),
    ],
)
def test_deserializers(deserializer: Any, data: bytes, value: Any) -> None:
    """K6: text, bytes, JSON, or a function."""
    assert spout(value_deserializer=deserializer).translate(row(value=data)) == ("t", 2, 7, "key", value)


def test_what_can_not_be_deserialized_raises() -> None:
    """K7: so the message becomes a dead letter."""
    with pytest.raises(UnicodeDecodeError):
        spout().translate(row(value=b"\xff"))


def translate(record: KafkaRecord) -> Any:
    return {"none": None, "routed": Routed((record.key,), "other")}.get(record.value, (record.value,))


def test_a_function_with_fields_and_a_stream() -> None:
    """K7: its values go to its stream; it may route, and skip."""
    plain = SimpleRecordTranslator(translate, ["v"])
    named = SimpleRecordTranslator(translate, ["v"], "named", more_streams=["other"])
    assert plain.apply(RECORD) == ("value",)
    assert named.apply(RECORD) == Routed(("value",), "named")
    assert named.apply(RECORD._replace(value="routed")) == Routed(("key",), "other")
    assert plain.apply(RECORD._replace(value="none")) is None
    assert named.streams() == {"named": Fields("v"), "other": Fields("v")}


def test_a_topic_may_have_a_translator_of_its_own() -> None:
    """K7: others have the default one; a topic twice, and other fields for the same stream, are errors."""
    by_topic = ByTopicRecordTranslator(lambda record: (record.value,), ["v"])
    by_topic.for_topic("t", lambda record: (record.key, record.value), ["k", "v"], "pairs")
    assert by_topic.apply(RECORD) == Routed(("key", "value"), "pairs")
    assert by_topic.apply(RECORD._replace(topic="x")) == ("value",)
    assert by_topic.streams() == {"default": Fields("v"), "pairs": Fields("k", "v")}
    with pytest.raises(InvalidTopologyError, match="topic 't' already has a translator"):
        by_topic.for_topic("t", lambda record: (), ["v"])
    with pytest.raises(
        InvalidTopologyError, match=r"topic 'u' declares .* for stream 'pairs', which already has"
    ):
        by_topic.for_topic("u", lambda record: (), ["v"], "pairs")


def nothing(record: KafkaRecord) -> None:
    return None


def test_null_tuples_go_to_the_default_stream_or_to_the_only_one() -> None:
    """K7: and with several other streams, the spout refuses to guess."""
    on_default = spout(record_translator=SimpleRecordTranslator(nothing, ["a", "b"]), emit_null_tuples=True)
    assert on_default.translate(row()) == (None, None)
    named = SimpleRecordTranslator(nothing, ["a", "b"], "named")
    on_named = spout(record_translator=named, emit_null_tuples=True)
    assert on_named.translate(row()) == Routed((None, None), "named")
    several = SimpleRecordTranslator(nothing, ["a"], "named", more_streams=["other"])
    assert spout(record_translator=several).translate(row()) is None
    with pytest.raises(InvalidTopologyError, match=r"only the streams 'named', 'other': declare the default"):
        spout(record_translator=several, emit_null_tuples=True)


def test_the_spout_declares_the_translators_streams() -> None:
    """The Kafka spout declares the streams and fields of its record translator (K7)."""
    by_topic = ByTopicRecordTranslator(lambda record: (record.value,), ["v"])
    by_topic.for_topic("u", lambda record: (record.key, record.value), ["k", "v"], "pairs")
    declarer = OutputFieldsDeclarer("kafka")
    spout(record_translator=by_topic).declare_output_fields(declarer)
    declared = {name: stream.fields for name, stream in declarer.streams.items()}
    assert declared == {"default": Fields("v"), "pairs": Fields("k", "v")}


@pytest.mark.parametrize(("emit", "values"), [(False, None), (True, (None, None))])
def test_nothing_or_a_tuple_of_none_for_a_record_that_is_skipped(emit: bool, values: Any) -> None:
    """K7: emit_null_tuples."""
    nothing = SimpleRecordTranslator(lambda record: None, ["a", "b"])
    assert spout(record_translator=nothing, emit_null_tuples=emit).translate(row()) == values


def test_low_marks_are_the_lowest_open_offsets_and_the_blocked_are_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """K5, W13: once for each offset that is in the way."""
    task = spout(max_uncommitted_offsets=100)
    task._highest = {"t-0": 150, "t-1": 120}
    open_ids = [("t", 0, 50), ("t", 0, 60), ("t", 1, 40)]
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            marks = task.low_marks(open_ids, [("t", 1, 30, 120, 1), ("t", 2, 5, 9, 2)])
    marks = {name: offset for name, offset in marks.items() if name}
    assert marks == {"t-0": 50, "t-1": 30, "t-2": 5}
    assert [message.split(":")[0] for message in caplog.messages] == ["t-0 is blocked by offset 50"]
    with caplog.at_level(logging.WARNING):
        task.low_marks([("t", 0, 50), ("t", 1, 20)], [])
    assert caplog.messages[1:] and caplog.messages[1].startswith("t-1 is blocked by offset 20: 100 offsets")


def test_a_spout_and_its_rows_can_be_pickled() -> None:
    """K1: a task works on a copy; what a worker dies with comes back as plain values."""
    made = cloudpickle.loads(
        cloudpickle.dumps(spout(record_translator=SimpleRecordTranslator(lambda r: (r.value,), ["v"])))
    )
    assert made.translate(row()) == ("value",)
    assert pickle.loads(pickle.dumps(row())) == row()


def test_a_translator_is_whatever_has_its_methods() -> None:
    """K7: a user's own class."""

    class Mine:
        def apply(self, record: KafkaRecord) -> Any:
            return Routed((record.offset,), "offsets")

        def streams(self) -> Any:
            return {"offsets": Fields("offset")}

    assert isinstance(Mine(), RecordTranslator)
    assert spout(record_translator=Mine()).translate(row()) == Routed((7,), "offsets")
