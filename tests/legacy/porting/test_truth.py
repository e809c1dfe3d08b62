"""What `stormspark port` says of projects with faults that public projects have is true, and names the line."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from stormspark.cli.load import load_topology
from stormspark.plan import plan_topology
from stormspark.porting.drafts_in_python3 import can_draft
from stormspark.porting.findings import Findings, Statement
from stormspark.porting.project import read_project
from tests.legacy.porting.generated_java import java_topology
from tests.unit.porting.conftest import _as_it_was  # noqa: F401 - what a skeleton imports is forgotten
from tests.unit.porting.reading import line_of, read_files

needs_java = pytest.mark.skipif(
    find_spec("tree_sitter_java") is None, reason="the parser for Java is not installed"
)
needs_fissix = pytest.mark.skipif(not can_draft(), reason="fissix is not installed")

WORDS = """
from streamparse import Grouping, ShellBolt, Topology
from parts import Count, Lines
class Words(Topology):
    lines = Lines.spec()
    count = Count.spec(inputs={lines: Grouping.fields("word")})
"""
PARTS = """
from streamparse import Bolt, Spout
class Lines(Spout):
    outputs = ["word"]
    def next_tuple(self):
        self.emit(["a"])
class Count(Bolt):
    def process(self, tup):
        pass
"""


def streamparse(
    folder: Path, words: str = WORDS, parts: str = PARTS, others: dict[str, str] | None = None
) -> Findings:
    """The findings of a streamparse project."""
    return read_files(folder, {"topologies/words.py": words, "src/parts.py": parts, **(others or {})})


_HINDERED = re.compile(r"can't (?:be imported|run) as it is")


def said(findings: Findings, words: str) -> Statement:
    """The one statement with these words, of the project or of a topology."""
    every = [one for topology in findings.topologies for one in topology.statements] + findings.statements
    # What hinders a component is also said where the component is; here the file itself is meant.
    [found] = [one for one in every if words in one.text and not _HINDERED.search(one.text)]
    return found


def kinds(findings: Findings) -> set[str]:
    every = [one for topology in findings.topologies for one in topology.statements] + findings.statements
    return {one.kind for one in every}


# -- names -------------------------------------------------------------------------------------------------------


def test_names_of_star_imports_are_followed(tmp_path: Path) -> None:
    """Those of a project's module, through another one, and those of streamparse itself."""
    words = WORDS.replace("Grouping, ShellBolt, Topology", "*").replace(
        "from parts import Count, Lines", "from every import *"
    )
    findings = streamparse(
        tmp_path,
        words,
        PARTS,
        {"src/every.py": "from parts import *\nfrom more import *\n", "src/more.py": "LIMIT = 3\n"},
    )
    [topology] = findings.topologies
    assert [(one.id, one.kind, one.type_name) for one in topology.components] == [
        ("lines", "spout", "Lines"),
        ("count", "bolt", "Count"),
    ]
    assert [one.streams[0].fields for one in topology.components if one.streams] == [("word",)]
    assert kinds(findings) == {"runs", "note"}


def test_a_star_import_brings_constants_too(tmp_path: Path) -> None:
    words = WORDS.replace("Lines.spec()", "Lines.spec(par=LIMIT)").replace("Count, Lines", "*")
    findings = streamparse(tmp_path, words, PARTS + "LIMIT = 5\n_HIDDEN = 7\n")
    assert findings.topologies[0].components[0].parallelism == 5


def test_a_missing_module_is_reported_at_its_line(tmp_path: Path) -> None:
    """In whichever file imports it: here a helper of a component."""
    parts = PARTS + "import helper\n"
    helper = "import json\n\nimport no_such_client.sub\ntry:\n    import no_such_speedup\nexcept ImportError:\n    pass\n"
    findings = streamparse(tmp_path, WORDS, parts, {"src/helper.py": helper})
    missing = said(findings, "no_such_client")
    assert (missing.kind, str(missing.place)) == ("change", "src/helper.py:3")
    optional = said(findings, "no_such_speedup")
    assert (optional.kind, str(optional.place)) == ("note", "src/helper.py:5")
    (tmp_path / "requirements.txt").write_text("no-such-client>=2\n")
    assert said(read_project(tmp_path)[0], "no_such_client").todo == "pip install -r requirements.txt"


