"""The verdict on a tuple tree: how the tree ended, and why (W4)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["ACKED", "Outcome", "Verdict"]


class Outcome(Enum):
    """The way in which a tree ended. ``ACKED`` leads to the spout's ``ack``, and the others lead to its ``fail``. If the spout's
    task has begun anew in the meantime, neither is called (`Ledger.forget`).

    ``TAKEN_BACK`` means that the tree's batch did not go well, whatever happened to the tree itself (C44).
    """

    ACKED = "acked"
    FAILED = "failed by a bolt"
    TIMED_OUT = "timed out"
    WORKER_LOST = "worker lost"
    TAKEN_BACK = "taken back with its batch"


@dataclass(frozen=True)
class Verdict:
    """The verdict on one tree: how it ended, and why.

    If a bolt failed the tree, ``component`` and ``task`` name that bolt. ``root`` is the key of the tree's story.

    >>> str(Verdict(Outcome.FAILED, "KeyError: 'price'", "parse", 7))
    "failed by a bolt: parse[7]: KeyError: 'price'"
    """

    outcome: Outcome
    reason: str | None = None
    component: str | None = None
    task: int | None = None
    root: int | None = None

    def __str__(self) -> str:
        where = f"{self.component}[{self.task}]" if self.component else None
        return ": ".join(part for part in (self.outcome.value, where, self.reason) if part)


#: The verdict of every tree that was fully processed.
ACKED = Verdict(Outcome.ACKED)
