"""Building: declarations, Storm's errors while building (A2, A8, A10, A11)."""

import threading

import pytest

from stormspark import BasicBolt, BasicOutputCollector, Fields, OutputFieldsDeclarer, TopologyBuilder, Tuple
from stormspark.api import GlobalStreamId
from stormspark.errors import InvalidTopologyError, SerializationError
from stormspark.grouping import FieldsGrouping, GlobalGrouping, ShuffleGrouping
from stormspark.testing import TestWordCounter, TestWordSpout


class Unpicklable(BasicBolt):
    def __init__(self) -> None:
        self.fine = 1
        self.lock = threading.Lock()

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        pass


def test_what_was_declared_is_there() -> None:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout(), parallelism=2)
    builder.set_bolt("count", TestWordCounter(), parallelism=4).fields_grouping(
        "words", Fields("word")
    ).set_num_tasks(8)
    topology = builder.create_topology("word-count", {"topology.workers": 2})
    count = topology.components["count"]
    assert (topology.name, topology.conf["topology.workers"]) == ("word-count", 2)
    assert (count.kind, count.parallelism, count.num_tasks) == ("bolt", 4, 8)
    assert count.inputs == {GlobalStreamId("words", "default"): FieldsGrouping(("word",))}
    assert count.streams["default"].fields == Fields("word", "count")
    assert "test_builder.py:" in count.declared_at


def test_a_second_grouping_on_a_stream_replaces_the_first() -> None:
    """A8."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    builder.set_bolt("count", TestWordCounter()).shuffle_grouping("words").global_grouping("words")
    inputs = builder.create_topology("t").components["count"].inputs
    assert list(inputs.values()) == [GlobalGrouping()]


def test_a_fields_grouping_without_fields_is_the_global_one() -> None:
    """A7."""
    builder = TopologyBuilder()
    builder.set_bolt("count", TestWordCounter()).fields_grouping("words", Fields())
    assert list(builder.create_topology("t").components["count"].inputs.values()) == [GlobalGrouping()]


def test_streams_of_one_source_have_groupings_of_their_own() -> None:
    builder = TopologyBuilder()
    builder.set_bolt("b", TestWordCounter()).shuffle_grouping("a").fields_grouping(
        "a", Fields("n"), stream="again"
    )
    assert builder.create_topology("t").components["b"].inputs == {
        GlobalStreamId("a", "default"): ShuffleGrouping(),
        GlobalStreamId("a", "again"): FieldsGrouping(("n",)),
    }


def test_an_id_in_use_is_refused_with_both_lines() -> None:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    with pytest.raises(
        InvalidTopologyError, match=r"test_builder\.py:\d+: the id 'words' .* declared at .*test_builder\.py"
    ):
        builder.set_bolt("words", TestWordCounter())


@pytest.mark.parametrize("parallelism", [0, -1, True, "2", 1.0])
def test_parallelism_must_be_positive(parallelism: object) -> None:
    with pytest.raises(InvalidTopologyError, match=r"Parallelism must be positive.*'words'"):
        TopologyBuilder().set_spout("words", TestWordSpout(), parallelism=parallelism)  # type: ignore[arg-type]


def test_a_class_instead_of_an_instance_is_told_apart() -> None:
    with pytest.raises(InvalidTopologyError, match=r"did you forget the brackets, TestWordSpout\(\)\?"):
        TopologyBuilder().set_spout("words", TestWordSpout)  # type: ignore[arg-type]


def test_a_component_that_cannot_be_pickled_is_named_with_its_attribute() -> None:
    builder = TopologyBuilder()
    builder.set_bolt("bad", Unpicklable())
    with pytest.raises(
        SerializationError,
        match=r"component 'bad' \(Unpicklable\) can't be pickled because of attribute 'lock'.*prepare",
    ):
        builder.create_topology("t")


def test_a_stream_declared_twice_is_refused() -> None:
    declarer = OutputFieldsDeclarer("split")
    declarer.declare(Fields("word"))
    with pytest.raises(InvalidTopologyError, match="'split' declares stream 'default' twice"):
        declarer.declare_stream("default", Fields("other"))


@pytest.mark.parametrize("names", [("a", "a"), ("",), (3,)])
def test_field_names_differ_and_are_texts(names: tuple[str, ...]) -> None:
    with pytest.raises(InvalidTopologyError):
        Fields(*names)
