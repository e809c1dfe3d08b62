"""Rows of sources and their keys. Within a task, no two open rows have the same key."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, NamedTuple

__all__ = ["RangeKey", "Row", "RowKey", "comparable", "message_id_of"]


class RowKey(NamedTuple):
    """The key of a row whose message id another open row may have, too. It holds the message id and the origin of the row.

    If rows have the customer as message id, two orders of one customer are two rows, each with a tree of its own, although users
    see the same message id twice. If batches are transactions, keys are the same in every attempt at a batch. Otherwise trees of
    an earlier attempt live on, and rows may come in another order. Then ``number`` also differs from attempt to attempt, so that
    no tree can stand for the wrong row.

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
    """One row of a source, with the batch that it came with; or a range of rows, with a `RangeKey` as its ``id``.

    No two open rows have the same ``id``. If ``unreadable`` is set, the row becomes a dead letter with this reason. For example,
    Python can't hold one of the values; ``values`` has None in its place.
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


#: The only NaN in keys. It equals nothing, but two tuples that hold this same object are equal.
_NAN = float("nan")


def comparable(key: Hashable) -> Hashable:
    """Put the same NaN object in place of each NaN in a key. So a key that was unpickled equals the same key made here.

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
