"""Interleavings of executors' threads with the worker's thread: nothing is found in this tree, and each planted race is (A16).

``INTERLEAVINGS`` is how many seeds of each family are run.
"""

from __future__ import annotations

import os
import sys
import threading

import pytest
from hypothesis import settings

from tests.schedules.interleaved.planted import PLANTED, planted
from tests.schedules.interleaved.run import FAMILIES, find, run
from tests.schedules.interleaved.scheduler import FoundError, Primitives, Scheduler

#: How many seeds, from 0 on, CI looks at; `make test-fast` looks at fewer of them, as of examples.
INTERLEAVINGS = int(os.environ.get("INTERLEAVINGS", settings().max_examples))
#: A planted race has to be found in so many runs; the rarest ones are tried first where they were found last.
_UNTIL_FOUND = 1000
_FOUND_AT: dict[str, int] = {
    "acks of threads overtake emits": 441,
    "the inbox is cleared after a copy": 107,
    "turns go on after the last call": 78,
    "verdicts that are not heard are not pending": 37,
}


@pytest.mark.parametrize("family", FAMILIES)
def test_no_interleaving_breaks_a_promise(family: str) -> None:
    """Whoever runs when: what comes out is what Storm promises."""
    found = find(family, range(INTERLEAVINGS))
    assert found is None, f"\n{found}"


#: It takes a search of ten seconds and more.
_IN_SOAK = ("acks of threads overtake emits", "calls of timers stay due", "the inbox is cleared after a copy")


@pytest.mark.slow
@pytest.mark.parametrize(
    "race",
    [pytest.param(one, marks=[pytest.mark.long] if one in _IN_SOAK else []) for one in sorted(PLANTED)],
)
def test_a_planted_race_is_found(race: str) -> None:
    """Those that were in this tree, and those that are easily made."""
    family, _ = PLANTED[race]
    with planted(race):
        found = find(family, [_FOUND_AT.get(race, 0), *range(_UNTIL_FOUND)])
    assert found is not None


# Python 3.12 now and then leaves out the line event of a line that has just been traced, so switch points move.
@pytest.mark.skipif(sys.version_info[:2] == (3, 12), reason="line events of Python 3.12 can't be repeated")
@pytest.mark.parametrize(
    "family", [FAMILIES[0], *(pytest.param(one, marks=pytest.mark.slow) for one in FAMILIES[1:])]
)
def test_the_same_seed_makes_the_same_run(family: str) -> None:
    """Who ran when, and where each thread was interrupted, is the same; other seeds make other runs."""
    digests = [run(family, seed).digest for seed in (3, 4, 3)]
    assert digests[0] == digests[2]
    assert digests[0] != digests[1]


def test_if_nobody_can_run_that_is_found_with_what_each_thread_waits_for() -> None:
    """A deadlock of two threads."""
    scheduler = Scheduler(1, [])
    primitives = Primitives(scheduler)
    first, second = primitives.Lock(), primitives.Lock()
    taken = primitives.Event()

    def other_way_round() -> None:
        with second:
            taken.set()
            with first:
                pass

    thread = threading.Thread(target=other_way_round, name="other", daemon=True)
    primitives.start(thread)
    with first:
        taken.wait()
        with pytest.raises(
            FoundError, match=r"(?s)nobody can run.*worker: waits for a lock.*other: waits for a lock"
        ):
            second.acquire()
    scheduler.end()
    thread.join(10)
    assert not thread.is_alive()


def test_time_goes_on_when_all_wait_for_it() -> None:
    """At once, whatever the real time is."""
    scheduler = Scheduler(1, [])
    scheduler.sleep(1000)
    assert scheduler.clock() >= 1000
    assert not Primitives(scheduler).Event().wait(500)
    assert scheduler.clock() >= 1500
