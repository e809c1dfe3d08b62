"""Classes, builders and specs: what they become, and what they refuse."""

from __future__ import annotations

import re
from typing import Any

import pytest

from stormspark.compat.heronpy.component_spec import GlobalStreamId, HeronComponentSpec
from stormspark.compat.heronpy.components import Bolt, Spout
from stormspark.compat.heronpy.groupings import AnyFieldsGrouping
from stormspark.compat.heronpy.stream import Grouping, Stream
from stormspark.compat.heronpy.topology import Topology, TopologyBuilder
from stormspark.errors import InvalidTopologyError
from stormspark.grouping import AllGrouping, GlobalGrouping, ShuffleGrouping
from stormspark.streamlet.submission import capturing
from stormspark.testing import TestWordCounter, TestWordSpout


class Words(Spout):
    outputs = ("word", Stream(["message"], name="error"))


class Count(Bolt):
    outputs = ("word", "count")


class Plain(Bolt):
    pass


def streams(topology: Any, component: str) -> dict[str, tuple[str, ...]]:
    return {id: tuple(one.fields) for id, one in topology.components[component].streams.items()}


class Waits(Bolt):
    async def process(self, tup: Any) -> None: ...  # type: ignore[override]


class AsksLater(Words):
    async def initialize(self, config: Any, context: Any) -> None: ...  # type: ignore[override]


@pytest.mark.parametrize(
    ("cls", "told"),
    [
        (Waits, r"process of class Waits \(.*test_topology.py:\d+\) is a coroutine function.*use a stormspark.AsyncBolt"),
        (AsksLater, "initialize of class AsksLater .* is a coroutine function.*use a stormspark.AsyncSpout"),
    ],
)  # fmt: skip
def test_methods_that_nobody_would_await_are_refused(cls: Any, told: str) -> None:
    class Mine(Topology):
        words = Words.spec()
        one = cls.spec() if issubclass(cls, Spout) else cls.spec(inputs={words: Grouping.SHUFFLE})

    with pytest.raises(InvalidTopologyError, match=rf"test_topology.py:\d+: .*'one'.*: {told}"):
        Mine.lowered()


def test_a_class_is_a_topology() -> None:
    """A40, A41: attributes that are specs are components, by their own names or the attributes'."""

    class WordCount(Topology):
        config = {"topology.stmgrs": 3, "mine": "x"}  # noqa: RUF012 - as users write it
        words = Words.spec(par=2)
        count = Count.spec(name="counts", par=4, inputs={words: Grouping.fields("word")})

    topology = WordCount.lowered()
    assert topology.name == "WordCount"
    assert {id: (one.kind, one.parallelism, one.type_name) for id, one in topology.components.items()} == {
        "words": ("spout", 2, "Words"),
        "counts": ("bolt", 4, "Count"),
    }
    assert topology.components["counts"].inputs == {("words", "default"): AnyFieldsGrouping(["word"])}
    assert (topology.conf["topology.workers"], topology.conf["mine"]) == (3, "x")
    assert streams(topology, "words") == {"default": ("word",), "error": ("message",)}


def test_a_class_submits_itself() -> None:
    """A40: T.write() hands it to who is loading the file."""

    class Written(Topology):
        words = Words.spec()

    with capturing() as submitted:
        Written.write()
    assert [topology.name for topology in submitted] == ["Written"]
    with pytest.raises(InvalidTopologyError, match=r"no command runs it"):
        Written.write()
    with pytest.raises(InvalidTopologyError, match=r"base Topology class"):
        Topology.write()


