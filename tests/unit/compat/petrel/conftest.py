import pytest

from tests.imports import imports_undone


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch, tmp_path):
    """Loading a topology imports its modules, and puts folders on the module path: undo that."""
    with imports_undone(monkeypatch, under=tmp_path):
        yield
