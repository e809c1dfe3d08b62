"""Hands state to starting workers if only the driver can reach the state table. The driver reads the state between two attempts.

When a worker asks for its state, it is too late to read the state from the table, because the round that starts the worker may
hold the cores that a Spark query would need. So the state waits in the driver's folder, in one file per worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from stormspark.checkpoint.state_components import component_states
from stormspark.checkpoint.state_files import ROWS, SCHEMA, WINDOW, TaskChanges, rows_of
from stormspark.errors import CheckpointError
from stormspark.plan.physical import PhysicalPlan

__all__ = ["HandedOut", "StateHandOver"]

_PART_BYTES = 4 << 20


class HandedOut(Protocol):
    """A state table that only the driver can reach. Each method may raise `CheckpointError`."""

    @property
    def last_txid(self) -> int:
        """The batch that was committed last; -1 before the first."""

    def metadata(self, as_of: int | None = None) -> dict[bytes, bytes]:
        """Return the metadata that the driver committed with its batches."""

    def newest(
        self, tasks: Mapping[str, Sequence[int] | None], kind: str = "state"
    ) -> Iterator[pa.RecordBatch]:
        """Yield the newest rows of these tasks.

        ``tasks`` maps each component to its tasks; None stands for all tasks of the component.
        """


class StateHandOver:
    """Hands state to the workers of one topology. ``folder`` is the driver's own folder."""

    def __init__(self, plan: PhysicalPlan, table: HandedOut, folder: Path) -> None:
        self._plan, self._table, self._folder = plan, table, folder
        self._waiting: dict[int, int] = {}  # for each worker with state that waits, the batch of that state

    def read(self, workers: Iterable[int]) -> None:
        """Prepare the state of these workers as of the last batch. If older state still waits for other workers, replace it.

        Raises `CheckpointError`.
        """
        last = self._table.last_txid
        wanted = set(workers) | {worker for worker, as_of in self._waiting.items() if as_of != last}
        if last < 0 or not wanted:
            return
        known = self._table.metadata()
        metadata = rows_of([TaskChanges("", -1, known.items(), "metadata")], last)
        tasks_before = {name: state.tasks for name, state in component_states(known).items()}
        for worker in wanted:
            self._write(worker, self._rows_of(worker, tasks_before), metadata)
            self._waiting[worker] = last

    def parts(self, worker: int) -> Iterator[bytes]:
        """Yield the state of a worker, in parts to send to the worker. The parts can be read only once.

        Before the first batch there are none.
        """
        if self._table.last_txid < 0:
            return
        if self._waiting.pop(worker, None) is None:
            msg = f"worker {worker} has asked twice for its state"
            raise CheckpointError(msg)
        path = self._path(worker)
        with path.open("rb") as file:
            while part := file.read(_PART_BYTES):
                yield part
        path.unlink()

    def _rows_of(self, worker: int, tasks_before: dict[str, int]) -> Iterator[pa.RecordBatch]:
        tasks = self._of_worker(worker, tasks_before)
        yield from self._table.newest(tasks)
        windowed = {name: indices for name, indices in tasks.items() if self._plan.components[name].windowed}
        if windowed:
            yield from self._table.newest(windowed, WINDOW)
        here = {task.component for task in self._plan.tasks_of_worker(worker)}
        if sources := here & {source.id for source in self._plan.sources}:
            yield from self._table.newest(dict.fromkeys(sources), ROWS)

    def _of_worker(self, worker: int, tasks_before: dict[str, int]) -> dict[str, list[int] | None]:
        """Return the tasks whose state a worker needs, by component.

        These are the worker's own tasks of the component. But if the component's number of tasks has changed, the worker needs
        all tasks of the component, for which None stands.
        """
        mine: dict[str, list[int]] = {}
        for task in self._plan.tasks_of_worker(worker):
            if self._plan.components[task.component].kind_of_state:
                mine.setdefault(task.component, []).append(task.index)
        return {
            name: indices if tasks_before[name] == len(self._plan.components[name].tasks) else None
            for name, indices in mine.items()
            if name in tasks_before
        }

    def _write(self, worker: int, batches: Iterable[pa.RecordBatch], metadata: pa.Table | None) -> None:
        try:
            with (
                pa.OSFile(str(self._path(worker)), "wb") as file,
                pa.ipc.new_stream(file, SCHEMA, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream,
            ):
                for batch in batches:
                    stream.write_batch(batch)
                if metadata is not None:
                    stream.write_table(metadata)
        except OSError as error:
            msg = f"the state of worker {worker} can't be written to {self._folder}: {error}"
            raise CheckpointError(msg) from error

    def _path(self, worker: int) -> Path:
        return self._folder / f"state-of-{worker}"
