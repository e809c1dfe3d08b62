import logging
import random

import pytest
from hypothesis import settings

from stormspark.errors import StormsparkError
from stormspark.flux import load as load_file
from stormspark.grouping import PartialKeyGrouping
from stormspark.plan import plan_topology
from tests.unit.flux.parts import Source

WORDS = "spouts: [{id: words, className: org.apache.storm.testing.TestWordSpout}]\n"
COUNT = "bolts: [{id: count, className: org.apache.storm.testing.TestWordCounter}]\n"
TO_COUNT = "streams: [{from: words, to: count, grouping: {type: SHUFFLE}}]\n"
ALL = "name: t\n" + WORDS + COUNT + TO_COUNT


def grouping(load, text):
    topology = load(
        "name: t\n" + WORDS + COUNT + f"streams: [{{from: words, to: count, grouping: {{{text}}}}}]"
    )
    [(stream, found)] = topology.components["count"].inputs.items()
    return stream, found


def test_a_definition_becomes_a_topology(load):
    """K13, K15, K16: spouts, bolts and streams, with the lines that they stand in."""
    topology = load(ALL)
    assert (topology.name, list(topology.components)) == ("t", ["words", "count"])
    count = topology.components["count"]
    assert count.declared_at.endswith("topology.yaml:3")
    [(stream, where)] = count.subscribed_at.items()
    assert (stream.component, where.rpartition("/")[2]) == ("words", "topology.yaml:4")
    assert plan_topology(topology).components["count"].parallelism == 1


@pytest.mark.parametrize(
    ("text", "described"),
    [
        ("type: SHUFFLE", "shuffle"),
        ("type: FIELDS, args: [word]", "fields(word)"),
        ("type: FIELDS, args: []", "global"),
        ("type: ALL", "all"),
        ("type: GLOBAL", "global"),
        ("type: NONE", "none"),
        ("type: DIRECT", "direct"),
        ("type: LOCAL_OR_SHUFFLE", "local or shuffle"),
        ("type: PARTIAL_KEY, args: [word]", "partial key(word)"),
        (
            "type: CUSTOM, customClass: {className: tests.unit.flux.parts.First, constructorArgs: [1]}",
            "custom(First)",
        ),
        (
            "type: CUSTOM, customClass: {className: org.apache.storm.testing.NGrouping, constructorArgs: [1]}",
            "custom(NGrouping)",
        ),
    ],
)
def test_each_grouping_is_the_builders(load, text, described):
    """K16: all of Storm's types, and partial key."""
    stream, found = grouping(load, text)
    assert stream.stream == "default"
    assert found.describe().replace("-", " ").replace("_", " ") == described


def test_a_stream_id_names_the_stream(load):
    """K16: streamId."""
    stream, _ = grouping(load, "type: ALL, streamId: odd")
    assert stream.stream == "odd"


def test_partial_key_as_storm_writes_it(load):
    """K16, D12: CUSTOM with Storm's own class, whose Fields are a component."""
    topology = load(
        "components: [{id: f, className: org.apache.storm.tuple.Fields, constructorArgs: [[word]]}]\n"
        + ALL.replace(
            "{type: SHUFFLE}",
            "{type: CUSTOM, customClass: {className: org.apache.storm.grouping.PartialKeyGrouping, constructorArgs: [ref: f]}}",
        )
    )
    [found] = topology.components["count"].inputs.values()
    assert isinstance(found, PartialKeyGrouping)


def test_sizes_loads_and_settings_are_the_components_own(load):
    """K15, A20: numTasks, loads and config are laid over the component's own configuration."""
    topology = load(
        """
name: t
config: {topology.debug: true, mine: 1}
spouts:
- id: words
  className: org.apache.storm.testing.TestWordSpout
  constructorArgs: [false]
  parallelism: 2
  numTasks: 4
  onHeapMemoryLoad: 100
  offHeapMemoryLoad: 50
  cpuLoad: 10
  config: {topology.max.task.parallelism: 3, topology.debug: false}
bolts: [{id: count, className: org.apache.storm.testing.TestWordCounter}]
streams: [{from: words, to: count, grouping: {type: SHUFFLE}}]
"""
    )
    words = topology.components["words"]
    assert (words.parallelism, words.num_tasks) == (2, 4)
    assert words.conf["topology.component.resources.onheap.memory.mb"] == 100
    assert words.conf["topology.component.resources.offheap.memory.mb"] == 50
    assert words.conf["topology.component.cpu.pcore.percent"] == 10
    assert words.conf["topology.max.task.parallelism"] == 3  # the component says 1
    plan = plan_topology(topology)
    assert plan.components["words"].conf["topology.debug"] is False
    assert (plan.conf["topology.debug"], plan.conf["mine"]) == (True, 1)


