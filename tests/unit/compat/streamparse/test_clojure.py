"""Topologies of streamparse 1 and 2, which are written in Clojure (A30, A31, A35, A37)."""

from __future__ import annotations

import json
import pickle
import re
import tempfile
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("basilisp.lang.reader")

from stormspark.compat.streamparse import load
from stormspark.compat.streamparse.clojure import ClojureFile, ClojureTopology, Unknown, read_clojure
from stormspark.compat.streamparse.clojure.evaluation import Evaluation
from stormspark.compat.streamparse.clojure.forms import read_forms
from stormspark.compat.streamparse.clojure.scripts import children_folder
from stormspark.compat.streamparse.clojure.specs import DSL, ClojureStream
from stormspark.compat.streamparse.clojure.values import ClojureError, Keyword
from stormspark.compat.streamparse.project import topology_file
from stormspark.errors import InvalidTopologyError, TopologyNotFoundError
from stormspark.grouping import FieldsGrouping, GlobalGrouping, NoneGrouping
from stormspark.testing import complete_topology
from tests.imports import imports_undone

SHOP = (
    Path(__file__).parents[3] / "legacy/streamparse/projects/early/topologies/shop-orders.clj"
).read_text()
NAMESPACE = "(ns words (:use [streamparse.specs] [backtype.storm clojure config]) (:gen-class))\n"
PARTS = """
    from streamparse.bolt import BasicBolt, BatchingBolt, Bolt
    from streamparse.ipc import log
    from streamparse.spout import Spout

    class Words(Spout):
        def initialize(self, conf, ctx):
            self.left = ["a", "b", "a"]

        def next_tuple(self):
            if self.left:
                self.emit_many([[self.left.pop()]], tup_ids=[len(self.left)])

    class Count(Bolt):
        def initialize(self, conf, ctx):
            self.counts = {}

        def process(self, tup):
            word = tup.values[0]
            self.counts[word] = self.counts.get(word, 0) + 1
            self.log(word)
            log(word, "debug")
            self.emit([word, self.counts[word]])

    class Receivers(Bolt):
        def process(self, tup):
            self.emit([tup.values[0], self.emit([tup.values[0]], stream="tasks"), self._task_id, self._component_name])

    class Last(Bolt):
        def process(self, tup):
            self.emit_many([tup.values, tup.values])

    class Batches(BatchingBolt):
        secs_between_batches = 0.1

        def process_batch(self, key, tups):
            self.emit([len(tups)])
"""


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Loading a project puts folders on the module path and imports what is in them: undo that."""
    with imports_undone(monkeypatch):
        yield


def value(text: str) -> Any:
    """The value of the last form of a text."""
    evaluation = Evaluation(DSL)
    return [evaluation.value(form) for form in read_forms(text)][-1]


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., ClojureFile]:
    """Write a Clojure file after its namespace, and read its topologies."""

    def read_text(text: str, options: dict[str, Any] | None = None) -> ClojureFile:
        path = tmp_path / "words.clj"
        path.write_text(NAMESPACE + textwrap.dedent(text))
        return read_clojure(path, options)

    return read_text


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Path]:
    """Write a project with a topology in Clojure. Gives the file of the topology."""

    def write(text: str, parts: str = PARTS, config: Any = None) -> Path:
        for folder in ("src", "topologies"):
            (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / "src" / "early_parts.py").write_text(textwrap.dedent(parts))
        (tmp_path / "config.json").write_text(json.dumps(config or {"envs": {"prod": {}}}))
        file = tmp_path / "topologies" / "word-count.clj"
        file.write_text(NAMESPACE + textwrap.dedent(text))
        return file

    return write


# -- evaluation ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('(str "a" 1 :b nil true)', "a1:btrue"),
        ("(let [n 2 [a b & more] [1 2 3 4]] (* n (+ a b (count more))))", 10),
        ("(let [{:keys [p] :or {p 3}} {}] p)", 3),
        ('(defn f "doc" [x & {:keys [q]}] (if (> x 1) (str x q) "one")) (f 2 :q "!")', "2!"),
        (
            "(defn f ([a] a) ([a b] (* 2 a)) ([a b & more] (count more))) [(f 3) (f 3 1) (f 3 1 1 1)]",
            (3, 6, 2),
        ),
        ('\'{"a" [1 :b]}', {"a": (1, Keyword("b"))}),
        ('(def r #"\\p{Alpha}+(?<n>\\")") (def t #foo/bar [1]) 7', 7),
        ('(get {"a" 1} "b" 7)', 7),
        ('({"a" 1} "a")', 1),
        ("(:p {:p 4})", 4),
        ('(merge {"a" 1} nil {"b" 2})', {"a": 1, "b": 2}),
        ('(-> {"a" 1} (assoc "b" 2) (dissoc "a"))', {"b": 2}),
        ("(->> (range 4) (map inc) (filter #(> % 2)) (reduce +))", 7),
        ('(into {} (for [i (range 2) :when (> i 0)] [(str "bolt-" i) i]))', {"bolt-1": 1}),
        ("(cond (= 1 2) :a :else :b)", Keyword("b")),
        ('(case "x" "y" 1 ("x" "z") 2 3)', 2),
        ("(or nil false 5)", 5),
        ("(/ 6 4) (/ 6 3)", 2),
        ('(apply str (concat ["a"] ["b"]))', "ab"),
        ("TOPOLOGY-TICK-TUPLE-FREQ-SECS", "topology.tick.tuple.freq.secs"),
        ("Config/TOPOLOGY_MAX_SPOUT_PENDING", "topology.max.spout.pending"),
        ('(Integer/parseInt "12")', 12),
        ('(System/getenv "NO_SUCH_VARIABLE_OF_A_TEST")', None),
        ('(comment (f x)) #_(skipped) ["a", "b"]', ("a", "b")),
        ('(if-let [x nil] x "none")', "none"),
        ("^:private #{1 2}", frozenset({1, 2})),
        ('(clojure.string/join "," ["a" "b"])', "a,b"),
    ],
)
def test_what_topologies_compute(text: str, expected: Any) -> None:
    """A37: settings, names and numbers are computed as Clojure computes them."""
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("\n(.setScheme config 1)", "method of a Java object"),
        ("\n(loop [] (recur))", "loops"),
        ("\n(no-such-function 1)", "no-such-function"),
        ("\n(defmacro m [x] x)", "macros"),
        ("\n(+ 1 nil)", "TypeError"),
        ("(defn f ([a] a) ([a b] b))\n(f 1 2 3)", "can't be called with 3 arguments"),
        ('\n(count #"\\p{Alpha}")', "re-pattern is not known"),
        ("\n(inc #foo/bar 1)", "tagged-literal is not known"),
        ("(defn f [x] (f x))\n(f 1)", "RecursionError or limit"),
        ("\n(defbolt b [] [t c] nil)", "written in Clojure"),
        ("\n(concat [1] (.ids config))", "method of a Java object"),
        ("\n(into [] (.ids config))", "method of a Java object"),
        ("\n(apply + [1 (.size config)])", "method of a Java object"),
        ("\n(map inc (.ids config))", "method of a Java object"),
        ("\n(reduce (fn [a b] (* a a)) (range 2 60))", "integer overflow"),
        ("\n(reduce (fn [a b] (/ a 3)) (range 1 60))", "integer overflow"),
        ('\n(reduce (fn [a b] (str a a)) "x" (range 2 60))', "more than 20,000 parts"),
    ],
)
def test_what_only_clojure_can_compute_has_a_line_and_a_reason(text: str, why: str) -> None:
    if why.startswith("Recursion"):
        evaluation = Evaluation(DSL)
        *_, last = read_forms(text)
        evaluation.value(next(read_forms(text)))
        found = evaluation.limited(last, lambda: evaluation.value(last))
        assert isinstance(found, Unknown) and "too long" in found.why
        return
    found = value(text)
    assert isinstance(found, Unknown)
    assert why in found.why
    assert found.line == 2


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("(ns a)\n\n(defn b [options]\n  [{\n", 3, "not closed"),
        ("(ns a)\n(def b ]", 2, "Unexpected char"),
        ('(ns a)\n(def b {"x" 1 "x" 2})', 2, "Duplicate key"),
        ("(ns a)\n(def b [\u201cx\u201d])", 2, "typographic quote"),
    ],
)
def test_what_is_not_clojure_is_named_by_its_line(text: str, line: int, problem: str) -> None:
    with pytest.raises(ClojureError, match=problem) as raised:
        list(read_forms(text))
    assert raised.value.line == line


# -- topologies ---------------------------------------------------------------------------------------------------


def only(file: ClojureFile) -> ClojureTopology:
    (topology,) = file.topologies
    return topology


def test_specs_are_read(read: Callable[..., ClojureFile]) -> None:
    """A31, A33, A34, A35: classes, commands, streams, groupings, :p and :conf."""
    topology = only(
        read(
            """
            (def par 3)
            (defn words [options]
              [{"in" (python-spout-spec options "parts.Words" {"default" ["word"] "odd" (direct-output-fields ["n"])} :p par)}
               {"one" (python-bolt-spec options {"in" ["word"] ["in" "odd"] :direct} "parts.One" ["word" "n"]
                        :conf {TOPOLOGY-TICK-TUPLE-FREQ-SECS (get options "tick" 1) "list" ["a" :b]})
                "two" (shell-bolt-spec {"one" :global "in" nil} ["node" "two.js"] [] :p 2)
                "three" (shell-bolt-spec {"one" :local-or-shuffle} "ruby" "three.rb" ["x"])
                "four" (shell-bolt-spec {"one" :all} ["python3" "-m" "streamparse.run" "parts.Four"] ["x"])}])
            """,
            {"tick": 5},
        )
    )
    assert topology.all_problems == []
    specs = topology.specs
    assert list(specs) == ["in", "one", "two", "three", "four"]
    assert specs["in"].class_name == "parts.Words"
    assert specs["in"].parallelism == 3
    assert specs["in"].streams == {"default": ClojureStream(("word",)), "odd": ClojureStream(("n",), True)}
    assert {key: (one.kind, one.fields) for key, one in (specs["one"].inputs or {}).items()} == {
        ("in", "default"): ("fields", ("word",)),
        ("in", "odd"): ("direct", ()),
    }
    assert specs["one"].conf == {"topology.tick.tuple.freq.secs": 5, "list": ["a", "b"]}
    assert specs["two"].command == ("node", "two.js")
    assert {one.kind for one in (specs["two"].inputs or {}).values()} == {"global", "none"}
    assert specs["three"].command == ("ruby", "three.rb")
    assert specs["four"].class_name == "parts.Four"
    assert specs["one"].line == 6


def test_a_value_may_be_a_topology_and_the_last_one_counts(read: Callable[..., ClojureFile]) -> None:
    """A37: `def` as in streamparse 0, `topology` as in Storm; helpers are no topologies."""
    file = read(
        """
        (def first-one [{"in" (python-spout-spec {} "parts.Words" ["word"])} {}])
        (defn helper [name] (str name "-bolt"))
        (defn second-one [options]
          (topology {"in" (python-spout-spec options "parts.Words" ["word"])}
                    {(helper "a") (python-bolt-spec options {"in" :shuffle} "parts.Count" [])}))
        """
    )
    assert [topology.name for topology in file.topologies] == ["first-one", "second-one"]
    assert list(file.topologies[1].specs) == ["in", "a-bolt"]


@pytest.mark.parametrize(
    ("bolt", "problem"),
    [
        ('(python-bolt-spec options {"in" :shufle} "parts.Count" [])', "did you mean :shuffle"),
        ('(python-bolt-spec {"in" :shuffle} "parts.Count" [])', "needs options, inputs, a class"),
        ('(python-bolt-spec options {"in" :shuffle} "Count" [])', "must be a string like"),
        ('(python-bolt-spec options {"in" :shuffle} "parts.Count" "word")', "output fields must be"),
        ('(python-bolt-spec options {"in" :shuffle} "parts.Count" [] :p "2")', ":p must be a number"),
        ('(python-bolt-spec options {"in" :shuffle} "parts.Count" [] :p)', "options come in pairs"),
        ('(python-bolt-spec options {"in" :shuffle} "parts.Count" [] :p (.cores host))', "(.cores host)"),
        ('(python-bolt-spec options ["in"] "parts.Count" [])', "inputs must be a map"),
        ('(bolt-spec {"in" :shuffle} made-elsewhere)', "made-elsewhere"),
        ("(count-spec options)", "count-spec is not known"),
        ('(python-spout-spec options "parts.Words" ["word"])', "stands among the bolts"),
    ],
)
def test_a_wrong_spec_is_named_by_its_line(read: Callable[..., ClojureFile], bolt: str, problem: str) -> None:
    """A36: the component, its line, and what was expected. The rest of the topology is read all the same."""
    topology = only(
        read(
            f"""
            (defn words [options]
              [{{"in" (python-spout-spec options "parts.Words" ["word"])}}
               {{"count"
                 {bolt}}}])
            """
        )
    )
    assert [(line, problem in text) for line, text in topology.all_problems][-1] == (6, True)
    assert "in" in topology.specs


def test_specs_are_made_by_functions_too(read: Callable[..., ClojureFile]) -> None:
    """A37: bolts that a loop makes, from lists of arguments."""
    topology = only(
        read(
            """
            (defn words [options]
              [{"in" (python-spout-spec options "parts.Words" ["word"])}
               (into {} (for [[i source] (map vector (range 3) ["in" "bolt-0" "bolt-1"])]
                 [(str "bolt-" i) (apply python-bolt-spec options {source :shuffle} ["parts.Count" ["word"] :p (inc i)])]))])
            """
        )
    )
    assert topology.all_problems == []
    assert {id: (one.parallelism, list(one.inputs or {})) for id, one in topology.specs.items()} == {
        "in": (1, []),
        "bolt-0": (1, [("in", "default")]),
        "bolt-1": (2, [("bolt-0", "default")]),
        "bolt-2": (3, [("bolt-1", "default")]),
    }
    assert topology.specs["bolt-2"].line == 6


def test_a_third_map_is_ignored_as_in_storm(read: Callable[..., ClojureFile]) -> None:
    topology = only(
        read(
            """
            (defn words [options]
              [{"in" (python-spout-spec options "parts.Words" ["word"])}
               {"one" (python-bolt-spec options {"in" :shuffle} "parts.Count" [] :par 2)}
               {"two" (python-bolt-spec options {"one" :shuffle} "parts.Count" [])}])
            """
        )
    )
    assert list(topology.specs) == ["in", "one"]
    ((line, remark),) = topology.remarks
    assert line == 6
    assert "'two'" in remark
    assert topology.specs["one"].remarks == [
        (5, ":par has no effect, as in Storm: the options are :p and :conf")
    ]


_TOKENS = re.findall(r"\s+|\"[^\"]*\"|[()\[\]{}]|[^\s()\[\]{}\"]+", SHOP)
_DAMAGES = [
    "",
    "(",
    ")",
    "[",
    "}",
    "nil",
    "#(",
    "'",
    "%",
    "&",
    "{:keys [a]}",
    ":p",
    "apply",
    "(f)",
    "/",
    "loop",
    '"x"',
]


@given(
    st.lists(st.tuples(st.integers(0, len(_TOKENS) - 1), st.sampled_from(_DAMAGES)), min_size=1, max_size=3)
)
def test_a_damaged_file_has_lines_and_reasons(damages: list[tuple[int, str]]) -> None:
    """Whatever is in the file, reading it ends, and says what is wrong where."""
    tokens = list(_TOKENS)
    for at, damage in damages:
        tokens[at] = f" {damage} "
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.clj"
        path.write_text("".join(tokens))
        try:
            file = read_clojure(path)
        except ClojureError as error:
            lines = [error.line]
        else:
            lines = [line for topology in file.topologies for line, _ in topology.all_problems]
    assert all(1 <= line <= SHOP.count("\n") + 1 for line in lines)


# -- projects -----------------------------------------------------------------------------------------------------

WORD_COUNT = """
    (defn word-count [options]
      [{"words" (python-spout-spec options "early_parts.Words" ["word"])}
       {"count" (python-bolt-spec options {"words" ["word"]} "early_parts.Count" ["word" "count"] :p 2)
        "receivers" (python-bolt-spec options {"words" :shuffle} "early_parts.Receivers"
                      {"default" ["word" "tasks" "task" "id"] "tasks" ["word"]})
        "last" (python-bolt-spec options {["receivers" "tasks"] :global} "early_parts.Last" ["word"])}])
