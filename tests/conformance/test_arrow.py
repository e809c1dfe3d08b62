"""Vectorised components: the same on every engine, and the same as tuple components."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from stormspark import Fields, TopologyBuilder
from stormspark.grouping import fields_task_index
from tests.conformance.arrow_components import (
    ArrowNumbers,
    ArrowRecord,
    ArrowRepeat,
    ArrowTally,
    FrameRepeat,
    TypedNumbers,
    TypedRecord,
    TypedRepeat,
    TypedSequence,
)

Run = Callable[..., Any]
ACKERS = {"topology.acker.executors": 1}  # so that task ids do not depend on the number of workers
N, TIMES, FAILS = 300, 3, (7, 40, 299)


@pytest.mark.parametrize(
    "form",
    [
        (ArrowNumbers, ArrowRepeat, ArrowRecord),
        (ArrowNumbers, TypedRepeat, ArrowRecord),
        (TypedNumbers, FrameRepeat, TypedRecord),
    ],
    ids=["all", "around-tuples", "between-tuples"],
)
def test_mixed_topologies(run: Run, form: tuple[Any, Any, Any]) -> None:
    """D1, E2, E5: each row is at the task of its key; a row that fails brings its own message back, and no other."""
    spout, repeat, record = form
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout(N), 2)
    builder.set_bolt("repeat", repeat(TIMES), 3).shuffle_grouping("numbers")
    builder.set_bolt("record", record(fail=FAILS), 4).fields_grouping("repeat", Fields("n", "copy"))
    done = run(builder.create_topology("mixed"), ACKERS)
    assert done.acked("numbers") == Counter(range(N))
    failed = sorted((fail.message, fail.outcome, fail.component) for fail in done.failed("numbers"))
    assert failed == [(number, "FAILED", "record") for number in FAILS]
    recorded = done.recorded("record")
    tasks = sorted({one.task for one in recorded})
    assert len(tasks) == 4 and {(one.component, one.stream) for one in recorded} == {("repeat", "default")}
    for one in recorded:
        assert one.task == tasks[fields_task_index(one.values, 4)]
    got = Counter(one.values for one in recorded)
    # Of a number that fails, two copies and then all three of its replay.
    assert sum(got.values()) == N * TIMES + len(FAILS) * (TIMES - 1)
    assert set(got) == {(number, copy) for number in range(N) for copy in range(TIMES)}
    counts = done.statistics.components
    assert counts["numbers"].acked == N and counts["numbers"].failed == len(FAILS)
    assert counts["repeat"].executed == counts["repeat"].acked == N + len(FAILS)
    assert counts["record"].executed == (N + len(FAILS)) * TIMES and counts["record"].failed == len(FAILS)


def test_attributes_as_state(run: Run) -> None:
    """C35, C44: a batch that fails is taken back, rows and all."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", TypedSequence(30), 2)
    tally = builder.set_bolt("tally", ArrowTally(raises=7), 2).fields_grouping("numbers", Fields("n"))
    tally.add_configurations({"topology.state.pickle": True})
    done = run(builder.create_topology("state"))
    counts = {number: count for what, number, count in done.effects("tally") if what == "state"}
    assert counts == dict.fromkeys(range(30), 1)
