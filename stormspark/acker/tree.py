"""What one worker knows of one tuple tree."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stormspark.acker.verdict import Verdict

__all__ = ["SpoutAccount", "Tree"]


class SpoutAccount:
    """The trees of one spout task: how many are open, and those that ended and wait for ``ack`` or ``fail``."""

    __slots__ = ("ended", "pending", "task")

    def __init__(self, task: int) -> None:
        self.task = task
        self.pending = 0
        self.ended: list[Tree] = []


class Tree:
    """A tree, or the part of it that lives in this worker.

    The tuple path works on the two public numbers directly, since a method call a tuple is what Python can't afford:

    - ``count``: edges that are open in this worker. A copy of a tuple emitted here adds one, its ack takes one away, and
      whoever brings it to zero calls `Ledger.drained`.
    - ``value``: the XOR of the edges to other workers as far as they are known here.

    ``account`` is the spout task's in the worker that owns the tree, None for a part of another worker's tree.
    """

    __slots__ = ("account", "bucket", "count", "emitted_at", "home", "message_id", "root_id", "value", "verdict")

    def __init__(self, account: SpoutAccount | None, message_id: Hashable, emitted_at: float) -> None:
        self.count = 0
        self.value = 0
        self.account = account
        self.message_id = message_id
        self.emitted_at = emitted_at  # wall clock of the emit, for the complete latency
        self.root_id = 0  # 64 random bits once it is known outside of this worker
        self.home = -1  # the worker that owns it, for a part
        self.bucket: dict[Tree, None] | None = None  # where the timeouts keep it
        self.verdict: Verdict | None = None

    def __repr__(self) -> str:
        return f"Tree({self.message_id!r}, root={self.root_id:#018x}, count={self.count}, value={self.value:#018x})"
