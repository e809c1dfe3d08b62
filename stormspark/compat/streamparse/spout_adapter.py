"""Runs a pystorm spout in a task. The spout's methods replace the adapter's, so a call costs no more than with other spouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stormspark.api import Spout as ApiSpout
from stormspark.api import SpoutOutputCollector, TopologyContext
from stormspark.compat.streamparse.adapter import Adapter, handle
from stormspark.compat.streamparse.component import Surroundings, begin
from stormspark.compat.streamparse.early import with_task_ids
from stormspark.compat.streamparse.passage import SpoutPassage
from stormspark.compat.streamparse.spout import Spout

__all__ = ["SpoutAdapter"]


class SpoutAdapter(Adapter[Spout], ApiSpout):
    """The adapter that runs a pystorm spout."""

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        """Make the spout and initialize it."""
        spout = self.component()
        spout._stormspark = Surroundings(context, collector)
        emit: Callable[..., list[int] | None] = SpoutPassage(collector).emit
        spout._emit = with_task_ids(emit) if self.early else emit
        if type(spout).emit is Spout.emit:
            spout.emit = spout._emit  # type: ignore[method-assign]
        begin(spout, conf, context, early=self.early)
        for name in ("next_tuple", "ack", "fail", "activate", "deactivate"):
            method = getattr(spout, name)
            setattr(self, name, method if spout.exit_on_exception else _guarded(spout, method))

    def next_tuple(self) -> None:
        """Raise NotImplementedError. This is never called, because `open` replaces it by the pystorm spout's method."""
        raise NotImplementedError


def _guarded(spout: Spout, method: Callable[..., None]) -> Callable[..., None]:
    """Return a function that calls the method. If the method raises, the function reports that, and the spout continues (C14)."""

    def guarded(*args: Any) -> None:
        try:
            method(*args)
        except Exception as error:
            handle(spout, error)

    return guarded
