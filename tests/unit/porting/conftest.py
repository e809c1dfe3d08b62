import os
import sys

import pytest


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch, tmp_path):
    """Loading a skeleton imports it and puts its folder on the module path: undo that."""
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file and str(tmp_path) in file:
            del sys.modules[name]
