"""What stages of streamlets are called, how many tasks they have, and what they subscribe to."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from stormspark import Topology
from stormspark.errors import InvalidTopologyError, SerializationError
from stormspark.plan import plan_topology
from stormspark.streamlet import ArrayLooper, Builder, Generator, Streamlet, TransformOperator, WindowConfig
from stormspark.testing import TestWordSpout

TEN = WindowConfig.create_tumbling_window(10)


class Nothing(TransformOperator):
    def setup(self, context):
        pass

    def transform(self, tup):
        pass


class Later(Nothing):
    async def transform(self, tup):  # type: ignore[override]
        pass


class LaterOnes(Generator):
    def setup(self, context):
        pass

    async def get(self):
        pass


async def later(element):
    return element


async def later_ones(element):
    yield element


async def later_sum(one, other):
    return one + other


def add(one, other):
    return one + other


def source(builder: Builder) -> Streamlet:
    return builder.new_source(lambda: 1)


def tasks(topology: Topology) -> dict[str, int]:
    return {name: one.parallelism for name, one in topology.components.items()}


def test_stages_are_called_after_their_operation_and_numbered():
    """G24: Heron's names."""
    builder = Builder()
    looper = builder.new_source(ArrayLooper([1]))
    pairs = looper.map(abs).flat_map(abs).filter(abs).repartition(2).transform(Nothing()).map(abs)
    pairs.reduce_by_window(TEN, add).log()
    pairs.reduce_by_key_and_window(TEN, add).consume(print)
    other = source(builder)
    pairs.join(other, TEN, add)
    pairs.outer_left_join(other, TEN, add)
    pairs.union(other).log()
    assert list(builder.build("names").components) == [
        "generator-1",
        "map-1",
        "flatmap-1",
        "filter-1",
        "repartition-1",
        "transform-1",
        "map-2",
        "reducebywindow-1",
        "log-1",
        "reducebykeyandwindow-1",
        "consume-1",
        "supplier-1",
        "join-1",
        "join-2",
        "union-1",
        "log-2",
    ]


def test_a_stage_has_as_many_partitions_as_the_one_before():
    """G24: but for reduce_by_key_and_window, which has one; what is set later changes no stage that is there."""
    builder = Builder()
    first = source(builder).set_num_partitions(3)
    second = first.map(abs)
    first.set_num_partitions(2)
    assert (first.get_num_partitions(), second.get_num_partitions()) == (2, 3)
    second.reduce_by_key_and_window(TEN, add).set_num_partitions(2).map(abs)
    second.reduce_by_key_and_window(TEN, add)
    second.reduce_by_window(TEN, add)
    second.join(first, TEN, add)
    first.union(second)
    second.repartition(5).log()
    assert tasks(builder.build("partitions")) == {
        "supplier-1": 2,
        "map-1": 3,
        "reducebykeyandwindow-1": 2,
        "map-2": 2,
        "reducebykeyandwindow-2": 1,
        "reducebywindow-1": 3,
        "repartition-1": 5,
        "log-1": 5,
        "join-1": 3,
        "union-1": 2,
    }


def test_a_name_that_is_given_is_used_and_never_given_again():
    """G24: in Heron a stage before it that was numbered so would be an error."""
    builder = Builder()
    streamlet = source(builder).map(abs).map(abs).set_name("map-1").set_num_partitions(2)
    assert streamlet.get_name() == "map-1"
    assert list(builder.build("names").components) == ["supplier-1", "map-2", "map-1"]


def test_two_stages_of_one_name_are_refused_with_both_lines():
    """Two stages of the same name are rejected, with both lines (G24, A2)."""
    builder = Builder()
    source(builder).set_name("x").map(abs).set_name("x")
    with pytest.raises(
        InvalidTopologyError, match=r"test_stages.py:\d+: the name 'x' is already in use, at .*test_stages"
    ):
        builder.build("names")


def test_building_twice_gives_the_same_again_and_what_came_in_between():
    """A builder can build twice, and the second topology has the stages that were added in between (G24)."""
    builder = Builder()
    streamlet = source(builder).map(abs)
    once = builder.build("once")
    assert tasks(builder.build("again")) == tasks(once)
    streamlet.log()
    assert list(builder.build("more").components) == [*once.components, "log-1"]


def test_streams_fields_and_groupings():
    """G24: one stream named output, with one field; elements are dealt out, pairs go by key."""
    builder = Builder()
    one, other = source(builder).set_num_partitions(2), source(builder)
    one.join(other, TEN, add).repartition(2, lambda element, partitions: 0)
    topology = builder.build("streams")
    (declared,) = topology.components["join-1"].streams.items()
    assert (declared[0], tuple(declared[1].fields)) == ("output", ("_output_",))
    groupings = {
        (source, name): grouping.describe()
        for name, component in topology.components.items()
        for (source, _), grouping in component.inputs.items()
    }
    assert groupings == {
        ("supplier-1", "join-1"): "key",
        ("supplier-2", "join-1"): "key",
        ("join-1", "repartition-1"): "custom(ByFunction)",
    }
    plan_topology(topology)


