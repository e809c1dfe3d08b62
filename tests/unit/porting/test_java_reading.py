"""Topologies of Java, read from their source."""

import pytest

from stormspark.porting.findings import Unresolved
from tests.unit.porting.reading import IMPORTS, graph_read, line_of, read_files, read_main, reported

pytest.importorskip("tree_sitter_java")


def test_ids_parallelism_and_groupings(tmp_path):
    """A7: every grouping, with and without a stream."""
    topology = read_main(
        tmp_path,
        """
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("lines", new Lines(), 2).setNumTasks(4);
        builder.setBolt("split", new Split(), 3)
               .shuffleGrouping("lines")
               .fieldsGrouping("lines", "errors", new Fields("reason"))
               .directGrouping("lines", "asked");
        builder.setBolt("a", new Print()).allGrouping("split").globalGrouping("lines", "errors");
        builder.setBolt("b", new Print()).noneGrouping("split").localOrShuffleGrouping("lines");
        builder.setBolt("c", new Print()).partialKeyGrouping("split", new Fields("word")).fieldsGrouping("lines", new Fields());
        StormSubmitter.submitTopology("all", new Config(), builder.createTopology());
        """,
    )
    components, edges = graph_read(topology)
    assert topology.name == "all" and topology.complete
    assert components == {
        "lines": ("spout", 2, 4),
        "split": ("bolt", 3, 3),
        "a": ("bolt", 1, 1),
        "b": ("bolt", 1, 1),
        "c": ("bolt", 1, 1),
    }
    assert edges == {
        ("lines", "default", "split", "shuffle", ""),
        ("lines", "errors", "split", "fields", "reason"),
        ("lines", "asked", "split", "direct", ""),
        ("split", "default", "a", "all", ""),
        ("lines", "errors", "a", "global", ""),
        ("split", "default", "b", "none", ""),
        ("lines", "default", "b", "local_or_shuffle", ""),
        ("split", "default", "c", "partial_key", "word"),
        ("lines", "default", "c", "global", ""),
    }
    assert [one.place.line for _, one in topology.inputs][:2] == [
        line_of(tmp_path, '.shuffleGrouping("lines")'),
        line_of(tmp_path, '.fieldsGrouping("lines", "errors"'),
    ]


def test_constants_are_followed(tmp_path):
    topology = read_main(
        tmp_path,
        """
        final String id = PREFIX + "-" + Names.KIND + (1 + 2 * 3);
        int tasks = Names.TASKS / 2;
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout(id, new Lines(), tasks);
        BoltDeclarer declarer = builder.setBolt(Names.all()[1], new Split(), (int) N);
        declarer.fieldsGrouping(id, FIELDS);
        """,
        """
        static final String PREFIX = "lines";
        private static final long N = 0x10L;
        private static final Fields FIELDS = new Fields(Arrays.asList("line", "number"));
        interface Names {
            String KIND = "of_" + "text";
            int TASKS = 9;
            static String[] all() { return new String[] {"zero", "one"}; }
        }
        """,
    )
    components, edges = graph_read(topology)
    assert components == {"lines-of_text7": ("spout", 4, 4), "one": ("bolt", 16, 16)}
    assert edges == {("lines-of_text7", "default", "one", "fields", "line, number")}


def test_chars_escapes_and_text_blocks_have_javas_values(tmp_path):
    """A char is a number in arithmetic, but a letter beside a string. A text block loses its common indentation."""
    topology = read_main(
        tmp_path,
        r'''
        char last = 'a';
        String block = """
            one
              two \
            three\tfour
            """;
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("tab\11" + 'x' + '\101' + "\60s", new Lines(), 'c' - 'a');
        builder.setBolt(block, new Split(), 'a' + 'b').shuffleGrouping("tab\txA0s");
        builder.setBolt("number" + last + (last + 1), new Split()).shuffleGrouping(block);
        ''',
    )
    components, _ = graph_read(topology)
    assert components == {
        "tab\txA0s": ("spout", 2, 2),
        "one\n  two three\tfour\n": ("bolt", 195, 195),
        "numbera98": ("bolt", 1, 1),
    }


