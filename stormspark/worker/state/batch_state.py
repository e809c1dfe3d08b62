"""The state of a worker's tasks, batch by batch. This module restores, prepares, commits and rolls back the state.

A worker only prepares a batch: it writes its tasks' changes to a file, and names the file in its report. If only the driver can
reach the state table, the report holds the changes themselves. The driver decides whether to commit the batch. A commit is one
entry in the log of the state table. The worker learns the decision with the next batch, or with the next attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from stormspark.checkpoint.barriers import reached
from stormspark.checkpoint.handed_state import HandedState
from stormspark.checkpoint.redistribution import Moved, as_batch, deal, moves
from stormspark.checkpoint.state_components import component_states
from stormspark.checkpoint.state_files import ROWS, WINDOW, ChangedRows, changed_rows
from stormspark.checkpoint.state_table import FileDescription, StateTable, TaskChanges, write_changes
from stormspark.errors import CheckpointError
from stormspark.plan.physical import PhysicalPlan
from stormspark.worker.replays.recording_inputs import InputRecording
from stormspark.worker.spout_task import SpoutTask
from stormspark.worker.task import Task

__all__ = ["BatchState", "StateAccess"]


class StateAccess(NamedTuple):
    """The location of a topology's state, the generation that may write to it, and the last committed batch (-1 if there is
    none).
    """

    location: str
    generation: int
    committed: int = -1
    storage_options: Mapping[str, str] | None = None
    #: Whether only the driver can reach the table. If so, changes go to the driver in reports, and ``handed`` is the path of
    #: the file with the state that the driver has sent.
    by_driver: bool = False
    handed: str = ""


class BatchState:
    """The state of the ``tasks`` of one worker, and the open rows of its source ``spouts``.

    If ``access`` is None, the state is only in memory, and ends with the process. ``enter`` is called with the task whose code
    runs next, and with None afterwards. So a message can name a call that does not return (B1).
    """

    def __init__(
        self,
        plan: PhysicalPlan,
        tasks: Iterable[Task],
        spouts: Iterable[SpoutTask] = (),
        access: StateAccess | None = None,
        *,
        enter: Callable[[Task | None], None] = lambda task: None,
    ) -> None:
        self._plan, self._enter = plan, enter
        self._tasks = [task for task in tasks if task.state is not None]
        self._sources = [spout for spout in spouts if spout.component.source]
        #: The state that has moved to tasks of this worker, because the number of tasks of their components has changed. An
        #: entry is kept until a commit has stored the state under its new task.
        self._dealt: dict[str, dict[int, list[Moved]]] = {}
        self._access = access
        #: The generation of the driver; 0 if no state is kept durably.
        self.generation = 0 if access is None else access.generation
        #: Records the inputs of bolts; None if inputs are not recorded.
        self.recording: InputRecording | None = None
        #: The batch that was committed last, as far as this worker knows.
        self.last = -1 if access is None else access.committed

    def restore(self) -> None:
        """Restore the tasks' state and the spouts' open rows, before the tasks begin.

        Raises `CheckpointError` if the state can't be read.
        """
        access = self._access
        if access is None or access.committed < 0 or not (self._tasks or self._sources):
            return
        table: StateTable | HandedState
        if access.by_driver:
            table = HandedState(access.handed, access.location)
        else:
            table = StateTable(access.location, storage_options=access.storage_options)
            table.refresh()
        try:
            self._load(table, access.committed)
        except OSError as error:
            msg = f"the state as of batch {access.committed} can't be read from {access.location}: {error}"
            raise CheckpointError(msg) from error

    def _load(self, table: StateTable | HandedState, committed: int) -> None:
        known = component_states(table.metadata(committed))
        for name, tasks in groupby(self._tasks, key=lambda task: task.component.id):
            mine = {task.index: task for task in tasks}
            component = self._plan.components[name]
            before = known.get(name)
            if before is not None and before.tasks != len(component.tasks):
                self._dealt[name] = deal(self._plan, component, table, committed, mine, before.tasks)
            for index, task in mine.items():
                assert task.state is not None
                if name in self._dealt:
                    task.state.load([as_batch(self._dealt[name][index])])
                else:
                    windows = table.restore(name, index, committed, WINDOW) if component.windowed else ()
                    task.state.load(table.restore(name, index, committed), windows)

        for spout in self._sources:
            spout.restore_rows(self._rows_of(spout, table, committed))

    def _rows_of(
        self, spout: SpoutTask, table: StateTable | HandedState, committed: int
    ) -> Iterator[tuple[int, bytes, bytes]]:
        """Iterate over the open rows for this spout's task, each as (task, key, value).

        ``task`` is the index of the task that had the row before. If there are fewer tasks now, the rows of the removed tasks
        are shared out among the others.
        """
        tasks = len(self._plan.components[spout.component.id].tasks)
        for rows in table.plan_restore(spout.component.id, None, committed, ROWS).rows():
            columns = (rows.column(name).to_pylist() for name in ("task", "key", "value"))
            for task, key, value in zip(*columns, strict=True):
                if task % tasks == spout.index:
                    yield task, key, value

    def prepare(self, txid: int) -> FileDescription | ChangedRows | None:
        """Write the changes of batch ``txid`` to a file, and return the file's description.

        If only the driver can reach the table, write no file, and return the changed rows. Return None if nothing has changed,
        if state is only in memory, or if the batch can't be prepared. In the last case one task has the reason (`Task.aborts`).
        """
        reached("worker.before_prepare")
        changes: list[TaskChanges] = []
        for task in self._entered():
            changed = task.prepare_state(txid)
            if changed is None:
                self._enter(None)
                return None
            changes += changed
        if self._access is None:
            return None
        for spout in self._sources:
            changes += spout.held_rows()
        if self._dealt:
            changes = list(self._with_moves(changes))
        if self.recording is not None:
            changes.append(self.recording.end())
        reached("worker.prepared")
        access = self._access
        file: FileDescription | ChangedRows | None
        if access.by_driver:
            file = changed_rows(changes, generation=access.generation, txid=txid)
        else:
            try:
                file = write_changes(
                    access.location,
                    changes,
                    generation=access.generation,
                    txid=txid,
                    storage_options=access.storage_options,
                )
            except (CheckpointError, OSError) as error:
                # This is no reason to stop the topology. The batch runs again, and by then the storage may work again.
                [*self._tasks, *self._sources][0].abort(f"{type(error).__name__}: {error}", outside=True)
                return None
        reached("worker.written")
        return file

    def _with_moves(self, changes: list[TaskChanges]) -> Iterator[TaskChanges]:
        """Iterate over the changes, and over all state that has moved from one task to another."""
        for name, dealt in self._dealt.items():
            own = {one.task: one.items for one in changes if one.component == name}
            for index, items in moves(dealt, own):
                yield TaskChanges(name, index, items.items())
        yield from (one for one in changes if one.component not in self._dealt)

    def _entered(self) -> Iterator[Task]:
        """Iterate over the tasks. Call ``enter`` with each task before it is yielded, and with None at the end."""
        for task in self._tasks:
            self._enter(task)
            yield task
        self._enter(None)

    def committed(self, txid: int) -> None:
        """Let all tasks take over the state of batch ``txid``, which is committed. This batch must be later than `last`."""
        reached("worker.before_commit")
        for task in self._entered():
            task.commit_state(txid)
        self._dealt.clear()
        self.last = txid
        reached("worker.committed")

    def roll_back(self, txid: int) -> None:
        """Take all tasks back to the state of batch ``txid``, because the batch after that one runs again.

        ``txid`` must be equal to `last`.
        """
        reached("worker.before_rollback")
        for task in self._entered():
            task.roll_back_state(txid)
        reached("worker.rolled_back")
