"""The controller, round by round: what it hears, and what it says then."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from stormspark.backpressure import OPEN_TREES, BoltLoad, Controller, SpoutLoad, TaskLoad


class OneSpout:
    """A spout (task 1) and a bolt (task 2), a target of a second, an overhead of 0.1 s."""

    def __init__(self, **marks: Any) -> None:
        self.controller = Controller({"s": [1]}, {"b": [2]}, {"b": {"s"}}, target=1.0, **marks)
        self.queued = 0

    @property
    def limit(self) -> int | None:
        return self.controller.limits.get(1)

    def emits(
        self, cost: float, *, at_most: int = 10**9, executes: int = 10**9, size: int = 100, extra: float = 0.0
    ) -> int | None:
        """A round in which it emits what it may, and the bolt takes ``cost`` seconds a tuple; returns the new limit."""
        emitted = at_most if self.limit is None else min(self.limit, at_most)
        limited = emitted == self.limit
        executed = min(executes, self.queued + emitted)
        self.queued += emitted - executed
        loads: dict[int, TaskLoad] = {
            1: SpoutLoad(emitted, limited, limited),
            2: BoltLoad(executed, executed * cost, self.queued, self.queued * size),
        }
        self.controller.observe(loads, 0.1 + executed * cost + extra)
        return self.limit

    @property
    def named(self) -> str | None:
        return self.controller.pressure().spouts["s"].throttled_by


def test_a_topology_begins_small_and_grows_until_nobody_is_in_its_way() -> None:
    """F14: each round may be as long as the target (here twice that, as 0.1 s are lost with each); nobody is named."""
    one = OneSpout()
    assert one.limit == 100
    assert one.emits(1e-6) == 1998
    assert one.emits(1e-6) == 39177
    assert one.emits(1e-6, at_most=20_000) == 333_333  # nobody was at it, and it shows what there is room for
    assert one.emits(1e-6, at_most=20_000) == 333_333
    assert one.named is None
    one.controller.observe({1: SpoutLoad(30_000, True, False), 2: BoltLoad(30_000, 0.03, 0, 0)}, 0.13)
    one.controller.observe({1: SpoutLoad(30_000, True, False), 2: BoltLoad(30_000, 0.03, 0, 0)}, 0.13)
    assert one.limit is None
    assert [change.limit for change in one.controller.pressure().history] == [100, 1998, 39177, 333_333, None]


def test_a_bolt_that_is_slow_from_the_start_is_found_in_three_rounds() -> None:
    """F14, F6: 10 ms a tuple and 100 ms a round: 190 tuples in two seconds, and the bolt is named once that is in force."""
    one = OneSpout()
    assert [one.emits(0.01) for _ in range(3)] == [200, 190, 190]
    assert one.named == "b"
    pressure = one.controller.pressure()
    assert pressure.spouts["s"].throttled_ms == {"b": pytest.approx(2000)}
    assert [tuple(change) for change in pressure.history] == [
        (0.0, "s", 100, None),
        (pytest.approx(1.1), "s", 200, None),
        (pytest.approx(3.2), "s", 190, "b"),
    ]


def slowed() -> OneSpout:
    """At 190 tuples a round, of 10 ms each."""
    one = OneSpout()
    for _ in range(5):
        one.emits(0.01)
    assert one.limit == 190
    return one


def test_a_change_by_a_factor_counts_at_once() -> None:
    """F14: tuples that take ten times as long, or a tenth."""
    one = slowed()
    assert [one.emits(0.1) for _ in range(3)] == [19, 19, 19]
    one = slowed()
    assert [one.emits(0.001) for _ in range(3)] == [
        1310,
        1858,
        1858,
    ]  # a short round's cost is partly overhead


def test_a_smaller_change_counts_when_it_has_lasted() -> None:
    """F14: twice the cost: four rounds; a tenth more: never."""
    one = slowed()
    assert [one.emits(0.02) for _ in range(4)] == [190, 190, 190, 97]
    one = slowed()
    assert {one.emits(0.011) for _ in range(100)} == {190}


def test_noise_changes_nothing() -> None:
    """F14, F9: a cost that is off by a third, this way and that way, leaves the limit where it is."""
    one = slowed()
    changes = one.controller.pressure().limit_changes
    for _ in range(100):
        for cost in (0.0133, 0.0075, 0.0075, 0.0133):
            one.emits(cost)
    assert one.controller.pressure().limit_changes == changes


def test_what_waits_is_taken_off_the_limit() -> None:
    """F9, F14: one target of two waits, so half of a round is left; more than that waits, so one tuple is."""
    one = slowed()
    assert one.emits(0.01, executes=90) == 95
    assert one.emits(0.01, executes=95) == 95
    assert one.emits(0.01, executes=0) == 4
    assert one.emits(0.01, executes=0) == 1
    changes = one.controller.pressure().limit_changes
    assert one.emits(0.01) == 190
    assert one.controller.pressure().limit_changes == changes


@pytest.mark.parametrize(
    ("marks", "size"), [({"tuple_marks": (500, 100)}, 1), ({"byte_marks": (500_000, 100_000)}, 1000)]
)
def test_above_a_water_mark_a_bolt_drains_first(marks: dict[str, tuple[int, int]], size: int) -> None:
    """F7, F9: above the high mark one tuple a round, between the two that goes on, below the low one it is over."""
    one = OneSpout(**marks)
    for _ in range(3):
        one.emits(1e-5, size=size)
    before = one.limit
    assert before is not None and before > 1000
    one.emits(1e-5, executes=0, size=size)
    above = one.controller.pressure().bolts["b"]
    assert above.above and one.limit == 1
    one.emits(1e-5, executes=one.queued - 200, size=size)
    assert one.controller.pressure().bolts["b"].above and one.limit == 1 and one.named == "b"
    one.emits(1e-5, size=size)
    assert not one.controller.pressure().bolts["b"].above
    assert one.limit is not None and one.limit > 1000


def test_a_pause_of_everything_is_no_bolts_fault() -> None:
    """W1: ten seconds in which nobody did anything change no limit and name nobody."""
    one = slowed()
    assert one.emits(0.01, extra=10.0) == 190
    assert one.named is None
    assert one.emits(0.01) == 190
    assert one.named == "b"


def test_rounds_that_are_long_anyway_do_not_end_in_ever_smaller_ones() -> None:
    """W1, F14: where a round takes 5 s whatever it does, work has twice that."""
    one = OneSpout()
    for _ in range(20):
        one.emits(0.01, extra=4.9)
    assert one.limit == 1200  # 17 s: near enough


def test_a_stalled_bolt_that_goes_on_is_fed_at_full_speed_again() -> None:
    """W1: half a minute for one tuple, so one is let in; what waited shows how fast it is now, and it has its work again."""
    one = slowed()
    assert one.emits(30.0, executes=1) == 1
    assert [one.emits(0.01) for _ in range(3)] == [189, 189, 189]


def test_a_limit_that_nobody_was_at_for_twenty_targets_goes() -> None:
    """F14: so a source that comes in bursts finds it still there."""
    one = slowed()
    for _ in range(19):
        assert one.emits(0.01, at_most=1, extra=0.89) == 190
    assert one.emits(0.01, at_most=1, extra=0.89) is None
    assert one.controller.pressure().history[-1].because_of is None


def test_new_workers_are_unknown_again() -> None:
    """W1: nothing that was learnt of workers that are gone limits those that are new."""
    one = slowed()
    one.controller.begin()
    assert one.limit == 100 and one.named is None


def test_only_the_sources_of_the_slow_bolt_are_slowed() -> None:
    """F13, F10: JStorm's way, not Heron's; a round is not made longer than the target at the other's cost."""
    controller = Controller(
        {"s": [1], "t": [2]}, {"slow": [3], "after": [4], "fast": [5]},
        {"slow": {"s"}, "after": {"s"}, "fast": {"t"}}, target=1.0,
    )  # fmt: skip
    for _ in range(8):
        emitted = controller.limits.get(1, 1000)
        loads: dict[int, TaskLoad] = {
            1: SpoutLoad(emitted, True, 1 in controller.limits),
            2: SpoutLoad(10_000, True, False),
            3: BoltLoad(emitted, emitted * 0.01, 0, 0),
            4: BoltLoad(emitted, emitted * 1e-5, 0, 0),
            5: BoltLoad(10_000, 0.1, 0, 0),
        }
        controller.observe(loads, 0.1 + emitted * 0.01)
    pressure = controller.pressure()
    assert (pressure.spouts["s"].limit, pressure.spouts["s"].throttled_by) == (90, "slow")
    assert (pressure.spouts["t"].limit, pressure.spouts["t"].throttled_by) == (None, None)
    assert pressure.spouts["t"].throttled_ms == {}


