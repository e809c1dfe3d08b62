"""What a sink has still to deliver, in the state of its task: committed with the batch, delivered after it, once (C42).

The batch's outputs are put into the state by ``pre_save``, so the entry that commits the batch commits them too. ``post_save``
hands them over. A process that dies between the two finds them in its state again, and asks the destination for a marker that
was written together with them, the number of the batch: what has it is not handed over a second time.

    pre_save(N)    save(N, parcel)     what was delivered goes out of the state, N's parcel goes in
    commit of N
    post_save(N)   deliver(N)          parcels up to N, in order, each with its marker; one that raises holds up those behind it
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
#: A destination that does not answer is asked again after so long at first, and at last.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_LOOK_SECS = 0.5


class Outbox(Generic[P]):
    """The parcels of one task in its ``state``; ``send(txid, parcel)`` delivers one, or does nothing where it was delivered.

    What ``send`` raises leaves the parcel where it is, and it is tried again at the end of each batch, less and less often.
    Meanwhile batches go on, until parcels of more than ``most_bytes`` wait: then a batch waits for them, ``patience_secs``
    long, and fails.

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
        #: Names this task's deliveries: the same after a restart, another one in a new checkpoint, whose batches begin at 0.
        self.name: str = state.get(_NAME) or uuid.uuid4().hex
        self._sizes: dict[int, int] = {key[1]: size for key, (size, _) in state.iterate((_PARCEL,))}
        self._delivered: list[int] = []  # and still in the state
        self._tried = not self._sizes
        self._failures, self._not_before = 0, clock()

    @property
    def waiting(self) -> int:
        """Parcels that are not delivered, as far as this instance knows."""
        return len(self._sizes)

    def save(self, txid: int, parcel: P | None, size: int = 0) -> None:
        """Put what batch ``txid`` has for the destination into the state; ``size`` is about how many bytes it takes there.

        Raises `UnavailableError` where more waits than may.
        """
        # What is older is committed, or this batch would not run. After a restart nobody has tried it yet.
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
                    f"outputs of {self.waiting} batches, {sum(self._sizes.values()):,} bytes, wait for their delivery, and no "
                    f"more may: the destination refuses them, as was told at the end of each batch"
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
        """Batch ``txid`` is committed: deliver what waits. Raises what ``send`` does."""
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
        except Exception:  # told by the next `deliver`, which the end of this batch brings
            return False
        return True

    def _over(self, size: int) -> bool:
        return bool(self._sizes) and sum(self._sizes.values()) + size > self._most
