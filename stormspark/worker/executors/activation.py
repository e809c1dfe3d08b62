"""How a spout is activated and deactivated on its executor's thread.

The worker's thread decides whether the spout is to be active. The executor's thread calls ``activate`` or ``deactivate`` later,
between two other calls of the spout.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from stormspark.api import TopologyContext
from stormspark.worker.executors.notes import InstanceEnded, Notes
from stormspark.worker.executors.task import ThreadedTask
from stormspark.worker.spout_task import SpoutTask
from stormspark.worker.spouts.activating import call_name

__all__ = ["ActivatedOnThread"]


class ActivatedOnThread(ThreadedTask, SpoutTask):
    """The part of a `stormspark.worker.executors.spout_task.ThreadedSpoutTask` that activates and deactivates the spout."""

    #: Whether the spout is to be active, even if it is not open yet; used by the worker's thread.
    is_wanted = False
    #: Whether ``activate`` was called, and ``deactivate`` was not called after it; used by the executor's thread.
    _was_activated = False
    #: How many calls of ``next_tuple`` are left in the turn; used by the executor's thread.
    _calls_left: int

    def set_active(self, active: bool) -> None:
        """See `SpoutTask.set_active`. Nobody waits for the first ``open``. Once it has returned, the spout is activated."""
        self.is_wanted = active
        if self.life.is_open:
            super().set_active(active)
        elif active and not self.is_starting:
            self.start()

    def _begin(self, instance: Any, context: TopologyContext) -> None:
        self._was_activated = False
        super()._begin(instance, context)

    def _call_first(self) -> None:
        """See `ThreadedTask._call_first`. While the instance was started, nobody told it of a change. So it is told now."""
        super().set_active(self.is_wanted)
        self._activate_or_deactivate(self.life.is_active)

    def roll_back_state(self, txid: int) -> None:
        """See `TaskInBatches.roll_back_state`. If the first instance was being started, it has ended, so start another one."""
        super().roll_back_state(txid)
        if self.is_starting and self.notes.ended:
            self.begin_anew()

    def _activate_or_deactivate(self, active: bool) -> None:
        if self.executor.is_current:  # the spout is being opened
            self._was_activated = active
            super()._activate_or_deactivate(active)
            return
        if not active:
            self._calls_left = 0
        self.executor.submit(self.name, partial(self._activate_on_thread, self.notes, active))

    def _activate_on_thread(self, notes: Notes, active: bool) -> None:
        if notes.ended or self.is_held or self._was_activated is active:
            return
        self._was_activated = active
        try:
            self._tell_activity(active)
        except InstanceEnded:
            return
        except BaseException as error:  # SystemExit must not end the thread
            failure = self._component_error(f"raised in {call_name(active)}", error)
            self._note(notes, partial(self.stop_topology, failure))
