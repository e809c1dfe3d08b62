"""What a batch may bring: changed where it is wrong by a factor, seldom, and within what the user set."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from stormspark.api import PerTrigger
from stormspark.spark.trigger_limits import FACTOR, Bite, TriggerLimits

KAFKA = PerTrigger("maxOffsetsPerTrigger", 10_000, 100_000)


def limits(per_trigger: PerTrigger = KAFKA) -> TriggerLimits:
    made = TriggerLimits(target=1.0)
    made.open("s", per_trigger)
    made.begin()
    made.observe({"s": Bite(0, 1, False, 0.0)}, first=False, now=0.0)
    return made


class Source:
    """One that has ``there`` rows for each batch, and a bolt that takes ``cost`` seconds for each; a round is a second."""

    def __init__(self, cost: float, there: int = 1 << 40, **limits_of: PerTrigger) -> None:
        self.cost, self.there, self.now = cost, there, 0.0
        self.limits = limits(**limits_of)

    @property
    def units(self) -> int:
        return self.limits.units["s"]

    def run(self, seconds: float) -> int:
        """How often a limit was changed."""
        changes, end = 0, self.now + seconds
        while self.now < end:
            came = min(self.units, self.there)
            work = came * self.cost
            rounds = max(1, round(work))
            self.now += work + 0.3
            if self.limits.observe({"s": Bite(came, rounds, rounds > 1, work)}, first=False, now=self.now):
                changes += 1
                self.limits.begin()
        return changes


def test_a_limit_that_is_right_within_a_factor_stays() -> None:
    """F10: prolonged batches, or bolts that idle for a while, are no reason."""
    for cost in (0.3e-4, 1e-4, 10e-4):
        assert Source(cost).run(600) == 0


def test_one_that_is_much_too_large_becomes_a_few_rounds() -> None:
    """F10: at once where a batch is that long, so the next ones take some seconds."""
    source = Source(10e-3)
    assert source.run(600) == 1
    assert 2 <= source.units * source.cost <= 6


def test_one_that_is_much_too_small_grows_up_to_what_the_user_set() -> None:
    """F10: to a target of work; a limit that was set is never exceeded."""
    source = Source(1e-5)
    assert source.run(60) == 1
    assert source.units == 100_000 == KAFKA.most
    assert source.run(600) == 0
    source = Source(1e-7, per_trigger=PerTrigger("maxFilesPerTrigger", 10))
    assert source.run(3600) >= 2
    assert 1 / FACTOR <= source.units * source.cost <= 1


def test_a_bolt_that_is_ten_times_slower_for_a_minute_costs_nothing() -> None:
    """F10: its batches are prolonged, and it is at full speed again with the next one."""
    source = Source(0.9e-4)
    source.run(60)
    source.cost *= 10
    assert source.run(60) == 0
    source.cost /= 10
    assert source.run(60) == 0


def test_a_bolt_that_is_a_hundred_times_slower_for_a_minute_costs_few() -> None:
    """F10: and is back at full speed."""
    source = Source(0.9e-4)
    source.cost *= 100
    assert source.run(60) == 1
    source.cost /= 100
    assert source.run(60) <= 2
    assert source.units >= 2500


def test_a_source_that_gives_little_is_asked_for_more_once() -> None:
    """F10: a larger limit brings no more, so it was not the limit."""
    source = Source(1e-5, there=20, per_trigger=PerTrigger("maxBytesPerTrigger", 1 << 24))
    assert source.run(3600) == 1


def test_the_first_batch_of_a_query_says_nothing() -> None:
    """F10: Spark may have planned it before, with the limit of then; the first one of all is this query's."""
    made = limits()
    made.begin()
    assert made.observe({"s": Bite(10_000, 100, True, 99.0)}, first=False, now=99.0) == []
    made.begin()
    (new,) = made.observe({"s": Bite(10_000, 100, True, 99.0)}, first=True, now=99.0)
    assert (new.before, new.after) == (10_000, 400)
    assert str(new) == "s: maxOffsetsPerTrigger 10000 -> 400, because a batch took 100 rounds"


def test_a_file_is_the_least() -> None:
    """F10: a limit of nothing would end all reading."""
    source = Source(1000, per_trigger=PerTrigger("maxFilesPerTrigger", 4, 4))
    source.run(100_000)
    assert source.units == 1


@given(
    st.lists(st.tuples(st.integers(0, 20_000), st.integers(1, 200), st.booleans(), st.floats(0, 10))),
    st.integers(1, 1 << 30),
    st.integers(1, 1 << 30),
)
def test_never_beyond_what_was_set_and_never_often(
    batches: list[tuple[int, int, bool, float]], one: int, other: int
) -> None:
    """F10: whatever happens."""
    made = limits(PerTrigger("x", min(one, other), max(one, other)))
    changed: list[float] = []
    for number, bite in enumerate(batches):
        before = made.units["s"]
        for new in made.observe({"s": Bite(*bite)}, first=False, now=float(number)):
            changed.append(float(number))
            assert new.before == before
            assert max(new.after / new.before, new.before / new.after) >= FACTOR
        assert 1 <= made.units["s"] <= max(one, other)
    assert all(later - earlier >= 10 for earlier, later in pairwise(changed))
