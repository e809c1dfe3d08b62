"""Who gets a turn in a worker whose components use up its time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark import BasicBolt, Fields, Spout, TopologyBuilder
from tests.unit.worker.rig import Rig


class Time:
    """What components do to the clock of their rig; their instances are made from pickles, so they share this."""

    rig: Rig | None = None
    calls: dict[str, int] = {}  # noqa: RUF012

    @classmethod
    def passes(cls, who: str, seconds: float) -> None:
        cls.calls[who] = cls.calls.get(who, 0) + 1
        if cls.rig is not None:
            cls.rig.clock.advance(seconds)


class Sleeps(Spout):
    """Each `next_tuple` takes a while and emits one tuple to each stream."""

    def __init__(self, seconds: float, streams: tuple[str, ...] = ("default",)) -> None:
        self.seconds, self.streams = seconds, streams

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.me = collector, context.this_component_id

    def next_tuple(self) -> None:
        Time.passes(self.me, self.seconds)
        for stream in self.streams:
            self.collector.emit((1,), stream=stream)

    def declare_output_fields(self, declarer: Any) -> None:
        for stream in self.streams:
            declarer.declare_stream(stream, Fields("n"))


class Counts(BasicBolt):
    """Each `execute` takes a while."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    def prepare(self, conf: Any, context: Any) -> None:
        self.me = context.this_component_id

    def execute(self, tup: Any, collector: Any) -> None:
        Time.passes(self.me, self.seconds)


def _run(builder: TopologyBuilder, batches: int) -> dict[str, int]:
    Time.rig, Time.calls = None, {}
    Time.rig = rig = Rig(builder, 1)
    rig.batches(batches)
    rig.cluster.abandon()
    return Time.calls


@pytest.mark.slow
@pytest.mark.parametrize("others", [0.001, 0.05, 5.0])
def test_spouts_that_sleep_have_equal_turns(others: float) -> None:
    """B1, A16: threads of their own in Storm; here one spout that sleeps does not call itself until the time is over."""
    builder = TopologyBuilder()
    for spout in ("a", "b", "c"):
        builder.set_spout(spout, Sleeps(0.05 if spout == "a" else others))
        builder.set_bolt(f"of-{spout}", Counts()).shuffle_grouping(spout)
    calls = _run(builder, 20)
    if others == 0.05:
        assert max(calls[one] for one in "abc") - min(calls[one] for one in "abc") <= 1
    assert min(calls[one] for one in "abc") >= 20
    for spout in "abc":
        assert calls[f"of-{spout}"] >= calls[spout] - 64


def test_bolts_behind_spouts_that_use_up_all_time_have_their_turns() -> None:
    """A16: two spouts sleep for longer than a batch; the second bolt executed nothing, for ever."""
    builder = TopologyBuilder()
    for spout in ("a", "b"):
        builder.set_spout(spout, Sleeps(5.0))
        builder.set_bolt(f"of-{spout}", Counts()).shuffle_grouping(spout)
    calls = _run(builder, 10)
    assert calls["of-a"] >= calls["a"] - 2 and calls["of-b"] >= calls["b"] - 2


@pytest.mark.slow
@given(
    costs=st.lists(st.sampled_from([0.0, 0.001, 0.3, 2.0, 20.0]), min_size=1, max_size=6),
    spout=st.sampled_from([0.0001, 0.3, 5.0]),
)
def test_no_bolt_is_left_without_a_turn(costs: list[float], spout: float) -> None:
    """A16: whatever the others take, each bolt executes in each n-th batch at the latest."""
    streams = tuple(f"s{place}" for place in range(len(costs)))
    builder = TopologyBuilder()
    builder.set_spout("spout", Sleeps(spout, streams))
    for stream, cost in zip(streams, costs, strict=True):
        builder.set_bolt(f"of-{stream}", Counts(cost)).shuffle_grouping("spout", stream)
    batches = 3 * len(costs)
    calls = _run(builder, batches)
    for stream in streams:
        assert calls.get(f"of-{stream}", 0) >= 2, (costs, calls)
