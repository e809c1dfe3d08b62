"""A pystorm spout inside of a task: its methods take the place of the adapter's, so it costs no call more than a native one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from stormspark.api import DEFAULT_STREAM, SpoutOutputCollector, TopologyContext
from stormspark.api import Spout as ApiSpout
from stormspark.compat.streamparse.adapter import Adapter, handle
from stormspark.compat.streamparse.component import Surroundings, begin
from stormspark.compat.streamparse.spout import Spout
from stormspark.compat.streamparse.values import PLAIN, copied

__all__ = ["SpoutAdapter"]


class SpoutAdapter(Adapter[Spout], ApiSpout):
    """Runs the pystorm spout of a class."""

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        """Make the spout and let it begin."""
        spout = self.component()
        spout._stormspark = Surroundings(context, collector)
        spout._emit = _emitter(collector)
        if type(spout).emit is Spout.emit:
            spout.emit = spout._emit  # type: ignore[method-assign]
        begin(spout, conf, context)
        for name in ("next_tuple", "ack", "fail", "activate", "deactivate"):
            method = getattr(spout, name)
            setattr(self, name, method if spout.exit_on_exception else _guarded(spout, method))

    def next_tuple(self) -> None:
        """Replaced by the spout's own."""
        raise NotImplementedError


def _emitter(collector: SpoutOutputCollector) -> Callable[..., list[int] | None]:
    plain = PLAIN

    def emit(
        tup: Sequence[Any],
        tup_id: Hashable | None = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        if type(tup) is not list and not isinstance(tup, list | tuple):
            msg = f"All Tuples must be either lists or tuples, received {type(tup)!r} instead: {tup!r}"
            raise TypeError(msg)
        for value in tup:
            if type(value) not in plain:
                tup = copied(tup)
                break
        if direct_task is None:
            # The collector's method is looked up each time: it becomes another one when the spout starts a thread.
            tasks = collector.emit(tuple(tup), DEFAULT_STREAM if stream is None else stream, tup_id)
            return tasks if need_task_ids else None
        collector.emit_direct(direct_task, tuple(tup), stream or DEFAULT_STREAM, tup_id)
        return [direct_task] if need_task_ids else None

    return emit


def _guarded(spout: Spout, method: Callable[..., None]) -> Callable[..., None]:
    """A method whose exceptions are reported and end nothing (C14)."""

    def guarded(*args: Any) -> None:
        try:
            method(*args)
        except Exception as error:
            handle(spout, error)

    return guarded
