"""streamparse and heronpy projects, read by ast; nothing of them is imported."""

import json

import pytest

from stormspark.porting.drafts_in_python3 import can_draft
from stormspark.porting.findings import Unresolved
from tests.unit.porting.reading import graph_read, line_of, read_files, reported

WORD_COUNT = """
from streamparse import Grouping, Topology
from bolts.count import Count, Split
from spouts import Words

class WordCount(Topology):
    config = {"topology.workers": 2, "topology.wrokers": 3}
    words = Words.spec(name="word-spout", par=2, config={"topology.max.spout.pending": 10})
    split = Split.spec(inputs=[words], par={"prod": 8, "test": 1})
    count = Count.spec(inputs={split: Grouping.fields("word"), split["errors"]: Grouping.ALL, words: Grouping.GLOBAL})
"""
COMPONENTS = {
    "src/spouts.py": """
from streamparse import Spout
class Words(Spout):
    outputs = ["sentence"]
    def next_tuple(self):
        self.emit(["a b"])
""",
    "src/bolts/__init__.py": "",
    "src/bolts/base.py": """
from pystorm import Bolt
class Base(Bolt):
    auto_ack = False
""",
    "src/bolts/count.py": """
import threading
import time
from streamparse import Stream
from .base import Base
raise RuntimeError("nobody imports this")
class Split(Base):
    outputs = [Stream(fields=["word"]), Stream(fields=["reason"], name="errors")]
    def process(self, tup):
        print(tup)
        self.emit(["a"], need_task_ids=True)
class Count(Base):
    outputs = ["word", "count"]
    par = 4
    def read_command(self):
        threading.Thread()
    def process(self, tup):
        time.sleep(1)
""",
}


def test_a_streamparse_project(tmp_path):
    """Specs, inputs, outputs and parallelism, through the project's modules."""
    findings = read_files(tmp_path, {"topologies/word_count.py": WORD_COUNT, **COMPONENTS})
    [topology] = findings.topologies
    components, edges = graph_read(topology)
    assert (topology.name, topology.front_end, topology.complete) == ("word_count", "streamparse", True)
    assert components == {"word-spout": ("spout", 2, 2), "split": ("bolt", 8, 8), "count": ("bolt", 4, 4)}
    assert edges == {
        ("word-spout", "default", "split", "shuffle", ""),
        ("split", "default", "count", "fields", "word"),
        ("split", "errors", "count", "all", ""),
        ("word-spout", "default", "count", "global", ""),
    }
    declared = {one.id: {s.id: s.fields for s in one.streams or ()} for one in topology.components}
    assert declared["split"] == {"default": ("word",), "errors": ("reason",)}
    assert reported(topology, "note", "parallelism of bolt 'split' depends on the environment")
    [wrong] = reported(topology, "change", "topology.wrokers")
    assert wrong.todo == "did you mean topology.workers?"


def test_what_a_component_does_is_reported_with_its_line(tmp_path):
    """Threads, sleep, task ids, print, pipes."""
    findings = read_files(tmp_path, {"topologies/word_count.py": WORD_COUNT, **COMPONENTS})
    [topology] = findings.topologies
    where = "src/bolts/count.py"
    for kind, pattern, text in (
        ("note", "Split prints, which is harmless", "print(tup)"),
        ("note", "Split emits with need_task_ids", "need_task_ids"),
        ("change", r"Count overrides read_command\(\)", "def read_command"),
        ("note", "Count uses threading.Thread", "threading.Thread()"),
        ("note", "Count.process sleeps 1 s", "time.sleep"),
    ):
        [statement] = reported(topology, kind, pattern)
        assert str(statement.place) == f"{where}:{line_of(tmp_path, text, where)}"
        assert statement.grade == "parsed"
    assert [one.text for one in reported(topology, "runs", ".")] == [
        "spout 'word-spout': no change to Words is known to be needed",
        "bolt 'split': no change to Split is known to be needed",
    ]
    assert reported(topology, "note", "Split sets auto_ack")