def test_a_bolt_without_a_stream_is_left_out_with_a_warning(load, caplog):
    """K16: Storm leaves it out too, and says nothing."""
    with caplog.at_level(logging.WARNING):
        topology = load(
            ALL.replace(
                "bolts: [", "bolts: [{id: alone, className: org.apache.storm.testing.TestGlobalCount}, "
            )
        )
    assert list(topology.components) == ["words", "count"]
    assert (
        "topology.yaml:3: bolt 'alone' is left out, because no stream leads to it (no stream with `to: alone`)"
        in caplog.text
    )


def test_a_second_stream_replaces_the_first_with_a_warning(load, caplog):
    """K16, A8: the same stream to the same bolt."""
    topology = load(
        ALL + "- {from: words, to: count, grouping: {type: ALL}}\n"
        if False
        else ALL.replace("}}]", "}}, {from: words, to: count, grouping: {type: ALL}}]")
    )
    [found] = topology.components["count"].inputs.values()
    assert found.describe() == "all"
    assert "this stream from 'words' to 'count' replaces the one at" in caplog.text


def test_worker_hooks_are_added_in_their_order(load):
    """K13, A5: each is made as any component."""
    topology = load(
        ALL
        + "workerHooks:\n- {className: tests.unit.flux.parts.Hook, constructorArgs: [a]}\n"
        + "- {id: base, className: org.apache.storm.hooks.BaseWorkerHook}\n"
    )
    assert [hook.type_name for hook in topology.worker_hooks] == ["Hook", "WorkerHook"]
    assert topology.worker_hooks[0].declared_at.endswith("topology.yaml:6")


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        (
            "name: t\n",
            None,
            "the file has neither spouts, bolts and streams nor a topologySource, so there is nothing to run",
        ),
        ("name: t\n" + COUNT, None, "the file has no spouts, so there is nothing to run"),
        (WORDS + COUNT + TO_COUNT, None, "the topology has no name: add the line `name: my-topology`"),
        (
            ALL + "topologySource: {className: tests.unit.flux.parts.Source}",
            5,
            "the file can't have spouts and bolts and streams too",
        ),
        (ALL.replace("to: count", "to: cuont"), 4, "there is no bolt 'cuont': did you mean 'count'?"),
        (
            ALL.replace("to: count", "to: words"),
            4,
            "a stream must end at a bolt, and 'words' is a spout",
        ),
        (
            ALL.replace("from: words", "from: wrods"),
            4,
            "there is no spout or bolt 'wrods': did you mean 'words'?",
        ),
        (
            ALL.replace("TestWordSpout", "TestWordCounter"),
            2,
            "spout 'words' must be an instance of Spout, SourceSpout or AsyncSpout",
        ),
        (
            ALL.replace("TestWordCounter", "TestWordSpout"),
            3,
            "bolt 'count' must be an instance of Bolt, BasicBolt, WindowedBolt, ArrowBolt or AsyncBolt",
        ),
        (
            ALL.replace("id: words, ", "id: words, parallelism: 0, "),
            2,
            "Parallelism must be a positive whole number: 'words' has 0",
        ),
        (
            ALL.replace("id: words, ", "id: words, numTasks: 0, "),
            2,
            "number of tasks must be a positive integer, got 0",
        ),
        (ALL.replace("id: words", "id: count"), 3, "a spout has the id 'count' already, declared at"),
        (
            ALL + "config:\n  mine: 1\n  topology.workers: two",
            7,
            "config: topology.workers must be int, got 'two'",
        ),
        (ALL + "config:\n  a: 2001-01-01", 6, "is not JSON-serialisable"),
        (
            ALL.replace("id: count, ", "id: count, config: {topology.debug: 1}, "),
            3,
            "config of 'count': topology.debug must be bool, got 1",
        ),
        (
            ALL.replace("id: count, ", "id: count, config: {topology.tuple.compression.enable: maybe}, "),
            3,
            "config of 'count': topology.tuple.compression.enable",
        ),
        (
            ALL + "workerHooks: [{className: tests.unit.flux.parts.Thing}]",
            5,
            "a worker hook must be an instance of WorkerHook",
        ),
        (
            ALL.replace(
                "{type: SHUFFLE}", "{type: CUSTOM, customClass: {className: tests.unit.flux.parts.Thing}}"
            ),
            4,
            "has no prepare",
        ),
        (
            ALL.replace(
                "{type: SHUFFLE}", "{type: CUSTOM, customClass: {className: tests.unit.flux.parts.First}}"
            ),
            4,
            "the grouping from 'words' to 'count': tests.unit.flux.parts.First takes (count), got no arguments",
        ),
        (
            ALL.replace("org.apache.storm.testing.TestWordCounter", "com.acme.B"),
            3,
            "bolt 'count': no Python is known for the class com.acme.B",
        ),
    ],
)
def test_what_is_wrong_is_reported_with_its_line(refused, text, line, told):
    """K13-K16, J5: what the builder refuses, and what only a file can have wrong."""
    assert told in refused(text, line)


