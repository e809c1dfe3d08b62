"""Windows of totals against a list of all events (J13)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark.metrics.windows import ALL_TIME, COUNTED, WINDOWS, Windows

_STEPS = st.lists(st.tuples(st.floats(0, 40_000), st.integers(0, 100)), min_size=1, max_size=200)


def _totals(count: int) -> np.ndarray:
    return np.full((2, len(COUNTED)), float(count))


@given(_STEPS)
def test_a_window_has_what_came_within_it_and_at_most_a_gap_more(steps: list[tuple[float, int]]) -> None:
    windows, now, total = Windows(), 0.0, 0
    events: list[tuple[float, int]] = []
    longest = 0.0
    windows.note(now, _totals(0))
    for pause, count in steps:
        now += pause
        longest = max(longest, pause)
        total += count
        events.append((now, count))
        for name, seconds in WINDOWS.items():
            got = int(windows.since(name, now, _totals(total))[1, 0])
            least = sum(number for at, number in events if at > now - seconds)
            most = sum(number for at, number in events if at > now - seconds - seconds / 20 - longest)
            assert least <= got <= most
        assert windows.since(ALL_TIME, now, _totals(total))[0, 0] == total
        windows.note(now, _totals(total))


def test_it_remembers_no_more_than_it_needs() -> None:
    windows = Windows()
    for second in range(0, 200_000, 5):
        windows.note(float(second), _totals(second))
    assert all(len(noted) <= 22 for noted in windows._noted.values())


def test_an_unknown_window() -> None:
    with pytest.raises(KeyError):
        Windows().since("60", 0.0, _totals(0))
