import sys

import pytest

from tests.imports import imports_undone


@pytest.fixture
def as_it_was(monkeypatch):
    """Loading a file imports it and puts folders on the module path: undo that."""
    monkeypatch.setattr(sys, "meta_path", sys.meta_path[:])
    with imports_undone(monkeypatch):
        yield
