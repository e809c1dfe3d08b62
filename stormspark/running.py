"""A running topology in the hands of its user: a ``with`` block, what a notebook shows of it, and progress.

Both engines' topologies inherit this. `stormspark.engine.RunningTopology` is what they do themselves.
"""

from __future__ import annotations

import logging
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

if TYPE_CHECKING:
    from stormspark.engine import RunningTopology
    from stormspark.ui.look import Look

__all__ = ["TopologyHandle", "end"]

_log = logging.getLogger(__name__)


class TopologyHandle:
    """The base class of running topologies.

    >>> from stormspark import Fields, TopologyBuilder
    >>> from stormspark.local import submit
    >>> from stormspark.testing import FixedTupleSpout, TestWordCounter
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", FixedTupleSpout([("a",), ("b",), ("a",)], Fields("word")))
    >>> _ = builder.set_bolt("count", TestWordCounter()).fields_grouping("words", Fields("word"))
    >>> with submit(builder.create_topology("counts")) as running:
    ...     running.run_until_idle()
    >>> running.wait(0), running.statistics().components["words"].acked
    (True, 3)
    """

    _look: Look | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the topology, whatever has happened in the block.

        If the block ended well, but the topology did not, raise the topology's error. If the block raised an exception, that one
        goes on, with a note about the topology's error. An interrupt while the topology stops kills it.
        """
        running = self._running
        if isinstance(error, KeyboardInterrupt) and not running.wait(0):
            _log.warning(
                "interrupted: topology %s stops at the end of its batch; interrupt again to end it at once",
                running.name,
            )
        end(running)
        if running.error is None or running.error is error:
            return
        if error is None:
            raise running.error
        about = f"{type(running.error).__name__}: {running.error}"
        error.add_note(f"and topology {running.name!r} had stopped with an error: {about}")

    def __repr__(self) -> str:
        """Return the topology's state in one line: whether it runs, how fast, and what slows it down."""
        return f"<{type(self).__name__} {self._looked_at().line()}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: state, rates, the culprit, errors, the graph, a table, and links to logs."""
        return self._looked_at().html(self.links())

    def links(self) -> dict[str, str]:
        """Return what there is to read about this topology: addresses, by what is there."""
        folder = self._running.log_folder
        return {} if folder is None else {f"logs: {folder}": Path(folder).absolute().as_uri()}

    def show_progress(
        self, seconds: float | None = None, *, until_idle: float | None = None, every: float = 0.5
    ) -> None:
        """Show how the topology gets on, until it has ended: in a notebook one output that changes, elsewhere a line.

        Return earlier once ``seconds`` have passed, or once nothing has happened for ``until_idle`` seconds. The topology then
        still runs. An interrupt ends the call, too, and leaves the topology alone.

        A notebook's output changes every ``every`` seconds. In a Databricks notebook without IPython's display handles, there
        are lines, and the output at the end.
        """
        from stormspark.ui.notebook import show_progress

        show_progress(self._running, self.links, seconds=seconds, until_idle=until_idle, every=every)

    def _looked_at(self) -> Look:
        from stormspark.ui.look import Look

        if self._look is None:
            self._look = Look(self._running)
        self._look.again()
        return self._look

    @property
    def _running(self) -> RunningTopology:
        return cast("RunningTopology", self)


def end(running: RunningTopology) -> None:
    """Stop a topology, unless it has ended. An interrupt meanwhile kills it, and goes on."""
    if running.wait(0):
        return
    try:
        running.stop()
    except KeyboardInterrupt:
        _log.warning("interrupted: topology %s ends at once, without close and cleanup", running.name)
        running.kill()
        raise
