"""A spout's task: is asked for tuples, and hears how its trees ended."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from stormspark.acker import Outcome, SpoutAccount
from stormspark.api import Spout
from stormspark.worker.collectors import SpoutCollector
from stormspark.worker.task import Task

__all__ = ["SpoutTask"]


class SpoutTask(Task):
    """One task of a `Spout`. ``max_pending`` is its limit of open trees, None for none (B4)."""

    def __init__(self, *args: Any, max_pending: int | None, acking: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.account = SpoutAccount(self.id)
        self.spout: Spout
        self.active = False
        self._max_pending = max_pending or None
        self._acking = acking
        self._collector: SpoutCollector

    def start(self) -> None:
        """Make the spout, open and activate it; open trees of an earlier instance are forgotten (B10)."""
        self._ledger.forget(self.account)
        spout = self._instance()
        self._collector = SpoutCollector(
            self, self.account, self._ledger, acking=self._acking, on_ack=self._ack_inside_emit
        )
        self.spout = spout
        try:
            spout.open(self._conf, self._make_context(), self._collector)
        except Exception as error:
            failure = self._component_error("raised in open", error)
            raise failure from error
        if self.active:
            self.active = False
            self.set_active(True)

    def set_active(self, active: bool) -> None:
        """Call ``activate`` or ``deactivate`` when that is a change (B13)."""
        if active == self.active:
            return
        self.active = active
        try:
            if active:
                self.spout.activate()
            else:
                self.spout.deactivate()
        except Exception as error:
            failure = self._component_error("raised in activate or deactivate", error)
            raise failure from error

    def stop(self) -> None:
        """Deactivate and close; what that raises is reported and stops nothing."""
        try:
            self.set_active(False)
            self.spout.close()
        except Exception as error:
            self.report_error(error)

    @property
    def may_emit(self) -> bool:
        """Active, and below max spout pending, which is looked at before each ``next_tuple`` (B4)."""
        limit = self._max_pending
        return self.active and self.fatal is None and (limit is None or self.account.pending < limit)

    def ask(self, calls: int, deadline: float) -> bool:
        """Call ``next_tuple`` up to ``calls`` times, until it emits nothing; true if the last call emitted."""
        clock, collector, account = self._clock, self._collector, self.account
        next_tuple = self.spout.next_tuple
        limit = self._max_pending if self._max_pending is not None else 1 << 62
        emitted = False
        collector.now = now = clock()
        try:
            for _ in range(calls):
                if account.pending >= limit or now >= deadline:
                    break
                collector.emitted = False
                next_tuple()
                emitted = collector.emitted
                if not emitted:
                    break
                collector.now = now = clock()
            self._raised_in_row = 0
        except Exception as error:
            self._raised("next_tuple", error)
            return self.fatal is None
        return emitted

    def deliver(self) -> None:
        """Call ``ack`` or ``fail`` for every tree that has ended."""
        account = self.account
        while account.ended and self.fatal is None:
            ended, account.ended = account.ended, []
            now = self._clock()
            counters, collector, spout = self.counters, self._collector, self.spout
            latency = counters.latency
            for tree in ended:
                verdict = tree.verdict
                assert verdict is not None
                collector.verdict = verdict
                try:
                    if verdict.outcome is Outcome.ACKED:
                        counters.acked += 1
                        latency.add(now - tree.emitted_at)
                        spout.ack(tree.message_id)
                    else:
                        self._count_fail(verdict.outcome)
                        spout.fail(tree.message_id)
                except Exception as error:
                    self._raised("ack or fail", error)
                    break  # the rest were trees of an instance that is gone (B10)
            collector.verdict = None

    def _count_fail(self, outcome: Outcome) -> None:
        counters = self.counters
        counters.failed += 1
        if outcome is Outcome.FAILED:
            counters.failed_by_bolt += 1
        elif outcome is Outcome.TIMED_OUT:
            counters.timed_out += 1
        else:
            counters.worker_lost += 1

    def _ack_inside_emit(self, message_id: Hashable) -> None:
        """Acking is off: the spout hears of the ack inside its emit (B8, E29)."""
        self.counters.acked += 1
        self.spout.ack(message_id)

    def _raised(self, where: str, error: Exception) -> None:
        self.report_error(error)
        self._restart(where, error)