def test_methods_are_entered_with_their_arguments(tmp_path):
    topology = read_main(
        tmp_path,
        """
        TopologyBuilder builder = new TopologyBuilder();
        add(builder, "first", 3);
        add(builder, "second", 4);
        new Main().wire(builder);
        submit(builder.createTopology());
        """,
        """
        static void add(TopologyBuilder to, String id, int tasks) { to.setSpout(id, new Lines(), tasks); }
        private String sink = "sink";
        void wire(TopologyBuilder b) { wire(b, "first", "second"); }
        void wire(TopologyBuilder b, String... from) {
            b.setBolt(this.sink, new Print()).shuffleGrouping(from[0]).shuffleGrouping(from[1]);
        }
        static void submit(StormTopology topology) throws Exception {
            StormSubmitter.submitTopology(name(), new Config(), topology);
        }
        static String name() { return "named-" + "here"; }
        """,
    )
    components, edges = graph_read(topology)
    assert topology.name == "named-here"
    assert components == {"first": ("spout", 3, 3), "second": ("spout", 4, 4), "sink": ("bolt", 1, 1)}
    assert {edge[0] for edge in edges} == {"first", "second"}


def test_a_builder_may_be_a_field(tmp_path):
    topology = read_files(
        tmp_path,
        {
            "a/Base.java": f"package a;{IMPORTS} abstract class Base {{"
            " protected final TopologyBuilder builder = new TopologyBuilder();"
            " Base() { addSpouts(); } abstract void addSpouts(); }",
            "a/Mine.java": f"package a;{IMPORTS} public class Mine extends Base {{"
            ' void addSpouts() { builder.setSpout("words", new TestWordSpout(), 2); }'
            ' public static void main(String[] args) { new Mine().run("mine"); }'
            " void run(String name) { new LocalCluster().submitTopology(name, new Config(), builder.createTopology()); } }",
        },
    ).topologies
    assert [(t.name, graph_read(t)[0]) for t in topology] == [("mine", {"words": ("spout", 2, 2)})]


def test_code_that_no_main_reaches_is_read_too(tmp_path):
    source = f"""{IMPORTS}
    public class Factory {{
        public StormTopology getTopology(Map<String, Object> conf) {{
            TopologyBuilder builder = new TopologyBuilder();
            builder.setSpout("words", new TestWordSpout(), Integer.parseInt("3"));
            return builder.createTopology();
        }}
        static void wire(TopologyBuilder given) {{ given.setSpout("more", new TestWordSpout()); }}
    }}"""
    first, second = read_files(tmp_path, {"Factory.java": source}).topologies
    assert graph_read(first)[0] == {"words": ("spout", 3, 3)}
    assert first.name == "factory" and reported(first, "unread", "no code was found that submits it")
    assert graph_read(second)[0] == {"more": ("spout", 1, 1)}


def test_what_arguments_decide_is_reported(tmp_path):
    topology = read_main(
        tmp_path,
        """
        String name = "words";
        int tasks = args.length > 1 ? Integer.parseInt(args[1]) : 3;
        if (args.length > 0) { name = args[0]; }
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("lines", new Lines(), tasks);
        builder.setBolt("split", new Split(), Integer.parseInt(args[2])).shuffleGrouping("lines");
        if (args.length > 3) { builder.setBolt("print", new Print()).shuffleGrouping("split"); }
        Config conf = new Config();
        conf.put("my.file", args[1]);
        StormSubmitter.submitTopology(name, conf, builder.createTopology());
        """,
    )
    assert topology.name == "words"
    assert reported(topology, "note", r"its name is different if args\.length > 0")
    lines, split, _ = topology.components
    assert lines.parallelism == 3 and reported(topology, "note", "parallelism of spout 'lines' is different")
    [unread] = reported(topology, "unread", "parallelism of bolt 'split'")
    assert (
        split.parallelism is None and unread.place == split.place and "skeleton, which has 1" in unread.todo
    )
    assert reported(topology, "note", r"bolt 'print' is added only if args\.length > 3")
    assert topology.settings[0].value == Unresolved("args[1]")
    assert not topology.complete


