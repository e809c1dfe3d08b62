"""The mistakes: what was typed, the exit code, and sentences that the output must have.

Each mistake changes one of the files below, which run well as they are, or the command line. THE_FILE stands for the
topology's file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from stormspark.checkpoint.control import LocalControlFile

__all__ = ["FILES", "FLUX", "HERONPY", "MISTAKES", "PLAIN", "STREAMPARSE", "Mistake"]

PLAIN, STREAMPARSE, HERONPY, FLUX = "words_topology.py", "words_sp.py", "words_heron.py", "words.yaml"

#: The files, by name.
FILES = {
    PLAIN: """
from stormspark import Bolt, Fields, Spout, TopologyBuilder


class Words(Spout):
    def open(self, conf, context, collector):
        self.collector = collector
        self.left = ["storm", "spark", "storm"]

    def next_tuple(self):
        if self.left:
            word = self.left.pop()
            self.collector.emit((word,), message_id=word)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word"))


class Count(Bolt):
    def prepare(self, conf, context, collector):
        self.collector = collector
        self.counts = {}

    def execute(self, tup):
        word = tup["word"]
        self.counts[word] = self.counts.get(word, 0) + 1
        self.collector.emit((word, self.counts[word]), anchors=[tup])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word", "count"))


class Print(Bolt):
    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, tup):
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        pass


def build():
    builder = TopologyBuilder()
    builder.set_spout("words", Words())
    builder.set_bolt("count", Count(), 2).fields_grouping("words", Fields("word"))
    builder.set_bolt("print", Print()).shuffle_grouping("count")
    return builder.create_topology("words", {})
""",
    STREAMPARSE: """
from streamparse import Bolt, Grouping, Spout, Stream, Topology


class Words(Spout):
    outputs = ["word"]

    def initialize(self, conf, context):
        self.left = ["storm", "spark", "storm"]

    def next_tuple(self):
        if self.left:
            word = self.left.pop()
            self.emit([word], tup_id=word)


class Count(Bolt):
    outputs = ["word", "count"]

    def initialize(self, conf, context):
        self.counts = {}

    def process(self, tup):
        word = tup.values[0]
        self.counts[word] = self.counts.get(word, 0) + 1
        self.emit([word, self.counts[word]])


class WordCount(Topology):
    words = Words.spec()
    count = Count.spec(inputs={words: Grouping.fields("word")}, par=2)
""",
    FLUX: """name: words
spouts:
  - id: words
    className: stormspark.testing.TestWordSpout
bolts:
  - id: count
    className: stormspark.testing.TestWordCounter
    parallelism: 2
streams:
  - name: all
    from: words
    to: count
    grouping:
      type: SHUFFLE
""",
    HERONPY: """
from heronpy.api.bolt.bolt import Bolt
from heronpy.api.spout.spout import Spout
from heronpy.api.stream import Grouping
from heronpy.api.topology import Topology


class Words(Spout):
    outputs = ["word"]

    def initialize(self, config, context):
        self.left = ["heron", "spark"]

    def next_tuple(self):
        if self.left:
            word = self.left.pop()
            self.emit([word], tup_id=word)


class Count(Bolt):
    outputs = ["count"]

    def process(self, tup):
        self.emit([1])


class WordCount(Topology):
    words = Words.spec(par=1)
    count = Count.spec(par=1, inputs={words: Grouping.fields("word")})
