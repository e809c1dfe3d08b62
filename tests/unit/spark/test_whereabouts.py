"""What a topology leaves on its host for commands that look at it by its name."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from stormspark.errors import TopologyNotAliveError, UnsupportedEnvironmentError
from stormspark.private_files import make_log_folder
from stormspark.spark.whereabouts import Whereabouts, checkpoint_of


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Whereabouts:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return Whereabouts("words", "/checkpoint", str(make_log_folder(None, "words")), 3, 4711)


def test_what_is_left_is_found_by_name(left: Whereabouts) -> None:
    with pytest.raises(TopologyNotAliveError, match="started no topology 'words' on this host: name"):
        Whereabouts.read("words")
    left.write()
    left.write()
    assert Whereabouts.read("words") == left
    with pytest.raises(
        TopologyNotAliveError,
        match=r"name its checkpoint folder in place of its name; did you mean 'words'\?",
    ):
        Whereabouts.read("wrods")


def test_a_checkpoint_may_be_named_itself(left: Whereabouts, monkeypatch: pytest.MonkeyPatch) -> None:
    left.write()
    assert checkpoint_of("words") == "/checkpoint"
    assert checkpoint_of("checkpoints/words") == "checkpoints/words"
    monkeypatch.chdir(left.log_folder)
    Path("words", "stormspark").mkdir(parents=True)
    assert checkpoint_of("words") == "words"


@pytest.mark.parametrize("what", ["above", "folder", "file"])
def test_where_others_could_have_written_it_is_not_believed(left: Whereabouts, what: str) -> None:
    """It names a folder from which things are unpickled."""
    left.write()
    folder = Path(left.log_folder)
    {"above": folder.parent, "folder": folder, "file": folder / "topology.json"}[what].chmod(0o770)
    with pytest.raises(UnsupportedEnvironmentError, match="can be written to by others"):
        Whereabouts.read("words")


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_nor_is_what_they_may_have_linked(left: Whereabouts, link: str, tmp_path: Path) -> None:
    left.write()
    file = Path(left.log_folder, "topology.json")
    file.rename(tmp_path / "planted")
    getattr(file, link)(tmp_path / "planted")
    with pytest.raises(UnsupportedEnvironmentError, match=r"topology\.json (is a link|has another name)"):
        Whereabouts.read("words")
