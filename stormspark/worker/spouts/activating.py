"""The part of a spout's task that activates and deactivates the spout (B13).

The spout hears of a change at once, unless a call of its ``next_tuple`` is suspended inside an emit. Then it hears of the change
after that call has returned, and only if it is still a change.
"""

from __future__ import annotations

from typing import Any

from stormspark.errors import ComponentError
from stormspark.worker.errors_of_code import ERRORS_OF_CODE
from stormspark.worker.spouts.suspendable_calls import SuspendableCalls
from stormspark.worker.spouts.taking_rows import TakesRows

__all__ = ["IsActivated", "call_name"]


def call_name(active: bool) -> str:
    """Return the name of the call by which a spout hears that it is active, or that it is not."""
    return "activate" if active else "deactivate"


class IsActivated(TakesRows):
    """The part of a `stormspark.worker.spout_task.SpoutTask` that activates and deactivates the spout."""

    #: The calls of ``next_tuple``, one of which may be suspended.
    calls: SuspendableCalls

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._nothing_told()

    def _nothing_told(self) -> None:
        """Remember that the instance is new, and has heard of no change."""
        #: `_told_active`: whether the instance was told ``activate`` last, and not ``deactivate``. `_tells_later`: whether it has
        #: to hear of a change once its suspended call has returned.
        self._told_active = self._tells_later = False

    def set_active(self, active: bool) -> None:
        """Call ``activate`` or ``deactivate`` if ``active`` is a change (B13). Open the spout before its first ``activate``
        (B2).
        """
        if active == self.life.is_active:
            return
        if not self.life.is_open:
            self.start()
        if active:
            self.life.activated()
        else:
            self.life.deactivated()
        self._activate_or_deactivate(active)

    def _activate_or_deactivate(self, active: bool) -> None:
        if self.is_down:
            return  # the next instance learns it when it is opened
        if self.calls.suspended:
            self._tells_later = True
            return
        try:
            self._tell_activity(active)
        except ERRORS_OF_CODE as error:
            failure = self._component_error(f"raised in {call_name(active)}", error)
            raise failure from error

    def _tell_late(self) -> None:
        """Call ``activate`` or ``deactivate``, if this was put off until now and is still a change."""
        self._tells_later = False
        if self._told_active is not self.life.is_active:
            self._activate_or_deactivate(self.life.is_active)

    def _tell_activity(self, active: bool) -> None:
        self._told_active = active
        if active:
            self.spout.activate()
        else:
            self.spout.deactivate()

    def _tell_late_or_stop(self) -> None:
        try:
            self._tell_late()
        except ComponentError as error:
            self.stop_topology(error)

    def activate_or_stop(self, active: bool) -> None:
        """Call `set_active`. An error in it stops the topology."""
        try:
            self.set_active(active)
        except ComponentError as error:
            self.stop_topology(error)
