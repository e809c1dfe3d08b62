"""The delivery of verdicts. It calls a spout's ``ack`` or ``fail`` for every tree that has ended, and counts the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING

from stormspark.acker import ACKED, Outcome, Tree, Verdict
from stormspark.api import SpoutAckInfo, SpoutFailInfo
from stormspark.worker.errors_of_code import ERRORS_OF_CODE
from stormspark.worker.sources.rows import message_id_of
from stormspark.worker.tuples.verdicts import deliver_acks

if TYPE_CHECKING:
    from stormspark.worker.spout_task import SpoutTask
    from stormspark.worker.stories.spout_stories import SpoutStories
    from stormspark.worker.tuples.spout_collector import SpoutCollector

__all__ = ["VerdictDelivery"]

#: How many latencies are gathered before they are counted, all at once.
_MOST_LATENCIES = 4096


class VerdictDelivery:
    """The delivery of verdicts to one task's spout. It outlives the instances of the spout. ``clock`` is the worker's clock."""

    def __init__(self, task: SpoutTask, stories: SpoutStories, clock: Callable[[], float]) -> None:
        self._task, self._stories, self._clock = task, stories, clock
        #: The latencies of acked trees that are not counted yet, in seconds. It is cheaper to count many latencies at once.
        self._latencies: list[float] = []
        self._seen = (0, 0, 0)  # the counts that the last call of `has_moved` saw

    def deliver(self, ended: list[Tree], collector: SpoutCollector) -> None:
        """Call ``ack`` or ``fail`` for each of these trees. If a call raises, the task restarts, and the
        remaining trees get no call.

        ``collector`` is the collector of the spout's current instance.
        """
        task, latencies = self._task, self._latencies
        spout, hooks, counters = task.spout, task.hooks, task.counters
        collector.now = now = self._clock()
        delivered, before = 0, len(latencies)
        while delivered < len(ended):
            tree = ended[delivered]
            verdict = tree.verdict
            assert verdict is not None
            try:
                if verdict is ACKED:
                    collector.verdict = verdict
                    most = 1 if hooks else len(ended)
                    delivered = deliver_acks(ended, delivered, most, spout.ack, now, latencies)
                    for hook in hooks:
                        hook.spout_ack(SpoutAckInfo(message_id_of(tree.message_id), task.id, _ms(tree, now)))
                else:
                    delivered += 1
                    self._count_fail(verdict.outcome)
                    collector.verdict = self._stories.failed(tree, verdict, now)
                    spout.fail(tree.message_id)
                    for hook in hooks:
                        hook.spout_fail(
                            SpoutFailInfo(message_id_of(tree.message_id), task.id, _ms(tree, now))
                        )
            except ERRORS_OF_CODE as error:
                task.raised("ack or fail", error)
                break  # the remaining trees belonged to an instance that is gone (B10)
        if task.by_stream is not None:
            task.by_stream.add(ended[:delivered], now)
        counters.acked += len(latencies) - before
        if len(latencies) > _MOST_LATENCIES:
            self.count_latencies()
        collector.verdict = None

    def count(self, ended: list[Tree]) -> Iterator[tuple[Hashable, Verdict, float]]:
        """Count verdicts that another thread delivers. Yield, for each tree, the message id, the verdict and how many
        milliseconds the tree took.
        """
        now = self._clock()
        if self._task.by_stream is not None:
            self._task.by_stream.add(ended, now)
        for tree in ended:
            verdict = tree.verdict
            assert verdict is not None
            if verdict is ACKED:
                self._task.counters.acked += 1
                self._latencies.append(now - tree.emitted_at)
            else:
                self._count_fail(verdict.outcome)
                verdict = self._stories.failed(tree, verdict, now)
            yield tree.message_id, verdict, _ms(tree, now)
        if len(self._latencies) > _MOST_LATENCIES:
            self.count_latencies()

    def ack_inside_emit(self, message_id: Hashable) -> None:
        """Ack a message at once, inside its emit, because acking is off (B8, E29)."""
        task = self._task
        task.counters.acked += 1
        task.spout.ack(message_id)
        for hook in task.hooks:
            hook.spout_ack(SpoutAckInfo(message_id_of(message_id), task.id, 0.0))

    def has_moved(self) -> bool:
        """Return whether a verdict was delivered since the last call of this method. Another thread may call this method.

        While `deliver` runs, each ack adds a latency. An ack inside an emit has no latency, but is counted at once.
        """
        counters = self._task.counters
        latencies = counters.latency.count + len(self._latencies)
        before, self._seen = self._seen, (counters.acked, counters.failed, latencies)
        return before != self._seen

    def count_latencies(self) -> None:
        """Move the latencies to the task's counters."""
        self._task.counters.latency.add_all(self._latencies)
        self._latencies.clear()

    def _count_fail(self, outcome: Outcome) -> None:
        counters = self._task.counters
        counters.failed += 1
        if outcome is Outcome.FAILED:
            counters.failed_by_bolt += 1
        elif outcome is Outcome.TIMED_OUT:
            counters.timed_out += 1
        elif outcome is Outcome.WORKER_LOST:
            counters.worker_lost += 1


def _ms(tree: Tree, now: float) -> float:
    """Return how many milliseconds the tree took until ``now``."""
    return (now - tree.emitted_at) * 1000
