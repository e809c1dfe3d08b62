"""The collector of a windowed bolt. It anchors emits to all tuples of the window that the bolt executes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from stormspark.acker import Branch
from stormspark.api import DEFAULT_STREAM, Fields, OutputCollector, TopologyContext, Tuple, TupleSource
from stormspark.worker.windows.window_state import WindowState

__all__ = ["WindowCollector"]


class WindowCollector:
    """The collector of a windowed bolt. Emits are anchored to all tuples of the current window, or to the anchors that the user
    names (C27).

    If there is a ``state``, the tuples of windows are acked already, and only the whole batch can fail.
    """

    __slots__ = ("_anchor", "_collector", "_source", "_state", "_tuples")

    def __init__(
        self, collector: OutputCollector, context: TopologyContext, state: WindowState | None = None
    ) -> None:
        self._collector = collector
        self._state = state
        self._source = TupleSource(context.this_component_id, context.this_task_id, "window", Fields())
        self._tuples: Sequence[Tuple] = ()
        self._anchor: Tuple | None = None

    def begin(self, tuples: Sequence[Tuple]) -> None:
        """Begin a window with these tuples, to which emits are anchored. An empty sequence ends the window."""
        self._tuples = tuples
        self._anchor = None

    def emit(
        self,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        anchors: Tuple | Iterable[Tuple] | None = None,
    ) -> list[int]:
        """Emit a tuple, and return the ids of the tasks that get it. Raises `EmitError` as `OutputCollector.emit` does."""
        return self._collector.emit(values, stream, self._window() if anchors is None else anchors)

    def emit_direct(
        self,
        task: int,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        anchors: Tuple | Iterable[Tuple] | None = None,
    ) -> None:
        """Emit on a direct stream to one task (B9, D11)."""
        self._collector.emit_direct(task, values, stream, self._window() if anchors is None else anchors)

    def _window(self) -> Tuple | tuple[()]:
        """Return one anchor for all tuples of the window, so that their trees are collected once per window and not once per
        emit.
        """
        if not self._tuples:
            return ()
        if self._anchor is None:
            trees: dict[Branch, None] = {}
            for tup in self._tuples:
                roots = tup.roots
                if roots is None or tup.state == 1:  # a tuple that is acked or failed can't be an anchor
                    continue
                if isinstance(roots, tuple):
                    trees.update(dict.fromkeys(roots))
                else:
                    trees[roots] = None
            self._anchor = Tuple(
                (), self._source, next(iter(trees), None) if len(trees) < 2 else tuple(trees)
            )
        return self._anchor

    def ack(self, tup: Tuple) -> None:
        """Ack a tuple early, before it leaves its last window.

        If the bolt's windows are state, do nothing, because the tuple is acked already.
        """
        if self._state is None:
            self._collector.ack(tup)

    def fail(self, tup: Tuple, reason: str | None = None) -> None:
        """Fail one tuple, which stays in its windows. If the bolt's windows are state, abort the batch instead."""
        if self._state is None:
            self._collector.fail(tup, reason)
        else:
            self._state.abort(f"failed {tup!r:.300} of a window: {reason or 'no reason given'}")

    def reset_timeout(self, tup: Tuple) -> None:
        """Begin the message timeouts of ``tup``'s trees anew (C11)."""
        self._collector.reset_timeout(tup)

    def flush(self) -> None:
        """Do nothing, because tuples leave with the superstep (C2)."""

    def report_error(self, error: BaseException | str) -> None:
        """Report an error of this task (C4)."""
        self._collector.report_error(error)
