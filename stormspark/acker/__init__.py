"""The acker: the XOR ledger, timeouts and verdicts of tuple trees.

The package is pure: time and random edge ids are arguments.
"""

from stormspark.acker.ledger import Ledger, LedgerStatistics, Parts, RemoteEdges
from stormspark.acker.running_clock import RunningClock
from stormspark.acker.tree import Branch, Part, Roots, SpoutAccount, Trace, TracedPart, TracedTree, Tree
from stormspark.acker.verdict import ACKED, Outcome, Verdict

__all__ = [
    "ACKED",
    "Branch",
    "Ledger",
    "LedgerStatistics",
    "Outcome",
    "Part",
    "Parts",
    "RemoteEdges",
    "Roots",
    "RunningClock",
    "SpoutAccount",
    "Trace",
    "TracedPart",
    "TracedTree",
    "Tree",
    "Verdict",
]
