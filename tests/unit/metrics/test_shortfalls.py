"""What a topology did not do, in a topology that ended without an error."""

from __future__ import annotations

import pytest

from stormspark.metrics import (
    Kind,
    LatencySummary,
    LongCall,
    Shortfall,
    TaskCounters,
    TopologyStatistics,
    shortfalls,
    summarise,
)


def found(spout: TaskCounters, bolt: TaskCounters | None = None) -> list[Shortfall]:
    """The shortfalls of a topology with a spout, and perhaps a bolt."""
    components = {"lines": summarise("spout", 1, [spout], None)}
    if bolt is not None:
        components["split"] = summarise("bolt", 2, [bolt], None)
    return shortfalls(TopologyStatistics("words", "local", 1.0, 3, LatencySummary(), components))


@pytest.mark.parametrize(
    ("spout", "bolt"),
    [
        (
            TaskCounters(emitted=5, transferred=5, acked=4, failed=1),
            TaskCounters(executed=5, acked=4, failed=1),
        ),
        (TaskCounters(emitted=5, transferred=5), TaskCounters(executed=5)),  # no message ids, and no acks
        (TaskCounters(emitted=5, transferred=5, pending=4), TaskCounters(executed=1)),
        (
            TaskCounters(emitted=5, transferred=5),
            TaskCounters(executed=5, failed=1),
        ),  # a bolt that acks nothing
        (TaskCounters(emitted=5), None),  # a topology may consist of spouts
    ],
)
def test_failures_among_successes_are_no_shortfall(spout: TaskCounters, bolt: TaskCounters | None) -> None:
    assert found(spout, bolt) == []


def test_each_kind_of_shortfall_is_named() -> None:
    given_up = TaskCounters(emitted=5000, transferred=5000, acked=3000, dead_letters=2000)
    assert found(given_up, TaskCounters(executed=5000)) == [
        Shortfall(Kind.DEAD_LETTERS, "lines: 2,000 rows were given up")
    ]
    assert found(TaskCounters(emitted=7, transferred=7, failed=7), TaskCounters(executed=7, failed=7)) == [
        Shortfall(Kind.ALL_FAILED, "lines: 7 messages failed, and none was acked"),
        Shortfall(Kind.ALL_FAILED, "split: 7 tuples failed, and none was acked"),
    ]
    assert found(TaskCounters(), TaskCounters()) == [
        Shortfall(Kind.NOTHING_DONE, "nothing was emitted by lines")
    ]
    assert found(TaskCounters(emitted=7), TaskCounters()) == [
        Shortfall(Kind.NOTHING_DONE, "lines: 7 tuples were emitted, and no bolt executed one")
    ]


def test_a_source_without_rows_that_gives_up_all_emits_nothing_all_the_same() -> None:
    """The dead letters say it; that nothing was emitted follows from them, and is said, too."""
    kinds = [one.kind for one in found(TaskCounters(dead_letters=3), TaskCounters())]
    assert kinds == [Kind.DEAD_LETTERS, Kind.NOTHING_DONE]


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("cleanup of split[1] (split.py:7)", "cleanup of split[1] (split.py:7) had not returned after 60 s"),
        ("post_save of split[1]", "post_save of split[1] had not returned after 60 s"),
        ("execute of split[1] (split.py:7)", None),  # its tuple was not acked
    ],
)
def test_a_last_call_that_has_not_returned_falls_short(code: str, what: str | None) -> None:
    components = {
        "lines": summarise("spout", 1, [TaskCounters(emitted=5, acked=5)], None),
        "split": summarise(
            "bolt", 2, [TaskCounters(executed=5)], None, not_returned=(LongCall("split[1]", code, 60.0),)
        ),
    }
    found = shortfalls(TopologyStatistics("words", "local", 1.0, 3, LatencySummary(), components))
    expected = f"split: {what}, so something may be unwritten"
    assert found == ([] if what is None else [Shortfall(Kind.UNWRITTEN, expected)])
