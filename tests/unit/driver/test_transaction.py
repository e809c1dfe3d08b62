"""The states of an attempt at a batch, and what the driver orders in each."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from stormspark.driver.transaction import TRANSITIONS, Transaction, TransactionState, TransitionError
from stormspark.worker.step import TransactionReport, WorkerReport

WORKING, ENDING, PREPARING, PREPARED, COMMITTED, ABORTED = TransactionState


def plan(*, workers: int = 2, supersteps: int = 1, ending_rounds: int = 0) -> Any:
    """What a transaction reads of a plan; with two rounds that end a batch, the second one is for committers."""
    return SimpleNamespace(
        workers=workers, supersteps=supersteps, ending_rounds=ending_rounds, announces=ending_rounds == 2
    )


def told(
    *,
    left: int = 0,
    begun: bool = False,
    aborts: str | None = None,
    said: bytes = b"",
    prepared: bool = False,
) -> TransactionReport:
    failed = {3: ("row",)} if aborts else {}
    return TransactionReport(left, aborts, prepared, None, failed, begun, {"spout/0": said} if said else None)


def observe(transaction: Transaction, *reports: TransactionReport) -> TransactionState:
    """The state after a round with these reports."""
    transaction.observe(
        [WorkerReport(worker, 0, 0, {}, (), None, 0, transaction=one) for worker, one in enumerate(reports)]
    )
    return transaction.state


def orders(transaction: Transaction) -> tuple[bool, bool, int]:
    """Whether workers may prepare in the next round, whether spouts are asked, which of the ending rounds it is."""
    return transaction.may_prepare, transaction.asks_spouts, transaction.ending_round


def test_most_batches_need_one_round() -> None:
    """When all workers prepare in the first round, the batch is committed after it (C44)."""
    transaction = Transaction(plan())
    assert transaction.state is PREPARING and orders(transaction) == (True, True, 0)
    assert observe(transaction, told(prepared=True), told(prepared=True)) is PREPARED
    transaction.committed()
    assert transaction.state is COMMITTED


def test_what_is_left_takes_further_rounds_in_which_spouts_are_not_asked() -> None:
    """Work that is left over gets another round, in which spouts are not asked for tuples (C44)."""
    transaction = Transaction(plan())
    assert observe(transaction, told(left=3), told()) is PREPARING
    assert orders(transaction) == (True, False, 0) and transaction.left == 3
    assert observe(transaction, told(prepared=True), told(prepared=True)) is PREPARED


def test_the_rounds_that_end_a_batch_come_when_nothing_waits() -> None:
    """G4, G6: one for all bolts, one for committers; what the first one emits arrives before the second one."""
    transaction = Transaction(plan(ending_rounds=2))
    assert observe(transaction, told(left=1, begun=True), told()) is WORKING
    assert orders(transaction) == (False, False, 0)
    assert observe(transaction, told(begun=True), told()) is ENDING
    assert orders(transaction) == (False, False, 1) and not transaction.announcement
    assert observe(transaction, told(left=2, begun=True), told()) is WORKING
    assert observe(transaction, told(begun=True, said=b"meta"), told()) is ENDING
    assert orders(transaction) == (True, False, 2) and transaction.announcement == {"spout/0": b"meta"}
    assert observe(transaction, told(left=1, begun=True), told()) is PREPARING
    assert orders(transaction) == (True, False, 0) and not transaction.announcement
    assert observe(transaction, told(begun=True, prepared=True), told(prepared=True)) is PREPARED


def test_a_batch_is_not_over_before_what_was_announced_has_come_again() -> None:
    """G8: spouts are asked for it, round after round; it is not announced a second time."""
    transaction = Transaction(plan(ending_rounds=2), repeats=True)
    for _ in range(3):
        assert transaction.state is WORKING and orders(transaction) == (False, True, 0)
        observe(transaction, told(), told())
    assert observe(transaction, told(begun=True), told()) is ENDING
    assert observe(transaction, told(begun=True, said=b"meta"), told()) is ENDING
    assert orders(transaction) == (True, False, 2) and not transaction.announcement


@pytest.mark.parametrize("begun", [False, True])
def test_workers_that_do_not_hear_of_each_other_prepare_when_the_driver_has_heard_of_all(begun: bool) -> None:
    """G4: one of them may have a batch to end, of which the others know nothing."""
    transaction = Transaction(plan(supersteps=0, ending_rounds=1))
    assert transaction.state is WORKING
    assert observe(transaction, told(begun=begun), told()) is (ENDING if begun else PREPARING)


@pytest.mark.parametrize("rounds", [(), (told(left=1, begun=True),), (told(begun=True),)])
def test_a_batch_aborts_in_any_round(rounds: Sequence[TransactionReport]) -> None:
    """C44: the rows that failed are known until it is committed in another attempt."""
    transaction = Transaction(plan(ending_rounds=1))
    for one in rounds:
        observe(transaction, one, told())
    assert observe(transaction, told(), told(aborts="no luck")) is ABORTED
    assert transaction.aborts == "no luck" and transaction.failed_rows == {3: ("row",)}


def test_every_state_says_what_may_follow_it() -> None:
    assert TRANSITIONS.keys() == set(TransactionState)


def test_a_transition_that_is_not_allowed_is_reported_with_its_history() -> None:
    transaction = Transaction(plan(ending_rounds=1))
    observe(transaction, told(left=1, begun=True), told())
    observe(transaction, told(begun=True), told())
    with pytest.raises(TransitionError) as error:
        transaction.committed()
    assert str(error.value) == (
        "a transaction can't go from ending to committed; it was preparing from round 0 on, "
        "working from round 1 on, ending from round 2 on"
    )
    assert transaction.state is ENDING


def test_nobody_is_prepared_who_was_not_asked_to() -> None:
    transaction = Transaction(plan(supersteps=0, ending_rounds=1))
    with pytest.raises(TransitionError, match="from working to prepared"):
        observe(transaction, told(prepared=True), told(prepared=True))
