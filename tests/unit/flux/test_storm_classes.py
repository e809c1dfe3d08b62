"""What stands for Storm's own classes, made as Flux files make them."""

import re

import pytest

from stormspark.api import ExponentialBackoff, OutputFieldsDeclarer
from stormspark.connectors import FirstPollOffsetStrategy, KafkaBolt, KafkaSpoutConfig, ProcessingGuarantee
from stormspark.errors import InvalidTopologyError
from stormspark.flux import load
from stormspark.flux.class_names import class_named
from stormspark.local import LocalCluster
from stormspark.testing import (
    RecordingBasicCollector,
    RecordingSpoutCollector,
    make_context,
    make_tuple,
)

KAFKA = "org.apache.storm.kafka.spout.KafkaSpoutConfig"
BUILDER = f"""
- id: b
  className: {KAFKA}$Builder
  constructorArgs: ["broker:9092", [clicks, orders]]
"""
CONFIG = f"className: {KAFKA}\nconstructorArgs: [ref: b]"


def named(class_name):
    return class_named(class_name, "here")


def test_a_kafka_spout_s_configuration_is_built(made):
    """K1, K23: the builder with its properties and methods, as Flux's examples have it."""
    config = made(
        CONFIG,
        """
- {id: translator, className: org.apache.storm.flux.examples.OnlyValueRecordTranslator}
- id: interval
  className: org.apache.storm.kafka.spout.KafkaSpoutRetryExponentialBackoff$TimeInterval
  constructorArgs: [5, MILLISECONDS]
- id: second
  className: org.apache.storm.kafka.spout.KafkaSpoutRetryExponentialBackoff$TimeInterval
  factory: seconds
  factoryArgs: [1]
- id: retry
  className: org.apache.storm.kafka.spout.KafkaSpoutRetryExponentialBackoff
  constructorArgs: [{ref: interval}, {ref: interval}, 2147483647, {ref: second}]
"""
        + BUILDER
        + """
  properties:
  - {name: firstPollOffsetStrategy, value: EARLIEST}
  - {name: recordTranslator, ref: translator}
  - {name: processingGuarantee, value: AT_MOST_ONCE}
  - {name: offsetCommitPeriodMs, value: 10000}
  - {name: retry, ref: retry}
  configMethods:
  - name: setProp
    args: [{"key.deserializer": org.apache.kafka.common.serialization.StringDeserializer}]
  - {name: setProp, args: [group.id, shop]}
  - {name: setMaxUncommittedOffsets, args: [250]}
  - {name: setStartTimeStamp, args: [1700000000000]}
  - {name: setMetricsTimeBucketSizeInSecs, args: [60]}
""",
    )
    assert isinstance(config, KafkaSpoutConfig)
    assert (config.servers, config.names, config.group_id) == ("broker:9092", ("clicks", "orders"), "shop")
    assert config.first_poll_offset_strategy is FirstPollOffsetStrategy.EARLIEST
    assert config.processing_guarantee is ProcessingGuarantee.AT_MOST_ONCE
    assert (config.offset_commit_period_ms, config.max_uncommitted_offsets) == (10_000, 250)
    assert config.start_timestamp == 1_700_000_000_000
    assert config.retry == ExponentialBackoff(0.005, 0.005, 1.0)
    assert list(config.record_translator.streams()["default"]) == ["value"]


@pytest.mark.parametrize(
    ("args", "topics"),
    [("['h:1', a]", ("a",)), ("['h:1', a, b]", ("a", "b")), ("['h:1', {ref: names}]", ("x",))],
)
def test_topics_are_named_in_javas_ways(made, args, topics):
    """K1, K23: one, several, or a set."""
    names = "- {id: names, className: java.util.HashSet, constructorArgs: [[x]]}\n"
    builder = f"- {{id: b, className: {KAFKA}$Builder, constructorArgs: {args}}}\n"
    assert made(CONFIG, names + builder).names == topics


