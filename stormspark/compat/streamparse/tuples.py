"""The tuple that a bolt's ``process`` gets (C16)."""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

__all__ = ["Tuple", "values_type"]

_NO_IDENTIFIER = re.compile(r"\W|^(?=\d)")


class Tuple(NamedTuple):
    """Values, and where they came from. ``values`` has the names of the fields (C16).

    >>> tup = Tuple("7", "word_spout", "default", 3, values_type("word_spout", "default", ("word", "n"))("dog", 1))
    >>> tup.values.word, tup.values[1], tup.values
    ('dog', 1, Word_SpoutDefaultTuple(word='dog', n=1))
    """

    id: str
    component: str
    stream: str
    task: int
    values: Any


@cache
def values_type(component: str, stream: str, fields: Sequence[str]) -> type[tuple[Any, ...]]:
    """The type of the values of one stream, named after it. A field whose name is no identifier is called ``_0``, ``_1``."""
    name = "".join(_NO_IDENTIFIER.sub("_", text.title()) for text in (component, stream)) + "Tuple"
    return namedtuple(name, fields, rename=True)
