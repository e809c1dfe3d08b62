"""Building: declarations, Storm's errors while building (A2, A8, A10, A11)."""

import threading

import cloudpickle
import pytest

from stormspark import (
    BasicBolt,
    BasicOutputCollector,
    Fields,
    OutputFieldsDeclarer,
    TopologyBuilder,
    Tuple,
    WorkerHook,
)
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


class Declares(BasicBolt):
    """Declares what it is told to."""

    def __init__(self, *declarations: tuple[object, object]) -> None:
        self.declarations = declarations

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        pass

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        for stream, fields in self.declarations:
            declarer.declare_stream(stream, fields)  # type: ignore[arg-type]


class UnpicklableHook(WorkerHook):
    def __init__(self) -> None:
        self.lock = threading.Lock()


class UnpicklableGrouping(ShuffleGrouping):
    def __reduce__(self) -> tuple[object, ...]:
        msg = "not me"
        raise TypeError(msg)


def test_a_built_topology_has_what_was_declared() -> None:
    """The built topology has the declared components, inputs, streams and numbers, with the user's line (A1, A6)."""
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
    """A second grouping for the same stream replaces the first (A8)."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    builder.set_bolt("count", TestWordCounter()).shuffle_grouping("words").global_grouping("words")
    inputs = builder.create_topology("t").components["count"].inputs
    assert list(inputs.values()) == [GlobalGrouping()]


def test_a_fields_grouping_without_fields_is_the_global_one() -> None:
    """A fields grouping without fields is stored as the global grouping (A7)."""
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
    """A2, J5: over spouts and bolts."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    with pytest.raises(
        InvalidTopologyError, match=r"test_builder\.py:\d+: the id 'words' .* declared at .*test_builder\.py"
    ):
        builder.set_bolt("words", TestWordCounter())


@pytest.mark.parametrize("parallelism", [0, -1, True, "2", 1.0])
def test_parallelism_must_be_a_positive_whole_number(parallelism: object) -> None:
    """A parallelism that is no positive integer is rejected, with the component's id (A2)."""
    with pytest.raises(InvalidTopologyError, match=r"Parallelism must be a positive whole number.*'words'"):
        TopologyBuilder().set_spout("words", TestWordSpout(), parallelism=parallelism)  # type: ignore[arg-type]


def test_a_class_instead_of_an_instance_is_refused() -> None:
    """A class in place of an instance is rejected, and the error shows the missing brackets (A1)."""
    with pytest.raises(InvalidTopologyError, match=r"did you forget the brackets, TestWordSpout\(\)\?"):
        TopologyBuilder().set_spout("words", TestWordSpout)  # type: ignore[arg-type]


def test_a_component_that_cannot_be_pickled_is_named_with_its_attribute() -> None:
    """A component that can't be pickled is rejected, with its id and the attribute that is the cause (A2, A3)."""
    builder = TopologyBuilder()
    builder.set_bolt("bad", Unpicklable())
    with pytest.raises(
        SerializationError,
        match=r"component 'bad' \(Unpicklable\) can't be pickled because of attribute 'lock'.*prepare",
    ):
        builder.create_topology("t")


def test_a_class_attribute_that_cannot_be_pickled_is_named() -> None:
    """Workers can't import a class of this function, so it is pickled with its attributes (A2, A3)."""

    class Locked(Unpicklable):
        shared = threading.Lock()

        def __init__(self) -> None:
            self.name = "locked"

    builder = TopologyBuilder()
    builder.set_bolt("bad", Locked())
    with pytest.raises(
        SerializationError,
        match=r"because of class attribute 'shared' of .*Locked: cannot pickle.*instead of __init__ or the class",
    ):
        builder.create_topology("t")


def test_a_stream_declared_twice_is_refused() -> None:
    """A component can't declare the same stream twice (A10)."""
    declarer = OutputFieldsDeclarer("split")
    declarer.declare(Fields("word"))
    with pytest.raises(InvalidTopologyError, match="'split' declares stream 'default' twice"):
        declarer.declare_stream("default", Fields("other"))


@pytest.mark.parametrize("names", [("a", "a"), ("",), (3,)])
def test_field_names_differ_and_are_strings(names: tuple[str, ...]) -> None:
    """Field names must be strings that are not empty and differ from each other (A11)."""
    with pytest.raises(InvalidTopologyError):
        Fields(*names)


