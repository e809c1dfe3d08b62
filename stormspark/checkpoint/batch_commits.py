"""The driver's side of transactions: the driver commits each batch to the state table of the topology.

    workers prepare -> commit(N) -> Spark commits the offsets of N

If a driver dies between the two commits, Spark brings batch N again. The next driver finds N committed and skips it. So the
table is never behind Spark's own checkpoint, and at most one batch ahead of it.
"""

from __future__ import annotations

import logging
import os
import pickle
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import cloudpickle

from stormspark.checkpoint.barriers import reached
from stormspark.checkpoint.recorded_inputs import InputFiles
from stormspark.checkpoint.redistribution import keys_are_of_grouping
from stormspark.checkpoint.state_components import component_states, described, states_of
from stormspark.checkpoint.state_files import ChangedRows
from stormspark.checkpoint.state_table import FileDescription, StateTable
from stormspark.checkpoint.tidying import Tidying
from stormspark.errors import CheckpointError
from stormspark.plan.physical import PhysicalPlan

__all__ = ["BatchCommits", "BatchTable"]

_log = logging.getLogger(__name__)

#: Tidying takes about this share of the time.
_TIDY_SHARE = 0.05
#: One call of `BatchCommits.tidy` takes about this many seconds.
_TIDY_SECS = 0.02
#: The driver looks for old recorded inputs once per this many batches.
_FORGET_EVERY = 5


class BatchTable(Protocol):
    """The operations of a state table that the driver needs. `StateTable` documents what each of them promises."""

    @property
    def last_txid(self) -> int:
        """The batch that was committed last; -1 before the first."""

    @property
    def oldest_txid(self) -> int:
        """The oldest batch that can still be restored."""

    def open(self, generation: int, first_txid: int = 0) -> None:
        """Begin to write as this generation."""

    def commit(
        self,
        txid: int,
        files: Sequence[Any],  # as the workers report them for this kind of table
        metadata: Mapping[bytes, bytes | None] | None = None,
    ) -> None:
        """Make a batch part of the table."""

    def announce(self, txid: int, metadata: Mapping[bytes, bytes]) -> None:
        """Store the announcement of a batch: everything that another attempt at the batch has to know."""

    def announced(self) -> tuple[int, dict[bytes, bytes]]:
        """Return the number of the batch that was announced and is not committed, and its announcement; -1 and {} if none is."""

    def metadata(self, as_of: int | None = None) -> dict[bytes, bytes]:
        """Return the metadata that the driver committed with its batches."""

    def compact(self, budget_secs: float) -> bool:
        """Merge files for about ``budget_secs``."""

    def vacuum(self, budget_secs: float) -> int:
        """Delete files that nobody needs any more."""

    def close(self) -> None:
        """Stop writing."""