def test_what_only_the_deployment_imports_is_not_asked_for(tmp_path: Path) -> None:
    """fabfile.py is for ``sparse submit``, and no topology imports it."""
    fabfile = "from fabric.api import env\nfrom streamparse.ext.fabric import *\n"
    findings = streamparse(tmp_path, WORDS, PARTS, {"fabfile.py": fabfile})
    assert not [one for one in findings.statements if "fabric" in one.text]


def test_a_virtual_environment_of_python_2_is_not_read(tmp_path: Path) -> None:
    """It has no pyvenv.cfg, and projects have put theirs into the repository."""
    more = {"env/bin/activate": "", "env/lib/python2.7/site.py": "import streamparse\nprint 1\n"}
    assert not [one for one in streamparse(tmp_path, WORDS, PARTS, more).statements if "site.py" in one.text]


# -- children ----------------------------------------------------------------------------------------------------

SHELL = (
    WORDS
    + '    shell = ShellBolt.spec(command="python3 -u", script="bolts/split.py", outputs=["x"], inputs=[lines])\n'
)
CHILD = "import storm\nclass Split(storm.BasicBolt):\n    def process(self, tup):\n        storm.emit([1])\nSplit().run()\n"


def test_a_child_whose_script_is_missing_does_not_run(tmp_path: Path) -> None:
    missing = said(streamparse(tmp_path, SHELL), "was not found in the project")
    assert (missing.kind, str(missing.place)) == (
        "change",
        f"topologies/words.py:{line_of(tmp_path, 'ShellBolt.spec', 'topologies/words.py')}",
    )
    assert "bolts/split.py" in missing.text


def test_a_child_whose_script_is_there_runs(tmp_path: Path) -> None:
    """`storm` is Storm's own library, and nothing to install."""
    findings = streamparse(
        tmp_path, SHELL, PARTS, {"resources/bolts/split.py": CHILD, "resources/bolts/storm.py": ""}
    )
    found = said(findings, "its child process")
    assert (found.kind, "resources/bolts/split.py" in found.text) == ("runs", True)
    every = [one for topology in findings.topologies for one in topology.statements] + findings.statements
    assert not [one for one in every if "install" in one.todo]


def test_a_child_beside_storms_library_for_python_2_runs(tmp_path: Path) -> None:
    """stormspark's library takes its place. Of two scripts of this name, the one nearer to the topology counts."""
    library = "def emit():\n    print 'x'\ndef ack(): pass\nclass Bolt: pass\nclass BasicBolt: pass\n"
    child = "import storm\nclass Split(storm.BasicBolt): pass\nSplit().run()\n"
    more = {
        "src/bolts/split.py": child,
        "src/bolts/storm.py": library,
        "other/multilang/bolts/split.py": "import storm\nprint 'old'\n",
    }
    findings = streamparse(tmp_path, SHELL, PARTS, more)
    ((topology,), found) = findings.topologies, said(findings, "src/bolts/storm.py is Storm's library")
    assert (found.kind, str(found.place)) == ("note", "src/bolts/storm.py:2")
    assert any(one.kind == "runs" and "src/bolts/split.py" in one.text for one in topology.statements)


def test_storm_is_no_package_to_install(tmp_path: Path) -> None:
    found = said(streamparse(tmp_path, SHELL, PARTS, {"resources/bolts/split.py": CHILD}), "imports storm")
    assert str(found.place) == "resources/bolts/split.py:1"
    assert "pip install" not in found.todo


