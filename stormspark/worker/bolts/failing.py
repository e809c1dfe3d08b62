"""The part of a bolt's task that handles errors of the bolt (W22). It fails the tuple at fault. Unless the error is a
`FailedException`, it also settles all tuples that the bolt holds, and restarts the task.

If ``prepare`` raises then, the task starts again after a pause (`stormspark.worker.starting_again`).
"""

from __future__ import annotations

from math import inf

from stormspark.acker import Outcome, Verdict
from stormspark.api import BoltFailInfo, Tuple, TupleSource
from stormspark.api.tuple_state import SETTLED
from stormspark.errors import FailedException, ReportedFailedException
from stormspark.worker.bolts.input_counts import InputCounts
from stormspark.worker.bolts.runner import Runner
from stormspark.worker.starting_again import StartsAgain
from stormspark.worker.tuples.edges import fail_roots

__all__ = ["FailsTuples"]


class FailsTuples(StartsAgain):
    """The part of a `stormspark.worker.bolt_task.BoltTask` that handles errors of the bolt."""

    #: The runner of the current instance, which knows the tuples that the bolt holds.
    _runner: Runner
    #: The counts by input; None unless the bolt reads several streams.
    by_input: InputCounts | None = None

    def count_failed(self, source: TupleSource, number: int = 1) -> None:
        """Count tuples of a source that have failed."""
        self.counters.failed += number
        if self.by_input is not None:
            self.by_input.failed[source] += number

    def raised(self, where: str, error: BaseException) -> None:
        """Handle an error outside of ``execute``, such as in a timer's callback."""
        self._fail_and_restart(where, error, None)

    def _fail_and_restart(self, where: str, error: BaseException, tup: Tuple | None) -> None:
        """Fail ``tup``, if one tuple is at fault, and restart the task (W22).

        After a `FailedException` the task is not restarted, because only the tuple has failed (C5).
        """
        verdict = Verdict(
            Outcome.FAILED, f"{type(error).__name__}: {error}"[:1000], self.component.id, self.id
        )
        if where == "end_of_input":
            self.counters.unwritten = 1
        if tup is not None and tup.state != SETTLED:
            self.count_failed(tup._source)
            if self.by_input is not None and self._runner.acks_on_return:
                self.by_input.acked[tup._source] -= 1  # it is about to count as executed, and so as acked
            self._runner.forget(tup)
            tup.state = SETTLED
            fail_roots(self._ledger, tup.roots, verdict)
            self.call_fail_hooks(tup)
        if not isinstance(error, FailedException) or tup is None or tup.roots is None:
            self.abort(f"{where} raised {verdict.reason}")
        if isinstance(error, FailedException):
            if isinstance(error, ReportedFailedException) or tup is None:
                self.report_error(error)
            self._raised_in_row = 0
            return
        self.report_restart(error)
        if self.starts_no_more:  # the instance stays, and its other calls that are under way may still ack
            self._restart(where, error)
            return
        # Nobody can ack the tuples that the old instance held. In a transaction the rollback takes them back, so their trees do
        # not fail now. But if the error came from work outside, the bolt was at work on the held tuples, so they fail.
        theirs = not self.in_transactions or (tup is None and self._runner.works_outside)
        why = f"the task that held it was restarted after {verdict.reason}"
        lost = Verdict(Outcome.FAILED, why, self.component.id, self.id)
        for held, _ in self.held():
            held.state = SETTLED
            self.count_failed(held._source)
            if theirs:
                fail_roots(self._ledger, held.roots, lost)
            self.call_fail_hooks(held)
        self._runner.forget_all()
        self._restart(where, error)

    def _is_down_now(self) -> None:
        super()._is_down_now()
        self._runner = Runner(self)  # type: ignore[arg-type]

    def held(self) -> list[tuple[Tuple, float]]:
        """Return the executed tuples that are neither acked nor failed yet, each with the time when its chunk began."""
        return self._runner.held()

    def call_fail_hooks(self, tup: Tuple, most: float = inf) -> None:
        """Call the hooks, because the collector, an error in ``execute`` or shedding has failed ``tup``.

        If the hooks can't be called at once, at most ``most`` fails wait for their call. The hooks do not hear of further
        fails.
        """
        for hook in self.hooks:
            hook.bolt_fail(BoltFailInfo(tup, self.id))
