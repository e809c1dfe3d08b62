"""What a topology's class may say, and what is wrong with it (A30-A38)."""

# ruff: noqa: RUF012 - class attributes are written as users write them
from __future__ import annotations

from typing import Any

import pytest

from stormspark import AsyncBolt, AsyncSpout, Fields
from stormspark.compat.streamparse.groupings import Grouping
from stormspark.compat.streamparse.lowering import lower
from stormspark.compat.streamparse.native import native
from stormspark.compat.streamparse.specs import ComponentSpec
from stormspark.compat.streamparse.storm import (
    BatchingBolt,
    Bolt,
    Component,
    JavaBolt,
    JavaSpout,
    ShellBolt,
    ShellSpout,
    Spout,
)
from stormspark.compat.streamparse.streams import GlobalStreamId, Stream
from stormspark.compat.streamparse.topology import Topology, TopologyType
from stormspark.errors import InvalidTopologyError
from stormspark.grouping import (
    AllGrouping,
    DirectGrouping,
    FieldsGrouping,
    GlobalGrouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
)
from stormspark.plan import plan_topology


class Words(Spout):
    outputs = ["word"]


class Count(Bolt):
    outputs = ["word", "count"]


class Streams(Bolt):
    outputs = [Stream(["word", "count"]), Stream(["total"], name="sum"), Stream(["x"], "told", direct=True)]


class Sink(Bolt):
    pass


def inputs(topology: Any, bolt: str) -> dict[tuple[str, str], Any]:
    declared = lower(topology, "test").components[bolt].inputs
    return {(key.component, key.stream): grouping for key, grouping in declared.items()}


class Waits(Bolt):
    async def process(self, tup: Any) -> None: ...  # type: ignore[override]


class Yields(BatchingBolt):
    async def process_batch(self, key: Any, tups: Any) -> Any:
        yield 1


class WaitsToo(Waits):
    """Inherits a coroutine."""


class AsksLater(Words):
    async def next_tuple(self) -> None: ...  # type: ignore[override]


@pytest.mark.parametrize(
    ("cls", "told"),
    [
        (Waits, r"process of class Waits \(.*test_dsl.py:\d+\) is a coroutine function"),
        (WaitsToo, r"process of class WaitsToo .*write a plain `def process`, or put a stormspark.AsyncBolt in its place"),
        (Yields, "process_batch of class Yields .*is an asynchronous generator function"),
        (AsksLater, "next_tuple of class AsksLater .* is a coroutine function.*AsyncSpout"),
    ],
)  # fmt: skip
def test_methods_that_nobody_would_await_are_refused(cls: Any, told: str) -> None:
    class Mine(Topology):
        words = Words.spec()
        one = cls.spec() if issubclass(cls, Spout) else cls.spec(inputs={words: Grouping.SHUFFLE})

    with pytest.raises(InvalidTopologyError, match=rf"test_dsl.py:\d+: one: {told}"):
        lower(Mine, "mine")


class Later(AsyncSpout):
    async def next_tuple(self) -> None: ...

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("word"))


class Answers(AsyncBolt):
    async def execute(self, tup: Any) -> None: ...


def test_async_components_of_stormspark_take_their_place() -> None:
    class Mine(Topology):
        words = native(Later())
        sink = native(Answers(), inputs=[words])

    assert set(lower(Mine, "mine").components) == {"words", "sink"}


def test_attributes_are_components() -> None:
    """A30, A31: attributes that are specs are components, named after the attribute or by name."""

    class T(Topology):
        config = {"mine": 1}
        note = "not a component"
        words = Words.spec(par=2)
        count = Count.spec(name="count-bolt", inputs=[words], config={"topology.tasks": 4})

    topology = lower(T, "wordcount", {"mine": 0, "other": 2})
    assert set(topology.components) == {"words", "count-bolt"}
    assert topology.name == "wordcount"
    assert topology.conf == {"mine": 1, "other": 2}
    assert topology.components["words"].parallelism == 2
    assert topology.components["count-bolt"].num_tasks == 4
    assert topology.components["count-bolt"].type_name == "Count"
    assert [spec.name for spec in T.specs] == ["words", "count-bolt"]
    assert T.thrift_spouts["words"].common.parallelism_hint == 2


def test_a_class_has_the_defaults_of_its_specs() -> None:
    """A31: ``outputs``, ``par`` and ``config`` of the class; what a spec says wins."""

    class Wide(Words):
        par = 5
        config = {"a": 1}

    class T(Topology):
        one = Wide.spec()
        two = Wide.spec(par=1, config={"b": 2})

    components = lower(T, "t").components
    assert (components["one"].parallelism, components["one"].conf) == (5, {"a": 1})
    assert (components["two"].parallelism, components["two"].conf) == (1, {"b": 2})


