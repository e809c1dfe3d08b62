"""Skeletons: they import, and their plan is the graph that was read."""

import ast
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stormspark.plan import plan_topology
from stormspark.porting.project import read_project
from tests.unit.porting.reading import (
    COMPONENTS,
    IMPORTS,
    graph_planned,
    graph_read,
    planned_skeleton,
    read_files,
)

pytest.importorskip("tree_sitter_java")


def skeletons(folder, sources):
    """Each skeleton's file, written beside its source, with the topology that it is of."""
    topologies = read_files(folder, sources).topologies
    written = dict(read_project(folder)[1])
    for name, text in written.items():
        (folder / name).write_text(text)
    return [(topology.skeleton, topology) for topology in topologies if topology.skeleton]


def java(name, body, more=""):
    return f"""{IMPORTS}
public class {name} {{
    {more}
    public static void main(String[] args) throws Exception {{
        TopologyBuilder builder = new TopologyBuilder();
        Config conf = new Config();
        {body}
        StormSubmitter.submitTopology("{name.lower()}", conf, builder.createTopology());
    }}
}}
{COMPONENTS}"""


CASES = {
    "SkeletonOfStreams": """
        builder.setSpout("lines", new Lines(), 2).setNumTasks(4);
        builder.setBolt("split", new Split(), 3).shuffleGrouping("lines").fieldsGrouping("lines", "errors", new Fields("reason"));
        builder.setBolt("print", new Print()).directGrouping("lines", "asked").allGrouping("split");
    """,
    "SkeletonOfNames": """
        builder.setSpout("named", (IRichSpout) Class.forName(args[0]).getConstructor(String.class).newInstance("a"));
        builder.setBolt("too", (IRichBolt) Class.forName(args[1]).getConstructor(String.class).newInstance("b"));
    """,
    "SkeletonOfStock": """
        builder.setSpout("words", new TestWordSpout(), 2);
        builder.setBolt("count", new org.apache.storm.testing.TestWordCounter(), 3).fieldsGrouping("words", new Fields("word"));
        builder.setBolt("print", tuple -> System.out.println(tuple)).globalGrouping("count");
        builder.setBolt("more", (tuple, collector) -> collector.emit(new Values(1)), 2, "a", "b").noneGrouping("count");
        builder.setBolt("quiet", (tuple, collector) -> System.out.println(tuple), 2).shuffleGrouping("more");
    """,
    "SkeletonOfSettings": """
        conf.setNumWorkers(2);
        conf.put("my.key", Arrays.asList("a", 1));
        conf.put("my.secret", System.getenv("SECRET"));
        builder.setSpout("lines", new Lines()).addConfiguration("topology.max.spout.pending", 10).setMemoryLoad(100);
        builder.setBolt("class", new Split()).shuffleGrouping("lines");
        builder.setBolt("from-here \\"quoted\\"", new Print()).partialKeyGrouping("class", new Fields("word"));
    """,
    "SkeletonOfUnknown": """
        builder.setSpout("lines", new com.acme.SourceOfLines(3), Integer.parseInt(args[0]));
        builder.setBolt("split", made(), 2).fieldsGrouping("lines", new Fields("line")).shuffleGrouping("lines", "other");
        builder.setBolt("print", new Print()).customGrouping("split", new com.acme.Mine(1)).allGrouping("nobody");
    """,
}
MORE = 'static IRichBolt made() { return (IRichBolt) Class.forName("x").newInstance(); }'


@pytest.mark.parametrize("name", CASES)
def test_its_plan_is_the_graph_that_was_read(tmp_path, name):
    """Ids, parallelism, tasks and groupings."""
    [(file, topology)] = skeletons(tmp_path, {f"{name}.java": java(name, CASES[name], MORE)})
    components, edges = graph_read(topology)
    planned_components, planned_edges = graph_planned(planned_skeleton(tmp_path, file))
    assert planned_components == {
        id_: (kind, parallelism or 1, tasks or 1) for id_, (kind, parallelism, tasks) in components.items()
    }
    assert planned_edges == {edge for edge in edges if edge[0] != "nobody"}