def test_loops_are_reported_and_nothing_is_guessed(tmp_path):
    topology = read_main(
        tmp_path,
        """
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("lines", new Lines());
        BoltDeclarer all = builder.setBolt("all", new Print());
        for (int i = 0; i < 3; i++) {
            builder.setBolt("split" + i, new Split()).shuffleGrouping("lines");
            all.shuffleGrouping("split" + i);
        }
        """,
    )
    [split] = [one for one in topology.components if one.id is None]
    assert split.place.line == line_of(tmp_path, 'builder.setBolt("split" + i')
    [unread] = reported(topology, "unread", "is added in a loop, for .*the number of times can't be made out")
    assert unread.place == split.place
    [input_] = topology.components[1].inputs
    assert input_.source is None and not input_.resolved
    assert reported(
        topology, "unread", r"a subscription of bolt 'all' can't be made out: source \"split\" \+ i"
    )


@pytest.mark.parametrize("flag", ["true", "Names.ON", "null != this"])
def test_branches_that_are_certain(tmp_path, flag):
    taken = "true" if flag == "null != this" else flag
    topology = read_main(
        tmp_path,
        f"""
        TopologyBuilder builder = new TopologyBuilder();
        if ({taken}) {{ builder.setSpout("yes", new Lines()); }} else {{ builder.setSpout("no", new Lines()); }}
        """,
        "interface Names { boolean ON = !false; }",
    )
    assert [one.id for one in topology.components] == ["yes"]
    assert not reported(topology, "note", "only if")


def test_the_configuration(tmp_path):
    """Setters, constants of Config, puts and own keys, of the topology and of components."""
    topology = read_main(
        tmp_path,
        """
        Config conf = new Config();
        conf.setNumWorkers(3);
        conf.setDebug(true);
        Config.setMaxSpoutPending(conf, 5000);
        conf.put(Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS, 60);
        conf.put("my.list", Arrays.asList("a", "b"));
        conf.registerMetricsConsumer(LoggingMetricsConsumer.class);
        conf.put("topology.wrokers", 1);
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("lines", new Lines()).addConfiguration("topology.max.spout.pending", 10).setDebug(false);
        StormSubmitter.submitTopology("t", conf, builder.createTopology());
        conf.setNumWorkers(99);
        """,
    )
    values = {(one.key, one.component): one.value for one in topology.settings}
    assert values == {
        ("topology.workers", ""): 3,
        ("topology.debug", ""): True,
        ("topology.max.spout.pending", ""): 5000,
        ("topology.message.timeout.secs", ""): 60,
        ("my.list", ""): ["a", "b"],
        ("topology.metrics.consumer.register", ""): ["LoggingMetricsConsumer"],
        ("topology.wrokers", ""): 1,
        ("topology.max.spout.pending", "lines"): 10,
        ("topology.debug", "lines"): False,
    }
    [wrong] = reported(topology, "change", "topology.wrokers is a key of neither")
    assert wrong.todo == "did you mean topology.workers?"
    assert str(wrong.place) == f"Main.java:{line_of(tmp_path, 'wrokers')}"
    [consumer] = reported(
        topology, "change", "metrics.consumer.register names LoggingMetricsConsumer, of Java"
    )
    assert "register a stormspark.MetricsConsumer" in (consumer.todo or "")


