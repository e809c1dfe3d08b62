"""What these tests have measured: tables at the end of a run, wherever each test ran."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_BUILD = Path(__file__).parents[2] / "build"
_PROPERTY = "row of a table"
#: By section and title; a row is what a test has noted.
_tables: dict[str, dict[str, list[dict[str, str]]]] = {}


@pytest.fixture
def note(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Callable[..., None]:
    """Adds a row to a table: ``note("slow bolt", run="across", ratio="93 %")``. Tables are in ``build``, in the tests' folder."""
    section = request.path.parent.name

    def add(table: str, **row: object) -> None:
        record_property(_PROPERTY, json.dumps([section, table, {name: str(row[name]) for name in row}]))

    return add


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Reports come from all processes that run tests to the one that ends the run."""
    if report.when != "teardown":
        return
    for name, value in report.user_properties:
        if name == _PROPERTY:
            section, table, row = json.loads(str(value))
            _tables.setdefault(section, {}).setdefault(table, []).append(row)
            folder = _BUILD / section
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "tables.md").write_text(_text(_tables[section]))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for section, tables in _tables.items():
        terminalreporter.section(section.replace("_", " "))
        terminalreporter.write_line(_text(tables))


def _text(tables: dict[str, list[dict[str, str]]]) -> str:
    lines = []
    for title, rows in tables.items():
        columns = list(dict.fromkeys(name for row in rows for name in row))
        lines += [f"{title}:", "", f"| {' | '.join(name.replace('_', ' ') for name in columns)} |"]
        lines.append("| --- " * len(columns) + "|")
        lines += [f"| {' | '.join(row.get(name, '') for name in columns)} |" for row in rows]
        lines.append("")
    return "\n".join(lines)
