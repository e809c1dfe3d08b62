"""Small schedules, all of them: a run in which nothing happens, and then each thing that could have happened there, alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.schedules.schedule import Schedule
from tests.schedules.search import try_schedule

__all__ = ["enumerated"]

#: Two workers of uneven work, and one batch.
_SMALL: Mapping[str, Mapping[str, int]] = {
    "exactly-once": {"sinks": 6, "rows of 0/0": 3},
    "at-least-once": {"rows of 0/0": 3},
    "transactional": {"emitters": 1},
}
#: Of what has many options a few are enough.
_MOST_OPTIONS = 3


def enumerated() -> Iterator[tuple[str, Schedule]]:
    """Each family's small run, with one thing that happens in it."""
    for family, base in _SMALL.items():
        calm = Schedule(0, base)
        assert try_schedule(family, calm) is None
        for name, options in calm.options.items():
            if ": " not in name:  # shapes
                continue
            step = max(1, (options - 1) // _MOST_OPTIONS)
            for value in range(1, options, step):
                yield family, Schedule(0, {**base, name: value})
