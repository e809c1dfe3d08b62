"""When the input has ended, in which order bolts flush, and when the topology is done."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from stormspark.driver.end_of_input import EndOfInput, InputState
from stormspark.metrics import TaskCounters
from stormspark.worker.step import WorkerReport

SPOUT, BOLT, LAST = 0, 1, 2


def end(turns: int = 2, *, flushes: bool = True, loop: bool = False, **options: Any) -> EndOfInput:
    """The end of the input of a spout and bolts that flush in so many turns."""
    bolts = [f"bolt {turn}" for turn in range(1, turns + 1)]
    edges = [
        SimpleNamespace(source=one, target=other)
        for one, other in zip(["spout", *bolts], bolts, strict=False)
    ]
    if loop:
        edges.append(SimpleNamespace(source=bolts[-1], target=bolts[-1]))
    plan: Any = SimpleNamespace(
        topology="t",
        settings=SimpleNamespace(flush_at_end=flushes),
        flush_turns={bolt: turn for turn, bolt in enumerate(bolts, 1)},
        components={name: SimpleNamespace(kind=name.split()[0]) for name in ("spout", *bolts)},
        tasks={
            SPOUT: SimpleNamespace(component="spout"),
            BOLT: SimpleNamespace(component="bolt 1"),
            LAST: SimpleNamespace(component=bolts[-1] if bolts else "bolt 1"),
        },
        edges=edges,
        sources=(),
    )
    return EndOfInput(plan, **options)


def batch(
    of: EndOfInput,
    *,
    done: bool | None = True,
    emitted: int = 5,
    acked: int = 0,
    failed: int = 0,
    pending: int = 0,
    backlog: int = 0,
    executed: int = 0,
    held: int = 0,
    calls: int = 0,
    **options: Any,
) -> tuple[bool, int]:
    """One batch; gives the orders for the next one."""
    counters = {
        SPOUT: TaskCounters(emitted=emitted, acked=acked, failed=failed, pending=pending),
        BOLT: TaskCounters(executed=executed),
        LAST: TaskCounters(waiting_calls=calls),
    }
    report = WorkerReport(
        0,
        0,
        0,
        counters,
        (),
        None,
        backlog,
        spouts_done={"spout": done},
        held={"bolt 1": held} if held else {},
    )
    of.observe([report], **{"now": 0.0, **options})
    return of.has_ended, of.flushes


def test_bolts_flush_in_turns_once_all_spouts_are_done() -> None:
    of = end()
    assert batch(of, pending=5) == (False, 0)  # it has just emitted
    assert batch(of, pending=5) == (True, 1)
    assert batch(of, pending=5) == (True, 2)
    assert batch(of, acked=5) == (True, 0)
    assert of.is_done


def test_a_turn_waits_for_what_the_turn_before_has_emitted() -> None:
    of = end()
    batch(of, pending=5)
    assert batch(of, pending=5) == (True, 1)
    for _ in range(3):
        assert batch(of, pending=5, backlog=1) == (True, 0)
        assert of.state is InputState.DRAINING
    assert batch(of, pending=5) == (True, 2)


@pytest.mark.parametrize(
    "way", [{"done": False}, {"done": None}, {"backlog": 1}, {"came": 3}, {"sources_done": False}]
)
def test_the_input_goes_on(way: dict[str, Any]) -> None:
    of = end()
    assert all(batch(of, **way) == (False, 0) for _ in range(9))


def test_a_spout_that_does_not_say_ends_with_available_now_when_it_is_quiet() -> None:
    of = end(available_now=True, patience_secs=5.0)
    assert [batch(of, done=None, now=float(at))[0] for at in range(8)] == [*[False] * 5, True, True, True]
    of = end(available_now=True)
    assert not any(batch(of, done=False)[0] for _ in range(8))


def test_a_silent_spout_has_a_second_by_default() -> None:
    """On Spark, two quiet batches may take a tenth of that."""
    of = end(available_now=True)
    assert [batch(of, done=None, now=at / 4)[0] for at in range(8)] == [*[False] * 4, True, True, True, True]


def test_calls_of_an_async_bolt_may_wait_for_its_flush_and_those_behind_it_for_them() -> None:
    of = end(2)
    waits: dict[str, Any] = {"backlog": 3, "calls": 3, "pending": 3}
    batch(of, **waits)
    assert batch(of, **waits) == (True, 1)
    assert batch(of, **waits) == (True, 2)
    assert batch(of, backlog=3, pending=3) == (True, 0), "they go on"
    assert batch(of, executed=1, **waits) == (True, 0), "something has come again"
    assert [batch(of, executed=1, **waits) for _ in range(2)] == [(True, 0), (True, 1)], "another pass"


def test_the_user_ends_the_input_whatever_spouts_say() -> None:
    of = end()
    assert not any(batch(of, done=False)[0] for _ in range(5))
    of.end()
    assert batch(of, done=False) == (True, 1)
    assert of.is_near


def test_what_has_failed_in_a_flush_is_waited_for_and_flushed_again() -> None:
    of = end(1)
    batch(of, pending=5)
    assert batch(of, pending=5) == (True, 1)
    assert batch(of, failed=5) == (True, 0)
    assert of.state is InputState.WAITING
    assert batch(of, failed=5, done=False) == (True, 0)
    assert batch(of, failed=5, emitted=10, pending=5) == (True, 0)
    assert batch(of, failed=5, emitted=10, pending=5) == (True, 1)
    batch(of, failed=5, emitted=10, acked=5)
    assert of.is_done


def test_what_bolts_still_hold_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    of = end(1)
    with caplog.at_level(logging.WARNING):
        for _ in range(9):
            batch(of, pending=5, held=3)
    assert of.state is InputState.WAITING
    (said,) = caplog.messages
    assert "5 messages are pending (tuples: 3 that bolt 1 holds)" in said
    batch(of, acked=5)
    batch(of, acked=5)
    assert of.is_done


def test_bolts_of_a_loop_flush_again_while_it_goes_on() -> None:
    of = end(1, loop=True)
    passes = sum(batch(of, pending=1, executed=at)[1] for at in range(2000))
    assert 100 < passes < 110  # then it waits until something is acked or fails
    of = end(1)
    assert sum(batch(of, pending=1, executed=at)[1] for at in range(2000)) <= 2


def test_a_result_that_comes_after_the_flush_of_its_bolt_is_flushed_in_another_pass() -> None:
    """It comes from a thread of an earlier bolt's own. It hung, as the end of its tree waited for a flush that did not come."""
    of = end(1)
    batch(of, pending=5)
    assert batch(of, pending=5) == (True, 1)
    assert [batch(of, pending=5) for _ in range(5)] == [(True, 0)] * 5
    assert batch(of, pending=5, executed=5, held=5) == (True, 1)
    assert batch(of, acked=5, executed=5) == (True, 0)
    assert of.is_done


def test_results_without_trees_are_flushed_too_but_only_once() -> None:
    """Ticks may bring more of them for ever."""
    of = end(1)
    passes = sum(batch(of, executed=at)[1] for at in range(9))
    assert of.is_done and passes == 2


def test_results_without_trees_are_flushed_too_after_passes_for_results_in_trees() -> None:
    """Passes for trees that have ended do not count as the single pass. The results were lost."""
    of = end(1)
    batch(of, pending=5)
    passes = sum(batch(of, pending=5, executed=at, held=5)[1] for at in range(6))
    assert passes > 1
    for _ in range(3):
        batch(of, pending=5, executed=6, held=5)
    assert sum(batch(of, acked=5, executed=8)[1] for _ in range(9)) == 1
    assert of.is_done


def test_a_lost_worker_begins_anew() -> None:
    of = end()
    batch(of, pending=5)
    batch(of, pending=5)
    of.begin_attempt()
    assert batch(of, emitted=10, pending=5) == (False, 0)
    assert batch(of, emitted=10, pending=5) == (True, 1)


def test_without_flushes_open_trees_are_left_to_the_next_run() -> None:
    of = end(flushes=False)
    batch(of, pending=5)
    batch(of, pending=5)
    assert of.is_done and not of.flushes