@pytest.mark.slow
def test_the_command_line_explains_it(tmp_path):
    name = "SkeletonToExplain"
    [(file, _)] = skeletons(tmp_path, {f"{name}.java": java(name, CASES["SkeletonOfStreams"])})
    command = [sys.executable, "-m", "stormspark.cli", "explain", str(tmp_path / file), "--format", "text"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("topology skeletontoexplain: 3 components, 8 tasks")
    assert "lines:errors -> split: fields(reason)" in done.stdout


def test_streams_and_settings_are_declared(tmp_path):
    """Also direct streams, and what a component sets for itself."""
    name = "SkeletonOfDeclarations"
    body = (
        CASES["SkeletonOfStreams"]
        + 'conf.setMaxSpoutPending(7); builder.setBolt("tick", new Ticking(5)).shuffleGrouping("split");'
    )
    more = """static class Ticking extends BaseRichBolt {
        private final int every;
        Ticking(int everySeconds) { every = everySeconds; }
        public void declareOutputFields(OutputFieldsDeclarer declarer) {}
        public Map<String, Object> getComponentConfiguration() { return Map.of(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS, every); }
    }"""
    [(file, _)] = skeletons(tmp_path, {f"{name}.java": java(name, body, more)})
    plan = plan_topology(planned_skeleton(tmp_path, file), {})
    streams = {
        stream.id: (tuple(stream.fields), stream.direct)
        for stream in plan.components["lines"].streams.values()
    }
    assert streams == {
        "default": (("line", "number"), False),
        "errors": (("reason",), False),
        "asked": (("task",), True),
    }
    assert plan.conf["topology.max.spout.pending"] == 7
    assert plan.components["tick"].conf == {"topology.tick.tuple.freq.secs": 5}
    assert "def __init__(self, every_seconds):" in (tmp_path / file).read_text()


def test_bodies_name_the_lines_that_they_stand_for(tmp_path):
    name = "SkeletonOfBodies"
    source = java(name, CASES["SkeletonOfStreams"])
    [(file, _)] = skeletons(tmp_path, {f"{name}.java": source})
    line = source[: source.index("public void nextTuple")].count("\n") + 1
    text = (tmp_path / file).read_text()
    assert f'raise NotImplementedError("port nextTuple from {name}.java:{line}")' in text
    assert f"# {name}.java:{line}: emits with a message id" in text
    assert 'new Values("a", 1)' not in text


def test_arguments_that_cannot_be_derived_are_listed(tmp_path):
    name = "SkeletonOfArguments"
    body = 'builder.setSpout("lines", new Read(args[0], "utf-8"));'
    more = """static class Read extends Lines { Read(String file, String encoding) { } }"""
    [(file, _)] = skeletons(tmp_path, {f"{name}.java": java(name, body, more)})
    text = (tmp_path / file).read_text()
    assert 'Read(None, "utf-8")' in text and "arguments that can't be made out are None here" in text
    assert list(plan_topology(planned_skeleton(tmp_path, file), {}).components) == ["lines"]


def test_a_text_with_none_in_it_and_a_null_are_arguments_that_are_known(tmp_path):
    name = "SkeletonOfNone"
    body = 'builder.setSpout("lines", new Read("some, None of them", null));'
    more = """static class Read extends Lines { Read(String what, String encoding) { } }"""
    [(file, _)] = skeletons(tmp_path, {f"{name}.java": java(name, body, more)})
    text = (tmp_path / file).read_text()
    assert 'Read("some, None of them", None)' in text and "can't be made out" not in text


def test_one_class_for_components_that_declare_alike_and_another_for_others(tmp_path):
    name = "SkeletonOfVariants"
    body = """
        builder.setSpout("lines", new Lines());
        builder.setBolt("a", new Copy("x")).shuffleGrouping("lines");
        builder.setBolt("b", new Copy("x")).shuffleGrouping("a");
        builder.setBolt("c", new Copy("y", "z")).shuffleGrouping("b");
    """
    more = """static class Copy extends BaseBasicBolt {
        private final String[] names;
        Copy(String... names) { this.names = names; }
        public void declareOutputFields(OutputFieldsDeclarer declarer) { declarer.declare(new Fields(names)); }
    }"""
    [(file, _)] = skeletons(tmp_path, {f"{name}.java": java(name, body, more)})
    classes = [
        one.name for one in ast.parse((tmp_path / file).read_text()).body if isinstance(one, ast.ClassDef)
    ]
    assert classes == ["Lines", "Copy", "CopyForC"]
    plan = plan_topology(planned_skeleton(tmp_path, file), {})
    declared = {
        id_: [list(s.fields) for s in one.streams.values()]
        for id_, one in plan.components.items()
        if id_ != "lines"
    }
    assert declared == {"a": [["x"]], "b": [["x"]], "c": [["y", "z"]]}


def test_windows_are_carried_over(tmp_path):
    """Lengths, slides and timestamps."""
    name = "SkeletonOfWindows"
    body = """
        builder.setSpout("lines", new Lines());
        BaseWindowedBolt late = new Window().withWindow(new Duration(10, TimeUnit.SECONDS), Duration.seconds(2))
            .withTimestampField("number").withLag(BaseWindowedBolt.Duration.of(500)).withLateTupleStream("late");
        builder.setBolt("time", late).shuffleGrouping("lines");
        builder.setBolt("count", new Window().withTumblingWindow(Count.of(5))).shuffleGrouping("lines");
        builder.setBolt("unknown", new Window().withWindow(mine())).shuffleGrouping("lines");
    """
    more = """static class Window extends BaseWindowedBolt {
        public void execute(TupleWindow window) {}
        public void declareOutputFields(OutputFieldsDeclarer declarer) { declarer.declare(new Fields("n")); }
    }"""
    [(file, _)] = skeletons(tmp_path, {f"{name}.java": java(name, body, more)})
    plan = plan_topology(planned_skeleton(tmp_path, file), {})
    conf = {
        id_: {k.removeprefix("topology.bolts."): v for k, v in one.conf.items() if v is not None}
        for id_, one in plan.components.items()
    }
    assert conf["time"] == {
        "window.length.duration.ms": 10_000,
        "window.sliding.interval.duration.ms": 2_000,
        "tuple.timestamp.max.lag.ms": 500,
        "late.tuple.stream": "late",
    }
    assert conf["count"] == {"window.length.count": 5, "window.sliding.interval.count": 5}
    assert conf["unknown"]["window.length.count"] == 1
    assert "late" in plan.components["time"].streams


def test_a_transactional_topology(tmp_path):
    """Spout, bolts and committers of the transactional builder."""
    source = f"""{IMPORTS}
    public class SkeletonOfTransactions {{
        public static void main(String[] args) {{
            TransactionalTopologyBuilder builder = new TransactionalTopologyBuilder("id", "spout", new Batches(), 3);
            builder.setBolt("count", new Count(), 5).noneGrouping("spout");
            builder.setCommitterBolt("total", new Count()).globalGrouping("count");
            new LocalCluster().submitTopology("global-count", new Config(), builder.buildTopology());
        }}
        static class Batches implements ITransactionalSpout<Integer> {{
            public void declareOutputFields(OutputFieldsDeclarer declarer) {{ declarer.declare(new Fields("tx", "n")); }}
        }}
        static class Count extends BaseBatchBolt {{
            public void declareOutputFields(OutputFieldsDeclarer declarer) {{ declarer.declare(new Fields("tx", "count")); }}
        }}
    }}"""
    [(file, topology)] = skeletons(tmp_path, {"SkeletonOfTransactions.java": source})
    components, edges = graph_planned(planned_skeleton(tmp_path, file))
    read_components, read_edges = graph_read(topology)
    bolts = {id_: values[1:] for id_, values in read_components.items()}
    assert {id_: values[1:] for id_, values in components.items() if id_ in bolts} == bolts
    assert read_edges <= edges and "spout/coordinator" in components


def test_kafka_is_configured_as_far_as_it_is_known(tmp_path):
    """Servers, topics and options; what is not known is left to be filled in."""
    name = "SkeletonOfKafka"
    body = """
        Properties props = new Properties();
        props.put("bootstrap.servers", BROKERS);
        props.put("acks", "1");
        props.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        KafkaSpoutConfig<String, String> config = KafkaSpoutConfig.builder(BROKERS, "in", "more")
            .setProp("group.id", "mine").setFirstPollOffsetStrategy(FirstPollOffsetStrategy.EARLIEST)
            .setMaxUncommittedOffsets(250).setRetry(null).build();
        builder.setSpout("in", new KafkaSpout<>(config), 2);
        builder.setBolt("out", new KafkaBolt<>().withProducerProperties(props).withTopicSelector(new DefaultTopicSelector("out"))
            .withTupleToKafkaMapper(new FieldNameBasedTupleToKafkaMapper("key", "value"))).shuffleGrouping("in");
    """
    [(file, _)] = skeletons(
        tmp_path, {f"{name}.java": java(name, body, 'static final String BROKERS = "a:1,b:2";')}
    )
    text = (tmp_path / file).read_text()
    assert 'KafkaSpoutConfig.builder("a:1,b:2", ["in", "more"])' in text
    assert ".set_max_uncommitted_offsets(250)" in text and '.set_prop("group.id", "mine")' in text
    assert '.with_topic_selector("out")' in text and '"acks": "1"' in text and "serializer" not in text
    plan = plan_topology(planned_skeleton(tmp_path, file), {})
    assert list(plan.components["in"].streams["default"].fields) == [
        "topic",
        "partition",
        "offset",
        "key",
        "value",
    ]


# -- any topology ------------------------------------------------------------------------------------------------

GROUPINGS = ["shuffle", "all", "global", "none", "local_or_shuffle", "fields", "partial_key"]
_METHODS = {
    "shuffle": "shuffleGrouping",
    "all": "allGrouping",
    "global": "globalGrouping",
    "none": "noneGrouping",
    "local_or_shuffle": "localOrShuffleGrouping",
    "fields": "fieldsGrouping",
    "partial_key": "partialKeyGrouping",
}


@st.composite
def topologies(draw):
    """Java that builds a random graph, and the graph: ids by literals, constants and variables."""
    spouts = draw(st.integers(1, 3))
    bolts = draw(st.integers(0, 4))
    ids = [f"c{number}" for number in range(spouts + bolts)]
    lines, fields = [], []
    components, edges = {}, {}
    for number, id_ in enumerate(ids):
        kind = "spout" if number < spouts else "bolt"
        parallelism = draw(st.integers(1, 9))
        written = draw(st.sampled_from(["literal", "constant", "variable", "sum"]))
        shown, tasks = f'"{id_}"', str(parallelism)
        if written == "constant":
            fields.append(
                f'static final String ID_{number} = "{id_}"; static final int TASKS_{number} = {parallelism};'
            )
            shown, tasks = f"ID_{number}", f"TASKS_{number}"
        elif written == "variable":
            lines.append(f'String id{number} = "{id_}"; int tasks{number} = {parallelism};')
            shown, tasks = f"id{number}", f"tasks{number}"
        elif written == "sum":
            shown, tasks = f'"c" + {number}', f"{parallelism - 1} + 1"
        components[id_] = (kind, parallelism, parallelism)
        if kind == "spout":
            lines.append(f"builder.setSpout({shown}, new Lines(), {tasks});")
            continue
        calls = []
        for source in draw(st.lists(st.sampled_from(ids[:number]), min_size=1, unique=True)):
            grouping = draw(st.sampled_from(GROUPINGS))
            field = "line" if source in ids[:spouts] else "word"
            more = f', new Fields("{field}")' if grouping in ("fields", "partial_key") else ""
            edges[source, id_] = (source, "default", id_, grouping, field if more else "")
            calls.append(f'.{_METHODS[grouping]}("{source}"{more})')
        if draw(st.booleans()):
            lines.append(f"builder.setBolt({shown}, new Split(), {tasks}){''.join(calls)};")
        else:
            lines.append(f"BoltDeclarer d{number} = builder.setBolt({shown}, new Split(), {tasks});")
            lines += [f"d{number}{call};" for call in calls]
    return lines, fields, (components, set(edges.values()))


counter = iter(range(10_000))


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(topologies())
def test_what_java_builds_is_what_is_read_and_what_its_skeleton_builds(tmp_path, topology):
    """For any graph."""
    lines, fields, graph = topology
    name = f"Random{next(counter)}"
    folder = tmp_path / name
    folder.mkdir()
    [(file, read)] = skeletons(folder, {f"{name}.java": java(name, "\n".join(lines), "\n".join(fields))})
    assert graph_read(read) == graph
    assert graph_planned(planned_skeleton(folder, file)) == graph
