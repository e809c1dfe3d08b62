"""B1: which calls of user code are named, and how often."""

import pytest

from stormspark.driver.slow_calls import SlowCalls
from stormspark.user_line import CodePlace
from stormspark.worker.busy import Busy

PLACE = CodePlace("execute", "split.py:7")


@pytest.fixture
def said(caplog):
    def said():
        messages = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return messages

    return said


def test_a_call_is_named_when_it_is_late_and_when_that_has_doubled(said):
    calls = SlowCalls(0, 10.0, limits_starts=True)
    warned = []
    for seconds in range(50):
        calls.look_at([Busy("split[0]", float(seconds), alone=True, place=PLACE)])
        if said():
            warned.append(seconds)
    assert warned == [10, 20, 40]


def test_the_call_after_one_that_has_returned_is_named_anew(said):
    calls = SlowCalls(0, 10.0, limits_starts=True)
    for seconds in (11.0, 2.0, 12.0):
        calls.look_at([Busy("split[0]", seconds)])
    assert len(said()) == 2


def test_the_tasks_of_a_component_are_named_once(said):
    calls = SlowCalls(0, 10.0, limits_starts=True)
    split = [Busy(f"split[{n}]", 10.0 + n, alone=True, place=PLACE) for n in range(20)]
    calls.look_at([*split, Busy("count[0]", 10.0, alone=True), Busy("join[0]", 9.0, alone=True)])
    of_split, of_count = said()
    assert of_split.startswith(
        "execute of split[19] (split.py:7) has not returned for 29 s; only its own executor in worker 0"
    )
    assert of_split.endswith("; more tasks of split in such a call: 19")
    assert of_count.startswith("the code of count[0] has not returned for 10 s")


@pytest.mark.parametrize(
    ("busy", "text"),
    [
        (
            Busy("split[0]", 10.0, place=PLACE),
            "worker 3 has been in execute of split[0] (split.py:7) for 10 s, and the topology",
        ),
        (
            Busy("split[0]", 10.0, opens=True),
            "worker 3 is not ready yet, and the topology waits for it: it has been in split[0]",
        ),
        (Busy("a[0]", 10.0, alone=True, of_spout=True), "next_tuple of a[0] has not returned for 10 s"),
        (
            Busy("ask[0]", 10.0, True, awaits=True, starts_again=True, place=CodePlace("prepare", "a.py:1")),
            "prepare of ask[0] (a.py:1) in worker 3 has not returned for 10 s: the task starts again, and its tuples",
        ),
        (
            Busy("ask[0]", 10.0, alone=True, awaits=True, place=PLACE),
            "execute of ask[0] (split.py:7) in worker 3 has not returned for 10 s: other calls of the task go on, and its tuple",
        ),
        (
            Busy("ask[0]", 10.0, alone=True, awaits=True, place=PLACE, others=7, all_places=8),
            "execute of ask[0] (split.py:7) in worker 3 has not returned for 10 s: all 8 places of the task are taken, and its",
        ),
        (
            Busy("ask[0]", 10.0, alone=True, awaits=True, place=PLACE, cancelled_after=2.5),
            "execute of ask[0] (split.py:7) in worker 3 has not returned for 10 s: it was cancelled after 2.5 s (timeout_secs), "
            "but it goes on and keeps its place: let asyncio.CancelledError through; other calls of the task go on",
        ),
        (
            Busy("a[0]", 10.0, alone=True, of_spout=True, awaits=True, place=CodePlace("ack", "a.py:1")),
            "ack of a[0] (a.py:1) in worker 3 has not returned for 10 s: the spout hears of nothing else until it returns",
        ),
        (
            Busy("a[0]", 10.0, place=CodePlace("<lambda>", "a.py:1")),
            "worker 3 has been in the code of a[0] (a.py:1) for",
        ),
    ],
)
def test_a_warning_says_whose_code_it_is_and_who_waits(busy, text, said):
    SlowCalls(3, 10.0, limits_starts=True).look_at([busy])
    assert said()[0].startswith(text)


@pytest.mark.parametrize("awaits", [True, False])
def test_a_call_that_a_stop_waits_for_is_named_as_such(awaits, said):
    """B1, E10: other calls of the task do not go on, and its tuple does not time out any more."""
    calls = SlowCalls(3, 10.0, limits_starts=True)
    calls.look_at([Busy("ask[0]", 12.0, alone=True, awaits=awaits, place=PLACE)], stops=True)
    assert said() == [
        "execute of ask[0] (split.py:7) in worker 3 has not returned for 12 s: the topology stops, and waits for such calls at "
        "most 10 s"
    ]


def test_a_call_on_the_workers_thread_that_a_stop_waits_for_has_a_longer_limit(said):
    """The topology need not be killed, because the stop gives the call up."""
    SlowCalls(3, 10.0, limits_starts=True).look_at([Busy("split[0]", 12.0, place=PLACE)], stops=True)
    assert said()[0].endswith(
        "has not returned for 12 s: the topology stops, and waits for such calls at most 60 s"
    )


def test_a_coroutine_that_blocks_the_loop_is_named_at_once_and_then_ever_more_rarely(said, monkeypatch):
    now = 1000.0
    monkeypatch.setattr("stormspark.driver.slow_calls.time.monotonic", lambda: now)
    calls = SlowCalls(0, 10.0, limits_starts=True)
    warned = []
    for seconds in range(50):
        now = 1000.0 + seconds
        # It returns again and again, and blocks the loop again.
        calls.look_at([Busy("ask[0]", 1.5, alone=True, on_loop=True, place=PLACE)] if seconds % 2 else [])
        if messages := said():
            warned.append(seconds)
            assert messages[0].startswith(
                "execute of ask[0] (split.py:7) has blocked the event loop of worker 0 for 2 s"
            )
            assert "asyncio.to_thread" in messages[0]
    assert warned == [1, 11, 31]


@pytest.mark.parametrize("limits_starts", [True, False])
def test_a_setting_is_named_only_where_it_has_an_effect(limits_starts, said):
    SlowCalls(0, 10.0, limits_starts=limits_starts).look_at([Busy("split[0]", 10.0, opens=True)])
    assert said()[0].endswith("set stormspark.prepare.timeout.secs to limit that") is limits_starts
