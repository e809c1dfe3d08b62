"""Time zones in pickles that are read with care: Python writes one as an attribute of its class, for `getattr`."""

from __future__ import annotations

import pickle
from typing import Any
from zoneinfo import ZoneInfo

__all__ = ["part_of_zone"]


def part_of_zone(owner: object, name: str) -> Any:
    """In place of `getattr`: what makes a `ZoneInfo`, and no attribute of anything else.

    Raises `pickle.UnpicklingError`.

    >>> part_of_zone(ZoneInfo, "_unpickle")("Europe/Berlin", 1)
    zoneinfo.ZoneInfo(key='Europe/Berlin')
    """
    if owner is ZoneInfo and name == "_unpickle":
        return ZoneInfo._unpickle  # type: ignore[attr-defined]
    msg = f"{name!r} of {owner!r:.100} is no plain data"
    raise pickle.UnpicklingError(msg)
