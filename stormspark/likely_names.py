"""Suggests, in an error about a name, the name that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["nearest"]


def nearest(name: str, names: Iterable[str]) -> str:
    """Return what follows a name that is not among ``names``: the one that is most like it, if one is.

    >>> nearest("wrods", ["orders", "words"]), nearest("x", ["words"])
    ("; did you mean 'words'?", '')
    """
    close = difflib.get_close_matches(name, list(names), 1)
    return f"; did you mean {close[0]!r}?" if close else ""
