"""The controller against simulated topologies of every kind, and against figures of every kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from stormspark.backpressure import OPEN_TREES, BoltLoad, Controller, SpoutLoad, TaskLoad
from stormspark.backpressure.controller import FIRST_LIMIT
from stormspark.backpressure.simulation import (
    Round,
    Scenario,
    SimulatedBolt,
    SimulatedSpout,
    Simulation,
    our_controller,
)

#: A simulation takes some 30 ms.
FEWER = settings(max_examples=settings().max_examples // 3)


@dataclass(frozen=True)
class Shape:
    """A topology whose bolt costs the same all the time, until a test says otherwise."""

    spout_workers: tuple[int, ...]
    spout_seconds: float
    bolt_workers: tuple[int, ...]
    cost: float
    overhead: float
    jitter: float
    fan_out: float
    target: float
    seed: int

    def scenario(self, cost: Callable[[float], float] | None = None) -> Scenario:
        return Scenario(
            [SimulatedSpout("s", self.spout_workers, self.spout_seconds)],
            [
                SimulatedBolt(
                    "b",
                    {"s": self.fan_out},
                    self.bolt_workers,
                    cost or (lambda seconds: self.cost),
                    jitter=self.jitter,
                )
            ],
            target=self.target,
            overhead=self.overhead * self.target,
            deadline=3 * self.target,
        )

    @property
    def seconds_of_a_tuple(self) -> float:
        """Of a spout's: what it takes to emit, and then on the busiest worker of the bolt."""
        turns = 2 if self.has_turns else 1
        return turns * self.seconds_in_bolt + self.spout_seconds * most_on_a_worker(self.spout_workers)

    @property
    def has_turns(self) -> bool:
        """Whether the bolt's tasks beside the spout and those elsewhere work one after the other, or both, as it happens."""
        spouts, bolts = set(self.spout_workers), set(self.bolt_workers)
        return bool(spouts & bolts) and len(spouts | bolts) > 1

    @property
    def seconds_in_bolt(self) -> float:
        return self.cost * self.fan_out * most_on_a_worker(self.bolt_workers)


def most_on_a_worker(workers: tuple[int, ...]) -> float:
    return max(workers.count(worker) for worker in workers) / len(workers)


def powers_of_ten(least: int, most: int) -> st.SearchStrategy[float]:
    return st.floats(least, most).map(lambda exponent: 10**exponent)


SHAPES = st.builds(
    Shape,
    spout_workers=st.sampled_from([(0,), (0, 1), (0, 0, 0)]),
    spout_seconds=powers_of_ten(-6, -4),
    bolt_workers=st.sampled_from([(0,), (1,), (1, 2), (1, 1, 1, 1), (0, 1, 2)]),
    cost=powers_of_ten(-6, -2),
    overhead=st.floats(0.05, 0.5),
    jitter=st.sampled_from([0.0, 0.1, 0.3]),
    fan_out=st.sampled_from([0.5, 1, 20]),
    target=st.sampled_from([0.2, 1.0]),
    seed=st.integers(0, 1000),
).filter(lambda shape: FIRST_LIMIT * len(shape.spout_workers) * shape.seconds_in_bolt < 10 * shape.target)


def run(scenario: Scenario, seed: int, targets: float) -> tuple[Controller, list[Round]]:
    controller = our_controller(scenario)
    return controller, Simulation(scenario, controller, Random(seed)).run(targets * scenario.target)


def rate(rounds: list[Round]) -> float:
    return sum(one.executed["b"] for one in rounds) / sum(one.seconds for one in rounds)


# One of two spout tasks has its worker to itself, so it alone is at its limit, which would creep up two tuples at a time.
@example(Shape((0, 1), 1.079e-06, (1, 2), 8.333e-05, 0.26111455, 0.0, 0.5, 0.2, 55))
# The bolt's tasks beside the spouts and those elsewhere have half of a round each, one after the other.
@example(Shape((0, 0, 0), 1.412e-06, (0, 1, 2), 2.441e-03, 0.28947, 0.0, 20, 1.0, 1000))
@FEWER
@given(SHAPES)
def test_a_steady_load_has_a_steady_limit_and_all_of_the_rate(shape: Shape) -> None:
    """F14, F9: whatever a topology costs: once it has settled no limit changes, what waits is bounded, the bolt is busy."""
    scenario = shape.scenario()
    controller, rounds = run(scenario, shape.seed, 120)
    half = [one for one in rounds if one.began > 40 * shape.target]
    late = [one for one in controller.pressure().history if one.seconds > 60 * shape.target]
    # Noise that lasts for two targets is now and then taken for a change.
    assert len(late) <= (6 if shape.jitter else 1), late
    for one in half:
        assert one.queued["b"] * shape.cost <= 3 * shape.target * len(shape.bolt_workers)
    assert rate(half) >= 0.75 * shape.fan_out / shape.seconds_of_a_tuple * (1 - shape.overhead)


def slower_for_a_while(shape: Shape, factor: float) -> Callable[[float], float]:
    def cost(seconds: float) -> float:
        return shape.cost * (factor if 40 <= seconds / shape.target < 60 else 1)

    return cost


