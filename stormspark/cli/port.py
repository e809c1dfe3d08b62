"""``stormspark port``: prints what `stormspark.porting` found in a legacy project, and what the user has to do."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from stormspark.cli.output import wide_enough
from stormspark.errors import UnsupportedEnvironmentError
from stormspark.porting.findings import Findings, Statement
from stormspark.porting.project import plan_each, read_project
from stormspark.porting.report import SUMMARY, as_json, as_markdown, summary_rows
from stormspark.ui import ProgressLine

__all__ = ["Steps", "port_project"]

#: A project that is read within this time is read without a word. After that, a terminal shows each step this often.
_SILENT_SECS, _REDRAWN_SECS = 1.0, 0.1


@dataclass(frozen=True)
class _Step:
    seconds: float
    text: str

    def __str__(self) -> str:
        return f"{self.seconds:.0f} s  {self.text}"


class Steps:
    """Shows what is read now, on a progress line. Large projects take minutes, most of all those in Python 2.

    >>> now = iter([0, 0.5, 2, 2.01, 8])
    >>> with ProgressLine(Console(file=sys.stdout)) as line:
    ...     steps = Steps(line, lambda: next(now))
    ...     for file in "abcd":
    ...         steps(f"reading {file}.py")
    2 s  reading b.py
    8 s  reading d.py
    """

    def __init__(self, line: ProgressLine, clock: Callable[[], float] = time.monotonic) -> None:
        self._line, self._clock = line, clock
        self._began = self._shown_at = clock()

    def __call__(self, text: str) -> None:
        """Note the step that begins now."""
        now = self._clock()
        if now - self._began >= _SILENT_SECS and now - self._shown_at >= _REDRAWN_SECS:
            self._shown_at = now
            self._line.show(_Step(now - self._began, text))


def port_project(path: Path, out: Path | None, *, as_json_text: bool, importing: bool) -> None:
    """Read the project in ``path``, and print the findings, as a table or as JSON.

    If ``importing``, also load and plan the topologies. If ``out`` is given, write the report and the skeletons into this folder.
    """
    with ProgressLine(Console(file=sys.stderr, highlight=False)) as line:
        steps = Steps(line)
        findings, skeletons = read_project(path, steps)
        if importing:
            plan_each(findings, path, steps)
    written: list[Path] = []
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
            drafts = [("python3.diff", "".join(findings.python3.values()))] if findings.python3 else []
            for name, text in [("report.md", as_markdown(findings)), *skeletons, *drafts]:
                written.append(_written(out / name, text))
        except OSError as error:
            msg = f"{error.filename or out} can't be written: {error.strerror}"
            raise UnsupportedEnvironmentError(msg) from error
    if as_json_text:
        click.echo(as_json(findings))
        return
    _print(findings)
    for file in written:
        click.echo(f"wrote {file}")
    if out is None:
        more = ", and a Python skeleton for each Java topology" if skeletons else ""
        more += ", and a draft of it in Python 3" if findings.python3 else ""
        click.echo(f"--out DIR writes the whole report{more}.")


def _written(path: Path, text: str) -> Path:
    """Write a file. If there is a Python file of this name with other contents, write ``NAME.new.py`` beside it."""
    if path.suffix == ".py" and path.exists() and path.read_text(encoding="utf-8") != text:
        path = path.with_name(f"{path.stem}.new.py")
    path.write_text(text, encoding="utf-8", newline="", errors="surrogateescape")
    return path


def _print(findings: Findings) -> None:
    console = wide_enough(Console(soft_wrap=False), 240)
    table = Table(title=f"{findings.root}: topologies", title_justify="left")
    for column in SUMMARY:
        table.add_column(column, overflow="fold")
    for row in summary_rows(findings):
        table.add_row(*map(escape, row))
    console.print(table)
    _print_statements(console, "the project", findings.statements)
    for topology in findings.topologies:
        _print_statements(console, f"{topology.name}, {topology.place}", topology.statements)
    for topology in findings.topologies:
        if topology.command:
            click.echo(f"to run {topology.name}, in the project's folder: {topology.command}")


def _print_statements(console: Console, name: str, statements: list[Statement]) -> None:
    """Print the statements about changes to make, and about code that could not be read. The report has all statements."""
    shown = [one for one in statements if one.kind in ("change", "unread")]
    if not shown:
        return
    table = Table(title=name, title_justify="left", show_header=False)
    for one in shown:
        text = f"{one.text}: {one.todo}" if one.todo else one.text
        table.add_row(one.kind, str(one.place or ""), escape(text), one.grade)
    console.print(table)
