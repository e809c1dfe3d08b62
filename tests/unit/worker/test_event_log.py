"""The event log: a sample of what tasks emit, turned on and off while they run (J20)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from stormspark import BasicBolt, EventLogger, Fields, TaskHook, TopologyBuilder
from stormspark.api import EventInfo
from tests.unit.worker.components import Script
from tests.unit.worker.rig import Rig

WORDS = [(f"word {number}", None) for number in range(40)]
#: What `Notes` got.
NOTED: list[EventInfo] = []


class Notes(EventLogger):
    """Keeps events in this process."""

    def prepare(self, conf: Any, arguments: Any, context: Any) -> None:
        assert (arguments, context.this_worker_index) == ({"a": 1}, 0)
        NOTED.clear()

    def log(self, event: EventInfo) -> None:
        NOTED.append(event)


class Broken(EventLogger):
    """Raises at the second event."""

    events = 0

    def log(self, event: EventInfo) -> None:
        self.events += 1
        if self.events == 2:
            raise OSError("the disk is full")


class Hooked(BasicBolt):
    """Emits what it gets, and has a hook."""

    def prepare(self, conf: Any, context: Any) -> None:
        context.add_task_hook(TaskHook())

    def execute(self, tup: Any, collector: Any) -> None:
        if tup[0] == "word 5":
            raise ValueError("five")
        collector.emit((tup[0],))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("word"))


class Plain(Hooked):
    """Has no hook, and its code waits."""

    waits = True

    def prepare(self, conf: Any, context: Any) -> None:
        pass


def rig(bolt: Any, *loggers: type) -> Rig:
    builder = TopologyBuilder()
    builder.set_spout("words", Script(WORDS, ("word", "nothing")))
    builder.set_bolt("pass", bolt).shuffle_grouping("words")
    entries = [{"class": f"{one.__module__}:{one.__name__}", "arguments": {"a": 1}} for one in loggers]
    return Rig(builder, 1, topology_event_logger_register=entries)


def run(one: Rig, sampled: dict[str, float], batches: int = 1) -> None:
    """Run batches, each with five words."""
    (spout,) = one.tasks("words")
    for _ in range(batches):
        one.cluster.run_batch({spout.id: 5}, sampled=sampled)


@pytest.mark.parametrize("bolt", [Hooked, Plain])
def test_a_component_is_logged_from_when_it_is_turned_on_until_it_is_turned_off(bolt: Any) -> None:
    topology = rig(bolt(), Notes)
    run(topology, {})
    run(topology, {"words": 100.0})
    assert NOTED
    spout = topology.tasks("words")[0]
    assert {event.component for event in NOTED} == {"words"}
    assert [event.values for event in NOTED] == WORDS[NOTED[0].message_id :][: len(NOTED)]
    assert all(event.task == spout.id for event in NOTED)
    before = len(NOTED)
    run(topology, {})
    assert len(NOTED) == before
    run(topology, {"": 100.0, "words": 0.0}, 20)
    assert {(event.component, event.message_id) for event in NOTED[before:]} == {("pass", None)}


def test_hooks_and_restarts_change_nothing() -> None:
    topology = rig(Hooked(), Notes)
    run(topology, {"pass": 100.0}, 20)
    assert [event.values[0] for event in NOTED] == [word for word, _ in WORDS if word != "word 5"]
    (task,) = topology.tasks("pass")
    assert (task.counters.restarts, task.read_counters().emitted) == (1, len(NOTED))
    run(topology, {})
    task.begin_anew()
    assert type(task.outlets["default"].unhooked).__name__ == "_NoCopies"


def test_a_part_of_the_tuples_is_a_sample() -> None:
    topology = rig(Plain(), Notes)
    run(topology, {"": 50.0}, 20)
    assert 10 < len(NOTED) < 70


def test_a_logger_that_raises_gets_no_more_events(caplog: pytest.LogCaptureFixture) -> None:
    topology = rig(Plain(), Broken, Notes)
    run(topology, {"words": 100.0}, 20)
    assert len(NOTED) == len(WORDS)
    assert caplog.text.count("gets no more events") == 1
    assert rig(Plain(), Rig).cluster.run_batch(sampled={"": 1.0})  # it is no logger, and nothing ends for it
    assert "event logger tests.unit.worker.rig:Rig can't be made" in caplog.text


def test_it_writes_the_file_that_storm_writes(tmp_path: Path) -> None:
    from stormspark.config import Settings
    from stormspark.worker.event_log import FileEventLogger

    logger = FileEventLogger(tmp_path / "worker-0", Settings.read({}))
    at = time.mktime((2026, 11, 28, 13, 35, 41, 0, 0, 0))
    logger.log(EventInfo(at, "split", 10, None, ("a",)))
    logger.log(EventInfo(at, "lines", 7, "s24550", ("x\ny", 1)))
    logger.log(EventInfo(at, "lines", 7, None, (10**5000, 2)))
    logger.close()
    zone = time.strftime("%Z", time.localtime(at))
    assert (tmp_path / "worker-0" / "events.log").read_text().splitlines() == [
        f"Sat Nov 28 13:35:41 {zone} 2026,split,10,,[a]",
        f"Sat Nov 28 13:35:41 {zone} 2026,lines,7,s24550,[x\\ny, 1]",
        f"Sat Nov 28 13:35:41 {zone} 2026,lines,7,,[<int: str raised ValueError>, 2]",
    ]
    assert (tmp_path / "worker-0" / "events.log").stat().st_mode & 0o777 == 0o600


def test_a_heavy_value_is_cut_in_the_line_of_an_event() -> None:
    """A sample of tuples of 100 MB must not need as much memory in the worker, nor fill the log."""
    for heavy in ("a" * 20_000, b"a" * 20_000, ["a"] * 20_000):
        line = str(EventInfo(0.0, "split", 10, None, (heavy, 2)))
        assert len(line) < 10_100
        assert line.endswith("..., 2]")