def test_topics_may_be_a_pattern(made):
    """K1, K23: java.util.regex.Pattern."""
    pattern = "- {id: p, className: java.util.regex.Pattern, factory: compile, factoryArgs: ['click.*']}\n"
    builder = f"- {{id: b, className: {KAFKA}$Builder, constructorArgs: ['h:1', {{ref: p}}]}}\n"
    assert made(CONFIG, pattern + builder).pattern == re.compile("click.*")


def test_the_flags_of_a_pattern_count(made):
    """K23: CASE_INSENSITIVE is 2, and MULTILINE is 8; Python has nothing for CANON_EQ, which is 128."""
    pattern = (
        "- {id: p, className: java.util.regex.Pattern, factory: compile, factoryArgs: ['click.*', FLAGS]}\n"
    )
    builder = f"- {{id: b, className: {KAFKA}$Builder, constructorArgs: ['h:1', {{ref: p}}]}}\n"
    found = made(CONFIG, pattern.replace("FLAGS", "10") + builder).pattern
    assert found == re.compile("click.*", re.IGNORECASE | re.MULTILINE) and found.match("CLICKS")
    with pytest.raises(InvalidTopologyError, match="contain 128, which Python does not have"):
        made(CONFIG, pattern.replace("FLAGS", "130") + builder)


@pytest.mark.parametrize(
    ("method", "told"),
    [
        (
            "{name: setFirstPollOffsetStrategy, args: [SOMEWHERE]}",
            "'SOMEWHERE'; choose one of EARLIEST, LATEST",
        ),
        (
            "{name: setProcessingGuarantee, args: [at_least_once]}",
            "there is no ProcessingGuarantee 'at_least_once'",
        ),
        (
            "{name: setTupleListener, args: [x]}",
            "there are no tuple listeners here: use a subclass of KafkaSpout",
        ),
        (
            "{name: setMaxUncommittedOffsets, args: [0]}",
            "max_uncommitted_offsets must be a whole number, at least 1, got 0",
        ),
        ("{name: setZkRoot, args: [x]}", "has no config method setZkRoot"),
    ],
)
def test_unknown_config_methods_of_the_kafka_builder_are_refused(made, method, told):
    """Config methods and values that the Kafka spout does not have are rejected (K1, K3, K14)."""
    with pytest.raises(InvalidTopologyError) as caught:
        made(CONFIG, BUILDER + f"  configMethods: [{method}]\n")
    assert told in str(caught.value)


def test_a_configuration_takes_a_builder(made):
    """K1: KafkaSpoutConfig's constructor."""
    with pytest.raises(
        InvalidTopologyError, match=r"KafkaSpoutConfig needs a KafkaSpoutConfig\$Builder, as a ref"
    ):
        made(f"className: {KAFKA}\nconstructorArgs: [x]")


def test_a_kafka_bolt_is_built(made):
    """K8, K23: producer properties, selector and mapper."""
    bolt = made(
        """
className: org.apache.storm.kafka.bolt.KafkaBolt
configMethods:
- {name: withProducerProperties, args: [ref: properties]}
- {name: withTopicSelector, args: [ref: selector]}
- {name: withTupleToKafkaMapper, args: [ref: mapper]}
properties:
- {name: fireAndForget, value: true}
- {name: async, value: false}
""",
        """
- {id: properties, className: java.util.Properties, configMethods: [{name: put, args: [bootstrap.servers, 'h:1']}]}
- {id: selector, className: org.apache.storm.kafka.bolt.selector.DefaultTopicSelector, constructorArgs: [counts]}
- {id: mapper, className: org.apache.storm.kafka.bolt.mapper.FieldNameBasedTupleToKafkaMapper, constructorArgs: [word, count]}
""",
    )
    assert isinstance(bolt, KafkaBolt)
    assert bolt._properties == {"bootstrap.servers": "h:1"}
    tup = make_tuple(("storm", 3), fields=["word", "count"])
    assert bolt._selector is not None
    assert (bolt._selector(tup), bolt._mapper(tup)) == ("counts", ("storm", 3))
    assert (bolt._fire_and_forget, bolt._asynchronous) == (True, False)