""",
}

WORDS = '["storm", "spark", "storm"]'
RUN = ("run", "THE_FILE", "--engine", "local", "--until-idle", "0.1", "--quiet")


@dataclass(frozen=True)
class Mistake:
    """A mistake. ``changes`` are pairs of a text in the file and what stands in its place; None adds the second to its end."""

    name: str
    code: int
    says: Sequence[str]
    changes: Sequence[tuple[str | None, str]] = ()
    file: str = PLAIN
    command: Sequence[str] = RUN
    #: The environment in place of this one's.
    environment: dict[str, str] = field(default_factory=dict)
    #: Makes what the command finds in the working directory.
    before: Callable[[], object] | None = None
    #: Whether the folder "full" is a disk without space, and whether THE_BROKER stands for a broker of Kafka. In commands,
    #: THE_JARS stands for those of Spark's own source for Kafka.
    on_full_disk: bool = False
    with_broker: bool = False
    #: Whether the command needs a process of its own.
    alone: bool = False
    #: Whether it starts Spark, and whether only `make soak` runs it.
    on_spark: bool = False
    is_long: bool = False


def _options(*more: str, target: str = "THE_FILE") -> tuple[str, ...]:
    return ("run", target, *RUN[2:], *more)


#: Each starts a JVM, which takes half a minute.
SPARK: dict[str, Any] = {"alone": True, "on_spark": True, "is_long": True}


def _on_spark(*more: str) -> tuple[str, ...]:
    return ("run", "THE_FILE", "--until-idle", "1", "--workers", "1", *more)


def _reading(stream: str) -> list[tuple[str | None, str]]:
    """Changes that make a spout of the stream in place of the words."""
    return [
        ("class Words", "from stormspark.connectors import DataFrameSpout\n\n\nclass Words"),
        ("Words())", f'DataFrameSpout(lambda spark: {stream}, ["word"]))'),
    ]


def _writing(bolt: str, imported: str) -> list[tuple[str | None, str]]:
    """Changes that make a sink of the last bolt."""
    return [
        ("class Words", f"from stormspark.connectors import {imported}\n\n\nclass Words"),
        ("Print()", bolt),
    ]


def _from_kafka(broker: str) -> list[tuple[str | None, str]]:
    """Changes that read the words from Kafka's topic "words"."""
    return [
        ("class Words", "from stormspark.connectors import KafkaSpout, KafkaSpoutConfig\n\n\nclass Words"),
        ("Words())", f'KafkaSpout(KafkaSpoutConfig("{broker}", "words")))'),
        ('Fields("word"))\n    builder', 'Fields("value"))\n    builder'),
    ]


def _checkpoint(**fields: object) -> Callable[[], None]:
    """Make the checkpoint of a topology "words" with these fields in its control file."""

    def make() -> None:
        folder = Path("checkpoint/stormspark")
        folder.mkdir(parents=True)
        control = {
            "topology": "words",
            "generation": 3,
            "components": ["count", "print", "words"],
            "sources": [],
            "format": 1,
            **fields,
        }
        (folder / "control.json").write_text(json.dumps(control), encoding="utf-8")

    return make


def _taken() -> None:
    """Make a checkpoint that a driver in this process uses."""
    from stormspark.spark.fence import Fence

    settings = SimpleNamespace(checkpoint_in_use="refuse")
    plan: Any = SimpleNamespace(topology="words", components=["words"], sources=[], settings=settings)
    Fence(LocalControlFile(Path("checkpoint")), plan)


#: A checkpoint that can't be used is told before Spark starts.
_AT_CHECKPOINT = ("run", "THE_FILE", "--checkpoint", "checkpoint")

