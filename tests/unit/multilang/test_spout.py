"""What a `ShellSpout` and its child say to each other."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest

from stormspark.acker import Outcome, Verdict
from stormspark.errors import MultilangError
from stormspark.multilang import ShellSpout
from stormspark.testing import RecordingSpoutCollector, make_context
from tests.legacy.multilang.languages import CHILDREN
from tests.unit.multilang.rig import is_alive

pytestmark = pytest.mark.slow  # each test starts a process


def counting(*arguments: str, conf: Any = None) -> tuple[ShellSpout, RecordingSpoutCollector]:
    spout = ShellSpout([sys.executable, "counting.py", *arguments], ["n"], cwd=CHILDREN)
    collector = RecordingSpoutCollector(spout, name="counting", receivers=[7])
    spout.open({**(conf or {})}, make_context("counting", spout), collector)
    return spout, collector


def test_a_spout_emits_and_hears_of_verdicts_in_turn(caplog: pytest.LogCaptureFixture) -> None:
    """I4, I5: ids may be whatever JSON has, and come back as they were."""
    caplog.set_level(logging.INFO)
    spout, collector = counting("5")
    try:
        spout.activate()
        for _ in range(6):
            spout.next_tuple()
        assert collector.values() == [(n,) for n in range(5)]
        ids = [emitted.message_id for emitted in collector.emitted]
        assert len(set(ids)) == 5
        for message_id in ids:
            assert message_id is not None
            spout.ack(message_id)
        assert ids[0] is not None
        spout.fail(ids[0])
        spout.next_tuple()
        assert collector.values()[-1] == (5,)
        spout.deactivate()
    finally:
        spout.close()
    said = [record.getMessage() for record in caplog.records]
    expected = [
        "activate",
        *["tasks [7]"] * 5,
        "ack 0",
        'ack "id 1"',
        'ack {"n": 2}',
        'ack [3, "x"]',
        "ack 4.5",
        "fail 0",
    ]
    assert [line for line in said if not line.startswith("child")] == [*expected, "tasks [7]", "deactivate"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("die",), "ended with exit code 4\nits last lines on stderr:\n  no more"),
        (("odd", "print me"), "sent 'print me': it is not JSON"),
        (("odd", '{"command": "ack"}\nend'), "a spout may send emit, log, error, metrics or sync"),
        (("odd", "{}\nend"), 'a message must be an object with a "command"'),
        (("odd", '{"command": "emit", "tuple": [1, 2]}\nend'), "wrong number of fields"),
        (("odd", '{"command": "emit", "tuple": [1], "stream": "no"}\nend'), "Unknown stream ID"),
    ],
)
def test_a_mistake_ends_the_child_and_the_error_says_why(arguments: tuple[str, ...], said: str) -> None:
    """Each mistake of a spout's child ends the child, and the error names the spout and the mistake (I12, B14)."""
    spout, _ = counting(*arguments)
    try:
        talk = spout._talk
        assert talk is not None
        pid = talk.child.pid
        with pytest.raises(MultilangError) as error:
            spout.next_tuple()
        for part in ("spout 'counting', task 1", "counting.py", said):
            assert part in str(error.value)
        assert not is_alive(pid)
        spout.ack(1)  # nobody is there to be told
    finally:
        spout.close()


def test_a_spout_that_hangs_is_killed_and_named() -> None:
    """I13: the worker waits for its sync, and the timeout runs."""
    spout, _ = counting("hang", conf={"topology.subprocess.timeout.secs": 1})
    try:
        with pytest.raises(MultilangError, match="gave no sign of life"):
            spout.next_tuple()
    finally:
        spout.close()


class Later:
    """Raises out of an emit, as a worker does where the instance ends while ``next_tuple`` is suspended there."""

    verdict = Verdict(Outcome.FAILED, None, "x", 1)

    def emit(self, *args: Any, **kwargs: Any) -> list[int]:
        raise GeneratorExit


class Suspended(RecordingSpoutCollector):
    """Does something inside an emit, as other tasks of a worker do while ``next_tuple`` is suspended there."""

    meanwhile: Callable[[], None]

    def emit(self, *args: Any, **kwargs: Any) -> list[int]:
        self.meanwhile()
        return super().emit(*args, **kwargs)


def test_what_comes_while_an_emit_is_suspended_is_delivered_afterwards(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """B13, I4: a topology may be deactivated meanwhile; the child does one thing after the other."""
    caplog.set_level(logging.INFO)
    spout, _ = counting("3")
    talk = spout._talk
    assert talk is not None
    talk._collector = collector = Suspended(spout, receivers=[7])
    collector.meanwhile = spout.deactivate
    try:
        spout.next_tuple()
    finally:
        spout.close()
    assert [record.getMessage() for record in caplog.records][1:] == ["tasks [7]", "deactivate"]


def test_a_spout_that_is_cut_off_inside_an_emit_ends_quietly() -> None:
    """B1: nothing more can be said to a child that waits for task ids, and nobody hangs."""
    spout, _ = counting("3")
    talk = spout._talk
    assert talk is not None
    talk._collector = Later()  # type: ignore[assignment]
    with pytest.raises(GeneratorExit):
        spout.next_tuple()
    assert not is_alive(talk.child.pid)
    spout.deactivate()
    spout.close()
    spout.close()
