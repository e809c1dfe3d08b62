"""Petrel's names, and what its builder and its components do."""

from __future__ import annotations

import importlib
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stormspark.cli.load import FrontEndOptions, load_topology
from stormspark.compat.detection import legacy_kind
from stormspark.compat.petrel import storm
from stormspark.compat.petrel.tasks import ON_PATH
from stormspark.errors import EmitError, InvalidTopologyError, StormsparkError, TopologyNotFoundError
from stormspark.plan import plan_topology
from stormspark.testing import complete_topology
from stormspark.user_code import put_first

SHIPS = """
from petrel import storm
from petrel.emitter import Spout
class Ships(Spout):
    def __init__(self):
        super().__init__(script=__file__)
        self.ships = ["a b", "c"]
    def declareOutputFields(self):
        return ["ship"]
    def nextTuple(self):
        if self.ships:
            storm.emit([self.ships.pop(0)], id="any")
def run():
    Ships().run()
"""
SPLIT = """
import threading
from petrel import storm
from petrel.emitter import BasicBolt, Bolt
class Split(BasicBolt):
    def __init__(self):
        super().__init__(script=__file__)
    def declareOutputFields(self):
        return ["word"]
    def process(self, tup):
        BODY
def run():
    Split().run()
"""
BODY = "storm.emitMany([[word] for word in tup.values[0].split()])"
CREATE = """
import ships, split
def create(builder):
    builder.setSpout("ships", ships.Ships())
    builder.setBolt("split", split.Split(), 2).shuffleGrouping("ships")
"""


def project(folder: Path, create: str = CREATE, body: str = BODY, **others: str) -> str:
    """Write a project, and return its file."""
    files = {"create": create, "ships": SHIPS, "split": SPLIT.replace("BODY", body), **others}
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return str(folder / "create.py")


def test_names() -> None:
    """Where users import them from."""
    put_first(ON_PATH)
    for module, names in {
        "petrel.storm": "emit emitMany emitDirect ack ackId fail log reportError Tuple Spout Bolt BasicBolt storm_log",
        "petrel.emitter": "Spout Bolt BasicBolt EmitterBase",
        "petrel.topologybuilder": "TopologyBuilder",
        "petrel.mock": "MockSpout Mock run_simple_topology LIST NAMEDTUPLE",
    }.items():
        found = importlib.import_module(module)
        assert str(found.__file__).startswith(str(ON_PATH))
        assert all(hasattr(found, name) for name in names.split())


def test_a_topology(tmp_path: Path) -> None:
    """Its file imports no petrel: the modules of its components do."""
    file = project(tmp_path)
    assert legacy_kind(Path(file)) == "petrel"
    topology = load_topology(file)
    assert topology.name == tmp_path.name
    done = complete_topology(topology)
    assert sorted(done.read_tuples("split")) == [("a",), ("b",), ("c",)]


