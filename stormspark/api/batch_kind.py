"""How a component declares that the engine has to tell it when a batch begins, or also when a batch ends."""

from __future__ import annotations

__all__ = ["KnowsBatches", "kind_of_batch"]


class KnowsBatches:
    """The base class of `stormspark.spi.BatchAware`, with the one attribute that a component's declaration needs.

    The methods are in `BatchAware`, on a layer above this one, because only front-ends implement them.
    """

    #: `FINISH` or `COMMIT` of `stormspark.spi` for a bolt that is told of the end of a batch; None for any other component.
    ends: str | None = None


def kind_of_batch(component: object) -> str:
    """Return how a component knows batches. For one that is told of the end of a batch, this is its attribute ``ends``.

    It is ``"part"`` for a component that is told only of the beginning of a batch, and ``""`` for any other component.
    """
    if not isinstance(component, KnowsBatches):
        return ""
    return component.ends or "part"
