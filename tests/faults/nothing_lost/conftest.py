"""The accounts of each run: a file a fault, and a row of the table at the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.nothing_lost.scenario import Accounts

_FOLDER = Path(__file__).parents[3] / "build" / "nothing_lost"


@pytest.fixture
def record_accounts(note: Callable[..., None]) -> Callable[[Accounts], None]:
    def record(accounts: Accounts) -> None:
        accounts.save(_FOLDER)
        note("Faults", **accounts.row())

    return record
