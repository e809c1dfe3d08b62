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
SCHEDULES = int(os.environ.get("SCHEDULES", 3 * settings().max_examples // 2))
#: A planted defect has to be found among so many of them; the rarest ones are tried first where they were found last.
#: ``python -m tests.schedules --planted`` takes new seeds.
_UNTIL_FOUND = 1500
_FOUND_AT = {
    "fails are late (point 4)": 989,
    "errors of post_save are told only": 966,
    "parts are dropped at the deadline": 200,
    "kept rows that fail leave the table": 256,
}


@pytest.mark.parametrize("family", sorted(FAMILIES))
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


@pytest.mark.slow
@pytest.mark.parametrize("defect", sorted(PLANTED))
def test_a_planted_defect_is_found(defect: str) -> None:
    """The defects of the past, and their like."""
    family, rule, _ = PLANTED[defect]
    with planted(defect):
        for seed in chain([_FOUND_AT.get(defect, 0)], range(_UNTIL_FOUND)):
            found = try_schedule(family, Schedule(seed), seed)
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