def test_other_languages_and_java_objects(tmp_path):
    """A shell runs, a known Java class has something that stands for it, another needs a change."""
    source = """
from streamparse import Grouping, JavaBolt, JavaSpout, ShellBolt, Topology
class Mixed(Topology):
    words = JavaSpout.spec(name="words", full_class_name="org.apache.storm.testing.TestWordSpout", args_list=[], outputs=["word"])
    mine = JavaBolt.spec(full_class_name="com.acme.Mine", args_list=[], inputs=[words], outputs=["x"])
    shell = ShellBolt.spec(command="node", script="split.js", inputs={mine: Grouping.custom_object("com.acme.Grouping", [1])})
    serialized = JavaBolt.spec(serialized_java=b"..", inputs=[words])
"""
    [topology] = read_files(tmp_path, {"mixed.py": source, "resources/split.js": ""}).topologies
    assert [(one.kind, one.type_name) for one in topology.components] == [
        ("spout", "JavaSpout"),
        ("bolt", "JavaBolt"),
        ("bolt", "ShellBolt"),
        ("bolt", "JavaBolt"),
    ]
    assert {one.text.partition(":")[0] for one in reported(topology, "runs", ".")} == {
        "spout 'words'",
        "bolt 'shell', ShellBolt",
    }
    [unknown] = reported(topology, "change", "the Java class com.acme.Mine")
    assert "flux.register('com.acme.Mine'" in unknown.todo
    assert reported(topology, "change", "bolt 'shell' has a grouping that is a Java object")
    assert reported(topology, "change", "'serialized' is a pickled Java object")


def test_names_with_annotations_are_read(tmp_path):
    """Of specs, of settings, and of a module; an annotation without a value is nothing."""
    source = """
from streamparse import Spec, Topology
from spouts import Words
TASKS: int = 3
class Annotated(Topology):
    config: dict[str, int] = {"topology.workers": 2}
    later: Spec
    words: Spec = Words.spec(par=TASKS)
"""
    [topology] = read_files(
        tmp_path, {"annotated.py": source, "spouts.py": COMPONENTS["src/spouts.py"]}
    ).topologies
    assert [(one.id, one.parallelism) for one in topology.components] == [("words", 3)]
    assert [(one.key, one.value) for one in topology.settings] == [("topology.workers", 2)]


def test_heronpy_names_with_annotations_are_read(tmp_path):
    """Of a class of specs, and of a script with a builder."""
    by_class = """
from heronpy.api.topology import Topology
from components import Words
class Annotated(Topology):
    words: object = Words.spec(par=2)
"""
    by_builder = """
from heronpy.api.topology import TopologyBuilder
from components import Count, Words
builder: TopologyBuilder = TopologyBuilder("built")
words: object = builder.add_spout("words", Words, par=2)
tasks: int = 4
builder.add_bolt("count", Count, par=tasks, inputs=[words])
"""
    files = {"by_class.py": by_class, "by_builder.py": by_builder, "components.py": HERON_COMPONENTS}
    topologies = read_files(tmp_path, files).topologies
    assert {one.name: [(c.id, c.parallelism) for c in one.components] for one in topologies} == {
        "Annotated": [("words", 2)],
        "built": [("words", 2), ("count", 4)],
    }


def test_what_is_not_written_out_is_unread(tmp_path):
    source = """
from streamparse import Topology
from elsewhere import Bolt
from spouts import Words
class Odd(Topology):
    words = Words.spec(par=int("3"))
    other = Bolt.spec(inputs=make_inputs(words), config=dict(a=1))
    for name in "ab":
        pass
"""
    [topology] = read_files(tmp_path, {"odd.py": source, "spouts.py": COMPONENTS["src/spouts.py"]}).topologies
    assert topology.components[0].parallelism is None
    for pattern in (
        r"parallelism of spout 'words' can't be made out: \?\(int",
        "a subscription of bolt 'other' can't be made out",
        "the config of 'other' can't be made out",
        "the class Bolt is not in the project",
        "components that a statement adds",
    ):
        assert reported(topology, "unread", pattern), pattern


def test_config_json_and_modules_that_are_missing(tmp_path):
    """W12: environments, their options, and who asks for a module."""
    options = {"topology.akcers": 3, "topology.worker.childopts": "-Xmx1g"}
    config = {"envs": {"prod": {"user": "me", "options": options}, "test": {}}}
    findings = read_files(
        tmp_path,
        {
            "config.json": json.dumps(config, indent=1),
            "topologies/word_count.py": "import no_such_module\nimport json\n" + WORD_COUNT,
            "virtualenvs/word_count.txt": "streamparse\n# ours\nNo.Such-Module>=2\n",
            **COMPONENTS,
        },
    )
    [unknown] = reported(findings, "change", "topology.akcers")
    assert str(unknown.place) == f"config.json:{line_of(tmp_path, 'akcers', 'config.json')}"
    assert reported(findings, "note", "topology.worker.childopts changes nothing")
    [environment] = reported(findings, "note", "environment 'prod'")
    assert environment.todo == "run with --environment prod"
    [missing] = reported(findings, "change", "no_such_module is not installed")
    assert missing.todo == "pip install -r virtualenvs/word_count.txt"
    assert not reported(findings, "change", "json is not")


