"""The changes of a topology's layout: which layout comes next, and the way back from one that can't start.

    layout A runs -> somebody asks for B -> A ends -> B starts -> B has begun           a rebalance
                                                   -> B can't start -> A starts again   a rebalance that is taken back

A layout *has begun* once all its workers have been ready at the same time. Before that, no round of it can have ended. So it has
committed and announced no batch, and has written no dead letter, no feedback, and no change to the acker's journal. The
checkpoint has all that layout A has left there. Therefore there is a way back until then, and none later. It is a change like any
other, with a generation of its own, and begins at the checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass

from stormspark.errors import StatusError, StormsparkError
from stormspark.plan.physical import PhysicalPlan
from stormspark.spark.java_errors import in_full, in_one_line

__all__ = ["Change", "LayoutChanges", "size_of"]


@dataclass(eq=False)
class Change:
    """A change to another layout, by ``plan``."""

    plan: PhysicalPlan
    #: Why the layout of an earlier change could not start, if this change takes that one back; otherwise an empty string.
    takes_back: str = ""
    #: What to answer whoever has asked for this change, if it was taken back; otherwise None.
    refusal: StatusError | None = None
    #: Whether its layout has begun.
    has_begun: bool = False


class LayoutChanges:
    """The changes of one topology, whose first layout has ``plan``. `SparkTopology` calls it under its lock.

    >>> from stormspark import TopologyBuilder
    >>> from stormspark.plan import plan_topology
    >>> from stormspark.plan.rebalance import rebalanced
    >>> from stormspark.testing import TestWordSpout
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", TestWordSpout(), parallelism=2)
    >>> plan = plan_topology(builder.create_topology("demo"), {"topology.workers": 1})
    >>> changes = LayoutChanges(plan)
    >>> changes.begun()
    >>> change = changes.ask(rebalanced(plan, workers=2))
    >>> changes.laid_out()
    >>> changes.take_back(change, ValueError("no room"))
    True
    >>> print(change.refusal)
    topology 'demo' could not start with 2 workers and 2 executors, and runs with 1 and 2 as before: ValueError: no room
    >>> changes.next.plan is plan
    True
    """

    def __init__(self, plan: PhysicalPlan) -> None:
        #: The change that comes next; None if nobody wants one.
        self.next: Change | None = None
        #: The change that was made last.
        self.present = Change(plan)
        #: The plan of the last layout that has begun.
        self._kept: PhysicalPlan | None = None

    def ask(self, plan: PhysicalPlan) -> Change:
        """Ask for another layout. There must be no next one already."""
        assert self.next is None
        self.next = Change(plan)
        return self.next

    def laid_out(self) -> None:
        """Make the next change the present one: its workers start now."""
        assert self.next is not None
        self.present, self.next = self.next, None

    def begun(self) -> None:
        """Remember that the present layout has begun: there is no way back from it, and later ones come back to it."""
        self.present.has_begun, self._kept = True, self.present.plan

    def take_back(self, change: Change, error: BaseException) -> bool:
        """Go back to the last layout that has begun, because the layout of ``change`` could not start.

        Whoever has asked for it, or for another change since, gets an answer. Return false if there is no way back. Raises
        `StormsparkError`, with both reasons, if this change was itself the way back.
        """
        if change.has_begun or self._kept is None:
            return False
        why = in_full(error)
        if change.takes_back:
            msg = (
                f"{change.plan.topology} could not be laid out anew: {change.takes_back}\n"
                f"It could not go back to {size_of(change.plan)} either: {why}"
            )
            raise StormsparkError(msg) from error
        msg = (
            f"topology {change.plan.topology!r} could not start with {size_of(change.plan)}, and runs with "
            f"{self._kept.workers} and {self._kept.executors} as before: {in_one_line(why)}"
        )
        refusal = StatusError(msg)
        for asked in (change, self.next):
            if asked is not None:
                asked.refusal = refusal
        self.next = Change(self._kept, takes_back=why)
        return True


def size_of(plan: PhysicalPlan) -> str:
    """Return the size of a layout in words, such as "3 workers and 8 executors"."""
    return f"{plan.workers} worker{'s' * (plan.workers != 1)} and {plan.executors} executors"
