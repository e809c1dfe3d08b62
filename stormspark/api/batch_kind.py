"""How a component takes part in batches, as far as its declaration says it."""

from __future__ import annotations

__all__ = ["KnowsBatches", "kind_of_batch"]


class KnowsBatches:
    """The base of `stormspark.spi.BatchAware`: the part of it that a declaration needs.

    The rest belongs to front-ends, which are on a layer above this one.
    """

    #: `FINISH` or `COMMIT` of `stormspark.spi` for a bolt whose ``end_batch`` is to be called.
    ends: str | None = None


def kind_of_batch(component: object) -> str:
    """``""`` for a component that knows nothing of batches, ``part`` for one that is told of them, else when its batch ends."""
    if not isinstance(component, KnowsBatches):
        return ""
    return component.ends or "part"
