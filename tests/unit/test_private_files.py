"""Folders for one user alone: made, checked, and refused in one line."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from stormspark.errors import UnsupportedEnvironmentError
from stormspark.private_files import (
    PrivateLogFile,
    check_private,
    check_trusted,
    is_private,
    make_private,
    open_private,
    user_name,
)

_NOBODY = 65534
_as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o022, 0o000, 0o077, 0o002], ids="umask {:03o}".format)
def umask(request: pytest.FixtureRequest) -> object:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def refused(path: Path, *words: str) -> None:
    """By all that use it, in one line with what was expected and what to do."""
    for use in (make_private, check_private):
        with pytest.raises(UnsupportedEnvironmentError) as caught:
            use(path)
        text = str(caught.value)
        assert "\n" not in text and "stormspark.log.dir" in text and "remove it" in text
        for word in (*words, f"a folder of {user_name()} that nobody else can use (mode 0700)"):
            assert word in text, text
    assert not is_private(path)


def test_it_is_made_for_this_user_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    folder = make_private(tmp_path / "above" / "logs")
    assert mode(folder) == mode(folder.parent) == 0o700
    assert make_private(folder) == check_private(folder) == folder and is_private(folder)
    file = open_private(folder / "a")
    assert stat.S_IMODE(os.fstat(file).st_mode) == 0o600 and os.get_blocking(file)
    os.close(file)


@pytest.mark.parametrize("before", [0o755, 0o750, 0o711, 0o700, 0o500])
def test_one_of_ours_that_others_can_only_read_is_taken_from_them(tmp_path: Path, before: int) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    folder.chmod(before)
    make_private(folder)
    assert mode(folder) == 0o700


@pytest.mark.parametrize("before", [0o770, 0o775, 0o777, 0o1777, 0o702])
def test_one_that_others_can_write_to_is_refused(tmp_path: Path, before: int) -> None:
    """They may have put files and links there already."""
    folder = tmp_path / "logs"
    folder.mkdir()
    folder.chmod(before)
    refused(folder, str(folder), f"can be written to by others (mode {before:04o})")


def test_a_link_is_refused_also_one_to_a_good_folder(tmp_path: Path) -> None:
    (tmp_path / "good").mkdir(mode=0o700)
    link = tmp_path / "logs"
    link.symlink_to(tmp_path / "good")
    refused(link, "is a link")


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("")
    refused(tmp_path / "logs", "is no folder")


@_as_root
@pytest.mark.parametrize("before", [0o700, 0o755, 0o777])
def test_one_that_somebody_else_made_first_is_refused(tmp_path: Path, before: int) -> None:
    folder = tmp_path / "stormspark-logs-me"
    folder.mkdir()
    folder.chmod(before)
    os.chown(folder, _NOBODY, _NOBODY)
    refused(folder, "belongs to nobody")


@_as_root
def test_so_is_one_below_a_folder_that_somebody_else_made_first(tmp_path: Path) -> None:
    shared = tmp_path / "tmp"
    shared.mkdir()
    shared.chmod(0o1777)
    theirs = shared / "stormspark-logs-me"
    ours = theirs / "topology"
    ours.mkdir(parents=True, mode=0o700)
    os.chown(theirs, _NOBODY, _NOBODY)
    refused(ours, f"{theirs} belongs to nobody")
    with pytest.raises(UnsupportedEnvironmentError, match="belongs to nobody"):
        make_private(theirs / "another")
    assert not (theirs / "another").exists()


@_as_root
def test_so_is_one_whose_name_is_their_link(tmp_path: Path) -> None:
    shared, good = tmp_path / "tmp", tmp_path / "good"
    shared.mkdir()
    shared.chmod(0o1777)
    good.mkdir(mode=0o700)
    link = shared / "logs"
    link.symlink_to(good)
    os.lchown(link, _NOBODY, _NOBODY)
    refused(link, "is a link")
    (good / "topology").mkdir(mode=0o700)
    refused(link / "topology", "belongs to nobody")


def test_a_volume_of_a_container_will_do(tmp_path: Path) -> None:
    """Everybody can write to it, and it has no sticky bit; what we make there is ours."""
    volume = tmp_path / "volume"
    volume.mkdir()
    volume.chmod(0o777)
    assert is_private(make_private(volume / "logs"))


def test_what_is_not_there_is_not_made_by_a_look(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        check_private(tmp_path / "logs")
    assert not is_private(tmp_path / "logs") and not (tmp_path / "logs").exists()


# -- files -----------------------------------------------------------------------------------------------------


def test_a_link_in_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("precious")
    (tmp_path / "task.log").symlink_to(target)
    with pytest.raises(UnsupportedEnvironmentError, match=r"task\.log is a link"):
        open_private(tmp_path / "task.log")
    handler = PrivateLogFile(tmp_path / "task.log", delay=True)
    with pytest.raises(UnsupportedEnvironmentError):
        handler._open()
    assert target.read_text() == "precious"


def test_a_pipe_or_a_device_in_place_of_a_file_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnsupportedEnvironmentError, match="is a link or a pipe"):
        open_private(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(UnsupportedEnvironmentError, match="is no regular file"):
        open_private(tmp_path / "pipe")
    os.close(reader)
    with pytest.raises(UnsupportedEnvironmentError, match="is no regular file"):
        open_private("/dev/null")


def test_a_file_of_ours_is_taken_from_others_and_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "task.log"
    path.write_text("before\n")
    path.chmod(0o666)
    with open(open_private(path), "a") as file:
        file.write("after\n")
    assert mode(path) == 0o600 and path.read_text() == "before\nafter\n"


@_as_root
def test_a_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "task.log"
    path.write_text("theirs\n")
    os.chown(path, _NOBODY, _NOBODY)
    with pytest.raises(UnsupportedEnvironmentError, match=r"task\.log belongs to nobody: expected a file of"):
        open_private(path)
    assert path.read_text() == "theirs\n"


# -- what is unpickled -----------------------------------------------------------------------------------------


def test_a_checkpoint_may_be_shared_with_a_group_and_not_with_everybody(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    check_trusted(folder)  # that is made later, by us
    folder.mkdir()
    for fine in (0o700, 0o755, 0o775, 0o2770):
        folder.chmod(fine)
        check_trusted(folder)
    folder.chmod(0o777)
    with pytest.raises(
        UnsupportedEnvironmentError, match=r"by everybody \(mode 0777\).*stormspark\.checkpoint\.shared"
    ):
        check_trusted(folder)


@_as_root
def test_a_checkpoint_that_somebody_else_made_first_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    os.chown(folder, _NOBODY, _NOBODY)
    with pytest.raises(
        UnsupportedEnvironmentError,
        match=f"nobody, and what is read from there runs as {user_name()}",
    ):
        check_trusted(folder)


def test_the_name_of_a_user_is_not_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "somebody-else")
    monkeypatch.setenv("USER", "somebody-else")
    assert user_name() != "somebody-else"
    assert user_name(4_000_000_000) == "4000000000", "as in a container that has no entry for its user"
