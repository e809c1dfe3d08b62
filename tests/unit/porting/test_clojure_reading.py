"""Topologies in Clojure: what is reported, and the drafts in Python (A30, W6)."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("basilisp.lang.reader")

from stormspark.compat.streamparse import load
from stormspark.porting.findings import Findings, TopologyFound
from stormspark.porting.project import read_project
from tests.imports import imports_undone

PARTS = """
from streamparse.bolt import BatchingBolt, Bolt
from streamparse.spout import Spout

class Words(Spout):
    def next_tuple(self):
        self.emit(["a"])

class Count(Bolt):
    def process(self, tup):
        self.emit(tup.values)

class Batches(BatchingBolt):
    def process_batch(self, key, tups):
        pass
"""
TOPOLOGY = """\
(ns words (:use [streamparse.specs]) (:import [com.acme PixelSpout]))
(defn words [options]
  [{"in-1" (python-spout-spec options "clj_parts.Words" {"default" ["word" "n"] "odd" ["word"]} :p (get options "p" 2))
    "pixels" (spout-spec (PixelSpout. 7))
    "made" (spout-spec made-elsewhere)}
   {"count" (python-bolt-spec options {"in-1" ["word"] ["in-1" "odd"] :all, "made" ["key"], "batches" :shuffle}
              "clj_parts.Count" ["word"] :conf {"a" 1 "b" [true nil]})
    "again" (python-bolt-spec options {"count" :global "pixels" :none} "clj_parts.Count" ["other"] :par 3)
    "batches" (python-bolt-spec options {"count" :local-or-shuffle} "clj_parts.Batches" ["n"] :p (.cores host))
    "node" (shell-bolt-spec {"count" :shuffle} ["node" "a b.js"] {"out" (direct-output-fields ["n"])} :p 2)
    "lost" (python-bolt-spec options {["node" "out"] :direct} "clj_parts.Lost" [])}])
"""


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Loading a project puts folders on the module path and imports what is in them: undo that."""
    with imports_undone(monkeypatch):
        yield


@pytest.fixture
def project(tmp_path: Path) -> Callable[[str], Path]:
    """Write a project; gives its folder."""

    def write(topology: str) -> Path:
        for folder in ("src", "topologies"):
            (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / "src" / "clj_parts.py").write_text(PARTS)
        (tmp_path / "src" / "a b.js").write_text("")
        (tmp_path / "project.clj").write_text('(defproject words "1" :dependencies [[streamparse.specs]])')
        (tmp_path / "config.json").write_text('{"envs": {"prod": {"options": {"p": 4}}}}')
        (tmp_path / "topologies" / "words.clj").write_text(textwrap.dedent(topology))
        return tmp_path

    return write


def read(folder: Path) -> tuple[Findings, TopologyFound, str]:
    """The findings, the only topology, and its draft."""
    findings, drafts = read_project(folder)
    (topology,) = findings.topologies
    ((name, draft),) = drafts
    assert topology.skeleton == name
    return findings, topology, draft


def texts(topology: TopologyFound, kind: str) -> str:
    return "\n".join(f"{one.place}: {one.text}" for one in topology.statements if one.kind == kind)


def test_what_is_found(project: Callable[[str], Path]) -> None:
    findings, topology, _ = read(project(TOPOLOGY))
    assert findings.files["clojure"] == 1
    assert topology.front_end == "streamparse-clojure"
    components = {one.id: one for one in topology.components}
    assert list(components) == ["in-1", "pixels", "made", "count", "again", "batches", "node", "lost"]
    assert components["in-1"].parallelism == 4
    assert [str(one) for one in components["count"].inputs] == [
        "batches shuffle",
        "in-1 fields(word)",
        "in-1:odd all",
        "made fields(key)",
    ]
    assert components["batches"].parallelism is None
    unread = texts(topology, "unread")
    assert "words.clj:5: spout 'made': it is an object that only Clojure can make: made-elsewhere" in unread
    assert (
        "words.clj:9: bolt 'batches': the parallelism can't be made out without Clojure: (.cores host)"
        in unread
    )
    change = texts(topology, "change")
    assert "words.clj:4: spout 'pixels' is the Java class com.acme.PixelSpout" in change
    assert "words.clj:11: bolt 'lost': src/clj_parts.py defines no class Lost" in change
    note = texts(topology, "note")
    assert "reads the options p" in note and "environment 'prod'" in note
    assert "clj_parts.py:13: bolt 'batches': the batches of Batches end by time" in note
    assert "words.clj:8: :par has no effect" in note
    assert "it runs as it is" not in texts(topology, "runs")


