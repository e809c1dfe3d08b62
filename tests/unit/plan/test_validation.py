"""Every topology that Storm refuses is refused here, and the text says where, why and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from stormspark import BasicBolt, BasicOutputCollector, Fields, OutputFieldsDeclarer, TopologyBuilder, Tuple
from stormspark.api import DEFAULT_STREAM, ComponentDeclaration, GlobalStreamId, StreamDeclaration, Topology
from stormspark.errors import InvalidTopologyError
from stormspark.grouping import FieldsGrouping, ShuffleGrouping
from stormspark.plan import plan_topology
from stormspark.testing import TestWordCounter, TestWordSpout

HERE = r"test_validation\.py:\d+: "


class Streams(BasicBolt):
    """Declares the streams that it is told to."""

    def __init__(self, *streams: str, direct: bool = False) -> None:
        self.streams = streams
        self.direct = direct

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        pass

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        for stream in self.streams:
            declarer.declare_stream(stream, Fields(f"of {stream}"), direct=self.direct)


def words_and(
    bolt: BasicBolt | None = None, id: str = "bolt", subscribe: Callable[..., Any] | None = None
) -> TopologyBuilder:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    declarer = builder.set_bolt(id, bolt or TestWordCounter())
    (subscribe or (lambda d: d.shuffle_grouping("words")))(declarer)
    return builder


def changed(component: str, **changes: Any) -> Topology:
    """A topology as a front-end that is no builder may declare it."""
    topology = words_and().create_topology("t")
    return replace(
        topology,
        components={
            **topology.components,
            component: replace(topology.components[component], **changes),
        },
    )


def subscribing(subscribe: Callable[..., Any]) -> Topology:
    return words_and(subscribe=subscribe).create_topology("t")


def no_spout() -> Topology:
    builder = TopologyBuilder()
    builder.set_bolt("count", TestWordCounter())
    return builder.create_topology("t")


def several_streams() -> Topology:
    builder = words_and(Streams("left", "right"), "split")
    builder.set_bolt("b", TestWordCounter()).fields_grouping("split", Fields("of right"), "left")
    return builder.create_topology("t")


CASES: dict[str, tuple[Callable[[], Topology], Mapping[str, Any], str]] = {
    "J5: no spout": (no_spout, {}, r"topology 't' has no spout: add one with builder\.set_spout"),
    "J5, A13: component id begins with __": (
        lambda: words_and(id="__mine").create_topology("t"),
        {},
        HERE + r"bolt '__mine': ids that begin with __ are reserved; choose another one",
    ),
    "J5, A13: stream id begins with __": (
        lambda: words_and(Streams("__ack")).create_topology("t"),
        {},
        HERE + r"bolt 'bolt' declares stream '__ack', but ids that begin with __ are reserved",
    ),
    "A13: no id": (lambda: changed("bolt", id=""), {}, r"an id must be a string that is not empty, got ''"),
    "A13: an id that is no text": (lambda: changed("bolt", id=7), {}, r"an id must be a string"),
    "J5: a spout with inputs": (
        lambda: changed("words", inputs={GlobalStreamId("bolt"): ShuffleGrouping()}),
        {},
        HERE + r"spout 'words' may not subscribe to anything, but subscribes to 'bolt'; make it a bolt",
    ),
    "J5: tasks without executors": (
        lambda: changed("bolt", parallelism=0, conf={"topology.tasks": 3}),
        {},
        HERE + r"bolt 'bolt': the number of executors must be a positive whole number, got 0 for 3 tasks",
    ),
    "J5: unknown component, with the nearest": (
        lambda: subscribing(lambda d: d.shuffle_grouping("wrods")),
        {},
        HERE + r"bolt 'bolt' subscribes to 'wrods', which does not exist; did you mean 'words'\?",
    ),
    "J5: unknown component, with all there are": (
        lambda: subscribing(lambda d: d.shuffle_grouping("zzz")),
        {},
        r"'zzz', which does not exist; the components are 'words', 'bolt'",
    ),
    "J5: unknown stream": (
        lambda: subscribing(lambda d: d.shuffle_grouping("words", stream="defualt")),
        {},
        r"subscribes to stream 'defualt' of 'words' \(declared at .*\), which declares 'default'"
        r"; did you mean 'default'\?",
    ),
    "J5: unknown field": (
        lambda: subscribing(lambda d: d.fields_grouping("words", Fields("wort"))),
        {},
        r"by fields\(wort\), but that stream has no field 'wort'; it has 'word'; did you mean 'word'\?",
    ),
    "J5: the field of another stream": (several_streams, {}, r"no field 'of right'.*; stream 'right' has it"),
    "D11: a direct grouping on a stream that is not direct": (
        lambda: subscribing(lambda d: d.direct_grouping("words")),
        {},
        r"by a direct grouping, but the stream is not declared as direct: declare it with .*direct=True",
    ),
    "J5: more workers than allowed": (
        lambda: words_and().create_topology("t"),
        {"topology.workers": 5, "nimbus.slots.perTopology": 4},
        r"wants 5 workers \(topology\.workers\), but at most 4 are allowed \(nimbus\.slots\.perTopology\)",
    ),
    "J5: more executors than allowed": (
        lambda: words_and().create_topology("t"),
        {"nimbus.executors.perTopology": 1},
        r"wants 2 executors \(the sum of all parallelisms\), but at most 1 are allowed",
    ),
    "J5: StrictTopologyValidator, a dot in an id": (
        lambda: words_and(id="a.b").create_topology("t"),
        {"nimbus.topology.validator": "org.apache.storm.nimbus.StrictTopologyValidator"},
        HERE + r"bolt 'a\.b': id 'a\.b' contains a dot",
    ),
    "J5: StrictTopologyValidator, a dot in a stream": (
        lambda: words_and(Streams("x.y")).create_topology("t"),
        {"nimbus.topology.validator": "org.apache.storm.nimbus.StrictTopologyValidator"},
        r"bolt 'bolt': stream 'x\.y' contains a dot",
    ),
    "J5: no workers": (
        lambda: words_and().create_topology("t"),
        {"topology.workers": 0},
        r"configuration of topology 't': topology\.workers must be at least 1, got 0",
    ),
    "J5: a setting of a wrong type": (
        lambda: words_and().create_topology("t"),
        {"topology.max.spout.pending": "many"},
        r"topology\.max\.spout\.pending must be int, got 'many' of type str",
    ),
    "J5: a setting that only Storm reads, of a wrong type": (
        lambda: words_and().create_topology("t"),
        {"topology.kryo.factory": 3},
        r"topology\.kryo\.factory must be a string, got 3 of type int",
    ),
    "J5: a component's setting of a wrong type": (
        lambda: changed("bolt", conf={"topology.debug": "yes"}),
        {},
        HERE + r"bolt 'bolt': configuration of the component: topology\.debug must be bool, got 'yes'",
    ),
    "J5: a metrics consumer without a class": (
        lambda: words_and().create_topology("t"),
        {"topology.metrics.consumer.register": [{"argument": 1}]},
        r"topology\.metrics\.consumer\.register must be a list of mappings with a string 'class'",
    ),
    "A24: a value that is no JSON": (
        lambda: words_and().create_topology("t", {"mine": object()}),
        {},
        r"configuration of topology 't': 'mine' is not JSON-serialisable",
    ),
    "A24: a number that is no JSON": (
        lambda: words_and().create_topology("t", {"mine": float("nan")}),
        {},
        r"'mine' is not JSON-serialisable",
    ),
    "A24: a component's value that is no JSON": (
        lambda: changed("bolt", conf={"mine": {1, 2}}),
        {},
        HERE + r"bolt 'bolt': configuration of the component: 'mine' is not JSON-serialisable",
    ),
    "A24: a key that is no text": (
        lambda: words_and().create_topology("t", {3: "x"}),  # type: ignore[dict-item]
        {},
        r"a key must be a string, got 3 of type int",
    ),
    **{
        f"A14: name {name!r}": (
            lambda name=name: words_and().create_topology(name),  # type: ignore[misc]
            {},
            r"a topology's name must not be empty or contain / \. : or \\, got",
        )
        for name in ("", "a/b", "a.b", "a:b", "a\\b", 7)
    },
}


@pytest.mark.parametrize("case", CASES)
def test_what_storm_refuses_is_refused(case: str) -> None:
    """J5, A10-A14, A24: each case is named by the row that it is from."""
    make, conf, text = CASES[case]
    with pytest.raises(InvalidTopologyError) as caught:
        plan_topology(make(), conf)
    assert re.search(text, str(caught.value)), str(caught.value)
    assert "errors:" not in str(caught.value)  # this one alone


def test_all_that_is_wrong_is_reported_at_once() -> None:
    """J5: one error lists every rule that is broken, each with its line."""
    builder = TopologyBuilder()
    builder.set_bolt("count", TestWordCounter()).shuffle_grouping("nobody").fields_grouping(
        "__x", Fields("a")
    )
    with pytest.raises(InvalidTopologyError) as caught:
        plan_topology(builder.create_topology("a.b"), {"topology.workers": 0})
    first, *listed = str(caught.value).splitlines()
    assert first == "topology 'a.b' has 5 errors:"
    assert [line[:5] for line in listed] == [f"  {number}. " for number in range(1, 6)]


def test_a_subscription_is_reported_with_its_own_line() -> None:
    """J5: not with that of set_bolt, which may be far away."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    bolt = builder.set_bolt("count", TestWordCounter())
    bolt.shuffle_grouping("words")

    bolt.shuffle_grouping("nobody")
    declared = builder.create_topology("t").components["count"]
    line = int(declared.declared_at.rpartition(":")[2])
    lines = {source.component: int(at.rpartition(":")[2]) for source, at in declared.subscribed_at.items()}
    assert lines == {"words": line + 1, "nobody": line + 3}
    with pytest.raises(
        InvalidTopologyError, match=rf"test_validation\.py:{line + 3}: bolt 'count' subscribes"
    ):
        plan_topology(builder.create_topology("t"))


