"""A process that loads two projects whose modules have the same names (A37)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stormspark.compat.streamparse import load
from stormspark.errors import TopologyNotFoundError
from tests.imports import imports_undone


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Loading a project puts folders on the module path and imports what is in them: undo that."""
    with imports_undone(monkeypatch):
        yield


def project(folder: Path, name: str) -> Path:
    """A project with a topology in Python and one in Clojure, whose spout is in ``two_parts``."""
    (folder / "src").mkdir(parents=True)
    (folder / "topologies").mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "src" / "two_parts.py").write_text(
        "from streamparse import Spout\nclass Words(Spout):\n    outputs = ['word']\n    def next_tuple(self):\n        pass\n"
    )
    (folder / "topologies" / f"{name}.py").write_text(
        "from streamparse import Topology\nfrom two_parts import Words\nclass Mine(Topology):\n    words = Words.spec()\n"
    )
    (folder / "topologies" / f"{name}.clj").write_text(
        "(ns words (:use [streamparse.specs]))\n"
        '(defn words [options] [{"words" (python-spout-spec options "two_parts.Words" ["word"])} {}])\n'
    )
    return folder / "topologies" / name


@pytest.mark.parametrize("suffix", [".py", ".clj"])
def test_the_second_project_does_not_run_the_classes_of_the_first(tmp_path: Path, suffix: str) -> None:
    """Before, the second topology ran the first project's class, and nothing said so."""
    if suffix == ".clj":
        pytest.importorskip("basilisp.lang.reader")
    first, second = project(tmp_path / "one", "first"), project(tmp_path / "t w o", "second")
    load(first.with_suffix(suffix))
    load(first.with_suffix(suffix))
    with pytest.raises(
        TopologyNotFoundError, match=r"the module 'two_parts' of this project is .*t w o.*one"
    ) as caught:
        load(second.with_suffix(suffix))
    assert f"second{suffix}:" in str(caught.value)
