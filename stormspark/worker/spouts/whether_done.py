"""Asks a spout whether it is done (`Spout.is_done`), for its task."""

from __future__ import annotations

from collections.abc import Callable

from stormspark.api import AsyncSpout, Spout
from stormspark.api.components import overrides
from stormspark.worker.asynchronous.spout_executor import AsyncSpoutExecutor
from stormspark.worker.errors_of_code import ERRORS_OF_CODE

__all__ = ["WhetherDone"]


class WhetherDone:
    """The questions of one task. An error of the spout goes to ``report``, but only the first one in a row."""

    def __init__(self, report: Callable[[BaseException], None]) -> None:
        self._report = report
        self._raises = False

    def ask(self, instance: Spout) -> bool | None:
        """Return whether the spout says that it emits nothing more. Return None if it does not say, or if its answer is an error,
        because a spout with such an error must not keep the topology from ending for ever.
        """
        user = instance.spout if isinstance(instance, AsyncSpoutExecutor) else instance
        if not overrides(user, "is_done", Spout, AsyncSpout):
            return None
        noted = isinstance(instance, AsyncSpoutExecutor) and instance.has_noted
        try:
            done = bool(user.is_done())
        except ERRORS_OF_CODE as error:
            if not self._raises:
                self._raises = True
                error.add_note(
                    "is_done has raised this; as long as it raises, the spout counts as one that does not say whether it is done"
                )
                self._report(error)
            return None
        self._raises = False
        return done and not noted
