"""Reads time zones in untrusted pickles. Python pickles a zone as a call of `getattr`, which must not be allowed in general."""

from __future__ import annotations

import pickle
from typing import Any
from zoneinfo import ZoneInfo

__all__ = ["part_of_zone"]


def part_of_zone(owner: object, name: str) -> Any:
    """Replaces `getattr` in a pickle: for ``ZoneInfo._unpickle``, return the function that makes a `ZoneInfo`.

    Raises `pickle.UnpicklingError` for every other attribute.

    >>> part_of_zone(ZoneInfo, "_unpickle")("Europe/Berlin", 1)
    zoneinfo.ZoneInfo(key='Europe/Berlin')
    """
    if owner is ZoneInfo and name == "_unpickle":
        return ZoneInfo._unpickle  # type: ignore[attr-defined]
    msg = f"{name!r} of {owner!r:.100} is not plain data"
    raise pickle.UnpicklingError(msg)
