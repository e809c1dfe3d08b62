"""The parity table is whole, honest and up to date."""

from __future__ import annotations

import tomllib

import pytest

from tests.parity import PAGE, TABLE, citations, page

ROWS = {
    row: entry
    for group in tomllib.loads(TABLE.read_text(encoding="utf-8"))["groups"].values()
    for row, entry in group["rows"].items()
}


def _numbered(letter: str, first: int, last: int) -> set[str]:
    return {f"{letter}{number}" for number in range(first, last + 1)}


def test_every_row_of_the_inventory_is_there() -> None:
    """Groups A-1 to A-5, B-1, B-2, C-1, C-2, C-4 to C-6, D, E, F, G-1, the states of G-2, and J-4."""
    wanted = _numbered("A", 1, 39) | _numbered("B", 1, 20) | _numbered("C", 1, 19) | _numbered("C", 23, 45)
    wanted |= _numbered("D", 1, 17) | _numbered("E", 1, 35) | _numbered("F", 1, 14) | _numbered("J", 23, 26)
    wanted |= _numbered("G", 1, 8) | _numbered("G", 14, 16)
    assert wanted <= ROWS.keys()


@pytest.mark.parametrize("row", ROWS)
def test_a_row_has_a_test_or_a_reason(row: str) -> None:
    """What works or differs is shown by a test that cites the row; what differs or will never be says why."""
    entry = ROWS[row]
    assert entry["here"] in ("works", "differs", "never")
    if entry["here"] != "works":
        assert entry.get("why"), f"{row} {entry['here']}: say why"
    if entry["here"] != "never":
        assert citations().get(row), f"no test cites {row}"


def test_the_page_is_up_to_date() -> None:
    """Otherwise: ``make parity``."""
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "docs/reference/parity.md is out of date, run: make parity"
    )
