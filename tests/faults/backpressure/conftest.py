"""The tables at the end of a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.backpressure.watch import Say

FOLDER = Path(__file__).parents[3] / "build" / "backpressure"
_TABLES: dict[str, list[dict[str, str]]] = {}

Note = Callable[..., None]


@pytest.fixture(scope="session")
def folder() -> Path:
    """Where series go."""
    return FOLDER


@pytest.fixture(scope="session")
def note() -> Note:
    """Adds a row to a table: ``note("slow bolt", run="across", ratio="93 %")``."""

    def add(table: str, **row: object) -> None:
        _TABLES.setdefault(table, []).append({name: str(value) for name, value in row.items()})
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / "tables.md").write_text(_text())

    return add


@pytest.fixture
def say(request: pytest.FixtureRequest) -> Say:
    """Prints a line at once, past pytest's capture: who runs a long form wants to see it live."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def print_line(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(line, flush=True)

    return print_line


def _text() -> str:
    lines = []
    for title, rows in _TABLES.items():
        columns = list(dict.fromkeys(name for row in rows for name in row))
        lines += [f"{title}:", "", f"| {' | '.join(name.replace('_', ' ') for name in columns)} |"]
        lines.append("| --- " * len(columns) + "|")
        lines += [f"| {' | '.join(row.get(name, '') for name in columns)} |" for row in rows]
        lines.append("")
    return "\n".join(lines)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _TABLES:
        terminalreporter.section("backpressure")
        terminalreporter.write_line(_text())
