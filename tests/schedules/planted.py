"""Defects of the protocol, put back on purpose: a search that does not find them would not find their like."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from stormspark.acker.ledger import Ledger
from stormspark.checkpoint.batch_commits import BatchCommits
from stormspark.checkpoint.key_value_store import KeyValueStore
from stormspark.worker.acker_log import AckerLog
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.core import Worker
from stormspark.worker.desk import Desk
from stormspark.worker.lanes import Lanes
from stormspark.worker.spout_task import SpoutTask
from stormspark.worker.step import TransactionReport
from stormspark.worker.transaction import FailedRows

__all__ = ["PLANTED", "planted"]


def _nothing(*_: Any) -> None:
    pass


def _prepares_alone() -> Any:
    """Point 3 of the issue: a worker that has nothing left prepares, whatever others have."""
    return patch.object(Worker, "_tell_if_unsettled", _nothing)


@contextmanager
def _fails_are_late() -> Iterator[None]:
    """Point 4: a fail that a deadline held back is not counted as left over."""
    whole = Worker._transaction

    def transaction(self: Worker, step: Any) -> TransactionReport:
        kept, self.ledger.parts_to_send = self.ledger.parts_to_send, {}
        try:
            return whole(self, step)
        finally:
            self.ledger.parts_to_send = kept

    with patch.object(Worker, "_transaction", transaction), _prepares_alone():
        yield


def _lanes_keep_frames() -> Any:
    """What was on its way to other workers stays when the batch is rolled back."""
    return patch.object(Lanes, "clear", _nothing)


@contextmanager
def _commits_are_told_early() -> Iterator[None]:
    """A worker that has prepared takes that for the commit."""
    whole = Worker._transaction

    def transaction(self: Worker, step: Any) -> TransactionReport:
        report = whole(self, step)
        if report.prepared:
            self._states.committed(step.batch)
        return report

    with patch.object(Worker, "_transaction", transaction):
        yield


@contextmanager
def _aborted_batches_are_told() -> Iterator[None]:
    """post_save for a batch that is rolled back."""
    whole = Worker.roll_back

    def roll_back(self: Worker, batch: int, committed: int, reason: str) -> None:
        self._states.committed(batch)
        self._states.last = min(self._states.last, committed)
        whole(self, batch, committed, reason)

    with patch.object(Worker, "roll_back", roll_back):
        yield


@contextmanager
def _parts_are_dropped_at_the_deadline() -> Iterator[None]:
    """A superstep that is cut short hands out no parts."""
    whole = Worker._hand_out

    def hand_out(self: Worker) -> Any:
        if any(bolt.waiting for bolt in self._bolts):
            self.ledger.parts_to_send.clear()
        return whole(self)

    with patch.object(Worker, "_hand_out", hand_out):
        yield


def _acks_do_not_wait() -> Any:
    """Spouts hear of acks as soon as trees have ended."""
    return patch.object(
        SpoutTask, "has_news", property(lambda self: bool(self.account.ended) and not self.suspended)
    )


@contextmanager
def _repeated_requests_run_again() -> Iterator[None]:
    """A request that has run is run again when Spark sends it again."""
    whole = Desk.take

    def take(self: Desk, request: Any, rows: int, batches: Any) -> Any:
        self._errands.pop(request.key, None)
        return whole(self, request, rows, batches)

    with patch.object(Desk, "take", take):
        yield


def _stores_keep_what_was_rolled_back() -> Any:
    """The state of a batch that comes again is still there."""
    return patch.object(KeyValueStore, "rollback", _nothing)


def _instances_stay() -> Any:
    """A bolt without a state is not made anew when its batch comes again."""
    whole = BoltTask.begin_anew
    return patch.object(
        BoltTask, "begin_anew", lambda self: (self.aborts is None and self.state is None) or whole(self)
    )


def _rows_are_kept() -> Any:
    """Rows of a batch that comes again are not forgotten."""
    return patch.object(SpoutTask, "forget_batch", _nothing)


@contextmanager
def _poison_is_given_up_early() -> Iterator[None]:
    """A row is a dead letter an attempt before its time."""
    whole = FailedRows.__init__

    def init(self: FailedRows, most: int) -> None:
        whole(self, max(1, most - 1))

    with patch.object(FailedRows, "__init__", init):
        yield


@contextmanager
def _commits_are_not_looked_up() -> Iterator[None]:
    """After an error of the table a driver goes on with what it knew before."""
    with patch.object(BatchCommits, "last", property(lambda self: self.known)):
        whole_commit, whole_open = BatchCommits.commit, BatchCommits.open

        def commit(self: Any, txid: int, files: Any) -> None:
            whole_commit(self, txid, files)
            self.known = txid

        def opened(self: Any, last_offsets: int) -> None:
            self.known = self._table.last_txid
            whole_open(self, last_offsets)
            self.known = self._table.last_txid

        with patch.object(BatchCommits, "commit", commit), patch.object(BatchCommits, "open", opened):
            yield


def _announcements_are_late() -> Any:
    """What committers act on is not kept before they do."""
    return patch.object(BatchCommits, "announce", _nothing)


def _trees_are_not_abandoned() -> Any:
    """Trees with something outside are not failed when a worker is lost."""
    return patch.object(Ledger, "abandon", lambda self, reason: self.parts_to_send.clear() or 0)


@contextmanager
def _acker_log_forgets() -> Iterator[None]:
    """A change set is sent once, whether it was written or not."""

    def unconfirmed(self: AckerLog) -> Any:
        found = tuple(self._unconfirmed)
        self._unconfirmed.clear()
        return found

    with patch.object(AckerLog, "unconfirmed", property(unconfirmed)):
        yield


#: By name: the family whose search has to find it, the rule that has to be among the broken ones (empty: any), and the defect.
PLANTED: Mapping[str, tuple[str, str, Callable[[], Any]]] = {
    "a worker prepares alone (point 3)": ("exactly-once", "rows in the sink", _prepares_alone),
    "fails are late (point 4)": ("exactly-once", "a batch with a failed tree is committed", _fails_are_late),
    "lanes keep frames": ("exactly-once", "", _lanes_keep_frames),
    "commits are told early": ("exactly-once", "", _commits_are_told_early),
    "aborted batches are told": ("exactly-once", "", _aborted_batches_are_told),
    "parts are dropped at the deadline": ("exactly-once", "", _parts_are_dropped_at_the_deadline),
    "acks do not wait": ("exactly-once", "an ack before its commit", _acks_do_not_wait),
    "repeated requests run again": ("exactly-once", "", _repeated_requests_run_again),
    "stores keep what was rolled back": ("exactly-once", "", _stores_keep_what_was_rolled_back),
    "instances stay": ("exactly-once", "", _instances_stay),
    "rows are kept": ("exactly-once", "", _rows_are_kept),
    "poison is given up early": ("exactly-once", "a row was given up too early", _poison_is_given_up_early),
    "trees are not abandoned": ("at-least-once", "", _trees_are_not_abandoned),
    "the acker's log forgets": ("at-least-once", "", _acker_log_forgets),
    "announcements are late": ("transactional", "", _announcements_are_late),
    "commits are not looked up": ("exactly-once", "", _commits_are_not_looked_up),
}


def planted(name: str) -> Any:
    """The tree with that defect in it."""
    return PLANTED[name][2]()
