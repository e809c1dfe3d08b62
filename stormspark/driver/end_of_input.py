"""The end of the input: when it has come, in which order bolts flush, and when the topology is done. Both engines use this.

The input has ended if every spout says so (`Spout.is_done`), if the topology only processes what its sources have at the start
(``trigger="available-now"``), or if the user says so (`RunningTopology.end_input`). Bolts may still hold tuples then: in windows
that wait for later tuples, and in batches that are not full. So bolts *flush* what they hold, one turn after another
(`stormspark.plan.flushing`). All turns together are a *pass*.

    RUNNING     the input goes on
    FLUSHING    in the next batch, the bolts of one turn flush
    DRAINING    tuples that were emitted since then wait somewhere, so the next turn has to wait
    WAITING     all turns are over, but trees are open: of tuples that a bolt still holds, or that have failed and come again;
                or a bolt has executed tuples after its flush
    DONE        nothing is left, and the topology ends

A tuple that fails during a pass may come again. So may the result of a bolt's own thread come to bolts that have flushed already.
The next pass flushes them, once all is quiet again. If a worker is lost, the states begin anew, because its rows come again.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum

from stormspark.plan.flushing import bolts_in_loops
from stormspark.plan.physical import PhysicalPlan
from stormspark.worker.step import WorkerReport

__all__ = ["EndOfInput", "InputState"]

_log = logging.getLogger(__name__)

#: The input has ended if nothing has come in so many batches in a row. A spout that has just got a fail may emit again in the
#: next batch.
_QUIET_BATCHES = 2
#: With ``available_now``, a spout that does not say whether it is done counts as done once nothing has happened for so long.
_SILENT_SECS = 1.0
#: There are at most this many passes in a row in which no tree ends, but bolts execute tuples after their flushes.
_PASSES = 100


class InputState(Enum):
    """The state of a topology's input between two batches."""

    RUNNING = "running"
    FLUSHING = "flushing"
    DRAINING = "draining"
    WAITING = "waiting"
    DONE = "done"