def test_settings_and_parallelism_of_topology_yaml(tmp_path: Path) -> None:
    (tmp_path / "topology.yaml").write_text(
        "topology.name: harbour\npetrel.pip_options: x\npetrel.parallelism.split: 5\ntopology.workers: 3\nmine: 1\n"
    )
    topology = load_topology(project(tmp_path))
    assert (topology.name, dict(topology.conf)) == ("harbour", {"topology.workers": 3, "mine": 1})
    assert plan_topology(topology).components["split"].parallelism == 5


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "split.Split()",
            "split.threading.Thread",
            "create.py:5: bolt 'split' must be an object of a subclass of petrel.emitter.Bolt",
        ),
        ("split.Split()", "ships.Ships()", "declare it by setSpout"),
        (
            '"split", split',
            '"ships", split',
            "Bolt has already been declared|Spout has already been declared",
        ),
        ("def create(builder)", "def make(builder)", "has no function 'create'"),
        ("split.Split()", "1 / 0", "ZeroDivisionError"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises((InvalidTopologyError, TopologyNotFoundError), match=words):
        load_topology(project(tmp_path, CREATE.replace(old, new)))


def test_python_2_is_named_with_what_drafts_it_in_python_3(tmp_path: Path) -> None:
    """Most Petrel projects are Python 2."""
    with pytest.raises(TopologyNotFoundError, match=r"split\.py:11: SyntaxError") as raised:
        load_topology(project(tmp_path, body="print 'a word'"))
    assert any("stormspark port" in note for note in raised.value.__notes__)


def test_classes_as_some_forks_take_them(tmp_path: Path) -> None:
    """A class in the place of an object, without a script and without a ``run()``."""
    create = CREATE.replace("split.Split()", "split.Split").replace("ships.Ships()", "ships.Ships")
    file = project(
        tmp_path, create, ships=SHIPS.replace("script=__file__", "").replace("def run", "def no_run")
    )
    done = complete_topology(load_topology(file))
    assert sorted(done.read_tuples("split")) == [("a",), ("b",), ("c",)]


def test_a_parallelism_for_nobody(tmp_path: Path) -> None:
    (tmp_path / "topology.yaml").write_text("petrel.parallelism.splt: 5\n")
    with pytest.raises(
        InvalidTopologyError, match=r"topology.yaml: petrel.parallelism.splt names no component"
    ):
        load_topology(project(tmp_path))


def test_another_function(tmp_path: Path) -> None:
    file = project(tmp_path, CREATE + "def small(b):\n    b.setSpout('one', ships.Ships())\n")
    assert list(load_topology(f"{file}:small").components) == ["one"]


def test_a_run_that_makes_no_component(tmp_path: Path) -> None:
    file = project(tmp_path, ships=SHIPS.replace("Ships().run()", "pass"))
    with pytest.raises(Exception, match=r"run\(\) of ships.py must make one component"):
        complete_topology(load_topology(file))


def test_a_thread_can_not_emit() -> None:
    """Nobody knows for which component it works."""
    with ThreadPoolExecutor(1) as pool, pytest.raises(EmitError, match=r"storm.emit was called outside"):
        pool.submit(storm.emit, [1]).result()


def test_a_component_is_not_run_alone() -> None:
    with pytest.raises(StormsparkError, match="can't be run alone"):
        storm.Spout().run()


def test_a_bolt_that_raises_fails_its_tuple(tmp_path: Path) -> None:
    body = "storm.sendFailureMsgToParent('E_NOT_MINE') if tup.values[0] == 'c' else storm.emit([tup.task])"
    done = complete_topology(load_topology(project(tmp_path, body=body)))
    assert len(done.read_tuples("split")) == 1


def test_values_are_lists_of_the_bolts_own(tmp_path: Path) -> None:
    """As after a way through JSON: a tuple became a list, and a change harms nobody else."""
    body = "tup.values.append(type(tup.values).__name__); storm.emit([tup.values[-1]])"
    done = complete_topology(load_topology(project(tmp_path, body=body)))
    assert done.read_tuples("split") == [("list",), ("list",)]


def test_a_spout_that_emits_a_lot_in_one_call(tmp_path: Path) -> None:
    """It is suspended in an emit, and bolts are called meanwhile; the next emit is still the spout's."""
    ships = SHIPS.replace('["a b", "c"]', "[3000]").replace(
        'storm.emit([self.ships.pop(0)], id="any")',
        "[storm.emit([str(n)], id=n) for n in range(self.ships.pop(0))]",
    )
    done = complete_topology(load_topology(project(tmp_path, ships=ships)))
    assert len(done.read_tuples("ships")) == 3000
    assert sorted(int(word) for (word,) in done.read_tuples("split")) == list(range(3000))


def test_the_mock(tmp_path: Path) -> None:
    project(tmp_path)
    for folder in (tmp_path, ON_PATH):
        put_first(folder)
    split, mock = importlib.import_module("split"), importlib.import_module("petrel.mock")
    bolt, spout = split.Split(), mock.MockSpout(["ship"], [["x y"], ["z"]])
    assert mock.run_simple_topology({}, [spout, bolt])[bolt] == [("x",), ("y",), ("z",)]
    assert "petrel.mock" in sys.modules


def test_the_working_directory_holds_for_create_too(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "parallelism.txt").write_text("3")
    opening = CREATE.replace("split.Split(), 2", 'split.Split(), int(Path("parallelism.txt").read_text())')
    file = project(tmp_path, "from pathlib import Path\n" + opening)
    with pytest.raises(
        InvalidTopologyError, match=r"relative paths start in .*; call it in the project's folder"
    ):
        load_topology(file)
    topology = load_topology(file, FrontEndOptions(conf={"stormspark.working.dir": str(data)}))
    assert topology.components["split"].parallelism == 3
