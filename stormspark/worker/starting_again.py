"""The part of a task that starts it again if an error has ended its instance, and the next instance can't start (W22).

Perhaps a database is still away. The task is *down* then: it has no instance, and it starts again after a pause. All other tasks
go on. What waits for the task waits: a bolt's tuples in its queue, and the rows of a source at its spout.
"""

from __future__ import annotations

from typing import Any

from stormspark.api.retry import ExponentialBackoff
from stormspark.errors import ComponentError
from stormspark.metrics import TaskCounters
from stormspark.worker.task import Task

__all__ = ["StartsAgain"]

#: The pause after the first error in a row. Each further error doubles it, up to ``stormspark.restart.max.delay.secs``.
_FIRST_PAUSE_SECS = 0.05


class StartsAgain(Task):
    """The part of a bolt's and of a spout's task that starts the task again."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: Whether batches are transactions. If so, an error aborts the batch, and the rollback takes back what the task holds
        #: (C44).
        self.in_transactions = False
        #: Whether the task has no instance, because the last start failed and the next one has not begun.
        self.is_down = False

    def start_failed(self, error: ComponentError) -> None:
        """Start the task again after a pause, unless there were too many errors in a row (W22).

        The topology stops at once if the first instance can't start, and if the task has state or is in a transaction. If the
        task `starts_no_more`, the error is only reported, and the task stays down.
        """
        if self.starts_no_more:
            self.report_error(error.__cause__ or error)
            self._end_without_instance()
            return
        if not self._raised_in_row or self.in_transactions or self.state is not None:
            super().start_failed(error)
            return
        most = max(_FIRST_PAUSE_SECS, self._settings.restart_max_delay_secs)
        pause = ExponentialBackoff(_FIRST_PAUSE_SECS, _FIRST_PAUSE_SECS, most).delay(self._raised_in_row + 1)
        assert pause is not None, "the number of tries is limited elsewhere"
        # The cause is the user's own error. The text of `error` has that error's traceback, too.
        self.report_restart(error.__cause__ or error, pause)
        if self._too_many_in_row(self._first_call, error.__cause__ or error):
            return
        self._end_without_instance()
        self._host.set_timer(self, pause, self._start_again)

    def _end_without_instance(self) -> None:
        self._end_previous()  # it may have started threads, and set timers
        self._host.clear_timers(self)  # ticks
        self._is_down_now()

    def _is_down_now(self) -> None:
        """Have no instance until the next start."""
        self.is_down = True

    def read_counters(self) -> TaskCounters:
        """See `Task.read_counters`."""
        is_starting_again = bool(self._raised_in_row) and (
            self.begins_since is not None or self.starts_on_loop
        )
        self.counters.down = int(self.is_down or is_starting_again)
        return super().read_counters()

    def _start_again(self) -> None:
        if self.starts_no_more:
            return
        self.is_down = False
        self.counters.restarts += 1
        self.begin_anew()
