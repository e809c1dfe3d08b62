"""When a superstep waits for answers from outside for a moment only: if other workers would stand still meanwhile (A16)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stormspark.worker.outside import OutsideWork

NEVER = 100.0


class Waits(OutsideWork):
    """Notes until when it would wait."""

    until = 0.0

    def wait(self, until: float) -> bool:
        """Note it."""
        self.until = until
        return True


def waits(*, shares: bool, hands_out: bool, transacts: bool, full: bool, lanes: bool = True) -> bool:
    """Whether the superstep waits for longer than a moment."""
    departures: Any = SimpleNamespace(lanes=[object()] if lanes else [])
    outside = Waits(lambda: 1.0, SimpleNamespace(), departures, shares_thread=shares)  # type: ignore[arg-type]
    bolt: Any = SimpleNamespace(in_transactions=transacts, waiting=7 * full, ready=0)
    outside.bolts = [bolt]
    outside.begin_superstep(hands_out=hands_out)
    outside.wait_with_patience(NEVER)
    return outside.until == NEVER


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("hands_out", [False, True])
def test_it_waits_where_nobody_else_has_to(shares: bool, full: bool, hands_out: bool) -> None:
    alone = waits(shares=shares, hands_out=hands_out, transacts=False, full=full, lanes=False)
    assert alone, "no other worker gets tuples"
    plain = waits(shares=shares, hands_out=hands_out, transacts=False, full=full)
    assert plain is (full and not shares), "unless the bolt has more work than time, tuples leave at once"
    batch = waits(shares=shares, hands_out=hands_out, transacts=True, full=full)
    assert batch is (shares or not hands_out), (
        "a batch waits for all its calls, at best in the last superstep"
    )
