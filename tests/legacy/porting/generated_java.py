"""Java topologies that a seed decides: classes, wirings and settings as people write them. Some can't be made out."""

from __future__ import annotations

import random
from collections.abc import Iterator

__all__ = ["java_topology"]

_SPOUTS = {
    "BaseRichSpout": "extends BaseRichSpout",
    "IRichSpout": "implements IRichSpout",
    "component": "extends BaseComponent implements IRichSpout",
    "shell": "extends ShellSpout implements IRichSpout",
    "unknown": "extends com.other.AbstractFeed<String>",
}
_BOLTS = {
    "BaseRichBolt": "extends BaseRichBolt",
    "BaseBasicBolt": "extends BaseBasicBolt",
    "IRichBolt": "implements IRichBolt",
    "component": "extends BaseComponent implements IBasicBolt",
    "window": "extends BaseWindowedBolt",
    "tick": "extends BaseTickTupleAwareRichBolt",
    "state": "extends BaseStatefulBolt<KeyValueState<String, Long>>",
    "state-window": "extends BaseStatefulWindowedBolt<KeyValueState<String, Long>>",
    "shell": "extends ShellBolt implements IRichBolt",
    "unknown": "extends AbstractThing",
    "none": "",
}
_TRANSACTIONAL = {
    "tx": "extends BaseTransactionalSpout<Integer>",
    "itx": "implements ITransactionalSpout<Meta>",
    "parts": "extends BasePartitionedTransactionalSpout<Meta>",
    "opaque": "implements IOpaquePartitionedTransactionalSpout<Meta>",
    "unknown": "extends AbstractFeed",
}
_BATCH_BOLTS = {
    "batch": "extends BaseBatchBolt",
    "tx": "extends BaseTransactionalBolt",
    "committer": "extends BaseTransactionalBolt implements ICommitter",
    "basic": "extends BaseBasicBolt",
    "unknown": "extends com.other.Thing",
}
#: Names that mean something else in Python, or in a skeleton.
_NAMES = [
    "Split",
    "Count",
    "Bolt",
    "Spout",
    "Fields",
    "None_",
    "Print",
    "Config",
    "Del",
    "In",
    "Class",
    "List",
    "Zähler",
    "Str",
]
_IDS = [
    '"split"',
    '"count-by-key"',
    '"Wörter"',
    "ID",
    'PREFIX + "x"',
    "args[0]",
    '"a\\"b"',
    "names.get(1)",
    '"class"',
    '"in/out"',
    "prefix() + 1",
]
_FIELDS = [
    'new Fields("word", "n")',
    'new Fields("word")',
    'new Fields("class", "def")',
    "new Fields(fields)",
    'new Fields("a b", "ü")',
    "FIELDS",
    'new Fields("")',
    'new Fields("word", "word")',
]
_CONF = [
    "conf.setNumWorkers(3);",
    "conf.setDebug(true);",
    "conf.setMaxSpoutPending(args.length);",
    'conf.put("topology.workers", "two");',
    "conf.setMessageTimeoutSecs(-1);",
    'conf.put("my.key", new HashMap<String, Object>());',
    "conf.put(args[0], 1);",
    'conf.put("my.text", "a\\n\\"b\\"\\\\");',
    "conf.put(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS, 5);",
    "conf.registerMetricsConsumer(LoggingMetricsConsumer.class, 1);",
    'conf.put("big", 12345678901L); conf.put("half", 0.5f); conf.put("no", null);',
]


def java_topology(seed: int) -> str:
    """Return the text of a Java file with one topology."""
    return "\n".join(_lines(random.Random(seed))) + "\n"


def _lines(rng: random.Random) -> Iterator[str]:
    transactional = rng.random() < 0.3
    names = rng.sample(_NAMES, rng.randint(2, 6))
    spout, *bolts = names
    yield "package org.acme;"
    yield "import java.util.*;"
    yield "public class Drawn {"
    yield '    static final String ID = "from-constant"; static final String PREFIX = "pre-"; static String[] fields;'
    yield '    static final Fields FIELDS = new Fields("one", "two");'
    yield '    static String prefix() { return System.getenv("P"); }'
    yield from _class(rng, spout, rng.choice(list((_TRANSACTIONAL if transactional else _SPOUTS).items())))
    for name in bolts:
        yield from _class(rng, name, rng.choice(list((_BATCH_BOLTS if transactional else _BOLTS).items())))
    yield "    public static void main(String[] args) throws Exception {"
    ids = rng.sample(_IDS, len(names))
    made = f"new {spout}({_arguments(rng)})"
    if transactional:
        memory = "new MemoryTransactionalSpout(DATA, FIELDS, 3)"
        made = rng.choice(
            [made, made, memory, "Feeds.opaque(args)", "new OpaqueTransactionalKafkaSpout(config)"]
        )
        yield f'        TransactionalTopologyBuilder builder = new TransactionalTopologyBuilder("drawn", {ids[0]}, {made}, 2);'
    else:
        topic = rng.choice(["ID", '"/a b"', "args[1]"])
        old = f'new KafkaSpout(new SpoutConfig(new ZkHosts("a:2181"), {topic}, "/event", "id"))'
        new = f'new KafkaSpout<>(KafkaSpoutConfig.builder("a:9092", {topic}).build())'
        made = rng.choice([made, made, made, old, new])
        yield "        TopologyBuilder builder = new TopologyBuilder();"
        if rng.random() < 0.9:
            yield f"        builder.setSpout({ids[0]}, {made}, {rng.choice(['2', 'args.length', 'N'])});"
    for place, (id_, name) in enumerate(zip(ids[1:], bolts, strict=True)):
        yield from _bolt(rng, id_, name, [*ids[: place + 1], '"elsewhere"'], transactional)
    yield "        Config conf = new Config();"
    for line in rng.sample(_CONF, rng.randint(0, 4)):
        yield f"        {line}"
    topology = "builder.buildTopology()" if transactional else "builder.createTopology()"
    name = rng.choice(["args[0]", '"drawn topology"', "ID"])
    yield f"        StormSubmitter.submitTopology({name}, conf, {topology});"
    yield "    }"
    yield "}"


