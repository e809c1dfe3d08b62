"""A program that a command runs: signals reach it, and its end is waited for."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from stormspark.cli.child import ChildProgram
from tests.waiting import PATIENCE_SECS

pytestmark = pytest.mark.usefixtures("hangs_up")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FOR_EVER = "while :; do sleep 0.01; done"


def ran(script: str, inner: Path | None = None) -> int:
    """Run a script of the shell, and return its exit code. The script knows this process as its parent."""
    before = [signal.getsignal(number) for number in SIGNALS]
    with ChildProgram() as child:
        code = child.run(["/bin/sh", "-c", script], inner)
    assert [signal.getsignal(number) for number in SIGNALS] == before
    return code


@pytest.mark.parametrize("name", ["TERM", "HUP"])
def test_a_signal_for_this_process_is_passed_on(name):
    assert ran(f"trap 'exit 7' {name}; kill -{name} $PPID; {FOR_EVER}") == 7


def test_an_interrupt_is_passed_on_once():
    """The program has a session of its own, so the terminal tells only this process."""
    assert ran(f"trap 'exit 7' INT; kill -INT $PPID; {FOR_EVER}") == 7
    assert ran("[ $(ps -o sid= -p $$) = $$ ] && exit 6") == 6


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP"])
def test_a_signal_comes_to_the_program_that_the_program_has_started(tmp_path, name):
    """And the first one does what it does when that one has ended: Spark's JVM does not stop before the driver."""
    file = tmp_path / "driver.pid"
    inner = f"trap 'exit 8' {name}; echo $$ > $STORMSPARK_DRIVER_FILE; kill -{name} $1; {FOR_EVER}"
    assert (
        ran(f"trap 'exit 9' {name}; sh -c '{inner.replace(chr(39), chr(34))}' sh $PPID; exit $?", file) == 8
    )


@pytest.mark.parametrize("said", ["", "none", "4194305"])
def test_without_another_program_the_program_gets_the_signal(tmp_path, said):
    """It has not written its pid yet, or has ended."""
    file = tmp_path / "driver.pid"
    file.write_text(said)
    assert ran(f"trap 'exit 7' TERM; kill -TERM $PPID; {FOR_EVER}", file) == 7


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
