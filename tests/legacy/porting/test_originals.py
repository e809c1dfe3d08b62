"""The originals' examples, read where a checkout is named by STORM_EXAMPLES, STREAMPARSE_EXAMPLES or HERON_EXAMPLES."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from stormspark.cli.load import load_topology
from stormspark.plan import plan_topology
from stormspark.porting.findings import Findings
from stormspark.porting.java.config_keys import storm_key
from stormspark.porting.project import Skeleton, read_project
from tests.unit.porting.conftest import _as_it_was  # noqa: F401 - what a skeleton imports is forgotten
from tests.unit.porting.reading import graph_planned, graph_read

pytest.importorskip("tree_sitter_java")


def checkout(variable: str, folder: str) -> Path:
    """The folder in a checkout; skips where none is named."""
    named = os.environ.get(variable)
    if not named:
        pytest.skip(f"{variable} names no checkout")
    path = Path(named) / folder
    assert path.is_dir(), f"{variable}: there is no {path}"
    return path


@pytest.fixture(scope="module")
def starter() -> tuple[Findings, dict[str, Skeleton]]:
    findings, skeletons = read_project(checkout("STORM_EXAMPLES", "examples/storm-starter"))
    return findings, {name: (name, text) for name, text in skeletons}


def of_file(findings: Findings, name: str):
    [found] = [one for one in findings.topologies if one.place.file.endswith(f"/{name}.java")]
    return found


def test_all_of_storm_starter_is_found(starter):
    """By hand: 21 builders, 2 of DRPC, 9 of the Streams API, 7 of Trident; 73 components, 50 subscriptions."""
    findings, skeletons = starter
    kinds = [one.front_end for one in findings.topologies]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "java": 21,
        "java-drpc": 2,
        "java-streams": 9,
        "java-trident": 7,
    }
    components = [one for topology in findings.topologies for one in topology.components]
    inputs = [one for topology in findings.topologies for _, one in topology.inputs]
    assert [component.resolved for component in components] == [True] * 73
    assert [each.resolved for each in inputs] == [True] * 50
    assert len(skeletons) == 21


def test_each_skeleton_of_storm_starter_plans_the_same_graph(starter, tmp_path):
    findings, skeletons = starter
    for topology in findings.topologies:
        if not topology.skeleton:
            continue
        (tmp_path / topology.skeleton).write_text(skeletons[topology.skeleton][1])
        planned = graph_planned(load_topology(str(tmp_path / topology.skeleton)))
        assert planned == graph_read(topology), topology.skeleton


GOLDEN = {
    "WordCountTopology": (
        {"spout": ("spout", 5, 5), "split": ("bolt", 8, 8), "count": ("bolt", 12, 12)},
        {
            ("spout", "default", "split", "shuffle", ""),
            ("split", "default", "count", "fields", "word"),
        },
        {"topology.debug": True, "topology.workers": 3},
        {"spout": ["word"], "split": ["word"], "count": ["word", "count"]},
    ),
    "ExclamationTopology": (
        {"word": ("spout", 10, 10), "exclaim1": ("bolt", 3, 3), "exclaim2": ("bolt", 2, 2)},
        {("word", "default", "exclaim1", "shuffle", ""), ("exclaim1", "default", "exclaim2", "shuffle", "")},
        {"topology.debug": True, "topology.workers": 3},
        {"word": ["word"], "exclaim1": ["word"], "exclaim2": ["word"]},
    ),
    "RollingTopWords": (
        {
            "wordGenerator": ("spout", 5, 5),
            "counter": ("bolt", 4, 4),
            "intermediateRanker": ("bolt", 4, 4),
            "finalRanker": ("bolt", 1, 1),
        },
        {
            ("wordGenerator", "default", "counter", "fields", "word"),
            ("counter", "default", "intermediateRanker", "fields", "obj"),
            ("intermediateRanker", "default", "finalRanker", "global", ""),
        },
        {},
        {
            "wordGenerator": ["word"],
            "counter": ["obj", "count", "actualWindowLengthInSeconds"],
            "intermediateRanker": ["rankings"],
            "finalRanker": ["rankings"],
        },
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_three_of_them_against_a_hand_count(starter, name):
    components, edges, conf, streams = GOLDEN[name]
    found = of_file(starter[0], name)
    assert graph_read(found) == (components, edges)
    assert {one.key: one.value for one in found.settings if not one.component} == conf
    assert {one.id: list(one.streams[0].fields) for one in found.components if one.streams} == streams


def test_ticks_of_the_rolling_words_follow_from_constructors(starter):
    """3 seconds from the topology's own argument, 2 from a constant two classes up."""
    found = of_file(starter[0], "RollingTopWords")
    assert {one.component: one.value for one in found.settings} == {
        "counter": 3,
        "intermediateRanker": 2,
        "finalRanker": 2,
    }


def plan_all(skeletons: list[Skeleton], folder: Path) -> None:
    """Load each skeleton as ``stormspark explain`` does, and plan it."""
    for name, text in skeletons:
        (folder / name).write_text(text, encoding="utf-8")
        plan_topology(load_topology(str(folder / name)))


@pytest.mark.parametrize("folder", ["integration-test", "external", "storm-client/test/jvm"])
def test_each_skeleton_of_storms_own_tests_loads(folder, tmp_path):
    """The ids of some of them are only known when they run."""
    _, skeletons = read_project(checkout("STORM_EXAMPLES", folder))
    plan_all(skeletons, tmp_path)


def test_other_examples_of_storm_are_read_without_an_error(tmp_path):
    """Loops over the content of a file can't be made out. All else has its graph."""
    findings, skeletons = read_project(checkout("STORM_EXAMPLES", "examples"))
    assert len(findings.topologies) >= 60
    incomplete = {
        one.place.file.rpartition("/")[2]
        for one in findings.topologies
        if one.components and not one.complete
    }
    assert incomplete <= {"GenLoad.java", "HdfsSpoutTopology.java"}
    assert len(skeletons) >= 40
    plan_all(skeletons, tmp_path)
    assert not [one for one in findings.statements if "syntax error" in one.text or "can't parse" in one.text]


def test_constants_of_storms_config_are_their_keys():
    source = checkout("STORM_EXAMPLES", "storm-client/src/jvm/org/apache/storm") / "Config.java"
    pairs = re.findall(r'public static final String (TOPOLOGY_\w+)\s*=\s*"([^"]+)"', source.read_text())
    assert len(pairs) > 130
    assert [(name, storm_key(name), key) for name, key in pairs if storm_key(name) != key] == []


def test_flux_examples_are_read():
    findings, _ = read_project(checkout("STORM_EXAMPLES", "flux/flux-examples/src/main/resources"))
    assert len(findings.topologies) >= 7
    assert all(one.complete for one in findings.topologies if one.name != "existing-topology")


def test_streamparses_examples_are_read():
    findings, _ = read_project(checkout("STREAMPARSE_EXAMPLES", "examples"))
    assert {one.name for one in findings.topologies} == {"pixelcount", "wordcount_mem", "wordcount_redis"}
    assert all(one.complete for one in findings.topologies)


def test_herons_examples_are_read():
    findings, _ = read_project(checkout("HERON_EXAMPLES", "examples/src/python"))
    assert len(findings.topologies) >= 8
    assert all(one.complete for one in findings.topologies if one.front_end == "heronpy")
