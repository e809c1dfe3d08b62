"""The table at the end of a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.nothing_lost.scenario import Accounts

_FOLDER = Path(__file__).parents[3] / "build" / "nothing_lost"
_HEAD = """\
| fault | injected | messages | duplicates | lost | recovery s, min / median / max | run s |
| --- | --- | --- | --- | --- | --- | --- |"""
_RUNS: list[Accounts] = []


@pytest.fixture(scope="session")
def record_accounts() -> Callable[[Accounts], None]:
    def record(accounts: Accounts) -> None:
        _RUNS.append(accounts)
        accounts.save(_FOLDER)
        (_FOLDER / "table.md").write_text(f"{_table()}\n")

    return record


def _table() -> str:
    return "\n".join([_HEAD, *(run.line() for run in _RUNS)])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _RUNS:
        terminalreporter.section("nothing lost")
        terminalreporter.write_line(_table())