def test_what_a_component_declares_follows_from_how_it_is_made(tmp_path):
    topology = read_main(
        tmp_path,
        """
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("lines", new Lines());
        builder.setBolt("one", new Generic("x", "y")).shuffleGrouping("lines");
        builder.setBolt("two", new Generic(5)).shuffleGrouping("one");
        builder.setBolt("three", new Generic(5) {
            public void declareOutputFields(OutputFieldsDeclarer declarer) { declarer.declare(new Fields("other")); }
        }).shuffleGrouping("two");
        builder.setBolt("four", new Generic(args)).shuffleGrouping("three");
        """,
        """
        static abstract class Ticking extends BaseBasicBolt {
            static final int DEFAULT = 2 * 30;
            protected final int every;
            Ticking(int every) { this.every = every; }
            public Map<String, Object> getComponentConfiguration() {
                Config conf = new Config();
                conf.put(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS, every);
                return conf;
            }
        }
        static class Generic extends Ticking {
            private Fields fields = new Fields("nothing");
            Generic(String... names) { super(DEFAULT); fields = new Fields(names); }
            Generic(int every) { super(every); }
            public void execute(Tuple tuple, BasicOutputCollector collector) {}
            public void declareOutputFields(OutputFieldsDeclarer declarer) { declarer.declare(this.fields); }
        }
        """,
    )
    declared = {one.id: [stream.fields for stream in one.streams or ()] for one in topology.components}
    assert declared["one"] == [("x", "y")]
    assert declared["two"] == [("nothing",)]
    assert declared["three"] == [("other",)]
    assert declared["four"] == [None]
    assert reported(topology, "unread", "fields of stream 'default' of bolt 'four' can't be made out")
    ticks = {one.component: one.value for one in topology.settings}
    assert ticks == {"one": 60, "two": 5, "three": 5, "four": 60}


def test_what_a_class_does(tmp_path):
    """Acks, anchors, message ids, ticks and threads are said with their lines."""
    topology = read_main(
        tmp_path,
        """
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("untracked", new Untracked());
        builder.setBolt("bolt", new Careless()).shuffleGrouping("untracked");
        builder.setBolt("good", new Careful()).shuffleGrouping("bolt");
        """,
        """
        static class Untracked extends BaseRichSpout {
            private SpoutOutputCollector out;
            public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector to) { out = to; }
            public void nextTuple() { out.emit("errors", new Values(1)); }
            public void declareOutputFields(OutputFieldsDeclarer declarer) { declarer.declare(new Fields("n")); }
        }
        static class Careless extends BaseRichBolt {
            private OutputCollector collector;
            public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) { new Thread(); }
            public void execute(Tuple tuple) {
                if (TupleUtils.isTick(tuple)) { collector.emit("late", new Values(2)); }
                collector.emit(tuple, new Values(1));
            }
            public void declareOutputFields(OutputFieldsDeclarer declarer) { declarer.declare(new Fields("n")); }
        }
        static class Careful extends BaseRichBolt {
            private OutputCollector collector;
            public void execute(Tuple tuple) { collector.emit("s", tuple, new Values(1)); collector.ack(tuple); }
            public void declareOutputFields(OutputFieldsDeclarer declarer) { }
        }
        """,
    )
    [untracked] = reported(topology, "note", "Untracked emits without message ids")
    assert untracked.place is not None and untracked.place.line == line_of(tmp_path, 'out.emit("errors"')
    [unanchored] = reported(topology, "note", "emits without an anchor")
    assert "Careless" in unanchored.text and unanchored.place is not None
    assert unanchored.place.line == line_of(tmp_path, 'emit("late"')
    assert [one.text for one in reported(topology, "note", "no call of ack or fail was found in")] == [
        "no call of ack or fail was found in Careless: without one, its tuples time out, as in Storm"
    ]
    assert reported(topology, "note", "Careless checks for ticks") and reported(
        topology, "note", "Careless uses threads"
    )
    assert not reported(topology, "note", "Careful")
    careful = topology.components[-1].does
    line = line_of(tmp_path, "collector.ack(tuple)")
    assert careful == (
        "extends BaseRichBolt",
        f"emits on s anchored (Main.java:{line})",
        f"acks (Main.java:{line})",
    )


