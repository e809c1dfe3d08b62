"""The result of a replay: the bolt's emits, acks and fails for each input, the changes of its state, and all differences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["MISSING", "Change", "Emitted", "Executed", "Replay"]

#: Stands for the value of a key that has none.
MISSING = object()


class Emitted(NamedTuple):
    """A tuple that the bolt emitted. ``tasks`` are the ids of the tasks that it went to; a recording lacks them."""

    stream: str
    values: tuple[Any, ...]
    tasks: tuple[int, ...] = ()


class Change(NamedTuple):
    """The change of one key of the state. `missing` stands for the value of a key that has none."""

    key: Any
    before: Any
    after: Any

    @staticmethod
    def missing() -> Any:
        """Return the object that stands for the value of a key that has none."""
        return MISSING


@dataclass
class Executed:
    """One input, with the bolt's emits, ack, fail or error. ``source`` names the origin of the input; it is "tick" for a tick."""

    number: int
    source: str
    values: tuple[Any, ...]
    emitted: list[Emitted] = field(default_factory=list)
    acked: bool = False
    failed: bool = False
    #: The traceback of the error in ``execute``, with which the replay ends; None without an error.
    raised: str | None = None


@dataclass
class Replay:
    """The result of a replay of one task. ``differences`` are sentences that say where the replay differs from the recording."""

    component: str
    task: int
    batch: int
    inputs: list[Executed] = field(default_factory=list)
    #: Emits before, between or after the inputs: in ``prepare``, ``pre_prepare`` and the like.
    outside: list[Emitted] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
