"""The folders in which a worker looks for modules."""

from __future__ import annotations

import importlib
import os
import sys
import zipfile
from pathlib import Path

import pytest

from stormspark.worker.host.module_path import module_path, search_like_the_driver


def test_a_working_directory_that_the_driver_searches_last_comes_last() -> None:
    """Else its `queue.py` hides the one of the standard library, in the workers alone."""
    own, drivers = ["/data", "/proj", "/lib", "/sp"], ["/proj", "/lib", "/sp", "/data"]
    assert module_path(own, drivers, "/lib", "/data") == ["/proj", "/lib", "/sp", "/data"]


def test_a_folder_in_a_zip_file_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python imports from there, too; a folder that is not there is left out."""
    archive = tmp_path / "code.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("deep/er/in_a_zip_file.py", "here = True")
    inside, gone = str(archive / "deep" / "er"), str(tmp_path / "gone" / "deep")
    monkeypatch.setattr(sys, "path", sys.path[:])
    search_like_the_driver([inside, gone, *(os.path.abspath(entry) for entry in sys.path)])
    assert inside in sys.path and gone not in sys.path
    try:
        assert importlib.import_module("in_a_zip_file").here
    finally:
        sys.modules.pop("in_a_zip_file", None)
