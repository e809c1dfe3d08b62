"""Tests that load users' projects in this process, and leave nothing of them behind."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def imports_undone(monkeypatch: pytest.MonkeyPatch, under: Path | None = None) -> Iterator[None]:
    """Put folders off the module path again, and forget modules, because other projects have modules of the same names.

    Forgotten are the modules of files below ``under``; by default all that are not stormspark's.
    """
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    before = set(sys.modules)
    try:
        yield
    finally:
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if not name.startswith("stormspark") if under is None else str(under) in file:
                del sys.modules[name]