@needs_java
def test_scripts_with_storm_py_and_a_java_main(tmp_path: Path) -> None:
    """The child that the topology starts, a child that is missing, and one that nothing starts."""
    java = """
    class Split extends ShellBolt implements IRichBolt {
        public Split() { super("python", "split.py"); }
        public void declareOutputFields(OutputFieldsDeclarer declarer) { declarer.declare(new Fields("word")); }
    }
    class Gone extends ShellBolt implements IRichBolt {
        public Gone() { super("node", "gone.js"); }
        public void declareOutputFields(OutputFieldsDeclarer declarer) { declarer.declare(new Fields("word")); }
    }
    class Main {
        public static void main(String[] args) {
            TopologyBuilder builder = new TopologyBuilder();
            builder.setSpout("in", new TestWordSpout());
            builder.setBolt("split", new Split()).shuffleGrouping("in");
            builder.setBolt("gone", new Gone()).shuffleGrouping("split");
            StormSubmitter.submitTopology("words", new Config(), builder.createTopology());
        }
    }
    """
    library = (
        "class Bolt: pass\nclass BasicBolt: pass\nclass Spout: pass\ndef emit(): pass\ndef ack(): pass\n"
    )
    resources = "multilang/resources"
    files = {f"{resources}/split.py": CHILD, f"{resources}/alone.py": CHILD, f"{resources}/storm.py": library}
    findings = read_files(tmp_path, {"src/Main.java": java, **files})
    assert findings.files["multilang"] == 2
    assert said(findings, "'split', Split: its child process").kind == "runs"
    assert (
        said(findings, "a worker looks for split.py").todo == "copy multilang/resources there, as resources"
    )
    assert said(findings, "gone.js, was not found").kind == "change"
    alone = said(findings, "alone.py is a child")
    assert (alone.kind, 'ShellBolt(["python3", "alone.py"]' in alone.todo) == ("note", True)


def test_children_of_flux(tmp_path: Path) -> None:
    text = """
name: words
spouts:
- {id: in, className: org.apache.storm.testing.TestWordSpout}
bolts:
- id: split
  className: org.apache.storm.flux.wrappers.bolts.FluxShellBolt
  constructorArgs:
  - [python3, split.py]
  - [word]
streams:
- {from: in, to: split, grouping: {type: SHUFFLE}}
"""
    assert said(read_files(tmp_path, {"words.yaml": text}), "split.py, was not found").kind == "change"
    assert said(read_files(tmp_path, {"resources/split.py": "print(1)"}), "resources/split.py").kind == "runs"


# -- Python 2 ----------------------------------------------------------------------------------------------------

OLD_PARTS = """
from streamparse import Bolt, Spout
from helper import shout
class Lines(Spout):
    outputs = ["word"]
    def next_tuple(self):
        self.emit([shout("a")])
class Count(Bolt):
    def process(self, tup):
\tprint "counting", tup
        try:
            raise ValueError, "a"
        except ValueError, e:
            for k, v in self.counts.iteritems():
                exec "k = 0777L"
"""