def test_errors_in_python_are_named_and_the_rest_is_read(tmp_path):
    findings = read_files(
        tmp_path,
        {
            "topologies/word_count.py": WORD_COUNT,
            "topologies/broken.py": "from streamparse import Topology\nclass (:\n",
            "config.json": '{"envs": \n nothing}',
            **COMPONENTS,
        },
    )
    assert [one.name for one in findings.topologies] == ["word_count"]
    [broken] = reported(findings, "unread", "Python can't parse this file")
    assert str(broken.place) == "topologies/broken.py:2"
    [config] = reported(findings, "unread", "not valid JSON")
    assert str(config.place) == "config.json:2"


HERON_COMPONENTS = """
from heronpy.api.bolt.bolt import Bolt
from heronpy.api.spout.spout import Spout
from heronpy.api.stream import Stream
class Words(Spout):
    outputs = ["word", Stream(fields=["reason"], name="error")]
    def next_tuple(self): pass
class Count(Bolt):
    def __init__(self, delegate): pass
    def process(self, tup): pass
"""


def test_heronpy_by_class(tmp_path):
    """Specs, groupings, and what is grouped by fields."""
    source = """
import heronpy.api.api_constants as constants
from heronpy.api.stream import Grouping
from heronpy.api.topology import Topology
from somewhere.above.components import Count, Words
class Multi(Topology):
    config = {constants.TOPOLOGY_RELIABILITY_MODE: constants.TopologyReliabilityMode.ATLEAST_ONCE}
    words = Words.spec(par=2, optional_outputs=["more"])
    count = Count.spec(par=3, inputs={words: Grouping.fields("word"), words["error"]: Grouping.LOWEST},
                       config={constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 10})
    custom = Count.spec(name="other", inputs={words: Grouping.custom("grouping.Mine")})
"""
    [topology] = read_files(tmp_path, {"multi.py": source, "components.py": HERON_COMPONENTS}).topologies
    components, edges = graph_read(topology)
    assert components == {"words": ("spout", 2, 2), "count": ("bolt", 3, 3), "other": ("bolt", 1, 1)}
    assert edges == {
        ("words", "default", "count", "fields", "word"),
        ("words", "error", "count", "global", ""),
        ("words", "default", "other", "custom", ""),
    }
    assert {one.key: one.value for one in topology.settings} == {
        "topology.reliability.mode": "ATLEAST_ONCE",
        "topology.tick.tuple.freq.secs": 10,
    }
    assert reported(topology, "note", "differs from Heron's") and reported(
        topology, "note", "overrides __init__"
    )
    assert reported(topology, "runs", "custom grouping in Python")


def test_heronpy_by_a_builder(tmp_path):
    """A script that adds components and submits."""
    source = """
import sys
from heronpy.api.topology import TopologyBuilder
from heronpy.api.stream import Grouping
from components import Count, Words
if __name__ == "__main__":
    builder = TopologyBuilder(name=sys.argv[1])
    words = builder.add_spout("words", Words, par=2)
    options = {"topology.debug": "true"}
    count = builder.add_bolt("count", Count, par=2, inputs={words: Grouping.SHUFFLE}, config=options)
    if len(sys.argv) > 2:
        builder.add_bolt("more", Count, 1, {count: Grouping.ALL})
    for name in "ab":
        builder.add_bolt(name, Count, par=1, inputs=[count])
    builder.set_config({"topology.stmgrs": "2"})
    builder.build_and_submit()
"""
    [topology] = read_files(tmp_path, {"words.py": source, "components.py": HERON_COMPONENTS}).topologies
    assert topology.name == "words" and reported(topology, "note", "an argument of the script")
    assert [(one.id, one.parallelism) for one in topology.components] == [
        ("words", 2),
        ("count", 2),
        ("more", 1),
        (None, 1),
    ]
    assert {(one.key, one.component) for one in topology.settings} == {
        ("topology.debug", "count"),
        ("topology.stmgrs", ""),
    }
    assert reported(topology, "note", r"bolt 'more' is added only if len\(sys.argv\) > 2")
    assert reported(topology, "unread", "is added in a loop")
    assert reported(topology, "note", "no reliability mode is set")
    assert not reported(topology, "change", "must be bool"), "values are strings in heronpy"


