"""How a component declares that it knows its batches."""

from __future__ import annotations

__all__ = ["KnowsBatches", "kind_of_batch"]


class KnowsBatches:
    """The base class of `stormspark.spi.BatchAware`, with the one attribute that a declaration needs.

    The methods of `BatchAware` are for front-ends, which are on a layer above this one.
    """

    #: `FINISH` or `COMMIT` of `stormspark.spi` for a bolt whose ``end_batch`` is to be called; None for any other.
    ends: str | None = None


def kind_of_batch(component: object) -> str:
    """Return the ``ends`` of a component that is to be informed of the end of a batch.

    Return ``part`` for any other component that knows its batches, and ``""`` for a component that does not.
    """
    if not isinstance(component, KnowsBatches):
        return ""
    return component.ends or "part"
