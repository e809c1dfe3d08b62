"""Shows users' values in messages, also values whose class can't show them."""

from __future__ import annotations

__all__ = ["shown"]


def shown(value: object, most: int = 200) -> str:
    """Return the first ``most`` characters of the value's ``repr``, or the value's type if there is no ``repr``.

    Python refuses the ``repr`` of a number with thousands of digits, or of a list in thousands of lists. Other classes may raise
    anything.

    >>> shown("storm"), shown("storm" * 100, most=8)
    ("'storm'", "'stormst")
    >>> shown([10**5000])
    "a list that can't be shown (ValueError)"
    """
    try:
        return repr(value)[:most]
    except Exception as error:
        return f"a {type(value).__name__} that can't be shown ({type(error).__name__})"
