import os
import sys
from pathlib import Path

import pytest


@pytest.fixture
def as_it_was(monkeypatch, tmp_path):
    """Loading a file imports it and puts folders on the module path: undo that."""
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr(sys, "meta_path", sys.meta_path[:])
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    before = set(sys.modules)
    yield
    for name, module in list(sys.modules.items()):
        ours = name.partition(".")[0] in ("heron", "heronpy", "pyheron")
        file = None if name in before else getattr(module, "__file__", None)
        if ours or (file and Path(file).is_relative_to(tmp_path)):
            del sys.modules[name]
