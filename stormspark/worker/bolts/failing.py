"""The part of a bolt's task that handles errors of the bolt (W22). It fails the tuple at fault. Unless the error is a
`FailedException`, it also settles all tuples that the bolt holds, and restarts the task.

If ``prepare`` raises then, perhaps because a database is still away, the task is *down*: it has no instance, its tuples wait in
its queue, and it starts again after a pause. All other tasks go on.
"""

from __future__ import annotations

from math import inf
from typing import Any

from stormspark.acker import Outcome, Verdict
from stormspark.api import BoltFailInfo, Tuple
from stormspark.api.retry import ExponentialBackoff
from stormspark.api.tuple_state import SETTLED
from stormspark.errors import ComponentError, FailedException, ReportedFailedException
from stormspark.worker.bolts.runner import Runner
from stormspark.worker.task import Task
from stormspark.worker.tuples.edges import fail_roots

__all__ = ["FailsTuples"]

#: The pause after the first error in a row. Each further error doubles it, up to ``stormspark.restart.max.delay.secs``.
_FIRST_PAUSE_SECS = 0.05


class FailsTuples(Task):
    """The part of a `stormspark.worker.bolt_task.BoltTask` that handles errors of the bolt."""

    #: The runner of the current instance, which knows the tuples that the bolt holds.
    _runner: Runner

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: Whether batches are transactions. If so, an error aborts the batch, and the rollback takes back the tuples that the
        #: bolt holds (C44).
        self.in_transactions = False
        #: Whether the task has no instance, because the last start failed and the next one has not begun.
        self.is_down = False

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
        if tup is not None and tup.state != SETTLED:
            self.counters.failed += 1
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
        # Nobody can ack the tuples that the old instance held. In a transaction the rollback takes them back, so their trees do
        # not fail now. But if the error came from work outside, the bolt was at work on the held tuples, so they fail.
        theirs = not self.in_transactions or (tup is None and self._runner.works_outside)
        why = f"the task that held it was restarted after {verdict.reason}"
        lost = Verdict(Outcome.FAILED, why, self.component.id, self.id)
        for held, _ in self.held():
            held.state = SETTLED
            self.counters.failed += 1
            if theirs:
                fail_roots(self._ledger, held.roots, lost)
            self.call_fail_hooks(held)
        self._runner.forget_all()
        self._restart(where, error)

    def start_failed(self, error: ComponentError) -> None:
        """Start the bolt again after a pause, unless there were too many errors in a row (W22).

        A task with state, or in a transaction, stops the topology at once.
        """
        if self.in_transactions or self.state is not None:
            super().start_failed(error)
            return
        most = max(_FIRST_PAUSE_SECS, self._settings.restart_max_delay_secs)
        pause = ExponentialBackoff(_FIRST_PAUSE_SECS, _FIRST_PAUSE_SECS, most).delay(self._raised_in_row + 1)
        assert pause is not None, "the number of tries is limited elsewhere"
        self.report_restart(error, pause)
        if self._too_many_in_row(self._first_call, error.__cause__ or error):
            return
        self._end_previous()  # it may have started threads, and set timers
        self._runner = Runner(self)  # type: ignore[arg-type]
        self._host.clear_timers(self)  # ticks
        self.is_down = True
        self._host.set_timer(self, pause, self._start_again)

    def _start_again(self) -> None:
        self.is_down = False
        self.counters.restarts += 1
        self.begin_anew()

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
