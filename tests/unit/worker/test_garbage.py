"""Garbage is freed in bounded time, and what does not change is not looked at."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator

import pytest

from stormspark.worker.host.garbage import GarbageBetweenBatches


class Node:
    """Can be in a cycle, and be seen to go."""

    def __init__(self) -> None:
        self.me = self


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def garbage(clock: Clock) -> Iterator[GarbageBetweenBatches]:
    gc.collect()
    garbage = GarbageBetweenBatches(freeze=False, clock=clock)
    yield garbage
    garbage.end()
    assert gc.isenabled()


@pytest.fixture
def looks() -> Iterator[list[int]]:
    """The generations that were collected."""
    seen: list[int] = []

    def note(phase: str, about: dict[str, int]) -> None:
        if phase == "start":
            seen.append(about["generation"])

    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)


def batches(garbage: GarbageBetweenBatches, number: int, work: Callable[[], object]) -> None:
    for _ in range(number):
        work()
        garbage.collect()


def test_nobody_looks_where_nothing_grows(garbage: GarbageBetweenBatches, looks: list[int]) -> None:
    state = {n: [n] for n in range(100_000)}
    garbage.collect()
    assert looks == [1], "what is new is looked at once"
    looks.clear()
    batches(garbage, 100, lambda: [(n,) for n in range(1000)])
    assert looks == [] and len(state) == 100_000


@pytest.mark.slow
def test_cycles_are_freed_when_there_are_many(garbage: GarbageBetweenBatches, looks: list[int]) -> None:
    """Each node is two containers or so: at most some 10,000 of them wait."""
    alive: set[int] = set()

    def work() -> None:
        for _ in range(1000):
            node = Node()
            alive.add(id(node))
            weakref.finalize(node, alive.discard, id(node)).atexit = False

    batches(garbage, 40, work)
    assert set(looks) == {1}
    assert len(alive) <= 11_000


@pytest.mark.slow
def test_a_state_that_grows_is_looked_at_ever_less(garbage: GarbageBetweenBatches, looks: list[int]) -> None:
    state: list[list[int]] = []
    batches(garbage, 100, lambda: state.extend([n] for n in range(10_000)))
    assert 4 <= len(looks) <= 12, looks


@pytest.mark.slow
def test_few_cycles_and_old_ones_are_freed_after_a_time(garbage: GarbageBetweenBatches, clock: Clock) -> None:
    old = Node()
    gc.collect()  # it is old now
    gone = weakref.ref(old)
    del old
    garbage.collect()
    assert gone() is not None
    clock.now += 61.0
    garbage.collect()
    assert gone() is None


def test_a_process_that_has_the_collector_off_keeps_it_so(looks: list[int]) -> None:
    gc.disable()
    try:
        garbage = GarbageBetweenBatches(freeze=False)
        batches(garbage, 3, lambda: [Node() for _ in range(20_000)])
        garbage.end()
        assert looks == [] and not gc.isenabled()
    finally:
        gc.enable()
