"""A tuple can be shown in a message whatever its values are."""

from __future__ import annotations

from stormspark.testing import make_tuple


def test_a_tuple_whose_values_can_not_be_shown_is_shown_without_them() -> None:
    """C6: Python shows no number of thousands of digits, and a message about a tuple must not raise."""
    assert repr(make_tuple((1,), fields=["n"])).endswith(", (1,))")
    assert repr(make_tuple((10**5000, "a"), fields=["n", "s"])).endswith(
        ", 2 values that can't be shown (ValueError))"
    )
