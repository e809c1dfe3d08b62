"""The spare time of a worker, in which it calls spouts although superstep 0 is over.

A worker has spare time in later supersteps of a round, in the gaps between supersteps, and between two batches.
"""

from __future__ import annotations

from collections.abc import Callable

from stormspark.plan.physical import PhysicalPlan
from stormspark.worker.current_call import CurrentCall
from stormspark.worker.executors.executors import Executors
from stormspark.worker.outside import OutsideWork
from stormspark.worker.round_clock import RoundClock
from stormspark.worker.services import TaskServices
from stormspark.worker.stories.stories import Stories
from stormspark.worker.turns import Turns
from stormspark.worker.wiring import Wiring

__all__ = ["SpareTime"]

#: How long spouts are called in a gap before the worker checks whether the next superstep has come.
_FILL_SECONDS = 0.002


class SpareTime:
    """The spare time of one worker. Deadlines are on ``clock``."""

    def __init__(
        self,
        plan: PhysicalPlan,
        clock: Callable[[], float],
        wiring: Wiring,
        services: TaskServices,
        stories: Stories,
        call: CurrentCall,
        round_clock: RoundClock,
        executors: Executors,
        outside: OutsideWork,
        turns: Turns,
    ) -> None:
        self._exactly_once, self._clock, self._wiring = plan.exactly_once, clock, wiring
        self._services, self._stories, self._call = services, stories, call
        self._round_clock, self._executors = round_clock, executors
        self._outside, self._turns = outside, turns

    def ask_again(self, deadline: float, *, asks_spouts: bool) -> None:
        """Call the spouts that max spout pending stopped earlier in the round, if acks have come for them since.

        Otherwise they would wait for the next round, and for Spark, which begins that round. They use the rest of the quantum, so
        the round gets no longer than any other. If batches are transactions, do nothing, because no ack comes before the batch
        ends.
        """
        clock, turns = self._round_clock, self._turns
        if (
            self._exactly_once
            or not asks_spouts
            or not turns.spouts_wait
            or clock.left_to_ask <= 0
            or self._wiring.fatal is not None
        ):
            return
        spouts = [spout for spout in self._wiring.spouts if spout.has_room_again]
        if not spouts:
            return
        now, emitted = self._clock(), sum(spout.allowance.emitted for spout in spouts)
        for spout in spouts:
            spout.allowance.go_on(now)
        turns.ask_spouts(min(deadline, now + clock.left_to_ask), spouts)
        clock.left_to_ask -= self._clock() - now
        clock.emitted_late |= sum(spout.allowance.emitted for spout in spouts) != emitted

    def fill_gap(self) -> bool:
        """Call spouts for a moment, and run bolts, between two supersteps, if the worker has more work than time. If it has not,
        pass on tuples that wait for async bolts or children, so that these have work also if the gap is longer than their calls,
        and what spouts on threads have emitted (`_carry_on`).

        The tuples leave with the next superstep, as if the last one had been longer. Returns false if there is nothing to do, or
        no time for it. Superstep 0 has left a part of the quantum for the gaps. This part is at most the time that the gaps of
        the previous round took. Without this bound, a worker that waits for a slow worker would emit all the time, and flood the
        slow worker with tuples.
        """
        now, clock = self._clock(), self._round_clock
        if self._wiring.fatal is not None:
            return False
        if clock.left_to_fill <= 0 or not clock.quantum_used_up:
            # If batches are transactions, calls begin in supersteps only.
            until = now + _FILL_SECONDS
            return not self._exactly_once and (self._keep_outside_busy(until) or self._carry_on(until))
        for spout in self._wiring.spouts:
            spout.allowance.go_on(now)
        until = now + min(_FILL_SECONDS, clock.left_to_fill)
        used_up = self._turns.ask_spouts(until, [one for one in self._wiring.spouts if not one.is_ending])
        self._stories.end_superstep()
        clock.gap_filled(self._clock() - now, used_up=used_up)
        return used_up

    def _keep_outside_busy(self, until: float) -> bool:
        """Pass tuples on to bolts that work outside of the worker, as their calls end. Return false if none waits for them, or if
        these bolts take none and have no call that could end, because they are down or the topology stops.
        """
        bolts = [bolt for bolt in self._outside.bolts if bolt.waiting and bolt.fatal is None]
        if not bolts:
            return False
        waited = self._outside.wait(until)
        ready = [bolt for bolt in bolts if bolt.ready]
        for bolt in ready:
            self._turns.execute(bolt, until)
        self._call.enter(None)
        return waited or bool(ready)  # else the worker would spin until the next superstep

    def _carry_on(self, until: float) -> bool:
        """Carry what spouts on threads of their own have emitted as far as it gets in this worker, and wait for more. Return
        false if there is no such spout, or if only supersteps may do this.

        A spout that sleeps emits mostly between two batches. Its tuple would wait until Spark begins the next batch: for a second
        or more while the JVM is cold. The spout gets no turn here, so it emits no more than it may in a round.
        """
        executors, clock = self._executors, self._round_clock
        if not (executors.spouts and clock.may_fill and clock.has_begun) or executors.is_told_to_stop:
            return False
        if not executors.has_notes() and not self._outside.wait(until):
            executors.wait(until)
        if executors.has_notes() or any(bolt.ready for bolt in self._wiring.bolts if bolt.fatal is None):
            self._turns.run_pass(until)
            self._stories.end_superstep()
        return True

    def stirs(self) -> bool:
        """Return whether there is something to do now, between two batches, for a worker that was idle in the last round.

        Something to do is a timer that is due, a call of a user's thread, a note of an executor, or the end of the topology. If
        there is nothing of the kind, call each spout that reads no source once, and return whether one has emitted. Its tuple
        waits for the next batch, like any tuple that a batch leaves over. If batches are transactions, spouts are not called,
        because their tuples belong to a batch.
        """
        now = self._clock()
        if now >= self._services.timers.next_due or self._wiring.fatal is not None or self._turns.has_calls():
            return True
        if self._executors.has_notes() or self._services.loop_has_notes():
            return True
        stirs = False
        for spout in () if self._exactly_once else self._wiring.spouts:
            if spout.may_emit and not (spout.component.source or spout.is_ending):
                self._call.enter(spout)
                stirs |= spout.ask(1, now)
        self._call.enter(None)
        return stirs
