"""The result of a replay: what the bolt did with each input, how its state changed, and how that differs from the recording."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["MISSING", "Change", "Emitted", "Executed", "Replay"]

#: Stands for no value of a key.
MISSING = object()


class Emitted(NamedTuple):
    """A tuple that the bolt emitted, and the ids of the tasks that it went to, which a recording does not have."""

    stream: str
    values: tuple[Any, ...]
    tasks: tuple[int, ...] = ()


class Change(NamedTuple):
    """The change of one key of the state; `missing` stands for no value."""

    key: Any
    before: Any
    after: Any

    @staticmethod
    def missing() -> Any:
        """Return the object that stands for no value."""
        return MISSING


@dataclass
class Executed:
    """One input, with the bolt's emits, ack, fail or error; ``source`` is ``component[task]:stream``."""

    number: int
    source: str
    values: tuple[Any, ...]
    emitted: list[Emitted] = field(default_factory=list)
    acked: bool = False
    failed: bool = False
    #: The traceback of the error in ``execute``, where the replay ends; None without an error.
    raised: str | None = None


@dataclass
class Replay:
    """The result of a replay: what the task did, and how it differs from the recording. ``differences`` are sentences."""

    component: str
    task: int
    batch: int
    inputs: list[Executed] = field(default_factory=list)
    #: Emits before, between or after the inputs: in ``prepare``, ``pre_prepare`` and the like.
    outside: list[Emitted] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