def standing_still_for_a_while(shape: Shape) -> Callable[[float], float]:
    """The tuple that is executed then takes until the end of it."""

    def cost(seconds: float) -> float:
        begin, end = 40 * shape.target, 60 * shape.target
        return end - seconds if begin <= seconds < end else shape.cost

    return cost


QUICK = SHAPES.filter(lambda shape: shape.overhead < 0.3 and shape.jitter < 0.3 and not shape.has_turns)


@FEWER
@given(QUICK, st.one_of(st.none(), st.floats(2, 300)))
def test_a_bolt_that_was_slow_is_fed_at_full_speed_again(shape: Shape, factor: float | None) -> None:
    """F14, W1, F9: a slowdown or a stall ends, what waits is worked off, and three targets later the rate is what it was.

    At no time more waits than two rounds at the old speed let in.
    """
    cost = standing_still_for_a_while(shape) if factor is None else slower_for_a_while(shape, factor)
    _, rounds = run(shape.scenario(cost), shape.seed, 200)
    before = [
        one for one in rounds if 20 * shape.target < one.began and one.began + one.seconds < 40 * shape.target
    ]
    most = max(one.emitted["s"] for one in before) * shape.fan_out
    begun = [one for one in rounds if one.began > 20 * shape.target]
    assert max(one.queued["b"] for one in begun) <= 2 * most + len(shape.spout_workers)
    workers = len(set(shape.bolt_workers))
    drained = next(
        one.began + one.seconds
        for one in rounds
        if one.began >= 60 * shape.target and one.queued["b"] * shape.cost <= shape.target * workers
    )
    after = [one for one in rounds if one.began >= drained + 3 * shape.target][:5]
    assert rate(after) >= 0.8 * rate(before)


LOADS = st.builds(
    SpoutLoad,
    emitted=st.integers(0, 10**7),
    hungry=st.booleans(),
    limited=st.booleans(),
    rows_waiting=st.integers(0, 10**9),
) | st.builds(
    BoltLoad,
    executed=st.integers(0, 10**7),
    seconds=st.floats(0, 1e4),
    queued=st.integers(0, 10**8),
    queued_bytes=st.integers(0, 10**12),
)
ROUNDS = st.lists(
    st.tuples(st.dictionaries(st.integers(1, 7), LOADS), st.floats(0, 1e4)), min_size=1, max_size=30
)


@given(ROUNDS, st.integers(1, 30))
def test_whatever_it_hears_its_limits_make_sense(
    rounds: list[tuple[dict[int, TaskLoad], float]], begins_anew: int
) -> None:
    """W1, F9: no figures, not even impossible ones, make it fail or stop a spout: each task may emit one tuple at least."""
    spouts = {"a": [1, 2], "b": [3]}
    controller = Controller(
        spouts, {"x": [4], "y": [5, 6], "z": [7]}, {"x": {"a"}, "y": {"a", "b"}}, target=1.0
    )
    for number, (loads, seconds) in enumerate(rounds):
        if number == begins_anew:
            controller.begin()
        controller.observe(loads, seconds)
        limits, pressure = controller.limits, controller.pressure()
        for name, tasks in spouts.items():
            limit = controller.limit_of(name)
            assert limit == pressure.spouts[name].limit
            assert {task for task in tasks if task in limits} == (set() if limit is None else set(tasks))
            if limit is not None:
                assert all(limits[task] >= 1 for task in tasks)
                assert sum(limits[task] for task in tasks) <= limit
            assert pressure.spouts[name].throttled_by in {None, OPEN_TREES, "x", "y"}
        assert pressure.limit_changes >= len(pressure.history) > 0


# The bolt is beside the spout, and a burst of it takes all of the spout's time and most of the round.
@example(Shape((0,), 1e-06, (0,), 1e-05, 0.125, 0.0, 20, 0.2, 0), 0.5, 376)
@example(Shape((0,), 5.46e-06, (0,), 4.11e-04, 0.1, 0.3, 0.5, 1.0, 999), 0.938, 1868)
@FEWER
@given(SHAPES, st.floats(0, 1), st.integers(1, 2000))
def test_a_source_with_little_is_never_held_up(shape: Shape, part: float, every: int) -> None:
    """F14: where bolts can do all that there is, all of it is done at once, in bursts or evenly, and no bolt is named."""
    a_target = part * 0.3 * shape.target / max(shape.seconds_of_a_tuple, 1e-5)

    def supply(seconds: float) -> float:
        return every * (seconds / shape.target * a_target // every)

    scenario = shape.scenario()
    (spout,) = scenario.spouts
    scenario = Scenario(
        [SimulatedSpout("s", spout.workers, spout.seconds, supply)],
        scenario.bolts,
        scenario.target,
        scenario.overhead,
        deadline=scenario.deadline,
    )
    controller = our_controller(scenario)
    simulation = Simulation(scenario, controller, Random(shape.seed))
    emitted = 0
    if every * shape.seconds_of_a_tuple > 0.5 * shape.target:
        return  # more at once than fits into a round
    while simulation.now < 40 * shape.target:
        emitted += (one := simulation.run_round()).emitted["s"]
        assert controller.pressure().spouts["s"].throttled_by is None
        assert one.queued["b"] == 0
        if one.began > 10 * shape.target:  # growing is over
            assert emitted >= supply(one.began) - 3 * every - len(spout.workers)
