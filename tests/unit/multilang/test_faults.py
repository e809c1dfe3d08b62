"""Children that die, hang, flood, fork, or say what they may not: an error that says so, and nothing left behind."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from stormspark.errors import MultilangError
from stormspark.multilang import ShellBolt, reaper
from stormspark.multilang.reaper import Reaper
from tests.legacy.multilang.languages import CHILDREN
from tests.unit.multilang.rig import Obedient, is_alive, until

pytestmark = pytest.mark.slow  # each test starts a process

QUICK = {"topology.subprocess.timeout.secs": 1}


def error_of(rig: Obedient) -> str:
    """What the child's end is told as."""
    with pytest.raises(MultilangError) as error:
        rig.serve(lambda: False)
    return str(error.value)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"command": "dance"}, "a bolt may send emit, ack, fail, log, error, metrics or sync"),
        ({"commando": "emit"}, "a bolt may send"),
        ({"command": "ack", "id": "77"}, "there is no tuple '77', or it was acked or failed already"),
        ({"command": "ack", "id": 1}, "there is no tuple 1"),
        ({"command": "ack", "id": [1]}, "unhashable"),
        ({"command": "fail"}, "there is no tuple None"),
        ({"command": "emit", "tuple": [1, 2], "anchors": ["77"]}, "there is no tuple '77' to anchor to"),
        ({"command": "emit", "tuple": [1, 2], "stream": "none"}, "Unknown stream ID 'none'"),
        ({"command": "emit", "tuple": [1]}, "wrong number of fields: expected 2 (what, value), got 1"),
        ({"command": "emit", "tuple": "ab"}, "a tuple must be a list of values, got 'ab'"),
        ({"command": "emit"}, "a tuple must be a list of values, got None"),
        ({"command": "emit", "tuple": [1, 2], "task": 4}, "not declared direct"),
        ({"command": "emit", "tuple": [1, 2], "task": "4"}, "a task must be a number, got '4'"),
        ({"command": "metrics", "params": 1}, "a metric must have a name"),
        ([1, 2], "a bolt may send"),
    ],
)
def test_what_a_child_may_not_say_ends_it_and_is_quoted(said: Any, why: str) -> None:
    """I12, W22, E14: one rule, and an error that names component, task, command and message."""
    with Obedient() as rig:
        pid = rig.pid
        rig.give("write", json.dumps(said) + "\nend\n")
        error = error_of(rig)
        for part in ("bolt 'obey', task 1 (obey[0])", "obey.py", f"pid {pid}", json.dumps(said), why):
            assert part in error
        assert not is_alive(pid)


def test_a_second_ack_and_an_emit_after_the_ack_are_errors() -> None:
    """I12: Storm's worker dies of both."""
    with Obedient() as rig:
        rig.give("ack twice")
        assert "there is no tuple '1', or it was acked or failed already" in error_of(rig)
    with Obedient() as rig:
        rig.give("emit after ack")
        assert "there is no tuple '1' to anchor to" in error_of(rig)


@pytest.mark.parametrize("noise", ["Hello from print\n", "{'command': 'ack'}\nend\n", "\x00\x01\n"])
def test_prints_between_messages_are_errors_that_quote_them(noise: str) -> None:
    """I1: nothing hangs."""
    with Obedient() as rig:
        rig.give("write", noise)
        error = error_of(rig)
        assert repr(noise.splitlines()[0]) in error and "it is not JSON" in error
        assert "print to stderr" in error


def test_half_a_message_is_shown_when_its_child_ends() -> None:
    """When a child ends in the middle of a message, the error shows that half (I12)."""
    with Obedient() as rig:
        rig.give("half", '{"command": "emi')
        error = error_of(rig)
    assert "ended with exit code 3" in error
    assert '{"command": "emi' in error


def test_a_child_that_dies_is_reported_with_its_last_words() -> None:
    """B14, W22: exit code or signal, and stderr."""
    with Obedient() as rig:
        rig.give("die", 3)
        error = error_of(rig)
        assert "ended with exit code 3" in error
        assert "its last lines on stderr:\n  Traceback: it was too much" in error
    with Obedient() as rig:
        rig.give("kill")
        assert "was killed by SIGKILL" in error_of(rig)
    with Obedient() as rig:
        rig.give("close")
        assert "closed its output, but did not end" in error_of(rig)


def test_only_the_last_lines_of_stderr_are_shown() -> None:
    """The error shows only the last lines that the child wrote to stderr (I1)."""
    with Obedient() as rig:
        rig.do("flood", 500)
        rig.give("die", 1)
        error = error_of(rig)
    assert "line 499" in error and "line 479" not in error


def test_a_flood_on_stderr_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """I1, I13: it is read while nobody serves the child, and at most a thousand lines a second are logged."""
    caplog.set_level(logging.INFO)
    with Obedient() as rig:
        rig.do("flood", 30_000)
        rig.do("echo", 1)
        assert rig.last() == 1
        rig.context.advance_time(1)
        assert 900 < sum("stderr: line" in record.getMessage() for record in caplog.records) <= 1000
        assert "more lines, too many to log" in caplog.text