def test_split_streams_are_subscribed_to_by_name():
    """The parts of a split are subscribed to by their names, and an unknown name is rejected (G23)."""
    builder = Builder()
    parts = source(builder).split({"odd": lambda n: n % 2, "all": lambda n: True})
    parts.with_stream("all").log()
    parts.with_stream("odd").union(parts.with_stream("all"))
    components = builder.build("split").components
    assert list(components["log-1"].inputs) == [("split-1", "all")]
    assert list(components["union-1"].inputs) == [("split-1", "odd"), ("split-1", "all")]
    with pytest.raises(InvalidTopologyError, match="no stream 'even' here; the streams are 'odd', 'all'"):
        parts.with_stream("even")


def test_any_spout_is_a_source():
    """G23: newSource(IRichSpout)."""
    builder = Builder()
    builder.new_source(TestWordSpout(), lambda tup: tup["word"].upper()).log()
    components = builder.build("spout").components
    assert list(components) == ["spout-1", "elements-1", "log-1"]
    assert list(components["elements-1"].inputs) == [("spout-1", "default")]


def test_a_streamlet_of_another_builder_is_refused():
    """G24: all sources must be there."""
    builder = Builder()
    joined = source(builder).join(source(Builder()), TEN, add)
    joined.log()
    with pytest.raises(
        InvalidTopologyError, match=r"test_stages.py:\d+: join has a streamlet that does not come from"
    ):
        builder.build("half")


def test_declarations_point_to_the_line_of_the_operation():
    """Each stage is declared and subscribed at the line of its operation (G24, J5)."""
    builder = Builder()
    mapped = source(builder).map(abs)

    mapped.filter(abs)
    components = builder.build("lines").components
    lines = [int(one.declared_at.rpartition(":")[2]) for one in components.values()]
    assert lines[2] == lines[1] + 2
    assert [*components["filter-1"].subscribed_at.values()] == [components["filter-1"].declared_at]


def test_what_cannot_be_pickled_is_named_with_its_stage_and_line():
    """A function that can't be pickled is rejected, with the stage and the line (G24, A2)."""
    builder = Builder()
    lock = threading.Lock()
    source(builder).map(lambda element: lock.acquire())
    with pytest.raises(
        SerializationError, match=r"test_stages.py:\d+: component 'map-1' \(MapBolt\) can't be pickled"
    ):
        builder.build("lock")


class Unfinished(Generator):
    def setup(self, context):
        pass

    def get(self):
        return None


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda s: s.map(3), "map takes a function, got 3"),
        (
            lambda s: s.map(later),
            "later is a coroutine function, which nobody would await: write it without async",
        ),
        (lambda s: s.filter(partial(later)), "filter takes a function that returns its result"),
        (lambda s: s.flat_map(later_ones), "later_ones is an asynchronous generator function"),
        (lambda s: s.consume(Later().transform), "transform is a coroutine function"),
        (lambda s: s.reduce_by_window(TEN, later_sum), "later_sum is a coroutine function"),
        (lambda s: s.key_by(later), "later is a coroutine function"),
        (lambda s: s.transform(Later()), "transform of class Later .* is a coroutine function"),
        (lambda s: Builder().new_source(partial(later, 1)), "partial is a coroutine function"),
        (lambda s: Builder().new_source(LaterOnes()), "get of class LaterOnes .* is a coroutine function"),
        (lambda s: Builder().new_source(TestWordSpout(), later), "later is a coroutine function"),
        (
            lambda s: s.filter(lambda: True),
            "filter calls its function with one argument, but <lambda> can't be called",
        ),
        (lambda s: s.repartition(2, lambda element: 1), "repartition calls its function with 2 arguments"),
        (lambda s: s.repartition(0), "a number must be 1 or more, got 0"),
        (lambda s: s.set_num_partitions("2"), "a number must be 1 or more, got '2'"),
        (lambda s: s.clone(True), "a number must be 1 or more, got True"),
        (lambda s: s.set_name(""), "must be a string that is not empty"),
        (
            lambda s: s.transform(Nothing),
            "transform takes a TransformOperator, got the class Nothing: did you forget",
        ),
        (lambda s: s.transform(abs), "transform takes a TransformOperator"),
        (lambda s: s.split({}), "split takes a mapping of names of streams to predicates"),
        (lambda s: s.split({"a": 1}), "split takes a function"),
        (lambda s: s.reduce_by_window(10, add), "reduce_by_window takes a WindowConfig, got 10"),
        (lambda s: s.reduce_by_key_and_window(TEN, abs), "calls its function with 2 arguments"),
        (lambda s: s.join(3, TEN, add), "join takes another Streamlet, got 3"),
        (lambda s: s.outer_join(s, TEN, add), r"outer_join of a streamlet with itself: make two of it first"),
        (lambda s: s.union(s), r"union of a streamlet with itself: make two of it first"),
        (
            lambda s: Builder().new_source(3),  # type: ignore[arg-type]
            "a source must be a Generator, a function or a spout, got 3",
        ),
        (lambda s: Builder().new_source(Unfinished), "got the class Unfinished: did you forget the brackets"),
        (
            lambda s: Builder().new_source(lambda: 1, lambda tup: 1),
            "element is only for the tuples of spouts",
        ),
    ],
)
def test_arguments_that_cannot_be_are_refused_with_the_line(wrong, told):
    """Wrong arguments of operations are rejected, with the line (G23, G24)."""
    with pytest.raises(InvalidTopologyError, match=rf"test_stages.py:\d+: .*{told}"):
        wrong(source(Builder()))