def test_shells_and_stock_components_run(tmp_path):
    """The report has a child's command, if its script is there, and the class that replaces a stock component."""
    (tmp_path / "split.py").touch()
    topology = read_main(
        tmp_path,
        """
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("words", new TestWordSpout());
        builder.setBolt("split", new Shell()).shuffleGrouping("words");
        """,
        """
        static class Shell extends ShellBolt implements IRichBolt {
            Shell() { super("python3", SCRIPT); }
            static final String SCRIPT = "split.py";
            public void declareOutputFields(OutputFieldsDeclarer declarer) { declarer.declare(new Fields("word")); }
            public Map<String, Object> getComponentConfiguration() { return null; }
        }
        """,
    )
    runs = [one.text for one in topology.statements if one.kind == "runs"]
    assert len(runs) == 2
    assert "stormspark.testing.TestWordSpout" in runs[0] and "`python3 split.py`" in runs[1]
    assert not reported(topology, "change", ".")


def test_the_streams_that_a_flux_shell_gets_by_calls(tmp_path):
    topology = read_main(
        tmp_path,
        """
        FluxShellBolt shell = new FluxShellBolt(new String[] {"python3", "split.py"});
        shell.setDefaultStream(Arrays.asList("word"));
        shell.setNamedStream("errors", Arrays.asList("line", "reason"));
        FluxShellBolt odd = new FluxShellBolt(new String[] {"python3", "odd.py"});
        odd.setNamedStream(args[0], Arrays.asList("line"));
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("words", new TestWordSpout());
        builder.setBolt("split", shell).shuffleGrouping("words");
        builder.setBolt("odd", odd).shuffleGrouping("words");
        builder.setBolt("print", new Print()).fieldsGrouping("split", "errors", new Fields("reason"));
        """,
    )
    found = {one.id: one.streams for one in topology.components}
    assert {one.id: one.fields for one in found["split"] or ()} == {
        "default": ("word",),
        "errors": ("line", "reason"),
    }
    assert found["odd"] is None, "a stream whose name is not known"


def test_lambdas(tmp_path):
    """What a lambda emits is what setBolt names."""
    topology = read_main(
        tmp_path,
        """
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("ids", () -> UUID.randomUUID().toString(), 2);
        builder.setBolt("parts", (tuple, collector) -> { collector.emit(new Values(1, 2)); }, 3, "a", "b").shuffleGrouping("ids");
        builder.setBolt("print", System.out::println).shuffleGrouping("parts");
        """,
    )
    ids, parts, printed = topology.components
    assert ids.streams is not None and ids.streams[0].fields == ("lambda",) and ids.parallelism == 2
    assert parts.streams is not None and parts.streams[0].fields == ("a", "b") and parts.parallelism == 3
    assert printed.streams == ()
    assert len(reported(topology, "change", "is a lambda")) == 3


def test_transactional_topologies(tmp_path):
    """The spout of the builder, bolts and committers."""
    topology = read_main(
        tmp_path,
        """
        TransactionalTopologyBuilder builder = new TransactionalTopologyBuilder("counts", "spout", new Batches(), 3);
        builder.setBolt("count", new Count(), 5).noneGrouping("spout");
        builder.setCommitterBolt("total", new Count()).globalGrouping("count");
        LocalCluster cluster = new LocalCluster();
        cluster.submitTopology("global-count", new Config(), builder.buildTopology());
        """,
        """
        static class Batches implements ITransactionalSpout<Integer> {
            public void declareOutputFields(OutputFieldsDeclarer declarer) { declarer.declare(new Fields("tx", "n")); }
        }
        static class Count extends BaseBatchBolt {
            public void declareOutputFields(OutputFieldsDeclarer declarer) { declarer.declare(new Fields("id", "count")); }
        }
        """,
    )
    assert (topology.name, topology.front_end) == ("global-count", "java-transactional")
    assert graph_read(topology)[0] == {
        "spout": ("spout", 3, 3),
        "count": ("bolt", 5, 5),
        "total": ("bolt", 1, 1),
    }


