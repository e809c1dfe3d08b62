"""Answers that a child has before it asks."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest

from stormspark import Fields, TopologyBuilder
from stormspark.api import Bolt, StreamDeclaration, TopologyContext
from stormspark.local import InProcessWorkers, SimulatedClock
from stormspark.multilang.answers import keeps_answers, only_answer
from stormspark.plan import plan_topology
from stormspark.testing import make_context
from tests.legacy.multilang.languages import resources
from tests.unit.worker.components import Script

_STORM = "pending_taskids.popleft()\npending_taskids.append(msg)\n"
_CONTEXTS: list[TopologyContext] = []


class _Split(Bolt):
    def __init__(self, *streams: StreamDeclaration) -> None:
        self.streams = streams

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        _CONTEXTS.append(context)

    def execute(self, tup: Any) -> None: ...

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("word"))
        for stream in self.streams:
            declarer.declare_stream(stream.id, stream.fields, direct=stream.direct)


def answer_of(subscribe: Any, *streams: StreamDeclaration) -> list[int] | None:
    """What the context of a bolt says that has these streams beside the default one."""
    _CONTEXTS.clear()
    builder = TopologyBuilder()
    builder.set_spout("a", Script([]))
    builder.set_bolt("split", _Split(*streams)).shuffle_grouping("a")
    subscribe(builder)
    cluster = InProcessWorkers(plan_topology(builder.create_topology("t"), {}), SimulatedClock(), Random(1))
    cluster.open(True)
    (context,) = _CONTEXTS
    cluster.abandon()
    return only_answer(context)


def one(builder: TopologyBuilder) -> Any:
    return builder.set_bolt("count", _Sink()).fields_grouping("split", Fields("word"))


class _Sink(Bolt):
    def prepare(self, conf: Any, context: Any, collector: Any) -> None: ...

    def execute(self, tup: Any) -> None: ...


def test_one_task_that_all_goes_to_is_the_only_answer() -> None:
    """When all emits go to a single task, that task is the answer to every emit (I8)."""
    assert answer_of(one) == _CONTEXTS[0].component_tasks("count")
    for grouping in ("shuffle", "local_or_shuffle", "all", "global", "none"):
        answer = answer_of(lambda b, g=grouping: getattr(b.set_bolt("x", _Sink()), f"{g}_grouping")("split"))
        assert answer is not None and len(answer) == 1


def test_there_is_none_where_values_or_streams_decide() -> None:
    """I8: and none where a stream has no consumer, whose answer is an empty list."""
    assert answer_of(lambda b: None) is None
    assert answer_of(lambda b: b.set_bolt("x", _Sink(), 2).shuffle_grouping("split")) is None
    assert answer_of(lambda b: (one(b), b.set_bolt("x", _Sink()).shuffle_grouping("split"))) is None
    assert answer_of(one, StreamDeclaration("more", Fields("n"))) is None
    assert answer_of(one, StreamDeclaration("one", Fields("n"), direct=True)) is None
    direct = StreamDeclaration("one", Fields("n"), direct=True)
    assert (
        answer_of(lambda b: (one(b), b.set_bolt("x", _Sink()).direct_grouping("split", "one")), direct)
        is None
    )
    assert only_answer(make_context("split")) is None


@pytest.mark.parametrize(
    ("command", "script", "library", "keeps"),
    [
        (["python3", "split.py"], "import storm\n", _STORM, True),
        (
            ["/usr/bin/python3.11", "-u", "sub/split.py", "more"],
            "#\nfrom storm import BasicBolt\n",
            _STORM,
            True,
        ),
        (["python3", "split.py"], "import stormy\n", _STORM, False),
        (["python3", "split.py"], "import storm\n", "def readTaskIds(): ...\n", False),
        (["python3", "split.py"], "import storm\n", None, False),
        (["python3", "-m", "split"], "import storm\n", _STORM, False),
        (["ruby", "split.rb"], "require 'storm'\n", _STORM, False),
        (["./split"], "import storm\n", _STORM, False),
    ],
)
def test_storm_py_is_known_by_its_text(
    command: list[str], script: str, library: str | None, keeps: bool, tmp_path: Path
) -> None:
    """I8, I16: nothing that only looks like it is told what it has not asked for."""
    for folder in (tmp_path, tmp_path / "sub"):
        folder.mkdir(exist_ok=True)
        for name in ("split.py", "split.rb", "split"):
            (folder / name).write_text(script)
        if library is not None:
            (folder / "storm.py").write_text(library)
    assert keeps_answers(command, str(tmp_path)) is keeps
    assert not keeps_answers(command, str(tmp_path / "nowhere"))


def test_storms_own_library_is_known(tmp_path: Path) -> None:
    """I16: the one of its Maven artifact, with the splitter of the conformance tests."""
    folder = resources(tmp_path / "resources", "storm.py")
    assert keeps_answers(["python3", "split_storm.py"], str(folder))
    shutil.copy(folder / "obey.py", folder / "storm.py")
    assert not keeps_answers(["python3", "split_storm.py"], str(folder))
