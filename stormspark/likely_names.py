"""Suggests, in an error about a name, the name that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["nearest", "no_component"]


def nearest(name: str, names: Iterable[str]) -> str:
    """Return what follows a name that is not among ``names``: the one that is most like it, if one is.

    >>> nearest("wrods", ["orders", "words"]), nearest("x", ["words"])
    ("; did you mean 'words'?", '')
    """
    close = difflib.get_close_matches(name, list(names), 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def no_component(topology: str, name: str, components: Iterable[str]) -> str:
    """Return what is said of a component that a topology has not: which one was meant, or which ones there are.

    >>> no_component("words", "cuont", ["lines", "count"])
    "topology 'words' has no component 'cuont'; did you mean 'count'?"
    >>> no_component("words", "x", ["lines", "count"])
    "topology 'words' has no component 'x'; it has 'lines', 'count'"
    """
    there = list(components)
    hint = nearest(name, there) or f"; it has {', '.join(map(repr, there))}"
    return f"topology {topology!r} has no component {name!r}{hint}"
