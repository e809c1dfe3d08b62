"""The compiled path's way to a task is that of all others (D1)."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from stormspark.grouping import fields_task_index
from stormspark.grouping.text_index import text_index


@given(st.text(), st.integers(1, 1000))
@example("\ud83d", 7)
@example("\N{GRINNING FACE}storm", 3)
@example("x" * 5000, 12)
def test_it_is_the_index_of_a_key_that_is_one_text(text: str, targets: int) -> None:
    """D1: characters beyond the BMP are two units, and the remainder is never negative."""
    assert text_index(text, targets) == fields_task_index([text], targets)
