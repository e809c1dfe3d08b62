"""Projects: config.json, paths, names on the path (A37, A39, W12)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stormspark.compat.streamparse import load
from stormspark.compat.streamparse.project_config import Environment, find_config
from stormspark.errors import InvalidTopologyError, TopologyNotFoundError
from stormspark.testing import complete_topology
from tests.imports import imports_undone

SPOUT = """
    from streamparse import Spout, Bolt, Topology, Grouping

    class Words(Spout):
        outputs = ["word"]
        def initialize(self, conf, context):
            self.words = ["a", "b", "a"]
        def next_tuple(self):
            if self.words:
                self.emit([self.words.pop()], tup_id=len(self.words))
"""
BOLT = """
    class Count(Bolt):
        outputs = ["word", "count"]
        def initialize(self, conf, context):
            self.counts = {}
        def process(self, tup):
            self.counts[tup.values.word] = count = self.counts.get(tup.values.word, 0) + 1
            self.emit([tup.values.word, count])
"""
TOPOLOGY = """
    class WordCount(Topology):
        words = Words.spec()
        count = Count.spec(inputs={words: Grouping.fields("word")})
"""


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Loading a project puts folders on the module path and imports what is in them: undo that."""
    with imports_undone(monkeypatch):
        yield


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Path]:
    """Write a project; gives the file of its topology."""

    def write(config: Any = None, **files: str) -> Path:
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/")
            path = path.with_suffix(".py") if not path.suffix else path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(map(textwrap.dedent, [text])))
        if config is not None:
            (tmp_path / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
        return tmp_path / "topologies" / "wordcount.py"

    return write


def whole(*parts: str) -> str:
    return "\n".join(map(textwrap.dedent, parts))


def test_a_project_is_loaded_and_runs(project: Callable[..., Path]) -> None:
    """A30, A37, W10: src is on the path, the topology is called as its file, and can be tested as a whole."""
    file = project(
        {"envs": {"prod": {}}},
        src__parts=whole(SPOUT, BOLT),
        topologies__wordcount="from streamparse import *\nfrom parts import Count, Words\n"
        + textwrap.dedent(TOPOLOGY),
    )
    topology = load(file)
    assert topology.name == "wordcount"
    assert topology.components["count"].type_name == "Count"
    assert topology.components["count"].declared_at == f"{file}:6"
    assert str(file.parent.parent / "src") in os.environ["PYTHONPATH"].split(os.pathsep)
    done = complete_topology(topology)
    assert sorted(done.read_tuples("count")) == [("a", 1), ("a", 2), ("b", 1)]
    mocked = complete_topology(topology, {"words": [("x",), ("x",)]})
    assert sorted(mocked.read_tuples("count")) == [("x", 1), ("x", 2)]


def test_a_file_alone_is_a_topology_too(tmp_path: Path) -> None:
    """A37: without a config.json there are no options, and planning chooses the number of workers."""
    file = tmp_path / "alone.py"
    file.write_text(whole(SPOUT, BOLT, TOPOLOGY))
    topology = load(file)
    assert (topology.name, topology.conf) == ("alone", {})
    with pytest.raises(
        InvalidTopologyError, match=r"no config\.json .* no environment 'prod'; there are none"
    ):
        load(file, environment="prod")


def test_which_topology(project: Callable[..., Path]) -> None:
    """A37: the first of the file's own classes; another one by its name, and one that it imports too."""
    file = project(
        src__base=whole(SPOUT, BOLT, TOPOLOGY.replace("WordCount", "Base")),
        topologies__wordcount=whole(
            "from base import Base, Words, Count",
            "from streamparse import Topology, Grouping",
            TOPOLOGY,
            TOPOLOGY.replace("WordCount", "Other"),
        ),
    )
    assert load(file).name == "wordcount"
    assert load(file, "Other").name == "Other"
    assert load(file, "WordCount").name == "wordcount"
    assert load(file, "Base").name == "Base"
    with pytest.raises(
        TopologyNotFoundError, match="no topology 'build'; there are 'Base', 'WordCount', 'Other'"
    ):
        load(file, "build")


def test_a_file_without_topology(project: Callable[..., Path]) -> None:
    """A37: it is said what is missing."""
    file = project(topologies__wordcount="import streamparse\n")
    with pytest.raises(TopologyNotFoundError, match=r"needs a class like `class WordCount\(Topology\)"):
        load(file)


def test_what_the_file_raises_is_reported_with_its_line(project: Callable[..., Path]) -> None:
    """A36, W12: of src too; errors of the DSL come through as they are."""
    file = project(src__parts="1 / 0\n", topologies__wordcount="import streamparse, parts\n")
    with pytest.raises(TopologyNotFoundError, match=r"ZeroDivisionError.*\n  at .*src/parts\.py:1"):
        load(file)


def test_precedence() -> None:
    """A37: the topology's config over the environment's options over what the environment's log and hosts say."""
    environment = Environment(
        "prod",
        {
            "workers": ["a", "b", "c"],
            "log": {
                "path": "/logs",
                "file": "{task_id}",
                "max_bytes": 5,
                "backup_count": 2,
                "level": "Warning",
            },
            "options": {"mine": 1, "theirs": 2, "virtualenv_name": "x", "pystorm.log.level": "trace"},
            "virtualenv_root": "/v",
        },
    )
    assert environment.options({"theirs": 3}) == {
        "mine": 1,
        "theirs": 3,
        "topology.workers": 3,
        "pystorm.log.path": "/logs",
        "pystorm.log.file": "{task_id}",
        "pystorm.log.max_bytes": 5,
        "pystorm.log.backup_count": 2,
        "pystorm.log.level": "warning",
        "stormspark.log.level": "WARNING",
    }
    assert environment.options({"topology.workers": 7})["topology.workers"] == 7


def test_debug_is_a_log_level() -> None:
    """A37: ``topology.debug`` makes pystorm.log.level debug, whatever else is set."""
    options = Environment("e", {"log": {"level": "error"}}).options({"topology.debug": True})
    assert options["pystorm.log.level"] == "debug"
    assert options["stormspark.log.level"] == "DEBUG"


def test_hosts_are_workers() -> None:
    """A37: workers are the environment's hosts, those of the option first. Without hosts planning chooses their number."""
    for nowhere in ({}, {"workers": []}, {"workers": None}):
        assert Environment("e", nowhere).options({}).get("topology.workers") is None
    assert (
        Environment("e", {"workers": ["a", "b"]}).options({"topology.workers": None})["topology.workers"] == 2
    )
    assert Environment("e", {"workers": ["a", "b"]}).options({"storm.workers.list": "a,b,c"}) == {
        "topology.workers": 3
    }


def test_the_only_environment_is_taken(
    project: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    """A39: it is named in the one line that says what means nothing here."""
    file = project(
        {"envs": {"prod": {"nimbus": "x", "user": "", "virtualenv_root": "/v", "options": {"mine": 1}}}},
        topologies__wordcount=whole(SPOUT, BOLT, TOPOLOGY),
    )
    assert load(file).conf["mine"] == 1
    (line,) = caplog.messages
    assert line.startswith("environment 'prod' of config.json: nimbus, virtualenv_root have no effect here")


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ("{", r"config\.json is not JSON: "),
        ("[]", r"config\.json must be a mapping"),
        ({"envs": []}, None),
        ({"envs": [1]}, "envs must be a mapping"),
        ({"envs": {"a": 1}}, "environment 'a' must be a mapping"),
        ({"envs": {"a": {"options": 1}}}, "options of environment 'a' must be a mapping"),
    ],
)
def test_a_config_that_is_none(project: Callable[..., Path], config: Any, told: str | None) -> None:
    """A39: it is said what is wrong with it."""
    file = project(config, topologies__wordcount=whole(SPOUT, BOLT, TOPOLOGY))
    if told is None:
        load(file)
        return
    with pytest.raises((InvalidTopologyError, TopologyNotFoundError), match=told):
        load(file)


