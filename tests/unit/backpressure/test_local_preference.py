"""While max spout pending holds a spout, its tuples stay in their workers as long as these can take the work (B4)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stormspark.backpressure import LimitedSpout, LocalPreference, SpoutLoad

SPOUT = {"words": LimitedSpout((5, 6), 100)}


def preference(**spouts: LimitedSpout) -> LocalPreference:
    return LocalPreference(spouts or SPOUT, lower=0.2, higher=0.8)


def loads(emitted: int, held: bool, tasks: tuple[int, ...] = (5, 6)) -> dict[int, SpoutLoad]:
    """Give each task half of what was emitted."""
    return {task: SpoutLoad(emitted // len(tasks), False, False, held=held) for task in tasks}


def staying() -> LocalPreference:
    """Return a preference after a round in which the limit held the spout, and workers had little to do."""
    begun = preference()
    begun.observe(loads(200, True), 0.3, worked=[0.01, 0.01])
    assert begun.staying == begun.held == {"words"}
    return begun


def test_a_spout_that_nothing_holds_uses_all_tasks() -> None:
    one = preference()
    one.observe(loads(199, False), 0.3, worked=[0.01, 0.01])
    assert not one.staying and not one.held


def test_a_held_spout_uses_all_tasks_while_one_worker_could_not_do_the_work_of_all() -> None:
    one = preference()
    one.observe(loads(200, True), 1.0, worked=[0.15, 0.15])
    assert one.held and not one.staying


def test_it_stays_local_while_it_is_held_and_the_busiest_worker_has_time_left() -> None:
    """Above the lower bound it does not begin to stay, but goes on."""
    one = staying()
    one.observe(loads(200, True), 1.0, worked=[0.7, 0.1])
    assert one.staying
    one.observe(loads(200, True), 1.0, worked=[0.9, 0.1])
    assert not one.staying


def test_it_stays_local_while_that_is_faster_than_trees_that_cross_can_be() -> None:
    """A worker that is busy with far more trees than the limit lets cross is not relieved by crossing."""
    one = staying()
    one.observe(loads(100_000, False), 2.5, worked=[2.2, 2.2])
    assert one.staying and not one.held


def test_slow_bolts_get_all_tasks_again() -> None:
    """200 trees that take 1.6 s in one worker take half of it in two, and the limit allows more than that."""
    one = staying()
    one.observe(loads(200, True), 1.9, worked=[1.6, 0.0])
    assert not one.staying


def test_a_spout_that_has_little_to_emit_uses_all_tasks_again() -> None:
    one = staying()
    one.observe(loads(150, False), 0.3, worked=[0.01, 0.01])
    assert not one.staying


def test_each_spout_counts_for_itself() -> None:
    one = preference(a=LimitedSpout((1,), 10), b=LimitedSpout((2,), 10))
    one.observe({**loads(10, True, (1,)), **loads(3, False, (2,))}, 0.3, worked=[0.01])
    assert one.staying == {"a"}


def test_a_worker_without_a_report_or_a_round_without_time_breaks_nothing() -> None:
    one = preference()
    one.observe({}, 0.0, worked=[])
    assert not one.staying


@given(
    rounds=st.lists(
        st.tuples(st.integers(0, 10**6), st.booleans(), st.floats(0, 10), st.floats(0, 1), st.floats(0, 1))
    )
)
def test_it_depends_on_the_last_two_rounds_only(
    rounds: list[tuple[int, bool, float, float, float]],
) -> None:
    """There is no other memory than whether the spout stays local: whatever came before is forgotten (W1)."""
    one = preference()
    for emitted, held, seconds, first, second in rounds:
        before = one.staying
        one.observe(loads(emitted, held), seconds, worked=[first * seconds, second * seconds])
        again = preference()
        if before:
            again = staying()
        again.observe(loads(emitted, held), seconds, worked=[first * seconds, second * seconds])
        assert (one.staying, one.held) == (again.staying, again.held)
        assert one.held == ({"words"} if held else set())