def test_constants_of_heronpy_have_their_values(tmp_path):
    """TOPOLOGY_CONTAINER_CPU_REQUESTED is the key topology.container.cpu."""
    source = """
import heronpy.api.api_constants as constants
from heronpy.api.topology import TopologyBuilder
from components import Words
if __name__ == "__main__":
    builder = TopologyBuilder(name="words")
    builder.add_spout("words", Words, par=2)
    builder.set_config({constants.TOPOLOGY_CONTAINER_CPU_REQUESTED: 2, constants.TOPOLOGY_DEBUG: True})
    builder.build_and_submit()
"""
    [topology] = read_files(tmp_path, {"words.py": source, "components.py": HERON_COMPONENTS}).topologies
    assert {one.key for one in topology.settings} == {"topology.container.cpu", "topology.debug"}
    assert not reported(topology, "change", "topology.container")


def test_a_print_into_a_file_is_python_2_although_python_3_can_parse_it(tmp_path):
    """``print >>sys.stderr, 1`` raises a TypeError in Python 3; scripts of multilang write their messages so."""
    script = "import sys\nimport storm\nprint >>sys.stderr, 'started', 1\n"
    findings = read_files(tmp_path, {"resources/split.py": script})
    [old] = reported(findings, "change", "only works in Python 2: print >> .line 3.")
    assert str(old.place) == "resources/split.py:3"
    if can_draft():
        assert "+print('started', 1, file=sys.stderr)" in findings.python3["resources/split.py"]


def test_components_in_all_kinds_of_blocks_are_read(tmp_path):
    """Each says on what it depends."""
    source = """
from heronpy.api.topology import TopologyBuilder
from components import Count, Words
async def main(kind):
    builder = TopologyBuilder(name="blocks")
    try:
        words = builder.add_spout("words", Words)
    except OSError:
        builder.add_spout("fallback", Words)
    else:
        builder.add_bolt("fine", Count, inputs=[words])
    finally:
        builder.add_bolt("last", Count, inputs=[words])
    for one in kind:
        pass
    else:
        builder.add_bolt("after", Count, inputs=[words])
    match kind:
        case "big" if words:
            builder.add_bolt("big", Count, inputs=[words])
        case _:
            builder.add_bolt("small", Count, inputs=[words])
    async with kind:
        builder.add_bolt("with", Count, inputs=[words])
    async for _ in kind:
        builder.add_bolt("for", Count, inputs=[words])
    builder.build_and_submit()
"""
    [topology] = read_files(tmp_path, {"blocks.py": source, "components.py": HERON_COMPONENTS}).topologies
    assert [one.id for one in topology.components] == [
        *("words", "fallback", "fine", "last", "after", "big", "small", "with", "for")
    ]
    for told in (
        "'fallback' is added only if OSError is raised",
        "'fine' is added only if nothing is raised",
        "'after' is added only if a loop ends without break",
        "'big' is added only if kind matches 'big' if words",
        "'small' is added only if kind matches _",
    ):
        assert reported(topology, "note", told)
    assert not reported(topology, "note", "bolt 'last' is added") and reported(
        topology, "unread", "'for' is added in a loop"
    )


def test_streamlets_are_listed_and_not_taken_apart(tmp_path):
    """The operations with their lines; what they become is for --import."""
    source = """
from heronpy.streamlet.builder import Builder
from heronpy.streamlet.runner import Runner
if __name__ == "__main__":
    builder = Builder()
    builder.new_source(Words()).flat_map(lambda line: line.split()) \\
           .reduce_by_window(window, lambda x, y: x + y).log()
    Runner().run("name", config, builder)
"""
    [topology] = read_files(tmp_path, {"streamlet.py": source}).topologies
    assert topology.front_end == "heronpy-streamlet"
    operations = [one.text for one in reported(topology, "note", r"\(\.\.\.\)$")]
    assert operations == ["new_source(...)", "flat_map(...)", "reduce_by_window(...)", "log(...)"]
    assert reported(topology, "unread", "makes the components of streamlets when it runs")


