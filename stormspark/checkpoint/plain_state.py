"""Reads state for people to look at, as rows of task, key and value. Plain data is decoded, and all else stays bytes (C35, C36).

A person who looks at a state often lacks the classes of the topology, and should not run code that somebody pickled into a
table. So only plain data is unpickled: None, bools, numbers, strings, bytes, dates, times, time zones, UUIDs, and containers of
these.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from stormspark.checkpoint.handed_state import HandedRows
from stormspark.checkpoint.ordered_keys import decode_key, encode_key
from stormspark.checkpoint.pickled_zones import part_of_zone
from stormspark.checkpoint.state_components import component_states
from stormspark.checkpoint.state_table import Restore, StateTable, WrittenBySparkError
from stormspark.checkpoint.table_of_spark import TableOfSpark
from stormspark.errors import CheckpointError
from stormspark.extras import pyarrow as pa

__all__ = [
    "Entry",
    "ReadableTable",
    "StateOfComponent",
    "find_state",
    "plain_key",
    "plain_value",
    "state_in",
]

_PLAIN = (
    {
        ("builtins", name)
        for name in ("set", "frozenset", "complex", "bytearray", "range", "list", "dict", "int")
    }
    | {("collections", name) for name in ("Counter", "OrderedDict", "deque", "defaultdict")}
    | {("datetime", name) for name in ("date", "datetime", "time", "timedelta", "timezone")}
    | {("decimal", "Decimal"), ("fractions", "Fraction"), ("uuid", "UUID"), ("uuid", "SafeUUID")}
    | {("zoneinfo", "ZoneInfo"), ("_codecs", "encode")}
)
#: If a component's attributes are its state, they are pickled together under this key.
_ATTRIBUTES = "attributes"


class Entry(NamedTuple):
    """A key of one task with its value. ``task`` is the task's index among the tasks of its component."""

    task: int
    key: Any
    value: Any


class _PlainData(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("builtins", "getattr"):
            return part_of_zone
        if (module, name) in _PLAIN:
            return super().find_class(module, name)
        msg = f"{module}.{name} is not plain data"
        raise pickle.UnpicklingError(msg)

    def persistent_load(self, name: str) -> Any:
        """Return a name in place of a component's collector, context or configuration, which are not part of its state."""
        return f"<{name}>"


def _plain(data: bytes) -> Any:
    return _PlainData(io.BytesIO(data)).load()


def plain_value(data: bytes) -> Any:
    r"""Return a value as the component put it into the state, or its pickled bytes if it is not plain data.

    >>> plain_value(pickle.dumps({"storm": (1, 2.5)})), plain_value(pickle.dumps(Entry))[:2]
    ({'storm': (1, 2.5)}, b'\x80\x04')
    """
    try:
        return _plain(data)
    except Exception:  # whatever a damaged or foreign pickle raises
        return data


def plain_key(data: bytes) -> Any:
    """Return a key as the component put it into the state, or its bytes in the table if it is not plain data."""
    try:
        return decode_key(data, _plain)
    except Exception:
        return data


class ReadableTable(Protocol):
    """A table from which a state can be read. `StateTable` documents what each operation promises."""

    location: str

    @property
    def last_txid(self) -> int:
        """The batch that was committed last; negative if there is none."""

    def plan_restore(
        self, component: str | None = None, task: int | None = None, as_of: int | None = None
    ) -> Restore | HandedRows:
        """Return an object from which the rows can be read."""

    def metadata(self, as_of: int | None = None) -> dict[bytes, bytes]:
        """Return the metadata that the driver committed with its batches."""


@dataclass(frozen=True)
class StateOfComponent:
    """The state of ``component`` as of batch ``txid``. This object can be sent to another process, which then reads the state.

    ``tasks`` is the number of tasks that the component had. ``kind`` is the kind of its state (`ComponentPlan.kind_of_state`).
    """

    component: str
    txid: int
    tasks: int
    kind: str
    restore: Restore | HandedRows

    def of_task(self, task: int) -> StateOfComponent:
        """Return the part of this state that belongs to one task."""
        return replace(self, restore=self.restore.of_task(task))

    def batches(self, *, raw_keys: bool = False, raw_values: bool = False) -> Iterator[list[Entry]]:
        """Yield entries, a few thousand at a time, in the order of the rows. Raw keys and values are bytes, as the table has
        them.

        If a component's attributes are its state, they are one value in the table. If all of them are plain data, each attribute
        is an entry of its own here, and its raw key and value are made anew.

        Raises `CheckpointError` if files are missing or damaged.
        """
        for rows in self.restore.rows():
            yield list(self.entries(rows, raw_keys=raw_keys, raw_values=raw_values))

    def entries(
        self, rows: pa.RecordBatch, *, raw_keys: bool = False, raw_values: bool = False
    ) -> Iterator[Entry]:
        """Yield the entries of some rows of `restore`. See `batches`."""
        columns = (rows.column(name).to_pylist() for name in ("task", "key", "value"))
        for task, key, value in zip(*columns, strict=True):
            name = plain_key(key)
            attributes = None
            if self.kind == "pickle" and name == _ATTRIBUTES:
                attributes = plain_value(plain_value(value))
            if isinstance(attributes, Mapping):
                for attribute, content in attributes.items():
                    yield Entry(
                        task,
                        encode_key(attribute) if raw_keys else attribute,
                        pickle.dumps(content, 5) if raw_values else content,
                    )
            else:
                yield Entry(task, key if raw_keys else name, value if raw_values else plain_value(value))


def find_state(
    location: str,
    component: str,
    txid: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> StateOfComponent:
    """Return the state of a component in the table at ``location``, as of batch ``txid``; the default is the last batch.

    Raises `CheckpointError` if there is no table, if it has no state of that component, or if the batch is not committed yet or
    no longer in the table.
    """
    own = StateTable(location, storage_options=storage_options)
    try:
        own.refresh()
    except WrittenBySparkError:
        return state_in(TableOfSpark(location, storage_options), component, txid)
    return state_in(own, component, txid)


def state_in(table: ReadableTable, component: str, txid: int | None = None) -> StateOfComponent:
    """Do the same as `find_state`, for a table that is already open."""
    location = table.location
    as_of = table.last_txid if txid is None else txid
    if as_of < 0:
        msg = f"the state table {location} has no batch yet: read it again once the topology commits one"
        raise CheckpointError(msg)
    restore = table.plan_restore(component, None, as_of)
    known = component_states(table.metadata(as_of))
    found = known.get(component)
    if found is None:
        names = ", ".join(sorted(known)) or "no component"
        msg = f"the state table {location} has no state of {component!r} as of batch {as_of}; it has the state of {names}"
        raise CheckpointError(msg)
    return StateOfComponent(component, as_of, found.tasks, found.kind, restore)