HDFS = """
name: files
components:
- {{id: sync, className: org.apache.storm.hdfs.bolt.sync.CountSyncPolicy, constructorArgs: [1]}}
- {{id: rotation, className: org.apache.storm.hdfs.bolt.rotation.{rotation}}}
- id: names
  className: org.apache.storm.hdfs.bolt.format.{names}
- id: record
  className: org.apache.storm.hdfs.bolt.format.DelimitedRecordFormat
  configMethods: [{{name: withFieldDelimiter, args: ["|"]}}, {{name: withRecordDelimiter, args: [";"]}}]
- id: move
  className: org.apache.storm.hdfs.common.rotation.MoveFileAction
  configMethods: [{{name: toDestination, args: [{folder}/done]}}]
spouts:
- id: words
  className: stormspark.testing.TestWordSpout
  constructorArgs: [5]
bolts:
- id: count
  className: org.apache.storm.testing.TestWordCounter
- id: write
  className: org.apache.storm.hdfs.bolt.HdfsBolt
  configMethods:
  - {{name: withConfigKey, args: [hdfs.config]}}
  - {{name: withFsUrl, args: ["file:///"]}}
  - {{name: withFileNameFormat, args: [ref: names]}}
  - {{name: withRecordFormat, args: [ref: record]}}
  - {{name: withRotationPolicy, args: [ref: rotation]}}
  - {{name: withSyncPolicy, args: [ref: sync]}}
  - {{name: addRotationAction, args: [ref: move]}}
  - {{name: withTickTupleIntervalSeconds, args: [1]}}
  - {{name: withRetryCount, args: [2]}}
  - {{name: withMaxOpenFiles, args: [3]}}
streams:
- {{from: words, to: count, grouping: {{type: SHUFFLE}}}}
- {{from: count, to: write, grouping: {{type: SHUFFLE}}}}
"""


BY_DEFAULT_FORMAT = """DefaultFileNameFormat
  configMethods:
  - {name: withPath, args: [FOLDER/out/]}
  - {name: withExtension, args: [.csv]}
  - {name: withPrefix, args: [p-]}"""
BY_SIMPLE_FORMAT = """SimpleFileNameFormat
  configMethods:
  - {name: withPath, args: [FOLDER/out]}
  - {name: withName, args: [$COMPONENT.$TASK.$TIME.$NUM]}
  - {name: withTimeFormat, args: [yyyy-MM-dd]}"""
BY_QUOTED_TIME = BY_SIMPLE_FORMAT.replace("[yyyy-MM-dd]", """["'at'yy''MM'o''clock%'"]""")


@pytest.mark.parametrize(
    "rotation",
    [
        "TimedRotationPolicy, constructorArgs: [30, SECONDS]",
        "FileSizeRotationPolicy, constructorArgs: [5.0, MB]",
        "NoRotationPolicy",
    ],
)
@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(BY_DEFAULT_FORMAT, r"p-write-\d+-0-\d+\.csv", id="default"),
        pytest.param(BY_SIMPLE_FORMAT, r"write\.\d+\.\d{4}-\d\d-\d\d\.0", id="simple"),
        pytest.param(BY_QUOTED_TIME, r"write\.\d+\.at\d\d'\d\do'clock%\.0", id="quoted-time"),
    ],
)
def test_hdfs_bolt_writes_files(write, tmp_path, rotation, names, expected):
    """K10, K23: format, names, rotation, sync and what becomes of a file, all by Java's setters."""
    text = HDFS.format(rotation=rotation, names=names.replace("FOLDER", str(tmp_path)), folder=tmp_path)
    topology = load(write(text))
    with LocalCluster(simulated_time=True) as cluster:
        cluster.submit_topology("files", {}, topology).run_until_idle()
    [file] = (tmp_path / "done").iterdir()
    assert re.fullmatch(expected, file.name)
    records = file.read_text().split(";")
    assert len(records) == 6 and re.fullmatch(r"[a-z]+\|\d", records[0])