def test_unsupported_parts_of_storm_are_listed(tmp_path):
    """DRPC, Trident and streams."""
    source = f"""{IMPORTS}
    public class Others {{
        public static void main(String[] args) throws Exception {{
            LinearDRPCTopologyBuilder drpc = new LinearDRPCTopologyBuilder("reach");
            drpc.addBolt(new Split(), 4);
            drpc.addBolt(new Split(), 2).fieldsGrouping(new Fields("id"));
            StormSubmitter.submitTopology("drpc", new Config(), drpc.createRemoteTopology());
            TridentTopology trident = new TridentTopology();
            TridentState counts = trident.newStream("spout1", null).each(new Fields("s"), null).groupBy(new Fields("w"));
            StormSubmitter.submitTopology("trident", new Config(), trident.build());
            StreamBuilder streams = new StreamBuilder();
            streams.newStream(null).filter(x -> x > 1).print();
            StormSubmitter.submitTopology("streams", new Config(), streams.build());
        }}
        static class Split extends BaseBasicBolt {{
            public void declareOutputFields(OutputFieldsDeclarer declarer) {{ declarer.declare(new Fields("id", "word")); }}
        }}
    }}"""
    drpc, trident, streams = read_files(tmp_path, {"Others.java": source}).topologies
    assert [(t.name, t.front_end) for t in (drpc, trident, streams)] == [
        ("drpc", "java-drpc"),
        ("trident", "java-trident"),
        ("streams", "java-streams"),
    ]
    assert [one.parallelism for one in drpc.components] == [4, 2]
    assert drpc.components[1].inputs[0].source == "bolt-0" and drpc.components[1].inputs[0].fields == ("id",)
    assert (
        reported(drpc, "change", "no DRPC")
        and reported(trident, "change", "no Trident")
        and reported(streams, "change", "Streams API")
    )
    assert [one.text.partition("(")[0] for one in reported(trident, "note", r"\(")][:3] == [
        "newStream",
        "each",
        "groupBy",
    ]
    assert not any(one.skeleton for one in (drpc, trident, streams))


def test_syntax_errors_are_named_and_the_rest_is_read(tmp_path):
    broken = f"""{IMPORTS}
public class Broken {{
    void wrong( {{ int = ; }}
    public static void main(String[] args) {{
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("words", new TestWordSpout(), 2);
        StormSubmitter.submitTopology("broken", new Config(), builder.createTopology());
    }}
}}"""
    good = (
        broken.replace("Broken", "Good")
        .replace("    void wrong( { int = ; }\n", "")
        .replace("broken", "good")
    )
    findings = read_files(tmp_path, {"Broken.java": broken, "Good.java": good})
    assert "good" in [topology.name for topology in findings.topologies]
    wrong = reported(findings, "unread", "syntax error")
    assert wrong and wrong[0].place is not None and str(wrong[0].place).startswith("Broken.java:")
    assert abs(wrong[0].place.line - line_of(tmp_path, "void wrong", "Broken.java")) <= 1


def test_old_files_in_latin_1(tmp_path):
    source = f"""{IMPORTS}
    public class Old {{ // caf\xe9
        public static void main(String[] args) {{
            TopologyBuilder b = new TopologyBuilder(); b.setSpout("\xe9", new TestWordSpout());
        }}
    }}"""
    (tmp_path / "Old.java").write_bytes(source.encode("latin-1"))
    [topology] = read_files(tmp_path, {}).topologies
    assert topology.components[0].id == "\xe9"


def test_code_that_goes_round_ends(tmp_path):
    topology = read_main(
        tmp_path,
        """
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout(round(3), new Lines());
        a(builder);
        """,
        """
        static final String LOOP = Main.LOOP + "x";
        static String round(int n) { return n == 0 ? LOOP : round(n - 1); }
        static void a(TopologyBuilder b) { b.setSpout("a", new Lines()); b(b); }
        static void b(TopologyBuilder b) { b.setBolt("b", new Print()).shuffleGrouping("a"); a(b); }
        """,
    )
    assert {one.id for one in topology.components} == {None, "a", "b"}


def test_a_builder_that_leaves_the_project(tmp_path):
    topology = read_main(
        tmp_path,
        """
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("lines", new Lines());
        com.acme.Wiring.add(builder);
        """,
    )
    [unread] = reported(topology, "unread", r"passed to add\(\)")
    assert unread.place is not None and unread.place.line == line_of(tmp_path, "com.acme")


