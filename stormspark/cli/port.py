"""``stormspark port``: prints what `stormspark.porting` found in a legacy project, and what the user has to do."""

from __future__ import annotations

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

__all__ = ["port_project"]


def port_project(path: Path, out: Path | None, *, as_json_text: bool, importing: bool) -> None:
    """Read the project in ``path``, and print the findings, as a table or as JSON.

    If ``importing``, also load and plan the topologies. If ``out`` is given, write the report and the skeletons into this folder.
    """
    findings, skeletons = read_project(path)
    if importing:
        plan_each(findings, path)
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
