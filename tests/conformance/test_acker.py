"""Tuple trees at their edges: timeouts that are reset, acks that come late or twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from stormspark import Fields, TopologyBuilder
from tests.conformance.acker_components import (
    AcksTheOldOneFirst,
    AcksTwice,
    SlowAndForgetful,
    TimedVerdicts,
    timed_verdicts,
)
from tests.conformance.components import Numbers, Record, Repeat

Run = Callable[..., Any]


@pytest.mark.slow
def test_a_timeout_that_is_reset_in_time_does_not_come_and_others_do(run: Run) -> None:
    """C11, E10, E16, E28: also from another worker than the spout's."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(12, replays=0), parallelism=2)
    builder.set_bolt("repeat", Repeat(1), parallelism=2).shuffle_grouping("numbers")
    builder.set_bolt("slow", SlowAndForgetful(seconds=6.0), parallelism=3).shuffle_grouping("repeat")
    done = run(builder.create_topology("resets"), {"topology.message.timeout.secs": 2.5})
    assert done.acked("numbers") == Counter(range(0, 12, 2))
    failed = sorted((fail.message, fail.outcome) for fail in done.failed("numbers"))
    assert failed == [(n, "TIMED_OUT") for n in range(1, 12, 2)]
    assert done.statistics.components["numbers"].timed_out == 6


def test_late_acks_of_an_old_tree_do_not_settle_its_replay(run: Run) -> None:
    """E33, E8, E32: the new tree waits for its own tuples."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", TimedVerdicts(10), parallelism=2)
    builder.set_bolt("fails-first", Record(fail=tuple(range(10))), parallelism=2).fields_grouping(
        "numbers", Fields("n")
    )
    builder.set_bolt("late", AcksTheOldOneFirst(), parallelism=3).fields_grouping("numbers", Fields("n"))
    done = run(builder.create_topology("late"))
    verdicts = timed_verdicts(done.effects("numbers"))
    assert Counter((one.what, one.message) for one in verdicts) == Counter(
        (what, n) for what in ("ack", "failed") for n in range(10)
    )
    acked_by_bolt = dict(map(tuple, done.effects("late")))
    assert all(one.at > acked_by_bolt[one.message] for one in verdicts if one.what == "ack")


def test_a_second_ack_or_fail_is_reported_and_changes_nothing(run: Run) -> None:
    """E14, W4: in Storm the tree would never end."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(20))
    builder.set_bolt("repeat", Repeat(2), parallelism=2).shuffle_grouping("numbers")
    builder.set_bolt("twice", AcksTwice(), parallelism=3).shuffle_grouping("repeat")
    done = run(builder.create_topology("twice"))
    assert Counter(what for what, *_ in done.effects("numbers")) == {"ack": 20, "deactivate": 1, "close": 1}
    twice = done.statistics.components["twice"]
    assert (twice.acked, twice.failed, twice.errors) == (40, 0, 80)
    assert twice.last_error is not None and "acked or failed already" in twice.last_error