"""


def test_a_project_runs(project: Callable[..., Path]) -> None:
    """A37, B16, C12: emit_many, task ids by default, the attributes of streamparse 1; named after its definition."""
    topology = load(project(WORD_COUNT))
    assert topology.name == "word-count"
    assert topology.conf["topology.max.spout.pending"] == 5000
    assert topology.components["count"].parallelism == 2
    assert topology.components["count"].type_name == "Count"
    assert topology.components["count"].declared_at.endswith("word-count.clj:5")
    (grouping,) = topology.components["last"].inputs.values()
    assert isinstance(grouping, GlobalGrouping)
    done = complete_topology(topology)
    assert sorted(done.read_tuples("count")) == [("a", 1), ("a", 2), ("b", 1)]
    assert Counter(done.read_tuples("last")) == {("a",): 4, ("b",): 2}
    for word, tasks, task, id in done.read_tuples("receivers"):
        assert word in "ab"
        assert len(tasks) == 1 and tasks[0] != task
        assert id == "receivers"


@pytest.mark.parametrize(
    "setting", [{}, {"stormspark.working.dir": "other"}], ids=["src", "as the user has said"]
)
def test_modules_of_components_open_files_of_src_while_they_are_imported(
    project: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, setting: dict[str, str]
) -> None:
    """In streamparse 1 and 2 only the tasks import them, in `resources`."""
    file = project(
        WORD_COUNT,
        'from pathlib import Path\nBOTS = Path("data/bots.txt").read_text()\n' + textwrap.dedent(PARTS),
    )
    root = file.parent.parent
    folder = root / (setting["stormspark.working.dir"] if setting else "src")
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "bots.txt").write_text("a bot")
    monkeypatch.chdir(root)
    topology = load(file, options=setting)
    assert {"words", "count"} <= set(topology.components)
    assert Path.cwd() == root.resolve()


def test_the_options_reach_the_function(project: Callable[..., Path]) -> None:
    """A37, A39: an environment's options are the argument, and the configuration; they win over those of `sparse run`."""
    options = {"bolts": 3, "topology.max.spout.pending": 7}
    file = project(
        """
        (defn word-count [options]
          [{"words" (python-spout-spec options "early_parts.Words" ["word"])}
           {"count" (python-bolt-spec options {"words" nil} "early_parts.Count" ["word" "count"] :p (options "bolts"))}])
        """,
        config={"envs": {"prod": {"options": options}}},
    )
    topology = load(file)
    assert topology.components["count"].parallelism == 3
    assert topology.conf["topology.max.spout.pending"] == 7
    assert isinstance(next(iter(topology.components["count"].inputs.values())), NoneGrouping)
    assert load(file, options={"bolts": 5}).components["count"].parallelism == 5