MISTAKES = [
    # -- the command line ----------------------------------------------------------------------------------------
    Mistake(
        "no such file",
        2,
        ["wrods.py does not exist; did you mean 'words.py'?"],
        command=_options(target="wrods.py"),
        before=Path("words.py").touch,
    ),
    Mistake(
        "a wrong name in the file",
        2,
        ["has no 'biuld'", "Did you mean THE_FILE:build?"],
        command=_options(target="THE_FILE:biuld"),
    ),
    Mistake(
        "a class in place of a function",
        2,
        ["is the class Words, not a Topology", "Did you mean THE_FILE:build?"],
        command=_options(target="THE_FILE:Words"),
    ),
    Mistake(
        "a folder without topologies",
        2,
        ["empty is a folder; name a file in it"],
        command=_options(target="empty"),
    ),
    Mistake("a jar", 2, ["storm.jar does not exist"], command=_options(target="storm.jar")),
    Mistake(
        "a storm command: jar",
        2,
        ["`stormspark run FILE`", "stormspark port"],
        command=("jar", "x.jar", "org.Main"),
    ),
    # The name is one that nobody gives to a topology: the command would end it.
    Mistake(
        "a topology that does not run",
        2,
        ["runs no topology 'no-such-words'"],
        command=("kill", "no-such-words"),
    ),
    Mistake(
        "a topology that does not run",
        2,
        ["this user runs no topology 'wordz'"],
        command=("restart", "wordz"),
    ),
    Mistake("a sparse command: remove_logs", 2, ["`stormspark logs NAME`"], command=("remove_logs", "words")),
    Mistake("a daemon of Storm", 2, ["there are no daemons here"], command=("nimbus",)),
    Mistake("figures of a topology", 2, ["`stormspark stats NAME`"], command=("status", "words")),
    Mistake("a misspelled option", 2, ["Did you mean"], command=_options("--worker", "2")),
    Mistake("an option of spark-submit", 2, ["deploy-mode"], command=_options("--deploy-mode", "cluster")),
    Mistake("no workers", 2, ["'--workers': 0 is not in the range x>=1"], command=_options("--workers", "0")),
    Mistake(
        "a setting without a value", 2, ["expected key=value"], command=_options("-c", "topology.workers")
    ),
    Mistake(
        "a setting of a wrong type",
        2,
        ["topology.workers must be int, got 'many'"],
        command=_options("-c", "topology.workers=many"),
    ),
    Mistake(
        "a misspelled setting",
        0,
        ["unknown setting topology.wrokers: did you mean topology.workers?"],
        command=("explain", "THE_FILE", "-c", "topology.wrokers=2"),
    ),
    Mistake(
        "a setting that does nothing here",
        0,
        [
            "topology.worker.childopts changes nothing here: workers are Python processes",
            "set spark.executorEnv.* or spark.executor.extraJavaOptions",
        ],
        command=("explain", "THE_FILE", "-c", "topology.worker.childopts=-Xmx1g"),
    ),
    Mistake(
        "an unknown engine",
        2,
        ["'--engine': 'flink' is not one of 'spark', 'local'"],
        command=("run", "THE_FILE", "--engine", "flink"),
    ),
    Mistake(
        "an unknown trigger",
        2,
        ["'--trigger': 'once' is not one of 'continuous', 'available-now'"],
        command=_options("--trigger", "once"),
    ),
    Mistake(
        "a master for the local engine",
        2,
        ["--checkpoint, --master and what brings jars or settings of Spark need --engine spark"],
        command=_options("--master", "yarn"),
    ),
    Mistake(
        "JSON into a folder that is missing",
        2,
        ["there is no folder"],
        command=_options("--json", "nowhere/out.json"),
    ),
    Mistake(
        "state of an unknown topology",
        2,
        ["started no topology 'wrods' on this host", "name its checkpoint folder"],
        command=("state", "wrods", "count"),
    ),
    Mistake(
        "state in a folder that is no checkpoint",
        2,
        ["there is no state table at ./empty/stormspark/state"],
        command=("state", "./empty", "count"),
    ),
    Mistake(
        "a task without its index",
        2,
        ["component[index]"],
        command=("replay", "./empty", "--batch", "1", "--task", "count"),
    ),
    Mistake(
        "dead letters of an unknown topology",
        2,
        ["started no topology 'wrods' on this host", "name its checkpoint folder"],
        command=("dead-letters", "list", "wrods"),
    ),
    Mistake(
        "open trees of an unknown topology",
        2,
        ["started no topology 'wrods' on this host", "name its checkpoint folder"],
        command=("pending", "wrods"),
    ),
    Mistake(
        "a story of an unknown topology",
        2,
        ["there are no logs of a topology in", "/wrods", "name another folder with --log-dir"],
        command=("story", "wrods"),
    ),
    # -- the file ------------------------------------------------------------------------------------------------
    Mistake(
        "a syntax error", 2, ["THE_FILE:45: SyntaxError: expected ':'"], [("def build():", "def build()")]
    ),
    Mistake(
        "a module that is not installed",
        2,
        ["No module named 'nosuchmodule'", "THE_FILE:5"],
        [("class Words", "import nosuchmodule\n\n\nclass Words")],
    ),
    Mistake(
        "an error at the import",
        2,
        ["KeyError: 'NO_SUCH_HOST'", "THE_FILE:7"],
        [("class Words", "import os\n\nHOST = os.environ['NO_SUCH_HOST']\n\n\nclass Words")],
    ),
    Mistake(
        "sys.exit at the import",
        2,
        ["importing THE_FILE raised SystemExit: 3", "THE_FILE:53"],
        [(None, "import sys\n\nsys.exit(3)\n")],
    ),
    Mistake(
        "a forgotten return", 2, ["returns None", "is a return missing?"], [("return builder", "builder")]
    ),
    Mistake(
        "a builder in place of a topology",
        2,
        ["end it with .create_topology("],
        [('return builder.create_topology("words", {})', "return builder")],
    ),
    Mistake(
        "build with arguments",
        2,
        ["THE_FILE:build can't be called without arguments", "give them defaults"],
        [("def build():", "def build(conf):")],
    ),
    # -- the topology --------------------------------------------------------------------------------------------
    Mistake(
        "Java's name",
        2,
        ["no attribute 'setSpout'", "id you mean", "set_spout", "THE_FILE:47"],
        [("set_spout(", "setSpout(")],
    ),
    Mistake(
        "a class in place of an instance",
        2,
        ["THE_FILE:47: spout 'words'", "did you forget the brackets, Words()?"],
        [("Words())", "Words)")],
    ),
    Mistake(
        "a bolt as a spout",
        2,
        ["THE_FILE:47: spout 'words'", "(a bolt is added by set_bolt)"],
        [("Words())", "Count())")],
    ),
    Mistake(
        "a spout as a bolt",
        2,
        ["bolt 'count'", "(a spout is added by set_spout)"],
        [("Count(), 2", "Words(), 2")],
    ),
    Mistake(
        "an id twice",
        2,
        ["the id 'count' is already in use, declared at", "choose another one"],
        [('set_bolt("print"', 'set_bolt("count"')],
    ),
    Mistake(
        "an unknown component",
        2,
        ["'wrods'", "did you mean 'words'?"],
        [('fields_grouping("words"', 'fields_grouping("wrods"')],
    ),
    Mistake(
        "an unknown stream",
        2,
        ["stream 'errors'", "declares 'default'"],
        [('shuffle_grouping("count")', 'shuffle_grouping("count", "errors")')],
    ),
    Mistake(
        "an unknown field",
        2,
        ["no field 'wrod'", "did you mean 'word'?"],
        [('("words", Fields("word"))', '("words", Fields("wrod"))')],
    ),
    Mistake(
        "no declare_output_fields",
        2,
        ["declares nothing", "declare_output_fields(self, declarer)", "outputs = [...]"],
        [('declarer.declare(Fields("word"))', "pass")],
    ),
    Mistake(
        "no spout",
        2,
        ["has no spout: add one with builder.set_spout(id, spout)"],
        [
            ('    builder.set_spout("words", Words())\n', ""),
            ('.fields_grouping("words", Fields("word"))', ""),
        ],
    ),
    Mistake("a reserved id", 2, ["begin with __"], [('set_bolt("print"', 'set_bolt("__print"')]),
    Mistake(
        "no executors",
        2,
        ["Parallelism must be a positive whole number: 'count' has 0"],
        [("Count(), 2)", "Count(), 0)")],
    ),
    Mistake(
        "executors as text",
        2,
        ["Parallelism must be a positive whole number: 'count' has '2'"],
        [("Count(), 2)", 'Count(), "2")')],
    ),
    Mistake(
        "a slash in the name",
        2,
        ["must not be empty or contain / . : or", "my/words"],
        [('create_topology("words"', 'create_topology("my/words"')],
    ),
    Mistake(
        "a lock in a component",
        2,
        ["component 'count' (Count) can't be pickled because of attribute 'lock'", "in open() or prepare()"],
        [
            ("builder = TopologyBuilder()", "import threading\n\n    builder = TopologyBuilder()"),
            ("Count(), 2)", "with_lock(Count(), threading.Lock()), 2)"),
            (None, "\n\ndef with_lock(bolt, lock):\n    bolt.lock = lock\n    return bolt\n"),
        ],
    ),
    Mistake(
        "a setting that is no JSON",
        2,
        ["'mine' is not JSON-serialisable"],
        [('"words", {})', '"words", {"mine": object()})')],
    ),
    Mistake(
        "a spout that subscribes",
        2,
        ["a spout gets no tuples", "THE_FILE:47"],
        [("Words())", 'Words()).shuffle_grouping("count")')],
    ),
    Mistake(
        "a grouping that is none",
        2,
        ["has no prepare; derive it from CustomStreamGrouping"],
        [('shuffle_grouping("count")', 'custom_grouping("count", object())')],
    ),
    Mistake(
        "a direct grouping of a plain stream",
        2,
        ["not declared as direct", "direct=True"],
        [('shuffle_grouping("count")', 'direct_grouping("count")')],
    ),
    Mistake(
        "async def in a plain bolt",
        2,
        ["is a coroutine function", "write a plain `def execute`, or derive Count from AsyncBolt"],
        [("    def execute(self, tup):\n        word", "    async def execute(self, tup):\n        word")],
    ),
    Mistake(
        "a BasicBolt's execute in a Bolt",
        2,
        [
            "THE_FILE:48: bolt 'count': execute of class Count",
            "THE_FILE:24) takes tup, collector",
            "write `def execute(self, tup)`, and keep the collector that prepare gets",
        ],
        [
            (
                "    def execute(self, tup):\n        word",
                "    def execute(self, tup, collector):\n        word",
            )
        ],
    ),
    Mistake(
        "an ack without its message id",
        2,
        ["ack of class Words", "THE_FILE:15) takes nothing: write `def ack(self, message_id)`"],
        [
            (
                '    def declare_output_fields(self, declarer):\n        declarer.declare(Fields("word"))',
                "    def ack(self):\n        pass\n\n    def declare_output_fields(self, declarer):\n"
                '        declarer.declare(Fields("word"))',
            )
        ],
    ),
    Mistake(
        "a loop",
        0,
        ["is a loop"],
        [
            ('shuffle_grouping("count")', 'shuffle_grouping("count").shuffle_grouping("print")'),
            ("        pass\n", '        declarer.declare(Fields("x"))\n'),
        ],
        command=("explain", "THE_FILE"),
    ),
    Mistake(
        "a bolt without a subscription",
        0,
        ["subscribes to no stream", "shuffle_grouping("],
        [('Print()).shuffle_grouping("count")', "Print())")],
    ),
    Mistake(
        "a grouping by a class",
        2,
        ["a field's name must be a string", "THE_FILE:48"],
        [('Fields("word"))\n    builder', "Words)\n    builder")],
    ),
    # -- while it runs -------------------------------------------------------------------------------------------
    Mistake(
        "too few values",
        3,
        ["wrong number of fields", "expected 2 (word, count), got 1", "all-failed"],
        [("(word, self.counts[word])", "(word,)")],
    ),
    Mistake(
        "a string in place of values",
        1,
        [
            "emit takes a tuple or list of values, got 'storm' of type str; did you mean emit(('storm',))?",
            "THE_FILE:13",
        ],
        [("emit((word,),", "emit(word,")],
    ),
    Mistake(
        "an emit to an unknown stream",
        3,
        ["Unknown stream ID 'errors'", "declare_output_fields"],
        [("anchors=[tup])", 'anchors=[tup], stream="errors")')],
        is_long=True,
    ),
    Mistake(
        "a field that the tuple lacks",
        3,
        ["no field 'wrod' in a tuple of stream 'default' of 'words'; it has 'word'", "THE_FILE:25"],
        [('tup["word"]', 'tup["wrod"]')],
    ),
    Mistake(
        "an error in execute",
        3,
        ["ZeroDivisionError", "THE_FILE:", "all-failed"],
        [("word = tup", "1 / 0\n        word = tup")],
    ),
    Mistake(
        "an error in prepare",
        1,
        ["raised in prepare", "KeyError", "THE_FILE:"],
        [("self.counts = {}", "self.counts = {}[conf['no.such.key']]")],
    ),
    Mistake(
        "an error in open",
        1,
        ["raised in open", "FileNotFoundError", "THE_FILE:"],
        [("self.left = [", "open('no/such/file')\n        self.left = [")],
    ),
    Mistake(
        "sys.exit in execute",
        3,
        ["count[", "SystemExit: 5", "THE_FILE:25", "sys.exit, exit and quit"],
        [("word = tup", "raise SystemExit(5)\n        word = tup")],
    ),
    Mistake(
        "sys.exit in next_tuple",
        1,
        ["spout 'words'", "next_tuple raised SystemExit: 5", "THE_FILE:11", "sys.exit, exit and quit"],
        [("if self.left:", "exit(5)\n        if self.left:")],
    ),
    Mistake(
        "sys.exit in open",
        1,
        ["spout 'words'", "raised in open: SystemExit", "THE_FILE:8", "sys.exit, exit and quit"],
        [("self.left = [", "quit()\n        self.left = [")],
    ),
    Mistake(
        "os._exit in execute",
        7,
        ["THE_FILE:25: execute of count[", "calls os._exit(7), which ends this program at once"],
        [("word = tup", "__import__('os')._exit(7)\n        word = tup")],
        alone=True,
    ),
    Mistake("nothing to do", 3, ["nothing was emitted by words", "--allow nothing-done"], [(WORDS, "[]")]),
    Mistake(
        "an object as a key",
        1,
        ["can't route by a value of type", "Put its identity into the field"],
        [("word = self.left.pop()", "word = object()"), ("message_id=word", "message_id=1")],
        is_long=True,
    ),
    Mistake(
        "a value that can't be shared",
        3,
        ["unhashable type: 'dict'", "THE_FILE:26"],
        [("word = self.left.pop()", "word = {1: self.left.pop()}"), ("message_id=word", "message_id=1")],
        is_long=True,
    ),
    Mistake(
        "no ack",
        3,
        ["timed out", "let go of 1 tuple without ack or fail", "all-failed"],
        [
            ('"words", {}', '"words", {"topology.message.timeout.secs": 1}'),
            (
                "        self.collector.ack(tup)\n\n    def declare_output_fields(self, declarer):\n        pass",
                "        pass\n\n    def declare_output_fields(self, declarer):\n        pass",
            ),
        ],
        is_long=True,
    ),
    # -- streamparse ---------------------------------------------------------------------------------------------
    Mistake(
        "streamparse: no outputs",
        2,
        ["Invalid stream for Words: 'default'", "to its `outputs`"],
        [('    outputs = ["word"]\n', "")],
        STREAMPARSE,
    ),
    Mistake(
        "streamparse: no inputs",
        2,
        ["requires at least one input"],
        [('inputs={words: Grouping.fields("word")}, ', "")],
        STREAMPARSE,
    ),
    Mistake(
        "streamparse: an unknown field",
        2,
        ["Field 'wrod'", "did you mean 'word'?"],
        [('fields("word")', 'fields("wrod")')],
        STREAMPARSE,
    ),
    Mistake(
        "streamparse: an unknown stream",
        2,
        ["Invalid stream for Words: 'errors'", "Valid streams are: 'default'"],
        [("{words: ", '{words["errors"]: ')],
        STREAMPARSE,
    ),
    Mistake(
        "streamparse: a class in place of a spec",
        2,
        ["did you forget Words.spec()?"],
        [("Words.spec()", "Words")],
        STREAMPARSE,
    ),
    Mistake(
        "streamparse: a wrong number of values",
        0,
        [
            "wrong number of fields: expected 2 (word, count), got 1",
            "as soon as a bolt does, this is an error",
        ],
        [("emit([word, self.counts[word]])", "emit([word])")],
        STREAMPARSE,
    ),
    Mistake(
        "streamparse: an error in process",
        3,
        ["KeyError: 'storm'", "THE_FILE:24"],
        [("word = tup.values[0]", "word = {}[tup.values[0]]")],
        STREAMPARSE,
        is_long=True,
    ),
    Mistake(
        "streamparse: sys.exit in process",
        3,
        ["execute raised SystemExit: 1", "THE_FILE:24", "sys.exit, exit and quit"],
        [("word = tup.values[0]", "exit(1)")],
        STREAMPARSE,
    ),
    Mistake(
        "streamparse: an unknown topology",
        2,
        ["has no topology 'WordCuont'; there are 'WordCount'"],
        file=STREAMPARSE,
        command=_options(target="THE_FILE:WordCuont"),
    ),
    Mistake(
        "streamparse: an unknown environment",
        2,
        ["no environment 'prod'"],
        file=STREAMPARSE,
        command=_options("--environment", "prod"),
    ),
    # -- heronpy -------------------------------------------------------------------------------------------------
    Mistake(
        "heronpy: an unknown field",
        2,
        ["no field 'wrod'", "did you mean 'word'?"],
        [('fields("word")', 'fields("wrod")')],
        HERONPY,
    ),
    Mistake(
        "heronpy: no par",
        2,
        ["par must be an integer above 0, given: 0"],
        [("Words.spec(par=1)", "Words.spec(par=0)")],
        HERONPY,
    ),
    # -- Flux ----------------------------------------------------------------------------------------------------
    Mistake(
        "Flux: a misspelled class",
        2,
        ["THE_FILE:4", "TestWordSpuot", "TestWordSpout"],
        [("TestWordSpout", "TestWordSpuot")],
        FLUX,
    ),
    Mistake(
        "Flux: an unknown component in a stream",
        2,
        ["THE_FILE:11", "there is no spout or bolt 'wrods': did you mean 'words'?"],
        [("from: words", "from: wrods")],
        FLUX,
    ),
    Mistake(
        "Flux: an unknown grouping",
        2,
        ["there is no grouping 'SHUFLE'"],
        [("type: SHUFFLE", "type: SHUFLE")],
        FLUX,
    ),
    Mistake("Flux: no name", 2, ["add the line `name: my-topology`"], [("name: words\n", "")], FLUX),
    Mistake(
        "Flux: a variable without a value",
        0,
        ["THE_FILE:1", "nothing to replace ${NAME} with", "--filter FILE"],
        [("name: words\n", "name: ${NAME}\n")],
        FLUX,
        _options("--seconds", "0.2"),
        alone=True,
        is_long=True,
    ),
    # -- connectors, on the local engine -------------------------------------------------------------------------
    Mistake(
        "FileBolt without rights",
        1,
        [
            "bolt 'print', task 4 (print[0]), declared at",
            "raised in prepare: FileNotFoundError: FileBolt can't use the folder /proc/no.such/folder: [Errno 2]",
            "It has to be a folder that the worker's user can write to",
        ],
        _writing('FileBolt("/proc/no.such/folder")', "FileBolt"),
    ),
    Mistake(
        "FileBolt on a full disk",
        3,
        [
            "print[0]: sync failed, attempt 3 of 3: [Errno 28] No space left on device",
            "'storm' failed by print[0]: could not be written to full/out: [Errno 28] No space left on device",
        ],
        _writing('FileBolt("full/out")', "FileBolt"),
        on_full_disk=True,
    ),
    Mistake(
        "DeltaBolt on a full disk",
        3,
        [
            "print[0]: append to full/out failed, attempt 1 of 3: Generic LocalFileSystem error: ",
            "'storm' failed by print[0]: could not be appended to full/out: Generic LocalFileSystem error: ",
            "No space left on device (os error 28); story",
        ],
        _writing('DeltaBolt("full/out")', "DeltaBolt"),
        on_full_disk=True,
    ),
    Mistake(
        "logs on a full disk",
        2,
        [
            "the folder for logs can't be used: [Errno 28] No space left on device",
            "-c stormspark.log.dir=DIR",
        ],
        command=_options("-c", "stormspark.log.dir=full/logs"),
        on_full_disk=True,
    ),
    Mistake(
        "JDBC without a table",
        1,
        ["JdbcInsertBolt needs either with_table_name or with_insert_query"],
        [
            (
                "class Words",
                "from stormspark.connectors.jdbc_bolt import JdbcInsertBolt, SimpleJdbcMapper\n\n\nclass Words",
            ),
            ("Print()", 'JdbcInsertBolt("jdbc:sqlite:x.db", SimpleJdbcMapper("words"))'),
        ],
        is_long=True,
    ),
    Mistake(
        "a topic of Kafka that does not exist",
        2,
        ["spout 'words'", "has no topic 'words': create it, or wait for it with unknown_topic='wait'"],
        _from_kafka("THE_BROKER"),
        with_broker=True,
        is_long=True,
    ),
    Mistake(
        "Kafka without a broker list",
        2,
        ["bootstrap.servers"],
        [
            ("class Words", "from stormspark.connectors import KafkaBolt\n\n\nclass Words"),
            ("Print()", 'KafkaBolt().with_producer_properties({}).with_topic_selector("words")'),
        ],
    ),
    # -- Spark, before its JVM starts ----------------------------------------------------------------------------
    Mistake(
        "no Java",
        2,
        ["Spark needs Java 17", "JAVA_HOME=/no/java"],
        command=("run", "THE_FILE", "--seconds", "1"),
        environment={"JAVA_HOME": "/no/java"},
        alone=True,  # a process that has a session already needs neither Java nor a master
    ),
    Mistake(
        "no master",
        2,
        ["no Spark master answers at spark://127.0.0.1:1"],
        command=("run", "THE_FILE", "--master", "spark://127.0.0.1:1", "-c", "topology.workers=1"),
        alone=True,
    ),
    Mistake(
        "a misspelled master",
        2,
        ["did you mean local[2]?"],
        command=("run", "THE_FILE", "--master", "loacl[2]"),
        alone=True,
    ),
    Mistake(
        "a checkpoint that is a file",
        2,
        ["'THE_FILE' is a file"],
        command=("run", "THE_FILE", "--checkpoint", "THE_FILE"),
    ),
    Mistake(
        "a checkpoint on a full disk",
        2,
        [
            "the checkpoint folder",
            "full/checkpoint can't be used: [Errno 28] No space left",
            "this user can write to",
        ],
        command=("run", "THE_FILE", "--checkpoint", "full/checkpoint"),
        on_full_disk=True,
    ),
    Mistake(
        "a checkpoint that can't be written",
        2,
        ["the checkpoint folder /proc/no.such can't be used: [Errno 2]", "this user can write to"],
        command=("run", "THE_FILE", "--checkpoint", "/proc/no.such"),
    ),
    Mistake(
        "a checkpoint of another topology",
        2,
        ["checkpoint belongs to the topology 'orders', not to 'words': give another folder"],
        command=_AT_CHECKPOINT,
        before=_checkpoint(topology="orders"),
    ),
    Mistake(
        "a checkpoint of another topology of this name",
        2,
        ["another topology called 'words', with the components parse, store instead of count, print, words"],
        command=_AT_CHECKPOINT,
        before=_checkpoint(components=["parse", "store"]),
    ),
    Mistake(
        "a source that was renamed",
        2,
        [
            "spout 'lines' (DataFrameSpout) is gone; spout 'words' (DataFrameSpout) is new (",
            "THE_FILE:50)",
            "Run the old topology to its end (--trigger available-now), then begin with a new checkpoint folder",
        ],
        _reading('spark.readStream.text("empty")'),
        command=_AT_CHECKPOINT,
        before=_checkpoint(components=["count", "lines", "print"], sources=[["lines", "DataFrameSpout"]]),
    ),
    Mistake(
        "a checkpoint of a newer version",
        2,
        ["was written by a newer stormspark (format 2, this one knows 1): use that version"],
        command=_AT_CHECKPOINT,
        before=_checkpoint(format=2),
    ),
    Mistake(
        "a checkpoint that is damaged",
        2,
        [
            "stormspark/control.json in the checkpoint folder",
            "is damaged",
            "restore it from a copy, or give another",
        ],
        command=_AT_CHECKPOINT,
        before=_checkpoint(generation=None),
    ),
    Mistake(
        "a second driver that may not take over",
        2,
        [
            "is in use by another driver, process",
            "stop that one first, or give another folder",
            "to take-over",
        ],
        command=(*_AT_CHECKPOINT, "-c", "stormspark.checkpoint.in.use=refuse"),
        before=_taken,
    ),
    # -- on Spark ------------------------------------------------------------------------------------------------
    Mistake(
        "on Spark: os._exit in execute",
        1,
        ["ended by os._exit(7) in execute of count[", "THE_FILE:25", "stormspark.max.attempts"],
        [("word = tup", "__import__('os')._exit(7)\n        word = tup")],
        command=_on_spark("-c", "stormspark.max.attempts=2"),
        **SPARK,
    ),
    Mistake(
        "on Spark: sys.exit in execute",
        3,
        ["SystemExit: 5", "count[", "THE_FILE:25", "all-failed"],
        [("word = tup", "raise SystemExit(5)\n        word = tup")],
        command=_on_spark(),
        **SPARK,
    ),
    Mistake(
        "on Spark: os._exit in a coroutine",
        1,
        ["ended by os._exit(7) in execute of print[0]", "THE_FILE:"],
        [
            ("import Bolt", "import AsyncBolt, Bolt"),
            ("class Print(Bolt):\n    def", "class Print(AsyncBolt):\n    async def"),
            (
                "    def execute(self, tup):\n        self.collector.ack",
                "    async def execute(self, tup):\n        __import__('os')._exit(7)",
            ),
        ],
        command=_on_spark("-c", "stormspark.max.attempts=2"),
        **SPARK,
    ),
    Mistake(
        "on Spark: a sink that can't flush in cleanup",
        3,
        [
            "print: the last end_of_input, post_save or cleanup of its task raised an error, so something may be unwritten",
            "print: 1 error: ",
            "ZeroDivisionError",
            "--allow unwritten",
        ],
        [("        pass\n", "        pass\n\n    def cleanup(self):\n        1 / 0\n")],
        command=_on_spark(),
        **SPARK,
    ),
    Mistake(
        "on Spark: an unknown kind of source",
        1,
        ["spout 'words': stream raised", "DATA_SOURCE_NOT_FOUND", "nosuch"],
        _reading('spark.readStream.format("nosuch").load("empty")'),
        command=_on_spark(),
        **SPARK,
    ),
    Mistake(
        "on Spark: a source that is missing",
        1,
        ["spout 'words': stream raised AnalysisException: [PATH_NOT_FOUND] Path does not exist"],
        _reading('spark.readStream.schema("value STRING").json("no/such/folder")'),
        command=_on_spark(),
        **SPARK,
    ),
    Mistake(
        "on Spark: a source for which jars are missing",
        1,
        [
            "spout 'words': stream raised AnalysisException: Failed to find data source: kafka",
            "--packages org.apache.spark:spark-sql-kafka-0-10_2.13:",
            "KafkaSpout needs no jars",
        ],
        _reading('spark.readStream.format("kafka").option("subscribe", "words").load()'),
        command=_on_spark(),
        **SPARK,
    ),
    Mistake(
        "on Spark: a topic that does not exist, for Spark's own source",
        1,
        [
            "This server does not host this topic-partition",
            "Kafka has no such topic: create it, and the topology goes on; or stop the topology, and correct",
        ],
        _reading(
            'spark.readStream.format("kafka").options(**{"kafka.bootstrap.servers": "THE_BROKER", "subscribe": "words"})'
            '.load().select("value")'
        ),
        command=_on_spark(
            "-c", "stormspark.outage.timeout.secs=1", "--conf", "spark.driver.extraClassPath=THE_JARS"
        ),
        with_broker=True,
        **SPARK,
    ),
    Mistake(
        "on Spark: a table in place of a stream",
        1,
        ["a DataFrame that is not a stream: use spark.readStream"],
        _reading('spark.read.text("empty")'),
        command=_on_spark(),
        **SPARK,
    ),
    Mistake(
        "on Spark: a broker that does not answer",
        1,
        ["spout 'words'", "Kafka at 127.0.0.1:1 does not answer", "unknown_topic='wait'"],
        _from_kafka("127.0.0.1:1"),
        command=_on_spark(),
        **SPARK,
    ),
]
