"""What becomes of each topology that comes with Storm's Flux and Heron's ECO: the table of docs/porting/from-flux.md."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ORIGINALS", "Original"]


class Original(NamedTuple):
    """``outcome``: it "runs"; "runs with classes", with stand-ins for the Java classes that it brings along; is "planned", and
    needs Kafka or HDFS to run; or is "refused".
    """

    file: str
    outcome: str
    #: A part of the error, if it is refused or if nothing stands for its classes.
    said: str = ""
    #: The properties file that it needs.
    properties: str = ""


_TESTS = "flux/flux-core/src/test/resources/configs/"
_EXAMPLES = "flux/flux-examples/src/main/resources/"
_HERON = "eco-heron-examples/src/java/org/apache/heron/examples/eco/"
_STORM = "eco-storm-examples/src/java/org/apache/heron/examples/eco/"
_FLUX_CLASS = "no Python is known for the class org.apache.storm.flux.test."
_ECO_CLASS = "no Python is known for the class org.apache.heron.examples.eco."


def _in(folder: str, *files: Original) -> list[Original]:
    return [
        one._replace(file=folder + one.file, properties=one.properties and folder + one.properties)
        for one in files
    ]


ORIGINALS = {
    "STORM_EXAMPLES": [
        *_in(
            _TESTS,
            Original("bad_hbase.yaml", "refused", "takes (names): names must be a list, got 'count'"),
            Original(
                "bad_shell_test.yaml", "refused", "addComponentConfig takes (key, value), got 'rabbitmq"
            ),
            Original(
                "bad_static_factory_test.yaml", "refused", "number must be a whole number, got 'This is"
            ),
            Original("component-config-invalid-key-test.yaml", "runs"),
            Original(
                "component-config-invalid-test.yaml", "refused", "compression.enable must be true or false"
            ),
            Original("component-config-missing-test.yaml", "runs"),
            Original("component-config-override-test.yaml", "runs"),
            Original("component-config-test.yaml", "runs"),
            Original("config-methods-test.yaml", "refused", "there is no component 'time2' to refer to"),
            Original("diamond-topology.yaml", "refused", "which declares nothing"),
            Original(
                "existing-topology-method-override.yaml", "runs with classes", f"{_FLUX_CLASS}SimpleTopology"
            ),
            Original("existing-topology-reflection-config.yaml", "runs with classes", f"{_FLUX_CLASS}Simple"),
            Original(
                "existing-topology-reflection.yaml", "runs with classes", f"{_FLUX_CLASS}SimpleTopology"
            ),
            Original("existing-topology-trident.yaml", "refused", f"{_FLUX_CLASS}TridentTopologySource"),
            Original("existing-topology.yaml", "runs with classes", f"{_FLUX_CLASS}SimpleTopologySource"),
            Original("hdfs_test.yaml", "runs"),
            Original("include_test.yaml", "runs"),
            Original("invalid-existing-topology.yaml", "refused", "the file can't have spouts too"),
            Original("kafka_test.yaml", "planned"),
            Original("shell_test.yaml", "runs"),
            Original("substitution-test.yaml", "runs", properties="test.properties"),
            Original("tck.yaml", "runs"),
            Original("worker_hook.yaml", "runs"),
        ),
        *_in(
            _EXAMPLES,
            Original("kafka_spout.yaml", "planned"),
            Original("multilang.yaml", "runs"),
            Original("simple_hbase.yaml", "refused", "HBase is not provided", "hbase_bolt.properties"),
            Original("simple_hdfs.yaml", "planned", properties="hdfs_bolt.properties"),
            Original("simple_stateful_wordcount.yaml", "runs"),
            Original("simple_windowing.yaml", "runs"),
            Original("simple_wordcount.yaml", "runs"),
        ),
    ],
    "HERON_EXAMPLES": [
        *_in(
            _HERON,
            Original("heron_fibonacci.yaml", "runs with classes", f"{_ECO_CLASS}Test", "sample.properties"),
            Original("heron_stateful_windowing.yaml", "runs with classes", f"{_ECO_CLASS}StatefulNumber"),
            Original("heron_stateful_word_count.yaml", "runs with classes", f"{_ECO_CLASS}StatefulRandom"),
            Original("heron_windowing.yaml", "runs with classes", f"{_ECO_CLASS}TestNameSpout"),
            Original("heron_wordcount.yaml", "runs with classes", f"{_ECO_CLASS}TestNameSpout"),
        ),
        *_in(
            _STORM,
            Original("storm_fibonacci.yaml", "runs with classes", f"{_ECO_CLASS}Test", "sample.properties"),
            Original("storm_windowing.yaml", "runs with classes", f"{_ECO_CLASS}TestNameSpout"),
            Original("storm_wordcount.yaml", "runs with classes", f"{_ECO_CLASS}TestNameSpout"),
        ),
    ],
}
