"""Reads a topology's state table for its page: by component the sizes, and the first keys with their values as text.

Values are anybody's. They are decoded only if they are plain data (`stormspark.checkpoint.plain_state`), and shown as text.
"""

from __future__ import annotations

import reprlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stormspark.errors import CheckpointError

if TYPE_CHECKING:
    from stormspark.checkpoint.plain_state import StateOfComponent
    from stormspark.extras import pyarrow as pa

__all__ = ["as_text", "keys_of"]

_KEYS = 50
_LETTERS = 200
#: Larger values are not decoded, but only their size is shown.
_MOST_BYTES = 1_000_000
#: After so many seconds the sizes that are known by then are taken.
_MOST_SECS = 5.0
_REPR = reprlib.Repr()
_REPR.maxlevel = 4
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = _LETTERS
_REPR.maxdict = _REPR.maxlist = _REPR.maxtuple = _REPR.maxset = _REPR.maxfrozenset = _REPR.maxdeque = 30


def as_text(value: Any) -> str:
    r"""Return a key or a value as text of at most 200 characters.

    >>> as_text({"storm": (1, 2.5)}), len(as_text("x" * 1000)), as_text(b"\x80\x05N.")
    ("{'storm': (1, 2.5)}", 201, '4 bytes that are no plain data')
    """
    if isinstance(value, bytes) and value.startswith(b"\x80") and value.endswith(b"."):
        return f"{len(value):,} bytes that are no plain data"
    try:
        text = repr(value[: _LETTERS + 1]) if isinstance(value, str | bytes) else _REPR.repr(value)
    except Exception as error:  # a number with too many digits, for example
        return f"a {type(value).__name__}, which can't be shown: {error}"[:_LETTERS]
    return text if len(text) <= _LETTERS else f"{text[:_LETTERS]}…"


def keys_of(location: str, clock: Callable[[], float] = time.monotonic) -> dict[str, Any]:
    """Return the last batch in the table at ``location``, and by component its tasks, keys, bytes and first 50 keys.

    A component whose ``complete`` is False has more keys than were counted in five seconds. Raises `CheckpointError` if the
    table can't be read without Spark.
    """
    # These modules load delta-rs, which drivers of the local engine do not need.
    from stormspark.checkpoint.plain_state import state_in
    from stormspark.checkpoint.state_components import component_states
    from stormspark.checkpoint.state_table import StateTable

    table = StateTable(location)
    table.refresh()
    batch = table.last_txid
    if batch < 0:
        msg = f"the state table {location} has no batch yet: read it again once the topology commits one"
        raise CheckpointError(msg)
    end = clock() + _MOST_SECS
    names = sorted(component_states(table.metadata(batch)))
    components = [_component(state_in(table, name, batch), end, clock) for name in names]
    return {"batch": batch, "components": components}


def _component(found: StateOfComponent, end: float, clock: Callable[[], float]) -> dict[str, Any]:
    from stormspark.extras import pyarrow_compute as compute

    first: list[dict[str, Any]] = []
    keys = size = 0
    complete = True
    for rows in found.restore.rows():
        if keys and clock() > end:
            complete = False
            break
        keys += rows.num_rows
        size += sum(
            compute.sum(compute.binary_length(rows.column(name))).as_py() or 0 for name in ("key", "value")
        )
        at = 0
        while len(first) < _KEYS and at < rows.num_rows:
            first += _entries(found, rows.slice(at, 1))
            at += 1
    return {
        "component": found.component,
        "tasks": found.tasks,
        "keys": keys,
        "bytes": size,
        "complete": complete,
        "first": first[:_KEYS],
    }


def _entries(found: StateOfComponent, row: pa.RecordBatch) -> list[dict[str, Any]]:
    from stormspark.checkpoint.plain_state import plain_key

    task, key, value = (row.column(name)[0].as_py() for name in ("task", "key", "value"))
    if len(value) > _MOST_BYTES:
        return [{"task": task, "key": as_text(plain_key(key)), "value": f"{len(value):,} bytes"}]
    return [
        {"task": one.task, "key": as_text(one.key), "value": as_text(one.value)} for one in found.entries(row)
    ]