def test_the_plan_reports_a_grouping_by_a_field_that_is_not_there(load):
    """K16, J5: how the components fit together is looked at when the topology is planned, with the YAML's line."""
    topology = load(ALL.replace("{type: SHUFFLE}", "{type: FIELDS, args: [wrod]}"))
    with pytest.raises(StormsparkError, match=r"topology\.yaml:4.*wrod"):
        plan_topology(topology)


def source(load, text, more=""):
    return load(
        f"name: mine\nconfig: {{mine: 1}}\n{more}topologySource: {{className: tests.unit.flux.parts.{text}}}\n"
    )


def test_a_source_makes_a_topology(load):
    """K21: getTopology gets the configuration; name and configuration are the file's."""
    topology = source(load, "Source, constructorArgs: [a, b]")
    assert (topology.name, dict(topology.conf), list(topology.components)) == (
        "mine",
        {"mine": 1},
        ["words", "count"],
    )
    assert Source.asked == [(("a", "b"), {"mine": 1}, "Config")]


def test_a_source_s_method_can_be_named(load):
    """K21, A20: methodName; the topology's own configuration is below the file's."""
    topology = source(load, "Source, methodName: otherOne")
    assert (topology.name, topology.conf) == ("mine", {"of.its.own": 1, "topology.workers": 3, "mine": 1})


def test_a_source_may_be_a_function(load):
    """K21: one that gives a topology by itself; without a name in the file it keeps its own."""
    assert load("topologySource: {className: tests.unit.flux.parts.topology}").name == "by-function"


def test_a_source_may_refer_to_components(load):
    """A streamlet source's arguments may refer to components (K21, K14)."""
    more = "components: [{id: one, className: java.lang.String, constructorArgs: [x]}]\n"
    source(load, "Source, constructorArgs: [{ref: one}, b]", more)
    assert Source.asked[0][0] == ("x", "b")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Source, methodName: getTopolgy", "has no method getTopolgy: did you mean 'getTopology'?"),
        (
            "Source, methodName: givesNothing",
            "must return a Topology or a TopologyBuilder, got None of type NoneType",
        ),
        ("Source, methodName: takesNothing", "takes_nothing must take one argument, the configuration"),
        ("Source, methodName: raises", "raises raised OSError: no such table\n  at "),
        ("Source, constructorArgs: [a, b, c]", "takes (one='', other=''), got 'a', 'b', 'c'"),
        ("Keeper, constructorArgs: [a]", "has no method getTopology"),
    ],
)
def test_a_source_that_gives_none_is_reported(refused, text, told):
    """K21: class, method, the user's line."""
    assert told in refused(f"name: t\ntopologySource: {{className: tests.unit.flux.parts.{text}}}", 2)


def test_heron_s_resources_are_the_components_own(load):
    """K22, A9: ECO's map of resources; Java's options are dropped, and said so."""
    topology = load(
        ALL
        + """
type: heron
config:
  topology.component.resourcemap:
  - {id: words, ram: 256MB, cpu: 0.5, disk: 4GB}
  topology.component.jvmoptions:
  - {id: words, options: ["-Xms2g"]}
"""
    )
    words = topology.components["words"].conf
    assert words["topology.component.resources.onheap.memory.mb"] == 256
    assert words["topology.component.cpu.pcore.percent"] == 50
    assert topology.conf == {}


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("7", "must be a list of mappings with an id"),
        ("{id: words, ram: much}", "an amount such as 256MB, got 'much'"),
        ("{id: words, cpu: x}", "the cpu of 'words' must be a number of cores"),
    ],
)
def test_heron_s_resources_are_checked(load, entry, told):
    """A wrong entry in Heron's resource map is rejected, with the name of the setting (K22)."""
    with pytest.raises(StormsparkError, match=r"topology\.component\.resourcemap") as caught:
        load(ALL + f"config: {{topology.component.resourcemap: [{entry}]}}")
    assert told in str(caught.value)


@pytest.mark.slow
def test_a_file_with_a_slip_anywhere_is_loaded_or_refused(write):
    """K13: whatever a slip makes of a file, it ends in an error of ours that names it."""
    text = (
        "name: t\ncomponents:\n- id: c\n  className: java.lang.Integer\n  constructorArgs: [7]\n"
        + ALL.replace("name: t\n", "")
        + "config: {topology.workers: 2}\n"
    )
    chance = random.Random(7)
    outcomes = set()
    for _ in range(8 * settings().max_examples):
        characters = list(text)
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(len(characters))
            characters[place] = chance.choice([*":,[]{}- \n'\"x7", ""])
        file = write("".join(characters))
        try:
            load_file(file)
            outcomes.add("loaded")
        except StormsparkError as error:
            outcomes.add("refused" if "topology.yaml" in str(error) else str(error))
    assert outcomes == {"loaded", "refused"}