class EndOfInput:
    """The end of one topology's input. Call `observe` after each batch; the other attributes are orders for the next one.

    If ``available_now``, the input ends when nothing comes any more. A spout that does not say whether it is done, and reads no
    source, has to be quiet for ``patience_secs``.
    """

    def __init__(
        self, plan: PhysicalPlan, *, available_now: bool = False, patience_secs: float = _SILENT_SECS
    ) -> None:
        self._plan, self._patience = plan, patience_secs
        self._turns = max(plan.flush_turns.values(), default=0) if plan.settings.flush_at_end else 0
        self._loops = bolts_in_loops(plan)
        self._may_end = available_now
        #: Whether the user has said that the input has ended.
        self._is_told = False
        self.state = InputState.RUNNING
        self._turn = 0
        self._warned = False
        self._begin()

    def _begin(self) -> None:
        self._quiet, self._quiet_since = 0, 0.0
        self._emitted = self._progress = self._failed = -1
        self._passes = 0
        #: By bolt that flushes: how many tuples it had executed before its last flush.
        self._before_flush: dict[str, int] = {}
        #: While draining: what was executed at the last look, and how often in a row only calls waited since then.
        self._drained, self._stuck = -1, 0

    # -- orders ------------------------------------------------------------------------------------------------

    @property
    def has_ended(self) -> bool:
        """Whether the input has ended, so that windows hold what comes until the next flush."""
        return self.state is not InputState.RUNNING

    @property
    def flushes(self) -> int:
        """The turn of the bolts that flush in the next batch; 0 for none."""
        return self._turn if self.state is InputState.FLUSHING else 0

    @property
    def is_near(self) -> bool:
        """Whether the topology ends soon, so that batches follow one another without pauses."""
        return self.state in (InputState.FLUSHING, InputState.DRAINING) or self._is_told

    @property
    def is_done(self) -> bool:
        """Whether the topology can end."""
        return self.state is InputState.DONE

    # -- what happens --------------------------------------------------------------------------------------------

    def end(self) -> None:
        """End the input as soon as nothing comes for two batches, because the user says so. Any thread may call this."""
        self._is_told = True

    def begin_attempt(self) -> None:
        """Begin anew, because a worker is gone or a batch has failed: what was open comes again."""
        if not self.is_done:
            self.state, self._turn = InputState.RUNNING, 0
            self._begin()

    def observe(
        self, reports: Sequence[WorkerReport], came: int = 0, *, now: float, sources_done: bool = True
    ) -> None:
        """Take in the reports of a batch that has ended at the time ``now``. ``came`` is how many rows of sources were new in it.
        ``sources_done`` is false if a source says that it has more rows.
        """
        spouts = [
            counters
            for report in reports
            for task, counters in report.counters.items()
            if self._plan.components[self._plan.tasks[task].component].kind == "spout"
        ]
        earlier, later = self._waiting_calls(reports)
        backlog = sum(report.backlog for report in reports) - later
        emitted = sum(one.emitted for one in spouts)
        quiet = not (backlog or came) and emitted == self._emitted and sources_done
        if not quiet:
            self._quiet, self._quiet_since = 0, now
        else:
            self._quiet += 1
        self._emitted = emitted
        pending = sum(one.pending for one in spouts)
        failed = sum(one.failed for one in spouts)
        progress = emitted + failed + sum(one.acked for one in spouts)
        if progress != self._progress:
            self._passes = 0
        by_component = self._executed_by_component(reports)
        executed = sum(by_component.values())
        state = self.state
        if state is InputState.RUNNING:
            if self._is_over(reports, now):
                self._failed = failed
                self._begin_pass(pending, progress)
        elif state in (InputState.FLUSHING, InputState.DRAINING):
            may_come_again = failed != self._failed or self._has_come_late(by_component, pending, reports)
            self._go_on(backlog, pending, reports, may_come_again=may_come_again)
            # Tuples of async bolts that have come again after the flush of their bolt wait for another flush.
            waits = self.state is InputState.DRAINING and backlog == earlier and executed == self._drained
            self._stuck, self._drained = self._stuck + 1 if waits else 0, executed
            if self._stuck >= _QUIET_BATCHES:
                self._failed = failed
                self._begin_pass(pending, progress)
        elif state is InputState.WAITING and self._is_over(reports, now):
            late = self._has_come_late(by_component, pending, reports)
            if not (pending or late):
                self.state = InputState.DONE
            elif progress != self._progress or late:
                self._failed = failed
                self._begin_pass(pending, progress)
        if self.state is InputState.FLUSHING:
            for bolt, turn in self._plan.flush_turns.items():
                if turn == self._turn:
                    self._before_flush[bolt] = by_component[bolt]

    def _executed_by_component(self, reports: Iterable[WorkerReport]) -> Counter[str]:
        executed: Counter[str] = Counter()
        for report in reports:
            for task, counters in report.counters.items():
                executed[self._plan.tasks[task].component] += counters.executed
        return executed

    def _waiting_calls(self, reports: Iterable[WorkerReport]) -> tuple[int, int]:
        """Return how many calls of async bolts may wait for a flush: of bolts whose turn has come, and of all others."""
        turn = self._turn if self.state in (InputState.FLUSHING, InputState.DRAINING) else 0
        calls = [0, 0]
        for report in reports:
            for task, counters in report.counters.items():
                if counters.waiting_calls:
                    bolt = self._plan.tasks[task].component
                    calls[self._plan.flush_turns.get(bolt, 0) > turn] += counters.waiting_calls
        return calls[0], calls[1]

    def _is_over(self, reports: Iterable[WorkerReport], now: float) -> bool:
        said: dict[str, set[bool | None]] = {}
        for report in reports:
            for spout, done in report.spouts_done.items():
                said.setdefault(spout, set()).add(done)
        if self._is_told:
            return self._quiet >= _QUIET_BATCHES
        if any(False in answers for answers in said.values()):
            return False
        silent = [spout for spout, answers in said.items() if None in answers]
        if not silent:
            return bool(said) and self._quiet >= 1
        if not self._may_end or self._quiet < _QUIET_BATCHES:
            return False
        sources = {source.id for source in self._plan.sources}
        return sources.issuperset(silent) or now - self._quiet_since >= self._patience

    def _begin_pass(self, pending: int, progress: int) -> None:
        self._passes += progress == self._progress
        self._progress = progress
        self._turn = 1
        self.state = InputState.FLUSHING
        if not self._turns:
            # Without flushes, open trees are left to the next run (`Settings.flush_at_end`), unless bolts may still ack them.
            ends = not pending or not self._plan.settings.flush_at_end
            self.state = InputState.DONE if ends else InputState.WAITING

    def _go_on(
        self, backlog: int, pending: int, reports: Iterable[WorkerReport], *, may_come_again: bool
    ) -> None:
        if backlog:
            self.state = InputState.DRAINING
            return
        self._turn += 1
        if self._turn <= self._turns:
            self.state = InputState.FLUSHING
        elif not (pending or may_come_again):
            self.state = InputState.DONE
        else:
            self.state = InputState.WAITING
            if pending:
                self._warn(pending, reports)

    def _has_come_late(self, executed: Counter[str], pending: int, reports: Iterable[WorkerReport]) -> bool:
        """Whether bolts have executed tuples after their last flush, and may flush them.

        Bolts of a loop flush them as long as trees are open, and other bolts as long as they hold tuples. Tuples in no tree are
        held by nobody, so they get a single pass: ticks may bring such tuples again and again.
        """
        held = _held(reports)
        for bolt, before in self._before_flush.items():
            if executed[bolt] == before:
                continue
            in_loop = bolt in self._loops
            in_tree = pending if in_loop else held[bolt]
            without_tree = not (pending or in_loop)
            if self._passes < (_PASSES if in_tree else int(without_tree)):
                return True
        return False

    def _warn(self, pending: int, reports: Iterable[WorkerReport]) -> None:
        if self._warned:
            return
        self._warned = True
        where = ", ".join(f"{count:,} that {bolt} holds" for bolt, count in sorted(_held(reports).items()))
        loop = (
            f"; {', '.join(self._loops)} are in a loop, and flush what goes round it again and again"
            if self._loops
            else ""
        )
        _log.warning(
            "the input of %s has ended and its bolts have flushed, but %d messages are pending%s: it waits until they are acked "
            "or fail. A bolt that holds tuples acks them in end_of_input%s",
            self._plan.topology,
            pending,
            f" (tuples: {where})" if where else "",
            loop,
        )


def _held(reports: Iterable[WorkerReport]) -> Counter[str]:
    """Return how many tuples each bolt holds."""
    held: Counter[str] = Counter()
    for report in reports:
        held.update(report.held)
    return held
