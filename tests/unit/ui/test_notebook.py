"""Progress that changes in place: in Jupyter, in Databricks, and on a console."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import cast

import pytest

from stormspark.engine import RunningTopology
from stormspark.ui.notebook import find_display, show_progress
from tests.unit.scripted_topology import Moment
from tests.unit.ui.test_look import Planned

MOMENTS = [Moment(float(second), executed=100 * second, batches=second) for second in range(20)]


class Shell:
    """IPython's shell. ``shown`` are the outputs, each with all that it showed, one after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, kernel: bool, **user_ns: object) -> None:
        self.shown: list[list[dict[str, str]]] = []
        self.user_ns = user_ns
        self.kernel = object() if kernel else None
        ipython = SimpleNamespace(get_ipython=lambda: self)
        monkeypatch.setitem(sys.modules, "IPython", ipython)  # type: ignore[arg-type]
        display = SimpleNamespace(display=self.display)
        monkeypatch.setitem(sys.modules, "IPython.display", display)  # type: ignore[arg-type]

    def display(self, content: dict[str, str], *, raw: bool, display_id: bool) -> object:
        assert raw and display_id
        output = [content]
        self.shown.append(output)
        return SimpleNamespace(update=lambda content, raw: output.append(content))


def show(
    running: Planned, *, seconds: float | None = None, until_idle: float | None = None, every: float = 1.0
) -> None:
    show_progress(
        cast(RunningTopology, running),
        lambda: {"logs": "file:///logs"},
        seconds=seconds,
        until_idle=until_idle,
        every=every,
        clock=lambda: running.now,
    )


def test_jupyter_has_one_output_that_changes(monkeypatch):
    shell = Shell(monkeypatch, kernel=True)
    show(Planned(MOMENTS, ends_at=4.0))
    [output] = shell.shown
    assert len(output) == 6  # one each second, and one at the end
    assert "runs (0 s)" in output[0]["text/plain"] and "file:///logs" in output[0]["text/html"]
    assert "has ended (4 s)" in output[-1]["text/plain"]


def test_it_ends_after_some_seconds_and_leaves_the_topology_alone(monkeypatch):
    shell = Shell(monkeypatch, kernel=True)
    running = Planned(MOMENTS)
    show(running, seconds=2.5)
    assert running.now == 2.5
    assert running.calls == []
    assert "runs (2 s)" in shell.shown[0][-1]["text/plain"]


def test_it_ends_when_nothing_happens_any_more(monkeypatch):
    Shell(monkeypatch, kernel=True)
    running = Planned([Moment(0.0, emitted=5), Moment(1.0, emitted=9, acked=9)], batch_every=0.5)
    show(running, until_idle=2.0, every=0.5)
    assert 3.0 <= running.now < 4.0
    assert running.calls == []


def test_an_interrupt_ends_the_call_and_the_last_state_stays(monkeypatch):
    shell = Shell(monkeypatch, kernel=True)
    running = Planned(MOMENTS)

    def interrupt():
        raise KeyboardInterrupt

    running.events[2.0] = interrupt
    with pytest.raises(KeyboardInterrupt):
        show(running)
    assert "runs (2 s)" in shell.shown[0][-1]["text/plain"]
    assert running.calls == []


def test_databricks_without_display_handles_has_lines_and_an_output_at_the_end(monkeypatch, capsys):
    pages: list[str] = []
    Shell(monkeypatch, kernel=False, displayHTML=pages.append)
    show(Planned(MOMENTS, ends_at=12.0))
    [page] = pages
    assert "scripted has ended" in page
    assert len(capsys.readouterr().out.splitlines()) == 4  # after 0, 5 and 10 s, and at the end


def test_a_console_has_lines(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    show(Planned(MOMENTS, ends_at=6.0))
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.startswith("scripted 0 s")
    assert last.startswith("'scripted' has ended (6 s)")


def test_ipython_in_a_terminal_is_a_console(monkeypatch):
    Shell(monkeypatch, kernel=False)
    assert type(find_display(dict)).__name__ == "_Line"
