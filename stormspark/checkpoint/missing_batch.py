"""What a user reads who asks for a batch that a state table does not have."""

from __future__ import annotations

__all__ = ["missing_batch"]


def missing_batch(location: str, oldest: int, last: int, batch: int) -> str:
    """Say that the state table at ``location`` has the batches ``oldest`` to ``last``, and not ``batch``, and why.

    >>> missing_batch("/state", 3, 9, 10)
    'the state table /state has the batches 3 to 9, but not batch 10, which is not committed'
    >>> missing_batch("/state", -1, -1, 1)
    'the state table /state has no batch 1: no batch is committed yet'
    >>> missing_batch("/state", 3, 9, 1)[47:]
    'but not batch 1; stormspark.state.retain.txids and stormspark.state.retain.hours decide how many batches are kept'
    """
    if last < 0 <= batch:
        return f"the state table {location} has no batch {batch}: no batch is committed yet"
    has = f"the state table {location} has the batches {oldest} to {last}, but not batch {batch}"
    if batch > last:
        return f"{has}, which is not committed"
    return f"{has}; stormspark.state.retain.txids and stormspark.state.retain.hours decide how many batches are kept"
