"""Defects of the protocol, put back on purpose: a search that does not find them would not find their like."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from unittest.mock import patch

from stormspark.acker.ledger import Ledger
from stormspark.acker.tree import Tree
from stormspark.checkpoint.batch_commits import BatchCommits
from stormspark.checkpoint.key_value_store import KeyValueStore
from stormspark.checkpoint.state_files import TaskChanges
from stormspark.driver.failed_rows import FailedRows
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.core import Worker
from stormspark.worker.host.desk import Desk
from stormspark.worker.sources.acker_log import AckerLog
from stormspark.worker.sources.source_rows import SourceRows
from stormspark.worker.spout_task import SpoutTask
from stormspark.worker.spouts.verdict_queues import TransactionVerdicts
from stormspark.worker.step import TransactionReport
from stormspark.worker.task import Task
from stormspark.worker.transactions import WorkerTransaction
from stormspark.worker.tuples.lanes import Lanes
from stormspark.worker.turns import Turns

__all__ = ["PLANTED", "planted"]


def _nothing(*_: Any) -> None:
    pass


@contextmanager
def _prepares_alone() -> Iterator[None]:
    """Point 3 of the issue: a worker that has nothing left prepares, whatever others have, and goes on after that."""
    whole = WorkerTransaction.report

    def report(self: WorkerTransaction, step: Any) -> TransactionReport:
        self.prepared = None
        reported = whole(self, step)
        self.prepared = None
        return reported

    with (
        patch.object(WorkerTransaction, "report", report),
        patch.object(WorkerTransaction, "warn_if_unsettled", _nothing),
    ):
        yield


@contextmanager
def _fails_are_late() -> Iterator[None]:
    """Point 4: a fail that a deadline held back is not counted as left over."""
    with _prepares_alone():
        whole = WorkerTransaction.report

        def report(self: WorkerTransaction, step: Any) -> TransactionReport:
            kept, self._ledger.parts_to_send = self._ledger.parts_to_send, {}
            try:
                return whole(self, step)
            finally:
                self._ledger.parts_to_send = kept

        with patch.object(WorkerTransaction, "report", report):
            yield


def _lanes_keep_frames() -> Any:
    """What was on its way to other workers stays when the batch is rolled back."""
    return patch.object(Lanes, "clear", _nothing)


@contextmanager
def _commits_are_told_early() -> Iterator[None]:
    """A worker that has prepared takes that for the commit."""
    whole = WorkerTransaction.report

    def report(self: WorkerTransaction, step: Any) -> TransactionReport:
        reported = whole(self, step)
        if reported.prepared:
            self._states.committed(step.batch)
        return reported

    with patch.object(WorkerTransaction, "report", report):
        yield


@contextmanager
def _aborted_batches_are_told() -> Iterator[None]:
    """post_save for a batch that is rolled back."""
    whole = WorkerTransaction.roll_back

    def roll_back(self: WorkerTransaction, batch: int, committed: int, reason: str) -> None:
        self._states.committed(batch)
        self._states.last = min(self._states.last, committed)
        whole(self, batch, committed, reason)

    with patch.object(WorkerTransaction, "roll_back", roll_back):
        yield


@contextmanager
def _parts_are_dropped_at_the_deadline() -> Iterator[None]:
    """A superstep that is cut short hands out no parts."""
    whole = Worker._hand_out

    def hand_out(self: Worker) -> Any:
        if any(bolt.waiting for bolt in self.wiring.bolts):
            self.ledger.parts_to_send.clear()
        return whole(self)

    with patch.object(Worker, "_hand_out", hand_out):
        yield


def _acks_do_not_wait() -> Any:
    """Spouts hear of acks as soon as trees have ended."""

    def ready(self: TransactionVerdicts) -> list[Tree]:
        decided: list[Tree] = self.__dict__["ready"]
        ended, self._account.ended = self._account.ended, []
        decided += ended
        return decided

    def set_ready(self: TransactionVerdicts, trees: list[Tree]) -> None:
        self.__dict__["ready"] = trees

    return patch.object(TransactionVerdicts, "ready", property(ready, set_ready), create=True)


def _dead_letters_are_acked_at_once() -> Any:
    """A row of which no tuple is made is acked while its batch runs."""
    return patch.object(SpoutTask, "_ack_without_tuple", lambda self, message_id: self.spout.ack(message_id))


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
    return patch.object(SourceRows, "forget_batch", _nothing)


@contextmanager
def _poison_is_given_up_early() -> Iterator[None]:
    """A row is a dead letter an attempt before its time."""
    whole = FailedRows.__init__

    def init(self: FailedRows, most: int) -> None:
        whole(self, max(1, most - 1))

    with patch.object(FailedRows, "__init__", init):
        yield


def _tuples_stay_in_inboxes() -> Any:
    """What waits for a bolt when its batch is taken back is executed all the same."""
    return patch.object(BoltTask, "forget_tuples", _nothing)


def _announcements_are_late() -> Any:
    """What committers act on is not kept before they do."""
    return patch.object(BatchCommits, "announce", _nothing)


@contextmanager
def _trees_end_at_home() -> Iterator[None]:
    """A tree is acked when its own worker is done with it."""
    whole = Ledger.drained

    def drained(self: Ledger, branch: Any) -> None:
        if isinstance(branch, Tree):
            branch.value = 0
        whole(self, branch)

    with patch.object(Ledger, "drained", drained):
        yield


def _rows_are_not_adopted() -> Any:
    """What a lost worker had open is forgotten."""
    return patch.object(Worker, "adopt", _nothing)


@contextmanager
def _acker_log_forgets() -> Iterator[None]:
    """A change set is sent once, whether it was written or not."""

    def unconfirmed(self: AckerLog) -> Any:
        found = tuple((one.number, one.data) for one in self._unconfirmed)
        self._unconfirmed.clear()
        return found

    with patch.object(AckerLog, "unconfirmed", property(unconfirmed)):
        yield


def _what_may_be_written_is_merged() -> Any:
    """A worker takes change sets for unwritten that the driver has tried to write."""
    add = AckerLog.add

    def wrong(self: AckerLog, changes: Any, attempt: int, tried: int) -> None:
        add(self, changes, attempt, -1)

    return patch.object(AckerLog, "add", wrong)


@contextmanager
def _threads_are_always_heard() -> Iterator[None]:
    """What a user's thread emits comes in as long as the batch runs."""
    whole = Turns.run_pass

    def with_calls(self: Turns, deadline: float) -> bool:
        self.takes_calls = self.listens
        return whole(self, deadline)

    with patch.object(Turns, "run_pass", with_calls):
        yield