@needs_fissix
def test_python_2_is_reported_and_drafted(tmp_path: Path) -> None:
    """Print statements, mixed tabs, old exceptions, an implicit relative import; lines are those of the files."""
    words = WORDS.replace("parts import", "bolts.parts import")
    findings = streamparse(
        tmp_path,
        words,
        "",
        {
            "src/bolts/__init__.py": "",
            "src/bolts/parts.py": OLD_PARTS,
            "src/bolts/helper.py": "import urllib2\ndef shout(x):\n    return unicode(x).upper()\n",
        },
    )
    old = said(findings, "parts.py is Python 2")
    assert (old.kind, "imports modules beside it" in old.text) == ("change", True)
    named = said(findings, "helper.py only works in Python 2")
    assert str(named.place) == "src/bolts/helper.py:1" and "unicode (line 3)" in named.text
    count = findings.topologies[0].components[1]
    assert (count.type_name, kinds(findings)) == (
        "Count",
        {"change", "note"},
    )  # nothing of an old file "runs"

    diff = tmp_path / "python3.diff"
    diff.write_text("".join(findings.python3.values()))
    done = subprocess.run(
        ["patch", "-p1", "-d", tmp_path, "-i", diff], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for file in (tmp_path / "src").rglob("*.py"):
        compile(file.read_text(), str(file), "exec")
    assert "from .helper import shout" in (tmp_path / "src/bolts/parts.py").read_text()
    again, _ = read_project(tmp_path)
    assert not again.python3
    assert not [one for one in again.statements if one.kind == "change"]


@needs_fissix
@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-8-sig"])
def test_drafts_keep_the_bytes_of_a_file(tmp_path: Path, encoding: str, ends: bytes) -> None:
    """Its encoding and its ends of lines, so that the diff can be applied."""
    streamparse(tmp_path, WORDS, PARTS)
    cookie = "" if encoding == "utf-8-sig" else f"# -*- coding: {encoding} -*-\n"
    text = f"{cookie}from streamparse import Bolt\nprint u'Wörter'\n"
    (tmp_path / "src" / "old.py").write_bytes(text.encode(encoding).replace(b"\n", ends))
    findings, _ = read_project(tmp_path)
    diff = tmp_path / "python3.diff"
    diff.write_bytes("".join(findings.python3.values()).encode("utf-8", "surrogateescape"))
    subprocess.run(["patch", "--binary", "-p1", "-d", tmp_path, "-i", diff], capture_output=True, check=True)
    after = text.replace("print u'Wörter'", "print('Wörter')").encode(encoding).replace(b"\n", ends)
    assert (tmp_path / "src" / "old.py").read_bytes() == after


@needs_fissix
def test_names_that_are_keywords_now_get_another_name_in_the_draft(tmp_path: Path) -> None:
    """As the argument async of tweepy's streams, in many projects of its time."""
    old = "def listen(stream):\n    stream.filter(track=['a'], async=True)\n"
    findings = streamparse(tmp_path, WORDS, PARTS + "import old\n", {"src/old.py": old})
    assert "+    stream.filter(track=['a'], async_=True)" in findings.python3["src/old.py"].splitlines()
    found = said(findings, "async and await are keywords since Python 3.7")
    assert (found.kind, str(found.place)) == ("change", "src/old.py:2")


def test_an_implicit_relative_import_is_reported(tmp_path: Path) -> None:
    """But not that of a module in a folder that is on the module path, though it has an `__init__.py`."""
    words = WORDS.replace("parts import", "bolts.parts import")
    findings = streamparse(
        tmp_path,
        words,
        "",
        {
            "src/__init__.py": "import more\n",
            "src/more.py": "",
            "src/bolts/__init__.py": "",
            "src/bolts/parts.py": PARTS + "import helper\n",
            "src/bolts/helper.py": "",
        },
    )
    found = said(findings, "only works in Python 2")
    assert (
        str(found.place) == f"src/bolts/parts.py:{line_of(tmp_path, 'import helper', 'src/bolts/parts.py')}"
    )
    assert "bolts.helper" in found.text


def test_code_for_both_pythons_is_right(tmp_path: Path) -> None:
    parts = PARTS + (
        "import sys\nimport six\ntry:\n    import urllib2\nexcept ImportError:\n    import urllib.request as urllib2\n"
        "if sys.version_info[0] == 2:\n    import ConfigParser\n"
        "text = unicode if six.PY2 else str\nlong = int\nlong(3)\n"
    )
    findings = streamparse(tmp_path, WORDS, parts, {"src/six.py": "PY2 = False\n"})
    assert not [one for one in findings.statements if one.kind == "change"]


def test_a_file_that_is_no_python_stays_unread(tmp_path: Path) -> None:
    findings = streamparse(tmp_path, WORDS, PARTS, {"src/broken.py": "def (:\n"})
    assert str(said(findings, "can't parse").place) == "src/broken.py:1"


# -- waits and streams -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("while True:\n            self.emit([1])", "never returns, because of its `while True`"),
        ("for message in self.consumer:\n            self.emit([message])", "iterates over self.consumer"),
        ("for m in self.pubsub.listen():\n            self.emit([m])", "iterates over self.pubsub.listen()"),
        ("self.emit([self.queue.get()])", "waits without a limit in self.queue.get()"),
        ("time.sleep(0.5)", "sleeps 0.5 s: each executor has a thread of its own"),
    ],
)
def test_what_waits_in_next_tuple_is_pointed_out(tmp_path: Path, body: str, words: str) -> None:
    parts = "import time\n" + PARTS.replace('self.emit(["a"])', body, 1)
    found = said(streamparse(tmp_path, WORDS, parts), words)
    first = body.partition("\n")[0]
    assert (found.kind, str(found.place)) == (
        "note",
        f"src/parts.py:{line_of(tmp_path, first, 'src/parts.py')}",
    )


@pytest.mark.parametrize(
    "body",
    [
        "while True:\n            if self.done: return\n            self.emit([1])",
        "while True:\n            break",
        "for word in self.words.split():\n            self.emit([word])",
        "self.emit([self.queue.get(timeout=1)])",
    ],
)
def test_what_ends_is_not(tmp_path: Path, body: str) -> None:
    findings = streamparse(tmp_path, WORDS, PARTS.replace('self.emit(["a"])', body, 1))
    texts = [one.text for one in findings.topologies[0].statements if one.kind == "note"]
    assert texts == ["whether it does the same as before was not checked"]


