"""What can't be imported as it is, is not said to run: Python 2 and missing modules, also in files that a component imports."""

import pytest

from tests.unit.porting.reading import COMPONENTS, IMPORTS, read_files, reported

BOLT = """
from streamparse import Bolt
{imports}
class Split(Bolt):
    outputs = ["word"]
    def process(self, tup): pass
"""
SPOUT = """
from streamparse import Spout
class Lines(Spout):
    outputs = ["line"]
    def next_tuple(self): pass
"""
TOPOLOGY = """
from streamparse import Topology
from spouts.lines import Lines
from bolts.split import Split
class Words(Topology):
    lines = Lines.spec()
    split = Split.spec(inputs=[lines])
"""
CLOJURE = """
(ns words (:use [streamparse.specs]) (:gen-class))
(defn words [options]
  [{"lines" (python-spout-spec options "spouts.lines.Lines" ["line"])}
   {"split" (python-bolt-spec options {"lines" :shuffle} "bolts.split.Split" ["word"])}])
"""


def project(topology, imports, **more):
    name = "topologies/words.py" if "class" in topology and "defn" not in topology else "topologies/words.clj"
    return {
        name: topology,
        "src/spouts/__init__.py": "",
        "src/spouts/lines.py": SPOUT,
        "src/bolts/__init__.py": "",
        "src/bolts/split.py": BOLT.format(imports=imports),
        **{f"src/{file.replace('__', '/')}.py": text for file, text in more.items()},
    }


@pytest.mark.parametrize("topology", [TOPOLOGY, CLOJURE], ids=["python", "clojure"])
@pytest.mark.parametrize(
    ("imports", "more", "says", "where"),
    [
        (
            "import no_such_module",
            {},
            "imports no_such_module, which is not installed",
            "src/bolts/split.py:3",
        ),
        (
            "from queue import Empty\ntry: pass\nexcept Empty, e: pass",
            {},
            "is Python 2",
            "src/bolts/split.py:5",
        ),
        (
            "from bolts import helpers",
            {"bolts__helpers": "from texts import cut", "texts": "def cut(t): return unicode(t)"},
            "src/texts.py only works in Python 2: unicode",
            "src/texts.py:1",
        ),
        (
            "from .helpers import cut",
            {"bolts__helpers": "import os\nimport no_such_module.inner"},
            "src/bolts/helpers.py imports no_such_module.inner",
            "src/bolts/helpers.py:2",
        ),
    ],
    ids=["missing", "python-2", "indirect-python-2", "indirect-missing"],
)
def test_a_component_that_cant_be_imported_needs_a_change(tmp_path, topology, imports, more, says, where):
    if topology is CLOJURE:
        pytest.importorskip("basilisp.lang.reader")
    [found] = read_files(tmp_path, project(topology, imports, **more)).topologies
    [change] = reported(found, "change", "^bolt 'split': Split can't be imported as it is")
    assert says in change.text
    assert str(change.place) == where
    assert not reported(found, "runs", "split|Split|it runs as it is")
    assert reported(found, "runs", "'lines'")


@pytest.mark.parametrize(
    "imports",
    [
        "try:\n    import no_such_module\nexcept ImportError:\n    no_such_module = None",
        "import json, os.path\nfrom collections import abc",
        "from bolts.helpers import cut",
    ],
)
def test_a_component_that_can_be_imported_runs(tmp_path, imports):
    files = project(
        TOPOLOGY, imports, bolts__helpers="def cut(t): return str(t)", path="import no_such_module"
    )
    [found] = read_files(tmp_path, files).topologies
    assert reported(found, "runs", "no change to Split is known to be needed")


def test_a_child_whose_module_is_python_2_does_not_run(tmp_path):
    pytest.importorskip("tree_sitter_java")
    java = f"""package com.acme;{IMPORTS}
public class Words {{
    public static class Cut extends ShellBolt implements IRichBolt {{
        public Cut() {{ super("python", "cut.py"); }}
        public void declareOutputFields(OutputFieldsDeclarer declarer) {{ declarer.declare(new Fields("word")); }}
        public Map<String, Object> getComponentConfiguration() {{ return null; }}
    }}
    public static void main(String[] args) throws Exception {{
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("lines", new Lines());
        builder.setBolt("cut", new Cut()).shuffleGrouping("lines");
        StormSubmitter.submitTopology("words", new Config(), builder.createTopology());
    }}
}}
{COMPONENTS}"""
    child = "import storm\nfrom textutil import clean\nclass Cut(storm.BasicBolt):\n    def process(self, tup): pass\nCut().run()"
    files = {
        "src/jvm/com/acme/Words.java": java,
        "multilang/resources/cut.py": child,
        "multilang/resources/textutil.py": "def clean(t): return unicode(t)",
    }
    [found] = read_files(tmp_path, files).topologies
    [change] = reported(found, "change", "its child process, multilang/resources/cut.py, can't run as it is")
    assert str(change.place) == "multilang/resources/textutil.py:1"
    assert not reported(found, "runs", "cut.py")