@pytest.mark.parametrize("id", ["", None, 7, b"words"])
def test_ids_are_strings(id: object) -> None:
    """A component's id must be a string that is not empty; the error has the user's line (A13, J5)."""
    with pytest.raises(
        InvalidTopologyError, match=r"test_builder\.py:\d+: a component's id must be a string"
    ):
        TopologyBuilder().set_spout(id, TestWordSpout())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("declarations", "text"),
    [
        ((("a", ["x"]), ("a", ["y"])), r"declares stream 'a' twice"),
        ((("", ["x"]),), r"declares a stream without a name: ''"),
        (((None, ["x"]),), r"declares a stream without a name: None"),
        ((("a", ["x", "x"]),), r"field names must differ, but 'x' occurs more than once"),
        ((("a", 7),), r"a field's name must be a string"),
    ],
)
def test_a_wrong_declaration_is_reported_with_the_component_and_its_line(
    declarations: tuple[tuple[object, object], ...], text: str
) -> None:
    """A10, A11: the line in declare_output_fields."""
    builder = TopologyBuilder()
    builder.set_bolt("split", Declares(*declarations))
    with pytest.raises(
        InvalidTopologyError, match=r"test_builder\.py:\d+: bolt 'split': declare_output.*" + text
    ):
        builder.create_topology("t")


@pytest.mark.parametrize(
    ("source", "stream", "grouping", "text"),
    [
        ("", "default", ShuffleGrouping(), "a component without a name: ''"),
        (7, "default", ShuffleGrouping(), "a component without a name: 7"),
        ("words", "", ShuffleGrouping(), "a stream without a name: ''"),
        ("words", "default", ShuffleGrouping, r"got the class ShuffleGrouping: did you forget the brackets"),
        ("words", "default", "shuffle", "a grouping must be a Grouping, got 'shuffle' of type str"),
    ],
)
def test_a_wrong_subscription_is_refused_at_its_line(
    source: str, stream: str, grouping: ShuffleGrouping, text: str
) -> None:
    """A wrong source, stream or grouping is rejected, with the line that subscribes (A6)."""
    bolt = TopologyBuilder().set_bolt("count", TestWordCounter())
    with pytest.raises(InvalidTopologyError, match=rf"test_builder\.py:\d+: bolt 'count'.*{text}"):
        bolt.grouping(source, grouping, stream)


def test_a_grouping_that_cannot_be_pickled_is_reported_with_its_line() -> None:
    """A grouping that can't be pickled is rejected, with the line that subscribes (A2, D13)."""
    bolt = TopologyBuilder().set_bolt("count", TestWordCounter())
    with pytest.raises(
        SerializationError, match=r"test_builder\.py:\d+: bolt 'count': the shuffle grouping can't"
    ):
        bolt.grouping("words", UnpicklableGrouping())


def test_a_component_is_pickled_once_and_not_the_builders_own() -> None:
    """A3: what is done to it afterwards stays with the builder."""
    spout = TestWordSpout()
    builder = TopologyBuilder()
    builder.set_spout("words", spout)
    first = builder.create_topology("t").components["words"].pickled
    spout.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(SerializationError):
        builder.create_topology("t")
    assert cloudpickle.loads(first) is not spout


def test_worker_hooks_are_pickled_with_their_line() -> None:
    """The built topology has the worker hook, with its type's name and the line that added it (A5, A3)."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    (hook,) = builder.add_worker_hook(WorkerHook()).create_topology("t").worker_hooks
    assert hook.type_name == "WorkerHook" and "test_builder.py:" in hook.declared_at


@pytest.mark.parametrize(
    ("hook", "text"),
    [
        (WorkerHook, "got the class WorkerHook: did you forget the brackets"),
        (print, "a worker hook must be an instance of WorkerHook"),
        (
            UnpicklableHook(),
            r"worker hook UnpicklableHook can't be pickled because of attribute 'lock'.*start\(\)",
        ),
    ],
)
def test_a_non_hook_is_refused_at_its_line(hook: WorkerHook, text: str) -> None:
    """A non-hook, and a hook that can't be pickled, is rejected with the line that passed it (A5, A2)."""
    with pytest.raises((InvalidTopologyError, SerializationError), match=r"test_builder\.py:\d+: .*" + text):
        TopologyBuilder().add_worker_hook(hook)
