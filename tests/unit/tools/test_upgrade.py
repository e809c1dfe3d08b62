"""What counts as wrong after Spark has changed under a topology; the change itself is `make test-upgrade`."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

pytest.importorskip("deltalake")

from tools import matrix, upgrade


def test_the_examples_of_the_docstrings() -> None:
    assert doctest.testmod(upgrade).failed == 0


def test_an_environment_that_is_there_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(upgrade, "python_for", lambda version: version if version != "3.14" else None)
    assert upgrade.row_for("4.2", tmp_path).python == "3.13"
    older = next(row for row in matrix.ROWS if row.spark == "4.0.1")
    assert upgrade.row_for("4.0", tmp_path) != older
    (tmp_path / older.name).mkdir()
    (tmp_path / older.name / "installed").touch()
    assert upgrade.row_for("4.0", tmp_path) == older
    with pytest.raises(LookupError, match=r"no row has Spark 3\.5"):
        upgrade.row_for("3.5", tmp_path)