def test_a_bolt_that_sleeps(tmp_path: Path) -> None:
    parts = "from time import sleep\n" + PARTS.replace("        pass\n", "        sleep(2)\n")
    assert (
        "at most 0.5 tuples per second"
        in said(streamparse(tmp_path, WORDS, parts), "Count.process sleeps 2 s").text
    )


def test_undeclared_streams_name_outputs(tmp_path: Path) -> None:
    """An emit, a subscription, and outputs that are missing altogether."""
    words = WORDS + '    late = Count.spec(inputs=[lines["errors"], count])\n'
    parts = PARTS.replace('self.emit(["a"])', 'self.emit(["a", 1], stream="odd")').replace(
        "        pass", "        self.emit([1, 2])"
    )
    findings = streamparse(tmp_path, words, parts)
    assert (
        said(findings, "emits on stream 'odd'").todo
        == 'add Stream(fields=["...", "..."], name=\'odd\') to `outputs`'
    )
    assert said(findings, "takes stream 'errors'").todo.startswith("add Stream(fields=[...], name='errors')")
    assert said(findings, "takes stream 'default' of bolt 'count'").todo == "give Count outputs = [...]"
    counts = [one for one in findings.topologies[0].statements if "emits on stream 'default'" in one.text]
    assert {one.todo for one in counts} == {'declare it: outputs = ["...", "..."]'}
    assert not [one for one in findings.topologies[0].statements if one.kind == "runs"]


# -- Java --------------------------------------------------------------------------------------------------------

TRANSACTIONAL = """
public class Main {
    static class Sum extends BaseTransactionalBolt implements ICommitter {
        public void declareOutputFields(OutputFieldsDeclarer declarer) { declarer.declare(new Fields("id", "sum")); }
    }
    static class Mine extends BaseTransactionalSpout<Integer> {
        public void declareOutputFields(OutputFieldsDeclarer declarer) { declarer.declare(new Fields("tx", "word")); }
    }
    static class Parts extends BaseComponent implements IPartitionedTransactionalSpout<Integer> {
        public void declareOutputFields(OutputFieldsDeclarer declarer) { declarer.declare(new Fields("tx", "word")); }
    }
    public static void main(String[] args) {
        TransactionalTopologyBuilder builder = new TransactionalTopologyBuilder("tx", "in", SPOUT, 2);
        builder.setBolt("sum", new Sum()).globalGrouping("in");
        builder.setBolt("other", new com.other.Thing()).globalGrouping("sum");
    }
}
"""


@needs_java
@pytest.mark.parametrize(
    ("spout", "base"),
    [
        ("new Mine()", "TransactionalSpout"),
        ("new Parts()", "PartitionedTransactionalSpout"),
        ('new MemoryTransactionalSpout(DATA, new Fields("word"), 3)', "PartitionedTransactionalSpout"),
        ("new OpaqueMemoryTransactionalSpout(DATA, FIELDS, 3)", "OpaquePartitionedTransactionalSpout"),
        ("new OpaqueTransactionalKafkaSpout(config)", "OpaquePartitionedTransactionalSpout"),
        ("new TransactionalKafkaSpout(config)", "PartitionedTransactionalSpout"),
        ("Feeds.make(args)", "TransactionalSpout"),
    ],
)
def test_transactional_spouts_get_the_right_base(tmp_path: Path, spout: str, base: str) -> None:
    (tmp_path / "Main.java").write_text(TRANSACTIONAL.replace("SPOUT", spout))
    _, [(name, text)] = read_project(tmp_path)
    assert f"({base}):" in text
    (tmp_path / name).write_text(text)
    plan_topology(load_topology(str(tmp_path / name)))


def loads(folder: Path, seed: int) -> str:
    """Port the topology that a seed draws, and plan its skeleton; the error, or ""."""
    folder = folder / str(seed)
    folder.mkdir()
    (folder / "Drawn.java").write_text(java_topology(seed), encoding="utf-8")
    _, [(_, text)] = read_project(folder)
    file = folder / f"drawn_{seed}.py"
    file.write_text(text, encoding="utf-8")
    try:
        plan_topology(load_topology(str(file)))
    except Exception as error:
        return f"seed {seed}: {type(error).__name__}: {error}"
    return ""