def test_the_nearest_config_counts(tmp_path: Path) -> None:
    """A37: config.json is looked for upward from the file."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "config.json").write_text("{}")
    assert find_config(tmp_path / "a" / "b" / "t.py").file == tmp_path / "config.json"
    (tmp_path / "a" / "config.json").write_text("{}")
    assert find_config(tmp_path / "a" / "b" / "t.py").file == tmp_path / "a" / "config.json"


NAMES = """
    import storm_thrift
    from pystorm import BatchingBolt, Bolt, Component, ReliableSpout, Spout, TicklessBatchingBolt, Tuple
    from pystorm.bolt import BatchingBolt as B1
    from pystorm.component import Component as C1, StormHandler, Tuple as T1
    from pystorm.exceptions import StormWentAwayError
    from pystorm.serializers.json_serializer import JSONSerializer
    from pystorm.serializers.msgpack_serializer import MsgpackSerializer
    from pystorm.serializers.serializer import Serializer
    from pystorm.spout import Spout as S1
    from pystorm.version import __version__, VERSION
    import streamparse
    from streamparse import Grouping, JavaBolt, JavaSpout, ShellBolt, ShellSpout, Stream, Topology
    from streamparse.bolt import Bolt as B2
    from streamparse.component import Component as C2
    from streamparse.dsl import Grouping as G2
    from streamparse.dsl.bolt import JavaBoltSpec, ShellBoltSpec
    from streamparse.dsl.component import ComponentSpec
    from streamparse.dsl.spout import ShellSpoutSpec
    from streamparse.dsl.stream import Stream as St2
    from streamparse.dsl.topology import Topology as To2, TopologyType
    from streamparse.spout import ReliableSpout as R2, Spout as S2
    from streamparse.storm import Component as C3, Tuple as T2
    from streamparse.storm.bolt import TicklessBatchingBolt as Ti2
    from streamparse.storm.component import StormHandler as H2
    from streamparse.storm.spout import Spout as S3
    from streamparse.thrift import GlobalStreamId, StreamInfo
    from streamparse.version import __version__ as v2

    assert issubclass(streamparse.Bolt, Bolt) and issubclass(streamparse.BatchingBolt, (BatchingBolt, streamparse.Bolt))
    assert issubclass(Ti2, TicklessBatchingBolt) and issubclass(R2, ReliableSpout) and S3 is S2
    assert Tuple is T1 is T2 is streamparse.Tuple and Tuple._fields == ("id", "component", "stream", "task", "values")
    assert G2 is Grouping and To2 is Topology and St2 is Stream and C2 is C3 and issubclass(C2, Component)
    assert storm_thrift.GlobalStreamId is GlobalStreamId
    JSONSerializer(None, None, None, None), MsgpackSerializer(), StormHandler(None), StormWentAwayError()
    Bolt(input_stream=None, output_stream=None, rdb_signal=None, serializer="msgpack").run()
