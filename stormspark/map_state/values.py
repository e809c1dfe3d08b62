"""The stored forms of values, from which a replayed batch is recognised (G8, G15)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

__all__ = ["OpaqueValue", "StateType", "TransactionalValue"]

V = TypeVar("V")


class StateType(Enum):
    """The rule that a state follows."""

    NON_TRANSACTIONAL = "non-transactional"
    TRANSACTIONAL = "transactional"
    OPAQUE = "opaque"


@dataclass(frozen=True, slots=True)
class TransactionalValue(Generic[V]):
    """A value and the batch that made it."""

    #: None if it was put outside of any batch.
    txid: int | None
    value: V


@dataclass(frozen=True, slots=True)
class OpaqueValue(Generic[V]):
    """A value, the batch that made it, and the value before that batch. None means that there is no value."""

    #: None if it was put outside of any batch.
    txid: int | None
    curr: V | None
    prev: V | None = None
