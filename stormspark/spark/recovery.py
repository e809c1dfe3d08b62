"""What earlier attempts, workers and drivers have left in the checkpoint, and how new workers get it: state, open rows, letters.

Opening it fences off every earlier driver of the checkpoint. All of it belongs to one plan and one generation, because state and
rows belong to tasks. A topology that is laid out anew opens it again.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from stormspark.checkpoint.batch_commits import BatchCommits
from stormspark.checkpoint.drivers_state_table import DriversStateTable
from stormspark.checkpoint.shared_folder import SharedFolder
from stormspark.driver.failed_rows import FailedRows
from stormspark.driver.letter_lines import LetterLines, LettersOfBatches
from stormspark.driver.start_steps import begin_step
from stormspark.errors import CheckpointError, UnsupportedEnvironmentError
from stormspark.plan.physical import PhysicalPlan
from stormspark.spark.durable_acker import DurableAcker
from stormspark.spark.letter_replays import LetterReplays
from stormspark.spark.premises import Premises
from stormspark.spark.spark_state_table import SparkStateTable, is_for_spark
from stormspark.spark.state_hand_over import StateHandOver
from stormspark.worker.host.messages import Adopt
from stormspark.worker.round_orders import NO_EARLIER_ATTEMPTS, EarlierAttempts
from stormspark.worker.state.batch_state import StateAccess

__all__ = ["Recovery"]

_log = logging.getLogger(__name__)


class Recovery:
    """Recovers the workers of one layout. ``adopt`` makes a worker adopt rows that an earlier incarnation left open.

    Making it raises `CheckpointError` if the checkpoint can't be used, or does not fit the plan.
    """

    def __init__(
        self,
        premises: Premises,
        plan: PhysicalPlan,
        generation: int,
        adopt: Callable[[int, list[Adopt]], None],
    ) -> None:
        self._premises, self._plan, self._generation, self._adopt = premises, plan, generation, adopt
        self._hand_over: StateHandOver | None = None
        #: Whether the driver writes the state table, and workers hand their changes to it.
        self._writes_by_driver = False
        #: Whether the driver reads the state for workers just now.
        self.reads_state = False
        # The workers that have not yet got the rows that their earlier incarnations left open.
        self._unrecovered = set(range(plan.workers))
        #: The rows that failed in attempts that were taken back.
        self.failed_rows = FailedRows(plan.settings.poison_attempts)
        begin_step("the state is read")
        #: Commits batches, if they are transactions.
        self.commits = self._batch_commits()
        begin_step("open rows and dead letters are read")
        #: Keeps the source rows that stay open beyond their batch; None if the topology has no such rows.
        self.acker = self._durable_acker()
        #: The folder that workers have to see; None if there is none.
        self.shared: SharedFolder | None = None
        try:
            self.shared = self._shared_folder()
            self.letters, self._replays = self._dead_letters()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop the acker's query, and leave the folder. Other drivers may use the checkpoint then."""
        if self.acker is not None:
            with contextlib.suppress(Exception):  # Spark may have ended
                self.acker.stop()
        if self.shared is not None:
            self.shared.close()

    def lost(self, workers: Iterable[int]) -> None:
        """Remember that these workers have to get all of theirs again."""
        self._unrecovered.update(workers)

    def _batch_commits(self) -> BatchCommits | None:
        """If batches are transactions, open the state table for commits and return it. Opening it fences every earlier writer."""
        if not self._plan.exactly_once:
            return None
        table = self._table_of_spark() or self._table_of_driver()
        self._writes_by_driver = isinstance(table, DriversStateTable)
        if table is not None:
            self._hand_over = StateHandOver(self._plan, table, self._premises.scratch)
        commits = BatchCommits(self._plan, self._premises.folder.state_table, self._generation, table=table)
        commits.open(self._premises.folder.last_committed_batch())
        return commits

    def _table_of_spark(self) -> SparkStateTable | None:
        """Return the state table if Spark has to write it; otherwise None."""
        settings = self._plan.settings
        if not is_for_spark(settings.state_table, self._premises.folder.state_table):
            return None
        if settings.record_inputs:
            msg = (
                f"stormspark.record.inputs makes workers write recordings beside the state table "
                f"{self._premises.folder.state_table}, "
                f"but Spark writes that table (stormspark.state.table). Remove stormspark.record.inputs, or give a checkpoint "
                f"folder that delta-rs can write to"
            )
            raise UnsupportedEnvironmentError(msg)
        return SparkStateTable(
            self._premises.session,
            self._premises.folder.state_table_for_spark,
            retain_txids=settings.state_retain_txids,
            retain_hours=settings.state_retain_hours,
        )

    def _table_of_driver(self) -> DriversStateTable | None:
        """Return the state table if the driver writes it, and workers hand their changes to the driver; otherwise None."""
        settings = self._plan.settings
        # The user gave no checkpoint, so the folder is the driver's own. Workers on other hosts can't see it.
        alone = not self._premises.is_kept and self._premises.network.address is not None
        if settings.state_table != "driver" and (settings.state_table is not None or not alone):
            return None
        if settings.record_inputs:
            msg = (
                "stormspark.record.inputs makes workers write recordings beside the state table, but the driver writes that "
                "table (stormspark.state.table). Remove stormspark.record.inputs, or give a checkpoint folder that all hosts "
                "share"
            )
            raise UnsupportedEnvironmentError(msg)
        return DriversStateTable(
            self._premises.folder.state_table,
            retain_txids=settings.state_retain_txids,
            retain_hours=settings.state_retain_hours,
        )

    def _durable_acker(self) -> DurableAcker | None:
        """Return the durable acker. None if the topology has no source spouts, or if the settings turn acking or the acker off.

        It is also None if batches are transactions, because then no tree outlives its batch.
        """
        wanted = (
            self._plan.settings.acking and self._plan.settings.acker_durable and not self._plan.exactly_once
        )
        if not self._plan.sources or not wanted:
            return None
        return DurableAcker(
            self._premises.session,
            self._plan,
            self._premises.folder,
            self._generation,
            self._adopt,
            self._premises.scratch,
        )

    def _shared_folder(self) -> SharedFolder | None:
        """Return the folder in the checkpoint that workers have to see. None if the checkpoint is at a URL, or if only the driver
        writes to it.
        """
        plan = self._plan
        if self._premises.folder.local is None:
            return None
        if self.acker is not None:
            # The workers themselves write nothing. But the Spark executors beside them write the acker query's state.
            otherwise = (
                "set stormspark.acker.durable to false; then rows that are open in a window or a join are lost with their "
                "worker"
            )
        elif plan.exactly_once and (
            self._plan.settings.record_inputs
            or plan.sources  # for rows whose tuples bolts hold over the end of a batch
            or any(one.kind_of_state for one in plan.components.values())
        ):
            if self._writes_by_driver:
                return None
            otherwise = (
                "set stormspark.state.table to driver; then the driver writes the changes of all workers"
            )
        else:
            return None
        try:
            return SharedFolder(Path(str(self._premises.folder), "stormspark"), otherwise)
        except OSError as error:
            msg = f"the checkpoint folder {self._premises.folder} can't be used: {error}"
            raise CheckpointError(msg) from error

    def _dead_letters(self) -> tuple[LettersOfBatches, LetterReplays | None]:
        """Return what takes the dead letters, and the rows of earlier ones that somebody wants to be emitted again.

        The letters of a topology without a checkpoint go to a file, because a temporary folder goes with its driver.
        """
        if not self._premises.is_kept:
            return LetterLines(self._premises.log_folder), None
        try:
            table = self._premises.folder.dead_letters()
        except OSError as error:
            msg = f"the checkpoint folder {self._premises.folder} can't be used: {error}"
            raise CheckpointError(msg) from error
        batch = self._last_committed() + 1
        found = table.assign(batch, [source.id for source in self._plan.sources])
        return table, LetterReplays(self._plan, found) if found else None

    def recover(self) -> None:
        """Give each new worker its state, and the rows that its earlier incarnations left open. No batch runs meanwhile.

        Raises `CheckpointError`, and `FencedError` if a later driver has the checkpoint.
        """
        self.reads_state = True
        try:
            self._give_new_workers_theirs()
        finally:
            self.reads_state = False

    def _give_new_workers_theirs(self) -> None:
        if self.commits is not None:
            self.commits.reopen()
        if self._hand_over is not None:
            self._hand_over.read(self._unrecovered)
        messages: dict[int, list[Adopt]] = {}
        if self._replays is not None:
            messages = self._replays.messages(self._unrecovered, self._last_committed())
        if self.acker is not None and self._unrecovered:
            first = self._premises.folder.last_committed_batch() + 1
            for worker, left_open in self.acker.recover(self._unrecovered, first).items():
                rows = sum(len(message.rows) for message in left_open)
                _log.info("%d rows that were open in lost worker %d are emitted again", rows, worker)
                messages[worker] = [*messages.get(worker, ()), *left_open]
        for worker, adopted in messages.items():
            self._adopt(worker, adopted)
        self._unrecovered.clear()

    def _last_committed(self) -> int:
        """Return the batch that was committed last; -1 if there is none."""
        return self._premises.folder.last_committed_batch() if self.commits is None else self.commits.last

    def earlier_attempts(self) -> EarlierAttempts:
        """Return the facts that earlier attempts left for the next batch, which is the one after the last committed batch.

        If batches are no transactions, there are none.
        """
        commits = self.commits
        if commits is None:
            return NO_EARLIER_ATTEMPTS
        announced_batch, announced = commits.announced()
        batch = commits.last + 1
        return EarlierAttempts(
            batch, self.failed_rows.given_up(batch), announced if announced_batch == batch else {}
        )

    def state_of(self, worker: int) -> Iterable[bytes]:
        """Return the state of a worker in parts, if only the driver can reach the state table; otherwise none."""
        return () if self._hand_over is None else self._hand_over.parts(worker)

    def state_access(self) -> StateAccess | None:
        """Return how workers get at their state; None if batches are no transactions."""
        commits = self.commits
        if commits is None:
            return None
        return StateAccess(
            commits.location, commits.generation, commits.last, commits.storage_options, commits.by_driver
        )
