"""The loop of rounds: what the engine is asked for, and in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from stormspark.driver.batch_driver import BatchDriver
from stormspark.driver.failed_rows import FailedRows
from stormspark.driver.transaction import Transaction, TransactionState
from stormspark.worker.round_orders import NO_EARLIER_ATTEMPTS, EarlierAttempts, RoundOrders
from stormspark.worker.step import ErrorReport, TransactionReport, WorkerReport

LIMITS = {4: 10}
LEFT = TransactionReport(1, None, False, None, {}, begun=True)
ENDS = TransactionReport(0, None, False, None, {}, begun=True, announced={"spout/0": b"meta"})
PREPARED = TransactionReport(0, None, True, None, {}, begun=True)
FAILED = TransactionReport(0, "no luck", False, None, {3: ("row",)})


class Engine:
    """One worker, whose reports are given; it writes down what it was asked for."""

    def __init__(self, *reports: TransactionReport | WorkerReport) -> None:
        self.reports, self.asked, self.orders = list(reports), [], []
        self.failed = FailedRows(1)
        self.failed.add(7, {3: ("row",)})
        plan: Any = SimpleNamespace(workers=1, supersteps=0, ending_rounds=1, announces=True)
        self.driver = BatchDriver(plan, self, self.failed)

    def plain_orders(self) -> RoundOrders:
        return RoundOrders(limits=LIMITS, committed=6)

    def run_round(self, orders: RoundOrders) -> Sequence[WorkerReport]:
        self.asked.append(f"round {orders.round}")
        self.orders.append(orders)
        report = self.reports.pop(0)
        if isinstance(report, WorkerReport):
            return [report]
        return [WorkerReport(0, 0, 7, {}, (), None, 0, transaction=report)]

    def announce(self, batch: int, announcement: Mapping[str, bytes]) -> None:
        self.asked.append(f"announce {batch} {announcement}")

    def round_ended(self, transaction: Transaction) -> None:
        self.asked.append(f"ended {transaction.rounds}")

    def commit(self, batch: int, files: Sequence[Any]) -> None:
        self.asked.append(f"commit {batch} {files}")


def state(engine: Engine) -> TransactionState:
    assert engine.driver.transaction is not None
    return engine.driver.transaction.state


def test_rounds_are_run_until_all_is_prepared_and_then_it_is_committed() -> None:
    """C44, G8: what committers act on is announced before the round in which they do."""
    engine = Engine(LEFT, ENDS, PREPARED)
    engine.driver.attempt(7, NO_EARLIER_ATTEMPTS)
    assert engine.asked == [
        "round 0",
        "ended 1",
        "round 1",
        "announce 7 {'spout/0': b'meta'}",
        "ended 2",
        "round 2",
        "ended 3",
        "commit 7 [None]",
    ]
    assert state(engine) is TransactionState.COMMITTED
    assert not engine.failed.given_up(7), "its rows don't come again"


def test_orders_have_what_the_engine_wants_and_what_the_transaction_needs() -> None:
    earlier = EarlierAttempts(7, {3: ("row",)}, {})
    engine = Engine(LEFT, ENDS, PREPARED)
    engine.driver.attempt(7, earlier)
    first = RoundOrders(limits=LIMITS, committed=6, may_prepare=True, earlier=earlier)
    assert engine.orders == [
        first,
        RoundOrders(1, LIMITS, committed=6, asks_spouts=False, earlier=earlier),
        RoundOrders(
            2, LIMITS, committed=6, may_prepare=True, asks_spouts=False, ending_round=1, earlier=earlier
        ),
    ]


def test_a_batch_that_aborts_is_left_to_the_engine() -> None:
    """C44: which has to know the rows that failed."""
    engine = Engine(LEFT, FAILED)
    engine.driver.attempt(7, NO_EARLIER_ATTEMPTS)
    assert engine.asked == ["round 0", "ended 1", "round 1"]
    assert state(engine) is TransactionState.ABORTED
    assert engine.failed.given_up(7)


def test_nothing_is_committed_where_the_topology_has_to_stop() -> None:
    fatal = ErrorReport("bolt", 3, "broken")
    engine = Engine(WorkerReport(0, 0, 7, {}, (), fatal, 0, transaction=PREPARED))
    (report,) = engine.driver.attempt(7, NO_EARLIER_ATTEMPTS)
    assert report.fatal is fatal and engine.asked == ["round 0"]


def test_what_the_engine_raises_ends_the_attempt() -> None:
    engine = Engine(PREPARED)

    def gone(*_: Any) -> None:
        raise ConnectionError

    engine.commit = gone  # type: ignore[assignment, method-assign]
    with pytest.raises(ConnectionError):
        engine.driver.attempt(7, NO_EARLIER_ATTEMPTS)
    assert state(engine) is TransactionState.PREPARED, "nobody knows whether it is committed"
    assert engine.failed.given_up(7)
