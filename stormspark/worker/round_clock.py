"""The clock of rounds. It divides the time of a round among the calls of spouts, the bolts, and the gaps between supersteps."""

from __future__ import annotations

from math import inf

from stormspark.acker import RunningClock
from stormspark.backpressure import SpoutQuantum
from stormspark.plan.physical import PhysicalPlan

__all__ = ["RoundClock"]

#: A worker uses at most this share of the spouts' time in the gaps between supersteps. The rest is for superstep 0, because the
#: other workers have nothing to do before they get the tuples of superstep 0.
_MOST_FILLED = 0.5
#: One superstep advances the clock of message timeouts by at most this share of a timeout, or by ``stormspark.clock.gap.ms`` if
#: that is more. While one call takes long, its worker can't tell the other workers which tuples merely wait. After the call, up
#: to six supersteps pass until they know. The trees of these tuples must not time out meanwhile (W2).
_STEP_SHARE = 1 / 8


class RoundClock:
    """The clock of one worker's rounds. Its methods get the time in monotonic seconds, and it reads no clock itself.

    If ``sheds``, bolts drop or fail tuples that do not fit, so spouts do not wait for bolts.
    """

    def __init__(self, plan: PhysicalPlan, *, sheds: bool) -> None:
        settings = plan.settings
        self._supersteps = plan.last_superstep + 1
        gap = settings.clock_gap_ms / 1000
        step = inf if settings.timeout_secs is None else settings.timeout_secs * _STEP_SHARE
        #: The clock that message timeouts run on.
        self.running = RunningClock(gap, max(gap, step))
        #: For how long spouts are called per round.
        self.quantum = SpoutQuantum(settings.batch_target_ms / 1000)
        #: How many seconds a superstep may take. If bolts shed, it may also take no more than an equal share of the round's
        #: target.
        self.turn_seconds = settings.superstep_deadline_ms / 1000
        if sheds:
            self.turn_seconds = min(
                self.turn_seconds, settings.batch_target_ms / 1000 / (plan.last_superstep + 1)
            )
        #: Whether spouts may be called in gaps, and their tuples executed. They may not in three cases: if tuples belong to a
        #: batch (rows of sources, transactions), if batches begin at fixed intervals, or if bolts shed, because then no time is
        #: reserved for spouts.
        self.may_fill = not (
            sheds
            or plan.exactly_once
            or settings.trigger_interval_ms
            or any(component.source for component in plan.components.values())
        )
        #: Whether the time of this round was too short for what the spouts had to emit.
        self.quantum_used_up = False
        #: How many seconds the worker was at work in this round.
        self.worked = 0.0
        #: `filled`: for how many seconds spouts were called in gaps since the last report. `left_to_fill`: for how many more
        #: seconds they may be called in the gaps of this round.
        self.filled = self.left_to_fill = 0.0
        self._gaps = 0.0
        #: Whether spouts emitted after superstep 0 in this round, so that the round may end before their trees do.
        self.emitted_late = False
        #: How many seconds of the quantum spouts may still use in this round.
        self.left_to_ask = 0.0
        self._round_began: float | None = None
        self._superstep_ended: float | None = None

    @property
    def has_begun(self) -> bool:
        """Whether a round has begun. Before the first one, nothing may happen in a worker."""
        return self._round_began is not None

    @property
    def share_of_superstep(self) -> float:
        """How many seconds one superstep may spend on tuples that go around loops of the topology.

        All supersteps of a round together may spend as much time on that as the round has for spouts. If they spent more,
        batches would be longer than their target. Then the quantum, which follows the length of batches, would shrink, and
        spouts would get less time.
        """
        return self.quantum.seconds / self._supersteps

    def superstep_begins(self, now: float) -> None:
        """Count the gap since the previous superstep."""
        if self._superstep_ended is not None:
            self._gaps += now - self._superstep_ended

    def superstep_ends(self, now: float) -> None:
        """Remember when the superstep ended, because the next gap begins then."""
        self._superstep_ended = now

    def round_begins(self, now: float, target: float | None, *, was_limited: bool, unlimited: bool) -> None:
        """Begin a round that should last ``target`` seconds, or as long as the previous one if ``target`` is None.

        ``was_limited`` says that a limit stopped a spout in the previous round. Such a round does not show how much time spouts
        may have without a limit. ``unlimited`` says that spouts are called in this round, and have no limit.
        """
        if target is not None:
            self.quantum.target = target
        if self._round_began is not None:
            used_up = self.quantum_used_up and not was_limited
            self.quantum.batch_took(now - self._round_began, used_up=used_up)
        self._round_began = now
        self.quantum_used_up = False
        self.worked = 0.0
        self.emitted_late = False
        self.left_to_ask = self.quantum.seconds
        fills = self.may_fill and unlimited
        self.left_to_fill = min(self._gaps, self.quantum.seconds * _MOST_FILLED) if fills else 0.0
        self._gaps = 0.0
        self.running.begin_batch(now)

    def gap_filled(self, seconds: float, *, used_up: bool) -> None:
        """Count ``seconds`` of a gap in which spouts were called. Unless they ``used_up`` that time, they do not need the rest
        of the gaps.
        """
        self.filled += seconds
        self.left_to_fill = self.left_to_fill - seconds if used_up else 0.0
