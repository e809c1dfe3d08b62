"""For how long spouts are asked in one batch."""

from __future__ import annotations

__all__ = ["SpoutQuantum"]


class SpoutQuantum:
    """Steers the time that spouts get so that a whole batch lasts about ``target`` seconds.

    A batch costs more than its spouts' time: exchanges, the supersteps of other workers, commits. The quantum
    follows the measured batches, by at most a factor of two a batch, and only batches that used their quantum
    up teach it anything.

    Here a batch costs 200 ms whatever happens, and twice the quantum besides:

    >>> quantum = SpoutQuantum(target=1.0)
    >>> quantum.seconds
    0.25
    >>> for _ in range(8): quantum.batch_took(0.2 + 2 * quantum.seconds, used_up=True)
    >>> round(quantum.seconds, 2)
    0.4
    """

    __slots__ = ("least", "seconds", "target")

    def __init__(self, target: float) -> None:
        self.target = target
        self.least = target / 10
        self.seconds = target / 4

    def batch_took(self, seconds: float, *, used_up: bool) -> None:
        """Learn from a batch that took ``seconds`` from its start to the start of the next one."""
        if not used_up or seconds <= 0:
            return
        ideal = self.seconds * self.target / seconds
        self.seconds = min(max(ideal, self.seconds / 2, self.least), self.seconds * 2, self.target)