def test_a_draft_has_everything_and_loads(project: Callable[[str], Path]) -> None:
    """What can't be drafted has a class that raises NotImplementedError, so the rest can be planned."""
    folder = project(TOPOLOGY)
    _, _, draft = read(folder)
    assert "# TODO topologies/words.clj:9: the parallelism can't be made out" in draft
    assert 'NotImplementedError("write lost, for clj_parts.Lost: topologies/words.clj:11")' in draft
    assert "JavaSpout.spec(" in draft and 'full_class_name="com.acme.PixelSpout"' in draft
    assert "class CountOfAgain(Count):" in draft  # the same class with other fields
    without_java = TOPOLOGY.replace("(spout-spec (PixelSpout. 7))", "(spout-spec (.pixels java))")
    _, topology, draft = read(project(without_java))
    (folder / "topologies" / topology.skeleton).write_text(draft)
    loaded = load(folder / "topologies" / topology.skeleton)
    assert set(loaded.components) == {"in-1", "pixels", "made", "count", "again", "batches", "node", "lost"}
    assert loaded.components["in-1"].parallelism == 4
    assert loaded.components["node"].parallelism == 2
    assert loaded.conf["topology.max.spout.pending"] == 5000


def test_a_topology_without_problems_runs_as_it_is(project: Callable[[str], Path]) -> None:
    folder = project(
        """\
        (ns words (:use [streamparse.specs]))
        (defn words [options]
          [{"in" (python-spout-spec options "clj_parts.Words" ["word"])}
           {"count" (python-bolt-spec options {"in" ["word"]} "clj_parts.Count" ["word"])}])
        """
    )
    _, topology, draft = read(folder)
    assert "it runs as it is: stormspark run topologies/words.clj" in texts(topology, "runs")
    assert "TODO" not in draft
    assert texts(topology, "change") == texts(topology, "unread") == ""


@pytest.mark.parametrize(
    ("spout", "bolt", "said"),
    [
        (
            '"in"',
            '{"nowhere" :shuffle} "clj_parts.Count"',
            "bolt 'count' subscribes to 'nowhere', which is no component",
        ),
        (
            '"in"',
            '{"in" ["wrod"]} "clj_parts.Count"',
            "bolt 'count' groups by 'wrod', which is no field of stream 'default'",
        ),
        (
            '"in"',
            '{["in" "odd"] :all} "clj_parts.Count"',
            "bolt 'count' subscribes to stream 'odd' of 'in', which does not",
        ),
        (
            '"in"',
            '{"in" (com.acme.Mine. 1)} "clj_parts.Count"',
            "by com.acme.Mine, a grouping in Java, which can't run",
        ),
        (
            '"in"',
            '{"in" :all} "clj_parts.Words"',
            "bolt 'count': clj_parts.Words is a spout, and stands among the bolts",
        ),
        ('"__in"', '{"__in" :all} "clj_parts.Count"', "spout '__in': ids that begin with __ are reserved"),
        (
            '"in"',
            '{"in" :all} ["node" "none.js"]',
            "the script of its child, none.js, was not found in the project",
        ),
    ],
)
def test_what_can_t_be_built_does_not_run_as_it_is(
    project: Callable[[str], Path], spout: str, bolt: str, said: str
) -> None:
    """W6: before, the report said of each that it runs as it is."""
    spec = "shell-bolt-spec" if "node" in bolt else "python-bolt-spec options"
    _, topology, _ = read(
        project(
            f"""\
            (ns words (:use [streamparse.specs]))
            (defn words [options]
              [{{{spout} (python-spout-spec options "clj_parts.Words" ["word"])}}
               {{"count" ({spec} {bolt} ["word"])}}])
            """
        )
    )
    assert said in texts(topology, "change")
    assert "it runs as it is" not in texts(topology, "runs")


def test_what_is_no_topology(project: Callable[[str], Path]) -> None:
    """A file that is not closed, and one without a topology, are reported with their lines."""
    folder = project("(ns words (:use [streamparse.specs]))\n(defn words [options]\n  [{\n")
    (folder / "topologies" / "helpers.clj").write_text(
        '(ns helpers (:use [streamparse.specs]))\n(def a "b")\n'
    )
    findings, drafts = read_project(folder)
    assert drafts == []
    unread = [f"{one.place}: {one.text}" for one in findings.statements if one.kind == "unread"]
    assert any(one.startswith("topologies/words.clj:2: this is not valid Clojure") for one in unread)
    assert any(one.startswith("topologies/helpers.clj:2: no topology was found: a") for one in unread)


def test_without_a_reader_the_rest_is_read(
    project: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """W6: basilisp is an extra; without it the report says what to install."""
    monkeypatch.setitem(sys.modules, "basilisp.lang.reader", None)
    monkeypatch.delattr("basilisp.lang.reader")
    findings, drafts = read_project(project(TOPOLOGY))
    assert drafts == []
    (one,) = [one for one in findings.statements if "basilisp" in one.text]
    assert (str(one.place), one.kind) == ("topologies/words.clj:1", "unread")
    assert one.todo == "pip install 'stormspark[clojure]'"
