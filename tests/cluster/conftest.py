"""What tests on clusters share: what hosts get, made once, and a cluster for each kind."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster, Prepared


@pytest.fixture(scope="session")
def prepared() -> Iterator[Prepared]:
    """In a folder that may be large, and whose path may be long: no socket is in it."""
    folder = Path(tempfile.mkdtemp(prefix="cluster-", dir="/var/tmp"))
    try:
        yield Prepared(folder / "prepared")
    finally:
        if "KEEP" not in os.environ:
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def cluster_of(prepared: Prepared) -> Iterator[Callable[..., Cluster]]:
    """Make a cluster of these services, or take the one that is there. Only one is there at a time."""
    now: list[tuple[tuple[object, ...], Cluster]] = []

    def make(*services: Callable[[Cluster], None]) -> Cluster:
        if now and now[0][0] == services and now[0][1].is_whole():
            return now[0][1]
        for _, old in now:
            old.hosts.take_away()
        now.clear()
        # Of its own: two modules have the same folder for all that is prepared.
        folder = Path(tempfile.mkdtemp(prefix="hosts-", dir=prepared.folder.parent))
        made = Cluster(folder, prepared, services)
        now[:] = [(services, made)]
        return made

    yield make
    for _, old in now:
        old.hosts.take_away()
