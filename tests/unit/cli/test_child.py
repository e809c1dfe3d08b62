"""A program that a command runs: signals reach it, and its end is waited for."""

from __future__ import annotations

import signal
import threading

import pytest

from stormspark.cli.child import ChildProgram
from tests.waiting import PATIENCE_SECS

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FOR_EVER = "while :; do sleep 0.01; done"


@pytest.fixture(autouse=True)
def hangs_up():
    """Whoever started the tests with ``nohup`` has made them ignore what they send themselves."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def ran(script: str) -> int:
    """Run a script of the shell, and return its exit code. The script knows this process as its parent."""
    before = [signal.getsignal(number) for number in SIGNALS]
    with ChildProgram() as child:
        code = child.run(["/bin/sh", "-c", script])
    assert [signal.getsignal(number) for number in SIGNALS] == before
    return code


@pytest.mark.parametrize("name", ["TERM", "HUP"])
def test_a_signal_for_this_process_is_passed_on(name):
    assert ran(f"trap 'exit 7' {name}; kill -{name} $PPID; {FOR_EVER}") == 7


def test_the_terminal_tells_the_program_itself():
    """An interrupt ends neither of the two by way of this process."""
    assert ran("trap 'exit 7' INT TERM; kill -INT $PPID; sleep 0.05; exit 5") == 5


@pytest.mark.parametrize(
    ("script", "code"), [("kill -KILL $$", 137), (f"kill -TERM $PPID; {FOR_EVER}", 143), ("exit 3", 3)]
)
def test_a_signal_that_ends_the_program_is_told_as_by_shells(script, code):
    assert ran(script) == code


def test_in_another_thread_the_handlers_stay():
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(ran("exit 4")))
    thread.start()
    thread.join(PATIENCE_SECS)
    assert codes == [4]


def test_what_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert ran("kill -HUP $$; kill -HUP $PPID; exit 6") == 6
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_before_the_program_runs_a_signal_ends_this_process_by_an_exception():
    with pytest.raises(SystemExit) as ended, ChildProgram():
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 143