def test_parallelism_by_environment() -> None:
    """A31: ``par`` may be a dict; the environment chooses, and one that is not in it is refused with those that are."""

    class T(Topology):
        words = Words.spec(par={"prod": 5, "beta": 1})

    assert lower(T, "t", environment="prod").components["words"].parallelism == 5
    with pytest.raises(InvalidTopologyError, match=r"environment 'dev' is not among them.*'prod', 'beta'"):
        lower(T, "t", environment="dev")
    with pytest.raises(InvalidTopologyError, match="no environment is chosen"):
        lower(T, "t")


def test_forms_of_inputs() -> None:
    """A35: a list, a tuple or one spec alone by shuffle; a dict with groupings; direct where the default stream is direct."""

    class Direct(Spout):
        outputs = [Stream(["x"], direct=True)]

    class T(Topology):
        words = Words.spec()
        direct = Direct.spec()
        streams = Streams.spec(inputs=words)
        listed = Sink.spec(inputs=(words, streams["sum"], GlobalStreamId("direct", "default")))
        also = Sink.spec(inputs=[direct])
        mapped = Sink.spec(inputs={streams: Grouping.fields("word"), streams["told"]: Grouping.DIRECT})

    assert inputs(T, "streams") == {("words", "default"): ShuffleGrouping()}
    assert inputs(T, "listed") == dict.fromkeys(
        [("words", "default"), ("streams", "sum"), ("direct", "default")], ShuffleGrouping()
    )
    assert inputs(T, "also") == {("direct", "default"): DirectGrouping()}
    assert inputs(T, "mapped") == {
        ("streams", "default"): FieldsGrouping(("word",)),
        ("streams", "told"): DirectGrouping(),
    }


@pytest.mark.parametrize(
    ("grouping", "native"),
    [
        (Grouping.SHUFFLE, ShuffleGrouping()),
        (Grouping.GLOBAL, GlobalGrouping()),
        (Grouping.ALL, AllGrouping()),
        (Grouping.NONE, NoneGrouping()),
        (Grouping.LOCAL_OR_SHUFFLE, LocalOrShuffleGrouping()),
        (Grouping.fields("word"), FieldsGrouping(("word",))),
        (Grouping.fields(["word", "count"]), FieldsGrouping(("word", "count"))),
        (PartialKeyGrouping(("word",)), PartialKeyGrouping(("word",))),
    ],
    ids=repr,
)
def test_groupings(grouping: Any, native: Any) -> None:
    """A34: each of the constants, fields, and stormspark's own beside them."""

    class T(Topology):
        words = Words.spec()
        count = Count.spec(inputs=[words])
        sink = Sink.spec(inputs={count: grouping})

    assert inputs(T, "sink") == {("count", "default"): native}


@pytest.mark.parametrize(
    "grouping", [Grouping.custom_object("com.acme.Mine", ["x", 1]), Grouping.custom_serialized(b"\xac\xed")]
)
def test_groupings_of_java_do_not_run(grouping: Any) -> None:
    """A34: they can be written, but not run: the error names bolt, stream and line, and what to write instead."""

    class T(Topology):
        words = Words.spec()
        sink = Sink.spec(inputs={words: grouping})

    with pytest.raises(InvalidTopologyError) as caught:
        lower(T, "t")
    assert str(caught.value).startswith(f"{__file__}:")
    assert "sink: takes stream 'default' of 'words'" in str(caught.value)
    assert "CustomStreamGrouping" in str(caught.value)


def test_cycles() -> None:
    """A35: a stream may be named before its component is there."""
    back = GlobalStreamId(componentId="second", streamId="default")

    class T(Topology):
        words = Words.spec()
        first = Count.spec(inputs=[words, back])
        second = Count.spec(inputs=[first])

    assert set(inputs(T, "first")) == {("words", "default"), ("second", "default")}
    plan_topology(lower(T, "t"))


def _class(**body: Any) -> Any:
    return TopologyType("T", (Topology,), body)


