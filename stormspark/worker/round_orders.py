"""The orders of one round. The driver makes one such object per round, and every worker gets it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from stormspark.acker.records import AckerTime
from stormspark.backpressure import Limits

__all__ = ["NO_EARLIER_ATTEMPTS", "PLAIN_ORDERS", "EarlierAttempts", "RoundOrders"]


@dataclass(frozen=True)
class EarlierAttempts:
    """The facts that the next attempt at a batch has to know of earlier attempts at the same batch."""

    #: The batch of these attempts; -1 if there were none.
    batch: int = -1
    #: For each task, the ids of rows of sources that the task must not emit again, because they failed too often.
    given_up: Mapping[int, tuple[Hashable, ...]] = field(default_factory=dict)
    #: The tasks' announcements about the batch (`BatchAware.announcement`), pickled, by the task's component and index.
    announced: Mapping[str, bytes] = field(default_factory=dict)

    def of(self, batch: int) -> EarlierAttempts:
        """Return this object if the attempts were at ``batch``, or else an object without attempts."""
        return self if batch == self.batch else NO_EARLIER_ATTEMPTS


NO_EARLIER_ATTEMPTS = EarlierAttempts()


@dataclass(frozen=True)
class RoundOrders:
    """The orders for one round of one batch, the same for all workers and supersteps.

    The defaults are for the only round of a batch that is not a transaction. If a batch has several rounds, most of the orders
    may change from round to round. `may_prepare` and `ending_round` have their defaults unless batches are transactions
    (`PhysicalPlan.exactly_once`).
    """

    #: The number of this round in its batch; a batch begins with round 0.
    round: int = 0
    #: How many tuples each task of a spout may emit in this round (`stormspark.backpressure`); None if there is no limit.
    limits: Limits | None = None
    #: The spouts that max spout pending holds back. Their tuples stay in their workers, where the grouping allows it.
    staying_local: frozenset[str] = frozenset()
    #: How many seconds this round should take; None if ``stormspark.batch.target.ms`` applies.
    target_secs: float | None = None
    #: The durable acker's time; None if there is no durable acker, or if a later round of this batch will report to it.
    acker_time: AckerTime | None = None
    #: The batch that was committed last; -1 if none was.
    committed: int = -1
    #: Whether workers prepare the batch at the end of this round if nothing of the batch is left.
    may_prepare: bool = False
    #: Whether spouts that read no source may emit in this round.
    asks_spouts: bool = True
    #: At the end of a transactional batch, some rounds tell the batch bolts that it ends, one group of bolts per round
    #: (`PhysicalPlan.ends_of_batches`). This is the number of the round among those, counted from 1; 0 for any other round.
    ending_round: int = 0
    #: Whether the input has ended. Until the end of the topology, windows then hold what comes until they are told to flush.
    input_ended: bool = False
    #: The turn of the bolts that flush at the beginning of this batch (`PhysicalPlan.flush_turns`); 0 for none.
    flushes: int = 0
    #: Which percentage of what each component emits is logged (`EventLog`). The key "" stands for all others.
    sampled: Mapping[str, float] = field(default_factory=dict)
    #: The facts about earlier attempts at this batch that the workers have to know.
    earlier: EarlierAttempts = NO_EARLIER_ATTEMPTS


PLAIN_ORDERS = RoundOrders()
