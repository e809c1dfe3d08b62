"""How the time of a round is divided: for how long spouts are asked, bolts run, and gaps between supersteps are filled."""

from __future__ import annotations

from math import inf

from stormspark.acker import RunningClock
from stormspark.backpressure import SpoutQuantum
from stormspark.plan.physical import PhysicalPlan

__all__ = ["RoundClock"]

#: Between supersteps a worker fills the gap with at most this share of its spouts' time: the tuples of the superstep itself are
#: those that other workers can begin with.
_MOST_FILLED = 0.5
#: One superstep counts for message timeouts with at most this share of a timeout, or as much as a pause: while one long call
#: runs, no worker can tell the others which tuples merely wait, and that news takes up to six supersteps to arrive (W2).
_STEP_SHARE = 1 / 8


class RoundClock:
    """The times of one worker, in seconds. It reads no clock itself; ``now`` is monotonic.

    ``sheds``: bolts drop or fail what does not fit. ``fills_gaps``: the worker may go on between two supersteps.
    """

    def __init__(self, plan: PhysicalPlan, *, sheds: bool) -> None:
        settings = plan.settings
        self._supersteps = plan.last_superstep + 1
        gap = settings.clock_gap_ms / 1000
        step = inf if settings.timeout_secs is None else settings.timeout_secs * _STEP_SHARE
        #: What message timeouts run on.
        self.running = RunningClock(gap, max(gap, step))
        #: How long spouts are asked per round.
        self.quantum = SpoutQuantum(settings.batch_target_ms / 1000)
        #: How long a superstep may take. Where spouts don't wait for slow bolts, all supersteps of a round share one target.
        self.turn_seconds = settings.superstep_deadline_ms / 1000
        if sheds:
            self.turn_seconds = min(
                self.turn_seconds, settings.batch_target_ms / 1000 / (plan.last_superstep + 1)
            )
        #: Rows of sources, and what a transaction emits, belong to a batch; where bolts shed, spouts have no time of their own.
        self._may_fill = not (
            sheds
            or plan.exactly_once
            or settings.trigger_interval_ms
            or any(component.source for component in plan.components.values())
        )
        #: Spouts had more to emit than time, in this round.
        self.quantum_used_up = False
        #: How long the worker was at work in this round.
        self.worked = 0.0
        #: How long it filled gaps since its last report, and how much of the gaps is left for that in this round.
        self.filled = self.left_to_fill = 0.0
        self._gaps = 0.0
        self._round_began: float | None = None
        self._superstep_ended: float | None = None

    @property
    def share_of_superstep(self) -> float:
        """How long one superstep may go round in loops: all supersteps of a round together have as long for that as its spouts
        have. More would make batches longer than their target, and the quantum, which follows them, would shrink at the cost of
        the spouts.
        """
        return self.quantum.seconds / self._supersteps

    def superstep_begins(self, now: float) -> None:
        """Note the gap since the superstep before."""
        if self._superstep_ended is not None:
            self._gaps += now - self._superstep_ended

    def superstep_ends(self, now: float) -> None:
        """Note where the next gap begins."""
        self._superstep_ended = now

    def round_begins(self, now: float, target: float | None, *, was_limited: bool, asks_freely: bool) -> None:
        """A round begins that should last ``target`` seconds; None: as long as the one before should.

        ``was_limited``: in the round before a limit stopped a spout, so that round shows nothing about how much time spouts may
        have without one. ``asks_freely``: in this round spouts are asked, and no limit is set for them.
        """
        if target is not None:
            self.quantum.target = target
        if self._round_began is not None:
            used_up = self.quantum_used_up and not was_limited
            self.quantum.batch_took(now - self._round_began, used_up=used_up)
        self._round_began = now
        self.quantum_used_up = False
        self.worked = 0.0
        fills = self._may_fill and asks_freely
        self.left_to_fill = min(self._gaps, self.quantum.seconds * _MOST_FILLED) if fills else 0.0
        self._gaps = 0.0
        self.running.begin_batch(now)

    def gap_filled(self, seconds: float, *, used_up: bool) -> None:
        """Part of a gap was used; unless spouts used it up, the rest of the gaps is not needed."""
        self.filled += seconds
        self.left_to_fill = self.left_to_fill - seconds if used_up else 0.0
