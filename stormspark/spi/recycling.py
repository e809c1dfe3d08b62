"""Reuses objects of the tuple path (`stormspark.tuple_path`) that no user code has kept.

Users can't distinguish a reused object from a new one. The reference count shows whether anybody kept the object. Compiled
modules use the C code of recycling.pxd instead of this module, which itself is never compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import getrefcount as refcount
from typing import Any

__all__ = ["refcount", "refilled"]


def refilled(
    kind: Callable[[tuple[Any, ...]], tuple[Any, ...]], last: tuple[Any, ...] | None, values: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Return an object of the tuple class ``kind`` with these values.

    Before Python 3.14, the C code may put the values into ``last`` and return it. For that, ``last`` must have this class and the
    same number of values, and nothing but an attribute and a local variable of the caller may refer to it.

    >>> refilled(tuple, None, ("storm", 3))
    ('storm', 3)
    """
    return kind(values)
