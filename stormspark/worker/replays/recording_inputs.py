"""The recording of a worker's bolts, batch by batch. It holds the tuples that the bolts get and emit
(``stormspark.record.inputs``).

The values of all tuples of a chunk are pickled before the chunk is executed, so the bolt can't change them first. A recording
must not harm the topology. So if a file can't be written, a warning is logged, and the batch has no recording.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from stormspark.acker import Roots
from stormspark.checkpoint.recorded_inputs import Chunk, InputFile, InputFiles, dump_pairs, named
from stormspark.checkpoint.state_table import TaskChanges
from stormspark.spi import TransactionAttempt
from stormspark.worker.tuples.outlets import Delivery, Outlet, WrappedOutlet

if TYPE_CHECKING:
    from stormspark.worker.bolt_task import BoltTask

__all__ = ["BatchBegins", "BatchEnds", "InputRecording", "TaskInputs"]

_log = logging.getLogger(__name__)


class BatchBegins(NamedTuple):
    """Recorded when ``begin_batch`` of a `BatchAware` bolt is called. The fields are the arguments of the call."""

    attempt: TransactionAttempt
    announced: Any


class BatchEnds(NamedTuple):
    """Recorded when ``end_batch`` of a `BatchAware` bolt is called, which means that all tuples of the batch have come."""


class InputRecording:
    """The recording of the bolts of one worker. For each batch, call `begin` first, then `add` for each chunk, and then `end`,
    unless the batch fails.
    """

    def __init__(self, files: InputFiles, generation: int, worker: int, bolts: Iterable[BoltTask]) -> None:
        self._files, self._generation, self._worker = files, generation, worker
        self._batch: int | None = None
        self._file: InputFile | None = None
        #: The files of this attempt at the batch that `end` has closed.
        self._closed: list[InputFile] = []
        self.tasks = {bolt.id: TaskInputs(bolt.component.id, bolt.index, self) for bolt in bolts}

    def begin(self, batch: int) -> None:
        """Begin an attempt at a batch. A file that `end` did not close belongs to a failed attempt, and is removed."""
        self._give_up()
        self._batch, self._closed = batch, []
        for task in self.tasks.values():
            task.forget()

    def end(self) -> TaskChanges:
        """Close the batch's file. Return a row for the state table that lists the files of the recording.

        The row is committed with the batch. If the recording has failed, the row lists no file.
        """
        for task in self.tasks.values():
            task.flush()
        if self._file is not None:
            try:
                self._file.close()
                self._closed.append(self._file)
                self._file = None
            except OSError as error:
                self._failed(error)
        whole = self._batch is not None
        return named(self._worker, [file.path for file in self._closed] if whole else [])

    def add(self, chunk: Chunk) -> None:
        """Record an executed chunk, unless the recording of this batch has failed."""
        if self._batch is None:
            return
        if self._file is None:
            self._file = InputFile(self._files.folder, self._generation, self._batch)
        try:
            self._file.add(chunk)
        except OSError as error:
            self._failed(error)

    def _give_up(self) -> None:
        if self._file is not None:
            self._file.abandon()
            self._file = None

    def _failed(self, error: OSError) -> None:
        _log.warning(
            "the inputs of batch %s can't be recorded in %s: %s", self._batch, self._files.location, error
        )
        self._give_up()
        self._batch = None


class TaskInputs:
    """The recording of one task. Call `begins` before each chunk that the task executes, and `ended` after it."""

    def __init__(self, component: str, index: int, recording: InputRecording) -> None:
        self._component, self._index, self._recording = component, index, recording
        self._emits: list[tuple[str, tuple[Any, ...]]] = []
        self._inputs = b""

    def begins(self, chunk: list[Delivery]) -> None:
        """Pickle the tuples of a chunk that is about to be executed."""
        self.flush()
        chunk = chunk[:]  # a copy, because `BoltTask.look` may shorten the chunk between two reads
        self._inputs = dump_pairs([delivery[1] for delivery in chunk], [delivery[0] for delivery in chunk])

    def ended(self, executed: int) -> None:
        """Record the chunk. The first ``executed`` of its tuples were executed."""
        self._add(executed, self._inputs)

    def note(self, event: BatchBegins | BatchEnds) -> None:
        """Record an event that happened between two tuples."""
        self.flush()
        self._add(0, dump_pairs([None], [event]))

    def flush(self) -> None:
        """Record the emits since the last chunk. They did not come from ``execute``."""
        if self._emits:
            self._add(0, b"")

    def forget(self) -> None:
        """Drop the emits of a batch that is rolled back."""
        self._emits.clear()

    def _add(self, executed: int, inputs: bytes) -> None:
        emits = b""
        if self._emits:
            streams, values = zip(*self._emits, strict=True)
            emits = dump_pairs(streams, values)
        self._emits.clear()
        self._recording.add(Chunk(self._component, self._index, executed, inputs, emits))

    def observed(self, outlet: Outlet) -> Outlet:
        """Wrap ``outlet`` so that its emits are recorded."""
        return _Recorded(outlet, self._emits)


class _Recorded(WrappedOutlet):
    """An outlet that records emits."""

    def __init__(self, outlet: Outlet, emits: list[tuple[str, tuple[Any, ...]]]) -> None:
        super().__init__(outlet)
        self._emits = emits

    def send(self, values: tuple[Any, ...], roots: Roots) -> list[int]:
        tasks = super().send(values, roots)
        self._emits.append((self.source.stream, values))
        return tasks

    def send_direct(self, task: int, values: tuple[Any, ...], roots: Roots) -> int:
        sent = super().send_direct(task, values, roots)
        self._emits.append((self.source.stream, values))
        return sent
