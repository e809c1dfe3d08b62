"""The recording of a worker's bolts, batch by batch. It holds the tuples that the bolts get and emit
(``stormspark.record.inputs``).

The values of all tuples of a chunk are pickled before the chunk is executed, so the bolt can't change them first. A recording
must not harm the topology. So if a file can't be written, a warning is logged, and the batch has no recording.

The calls of an `AsyncBolt` run side by side. So the recording of each of their emits has the number of the input whose call made
it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from stormspark.acker import Roots
from stormspark.api import Tuple
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
        #: The emits since the last chunk: the stream, or the stream and the number of the input, and the values.
        self._emits: list[tuple[str | tuple[str, int], tuple[Any, ...]]] = []
        self._inputs = b""
        #: Of an `AsyncBolt`: how many inputs it got in this batch, the number of each, and the number of the input to whose call
        #: the next emits belong. It is None if they belong to no call of this batch.
        self._given = 0
        self._numbers: MutableMapping[Tuple, int] = WeakKeyDictionary()
        self._number: int | None = None

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
        """Drop the emits of a batch that is rolled back, and number the inputs anew."""
        self._emits.clear()
        self._given = 0
        self._numbers.clear()

    def given(self, tup: Tuple) -> None:
        """See `FollowsCalls.given`."""
        self._given += 1
        self._numbers[tup] = self._given

    def carry_out(self, tup: Tuple, note: Callable[[], object]) -> None:
        """See `FollowsCalls.carry_out`."""
        self._number = self._numbers.get(tup)
        try:
            note()
        finally:
            self._number = None

    def emitted(self, stream: str, values: tuple[Any, ...]) -> None:
        """Record an emit."""
        self._emits.append((stream if self._number is None else (stream, self._number), values))

    def _add(self, executed: int, inputs: bytes) -> None:
        emits = b""
        if self._emits:
            streams, values = zip(*self._emits, strict=True)
            emits = dump_pairs(streams, values)
        self._emits.clear()
        self._recording.add(Chunk(self._component, self._index, executed, inputs, emits))

    def observed(self, outlet: Outlet) -> Outlet:
        """Wrap ``outlet`` so that its emits are recorded."""
        return _Recorded(outlet, self.emitted)


class _Recorded(WrappedOutlet):
    """An outlet that records emits."""

    def __init__(self, outlet: Outlet, emitted: Callable[[str, tuple[Any, ...]], None]) -> None:
        super().__init__(outlet)
        self._emitted = emitted

    def send(self, values: tuple[Any, ...], roots: Roots) -> list[int]:
        tasks = super().send(values, roots)
        self._emitted(self.source.stream, values)
        return tasks

    def send_direct(self, task: int, values: tuple[Any, ...], roots: Roots) -> int:
        sent = super().send_direct(task, values, roots)
        self._emitted(self.source.stream, values)
        return sent
