import io
from dataclasses import replace

from rich.console import Console

from stormspark.ui import Progress, ProgressLine

SOME = Progress("words", 0.0, 1, 980.0, 400.0, 100.0, 100, 0, 7, 0)


def test_plain_lines_come_every_few_seconds():
    out = io.StringIO()
    with ProgressLine(Console(file=out), plain_every=5.0) as line:
        for quarter in range(50):
            line.show(replace(SOME, seconds=quarter / 4))
    assert [text.split()[1] for text in out.getvalue().splitlines()] == ["0", "5", "10"]


def test_a_long_plain_line_is_not_folded():
    out = io.StringIO()
    with ProgressLine(Console(file=out, width=40)) as line:
        line.show(SOME)
    assert out.getvalue().count("\n") == 1


def test_a_terminal_has_one_line_that_vanishes():
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=60, _environ={"TERM": "xterm"})
    with ProgressLine(console) as line:
        for quarter in range(8):
            line.show(replace(SOME, seconds=quarter / 4))
        line.say("stopping")
    text = out.getvalue()
    # Each redraw goes back to the start of the line; only what was said is followed by a line of its own.
    assert text.count("\r") >= 8
    assert "stopping\n" in text
    assert "…" in text, "a line wider than the terminal is cut, or it would leave half of itself behind"


def test_markup_in_a_topology_name_is_text():
    out = io.StringIO()
    with ProgressLine(Console(file=out)) as line:
        line.show(replace(SOME, topology="[red]words"))
    assert out.getvalue().startswith("[red]words")
