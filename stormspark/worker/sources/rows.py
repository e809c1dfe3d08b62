"""Rows of sources, and the keys of rows. Within a task, no two open rows have the same key."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, NamedTuple

__all__ = ["RangeKey", "Row", "RowKey", "comparable", "is_letter", "key_of_letter", "message_id_of"]


class RowKey(NamedTuple):
    """The key of a row. It holds the row's message id and its origin, because several open rows may have the same message id.

    For example, if the message id is the customer, two orders of one customer are two rows with the same message id. Each has a
    tree of its own.

    If batches are transactions, keys are the same in every attempt at a batch. Otherwise trees of an earlier attempt live on,
    and rows may come in another order. So `RowKeys` gives a row another number in each attempt, and no tree can be mistaken for
    the tree of another row.

    >>> RowKey(("customer", 7), batch=4, partition=0, number=12)
    ('customer', 7)
    """

    message_id: Hashable
    batch: int
    partition: Hashable
    number: int

    def __repr__(self) -> str:
        return repr(self.message_id)


class RangeKey(NamedTuple):
    """The key of a range of rows (`RangeSpout`). It stays the same while the range is read."""

    partition: Hashable
    batch: int
    number: int


class Row(NamedTuple):
    """One row of a source, with its batch. A `Row` may also stand for a range of rows. In that case its ``id`` is a `RangeKey`.

    No two open rows have the same ``id``. ``unreadable`` is the reason why the row can't be emitted, such as a value that
    Python can't hold. ``values`` has None in place of such a value. A row with a reason becomes a dead letter.
    """

    id: Hashable
    values: tuple[Any, ...]
    batch: int
    unreadable: str | None = None

    @property
    def message_id(self) -> Hashable:
        """The message id that users see; see `RowKey`."""
        return message_id_of(self.id)


def message_id_of(key: Hashable) -> Hashable:
    """Return the message id that users see.

    >>> message_id_of(RowKey((7,), 4, 0, 12)), message_id_of((4, 0, 12))
    ((7,), (4, 0, 12))
    """
    return key.message_id if type(key) is RowKey else key


#: How the partition of a `RowKey` begins if the row was a dead letter.
_LETTER = "dead letter "


def key_of_letter(key: Hashable, batch: int, letter: str) -> RowKey:
    """Return the key under which the row of a dead letter is emitted again in ``batch``. ``key`` was its key before.

    >>> key_of_letter((4, 0, 12), 9, "4-0"), is_letter(key_of_letter((4, 0, 12), 9, "4-0")), is_letter((4, 0, 12))
    ((4, 0, 12), True, False)
    """
    return RowKey(message_id_of(key), batch, f"{_LETTER}{letter}", 0)


def is_letter(key: Hashable) -> bool:
    """Return whether a key is that of a row that was a dead letter. Then the row's place in its source says nothing any more."""
    return type(key) is RowKey and isinstance(key.partition, str) and key.partition.startswith(_LETTER)


#: The only NaN object in keys. A NaN equals nothing, but two tuples that hold the same NaN object are equal.
_NAN = float("nan")


def comparable(key: Hashable) -> Hashable:
    """Replace each NaN in a key by one NaN object of this module. So an unpickled key equals the same key that was made in this
    process.

    >>> import pickle
    >>> other = pickle.loads(pickle.dumps(RowKey((float("nan"),), 4, 0, 12)))
    >>> comparable(other) == comparable(RowKey((float("nan"),), 4, 0, 12))
    True
    """
    if type(key) is tuple:
        return tuple(map(comparable, key))
    if isinstance(key, RowKey):
        return key._replace(message_id=comparable(key.message_id))
    return _NAN if isinstance(key, float) and math.isnan(key) else key
