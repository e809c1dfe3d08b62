"""Operations on all trees of a delivery: close the delivery's edges, fail the trees, reset the trees' timeouts.

Compiled modules use the C function of edges.pxd in place of `close_edges`. This module itself is never compiled. When you
change one of these two functions, change the other, too.
"""

from __future__ import annotations

from typing import Any

from stormspark.acker import Ledger, Roots, Verdict

__all__ = ["close_edges", "fail_roots", "reset_timeouts"]


def close_edges(ledger: Ledger, roots: Any) -> None:
    """Close one edge of every tree in ``roots``. Subtract the edge from the tree's count, and tell the ledger if no edge is
    left.
    """
    if type(roots) is tuple:  # plain Python does this faster than isinstance
        for branch in roots:
            branch.count -= 1
            if not branch.count:
                ledger.drained(branch)
    elif roots is not None:
        roots.count -= 1
        if not roots.count:
            ledger.drained(roots)


def fail_roots(ledger: Ledger, roots: Roots, verdict: Verdict) -> None:
    """Fail every tree in ``roots``, and close the failed tuple's edge in each."""
    for branch in roots if isinstance(roots, tuple) else (roots,):
        if branch is not None:
            ledger.fail(branch, verdict)
    close_edges(ledger, roots)


def reset_timeouts(ledger: Ledger, roots: Roots) -> None:
    """Reset the timeouts of every tree in ``roots``."""
    for branch in roots if isinstance(roots, tuple) else (roots,):
        if branch is not None:
            ledger.reset_timeout(branch)
