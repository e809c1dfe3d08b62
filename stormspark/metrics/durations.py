"""How long batches and their parts took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stormspark.metrics.histogram import Histogram

__all__ = ["Durations"]


@dataclass(frozen=True)
class Durations:
    """How long each batch took, or each round of one, and each part of a batch by its name (``docs/batches.md``)."""

    batches: Histogram = field(default_factory=Histogram)
    parts: Mapping[str, Histogram] = field(default_factory=dict)
