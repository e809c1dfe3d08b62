"""A registry of drivers for one test, and a topology that is served there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stormspark.operations import registry


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as made:  # sockets have short names
        place = Path(made, "registry")
        monkeypatch.setattr(registry, "registry_folder", lambda: place)
        yield place


@pytest.fixture
def words(folder: Path) -> Iterator[Any]:
    from tests.unit.operations.test_server import Words, serving

    running = Words()
    server = serving(running)
    yield running
    server.close()
