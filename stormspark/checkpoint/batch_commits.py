"""The driver's side of a transaction: the state table of one topology, committed batch by batch.

    workers prepare -> commit(N) -> Spark commits N's offsets

A driver that dies between the two finds N committed when Spark brings it again, and lets it be. So the table is never behind
Spark's own checkpoint, and at most one batch ahead.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from stormspark.checkpoint.barriers import reached
from stormspark.checkpoint.state_table import FileDescription, StateTable
from stormspark.errors import CheckpointError
from stormspark.plan.physical import PhysicalPlan

__all__ = ["BatchCommits"]

#: Tidying takes so much of the time, at most; and so long at once.
_TIDY_SHARE = 0.05
_TIDY_SECS = 0.02
_TASKS = b"tasks/"


class BatchCommits:
    """The state table of ``plan``'s topology at ``location``, written to as ``generation``."""

    def __init__(
        self,
        plan: PhysicalPlan,
        location: str,
        generation: int,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        settings = plan.settings
        self._plan, self.location, self.generation = plan, location, generation
        self.storage_options = storage_options
        self._table = StateTable(
            location,
            retain_txids=settings.state_retain_txids,
            retain_hours=settings.state_retain_hours,
            storage_options=storage_options,
        )
        self._tidied = time.monotonic()
        self._told = False  # how many tasks there are

    @property
    def last(self) -> int:
        """The batch that was committed last; -1 where there is none."""
        return self._table.last_txid

    def open(self, last_offsets: int) -> None:
        """Take the table over, or make it; ``last_offsets`` is the last batch whose offsets Spark has committed.

        Raises `CheckpointError` where the two are of different pasts, or where the number of tasks of a component with
        state has changed; `FencedError` where a later driver has it.
        """
        self._table.open(self.generation, last_offsets + 1)
        if not last_offsets <= self.last <= last_offsets + 1:
            msg = (
                f"the state table {self.location} has committed batch {self.last}, and Spark's own checkpoint beside it "
                f"batch {last_offsets}: they do not belong together. One of them was deleted or brought back from a copy: bring "
                f"both back from the same moment, or begin with a new checkpoint folder"
            )
            raise CheckpointError(msg)
        self._check_tasks()

    def reopen(self) -> None:
        """After an error, find out what is committed, and go on; raises `CheckpointError`."""
        self._table.open(self.generation)

    def commit(self, txid: int, files: Sequence[FileDescription | None]) -> None:
        """Batch ``txid`` has happened: from now on, and for good. Raises `CheckpointError` and `FencedError`."""
        reached("driver.before_commit")
        self._table.commit(txid, files, None if self._told else self._tasks())
        self._told = True
        reached("driver.committed")

    def tidy(self) -> None:
        """Merge and delete files for a moment, if it is time for that; raises `CheckpointError`."""
        now = time.monotonic()
        if now - self._tidied < _TIDY_SECS / _TIDY_SHARE:
            return
        self._table.compact(_TIDY_SECS)
        self._table.vacuum(_TIDY_SECS / 4)
        self._tidied = time.monotonic()

    def close(self) -> None:
        """Write no more."""
        self._table.close()

    def _tasks(self) -> dict[bytes, bytes | None]:
        """How many tasks each component with state has: their state goes by task (C36)."""
        return {
            _TASKS + name.encode(): str(len(component.tasks)).encode()
            for name, component in self._plan.components.items()
            if component.kind_of_state
        }

    def _check_tasks(self) -> None:
        known = self._table.metadata() if self.last >= 0 else {}
        self._told = self._tasks().items() <= known.items()
        for key, now in self._tasks().items():
            before = known.get(key)
            if before is not None and before != now:
                component = self._plan.components[key.removeprefix(_TASKS).decode()]
                was = before.decode()
                msg = (
                    f"{component.place} has {len(component.tasks)} tasks, and its state in {self.location} is of {was}: it goes by "
                    f"task (C36). Give it {was} tasks again, or begin with a new checkpoint folder"
                )
                raise CheckpointError(msg)
