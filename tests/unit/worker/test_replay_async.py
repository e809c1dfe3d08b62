"""Replays of async bolts: each call does the same again, whichever order the calls end in."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stormspark import AsyncBolt, Fields
from stormspark.worker.replays.replay import replay
from stormspark.worker.replays.result import Replay
from tests.unit.worker.durable_workers import DurableWorkers
from tests.unit.worker.test_replay import RECORD, counting

ROWS = [(number,) for number in range(30)]
CONF = {**RECORD, "stormspark.exactly.once": True, "topology.workers": 1}


class Pairs(AsyncBolt):
    """Emits before and after it awaits. Unless the capacity is 1, the first call of each pair awaits the second, or the other
    way round. It acks every third tuple itself.
    """

    first_awaits = True

    async def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.ended: dict[int, asyncio.Event] = {}

    async def execute(self, tup: Any) -> None:
        number = tup[0]
        self.collector.emit((number, "begins"))
        if number % 2 == (not self.first_awaits) and self.capacity > 1:
            await self._ended(number + 1 if self.first_awaits else number - 1).wait()
        else:
            await asyncio.sleep(0)
        self.collector.emit((number, self.says(number)))
        self._ended(number).set()
        if number % 3 == 0:
            self.collector.ack(tup)

    def says(self, number: int) -> str:
        return "ends"

    def _ended(self, number: int) -> asyncio.Event:
        return self.ended.setdefault(number, asyncio.Event())

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("number", "what"))


class Raises(Pairs):
    raises = False

    def says(self, number: int) -> str:
        if self.raises and number == 5:
            raise KeyError(number)
        return "ends"


class SaysHow(Pairs):
    how = "then"

    def says(self, number: int) -> str:
        return self.how if number == 5 else "ends"


class Background(Pairs):
    """Emits something that is anchored to no tuple."""

    async def execute(self, tup: Any) -> None:
        await super().execute(tup)
        self.collector.emit((tup[0], "beside"), anchors=())


def recorded(folder: Path, bolt: AsyncBolt, capacity: int, ordered: bool) -> DurableWorkers:
    bolt.capacity, bolt.ordered = capacity, ordered
    run = DurableWorkers(counting(bolt, ROWS, 1), folder, CONF)
    run.run_batch()
    run.abandon()  # else its event loop would go on
    return run


def replayed(run: DurableWorkers, folder: Path) -> Replay:
    return replay(run.plan, str(folder), "count", 0, 0)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("capacity", [1, 20])
@pytest.mark.parametrize("kind", [Pairs, Background])
def test_calls_do_the_same_whichever_order_they_end_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Pairs], capacity: int, ordered: bool
):
    """C35: emits and acks belong to the tuple of the call that made them."""
    run = recorded(tmp_path, kind(), capacity, ordered)
    for first_awaits in (True, False):
        monkeypatch.setattr(Pairs, "first_awaits", first_awaits)
        again = replayed(run, tmp_path)
        assert again.differences == [] and again.outside == []
        assert [one.values for one in again.inputs] == ROWS and all(one.acked for one in again.inputs)
        for one in again.inputs:
            assert {emit.values[0] for emit in one.emitted} == set(one.values)
            assert [emit.values[1] for emit in one.emitted][:2] == ["begins", "ends"]


def test_a_call_that_does_something_else_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """C35: with the number of its input."""
    run = recorded(tmp_path, SaysHow(), 20, False)
    monkeypatch.setattr(SaysHow, "how", "now")
    assert replayed(run, tmp_path).differences == [
        "emit 2 of input 6 was (5, 'then') on default, and is (5, 'now') on default"
    ]


def test_a_call_that_raises_ends_the_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """C35: also if other calls wait for it."""
    run = recorded(tmp_path, Raises(), 20, False)
    monkeypatch.setattr(Raises, "raises", True)
    again = replayed(run, tmp_path)
    assert again.differences == ["input 6 raised now, and did not then; nothing after it was run"]
    assert "KeyError: 5" in (again.inputs[5].raised or "")


@pytest.mark.slow
def test_the_debugger_stops_in_the_coroutine(tmp_path: Path):
    """J25: although it runs on the event loop's thread."""
    recorded(tmp_path / "stormspark/state", Pairs(), 20, False)
    done = subprocess.run(
        [sys.executable, "-m", "stormspark.cli", "replay", str(tmp_path), "--batch", "0", "--task", "count[0]", "--pdb"],
        input="p tup.values\nc\n",
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert "test_replay_async.py" in done.stdout and "async def execute(self, tup" in done.stdout, done.stdout
    assert "(0,)" in done.stdout
    assert "The task did the same as in the recorded batch." in done.stdout and done.returncode == 0, (
        done.stderr
    )
