"""The values that a map's current batch has read and changed. They stay in memory until the batch is committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NoReturn, TypeVar

from stormspark.errors import StateError
from stormspark.map_state.backing import BackingMap, Key

__all__ = ["Batch", "raise_behind"]

S = TypeVar("S")


class Batch(Generic[S]):
    """The current batch's values, in the form in which ``backing`` stores them (`stormspark.map_state.values`).

    In a batch each key is read at most once, changed in memory, and written at most once, by `end`. Outside of a batch each
    call of the map reads anew and writes at once.
    """

    def __init__(self, backing: BackingMap[S]) -> None:
        self._backing = backing
        self._read: dict[Key, S | None] = {}
        self._changed: dict[Key, S] = {}
        self._open = False
        self.txid: int | None = None

    def begin(self, txid: int | None) -> None:
        """Forget all values and begin a batch."""
        self._forget()
        self._open, self.txid = True, txid

    def end(self, txid: int | None, first: dict[Key, S]) -> None:
        """Write the rows ``first`` and then all changes, and end the batch. If there are no changes, write nothing at all.

        Raises `StateError` if batch ``txid`` has not begun.
        """
        if not self._open or txid != self.txid:
            begun = f"batch {self.txid} has begun" if self._open else "none has begun"
            msg = f"batch {txid} can't be committed, because {begun}; call begin_commit({txid}) before its updates"  # G14
            raise StateError(msg)
        if self._changed:
            self._write({**first, **self._changed})
        self._forget()
        self._open, self.txid = False, None

    def changed_keys(self) -> Sequence[Key]:
        """Return the changed keys, in the order of their first changes."""
        return list(self._changed)

    def read(self, keys: Sequence[Key]) -> None:
        """Read the stored values of the ``keys`` that are not in memory. Outside of a batch, read the values of all ``keys``."""
        if not self._open:
            self._forget()
        missing = [key for key in dict.fromkeys(keys) if key not in self._read and key not in self._changed]
        if missing:
            self._read.update(zip(missing, self._backing.multi_get(missing), strict=True))

    def stored(self, key: Key) -> S | None:
        """Return the value that `read` has found in the store, or None. It may come from an earlier attempt at the batch."""
        return self._read.get(key)

    def changed(self, key: Key) -> S | None:
        """Return the value that this attempt has given to ``key``; None if it has not changed ``key``."""
        return self._changed.get(key)

    def change(self, key: Key, stored: S) -> None:
        """Set the value that the store will get for ``key``."""
        self._changed[key] = stored

    def changes_are_done(self) -> None:
        """Note that one call of the map has made all its changes. Outside of a batch, write the changes now."""
        if not self._open and self._changed:
            self._write(self._changed)
            self._forget()

    def _write(self, rows: dict[Key, S]) -> None:
        self._backing.multi_put(list(rows), list(rows.values()))

    def _forget(self) -> None:
        self._read, self._changed = {}, {}


def raise_behind(key: Key, txid: int, stored: int) -> NoReturn:
    """Raise `StateError`: batch ``txid`` would be counted twice, because the later batch ``stored`` has changed ``key``."""
    msg = (
        f"batch {txid} is behind the state: key {key!r} was changed by batch {stored}. Another topology writes to this "
        "store, or this one began anew on an old store. Give it a store of its own, or an empty one"  # G15
    )
    raise StateError(msg)