def test_batches_by_time(project: Callable[..., Path]) -> None:
    """C17: the BatchingBolt of streamparse 1 needs no ticks."""
    file = project(
        """
        (defn word-count [options]
          [{"words" (python-spout-spec options "early_parts.Words" ["word"])}
           {"batches" (python-bolt-spec options {"words" :shuffle} "early_parts.Batches" ["n"])}])
        """
    )
    done = complete_topology(load(file))
    assert sum(n for (n,) in done.read_tuples("batches")) == 3


def test_scripts_of_streamparse_0_run_in_the_worker(project: Callable[..., Path]) -> None:
    """A32: (def ...) and ["python" "words.py"], whose last line is Words().run()."""
    parts = f"{textwrap.dedent(PARTS)}\nif __name__ == '__main__':\n    Words().run()\n"
    file = project(
        """
        (def word-count
          [{"words" (shell-spout-spec ["python" "early_parts.py"] ["word"])}
           {"count" (python-bolt-spec {} {"words" ["word"]} "early_parts.Count" ["word" "count"])}])
        """,
        parts,
    )
    topology = load(file)
    assert topology.components["words"].type_name == "Words"
    assert isinstance(next(iter(topology.components["count"].inputs.values())), FieldsGrouping)
    assert len(complete_topology(topology).read_tuples("count")) == 3


