"""Random numbers of 64 bits, drawn many at a time. They identify trees, edges, and records of the durable acker."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from random import Random

__all__ = ["edge_ids", "record_ids"]


def edge_ids(random: Random, count: int) -> Sequence[int]:
    """Draw numbers from 0 to 2**64 - 1."""
    return array("Q", random.randbytes(8 * count))


def record_ids(random: Random, count: int) -> Sequence[int]:
    """Draw numbers from -2**63 to 2**63 - 1, the range of Spark's longs."""
    return array("q", random.randbytes(8 * count))
