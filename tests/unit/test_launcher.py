"""Whose Spark a process would import."""

from __future__ import annotations

import zipfile
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from stormspark import launcher


@pytest.mark.parametrize("quote", ["'", '"'])
@pytest.mark.parametrize("zipped", [False, True], ids=["folder", "zip"])
def test_the_version_of_a_spark_that_is_on_the_path_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quote: str, zipped: bool
) -> None:
    """Releases have single quotes in their file, and bring a zip. What is installed may be another Spark, or none."""
    place = tmp_path / "pyspark.zip" if zipped else tmp_path
    files = {"__init__.py": "", "version.py": f"# License\n__version__: str = {quote}4.0.1{quote}\n"}
    for name, text in files.items():
        if zipped:
            with zipfile.ZipFile(place, "a") as archive:
                archive.writestr(f"pyspark/{name}", text)
        else:
            (place / "pyspark").mkdir(exist_ok=True)
            (place / "pyspark" / name).write_text(text)
    monkeypatch.setattr(launcher, "find_spec", lambda name: PathFinder.find_spec(name, [str(place)]))
    monkeypatch.setattr(launcher, "version_of", lambda name: "4.2.0")
    assert launcher.pyspark_found() == (place / "pyspark", "4.0.1")
