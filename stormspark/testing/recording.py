"""Records the emits of all tasks of a topology, in all processes, by a task hook that a setting adds to each task (J21)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from stormspark.api import EmitInfo, TaskHook, TopologyContext
from stormspark.errors import SerializationError
from stormspark.testing.spool import Spool

__all__ = ["AUTO_HOOKS", "Emission", "RecordEmits", "Recording"]

AUTO_HOOKS = "topology.auto.task.hooks"
_WHERE = "testing.recording"
_MOST = "testing.recording.most"
_REPORT_EVERY = 1000  # a task that has emitted too many tuples reports this again after so many more


class Emission(NamedTuple):
    """An emit of a task. ``at`` is the time in nanoseconds, by a clock that all processes of the host share."""

    at: int
    component: str
    task: int
    stream: str
    values: tuple[Any, ...]


class Recording:
    """The emits that have been recorded so far.

    With ``in_process``, all tasks run in this process, and add their emits directly. Otherwise tasks pickle their emits and send
    them through a `Spool`. If a task emits more than ``most`` tuples, the further ones are not recorded, and `endless` is the
    name of the task's component. If the task is in this process, its thread also calls ``on_endless`` from time to time.
    """

    def __init__(self, *, in_process: bool, most: int, on_endless: Callable[[], None] | None = None) -> None:
        self.on_endless = on_endless
        self._most = most
        self._spool = None if in_process else Spool()
        self._key = uuid.uuid4().hex
        self._emissions: list[Emission] = []
        self.endless: str | None = None

    def hook_conf(self, already: Any) -> dict[str, Any]:
        """Return the setting that adds the recording hook to the hooks that the topology has ``already``."""
        where = self._spool.folder if self._spool is not None else self._key
        return {AUTO_HOOKS: [*(already or ()), f"{__name__}:RecordEmits"], _WHERE: where, _MOST: self._most}

    def __enter__(self) -> Recording:
        _here[self._key] = self
        return self

    def __exit__(self, *_: object) -> None:
        del _here[self._key]

    def add(self, emission: Emission) -> None:
        """Record an emit of a task in this process."""
        self._emissions.append(emission)

    def add_endless(self, component: str) -> None:
        """Record that a task in this process has emitted too many tuples."""
        self.endless = component
        if self.on_endless is not None:
            self.on_endless()

    def look(self) -> list[Emission]:
        """Return all emits so far. Emits of one task are in order, and emits of several tasks are sorted by time."""
        new = self._spool.read() if self._spool is not None else []
        for record in new:
            if isinstance(record, Emission):
                self._emissions.append(record)
            else:
                self.endless = record
        if new:
            self._emissions.sort(key=lambda emission: emission.at)
        return self._emissions


_here: dict[str, Recording] = {}


class RecordEmits(TaskHook):
    """The task hook that records the emits of a task."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Find the `Recording` in this process, or the folder to which this process must write."""
        self._component = context.this_component_id
        self._recording = _here.get(conf[_WHERE])
        self._left: int = conf[_MOST]
        self._spool: Spool | None = None
        if self._recording is None:
            self._spool = Spool(conf[_WHERE])
            self._spool.check(f"complete_topology, component {self._component!r}")

    def emit(self, info: EmitInfo) -> None:
        """Record the emit."""
        self._left -= 1
        if self._left < 0:
            if self._left % _REPORT_EVERY == _REPORT_EVERY - 1:
                self._report_endless()
            return
        emission = Emission(time.monotonic_ns(), self._component, info.task, info.stream, info.values)
        if self._spool is None:
            assert self._recording is not None
            self._recording.add(emission)
            return
        try:
            self._spool.append(emission)
        except Exception as error:
            msg = (
                f"component {self._component!r}, task {info.task}, stream {info.stream!r}: complete_topology can't record "
                f"{info.values!r}: {error}"
            )
            raise SerializationError(msg) from error

    def _report_endless(self) -> None:
        if self._spool is None:
            assert self._recording is not None
            self._recording.add_endless(self._component)
        else:
            self._spool.append(self._component)
