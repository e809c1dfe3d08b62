"""Objects of the tuple path that nobody has kept, used again: an object that nobody else holds can't be told from a new one.

Whether somebody holds it is told by its reference count. Compiled modules find C in place of these functions, in recycling.pxd;
nothing of this one is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import getrefcount as refcount
from typing import Any

__all__ = ["refcount", "refilled"]


def refilled(
    kind: Callable[[tuple[Any, ...]], tuple[Any, ...]], last: tuple[Any, ...] | None, values: tuple[Any, ...]
) -> tuple[Any, ...]:
    """An object of ``kind``, which is a class of tuples, that has these values.

    In C it is ``last``, where that is of this class and nobody holds it but an attribute and a local variable of who calls.

    >>> refilled(tuple, None, ("storm", 3))
    ('storm', 3)
    """
    return kind(values)
