"""How exact timeouts are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark.acker import Ledger, SpoutAccount, Tree


@given(
    st.integers(2, 20),
    st.lists(st.floats(0.01, 9), min_size=5, max_size=60),
    st.integers(0, 40),
)
def test_a_tree_fails_as_late_as_buckets_are_wide(buckets: int, steps: list[float], at: int) -> None:
    """E10, E28, B25: not before T, and by T * b / (b - 1) and the two steps in which the clock goes on then."""
    timeout = 10.0
    ledger = Ledger(0, lambda n: [1] * n, timeout, None, buckets)
    now, began, failed = 0.0, None, None
    account = SpoutAccount(1)
    for step in [*steps, *[1.0] * 60]:
        if began is None and at <= 0:
            tree = Tree(account, "id", now)
            tree.count = 1
            ledger.begin(tree)
            began = now
        at -= 1
        now += step
        if ledger.rotate(now):
            assert failed is None
            failed = now
        ledger.validate()
    assert began is not None and failed is not None
    assert failed - began >= timeout - 1e-6
    assert failed - began <= timeout * buckets / (buckets - 1) + 2 * max(*steps, 1.0) + 1e-6


@pytest.mark.parametrize(("buckets", "late"), [(2, 20.0), (11, 11.0)])
def test_storms_and_herons(buckets: int, late: float) -> None:
    """E10, E19, B25: up to twice the timeout in Storm, up to a tenth more in Heron."""
    ledger = Ledger(0, lambda n: [1] * n, 10.0, None, buckets)
    ledger.rotate(0.0)
    tree = Tree(SpoutAccount(1), "id", 0.0)
    tree.count = 1
    ledger.begin(tree)
    failed = next(tenth / 100 for tenth in range(1, 3000) if ledger.rotate(tenth / 100))
    assert failed == pytest.approx(late, abs=0.011)
