"""Objects that receive acks and fails: Storm's AckFailDelegate and its trackers (J25)."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Protocol

from stormspark.testing.spool import Spool

__all__ = ["AckFailDelegate", "AckTracker"]


class AckFailDelegate(Protocol):
    """An object that a `FeederSpout` calls for every ack and fail.

    The object is pickled with the spout, and is called in the process of the spout's task.
    """

    def ack(self, message_id: Hashable) -> None:
        """Called when a tree is fully processed."""

    def fail(self, message_id: Hashable) -> None:
        """Called when a tree failed or timed out."""


class AckTracker:
    """Records acks and fails. The test can read them even if the spout's task runs in another process.

    This class combines Storm's AckTracker and AckFailMapTracker. Your own spouts can use a tracker too: create it in
    ``__init__``, and call its `ack` and `fail`. As for `FeederSpout`, the test and the workers must run on the same host, as the
    same user.

    >>> import pickle
    >>> tracker = AckTracker()
    >>> in_the_task = pickle.loads(pickle.dumps(tracker))
    >>> in_the_task.ack("a"); in_the_task.ack("b"); in_the_task.fail("c")
    >>> tracker.num_acks, tracker.acked, tracker.is_failed("c"), tracker.is_failed("a")
    (2, ['a', 'b'], True, False)
    >>> tracker.reset_num_acks(); tracker.num_acks
    0
    """

    def __init__(self, spool: Spool | None = None) -> None:
        self._spool = spool or Spool()
        self._lock = threading.Lock()
        self._acked: list[Hashable] = []
        self._failed: list[Hashable] = []
        self._forgotten = 0

    def __reduce__(self) -> tuple[type[AckTracker], tuple[Spool]]:
        return AckTracker, (self._spool,)

    @property
    def is_reachable(self) -> bool:
        """Whether this process can reach the tracker's records. It can if it runs on the test's host and as the test's user."""
        return self._spool.is_reachable

    def ack(self, message_id: Hashable) -> None:
        """Record an ack."""
        self._spool.append((True, message_id))

    def fail(self, message_id: Hashable) -> None:
        """Record a fail."""
        self._spool.append((False, message_id))

    @property
    def acked(self) -> list[Hashable]:
        """The message ids of all acks so far, once per ack. The acks of one task are in order."""
        with self._lock:
            self._look()
            return list(self._acked)

    @property
    def failed(self) -> list[Hashable]:
        """The message ids of all fails so far, once per fail."""
        with self._lock:
            self._look()
            return list(self._failed)

    def is_acked(self, message_id: Hashable) -> bool:
        """Return whether the message with this id was ever acked."""
        return message_id in self.acked

    def is_failed(self, message_id: Hashable) -> bool:
        """Return whether the message with this id ever failed."""
        return message_id in self.failed

    @property
    def num_acks(self) -> int:
        """The number of acks since the last `reset_num_acks`."""
        return len(self.acked) - self._forgotten

    def reset_num_acks(self) -> None:
        """Count from 0 again. `acked` and `is_acked` do not change."""
        self._forgotten = len(self.acked)

    def _look(self) -> None:
        for acked, message_id in self._spool.read():
            (self._acked if acked else self._failed).append(message_id)
