"""Workers of a test end with it, also where it fails: other tests count threads and event loops."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.worker.rig import OPENED


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    for rig in OPENED:
        rig.cluster.abandon()
    OPENED.clear()