def test_of_bolts_in_a_row_the_one_that_is_named_stays_named() -> None:
    """F11: two bolts that are equally slow are not named in turn."""
    controller = Controller({"s": [1]}, {"a": [2], "b": [3]}, {"a": {"s"}, "b": {"s"}}, target=1.0)
    named = set()
    for number in range(20):
        emitted = controller.limits[1]
        costs = (0.011, 0.01) if number % 2 else (0.01, 0.011)
        loads: dict[int, TaskLoad] = {1: SpoutLoad(emitted, True, True)}
        loads |= {2 + i: BoltLoad(emitted, emitted * cost, 0, 0) for i, cost in enumerate(costs)}
        controller.observe(loads, 0.1 + emitted * sum(costs))
        named.add(controller.pressure().spouts["s"].throttled_by)
    assert len(named - {None}) == 1


def test_what_a_worker_has_to_do_is_the_sum_of_what_its_tasks_have() -> None:
    """F14: a bolt with four tasks on one worker is four times as slow as one with four workers."""
    limits = []
    for workers in ((7, 7, 7, 7), (6, 7, 8, 9)):
        controller = Controller(
            {"s": [1]}, {"b": [2, 3, 4, 5]}, {"b": {"s"}}, target=1.0,
            worker_of=dict(zip((2, 3, 4, 5), workers, strict=True)),
        )  # fmt: skip
        for _ in range(8):
            emitted = controller.limits[1]
            loads: dict[int, TaskLoad] = {1: SpoutLoad(emitted, True, True)}
            loads |= {task: BoltLoad(emitted // 4, emitted // 4 * 0.01, 0, 0) for task in (2, 3, 4, 5)}
            busy = emitted // 4 * 0.01 * (4 if len(set(workers)) == 1 else 1)
            controller.observe(loads, 0.1 + busy)
        assert controller.pressure().spouts["s"].throttled_by == "b"
        limits.append(controller.limits[1])
    assert limits[0] == pytest.approx(190, rel=0.05)
    assert limits[1] == pytest.approx(4 * 190, rel=0.05)


def test_a_spout_that_has_little_is_not_held_back_by_one_that_has_much() -> None:
    """F13: both feed the slow bolt; the limit of each is an even share if it can use it."""
    controller = Controller({"big": [1], "small": [2]}, {"b": [3]}, {"b": {"big", "small"}}, target=1.0)

    def run(rounds: int, supply: int) -> tuple[int, int]:
        for _ in range(rounds):
            big = controller.limits.get(1, 1000)
            small = min(controller.limits.get(2, supply), supply)
            limited = small == controller.limits.get(2)
            loads: dict[int, TaskLoad] = {
                1: SpoutLoad(big, True, 1 in controller.limits),
                2: SpoutLoad(small, limited, limited),
                3: BoltLoad(big + small, (big + small) * 0.01, 0, 0),
            }
            controller.observe(loads, 0.1 + (big + small) * 0.01)
        return big, small

    big, small = run(20, 10)
    assert small == 10 and big + small == pytest.approx(190, rel=0.25)
    big, small = run(60, 10**6)
    assert big + small == pytest.approx(190, rel=0.35)
    assert small > 0.6 * big


def test_a_limit_is_shared_out_by_what_tasks_have() -> None:
    """F14: a task that had little gets that and some more, those that would have emitted more get the rest."""
    controller = Controller({"s": [1, 2, 3]}, {"b": [4]}, {"b": {"s"}}, target=1.0)
    assert controller.limits == {1: 100, 2: 100, 3: 100}
    controller.observe(
        {
            1: SpoutLoad(10, False, False),
            2: SpoutLoad(100, True, True),
            3: SpoutLoad(100, True, True),
            4: BoltLoad(210, 2.1, 0, 0),
        },
        seconds=2.2,
    )
    controller.observe(
        {
            1: SpoutLoad(10, False, False),
            2: SpoutLoad(140, True, True),
            3: SpoutLoad(140, True, True),
            4: BoltLoad(290, 2.9, 0, 0),
        },
        seconds=3.0,
    )
    assert controller.limit_of("s") == 190
    assert controller.limits == {1: 21, 2: 85, 3: 84}


def test_rows_of_a_source_count_as_work_that_waits() -> None:
    """F14: more than two targets of it, and a source is behind; not any more below half a target."""
    one = slowed()
    cost = 2.0 / 190
    for rows, behind in ((150, False), (250, True), (100, True), (40, False)):
        one.controller.observe({1: SpoutLoad(190, True, True, rows), 2: BoltLoad(190, 1.9, 0, 0)}, 2.0)
        assert one.controller.is_behind("s") is behind, rows * cost


@pytest.mark.slow
def test_the_history_does_not_grow_for_ever() -> None:
    """W26: of ever so many changes the last thousand are kept, and all are counted."""
    one = slowed()
    for number in range(3000):
        one.emits(0.1 if number % 2 else 0.001)
    pressure = one.controller.pressure()
    assert len(pressure.history) == 1000 < pressure.limit_changes
    assert pressure.history[-1].limit == one.limit


def test_a_spout_with_too_many_open_trees_waits_for_some_to_end_but_never_quite() -> None:
    """F8, W1: what a window holds is in no queue; it may need one more tuple to let its tuples go."""
    controller = Controller({"s": [1, 3]}, {"b": [2]}, {"b": {"s"}}, target=1.0, tree_marks=(1000, 500))

    def emits(open_trees: int) -> dict[int, int]:
        each = SpoutLoad(40, True, True, open_trees=open_trees // 2)
        controller.observe({1: each, 3: each, 2: BoltLoad(80, 0.01, 0, 0)}, 0.2)
        return dict(controller.limits)

    grows = emits(400)
    assert min(grows.values()) > 40
    assert emits(1002) == {1: 1, 3: 1}
    assert controller.pressure().spouts["s"].throttled_by == OPEN_TREES
    assert emits(600) == {1: 1, 3: 1}, "between the marks nothing changes"
    assert min(emits(498).values()) > 40
    assert controller.pressure().spouts["s"].throttled_by is None
    assert controller.pressure().spouts["s"].throttled_ms == {OPEN_TREES: 400.0}


def test_a_bolt_that_takes_the_spouts_time_is_named_though_nothing_is_limited() -> None:
    """F6, F11: side by side in one worker time is what holds the spout, and the bolt has three quarters of it."""
    controller = Controller({"s": [1]}, {"b": [2]}, {"b": {"s"}}, target=1.0, worker_of={1: 0, 2: 0})
    for _ in range(4):
        controller.observe({1: SpoutLoad(90, True, False), 2: BoltLoad(90, 0.9, 0, 0)}, 1.05)
    spout = controller.pressure().spouts["s"]
    assert (spout.limit, spout.throttled_by) == (None, "b")
    assert spout.throttled_ms == {"b": pytest.approx(4200)}
    assert controller.round_target == pytest.approx(0.15 / 0.05)
    controller.observe({1: SpoutLoad(90, True, False), 2: BoltLoad(90, 0.5, 0, 0)}, 1.05)
    assert controller.pressure().spouts["s"].throttled_by is None
    controller.observe({1: SpoutLoad(10, False, False), 2: BoltLoad(10, 0.1, 0, 0)}, 0.11)
    assert controller.pressure().spouts["s"].throttled_by is None


def test_time_that_workers_went_on_in_makes_rounds_no_shorter() -> None:
    """F6: that bolts were busy while nobody needed them does not change what a round costs."""
    of_its_own, filled = (
        Controller({"s": [1]}, {"b": [2]}, {"b": {"s"}}, target=1.0, worker_of={1: 0, 2: 0}) for _ in range(2)
    )
    of_its_own.observe({1: SpoutLoad(50, True, False), 2: BoltLoad(50, 0.1, 0, 0)}, 0.25)
    filled.observe({1: SpoutLoad(70, True, False), 2: BoltLoad(70, 0.15, 0, 0)}, 0.25, filled=0.05)
    assert filled.round_target == pytest.approx(of_its_own.round_target)
    assert filled.round_target == pytest.approx(0.15 / 0.1)


def test_a_first_round_that_was_no_usual_one_says_nothing_of_what_rounds_take() -> None:
    """F6, F14: workers had to be started in it; the work that a bolt did in it counts all the same."""
    controller = Controller({"s": [1]}, {"b": [2]}, {"b": {"s"}}, target=1.0, worker_of={1: 0, 2: 0})
    controller.observe(
        {1: SpoutLoad(90, True, False), 2: BoltLoad(90, 0.9, 0, 0)}, 0.95, pause=3.0, whole=False
    )
    assert controller.round_target == 1.0
    for _ in range(2):
        controller.observe({1: SpoutLoad(90, True, False), 2: BoltLoad(90, 0.9, 0, 0)}, 0.95)
    assert controller.pressure().spouts["s"].throttled_by == "b"
    assert controller.pressure().spouts["s"].throttled_ms == {"b": pytest.approx(3 * 950)}
    assert controller.round_target == 1.0


def shown(*seconds: float) -> list[str | None]:
    """Who is named after each of these rounds, in which time stops the spout and the bolt has nine tenths of it."""
    one = OneSpout()
    for _ in range(3):
        one.emits(1e-6)
    named = []
    for each in seconds:
        loads: dict[int, TaskLoad] = {
            1: SpoutLoad(1000, each > 0, False),
            2: BoltLoad(1000, 0.9 * abs(each), 0, 0),
        }
        one.controller.observe(loads, abs(each))
        named.append(one.named)
    return named


def test_short_rounds_were_not_ended_by_a_bolt() -> None:
    """F14: a spout that has used its own share of a round up is hungry, and nobody is in its way; in long ones a bolt is."""
    assert shown(*[0.3] * 20) == [None] * 20
    assert shown(*[0.6] * 5) == [None, None, None, "b", "b"]


def test_a_burst_that_was_ended_by_time_was_held_up_by_nobody() -> None:
    """F14: time was up when all was emitted that there was; the next round shows whether there was more.

    A negative round here is one after which the spout had nothing more.
    """
    assert shown(1.9, -0.1, 1.9, -0.1, 1.9) == [None] * 5
    assert shown(30.0, -0.1) == [None, None], "one round proves nothing, however long it is"
    assert shown(30.0, 0.9, 0.9, -0.9, 0.9) == [None, "b", "b", None, None]
    assert shown(0.9, 0.9, 0.9) == [None, None, "b"]


class Alongside:
    """A bolt on threads of its own: it works all the time, and gets a round's tuples when the round is half over."""

    def __init__(self, rate: float, bolts: int = 1) -> None:
        self.rate, self.names = rate, [f"b{i}" for i in range(bolts)]
        self.controller = Controller(
            {"s": [1]},
            {name: [2 + i] for i, name in enumerate(self.names)},
            {name: {"s"} for name in self.names},
            target=1.0,
            worker_of={1 + i: 0 for i in range(bolts + 1)},
        )
        self.queued = 0.0
        self.executed = 0.0

    def round(self, seconds: float) -> None:
        emitted, executed = self.controller.limits.get(1, 10**9), 0.0
        for came in (0, emitted):
            self.queued += came
            done = min(self.queued, self.rate * seconds / 2)
            self.queued, executed = self.queued - done, executed + done
        self.executed += executed
        # Each of a chain's bolts has executed as much: they work at the same time.
        load = BoltLoad(int(executed), executed / self.rate, int(self.queued), 0, alongside=True)
        nothing = load._replace(queued=0)
        loads: dict[int, TaskLoad] = {1: SpoutLoad(emitted, True, True), 2: load}
        loads |= {3 + i: nothing for i in range(len(self.names) - 1)}
        self.controller.observe(loads, seconds)


@pytest.mark.parametrize("bolts", [1, 3])
@pytest.mark.parametrize("seconds", [0.05, 0.6, 1.0, 3.0])
def test_a_bolt_that_works_alongside_never_waits_for_the_next_round(seconds: float, bolts: int) -> None:
    """A16: it works between supersteps too, so it needs tuples for more than the planned round, but not for ever more."""
    one = Alongside(rate=8000.0, bolts=bolts)
    for _ in range(12):
        one.round(seconds)
    before = one.executed
    for _ in range(20):
        one.round(seconds)
        assert one.queued <= one.rate * (4 * one.controller.target + 3 * seconds)
    assert one.executed - before == pytest.approx(20 * seconds * one.rate, rel=0.01)


@pytest.mark.parametrize("at_once", [1, 40, 10_000])
@pytest.mark.parametrize("rounds", [0.02, 0.3, 1.0, 2.0, 7.0])
def test_calls_that_last_for_rounds_keep_all_places_taken(rounds: float, at_once: int) -> None:
    """A16: tuples in calls don't wait. When they counted, a limit stayed at a thirtieth of what was possible."""
    one = Controller({"s": [1]}, {"b": [2]}, {"b": {"s"}}, target=1.0)
    queued, began, steps = 0, [], 20
    executed = []
    for number in range(80):
        emitted = one.limits.get(1, 3 * at_once)
        queued, ended, seconds = queued + emitted, 0, 0.0
        for step in range(steps):
            now = number + step / steps
            still = [begun for begun in began if begun + rounds > now]
            ended, began = ended + len(began) - len(still), still
            free = min(queued, at_once - len(began))
            queued, began = queued - free, began + [now] * free
        seconds = ended * rounds / at_once
        load = BoltLoad(
            ended,
            seconds,
            queued + len(began),
            0,
            alongside=True,
            in_calls=len(began),
            under_way=0.5 / at_once,
        )
        one.observe({1: SpoutLoad(emitted, True, True), 2: load}, 1.0)
        executed.append(ended)
    possible = at_once / max(rounds, 1 / steps)
    assert sum(executed[20:]) == pytest.approx(60 * possible, rel=0.1, abs=at_once)
    assert queued <= max(4 * possible, 200), "the first round has a hundred, and each round has one"


def test_a_bolt_whose_first_call_lasts_is_not_flooded_meanwhile() -> None:
    """F14: nothing is known of its speed but how long the call has lasted."""
    one = Controller({"s": [1]}, {"b": [2]}, {"b": {"s"}}, target=1.0)
    queued = 0
    for second in range(1, 120):
        emitted = one.limits.get(1, 10**9)
        queued += emitted
        one.observe(
            {
                1: SpoutLoad(emitted, True, True),
                2: BoltLoad(0, 0.0, queued, 0, alongside=True, under_way=0.5 * second),
            },
            0.5,
        )
    assert queued < 1000
    assert one.pressure().spouts["s"].throttled_by == "b"


@pytest.mark.parametrize("idle", [0, 1, 7])
def test_short_rounds_before_the_first_call_has_ended_let_in_no_flood(idle: int) -> None:
    """F14: a call that has lasted for 5 ms may take 50. But tasks that get nothing, for lack of keys, hold nobody up later."""
    tasks = [2 + number for number in range(1 + idle)]
    one = Controller({"s": [1]}, {"b": tasks}, {"b": {"s"}}, target=1.0)
    nothing = BoltLoad(0, 0.0, 0, 0, alongside=True)
    queued, limits = 0, []
    for number in range(5):
        emitted = one.limits.get(1, 10**9)
        queued += emitted
        first = BoltLoad(0, 0.0, queued, 0, alongside=True, under_way=5e-6)
        load = first if number < 3 else BoltLoad(queued, queued * 1e-4, 0, 0, alongside=True)
        queued = queued if number < 3 else 0
        one.observe({1: SpoutLoad(emitted, True, True), 2: load, **dict.fromkeys(tasks[1:], nothing)}, 0.005)
        limits.append(one.limits.get(1, 10**9))
    assert all(after <= 2 * before for before, after in pairwise(limits[:3]))
    assert limits[4] >= 5000, "10,000 tuples a second are known by then"


class Beside:
    """A spout (task 1), a bolt ``w`` that works in turn and takes 1 ms a tuple (task 2), and a bolt ``a`` that works beside it
    (task 3). Each round has an overhead of 0.3 s.
    """

    def __init__(self) -> None:
        self.controller = Controller(
            {"s": [1]},
            {"w": [2], "a": [3]},
            {"w": {"s"}, "a": {"s"}},
            target=1.0,
            worker_of={1: 0, 2: 0, 3: 0},
        )

    def round(self, ended: int, seconds: float, queued: int = 0) -> None:
        """In ``a``, this many calls end, which have taken so many seconds, and so many tuples wait."""
        emitted = self.controller.limits.get(1, 10**4)
        loads: dict[int, TaskLoad] = {
            1: SpoutLoad(emitted, True, True),
            2: BoltLoad(emitted, emitted / 1000, 0, 0),
            3: BoltLoad(ended, seconds, queued, 0, alongside=True),
        }
        self.controller.observe(loads, 0.3 + emitted / 1000)

    @property
    def pressure(self) -> tuple[int | None, str | None]:
        spout = self.controller.pressure().spouts["s"]
        return spout.limit, spout.throttled_by


@pytest.mark.parametrize("seconds", [2.0, 10.0, 100.0])
def test_a_call_that_began_rounds_ago_hides_no_overhead(seconds: float) -> None:
    """A16, F14: one such call made all rounds short for a quarter of an hour, and cost a quarter of what was possible."""
    without, one = Beside(), Beside()
    for number in range(60):
        without.round(0, 0.0)
        one.round(*((1, seconds) if number in {4, 30} else (0, 0.0)))
    assert without.pressure[0] == pytest.approx(4000, rel=0.1), "a round of four targets"
    assert one.pressure[0] == pytest.approx(without.pressure[0], rel=0.1)


def test_the_bolt_that_is_named_is_the_one_that_is_slow_now() -> None:
    """F6: not the one that was slow when the limit was set."""
    one = Beside()
    for _ in range(10):
        one.round(20, 1.0, 20)
    assert one.pressure[1] == "a"
    for _ in range(30):
        one.round(20, 1e-3)
    assert one.pressure[1] == "w"