def test_values_that_have_to_be_run_keep_their_source(tmp_path):
    source = WORD_COUNT.replace('"topology.workers": 2', '"topology.workers": cpu_count()')
    [topology] = read_files(tmp_path, {"topologies/word_count.py": source, **COMPONENTS}).topologies
    [workers] = [one for one in topology.settings if one.key == "topology.workers"]
    assert workers.value == Unresolved("cpu_count()")
    assert reported(topology, "unread", "the value of topology.workers can't be made out")


ASYNC = {
    "topologies/asynchronous.py": """
from streamparse import Topology
from comps import Batches, Child, Helps, Made, Words
class Asynchronous(Topology):
    words = Words.spec()
    child = Child.spec(inputs=[words])
    batches = Batches.spec(inputs=[words])
    helps = Helps.spec(inputs=[words])
    made = Made.spec(inputs=[words])
""",
    "src/acme.py": "def in_a_loop(method): return method",
    "src/comps.py": """
from acme import in_a_loop
from pystorm import BatchingBolt
from streamparse import Bolt, Spout
class Words(Spout):
    outputs = ["word"]
    async def next_tuple(self): pass
class Base(Bolt):
    async def process(self, tup): pass
class Child(Base):
    pass
class Batches(BatchingBolt):
    async def process_batch(self, key, tups): pass
class Helps(Base):
    async def ask(self): pass
    def process(self, tup): pass
class Made(Bolt):
    @in_a_loop
    async def process(self, tup): yield 1
""",
}


def test_async_def_of_a_method_that_is_called_needs_a_change(tmp_path):
    """Nobody would await it, so `run` refuses the topology."""
    [topology] = read_files(tmp_path, ASYNC).topologies
    where = "src/comps.py"
    for name, method, kind in (
        ("Words", "next_tuple", "Spout"),
        ("Child", "process", "Bolt"),
        ("Batches", "process_batch", "Bolt"),
    ):
        [found] = reported(topology, "change", rf"^{name} has `async def {method}`, which nobody would await")
        line = 9 if method == "process" else line_of(tmp_path, f"async def {method}", where)
        assert str(found.place) == f"{where}:{line}"
        assert found.todo == f"write a plain `def {method}`, or put a stormspark.Async{kind} in its place"
    [decorated] = reported(topology, "unread", "Made has `async def process`.*@in_a_loop")
    assert "--import" in decorated.todo
    assert [one.text for one in reported(topology, "runs", ".")] == [
        "bolt 'helps': no change to Helps is known to be needed"
    ]


def test_async_def_in_heronpy_needs_a_change_too(tmp_path):
    """heronpy calls other methods than streamparse does."""
    source = """
from heronpy.api.bolt.bolt import Bolt
from heronpy.api.bolt.window_bolt import SlidingWindowBolt
from heronpy.api.spout.spout import Spout
from heronpy.api.topology import TopologyBuilder
class Words(Spout):
    outputs = ["word"]
    def initialize(self, config, context): pass
    async def close(self): pass
class Windows(SlidingWindowBolt):
    async def processWindow(self, window, tuples): pass
class Saves(Bolt):
    def process(self, tup): pass
    async def process_batch(self): pass
builder = TopologyBuilder(name="mine")
words = builder.add_spout("words", Words, par=1)
builder.add_bolt("windows", Windows, par=1, inputs=[words])
builder.add_bolt("saves", Saves, par=1, inputs=[words])
"""
    [topology] = read_files(tmp_path, {"mine.py": source}).topologies
    assert reported(topology, "change", "^Words has `async def close`")
    assert reported(topology, "change", "^Windows has `async def processWindow`")
    assert [one.text for one in reported(topology, "runs", "no change")] == [
        "bolt 'saves': no change to Saves is known to be needed"
    ]


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("pass", ""),
        ("words = sys.argv[2]", " --arg ARGUMENT_2"),
        ("if len(sys.argv) != 4: sys.exit(1)", " --arg ARGUMENT_2 --arg ARGUMENT_3"),
        ("if len(sys.argv) > 2: words = sys.argv[2]", ""),
        ("words = sys.argv[2] if len(sys.argv) > 2 else 1", ""),
    ],
)
def test_the_command_that_runs_a_script_of_heronpy(tmp_path, code, arguments):
    script = f"""
import sys
from heronpy.api.topology import TopologyBuilder
if __name__ == "__main__":
    {code}
    builder = TopologyBuilder(name=sys.argv[1])
    builder.build_and_submit()
"""
    [found] = read_files(tmp_path, {"sensors/topology.py": script}).topologies
    assert found.command == f"stormspark run sensors/topology.py{arguments}"
