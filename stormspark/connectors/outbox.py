"""The outbox of a sink: outputs that are committed with their batch, and delivered exactly once after the commit (C42).

The sink's ``pre_save`` puts the batch's outputs, a *parcel*, into the state of its task. So the log entry that commits the batch
commits the parcel too. The sink's ``post_save`` delivers the parcel. If the process dies after the commit, the next process finds
the parcel in the state. The destination keeps a marker: the number of the last delivered batch, which was written together with
that batch's outputs. The next process reads the marker, and does not deliver a parcel that has already arrived.

    pre_save(N)    save(N, parcel)     removes delivered parcels from the state, and adds the parcel of batch N
    commit of N
    post_save(N)   deliver(N)          delivers parcels up to N, in order, each with its marker; if one fails, later parcels wait
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from stormspark.api.state import KeyValueState
from stormspark.errors import UnavailableError

__all__ = ["Outbox"]

P = TypeVar("P")

_PARCEL, _NAME = "outbox", "outbox.name"
#: The first and the longest pause, in seconds, between two tries to deliver to a destination that refuses.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_LOOK_SECS = 0.5


class Outbox(Generic[P]):
    """The undelivered parcels of one task, kept in its ``state``.

    ``send(txid, parcel)`` delivers one parcel, or does nothing if that parcel has already arrived.

    If ``send`` raises an error, the parcel stays in the state. The outbox tries again at the end of later batches, with growing
    pauses. Meanwhile batches go on, until a batch would bring the waiting parcels above ``most_bytes``. This batch waits up to
    ``patience_secs`` for room, and fails if there still is no room.

    >>> from stormspark.checkpoint.key_value_store import KeyValueStore
    >>> written = {}
    >>> outbox = Outbox(KeyValueStore(), written.setdefault)
    >>> outbox.save(0, ["a", "b"], 2)
    >>> written, outbox.waiting
    ({}, 1)
    >>> outbox.deliver(0)
    >>> written, outbox.waiting
    ({0: ['a', 'b']}, 0)
    """

    def __init__(
        self,
        state: KeyValueState[Any, Any],
        send: Callable[[int, P], object],
        *,
        most_bytes: int = 64 << 20,
        patience_secs: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._state, self._send = state, send
        self._most, self._patience = most_bytes, patience_secs
        self._clock, self._sleep = clock, sleep
        #: The name of this task's deliveries. It stays the same after a restart. With a new checkpoint folder it changes, because
        #: the numbers of batches begin at 0 again.
        self.name: str = state.get(_NAME) or uuid.uuid4().hex
        self._sizes: dict[int, int] = {key[1]: size for key, (size, _) in state.iterate((_PARCEL,))}
        self._delivered: list[int] = []  # delivered, but still in the state
        self._tried = not self._sizes
        self._failures, self._not_before = 0, clock()

    @property
    def waiting(self) -> int:
        """The number of parcels that are not delivered, as far as this instance knows."""
        return len(self._sizes)

    def save(self, txid: int, parcel: P | None, size: int = 0) -> None:
        """Put the parcel of batch ``txid`` into the state. ``size`` is roughly the parcel's size in bytes.

        ``parcel`` is None if the batch has no outputs. Raises `UnavailableError` if too much waits already.
        """
        # Older parcels are committed, because otherwise this batch would not run. If this instance has not tried to deliver them
        # yet, as after a restart, it tries now.
        if not self._tried:
            self._try(txid - 1)
        if self._over(size):
            until = self._clock() + self._patience
            while self._over(size) and self._clock() < until:
                self._not_before = self._clock()
                if not self._try(txid - 1):
                    self._sleep(_LOOK_SECS)
            if self._over(size):
                msg = (
                    f"outputs of {self.waiting} batches, {sum(self._sizes.values()):,} bytes, wait for delivery, and no more "
                    f"may wait: the destination rejects them, and an error at the end of each batch has the reason"
                )
                raise UnavailableError(msg)
        if self._state.get(_NAME) is None:
            self._state.put(_NAME, self.name)
        for done in self._delivered:
            self._state.delete((_PARCEL, done))
        self._delivered.clear()
        if parcel is not None:
            self._state.put((_PARCEL, txid), (size, parcel))
            self._sizes[txid] = size

    def deliver(self, txid: int) -> None:
        """Deliver the waiting parcels up to batch ``txid``, which must be committed. Raises any error that ``send`` raises.

        During the pause after a failed delivery, this method does nothing.
        """
        if self._clock() < self._not_before:
            return
        self._tried = True
        for number in sorted(self._sizes):
            if number > txid:
                break
            _, parcel = self._state[_PARCEL, number]
            try:
                self._send(number, parcel)
            except Exception:
                pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**self._failures)
                self._failures, self._not_before = min(self._failures + 1, 10), self._clock() + pause
                raise
            self._failures = 0
            del self._sizes[number]
            self._delivered.append(number)

    def _try(self, txid: int) -> bool:
        try:
            self.deliver(txid)
        except Exception:  # a later call of `deliver` tries again and raises the error
            return False
        return True

    def _over(self, size: int) -> bool:
        return bool(self._sizes) and sum(self._sizes.values()) + size > self._most
