"""A folder with a project of each kind, by the real command; what the front-ends plan is what was read."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tree_sitter_java")
# Each starts the command line.
pytestmark = pytest.mark.slow

PROJECTS = Path(__file__).parent / "projects"


def stormspark(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "stormspark.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def ported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict]]:
    """The projects as a user has them: read with --import, written with --out."""
    folder = tmp_path_factory.mktemp("port")
    shutil.copytree(PROJECTS, folder / "projects")
    done = stormspark("port", folder / "projects", "--out", folder / "out", "--import", "--json")
    assert done.returncode == 0, done.stderr
    return folder, {one["name"]: one for one in json.loads(done.stdout)["topologies"]}


def test_each_kind_is_found_and_read_whole(ported):
    _, topologies = ported
    assert {name: one["front_end"] for name, one in topologies.items()} == {
        "words": "streamparse",
        "built_words": "heronpy",
        "counts": "flux",
        "clicks": "java",
    }
    unread = [
        one["text"]
        for topology in topologies.values()
        for one in topology["statements"]
        if one["kind"] == "unread"
    ]
    assert unread == []


@pytest.mark.parametrize(
    ("name", "plan"),
    [
        ("words", "2 components, 3 tasks, 2 workers"),
        ("built_words", "2 components, 5 tasks, 1 worker"),
        ("counts", "2 components, 5 tasks, 2 workers"),
    ],
)
def test_what_runs_as_it_is_can_be_planned(ported, name, plan):
    """The statement that says so was checked by importing."""
    topology = ported[1][name]
    assert plan in topology["plan"]
    assert [one["kind"] for one in topology["statements"] if one["grade"] == "imported"] == ["runs"]
    assert not [one for one in topology["statements"] if one["kind"] == "change"]


def test_the_topology_of_java_against_a_hand_count(ported):
    """Its five components' ids and tasks, and their subscriptions, as a reader of the source counts them."""
    clicks = ported[1]["clicks"]
    assert {(one["id"], one["kind"], one["parallelism"]) for one in clicks["components"]} == {
        ("clicks", "spout", 4),
        ("robots", "bolt", 3),
        ("counts-by-page", "bolt", 4),
        ("per-minute", "bolt", 2),
        ("store", "bolt", 1),
    }
    edges = {
        (each["source"], each["stream"], one["id"], each["grouping"], *each["fields"])
        for one in clicks["components"]
        for each in one["inputs"]
    }
    assert edges == {
        ("clicks", "default", "robots", "fields", "user"),
        ("robots", "default", "counts-by-page", "partial_key", "page"),
        ("robots", "default", "per-minute", "local_or_shuffle"),
        ("counts-by-page", "default", "store", "global"),
        ("robots", "alerts", "store", "all"),
    }
    streams = {one["id"]: {s["id"]: s["fields"] for s in one["streams"]} for one in clicks["components"]}
    assert streams["clicks"] == {"default": ["page", "user", "time"]}
    assert streams["robots"] == {"default": ["page", "user", "time"], "alerts": ["user"]}
    assert streams["counts-by-page"] == {"default": ["page", "count"]}
    assert {(one["key"], one["component"]): one["value"] for one in clicks["settings"]} == {
        ("topology.workers", ""): 2,
        ("topology.message.timeout.secs", ""): 180,
        ("topology.worker.childopts", ""): "-Xmx2g",
        ("topology.max.spout.pending", "clicks"): 1000,
        ("topology.tick.tuple.freq.secs", "robots"): 5,
    }


def test_its_skeleton_is_explained_with_the_same_graph(ported):
    folder, _ = ported
    done = stormspark("explain", folder / "out" / "click_topology.py", "--format", "text")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("topology clicks: 5 components, 14 tasks, 2 workers")
    edges = done.stdout.partition("\nedges\n")[2].partition("\n\n")[0].splitlines()
    assert {line.strip().rpartition(",")[0] for line in edges} == {
        "clicks -> robots: fields(user)",
        "robots -> counts-by-page: partial_key(page)",
        "robots -> per-minute: local_or_shuffle",
        "counts-by-page -> store: global",
        "robots:alerts -> store: all",
    }


def test_its_skeleton_says_what_is_to_be_written_when_it_runs(ported):
    """W6: the first method that is not written stops it, and names the lines of Java."""
    folder, _ = ported
    skeleton = folder / "out" / "click_topology.py"
    done = stormspark("run", skeleton, "--engine", "local", "--seconds", "5", "--workers", "1")
    assert done.returncode == 1
    assert "NotImplementedError: port prepare from Bolts.java:28" in done.stdout + done.stderr


def test_the_report_is_written(ported):
    report = (ported[0] / "out" / "report.md").read_text()
    for name in ("words", "built_words", "counts", "clicks"):
        assert f"## {name} (" in report
    assert "topology.worker.childopts changes nothing here" in report
    assert "RobotBolt emits without an anchor" in report
