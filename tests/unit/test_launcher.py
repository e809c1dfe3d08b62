"""Whose Spark a process would import."""

from __future__ import annotations

from pathlib import Path

import pytest

from stormspark import launcher


@pytest.mark.parametrize("quote", ["'", '"'])
def test_the_version_of_a_spark_that_is_on_the_path_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quote: str
) -> None:
    """Releases have single quotes in their file. What is installed may be another Spark, or none."""
    (tmp_path / "version.py").write_text(f"# License\n__version__: str = {quote}4.0.1{quote}\n")

    class Spec:
        origin = str(tmp_path / "__init__.py")

    monkeypatch.setattr(launcher, "find_spec", lambda name: Spec)
    monkeypatch.setattr(launcher, "version_of", lambda name: "4.2.0")
    assert launcher.pyspark_found() == (tmp_path, "4.0.1")
