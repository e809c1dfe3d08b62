"""The time per round in which spouts are asked for tuples."""

from __future__ import annotations

__all__ = ["SpoutQuantum"]


class SpoutQuantum:
    """The quantum of one worker's spouts. It is adjusted so that a whole round lasts about ``target`` seconds.

    A round takes longer than the quantum, because exchanges, supersteps of other workers and commits also take time. The quantum
    follows the measured rounds, by at most a factor of two per round. It learns only from rounds that used their quantum up.

    In this example a round takes 200 ms plus twice the quantum:

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
        """Learn from a round that took ``seconds`` from its start to the start of the next one."""
        if not used_up or seconds <= 0:
            return
        ideal = self.seconds * self.target / seconds
        self.seconds = min(max(ideal, self.seconds / 2, self.least), self.seconds * 2, self.target)
