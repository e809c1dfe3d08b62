"""The result of a replay: the bolt's emits, acks and fails for each input, the changes of the bolt's state, and all
differences.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["MISSING", "Change", "Emitted", "Executed", "Replay"]

#: Stands in the place of a value if a key has no value.
MISSING = object()


class Emitted(NamedTuple):
    """A tuple that the bolt emitted. ``tasks`` are the ids of the tasks that got it. A recording does not have these ids."""

    stream: str
    values: tuple[Any, ...]
    tasks: tuple[int, ...] = ()


class Change(NamedTuple):
    """The change of one key of the state. ``before`` or ``after`` is `MISSING` if the key had no value at that time."""

    key: Any
    before: Any
    after: Any

    @staticmethod
    def missing() -> Any:
        """Return `MISSING`, for a key that has no value."""
        return MISSING


@dataclass
class Executed:
    """One input, with the bolt's emits, ack, fail or error. ``source`` names the origin of the input. For a tick it is "tick"."""

    number: int
    source: str
    values: tuple[Any, ...]
    emitted: list[Emitted] = field(default_factory=list)
    acked: bool = False
    failed: bool = False
    #: The traceback of the error in ``execute`` that ended the replay; None if there was no error.
    raised: str | None = None


@dataclass
class Replay:
    """The result of a replay of one task. ``differences`` are sentences that say where the replay differs from the recording."""

    component: str
    task: int
    batch: int
    inputs: list[Executed] = field(default_factory=list)
    #: The emits before, between or after the inputs, such as those in ``prepare`` and ``pre_prepare``.
    outside: list[Emitted] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
