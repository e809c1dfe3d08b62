from pathlib import Path

import pytest

from tests.imports import imports_undone

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch, tmp_path):
    """Loading a file imports it and puts its folder on the module path: undo that."""
    with imports_undone(monkeypatch, tmp_path), imports_undone(monkeypatch, EXAMPLES):
        yield