def test_several_topologies(project: Callable[..., Path], caplog: pytest.LogCaptureFixture) -> None:
    """A37: the last one runs, as streamparse did; the others have names."""
    file = project(WORD_COUNT + WORD_COUNT.replace("word-count", "other"))
    assert load(file).name == "other"
    assert "word-count.clj:word-count" in caplog.text
    assert load(file, "word-count").name == "word-count"
    with pytest.raises(TopologyNotFoundError, match="no topology 'third'; there are 'word-count', 'other'"):
        load(file, "third")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("early_parts.Count", "early_parts.Cuont", r"clj:5: bolt 'count'.*did you mean early_parts.Count\?"),
        ("early_parts.Count", "bolts.Count", r"clj:5: bolt 'count'.*there is no module 'bolts'"),
        ("early_parts.Count", "early_parts.Words", r"clj:5: bolt 'count'.*is a spout"),
        ("early_parts.Count", "early_parts.log", r"clj:5: bolt 'count'.*is not a class of"),
        ('["word"]} "early', '["wrod"]} "early', r"clj:5: count: Field 'wrod'"),
        ('{"words" ["word"]}', '{"werds" ["word"]}', r"clj:5: count: subscribes to 'werds'"),
        (":p 2", ":p 0", r"clj:5: bolt 'count': :p must be a number of at least 1, got 0"),
        ("(defn word-count [options]", "(defn word-count [options more]", "can't be called with the options"),
        ("(defn", "(defn-", "^$"),
    ],
)
def test_errors_name_the_line_of_the_topology(
    project: Callable[..., Path], old: str, new: str, message: str
) -> None:
    file = project(WORD_COUNT.replace(old, new, 1))
    if message == "^$":
        assert load(file).name == "word-count"
        return
    with pytest.raises((InvalidTopologyError, TopologyNotFoundError), match=message):
        load(file)