def test_a_declaration_without_lines_is_reported_without_them() -> None:
    """J5: a front-end may know no lines."""
    bolt = ComponentDeclaration(
        "b", "bolt", b"", "B", {}, {GlobalStreamId("nobody"): FieldsGrouping("x")}, 1, {}, ""
    )
    spout = ComponentDeclaration(
        "s", "spout", b"", "S", {DEFAULT_STREAM: StreamDeclaration(DEFAULT_STREAM, Fields())}, {}, 1, {}, ""
    )
    with pytest.raises(InvalidTopologyError, match=r"^bolt 'b' subscribes to 'nobody'"):
        plan_topology(Topology("t", {"s": spout, "b": bolt}))


def test_what_storm_allows_is_allowed() -> None:
    """J5, A15: unused bolts, unconsumed streams, loops, subscribing to oneself, odd but unreserved ids."""
    builder = TopologyBuilder()
    builder.set_spout("_words", TestWordSpout())
    builder.set_bolt("nobody listens", Streams("a", "b")).shuffle_grouping("_words")
    builder.set_bolt("hears nothing", TestWordCounter())
    builder.set_bolt("a.b", TestWordCounter()).shuffle_grouping("_words").shuffle_grouping("a.b")
    plan = plan_topology(
        builder.create_topology("a name"), {"mine": [1, {"a": None}], "topology.tasks": None}
    )
    assert len(plan.components) == 4


def test_limits_that_are_not_reached_are_no_limits() -> None:
    """J5: exactly as many as are allowed."""
    conf = {"topology.workers": 2, "nimbus.slots.perTopology": 2, "nimbus.executors.perTopology": 2}
    assert plan_topology(words_and().create_topology("t"), conf).workers == 2


@pytest.mark.parametrize(
    "conf",
    [
        {"stormspark.exactly.once": True},
        {"topology.reliability.mode": "EFFECTIVELY_ONCE"},
        {"topology.state.pickle": True},
    ],
)
def test_transactions_without_trees_are_refused(conf: dict[str, Any]) -> None:
    """B8, C44: nobody would know which row has failed."""
    topology = words_and().create_topology("t")
    with pytest.raises(InvalidTopologyError) as raised:
        plan_topology(topology, {**conf, "topology.acker.executors": 0})
    text = str(raised.value)
    assert "\n" not in text and "remove topology.acker.executors, or set it to 1" in text
    assert plan_topology(topology, conf).exactly_once
    assert not plan_topology(topology, {"topology.acker.executors": 0}).exactly_once