@pytest.mark.parametrize(
    ("class_name", "methods", "told"),
    [
        ("bolt.HdfsBolt", "[]", "HdfsBolt needs a config method withFileNameFormat"),
        (
            "bolt.HdfsBolt",
            "[{name: withFileNameFormat, args: [x]}]",
            "or a SimpleFileNameFormat, got 'x'",
        ),
        ("common.rotation.MoveFileAction", "[]", "MoveFileAction needs a config method toDestination"),
        (
            "bolt.format.SimpleFileNameFormat",
            "[{name: withTimeFormat, args: [EEE]}]",
            "'EEE' has EEE; it may only have yyyy",
        ),
    ],
)
def test_what_hdfs_classes_lack_is_reported(made, class_name, methods, told):
    """K10: what Storm's say when they are prepared, told when the file is read."""
    with pytest.raises(InvalidTopologyError) as caught:
        made(f"className: org.apache.storm.hdfs.{class_name}\nconfigMethods: {methods}")
    assert told in str(caught.value)


def test_shell_components_declare_what_was_set():
    """K20: command and fields by the constructor, more streams and settings by methods; the declared fields only."""
    for kind in ("bolts.FluxShellBolt", "spouts.FluxShellSpout"):
        shell = named(f"org.apache.storm.flux.wrappers.{kind}")
        one = shell(["python3", "x.py"], ["word"])
        one.set_named_stream("odd", ["n", "m"])
        one.add_component_config("rabbitmq.configfile", "etc/rabbit.yml")
        one.add_component_config("publisher.data_paths", ["actions"])
        declarer = OutputFieldsDeclarer("it")
        one.declare_output_fields(declarer)
        assert {name: list(stream.fields) for name, stream in declarer.streams.items()} == {
            "default": ["word"],
            "odd": ["n", "m"],
        }
        assert one.get_component_configuration() == {
            "rabbitmq.configfile": "etc/rabbit.yml",
            "publisher.data_paths": ["actions"],
        }
        bare = OutputFieldsDeclarer("it")
        shell(["x"]).declare_output_fields(bare)
        assert not bare.streams


@pytest.mark.parametrize("spout", ["testing.TestWordSpout", "starter.spout.RandomSentenceSpout"])
def test_a_stock_spout_emits_each_100_ms(spout):
    """K23: the pace of Storm's, so that a topology that logs what it gets does not fill disks."""
    spout = named(f"org.apache.storm.{spout}")()
    context, collector = make_context("words", spout), RecordingSpoutCollector(spout)
    spout.open({}, context, collector)
    for _ in range(100):
        spout.next_tuple()
        context.advance_time(0.02)
    assert len(collector.emitted) == 20


def test_test_word_spout_may_have_one_task_only():
    """K23, A16: new TestWordSpout(false)."""
    spout = named("org.apache.storm.testing.TestWordSpout")
    assert spout(False).get_component_configuration() == {"topology.max.task.parallelism": 1}
    assert spout().get_component_configuration() is None


def test_log_info_bolt_logs(caplog):
    """K20: what comes is logged at INFO, and nothing is emitted."""
    bolt = named("org.apache.storm.flux.wrappers.bolts.LogInfoBolt")()
    bolt.prepare({}, make_context("log", bolt))
    with caplog.at_level("INFO"):
        bolt.execute(make_tuple(("storm",), fields=["word"]), RecordingBasicCollector(bolt))
    assert "storm" in caplog.text


def test_n_grouping_needs_n_tasks():
    """K23, D13: the first n tasks, and an error where there are fewer."""
    from random import Random

    from stormspark.grouping import GlobalStreamId, GroupingContext

    context = GroupingContext("words", "default", ("word",), 1, (4, 5, 6), (), Random(7), consumer="count")
    grouping = named("org.apache.storm.testing.NGrouping")(2)
    grouping.prepare(context, GlobalStreamId("words", "default"), [4, 5, 6])
    assert grouping.choose_tasks(1, ("x",)) == [4, 5]
    with pytest.raises(InvalidTopologyError, match=r"NGrouping\(4\) needs 4 tasks, but 'count' has 3"):
        named("org.apache.storm.testing.NGrouping")(4).prepare(
            context, GlobalStreamId("words", "default"), [4, 5, 6]
        )