def test_what_a_branch_may_change_is_not_taken_for_sure(tmp_path):
    """Objects, lists, fields and windows that are changed in a branch or a loop, and what is only made in one."""
    topology = read_main(
        tmp_path,
        """
        List<String> names = new ArrayList<>();
        names.add("a");
        for (String arg : args) { names.add(arg); }
        String[] fields = {"x", "y"};
        fields[1] = args[0];
        if (args.length > 7) { tasks = 9; }
        IRichSpout spout = new Lines();
        if (args.length > 8) { spout = new TestWordSpout(); }
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("lines", spout, tasks);
        builder.setBolt("a", new Named(new Fields(names))).fieldsGrouping("lines", new Fields(fields));
        BaseWindowedBolt window = new Window().withTumblingWindow(Count.of(3));
        if (args.length > 9) { window.withLag(Duration.seconds(1)); }
        builder.setBolt("b", window).shuffleGrouping("a");
        com.acme.Wiring.subscribe(builder.setBolt("c", new Named(new Fields("z"))));
        StormSubmitter.submitTopology("t", new Config(), builder.createTopology());
        """,
        """
        static int tasks = 3;
        static class Named extends BaseBasicBolt {
            private final Fields fields;
            Named(Fields fields) { this.fields = fields; }
            public void declareOutputFields(OutputFieldsDeclarer declarer) {
                if (fields.size() == 1) { com.acme.Declare.all(declarer); } else { declarer.declare(fields); }
            }
        }
        static class Window extends BaseWindowedBolt {
            public void declareOutputFields(OutputFieldsDeclarer declarer) { com.acme.Declare.all(declarer); }
        }
        """,
    )
    lines, a, b, c = topology.components
    assert lines.parallelism == 3 and reported(
        topology, "note", r"parallelism of spout 'lines' .* if args.length > 7"
    )
    assert reported(topology, "note", r"spout 'lines' is a different object if args.length > 8")
    assert a.inputs[0].fields is None and reported(
        topology, "unread", "a subscription of bolt 'a' can't be made out: fields"
    )
    assert reported(topology, "note", r"withLag\(\) of bolt 'b' is called only if args.length > 9")
    assert (a.streams, b.streams, c.streams) == (None, None, None)
    assert reported(topology, "unread", r"the streams of bolt 'b' are declared in all\(\)")
    assert reported(topology, "unread", r"the declarer of bolt 'c' is passed to subscribe\(\)")


def test_a_topology_that_is_built_in_a_branch_is_whole_there(tmp_path):
    topology = read_main(
        tmp_path,
        """
        if (args.length == 0) {
            TopologyBuilder builder = new TopologyBuilder();
            Config conf = new Config();
            conf.setNumWorkers(2);
            int tasks = 1;
            tasks = 4;
            builder.setSpout("lines", new Lines(), tasks);
            builder.setBolt("print", new Counted(3)).shuffleGrouping("lines");
            StormSubmitter.submitTopology("t", conf, builder.createTopology());
        }
        """,
        """
        static class Counted extends BaseBasicBolt {
            private int every = 1;
            Counted(int every) { this.every = every; }
            public Map<String, Object> getComponentConfiguration() { return Map.of("topology.tick.tuple.freq.secs", every); }
            public void declareOutputFields(OutputFieldsDeclarer declarer) {}
        }
        """,
    )
    assert graph_read(topology)[0] == {"lines": ("spout", 4, 4), "print": ("bolt", 1, 1)}
    assert {one.key: one.value for one in topology.settings} == {
        "topology.workers": 2,
        "topology.tick.tuple.freq.secs": 3,
    }
    assert not reported(topology, "note", "if") and not reported(topology, "unread", ".")


def test_code_that_is_too_long_or_too_deep_is_reported(tmp_path):
    deep = " + ".join(['"a"'] * 5000)
    topology = read_main(
        tmp_path,
        f"""
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("lines", new Lines());
        builder.setBolt({deep}, new Print()).shuffleGrouping("lines");
        """,
    )
    assert [one.id for one in topology.components][:1] == ["lines"]
    assert reported(topology, "unread", "too long or too deeply nested to be followed to its end")
