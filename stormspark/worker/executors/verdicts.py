"""How a spout hears of its acks and fails on its executor's thread.

The worker's thread may pass on verdicts at any time. The executor's thread delivers them later, between two other calls of the
spout (B3).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING

from stormspark.acker import ACKED, Verdict
from stormspark.api import SpoutAckInfo, SpoutFailInfo
from stormspark.worker.errors_of_code import contained
from stormspark.worker.executors.activation import ActivatedOnThread
from stormspark.worker.executors.notes import InstanceEnded
from stormspark.worker.executors.spout_collector import ThreadedSpoutCollector
from stormspark.worker.sources.rows import message_id_of

if TYPE_CHECKING:
    from stormspark.api import Spout

__all__ = ["HearsVerdicts"]

#: How many acks and fails are delivered before the executor's other tasks get their turn.
_VERDICTS_PER_TURN = 64


class HearsVerdicts(ActivatedOnThread):
    """The part of a `stormspark.worker.executors.spout_task.ThreadedSpoutTask` that delivers acks and fails."""

    #: The collector of the current instance.
    _threaded: ThreadedSpoutCollector
    #: The lock of everything that decides how many messages are pending.
    _counting: threading.Condition
    #: The time when the spout was last started, emitted or got a verdict; None once a later call has emitted nothing.
    _stirred: float | None

    def _forget_verdicts(self) -> None:
        #: Whether ``ack`` or ``fail`` runs for the first of `_verdicts`; used by the executor's thread.
        self._is_told = False
        #: How many verdicts were passed on, and how many of them the spout has heard. Only the worker's thread uses the first
        #: number, and only the executor's thread the second.
        self._passed_on = self._heard = 0
        #: The acks and fails for the spout, each with the message id, the verdict, and how many milliseconds the tree took.
        self._verdicts: deque[tuple[Hashable, Verdict, float]] = deque()

    # -- on the executor's thread ------------------------------------------------------------------------------

    def _deliver(self) -> None:
        notes, verdicts, collector, hooks = self.notes, self._verdicts, self._threaded, self.hooks
        self.executor.enter(self.name)
        for _ in range(_VERDICTS_PER_TURN):
            if not verdicts:
                break
            message_id, verdict, took = verdicts[0]
            collector.verdict = verdict
            self._is_told = True
            self._heard += 1
            try:
                self._tell(self.spout, message_id, verdict)
                user_id = message_id_of(message_id) if hooks else None
                for hook in hooks:
                    if verdict is ACKED:
                        hook.spout_ack(SpoutAckInfo(user_id, self.id, took))
                    else:
                        hook.spout_fail(SpoutFailInfo(user_id, self.id, took))
            except InstanceEnded:
                return
            except BaseException as error:
                self.is_held = True
                verdicts.popleft()  # if the topology stops, this instance goes on, and hears the others
                self._note(notes, partial(self._raised_on_thread, "ack or fail", error))
                return
            finally:
                collector.verdict = None
                self._is_told = False
            if notes.ended:  # the instance ended during the call, so nobody gets the remaining verdicts
                return
            verdicts.popleft()
        self._note(notes, self._has_stirred)

    def _tell(self, spout: Spout, message_id: Hashable, verdict: Verdict) -> None:
        if verdict is ACKED:
            spout.ack(message_id)
        else:
            spout.fail(message_id)

    def ack_at_once(self, message_id: Hashable) -> None:
        """Ack a message inside its emit, because there are no ackers (B8, E29)."""
        self._note(self.notes, self._count_ack)
        self.spout.ack(message_id)
        for hook in self.hooks:
            hook.spout_ack(SpoutAckInfo(message_id_of(message_id), self.id, 0.0))

    @property
    def hears_verdicts(self) -> bool:
        """Whether the executor's thread has verdicts to deliver, and may do so."""
        return bool(self._verdicts) and not self.is_held

    # -- on the worker's thread --------------------------------------------------------------------------------

    @property
    def has_verdicts(self) -> bool:
        """See `SpoutTask.has_verdicts`."""
        return bool(self.verdicts.ready)

    def deliver(self) -> None:
        """Pass verdicts to the executor's thread."""
        if not self.verdicts.ready or self.fatal is not None:
            return
        told = [*self._delivery.count(self.verdicts.ready)]
        self._passed_on += len(told)
        with self._counting:  # so that `pending_and_noted` counts each of them once
            self._verdicts.extend(told)
            self.verdicts.take()
        self._has_stirred()
        self.executor.wake()

    def _has_stirred(self) -> None:
        self._stirred = self._clock()

    def _raised_on_thread(self, where: str, error: BaseException) -> None:
        """Handle an error of ``next_tuple``, ``ack`` or ``fail``."""
        self.raised(where, contained(where, error))
        self._go_on()

    def _count_ack(self) -> None:
        self.counters.acked += 1