@pytest.mark.parametrize(
    "line", ["print 'x'", "except_ = ur'x'", "f(async=True)", "raise ValueError, 'x'", "n = 0777"]
)
def test_a_component_in_python_2_is_named(project: Callable[..., Path], line: str) -> None:
    file = project(WORD_COUNT, f"{textwrap.dedent(PARTS)}\n{line}\n")
    with pytest.raises(TopologyNotFoundError, match=r"early_parts.py:\d+: SyntaxError") as raised:
        load(file)
    assert "older Python" in "".join(raised.value.__notes__)


def test_a_module_of_python_2_is_named(project: Callable[..., Path]) -> None:
    file = project(WORD_COUNT, f"import Queue\n{textwrap.dedent(PARTS)}")
    with pytest.raises(TopologyNotFoundError, match="No module named 'Queue'") as raised:
        load(file)
    assert "Python 3, which calls it queue" in "".join(raised.value.__notes__)


def test_a_java_object_is_refused_or_replaced(project: Callable[..., Path]) -> None:
    """A32: a class that stormspark knows runs; a field that Clojure sets is not lost silently."""
    text = """
        (ns words (:import [org.apache.storm.testing TestWordSpout] [storm.kafka KafkaSpout SpoutConfig]))
        (defn kafka []
          (let [config (SpoutConfig. "words")]
            (set! (.scheme config) 1)
            (KafkaSpout. config)))
        (defn word-count [options]
          [{"words" (spout-spec (SPOUT))}
           {"count" (python-bolt-spec options {"words" ["word"]} "early_parts.Count" ["word" "count"])}])
    """
    topology = load(project(text.replace("SPOUT", "TestWordSpout.")))
    assert topology.components["words"].type_name == "TestWordSpout"
    with pytest.raises(InvalidTopologyError, match=r"clj:5: spout 'words': Clojure sets the fields scheme"):
        load(project(text.replace("SPOUT", "kafka")))


