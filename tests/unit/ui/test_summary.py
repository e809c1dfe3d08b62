import io
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from stormspark.metrics import (
    DataPoint,
    LatencySummary,
    LongCall,
    TaskCounters,
    TopologyStatistics,
    summarise,
)
from stormspark.ui import print_summary
from tests.unit.scripted_topology import component


def printed(width: int = 200, **components):
    out = io.StringIO()
    statistics = TopologyStatistics(
        "words", "local", 10.0, 4, LatencySummary(1000.0, 990.0, 1200.0), components
    )
    print_summary(statistics, Console(file=out, width=width))
    return out.getvalue()


def test_the_headline_has_time_batches_and_speed():
    assert printed(bolt=component(executed=25_000)).splitlines()[0] == (
        "words on local: 10.0 s, 4 batches (990 ms p50, 1,200 ms p99), 2,500 tuples/s"
    )


def test_the_speed_is_that_before_the_stop():
    """The stop may wait ten seconds for a call, and the time of the run includes them."""
    out = io.StringIO()
    components = {"bolt": component(executed=25_000)}
    statistics = TopologyStatistics(
        "words", "local", 20.0, 4, LatencySummary(), components, before_stop=(24_000, 10.0)
    )
    print_summary(statistics, Console(file=out, width=200))
    assert out.getvalue().startswith("words on local: 20.0 s, 4 batches, 2,400 tuples/s")


def test_every_figure_of_a_component_has_its_column():
    text = printed(count=component(tasks=3, executed=1_234_567, acked=1_234_560, failed=7, errors=1))
    header, row = (line.split() for line in text.splitlines() if line.startswith(("component", "count")))
    assert header[:4] == ["component", "kind", "tasks", "emitted"]
    assert row == "count bolt 3 0 0 1,234,567 1,234,560 7 2.00 2.01 2.01 1".split()


def test_failed_trees_are_counted_by_their_reason():
    text = printed(lines=component("spout", failed=6, failed_by_bolt=3, timed_out=2, worker_lost=1))
    assert "6 (3/2/1)" in text
    assert "by a bolt/timed out/lost with a worker" in text


def test_the_last_error_is_shown_by_its_last_line():
    text = printed(split=component(errors=3, last_error="Traceback ...\n  File x\nValueError: no number\n"))
    assert "split: 3 errors, the last one reported: ValueError: no number" in text


def test_the_last_error_is_shown_with_the_line_that_raised_it():
    error = "split.py:7: Traceback (most recent call last):\n  File x\nValueError: no number\n"
    text = printed(split=component(errors=3, last_error=error))
    assert "split: 3 errors, the last one reported: split.py:7: ValueError: no number" in text


def test_the_last_error_is_the_one_at_the_end_of_a_chain_and_its_notes_are_left_out():
    error = (
        "more than 5 in 10 s are counted only\nsplit.py:7: Traceback (most recent call last):\n  File x\nSystemExit: 5\n\n"
        "The above exception was the direct cause of the following exception:\n\nRuntimeError: execute raised SystemExit: 5\nnote"
    )
    text = printed(split=component(errors=3, last_error=error))
    assert (
        "split: 3 errors, the last one reported: split.py:7: RuntimeError: execute raised SystemExit: 5\n"
        in text
    )


def test_messages_that_are_still_pending_are_counted_with_the_bolts_that_tuples_waited_for():
    """A13, C1: a stop begins no further calls, so trees stay open; `emitted - acked - failed` is for no reader to compute."""
    text = printed(
        numbers=component("spout", emitted=2177, acked=64, pending=2113),
        ask=component(queued=70),
        store=component(queued=1500),
        silent=component("spout", emitted=5, acked=5),
    )
    assert (
        "numbers: 2,113 messages still pending at the end, neither acked nor failed "
        "(1,500 tuples waited for store, 70 tuples waited for ask)\n"
    ) in text
    assert "silent: " not in text
    text = printed(numbers=component("spout", emitted=4, pending=3), ask=component())
    assert "numbers: 3 messages still pending at the end, neither acked nor failed\n" in text


def test_calls_that_had_not_returned_are_named_the_longest_first():
    """B1, C1: their tasks got no cleanup, and the exit code does not say so."""
    calls = tuple(LongCall(f"ask[{n}]", f"execute of ask[{n}] (ask.py:7)", 10.0 + n) for n in range(6))
    text = printed(ask=replace(component(), not_returned=calls))
    assert text.splitlines()[-5:] == [
        *(
            f"ask: execute of ask[{n}] (ask.py:7) had not returned after {10 + n} s, and the topology ended without it"
            for n in (5, 4, 3, 2)
        ),
        "ask: more tasks whose calls had not returned: 2",
    ]


def test_the_other_calls_of_the_same_task_are_counted():
    """B1, C1."""
    calls = (LongCall("ask[0]", "execute of ask[0] (ask.py:7)", 10.0, 19),)
    line = printed(ask=replace(component(), not_returned=calls)).splitlines()[-1]
    assert line == (
        "ask: execute of ask[0] (ask.py:7) had not returned after 10 s (and 19 others), and the topology ended without them"
    )


def test_the_tuples_that_a_child_had_left_are_counted():
    """I6, C1: one child works on them one after another, so they are no calls side by side."""
    calls = (LongCall("slow[0]", "the child of slow[0]", 10.0, tuples=64),)
    line = printed(slow=replace(component(), not_returned=calls)).splitlines()[-1]
    says = "the child of slow[0] had 64 tuples left after 10 s, and the topology ended without them"
    assert line == f"slow: {says}"


@pytest.mark.parametrize("width", [70, 80, 100, 120, 200])
def test_a_narrow_terminal_loses_columns_and_no_digits(width):
    text = printed(width, sentences=component("spout", emitted=123_456_789, acked=123_456_789))
    assert "…" not in text
    table = [line for line in text.splitlines() if line.startswith("sentences")]
    assert table[0].count("123,456,789") == 2
    assert len(table) == 1


def test_a_component_that_measured_nothing_shows_a_dash():
    assert printed(idle=component()).splitlines()[3].split()[-4:-1] == ["-", "-", "-"]


def test_users_metrics_are_printed_with_their_tasks():
    """J18: the newest reading of each task, a few of them."""
    points = {task: DataPoint("count", task, "words", task * 10, 0, 60.0) for task in range(3, 9)}
    text = printed(count=summarise("bolt", 6, [TaskCounters()], None, {"words": points}))
    assert "count: words 30 [3], 40 [4], 50 [5], 60 [6], 2 more tasks" in text


def test_names_and_errors_are_printed_as_they_are():
    """Brackets are no markup, and what a tuple's values bring into an error does nothing to the terminal."""
    named: dict[str, Any] = {"b[/x]": component(errors=1, last_error="ValueError: [red]\x1b[2J\ud83d")}
    text = printed(**named)
    assert re.search(r"^b\[/x\] +bolt", text, re.MULTILINE), text
    assert r"b[/x]: 1 error: ValueError: [red]\x1b[2J\ud83d" in text
