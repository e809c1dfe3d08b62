"""The life of a spout. The spout is opened before its first activation (B2), and later activated and deactivated (B13)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

__all__ = ["TRANSITIONS", "SpoutLife", "SpoutState", "SpoutTransitionError"]


class SpoutState(Enum):
    """The state of a spout, across its instances."""

    NOT_OPENED = "not opened"
    #: The spout is open, and is not asked for tuples. Rows of its source wait until it is active.
    INACTIVE = "inactive"
    #: The spout is asked for tuples.
    ACTIVE = "active"
    #: The spout was deactivated within the current batch. It still emits the rows of this batch, if batches are transactions.
    FINISHING = "finishing"


_NOT_OPENED, _INACTIVE = SpoutState.NOT_OPENED, SpoutState.INACTIVE
_ACTIVE, _FINISHING = SpoutState.ACTIVE, SpoutState.FINISHING

#: For each state, the states that may follow it.
TRANSITIONS: Mapping[SpoutState, frozenset[SpoutState]] = {
    _NOT_OPENED: frozenset({_INACTIVE}),
    _INACTIVE: frozenset({_ACTIVE}),
    # An active spout can't become INACTIVE at once, because the current batch may have rows of this spout.
    _ACTIVE: frozenset({_FINISHING}),
    # A finishing spout becomes INACTIVE when the next batch begins.
    _FINISHING: frozenset({_ACTIVE, _INACTIVE}),
}


class SpoutTransitionError(RuntimeError):
    """Raised if a spout is about to enter a state that may not follow its present state. Such an error is a defect of
    stormspark.
    """

    def __init__(self, start: SpoutState, end: SpoutState) -> None:
        super().__init__(f"a spout can't go from {start.value} to {end.value}")


class SpoutLife:
    """The life of the spout of one task. A new instance of the spout goes on in the state of the previous instance.

    >>> life = SpoutLife()
    >>> life.opened(); life.activated(); life.deactivated(); life.state.value
    'finishing'
    >>> life.batch_begins(); life.state.value
    'inactive'
    """

    def __init__(self) -> None:
        self.state = _NOT_OPENED

    @property
    def is_open(self) -> bool:
        """Whether ``open`` of some instance has returned."""
        return self.state is not _NOT_OPENED

    @property
    def is_active(self) -> bool:
        """Whether the spout is asked for tuples."""
        return self.state is _ACTIVE

    @property
    def was_active_in_batch(self) -> bool:
        """Whether the spout was active at any time in the current batch. If it was, and batches are transactions, it emits all
        rows of the batch.
        """
        return self.state is _ACTIVE or self.state is _FINISHING

    def opened(self) -> None:
        """Enter INACTIVE, because an instance was opened. Only the first instance changes the state."""
        if self.state is _NOT_OPENED:
            self._enter(_INACTIVE)

    def activated(self) -> None:
        """Enter ACTIVE."""
        self._enter(_ACTIVE)

    def deactivated(self) -> None:
        """Enter FINISHING."""
        self._enter(_FINISHING)

    def batch_begins(self) -> None:
        """Begin a new batch. A spout that was deactivated in the previous batch enters INACTIVE."""
        if self.state is _FINISHING:
            self._enter(_INACTIVE)

    def _enter(self, state: SpoutState) -> None:
        if state not in TRANSITIONS[self.state]:
            raise SpoutTransitionError(self.state, state)
        self.state = state
