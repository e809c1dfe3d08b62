"""The parity table is whole, honest and up to date."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parity import PAGE, ROOT, WORDS, is_there, page, rows

ROWS = rows()
#: The inventory of what Storm, Heron, streamparse and pystorm do. It lies beside the project, not in it.
INVENTORY = Path(ROOT).parent / "shared" / "reference" / "INVENTORY.md"
_LAST = {
    "A": 46,
    "B": 26,
    "C": 45,
    "D": 17,
    "E": 35,
    "F": 14,
    "G": 24,
    "H": 10,
    "I": 18,
    "J": 26,
    "K": 23,
    "W": 27,
    "X": 110,
}


def test_every_row_of_the_inventory_is_there() -> None:
    """Each letter counts up without a hole; what X53 says is in fifteen parts."""
    wanted = {f"{letter}{number}" for letter, last in _LAST.items() for number in range(1, last + 1)}
    wanted = wanted - {"X53"} | {f"X53{part}" for part in "abcdefghijklmno"}
    assert wanted == ROWS.keys()


@pytest.mark.skipif(not INVENTORY.exists(), reason="the inventory is not beside this checkout")
def test_the_inventory_has_these_rows() -> None:
    """A row that is new there is demanded here."""
    lines = INVENTORY.read_text(encoding="utf-8").splitlines()
    found = {match[1] for line in lines if (match := re.match(r"[-|] \**([A-Z]\d+[a-z]?)\b", line))}
    assert found == ROWS.keys()


def _lacks(row: str) -> Iterator[str]:
    """What is wrong with a row."""
    entry = ROWS[row]
    here, tests = entry["here"], entry.get("tests", [])
    if here not in WORDS:
        yield f"{row} {here}: this is none of {WORDS}"
    if here in ("differs", "missing", "never") and not entry.get("why"):
        yield f"{row} {here}: say why"
    if here in ("works", "differs") and not tests:
        yield f"{row} {here}: name a test that shows it"
    if gone := [test for test in tests if not is_there(test)]:
        yield f"{row} names tests that are not there: {gone}"


def test_each_row_has_a_test_or_a_reason() -> None:
    """What works or differs names tests that are there; what does not work as in Storm says why."""
    assert [problem for row in ROWS for problem in _lacks(row)] == []


def test_the_page_is_up_to_date() -> None:
    """Otherwise: ``make parity``."""
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "docs/reference/parity.md is out of date, run: make parity"
    )
