"""Loops in the topology: the same on every engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from stormspark import Fields, Topology, TopologyBuilder
from tests.conformance.cycle_components import Round, TimedNumbers, acked_at

Run = Callable[..., Any]

_ROUNDS = 9


def loops(numbers: int) -> Topology:
    """Each number goes round between two bolts, and between the tasks of one bolt."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", TimedNumbers(numbers), parallelism=2)
    there = builder.set_bolt("there", Round(_ROUNDS), parallelism=2)
    there.shuffle_grouping("numbers").fields_grouping("back", Fields("n"))
    builder.set_bolt("back", Round(_ROUNDS), parallelism=3).shuffle_grouping("there")
    itself = builder.set_bolt("itself", Round(_ROUNDS), parallelism=3)
    itself.shuffle_grouping("numbers").shuffle_grouping("itself")
    return builder.create_topology("loops")


def rounds(done: Any, *components: str) -> Counter[tuple[int, int]]:
    """How often each number was executed with so many rounds left."""
    return Counter((n, left) for component in components for n, left, _ in done.effects(component))


def every_round_once(numbers: int) -> Counter[tuple[int, int]]:
    return Counter((n, left) for n in range(numbers) for left in range(_ROUNDS + 1))


def test_a_counted_loop_ends_and_its_message_is_acked_after_the_last_round(run: Run) -> None:
    """A15, E20, E22: between two bolts, and of a bolt that hears itself; what crosses workers goes on over batches."""
    done = run(loops(24))
    assert rounds(done, "there", "back") == rounds(done, "itself") == every_round_once(24)
    acked = acked_at(done.effects("numbers"))
    assert done.acked("numbers").total() == 24 == len(acked)
    for component in ("there", "back", "itself"):
        assert all(at <= acked[n] for n, _, at in done.effects(component))


def test_a_counted_loop_without_ackers(run: Run) -> None:
    """A15, E29: acks come inside emit; every round is executed all the same."""
    done = run(loops(24), {"topology.acker.executors": 0})
    assert rounds(done, "there", "back") == rounds(done, "itself") == every_round_once(24)
    assert done.acked("numbers") == Counter(range(24))


def test_a_fail_in_a_late_round_fails_its_message_once_and_no_other(run: Run) -> None:
    """Two tuples fail in late rounds of a loop: their messages fail once, and all others are acked (A15, E11, E22)."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", TimedNumbers(12), parallelism=2)
    itself = builder.set_bolt("itself", Round(7, fails=(5, 8), fails_at=1), parallelism=3)
    itself.fields_grouping("numbers", Fields("n")).shuffle_grouping("itself")
    done = run(builder.create_topology("late fail"))
    assert done.acked("numbers") == Counter(n for n in range(12) if n not in (5, 8))
    failed = sorted((fail.message, fail.outcome, fail.component) for fail in done.failed("numbers"))
    assert failed == [(n, "FAILED", "itself") for n in (5, 8)]
    assert rounds(done, "itself") == Counter(
        (n, left) for n in range(12) for left in range(8) if left or n not in (5, 8)
    )
