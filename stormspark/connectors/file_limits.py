"""How much of a source of files, or of a Delta table, one batch may bring: Spark's options for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from stormspark.api import PerTrigger, SourceSpout
from stormspark.errors import InvalidTopologyError

__all__ = ["bounded", "per_trigger_of"]

_FILES, _BYTES = "maxFilesPerTrigger", "maxBytesPerTrigger"
#: Where a topology begins that says nothing: seconds of work for most bolts. And so much rows of it are in memory at most.
_FIRST_BYTES, _MOST_BYTES = 16 * 1024 * 1024, 256 * 1024 * 1024
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)b?", re.IGNORECASE)


def per_trigger_of(options: Mapping[str, Any]) -> PerTrigger:
    """What the options say of it: what is set is the most, and where it begins. Raises `InvalidTopologyError` for a value
    that is no number.

    >>> per_trigger_of({"maxFilesPerTrigger": 5})
    PerTrigger(option='maxFilesPerTrigger', first=5, most=5)
    >>> per_trigger_of({"maxBytesPerTrigger": "1m"}).most
    1048576
    """
    given = {name.lower(): value for name, value in options.items()}
    for option in (_BYTES, _FILES):
        if option.lower() in given:
            most = _number(option, given[option.lower()])
            return PerTrigger(option, most, most)
    return PerTrigger(_BYTES, _FIRST_BYTES, _MOST_BYTES)


def bounded(options: Mapping[str, Any], spout: SourceSpout) -> dict[str, Any]:
    """The options, with the one of the spout's ``per_trigger`` set to its ``limit``."""
    if spout.per_trigger is None or spout.limit is None:
        return dict(options)
    option = spout.per_trigger.option
    return {name: value for name, value in options.items() if name.lower() != option.lower()} | {
        option: spout.limit
    }


def _number(option: str, value: Any) -> int:
    found = _SIZE.fullmatch(str(value).strip())
    if found is None or not int(found[1]):
        msg = f"{option} must be a positive number, or one such as '10m', got {value!r}"
        raise InvalidTopologyError(msg)
    return int(found[1]) << 10 * " kmgt".index(found[2].lower() or " ")