"""


def test_names_of_both_libraries(project: Callable[..., Path]) -> None:
    """A30, C12, B20: the module trees of streamparse and pystorm; a script's ``run()`` breaks no import."""
    load(project(topologies__wordcount=whole(NAMES, SPOUT, BOLT, TOPOLOGY)))


@pytest.mark.slow
def test_a_component_run_alone(tmp_path: Path) -> None:
    """A37, B20: nothing hangs: the script is told how a topology is run."""
    script = tmp_path / "split.py"
    script.write_text(
        "from pystorm import Bolt\nclass Split(Bolt): pass\nif __name__ == '__main__':\n    Split().run()\n"
    )
    on_path = Path(load.__code__.co_filename).parents[1] / "on_path" / "streamparse"
    root = on_path.parents[3]
    done = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "PYTHONPATH": f"{on_path}{os.pathsep}{root}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 1
    assert "Split can't be run alone" in done.stderr and "stormspark run" in done.stderr


def test_only_known_serializers(project: Callable[..., Path]) -> None:
    """A37: as in pystorm, another one raises ValueError."""
    from stormspark.compat.streamparse.bolt import Bolt

    with pytest.raises(ValueError, match="Unknown serializer: 'xml'"):
        Bolt(serializer="xml")


def test_java_classes_that_a_project_registers(project: Callable[..., Path]) -> None:
    """A32: src/flux_classes.py says which Python stands for a Java class."""
    file = project(
        src__flux_classes="""
            from stormspark.flux import register
            from stormspark.testing import TestWordSpout
            register("com.acme.Words", TestWordSpout)
        """,
        topologies__wordcount="""
            from streamparse import JavaSpout, Topology
            class WordCount(Topology):
                words = JavaSpout.spec(full_class_name="com.acme.Words", args_list=[], outputs=["word"])
        """,
    )
    assert load(file).components["words"].type_name == "TestWordSpout"


@pytest.mark.slow
def test_a_worker_needs_the_projects_modules_only(project: Callable[..., Path], tmp_path: Path) -> None:
    """W12: where stormspark and the project's src are, streamparse is found by itself."""
    file = project(
        src__parts=whole(SPOUT, BOLT),
        topologies__wordcount="from parts import *\n" + textwrap.dedent(TOPOLOGY),
    )
    (tmp_path / "count.pickle").write_bytes(load(file).components["count"].pickled)
    root = Path(load.__code__.co_filename).parents[3]
    script = f"import pickle; print(pickle.load(open({str(tmp_path / 'count.pickle')!r}, 'rb')).component.__mro__[1])"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{tmp_path / 'src'}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert "streamparse.storm.Bolt" in done.stdout, done.stderr
