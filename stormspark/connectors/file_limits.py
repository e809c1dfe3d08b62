"""Spark's options that limit how much one batch may read from a folder of files or from a Delta table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from stormspark.api import PerTrigger, SourceSpout
from stormspark.errors import InvalidTopologyError

__all__ = ["bounded", "per_trigger_of"]

_FILES, _BYTES = "maxFilesPerTrigger", "maxBytesPerTrigger"
#: The first and the highest limit if the user sets none. For most bolts, the first limit is some seconds of work.
_FIRST_BYTES, _MOST_BYTES = 16 * 1024 * 1024, 256 * 1024 * 1024
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)b?", re.IGNORECASE)


def per_trigger_of(options: Mapping[str, Any]) -> PerTrigger:
    """Return how much a batch may read: the first limit and the highest one.

    If ``options`` set a limit, both are this limit. Otherwise the limits are in bytes, and the first one is lower than the
    highest one. If both options are given, the one in bytes counts. Raises `InvalidTopologyError` if the option that counts is
    neither a positive number nor a size such as ``10m``.

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
    """Return the options. If the spout has a ``limit``, set the option that ``spout.per_trigger`` names to this limit."""
    if spout.per_trigger is None or spout.limit is None:
        return dict(options)
    option = spout.per_trigger.option
    return {name: value for name, value in options.items() if name.lower() != option.lower()} | {
        option: spout.limit
    }


def _number(option: str, value: Any) -> int:
    found = _SIZE.fullmatch(str(value).strip())
    if found is None or not int(found[1]):
        msg = f"{option} must be a positive number, or a size such as '10m', got {value!r}"
        raise InvalidTopologyError(msg)
    return int(found[1]) << 10 * " kmgt".index(found[2].lower() or " ")
