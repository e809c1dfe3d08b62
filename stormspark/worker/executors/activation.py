"""How a spout is activated and deactivated on its executor's thread.

The worker's thread decides whether the spout is to be active. The executor's thread calls ``activate`` or ``deactivate`` later,
between two other calls of the spout.
"""

from __future__ import annotations

from functools import partial

from stormspark.worker.executors.notes import InstanceEnded, Notes
from stormspark.worker.executors.task import ThreadedTask
from stormspark.worker.spout_task import SpoutTask

__all__ = ["ActivatedOnThread"]


class ActivatedOnThread(ThreadedTask, SpoutTask):
    """The part of a `stormspark.worker.executors.spout_task.ThreadedSpoutTask` that activates and deactivates the spout."""

    #: True if ``activate`` was called last, False if ``deactivate`` was, None if neither was; used by the executor's thread.
    _was_activated: bool | None
    #: How many calls of ``next_tuple`` are left in the turn; used by the executor's thread.
    _calls_left: int

    def set_active(self, active: bool) -> None:
        """See `SpoutTask.set_active`. The worker waits for the first ``open``, because a spout has to be opened before it is
        activated.
        """
        if active and not self.life.is_open:
            self.start()
            self.executors.wait_for_starts([self])
        super().set_active(active)

    def _activate_or_deactivate(self) -> None:
        if not self.life.is_active:
            self._calls_left = 0
        if self.executor.is_current:  # the spout is being opened
            self._was_activated = self.life.is_active
            super()._activate_or_deactivate()
        else:
            self.executor.submit(
                self.name, partial(self._activate_on_thread, self.notes, self.life.is_active)
            )

    def _activate_on_thread(self, notes: Notes, active: bool) -> None:
        if notes.ended or self.is_held or self._was_activated is active:
            return
        self._was_activated = active
        try:
            self._tell_activity(active)
        except InstanceEnded:
            return
        except BaseException as error:  # SystemExit must not end the thread
            failure = self._component_error("raised in activate or deactivate", error)
            self._note(notes, partial(self.stop_topology, failure))