def test_a_builder_submits_what_was_added() -> None:
    """A40: add_spec, add_spout, add_bolt, set_config, build_and_submit."""
    builder = TopologyBuilder(name="built")
    words = Words.spec(name="words")
    builder.add_spec(words)
    count = builder.add_bolt("count", Count, par=2, inputs=[words, words["error"]])
    builder.add_bolt(
        "plain", Plain, 1, {count: Grouping.ALL, GlobalStreamId("words", "error"): Grouping.LOWEST}
    )
    builder.set_config({"topology.debug": True})
    with capturing() as (submitted):
        builder.build_and_submit()
    (topology,) = submitted
    assert topology.name == "built" and topology.conf["topology.debug"] is True
    assert topology.components["count"].inputs == {
        ("words", "default"): ShuffleGrouping(),
        ("words", "error"): ShuffleGrouping(),
    }
    assert topology.components["plain"].inputs == {
        ("count", "default"): AllGrouping(),
        ("words", "error"): GlobalGrouping(),
    }


def test_outputs_that_are_added() -> None:
    """A41: optional_outputs are added to the class's own, which stay what they are."""
    spec = Words.spec("words", optional_outputs=["at", Stream(["late"], name="more")])
    assert {id: one.fields for id, one in spec.streams().items()} == {
        "default": ["word", "at"],
        "error": ["message"],
        "more": ["late"],
    }
    assert len(Words.outputs) == 2
    assert Plain.spec("plain", [spec], optional_outputs=("a",)).get_out_streamids() == {"default"}


def test_components_of_stormsparks_own() -> None:
    """W23: where heronpy has no Kafka spout and no shell bolt, stormspark's own stand beside its components."""
    builder = TopologyBuilder("mixed")
    words = builder.add_spout("words", TestWordSpout(), 2)
    count = builder.add_bolt("count", TestWordCounter(), 2, {words: Grouping.fields("word")})
    builder.add_bolt("plain", Plain, 1, [count])
    topology = builder.build().lowered()
    assert topology.components["count"].type_name == "TestWordCounter"
    assert streams(topology, "words") == {"default": ("word",)}


def here(problem: str) -> str:
    """The message begins with a line of this file."""
    return f"^{re.escape(__file__)}:\\d+: .*{problem}"


def refused(problem: str, kind: type[Exception] = InvalidTopologyError) -> Any:
    return pytest.raises(kind, match=here(problem))


def test_what_a_builder_refuses() -> None:
    """A40, A41: names, duplicates, and what is no spec; with the user's line."""
    with refused("a topology's name must be a string"):
        TopologyBuilder("Topology")
    builder = TopologyBuilder("b")
    with refused("Argument to add_spec needs to be HeronComponentSpec", TypeError):
        builder.add_spec(Words)  # type: ignore[arg-type]
    with refused("cannot take a spec without name"):
        builder.add_spec(Words.spec())
    with refused("config is a reserved name"):
        builder.add_spout("config", Words, 1)
    builder.add_spout("words", Words, 1)
    with refused("Attempting to add duplicate spec name: 'words', in use since .*test_topology.py"):
        builder.add_spout("words", Words, 1)
    with refused("Argument to set_config needs to be dict", TypeError):
        builder.set_config([])  # type: ignore[arg-type]
    with refused("par must be an integer above 0, given: 0"):
        builder.add_spout("others", Words, 0)
    with refused("the name of a component must be a string"):
        builder.add_spout(3, Words, 1)  # type: ignore[arg-type]


def test_what_a_topology_refuses() -> None:
    """A41: no spout, a spout without outputs, a bolt without inputs, a name twice."""
    with refused("A Topology requires at least one Spout"):
        type("T", (Topology,), {"count": Count.spec(inputs=[Words.spec("words")])})
    with refused("requires at least one output, because it is a spout"):
        type("T", (Topology,), {"silent": type("Silent", (Spout,), {}).spec()})  # type: ignore[attr-defined]
    with refused("'plain'.*requires at least one input, because it is a bolt"):
        type("T", (Topology,), {"words": Words.spec(), "plain": Plain.spec()})
    with refused("Duplicate component name: words, used already at"):
        type("T", (Topology,), {"words": Words.spec(), "others": Words.spec(name="words")})


