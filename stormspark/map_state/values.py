"""The forms in which maps store values. They contain a batch's number, by which a map recognises a replayed batch (G8, G15)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

__all__ = ["OpaqueValue", "StateType", "TransactionalValue"]

V = TypeVar("V")


class StateType(Enum):
    """The kind of map that a stored state belongs to."""

    NON_TRANSACTIONAL = "non-transactional"
    TRANSACTIONAL = "transactional"
    OPAQUE = "opaque"


@dataclass(frozen=True, slots=True)
class TransactionalValue(Generic[V]):
    """A value and the batch that made it."""

    #: None if the value was put outside of any batch, or in a batch without a number.
    txid: int | None
    value: V


@dataclass(frozen=True, slots=True)
class OpaqueValue(Generic[V]):
    """A value, the batch that made it, and the value before that batch. ``curr`` or ``prev`` is None if there is no value."""

    #: None if the value was put outside of any batch, or in a batch without a number.
    txid: int | None
    curr: V | None
    prev: V | None = None