@needs_java
@pytest.mark.parametrize(
    "seeds", [range(30), pytest.param(range(30, 3_000), marks=[pytest.mark.long, pytest.mark.slow])]
)
def test_every_skeleton_of_drawn_java_loads(tmp_path: Path, seeds: range) -> None:
    """Ids that only running tells, bases of other kinds, names of Python, streams that nobody declares."""
    assert [problem for seed in seeds if (problem := loads(tmp_path, seed))] == []


@needs_java
def test_a_skeleton_without_any_spout_loads(tmp_path: Path) -> None:
    java = """class Main { public static void main(String[] args) {
        TopologyBuilder builder = new TopologyBuilder();
        for (String name : read(args)) { builder.setBolt(name, new Sink()).shuffleGrouping(args[0]); }
        StormSubmitter.submitTopology("no-spout", new Config(), builder.createTopology());
    } }"""
    (tmp_path / "Main.java").write_text(java)
    _, [(name, text)] = read_project(tmp_path)
    (tmp_path / name).write_text(text)
    plan = plan_topology(load_topology(str(tmp_path / name)))
    assert set(plan.components) >= {"missing-spout", "Sink"}
    assert "put the spouts here" in text


# -- Petrel ------------------------------------------------------------------------------------------------------


def test_petrel_is_reported_as_it_is_planned() -> None:
    project = Path(__file__).parents[1] / "petrel" / "projects" / "harbour"
    findings, skeletons = read_project(project)
    assert (skeletons, findings.files) == ([], {"petrel": 4})
    harbour = next(one for one in findings.topologies if one.name == "harbour")
    assert harbour.complete and harbour.front_end == "petrel"
    assert [(one.id, one.kind, one.parallelism) for one in harbour.components] == [
        ("ships", "spout", 1),
        ("unload", "bolt", 3),
        ("tally", "bolt", 1),
    ]
    assert [str(one) for _, one in harbour.inputs] == [
        "ships shuffle",
        "unload fields(good)",
        "unload:empty global",
    ]
    assert {stream.id: stream.fields for stream in harbour.components[1].streams or ()} == {
        "default": ("good", "count"),
        "empty": ("name",),
    }
    assert {one.key for one in harbour.settings} >= {"topology.message.timeout.secs", "harbour"}
    assert not [one for one in harbour.statements if one.kind in ("change", "unread")]


@needs_fissix
def test_petrel_in_python_2_is_found(tmp_path: Path) -> None:
    """The file with `create` is Python 3, too; that it is Petrel's shows only in files that are not."""
    files = {
        "create.py": "import ships\ndef create(builder):\n    builder.setSpout('a', ships.Ships(), 2)\n",
        "ships.py": "from petrel import storm\nfrom petrel.emitter import Spout\nclass Ships(Spout):\n"
        "    def declareOutputFields(self):\n        return ['ship']\n"
        "    def nextTuple(self):\n        print 'a'\ndef run():\n    Ships().run()\n",
    }
    findings = read_files(tmp_path, files)
    [topology] = findings.topologies
    assert [(one.id, one.type_name, one.parallelism) for one in topology.components] == [("a", "Ships", 2)]
    assert str(said(findings, "ships.py is Python 2").place) == "ships.py:7"
    assert kinds(findings) == {"change", "note"}


def test_what_petrels_front_end_lacks(tmp_path: Path) -> None:
    """The names of forks, and those of the pipe."""
    files = {
        "create.py": "import ships\ndef create(builder):\n    builder.setSpout('a', ships.Ships())\n"
        "    builder.setJavaSpout('b', 1)\n",
        "ships.py": "from petrel import storm\nfrom petrel.emitter import Spout\nfrom petrel.components import Other\n"
        "class Ships(Spout):\n    def nextTuple(self):\n        storm.readCommand()\n",
    }
    findings = read_files(tmp_path, files)
    assert str(said(findings, "setJavaSpout is not offered").place) == "create.py:4"
    assert str(said(findings, "petrel.components is not offered").place) == "ships.py:3"
    assert str(said(findings, "no readCommand here").place) == "ships.py:6"


@pytest.mark.slow
def test_the_command_writes_the_drafts(tmp_path: Path) -> None:
    pytest.importorskip("fissix")
    streamparse(tmp_path / "project", WORDS, PARTS.replace("        pass", "        print 1"))
    done = subprocess.run(
        [sys.executable, "-m", "stormspark.cli", "port", tmp_path / "project", "--out", tmp_path / "out"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "+        print(1)" in (tmp_path / "out" / "python3.diff").read_text()
