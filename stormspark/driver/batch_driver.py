"""The loop over the rounds of a transaction, until the batch is committed or has to run again. Both engines use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from stormspark.checkpoint.state_files import ChangedRows, FileDescription
from stormspark.driver.failed_rows import FailedRows
from stormspark.driver.transaction import Transaction
from stormspark.plan.physical import PhysicalPlan
from stormspark.worker.round_orders import EarlierAttempts, RoundOrders
from stormspark.worker.step import WorkerReport, fatal_error

__all__ = ["BatchDriver", "BatchEngine", "not_committed"]


def not_committed(topology: str, batch: int, reason: str) -> str:
    """Return the warning that the topology stops before it has committed a batch."""
    return f"topology {topology} stops before batch {batch} is committed, so a later start does it again: {reason}"


class BatchEngine(Protocol):
    """The methods of an engine that a `BatchDriver` calls. An error in any of them ends the attempt at the batch."""

    def plain_orders(self) -> RoundOrders:
        """Return the engine's part of the orders for a round that begins now: the spouts' limits, the round's length, the last
        commit.
        """

    def run_round(self, orders: RoundOrders) -> Sequence[WorkerReport]:
        """Run every superstep once, and return the report of each worker."""

    def announce(self, batch: int, announcement: Mapping[str, bytes]) -> None:
        """Store ``announcement`` durably before committers act, so that later attempts at the batch can repeat it."""

    def round_ended(self, transaction: Transaction) -> None:
        """Called when a round has ended without an abort. If the batch takes too long, the engine may give it up now."""

    def commit(self, batch: int, files: Sequence[FileDescription | ChangedRows | None]) -> None:
        """Commit the batch. ``files`` are the changes of each worker."""


class BatchDriver:
    """The driver of one topology's transactions. Each call of `attempt` is one attempt at a batch. ``engine`` runs the rounds."""

    def __init__(self, plan: PhysicalPlan, engine: BatchEngine, failed_rows: FailedRows) -> None:
        self._plan, self._engine, self._failed_rows = plan, engine, failed_rows
        #: The current attempt at a batch, or the last one.
        self.transaction: Transaction | None = None

    def attempt(self, batch: int, earlier: EarlierAttempts) -> Sequence[WorkerReport]:
        """Run rounds of ``batch`` until it is committed, until it aborts, or until the topology has to stop (`fatal_error`).

        Returns the reports of the last round. Unless the topology has to stop, `transaction` says how the batch ended.
        """
        transaction = self.transaction = Transaction(self._plan, repeats=bool(earlier.announced))
        while not transaction.prepared:
            reports = self._engine.run_round(self._orders(transaction, earlier))
            if fatal_error(reports) is not None:
                return reports
            transaction.observe(reports)
            if transaction.aborts is not None:
                return reports
            if transaction.announcement:
                self._engine.announce(batch, transaction.announcement)
            self._engine.round_ended(transaction)
        self._engine.commit(batch, transaction.files)
        self._failed_rows.forget(batch)
        transaction.committed()
        return reports

    def _orders(self, transaction: Transaction, earlier: EarlierAttempts) -> RoundOrders:
        return replace(
            self._engine.plain_orders(),
            round=transaction.rounds,
            may_prepare=transaction.may_prepare,
            asks_spouts=transaction.asks_spouts,
            ending_round=transaction.ending_round,
            earlier=earlier,
        )
