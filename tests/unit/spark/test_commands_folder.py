"""The folder of commands in a checkpoint folder that several users share."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from stormspark.spark.commands import _make_folder


@pytest.mark.parametrize("mode", [0o700, 0o2770])
def test_it_has_the_rights_of_the_checkpoint_folder(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    _make_folder(tmp_path)
    assert stat.S_IMODE((tmp_path / "stormspark" / "commands").stat().st_mode) == mode


def test_one_that_is_there_stays(tmp_path: Path) -> None:
    place = tmp_path / "stormspark" / "commands"
    place.mkdir(parents=True)
    place.chmod(0o750)
    _make_folder(tmp_path)
    assert stat.S_IMODE(place.stat().st_mode) == 0o750


def test_a_folder_that_can_not_be_made_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "stormspark").write_text("a file")
    _make_folder(tmp_path)