def _class(rng: random.Random, name: str, kind: tuple[str, str]) -> Iterator[str]:
    yield f"    static class {name} {kind[1]} {{"
    if kind[0] == "shell":
        yield f'        public {name}() {{ super({rng.choice(["", "args.interpreter, "])}"python", "split.py"); }}'
    elif rng.random() < 0.4:
        second = rng.choice(["String", "Fields"])
        yield "        private final int size;"
        yield f"        public {name}(int size, {second} class_, Object... rest) {{ this.size = size; }}"
    if rng.random() < 0.7:
        yield "        public void execute(Tuple tuple) { collector.emit(tuple, new Values(1)); collector.ack(tuple); }"
    streams = rng.choice(
        [
            f"declarer.declare({rng.choice(_FIELDS)});",
            f'declarer.declareStream("errors", {rng.choice(_FIELDS)}); declarer.declare({rng.choice(_FIELDS)});',
            f'declarer.declareStream("direct", true, {rng.choice(_FIELDS)});',
            "declareOthers(declarer);",
            "",
        ]
    )
    yield f"        public void declareOutputFields(OutputFieldsDeclarer declarer) {{ {streams} }}"
    if rng.random() < 0.3:
        yield "        public Map<String, Object> getComponentConfiguration() {"
        yield "            Map<String, Object> c = new HashMap<>();"
        yield '            c.put("topology.tick.tuple.freq.secs", 10);'
        yield "            return c;"
        yield "        }"
    yield "    }"


def _arguments(rng: random.Random) -> str:
    return rng.choice(
        ["", "5", "args.length", '3, "text", 1, 2', 'new Fields("x")', "null", "new int[] {1}, service"]
    )


def _bolt(rng: random.Random, id_: str, name: str, sources: list[str], transactional: bool) -> Iterator[str]:
    made = f"new {name}({_arguments(rng)})"
    made = rng.choice(
        [made] * 5 + [f"{made}.withTumblingWindow(Count.of(5))", "make()", "new org.other.Sink(1)", "bolt"]
    )
    if rng.random() < 0.1 and not transactional:
        made = "tuple -> System.out.println(tuple)"
    adding = "setCommitterBolt" if transactional and rng.random() < 0.2 else "setBolt"
    calls = []
    for source in rng.sample(sources, rng.randint(1, min(2, len(sources)))):
        stream = rng.choice(["", "", ', "errors"', ", args[1]", ', "nowhere"'])
        calls.append(
            rng.choice(
                [
                    f".shuffleGrouping({source}{stream})",
                    f".fieldsGrouping({source}{stream}, {rng.choice(_FIELDS)})",
                    f".partialKeyGrouping({source}{stream}, {rng.choice(_FIELDS)})",
                    f".globalGrouping({source}{stream})",
                    f".allGrouping({source}{stream})",
                    f".directGrouping({source}{stream})",
                    f".noneGrouping({source}{stream})",
                    f".customGrouping({source}{stream}, new Mine(3))",
                    f".customGrouping({source}{stream}, (context) -> 1)",
                    f'.grouping(new GlobalStreamId({source}, "default"), grouping)',
                ]
            )
        )
    if rng.random() < 0.2:
        calls.append(
            rng.choice(
                [
                    ".setNumTasks(8)",
                    ".setNumTasks(args.length)",
                    '.addConfiguration("a.b", "c")',
                    ".setMemoryLoad(512)",
                    ".setCPULoad(x)",
                ]
            )
        )
    line = f"builder.{adding}({id_}, {made}, {rng.choice(['1', '4', 'N', '0'])}){''.join(calls)};"
    around = rng.random()
    if around < 0.1:
        yield f"        for (int i = 0; i < args.length; i++) {{ {line} }}"
    elif around < 0.2:
        yield f"        if (args.length > 1) {{ {line} }} else {{ {line} }}"
    else:
        yield f"        {line}"
