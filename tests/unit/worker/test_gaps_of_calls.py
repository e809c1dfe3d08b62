"""Between supersteps the calls of async bolts follow each other, because a gap may be longer than a call (A16)."""

from __future__ import annotations

import time

from tests.unit.worker.test_async_components import ROWS, Calls, Scene
from tests.waiting import PATIENCE_SECS


def test_a_free_place_of_an_async_bolt_is_taken_between_two_supersteps() -> None:
    scene = Scene(Calls(capacity=2))
    scene.under_way(0, 1)
    (worker,) = scene.rig.workers
    assert worker.spare_time.fill_gap() and set(scene.bolt.waiting) == {0, 1}, "all places are taken"
    scene.bolt.end(0)
    deadline = time.monotonic() + PATIENCE_SECS
    while set(scene.bolt.waiting) != {1, 2}:
        assert time.monotonic() < deadline, "the next call has never begun"
        assert worker.spare_time.fill_gap()
    assert scene.keep.came == [], "what the call has emitted waits for the next superstep"
    scene.until(lambda: scene.keep.came == [0])
    scene.close()


def test_nothing_is_done_where_no_tuple_waits_for_an_async_bolt() -> None:
    scene = Scene(Calls(capacity=len(ROWS)))
    scene.under_way(*range(len(ROWS)))
    (worker,) = scene.rig.workers
    scene.bolt.end(0)
    deadline = time.monotonic() + PATIENCE_SECS
    while worker.spare_time.fill_gap():  # on a busy machine, the spout may have the rest of a quantum first
        assert time.monotonic() < deadline, "the worker spins"
    scene.close()


def test_nothing_is_done_while_a_bolt_that_has_no_call_under_way_takes_no_tuple() -> None:
    """The worker would spin until the next superstep, which may be a restart's pause away."""
    scene = Scene(Calls(capacity=1))
    scene.under_way(0)
    (worker,) = scene.rig.workers
    (calls,) = (bolt for bolt in worker.wiring.bolts if bolt.works_outside)
    assert calls.waiting
    worker.limit_waiting()
    for task in worker.tasks.values():
        task.begins_no_call = True
    scene.bolt.end(0)
    deadline = time.monotonic() + PATIENCE_SECS
    while worker.spare_time.fill_gap():
        assert time.monotonic() < deadline, "the worker spins"
    assert calls.waiting and not calls.outside
    scene.close()
