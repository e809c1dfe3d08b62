"""Windowed bolts on a clock that the tests drive."""

from __future__ import annotations

from typing import Any

import pytest

from stormspark.compat.heronpy.components import Spout
from stormspark.compat.heronpy.topology import TopologyBuilder
from stormspark.compat.heronpy.window_bolt import SlidingWindowBolt, TumblingWindowBolt
from tests.unit.compat.heronpy.rig import run

WINDOWS: list[Any] = []
ACKED: list[int] = []


class Ticking(Spout):
    """A number in each second."""

    outputs = ("n",)

    def initialize(self, config: dict[str, Any], context: Any) -> None:
        self.context, self.next = context, 0
        self.began = int(context.now())

    def next_tuple(self) -> None:
        if self.next <= int(self.context.now()) - self.began:
            self.emit([self.next], tup_id=self.next)
            self.next += 1

    def ack(self, tup_id: Any) -> None:
        ACKED.append(tup_id)


class Sliding(SlidingWindowBolt):
    def initialize(self, config: dict[str, Any], context: Any) -> None:
        super().initialize(config, context)
        self.began = int(context.now())

    def processWindow(self, window_info: Any, tuples: list[Any]) -> None:  # noqa: N802 - heronpy's name
        bounds = window_info.start - self.began, window_info.end - self.began
        WINDOWS.append((*bounds, [tup.values[0] for tup in tuples]))


class Tumbling(TumblingWindowBolt):
    def initialize(self, config: dict[str, Any], context: Any) -> None:
        super().initialize(config, context)
        self.began = int(context.now())

    processWindow = Sliding.processWindow  # noqa: N815 - heronpy's name


def built(bolt: Any, mode: str = "ATLEAST_ONCE", **config: Any) -> TopologyBuilder:
    WINDOWS.clear()
    ACKED.clear()
    builder = TopologyBuilder("windows")
    numbers = builder.add_spout("numbers", Ticking, 1)
    builder.add_bolt("window", bolt, 1, [numbers], config=config)
    builder.set_config({"topology.reliability.mode": mode})
    return builder


def seconds(rig: Any, n: int) -> None:
    rig.batches(1)
    for _ in range(n):
        rig.advance(1, batches=2)


@pytest.mark.parametrize("mode", ["ATLEAST_ONCE", "ATMOST_ONCE", "EFFECTIVELY_ONCE"])
def test_tumbling_windows(mode: str) -> None:
    """C22: every duration, the tuples since the last time, which are acked then."""
    rig = run(built(Tumbling, mode, tumblingwindowbolt_duration_secs=3))
    seconds(rig, 9)
    assert [(start, end) for start, end, _ in WINDOWS] == [(0, 3), (3, 6), (6, 9)]
    taken = [number for _, _, numbers in WINDOWS for number in numbers]
    assert taken == list(range(len(taken))) and len(taken) >= 8
    if mode == "ATLEAST_ONCE":
        assert taken == ACKED
    assert rig.errors == []


def test_sliding_windows() -> None:
    """C22: every interval, the tuples of the duration; a tuple is acked when it has left."""
    rig = run(built(Sliding, slidingwindowbolt_duration_secs=4, slidingwindowbolt_slideinterval_secs=2))
    seconds(rig, 12)
    assert [(start, end) for start, end, _ in WINDOWS] == [(end - 4, end) for end in (2, 4, 6, 8, 10, 12)]
    for _, end, numbers in WINDOWS:
        # Whole seconds: what is as old as the duration is still in, and so is what came since the last look.
        assert numbers == list(range(max(0, numbers[0]), numbers[-1] + 1)) and 4 <= len(numbers) + 2 <= 8
        assert end - 6 <= numbers[0] <= max(0, end - 4)
    assert list(range(len(ACKED))) == ACKED and 5 <= len(ACKED) <= 8


@pytest.mark.parametrize(
    ("bolt", "config"),
    [
        (Tumbling, {"tumblingwindowbolt_duration_secs": 60}),
        (Sliding, {"slidingwindowbolt_duration_secs": 60, "slidingwindowbolt_slideinterval_secs": 30}),
    ],
)
def test_at_the_end_of_the_input_the_window_is_processed_and_acked(bolt: Any, config: Any) -> None:
    rig = run(built(bolt, **config))
    seconds(rig, 3)
    assert WINDOWS == []
    rig.cluster.run_batch(input_ended=True, flushes=1)
    rig.batches(1)
    ((_, _, numbers),) = WINDOWS
    assert sorted(ACKED) == numbers and len(numbers) >= 3


def test_without_an_interval_sliding_windows_follow_each_other() -> None:
    """C22: the interval is the duration then."""
    rig = run(built(Sliding, slidingwindowbolt_duration_secs="3"))
    seconds(rig, 6)
    assert [(start, end) for start, end, _ in WINDOWS] == [(0, 3), (3, 6)]


@pytest.mark.parametrize(
    ("bolt", "config", "problem"),
    [
        (Tumbling, {}, "tumblingwindowbolt_duration_secs must be a number of seconds above 0"),
        (Tumbling, {"tumblingwindowbolt_duration_secs": "soon"}, "got 'soon'"),
        (Sliding, {}, "slidingwindowbolt_duration_secs must be a number of seconds above 0"),
        (
            Sliding,
            {"slidingwindowbolt_duration_secs": 2, "slidingwindowbolt_slideinterval_secs": 3},
            "must be at most slidingwindowbolt_duration_secs, got 3 and 2",
        ),
    ],
)
def test_windows_that_are_none(bolt: Any, config: dict[str, Any], problem: str) -> None:
    """C22: told with the class and the key, where Heron logs a line and goes on without a window."""
    with pytest.raises(Exception, match=problem):
        run(built(bolt, **config))


def test_a_window_is_state() -> None:
    """C22, C42: with EFFECTIVELY_ONCE the tuples of the window are saved; Heron's own state has no items."""
    rig = run(built(Tumbling, "EFFECTIVELY_ONCE", tumblingwindowbolt_duration_secs=100))
    seconds(rig, 5)
    (task,) = [task for task in rig.workers[0].tasks.values() if task.component.id == "window"]
    assert task.state is not None
    saved = [tup.values for tup in task.state.store["tuples"]]
    assert saved == [[number] for number in range(len(saved))] and len(saved) >= 5
