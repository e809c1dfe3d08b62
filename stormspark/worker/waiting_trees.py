"""The trees of tuples that wait in a worker's queues. A tuple that merely waits is not late, so its trees do not time out."""

from __future__ import annotations

from stormspark.acker import Ledger
from stormspark.plan.physical import PhysicalPlan
from stormspark.worker.round_clock import RoundClock
from stormspark.worker.tuples.edges import reset_timeouts
from stormspark.worker.wiring import Wiring

__all__ = ["WaitingTrees"]


class WaitingTrees:
    """The waiting trees of one worker. Message timeouts run on the clock ``round_clock.running``."""

    def __init__(self, plan: PhysicalPlan, ledger: Ledger, wiring: Wiring, round_clock: RoundClock) -> None:
        self._timeout, self._ledger = plan.settings.timeout_secs, ledger
        self._wiring, self._round_clock = wiring, round_clock
        #: The time of the next look for tuples that wait, on the clock of message timeouts.
        self._next_look = 0.0

    def spare(self) -> None:
        """Begin the timeout anew for trees whose tuples have only waited, because such tuples are not late (W2, W3).

        The worker looks about four times per timeout, so that the workers of the spouts hear of waiting tuples in time. Tuples
        that have moved since the last look are not spared. Otherwise a tuple that goes round in a loop would keep its tree
        alive for ever. Tuples behind one call that has lasted longer than the timeout are not spared either, because that call
        may never return (E10).

        Tuples that windows hold until a watermark comes are spared, too, however long that takes. If they timed out, they would
        come again, and the windows would have them twice.
        """
        timeout, running = self._timeout, self._round_clock.running.seconds
        if timeout is None or running < self._next_look:
            return
        self._next_look = running + timeout / 4
        for bolt in self._wiring.bolts:
            waiting = bolt.not_reached()
            if bolt.behind_call_secs > timeout:
                continue
            for _, _, roots in waiting:
                reset_timeouts(self._ledger, roots)
            if bolt.holds_for_watermark:
                for held, _ in bolt.held():
                    reset_timeouts(self._ledger, held.roots)