def test_a_folder_is_a_project(project: Callable[..., Path]) -> None:
    """A39: as for `sparse run --name`."""
    file = project(WORD_COUNT)
    root = file.parent.parent
    assert topology_file(root) == root / "topologies" / "word-count.clj"
    (root / "topologies" / "other.py").write_text("")
    with pytest.raises(TopologyNotFoundError, match="choose one by --name: 'other', 'word-count'"):
        topology_file(root)
    assert topology_file(root, "word-count").name == "word-count.clj"
    with pytest.raises(TopologyNotFoundError, match="no topology 'third'; there are"):
        topology_file(root, "third")


def test_old_names_can_be_imported(project: Callable[..., Path]) -> None:
    """Modules of streamparse 0 to 2 that components import."""
    imports = """
        from streamparse.base import Component
        from streamparse.decorators import memoized
        from streamparse.ext.util import get_env_config
        from streamparse.run import main
        from streamparse.util import die, get_config
        import streamparse.cli, streamparse.storm.bolt
    """
    load(project(WORD_COUNT, textwrap.dedent(imports) + textwrap.dedent(PARTS)))


# -- other files of the project -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("takes", "spout", "par"),
    [
        ("(:use [shop.parts :only [words-spout par] :rename {words-spout in, par n}])", "in", "n"),
        ("(:require [shop.parts :as parts])", "parts/words-spout", "parts/par"),
        ("(:require [shop.parts :refer [words-spout par]])", "words-spout", "par"),
        ("(:use shop.parts)", "words-spout", "par"),
        ("(:use [shop parts])", "words-spout", "par"),
        ("(:require [shop [parts :as p :refer [words-spout]]])", "words-spout", "p/par"),
    ],
)
def test_other_namespaces_of_the_project(
    project: Callable[..., Path], takes: str, spout: str, par: str
) -> None:
    """A37: what another file of the project defines is known, too."""
    file = project(
        f"""
        (ns word-count {takes})
        (defn word-count [options]
          [{{"words" ({spout} options)}}
           {{"count" (python-bolt-spec options {{"words" ["word"]}} "early_parts.Count" ["word" "count"] :p {par})}}])
        """
    )
    other = file.parent.parent / "src" / "clj" / "shop" / "parts.clj"
    other.parent.mkdir(parents=True)
    other.write_text(
        "(ns shop.parts (:use [streamparse.specs]))\n(def par (+ 1 2))\n(defn words-spout [options]\n"
        '  (python-spout-spec options "early_parts.Words" ["word"]))\n'
    )
    topology = load(file)
    assert topology.components["count"].parallelism == 3
    assert topology.components["words"].declared_at.endswith("word-count.clj:5")
    other.write_text(
        "(ns shop.parts)\n(def par (.cores host))\n(defn words-spout [options]\n  (made options))\n"
    )
    with pytest.raises(InvalidTopologyError) as raised:
        load(file)
    assert f"{other}:2" in str(raised.value)
    assert f"{other}:4" in str(raised.value)


def test_scripts_of_children_are_looked_for(project: Callable[..., Path]) -> None:
    """A32: in src, or where a project has its resources."""
    file = project(
        """
        (defn word-count [options]
          [{"words" (python-spout-spec options "early_parts.Words" ["word"])}
           {"split" (shell-bolt-spec {"words" :shuffle} ["node" "split.js" "-v"] ["word"])}])
        """
    )
    resources = file.parent.parent / "multilang" / "resources"
    resources.mkdir(parents=True)
    (resources / "split.js").write_text("")
    assert children_folder([("node", "split.js", "-v")], file.parent.parent / "src") is None
    assert children_folder([("node", "split.js", "-v")], resources) == resources
    split = pickle.loads(load(file).components["split"].pickled)
    assert split._beside == file.parent  # the search for the script begins beside the topology