def _mistakes() -> list[Any]:
    return [
        pytest.param(lambda: _class(words=Words), TypeError, "Did you forget to call the spec", id="no-spec"),
        pytest.param(
            lambda: _class(words=Words()), TypeError, "Did you forget to call the spec", id="instance"
        ),
        pytest.param(_class, ValueError, "at least one Spout", id="no-spout"),
        pytest.param(
            lambda: _class(c=Component.spec()), TypeError, "either be bolts or spouts", id="base-class"
        ),
        pytest.param(
            lambda: _class(w=Words.spec(), s=Sink.spec()), ValueError, "at least one input", id="no-input"
        ),
        pytest.param(
            lambda: _class(w=Words.spec(), s=Sink.spec(inputs=[])),
            ValueError,
            "at least one input",
            id="none",
        ),
        pytest.param(lambda: _class(s=Spout.spec()), ValueError, "at least one output", id="no-output"),
        pytest.param(
            lambda: _class(w=Words.spec(name="x"), x=Words.spec()),
            ValueError,
            "Duplicate component name: x",
            id="twice",
        ),
        pytest.param(
            lambda: _class(w=(w := Words.spec()), s=Sink.spec(inputs={w: Grouping.fields("wrod")})),
            ValueError,
            "Field 'wrod'.*did you mean 'word'",
            id="field",
        ),
        pytest.param(
            lambda: _class(w=Words.spec(), s=Sink.spec(inputs=[GlobalStreamId("words", "default")])),
            KeyError,
            "'words', which is no component of this topology",
            id="component",
        ),
        pytest.param(
            lambda: _class(w=Words.spec(), s=Sink.spec(inputs=[GlobalStreamId("w", "words")])),
            KeyError,
            "stream 'words' of 'w', whose outputs are 'default'",
            id="stream",
        ),
        pytest.param(lambda: Words.spec(name="w")["x"], KeyError, "Invalid stream for w: 'x'", id="item"),
        pytest.param(Grouping.fields, ValueError, "List cannot be empty", id="no-fields"),
        pytest.param(lambda: Grouping.fields([]), ValueError, "List cannot be empty", id="empty-list"),
        pytest.param(lambda: Grouping.custom_serialized("x"), TypeError, "as bytes", id="no-bytes"),  # type: ignore[arg-type]
        pytest.param(
            lambda: Grouping.custom_object("X", [{}]), TypeError, "basic data types", id="java-argument"
        ),
        pytest.param(lambda: Words.spec(par=0), ValueError, "greater than 0", id="par-0"),
        pytest.param(lambda: Words.spec(par=-1), ValueError, "greater than 0", id="par-negative"),
        pytest.param(lambda: Words.spec(par=1.5), TypeError, "integer", id="par-float"),
        pytest.param(lambda: Words.spec(par={1: 2}), TypeError, "environment names", id="par-key"),
        pytest.param(lambda: Words.spec(par={"a": "2"}), TypeError, "environment names", id="par-value"),
        pytest.param(lambda: Words.spec(par={"a": 0}), ValueError, "stage a", id="par-dict-0"),
        pytest.param(lambda: Words.spec(config="{}"), TypeError, "dict or None", id="config"),  # type: ignore[arg-type]
        pytest.param(lambda: Sink.spec(inputs="words"), TypeError, "list, dict, or None", id="inputs"),
        pytest.param(lambda: Sink.spec(inputs=["words"]), TypeError, "ComponentSpec or", id="inputs-list"),
        pytest.param(
            lambda: Sink.spec(inputs={"w": Grouping.ALL}), TypeError, "Given key: 'w'", id="inputs-key"
        ),
        pytest.param(
            lambda: Sink.spec(inputs={Words.spec(): "x"}), TypeError, "Given value: 'x'", id="inputs-value"
        ),
        pytest.param(
            lambda: _class(config=[], w=Words.spec()), TypeError, "must be a dictionary", id="topology-config"
        ),
        pytest.param(lambda: Stream("word"), TypeError, "list, tuple, or None", id="stream-fields"),  # type: ignore[arg-type]
        pytest.param(lambda: Stream(["a", 1]), TypeError, "must be strings", id="stream-field"),  # type: ignore[list-item]
        pytest.param(lambda: Stream(["a"], 1), TypeError, "name must be", id="stream-name"),  # type: ignore[arg-type]
        pytest.param(lambda: Stream(["a"], "b", 1), TypeError, "True or False", id="stream-direct"),  # type: ignore[arg-type]
        pytest.param(lambda: ShellBolt.spec(script="x"), ValueError, "command is required", id="no-command"),
        pytest.param(
            lambda: ShellSpout.spec(command="x"), TypeError, "script must not be None", id="no-script"
        ),
        pytest.param(
            lambda: JavaSpout.spec(args_list=[]), ValueError, "full_class_name is required", id="no-class"
        ),
        pytest.param(
            lambda: JavaBolt.spec(full_class_name="X"), TypeError, "args_list must not", id="no-arguments"
        ),
        pytest.param(lambda: JavaBolt.spec(serialized_java="X"), TypeError, "bytes or None", id="serialized"),  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize(("make", "kind", "told"), _mistakes())
def test_what_is_wrong_is_reported_with_its_line(make: Any, kind: type[Exception], told: str) -> None:
    """A36: streamparse's exception types, each also an InvalidTopologyError, and the user's line."""
    with pytest.raises(InvalidTopologyError, match=told) as caught:
        make()
    assert isinstance(caught.value, kind)
    assert __file__ in str(caught.value)


@pytest.mark.parametrize("outputs", ["word", ["word", 2]])
def test_outputs_that_are_none(outputs: Any) -> None:
    """A36: outputs are a list of names, or of streams."""

    class Bad(Spout):
        pass

    Bad.outputs = outputs
    with pytest.raises(TypeError, match=rf"{__file__}:\d+: Bad: Outputs must"):
        Bad.spec()


def test_java_classes_that_python_knows(tmp_path: Any) -> None:
    """A32: a Java class that something stands for in Flux files runs here too, with its arguments."""

    class T(Topology):
        words = JavaSpout.spec(
            full_class_name="org.apache.storm.testing.TestWordSpout", args_list=[], outputs=["word"]
        )
        count = Count.spec(inputs={words: Grouping.fields("word")})

    topology = lower(T, "t")
    assert list(topology.components["words"].streams["default"].fields) == ["word"]
    plan_topology(topology)

    class Serialized(Topology):
        words = JavaSpout.spec(serialized_java=b"\xac\xed", outputs=["word"])

    with pytest.raises(
        InvalidTopologyError, match=rf"{__file__}:\d+: spout 'words' is a serialized Java object.*native"
    ):
        lower(Serialized, "t")


def test_shell_components() -> None:
    """A32, I3: the command with its arguments, the streams with their fields."""

    class T(Topology):
        words = ShellSpout.spec(
            command="perl", script="-w 'my words.pl'", outputs=[Stream(["a"], "x", direct=True)]
        )
        count = ShellBolt.spec(
            command="ruby", script="", inputs={words["x"]: Grouping.DIRECT}, outputs=["word"]
        )

    components = lower(T, "t").components
    assert components["words"].streams["x"].direct
    assert list(components["count"].streams["default"].fields) == ["word"]
    assert T.thrift_spouts["words"].component_object.shell.script == "-w 'my words.pl'"  # type: ignore[union-attr]
    plan_topology(lower(T, "t"))


def test_flux() -> None:
    """A38: a topology as Flux has it."""

    class T(Topology):
        words = Words.spec(par=2)
        streams = Streams.spec(inputs={words: Grouping.fields("word")}, config={"a": 1})
        java = JavaBolt.spec(full_class_name="x.Y", args_list=[1], inputs={streams["sum"]: Grouping.GLOBAL})
        sink = Sink.spec(inputs={streams: Grouping.custom_object("x.G", ["z"])})

    written = T.to_flux_dict("wordcount")
    shell = "org.apache.storm.flux.wrappers"
    assert written["name"] == "wordcount"
    assert written["spouts"] == [
        {
            "id": "words",
            "className": f"{shell}.spouts.FluxShellSpout",
            "constructorArgs": [["streamparse_run", f"{__name__}.Words"], ["word"]],
            "configMethods": [],
            "parallelism": 2,
        }
    ]
    streams, java, sink = written["bolts"]
    assert streams["configMethods"] == [
        {"name": "setNamedStream", "args": ["sum", ["total"]]},
        {"name": "setNamedStream", "args": ["told", ["x"]]},
        {"name": "addComponentConfig", "args": ["a", 1]},
    ]
    assert (java["className"], java["constructorArgs"]) == ("x.Y", [1])
    assert sink["constructorArgs"][1] == ["NONE_BUT_FLUX_WANTS_SOMETHING_HERE"]
    assert [edge["grouping"] for edge in written["streams"]] == [
        {"streamId": "default", "type": "FIELDS", "args": ["word"]},
        {"streamId": "sum", "type": "GLOBAL"},
        {
            "streamId": "default",
            "type": "CUSTOM",
            "customClass": {"className": "x.G", "constructorArgs": ["z"]},
        },
    ]
    with pytest.raises(NotImplementedError, match="to_flux_dict"):
        T.write("file")


def test_plans_name_the_users_lines() -> None:
    """A36: what is found only when the topology is planned is told with the line of the spec."""

    class Both(Bolt):
        outputs = [Stream(["a", "a"], "twice")]

    class T(Topology):
        words = Words.spec()
        both = Both.spec(inputs=[words])

    with pytest.raises(
        InvalidTopologyError, match=rf"{__file__}:\d+: bolt 'both': .*'a' occurs more than once"
    ):
        lower(T, "t")
    topology = lower(_class(w=(w := Words.spec()), s=Sink.spec(inputs={w: Grouping.DIRECT})), "t")
    with pytest.raises(InvalidTopologyError, match=rf"{__file__}:\d+: bolt 's' subscribes to stream"):
        plan_topology(topology)


def test_specs_print_themselves() -> None:
    """A31: a spec names its class, its parallelism and its line."""
    spec: ComponentSpec = Words.spec(par=3)
    assert repr(spec).startswith("ShellSpoutSpec(Words, name=None, par=3, declared at")
