"""The search of schedules: nothing is found in this tree, and each planted defect is (C35, C42, C44, E8, G8).

``SCHEDULES`` is how many seeds each family is searched through; `make soak-schedules` searches on, with new ones, for an hour.
"""

from __future__ import annotations

import os
from itertools import chain

import pytest
from hypothesis import settings

from tests.schedules.enumerated import enumerated
from tests.schedules.planted import PLANTED, planted
from tests.schedules.schedule import Schedule
from tests.schedules.search import FAMILIES, simplest, try_schedule

#: Seeds from 0 on that CI looks at, of each family; `make test-fast` looks at fewer of them, as of examples.
#: These families are enough after an edit.
AFTER_AN_EDIT = ("at-least-once", "exactly-once")
SCHEDULES = int(os.environ.get("SCHEDULES", 3 * settings().max_examples // 2))
#: A planted defect has to be found among so many of them; the rarest ones are tried first where they were found last.
#: ``python -m tests.schedules --planted`` takes new seeds.
_UNTIL_FOUND = 1500
_FOUND_AT = {
    "errors of post_save are told only": 966,
    "parts are dropped at the deadline": 200,
    "kept rows that fail leave the table": 256,
    "committers act after a fail": 897,
    "the acker's log forgets": 37,
    "the acker's log merges what may be written": 67,
    "threads are always heard": 28,
    "tuples stay in inboxes": 150,
}
#: What none of these seeds finds, and a search does that draws cuts and fails alone: in batch 0 a fail of `total` is cut off from
#: its way home, after others have changed who executes what.
_FOUND_BY = {
    "fails are late (point 4)": {
        "numbers": 1, "between": 2, "work tasks": 1, "sinks": 3, "partitions": 1, "rows of 0/0": 5, "rows of 0/1": 2, "poison": 3,
        "g0 b0 a0 r0 s1 w0: work executes 4 ()": 1, "g0 b0 a1 r0 s1 w0: total executes 4 (0, 1)": 1, "g0 b0 a1 r0 s2 w1: cut": 5,
        "g0 b0 a1 r0 s4 w0: total executes 7 (0, 1)": 1, "g0 b0 a2 r0 s2 w1: work executes 7 ()": 1,
        "g0 b0 a3 r0 s1 w0: ring executes 7 (0, 2)": 1, "g0 b0 a3 r0 s1 w0: ring executes 4 ()": 1,
        "g0 b0 a4 r0 s3 w0: ring executes 8 (0, 0)": 1, "g0 b0 a5 r0 s5 w0: total executes 5 (0, 2)": 1,
    },
}  # fmt: skip


@pytest.mark.parametrize(
    "family",
    [pytest.param(one, marks=[] if one in AFTER_AN_EDIT else pytest.mark.slow) for one in sorted(FAMILIES)],
)
def test_no_schedule_breaks_a_promise(family: str) -> None:
    """Whatever happens, in whatever order: what comes out is what a plain sequential run makes of the same rows."""
    for seed in range(SCHEDULES):
        found = try_schedule(family, Schedule(seed), seed)
        assert found is None, f"\n{simplest(found)}"


@pytest.mark.slow
def test_small_schedules_break_no_promise_one_by_one() -> None:
    """Of small runs, each single thing that can happen, at each place where it can."""
    tried = 0
    for family, schedule in enumerated():
        found = try_schedule(family, schedule)
        assert found is None, f"\n{found}"
        tried += 1
    assert tried > 100


#: It takes a search of a minute.
_IN_SOAK = ("lanes keep frames",)


@pytest.mark.slow
@pytest.mark.parametrize(
    "defect",
    [pytest.param(one, marks=[pytest.mark.long] if one in _IN_SOAK else []) for one in sorted(PLANTED)],
)
def test_a_planted_defect_is_found(defect: str) -> None:
    """The defects of the past, and their like."""
    family, rule, _ = PLANTED[defect]
    with planted(defect):
        seeds = chain([_FOUND_AT.get(defect, 0)], range(_UNTIL_FOUND))
        drawn = ((Schedule(seed), seed) for seed in seeds)
        known = [(Schedule(0, _FOUND_BY[defect]), 0)] if defect in _FOUND_BY else []
        for schedule, seed in chain(known, drawn):
            found = try_schedule(family, schedule, seed)
            # By what it breaks, and not since the plant itself raises.
            if found is not None and found.rule.startswith(rule) and "Error at " not in found.rule:
                return
    pytest.fail(f"{defect}: not found in {_UNTIL_FOUND} schedules")


def test_a_schedule_that_is_found_is_made_simple_and_can_be_repeated() -> None:
    """What is printed is enough to see it again."""
    with planted("acks do not wait"):
        found = next(f for seed in range(100) if (f := try_schedule("exactly-once", Schedule(seed), seed)))
        small = simplest(found)
        assert len(small.choices) <= min(len(found.choices), 6)
        again = try_schedule("exactly-once", Schedule(0, small.choices))
        assert again is not None
        assert again.rule == small.rule
    assert try_schedule("exactly-once", Schedule(0, small.choices)) is None