def test_what_specs_refuse() -> None:
    """A41, A42, A44: streams, inputs and configurations that are none; with the line of the spec."""
    words = Words.spec("words")

    def with_bolt(**settings: Any) -> None:
        type("T", (Topology,), {"words": words, "plain": Plain.spec(**settings)})

    with refused("A given stream id does not exist on this component: 'none'.*has 'default', 'error'"):
        words["none"]
    with refused("A given grouping is not supported: 'shuffle'"):
        with_bolt(inputs={words: "shuffle"})
    with refused("3 is not supported as an input"):
        with_bolt(inputs=[3])
    with refused("not part of this topology"):
        with_bolt(inputs=[Words.spec()])
    with refused("inputs must be a list, dict, or None", TypeError):
        with_bolt(inputs="words")
    with refused("outputs must be either list or tuple", TypeError):
        type("T", (Topology,), {"w": type("W", (Spout,), {"outputs": "word"}).spec()})  # type: ignore[attr-defined]
    with refused("outputs must be a list of strings or Streams, given: 3", TypeError):
        type("T", (Topology,), {"w": type("W", (Spout,), {"outputs": [3]}).spec()})  # type: ignore[attr-defined]
    with refused("optional_outputs must be a list", TypeError):
        Words.spec(optional_outputs="word")
    with refused("a configuration must be given as a dict", TypeError):
        with_bolt(inputs=[words], config=[1])
    with refused("keys of a configuration must be strings, given: 1", TypeError):
        with_bolt(inputs=[words], config={1: 2})
    with refused("componentId must be either string or HeronComponentSpec", TypeError):
        GlobalStreamId(3, "default")  # type: ignore[arg-type]
    with refused("streamId must be string type", TypeError):
        GlobalStreamId("words", 3)  # type: ignore[arg-type]


def test_streams_and_groupings() -> None:
    """A42: what they are, and what they refuse."""
    assert Stream().fields == [] and Stream(("a",), "s").stream_id == "s"
    assert Grouping.GLOBAL == Grouping.LOWEST and Grouping.LOCAL_OR_SHUFFLE == Grouping.SHUFFLE
    assert Grouping.fields("a", "b") == Grouping.fields(["a", "b"])
    for wrong in ("a", [1]):
        with refused("fields must be a list|field names must be strings", TypeError):
            Stream(wrong)  # type: ignore[arg-type]
    with refused("Stream name must be a string", TypeError):
        Stream([], None)  # type: ignore[arg-type]
    with refused("'direct' must be either True or False", TypeError):
        Stream([], "s", "yes")  # type: ignore[arg-type]
    with refused("Non-string cannot be specified in fields", TypeError):
        Grouping.fields(1)
    with refused("List cannot be empty for fields grouping"):
        Grouping.fields()
    with refused("must be ICustomGrouping instance or classpath", TypeError):
        Grouping.custom(3)  # type: ignore[arg-type]
    with refused("serialized Python class as bytes", TypeError):
        Grouping.custom_serialized("x")  # type: ignore[arg-type]
    with refused("implemented in Java", NotImplementedError):
        Grouping.custom_serialized(b"x")
    with refused("names a class in Java", NotImplementedError):
        Grouping.custom_object("a.B", [])


def test_a_custom_grouping_that_is_none() -> None:
    """A42, D13: told with the component that takes by it."""
    words = Words.spec("words")
    wrong = Grouping.custom_serialized(
        Grouping.custom("a.B").python_serialized[:0] + _pickled(3), is_java=False
    )

    class Wrong(Topology):
        spout = words
        plain = Plain.spec(inputs={words: wrong})

    with refused("bolt 'plain'.*its input words:default: a custom grouping must be an ICustomGrouping"):
        Wrong.lowered()


def _pickled(value: object) -> bytes:
    import pickle

    return pickle.dumps(value)


def test_a_spec_by_the_path_of_its_class() -> None:
    """A41: as Heron itself keeps it."""
    path = f"{TestWordSpout.__module__}.Nobody"
    spec = HeronComponentSpec("words", path, True, 1, outputs=["word"])
    with pytest.raises(Exception, match=r"Nobody.* can't be loaded"):
        type("T", (Topology,), {"words": spec}).lowered()  # type: ignore[attr-defined]