def _errors_of_post_save_are_told_only() -> Any:
    """What a component has not put in place after a commit is never put there."""

    def commit_state(self: Task, txid: int) -> None:
        assert self.state is not None
        if self.state.take_over(txid):
            with suppress(Exception):
                self.state.call_post_save(self.instance, txid)

    return patch.object(Task, "commit_state", commit_state)


def _committers_act_after_a_fail() -> Any:
    """In a round that ends the batch nobody hears of a fail elsewhere."""
    whole = WorkerTransaction.warn_if_unsettled

    def tell(self: WorkerTransaction, step: Any, position: int) -> None:
        if position == self._plan.supersteps:
            whole(self, step, position)

    return patch.object(WorkerTransaction, "warn_if_unsettled", tell)


def _kept_rows_are_forgotten() -> Any:
    """Rows whose tuples a bolt keeps over the end of their batch are nowhere once that is committed."""
    return patch.object(SpoutTask, "held_rows", lambda self: [])


def _kept_rows_that_fail_leave_the_table() -> Any:
    """As if each tree that has ended were acked."""

    def held_rows(self: SpoutTask) -> list[TaskChanges]:
        source = self.source
        return source.held.changes(source.rows.open_rows({tree.message_id for tree in self.account.ended}))

    return patch.object(SpoutTask, "held_rows", held_rows)


def _kept_rows_stay_with_who_dies() -> Any:
    """Who begins anew reads none of them out of the table."""
    return patch.object(SpoutTask, "restore_rows", _nothing)


#: By name: the family whose search has to find it, the rule that has to be among the broken ones (empty: any), and the defect.
PLANTED: Mapping[str, tuple[str, str, Callable[[], Any]]] = {
    "a worker prepares alone (point 3)": ("exactly-once", "rows in the sink", _prepares_alone),
    "fails are late (point 4)": ("exactly-once", "a batch with a failed tree is committed", _fails_are_late),
    "lanes keep frames": ("exactly-once", "", _lanes_keep_frames),
    "commits are told early": ("exactly-once", "", _commits_are_told_early),
    "aborted batches are told": ("exactly-once", "", _aborted_batches_are_told),
    "parts are dropped at the deadline": ("exactly-once", "", _parts_are_dropped_at_the_deadline),
    "acks do not wait": ("exactly-once", "an ack before its commit", _acks_do_not_wait),
    "dead letters are acked at once": (
        "exactly-once",
        "an ack before its commit",
        _dead_letters_are_acked_at_once,
    ),
    "repeated requests run again": ("exactly-once", "", _repeated_requests_run_again),
    "stores keep what was rolled back": ("exactly-once", "", _stores_keep_what_was_rolled_back),
    "instances stay": ("exactly-once", "", _instances_stay),
    "rows are kept": ("exactly-once", "", _rows_are_kept),
    "poison is given up early": ("exactly-once", "a row was given up too early", _poison_is_given_up_early),
    "trees end at home": ("at-least-once", "an ack before all is done", _trees_end_at_home),
    "rows are not adopted": ("at-least-once", "", _rows_are_not_adopted),
    "the acker's log forgets": ("at-least-once", "", _acker_log_forgets),
    "the acker's log merges what may be written": ("at-least-once", "", _what_may_be_written_is_merged),
    "announcements are late": ("transactional", "", _announcements_are_late),
    "threads are always heard": ("exactly-once", "no end", _threads_are_always_heard),
    "errors of post_save are told only": (
        "exactly-once",
        "rows in the sink",
        _errors_of_post_save_are_told_only,
    ),
    "committers act after a fail": (
        "transactional",
        "what comes after a committer",
        _committers_act_after_a_fail,
    ),
    "tuples stay in inboxes": ("exactly-once", "", _tuples_stay_in_inboxes),
    "kept rows are forgotten": ("kept", "rows in the state", _kept_rows_are_forgotten),
    "kept rows that fail leave the table": (
        "kept",
        "rows in the state",
        _kept_rows_that_fail_leave_the_table,
    ),
    "kept rows stay with who dies": ("kept", "rows in the state", _kept_rows_stay_with_who_dies),
}


def planted(name: str) -> Any:
    """The tree with that defect in it."""
    return PLANTED[name][2]()