def test_a_child_that_hangs_is_killed_and_named() -> None:
    """I13, W9: in a tuple, and before it has begun."""
    with Obedient(conf=QUICK) as rig:
        pid = rig.pid
        rig.give("sleep", 60)
        error = error_of(rig)
        assert "gave no sign of life for" in error and "topology.subprocess.timeout.secs is 1" in error
        assert not is_alive(pid)
    with pytest.raises(MultilangError, match="gave no sign of life"), Obedient("silence", conf=QUICK):
        pass


def test_a_child_with_a_long_queue_is_not_taken_for_stuck() -> None:
    """I13, W9: its heartbeat waits behind two seconds of work, and all that it does is a sign of life."""
    with Obedient(conf=QUICK) as rig:
        for _ in range(20):
            rig.give("sleep", 0.1)
        time.sleep(2.5)  # nobody listens meanwhile, and that is not its fault either
        rig.settle()
        assert len(rig.collector.acked) == 20


def test_a_child_whose_task_is_elsewhere_is_not_taken_for_stuck() -> None:
    """I13, W9: more is for it than the pipe holds, and nobody writes or reads for some seconds."""
    with Obedient(conf=QUICK) as rig:
        for _ in range(90):
            rig.give("hold", "x" * 3000)
        time.sleep(4)
        rig.settle()
        rig.tick()
        rig.serve(lambda: len(rig.collector.acked) == 90)


def test_heartbeats_come_while_nothing_else_does() -> None:
    """I13: once a second, and no second one before the first is answered."""
    with Obedient() as rig:
        begun = time.monotonic()
        rig.serve(lambda: time.monotonic() - begun > 2.5)
        rig.do("heartbeats")
        assert 1 <= rig.last() <= 4


def test_the_end_takes_along_what_a_child_has_forked() -> None:
    """W9: at a graceful end, at a restart, and when the child dies first."""
    for order in ("cleanup", "let_go", "die"):
        with Obedient() as rig:
            rig.do("fork")
            pids = [rig.pid, rig.last()]
            assert all(map(is_alive, pids))
            if order == "die":
                rig.give("die", 0)  # what it has forked holds its output open
                assert "ended with exit code 0" in error_of(rig)
            else:
                getattr(rig.bolt, order)()
            assert not is_alive(pids[0]), order
            until(lambda: not is_alive(pids[1]))  # noqa: B023 - called here and now; killed, and gone in a moment


_OWNER = """
    import sys, threading
    from tests.unit.multilang.rig import Obedient

    rig = Obedient()
    rig.__enter__()
    rig.do("fork")
    print(rig.pid, rig.last(), flush=True)
    threading.Event().wait() if sys.argv[1] == "killed" else None
"""


@pytest.mark.parametrize("end", ["killed", "exits"])
@pytest.mark.faults
def test_nothing_outlives_the_process_that_started_it(end: str, tmp_path: Path) -> None:
    """W9: whether it ends by itself, with a child left over, or by kill -9."""
    environment = {**os.environ, "PYTHONPATH": os.getcwd(), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", textwrap.dedent(_OWNER), end]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as owner:
        assert owner.stdout is not None
        pids = list(map(int, owner.stdout.readline().split()))
        assert len(pids) == 2
        if end == "killed":
            assert all(map(is_alive, pids))
            owner.send_signal(signal.SIGKILL)
        owner.wait(20)
    until(lambda: not any(map(is_alive, pids)))
    until(lambda: not list(tmp_path.iterdir()))  # its folder is gone too


def test_a_watchman_that_was_killed_is_replaced() -> None:
    """When the process that watches children is killed, a new one watches the old children too (W9)."""
    guard = Reaper()
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as child:
        guard.add(child.pid)
        watchman = guard._watchman
        assert watchman is not None
        watchman.kill()
        watchman.wait()
        with subprocess.Popen(["sleep", "600"], start_new_session=True) as other:
            guard.add(other.pid)
            guard.remove(other.pid)
            guard.close()
            assert child.wait(10) == -signal.SIGKILL
            assert other.poll() is None
            other.kill()


def test_there_is_one_reaper_a_process() -> None:
    """A process has one reaper (W9)."""
    assert reaper.reaper() is reaper.reaper()


@pytest.mark.parametrize(
    ("start", "said"),
    [
        ("exit", "ended with exit code 7\nits last lines on stderr:\n  no such library"),
        ("noise", "sent 'starting up': it is not JSON"),
        ("emit", 'sent {"command": "emit", "tuple": [1]}: its first message must be its process id'),
    ],
)
def test_a_child_that_does_not_begin_well_stops_the_topology(start: str, said: str) -> None:
    """I2: what prepare raises does (W22)."""
    with pytest.raises(MultilangError) as error, Obedient(start):
        pass
    assert said in str(error.value)


def test_a_child_may_log_before_it_says_its_process_id(caplog: pytest.LogCaptureFixture) -> None:
    """A child may log before it sends its process id (I2, I10)."""
    caplog.set_level(logging.INFO)
    with Obedient("log"):
        assert "still starting" in caplog.text


@pytest.mark.parametrize("command", [["no-such-program-anywhere"], [str(CHILDREN / "obey.py")]])
def test_a_command_that_can_not_be_run_is_named(command: list[str]) -> None:
    """A command that can't be started is named, with its folder and the task (I3)."""
    with pytest.raises(MultilangError) as error, Obedient(bolt=ShellBolt(command, cwd=CHILDREN)):
        pass
    for part in ("its child can't be started", command[0], str(CHILDREN), "task 1"):
        assert part in str(error.value)