class BatchCommits:
    """Commits batches of ``plan``'s topology to the state table at ``location``, for the driver of ``generation``.

    ``table`` replaces the default `StateTable`. With such a table, workers hand their changes to the driver and do not
    write files (`by_driver`).
    """

    def __init__(
        self,
        plan: PhysicalPlan,
        location: str,
        generation: int,
        storage_options: Mapping[str, str] | None = None,
        table: BatchTable | None = None,
    ) -> None:
        settings = plan.settings
        self._plan, self.location, self.generation = plan, location, generation
        self.storage_options = storage_options
        #: Whether workers hand their changes to the driver and get their state from it.
        self.by_driver = table is not None
        self._table: BatchTable = table or StateTable(
            location,
            retain_txids=settings.state_retain_txids,
            retain_hours=settings.state_retain_hours,
            storage_options=storage_options,
        )
        if settings.record_inputs:
            self._inputs = InputFiles(location, storage_options)
        self._forgot = -1
        self._tidied = time.monotonic()
        self._tidying = Tidying(f"the state table {location}")
        self._describes_tasks = False  # whether the table has the components' present numbers of tasks

    @property
    def last(self) -> int:
        """The batch that was committed last; -1 if there is none."""
        return self._table.last_txid

    def open(self, last_offsets: int) -> None:
        """Take the table over, or create it. ``last_offsets`` is the last batch whose offsets Spark has committed.

        Raises `CheckpointError` if the table can't be used, or does not belong to Spark's checkpoint. Also raises
        `CheckpointError` if a component with state has another number of tasks than before, and its keys can't be dealt out anew
        (`redistribution`). Raises `FencedError` if another driver of this generation or a later one has opened the table.
        """
        self._table.open(self.generation, last_offsets + 1)
        if not last_offsets <= self.last <= last_offsets + 1:
            msg = (
                f"the state table {self.location} has committed batch {self.last}, but Spark's own checkpoint beside it has "
                f"committed batch {last_offsets}: they do not fit together. One of them was deleted, or restored from a copy: "
                f"restore both as of the same moment, or begin with a new checkpoint folder"
            )
            raise CheckpointError(msg)
        self._check_tasks()
        if self._plan.settings.record_inputs:
            self._keep_plan()

    def reopen(self) -> None:
        """After an error, find out what is committed, and continue from there.

        Raises `CheckpointError`, and `FencedError` if a later driver has opened the table.
        """
        self._table.open(self.generation)

    def commit(self, txid: int, files: Sequence[FileDescription | ChangedRows | None]) -> None:
        """Commit batch ``txid`` for good. Raises `CheckpointError` and `FencedError`."""
        reached("driver.before_commit")
        self._table.commit(txid, files, None if self._describes_tasks else self._metadata)
        self._describes_tasks = True
        reached("driver.committed")

    def announce(self, txid: int, announcement: Mapping[str, bytes]) -> None:
        """Store the announcements of tasks for later attempts at batch ``txid``.

        The keys of ``announcement`` name the component and the task's index. Call this before the committers act (bolts that act
        once all other bolts have ended the batch). Raises `CheckpointError` and `FencedError`. After such an error no committer
        may act.
        """
        reached("driver.before_announcement")
        self._table.announce(txid, {place.encode(): pickled for place, pickled in announcement.items()})
        reached("driver.announced")

    def announced(self) -> tuple[int, Mapping[str, bytes]]:
        """Return the number and the announcement of the batch that is announced but not committed; -1 and {} if there is none."""
        if not self._plan.announces:
            return -1, {}
        txid, stored = self._table.announced()
        announced = {place.decode(): pickled for place, pickled in stored.items()}
        # Drop announcements of components that the topology no longer has, because nobody can repeat them.
        announced = {
            place: one
            for place, one in announced.items()
            if place.rpartition("/")[0] in self._plan.components
        }
        return (txid, announced) if announced else (-1, {})

    def tidy(self) -> None:
        """Merge and delete files for some milliseconds, if tidying is due.

        This raises no error of the table. If the table is in trouble, the next commit shows that. `Tidying` logs a warning if
        tidying fails again and again.
        """
        now = time.monotonic()
        if now - self._tidied < _TIDY_SECS / _TIDY_SHARE:
            return
        with self._tidying.attempt():
            self._table.compact(_TIDY_SECS)
            self._table.vacuum(_TIDY_SECS / 4)
            if self._plan.settings.record_inputs and self.last >= self._forgot + _FORGET_EVERY:
                self._forget_inputs()
        self._tidied = time.monotonic()

    def _keep_plan(self) -> None:
        """Keep the plan for replays, which may come long after the topology's file has changed."""
        folders = [os.path.abspath(folder) for folder in sys.path]
        try:
            self._inputs.keep_plan(self.generation, pickle.dumps((folders, cloudpickle.dumps(self._plan, 5))))
        except OSError as error:
            msg = f"the plan can't be kept for replays (stormspark.record.inputs) in {self.location}: {error}"
            raise CheckpointError(msg) from error

    def _forget_inputs(self) -> None:
        settings, self._forgot = self._plan.settings, self.last
        # A replay of a batch needs the state of the batch before it. The first batch begins without state.
        up_to = self._table.oldest_txid or -1
        if not settings.state_retain_hours:
            up_to = max(up_to, self.last - settings.state_retain_txids)
        try:
            self._inputs.forget(up_to)
        except OSError as error:
            msg = (
                f"recorded inputs of the batches up to {up_to} can't be deleted from {self.location}: {error}"
            )
            raise CheckpointError(msg) from error

    def close(self) -> None:
        """Stop writing to the table."""
        self._table.close()

    @property
    def _metadata(self) -> dict[bytes, bytes | None]:
        """Return a description of the tasks that own the state. Each task has its own part of the state (C36)."""
        return described(states_of(self._plan.components.values()))

    def _check_tasks(self) -> None:
        known = self._table.metadata() if self.last >= 0 else {}
        self._describes_tasks = self._metadata.items() <= known.items()
        for name, before in component_states(known).items():
            component = self._plan.components.get(name)
            if component is None or not component.kind_of_state:
                _log.warning(
                    "the state of %r in %s belongs to no component of %s: it stays in the table, unused. If the component "
                    "was renamed, give it its old id again",
                    name,
                    self.location,
                    self._plan.topology,
                )
                continue
            if before.tasks == len(component.tasks):
                continue
            if keys_are_of_grouping(component):
                _log.warning(
                    "%s has %d tasks and had %d before: its state is dealt out anew with the first batch",
                    component.place,
                    len(component.tasks),
                    before.tasks,
                )
                continue
            msg = (
                f"{component.place} has {len(component.tasks)} tasks, but its state in {self.location} is of {before.tasks} "
                f"tasks, and each task has its own state. Give it {before.tasks} tasks again, or begin with a new "
                f"checkpoint folder. If the keys of its state are the values of its fields groupings, set stormspark.state.keys "
                f"to grouping, and the keys are dealt out anew"
            )
            raise CheckpointError(msg)
