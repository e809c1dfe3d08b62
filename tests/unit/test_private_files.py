"""Folders for one user alone: made, checked, and refused in one line."""

from __future__ import annotations

import logging
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from stormspark.errors import UnsupportedEnvironmentError
from stormspark.private_files import (
    HeldFolder,
    PrivateLogFile,
    check_private,
    check_trusted,
    default_log_folder,
    is_private,
    make_log_folder,
    make_private,
    open_private,
    user_name,
)
from tests.waiting import wait_for

_NOBODY = 65534
_as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o022, 0o000, 0o077, 0o002], ids="umask {:03o}".format)
def umask(request: pytest.FixtureRequest) -> object:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def folder_of_mode(path: Path, mode: int, file: str = "") -> Path:
    """One of ours, with a file in it or empty."""
    path.mkdir()
    if file:
        (path / file).write_text("")
    path.chmod(mode)
    return path


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


@pytest.mark.parametrize("before", [0o755, 0o750, 0o711, 0o700, 0o2775, 0o770])
def test_one_of_ours_that_is_in_use_stays_as_it_is(tmp_path: Path, before: int) -> None:
    """``/var/log`` for one, which is root's: the rest of the host needs it. A group may write where the user lets it."""
    folder = folder_of_mode(tmp_path / "logs", before, "syslog")
    assert make_private(folder) == folder and mode(folder) == before
    assert mode(make_private(folder / "topology")) == 0o700


@pytest.mark.parametrize(
    ("before", "after"),
    [(0o775, 0o755), (0o770, 0o750), (0o777, 0o755), (0o1777, 0o1755), (0o755, 0o755), (0o702, 0o700)],
)
def test_from_an_empty_one_others_lose_the_right_to_write(tmp_path: Path, before: int, after: int) -> None:
    folder = folder_of_mode(tmp_path / "logs", before)
    assert mode(make_private(folder)) == after
    assert is_private(folder)


@pytest.mark.parametrize("before", [0o777, 0o1777, 0o702])
def test_one_in_use_that_everybody_can_write_to_is_refused(tmp_path: Path, before: int) -> None:
    refused(
        folder_of_mode(tmp_path / "logs", before, "old.log"), f"(mode {before:04o})", "can be written to by"
    )
    assert mode(tmp_path / "logs") == before


@pytest.mark.parametrize("before", [0o775, 0o770])
def test_where_others_can_write_nothing_is_believed(tmp_path: Path, before: int) -> None:
    with pytest.raises(
        UnsupportedEnvironmentError, match=rf"can be written to by others \(mode {before:04o}\)"
    ):
        check_private(folder_of_mode(tmp_path / "logs", before))
    assert not is_private(tmp_path / "logs")


def test_a_plain_mkdir_of_a_user_with_a_private_group_will_do(tmp_path: Path, umask: int) -> None:
    (tmp_path / "logs").mkdir()
    make_private(tmp_path / "logs")
    make_private(tmp_path / "logs")  # by another process
    assert is_private(tmp_path / "logs")


# -- the default folder for logs ----------------------------------------------------------------------------------


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize("before", [None, 0o700, 0o755, 0o775, 0o777])
def test_the_default_one_is_the_users_alone_whatever_an_earlier_version_made(
    temporary: Path, before: int | None
) -> None:
    ours = temporary / f"stormspark-logs-{user_name()}"
    assert default_log_folder() == ours
    if before is not None:
        folder_of_mode(ours, 0o700)
        folder_of_mode(ours / "words", before, "worker-0.log")
        ours.chmod(before)
    assert make_log_folder(None, "words") == make_log_folder("", "words") == ours / "words"
    assert mode(ours) == mode(ours / "words") == 0o700
    assert make_log_folder(None) == ours


def test_one_that_is_named_is_the_folder_itself(tmp_path: Path, temporary: Path) -> None:
    assert make_log_folder(str(tmp_path / "logs"), "words") == tmp_path / "logs"
    assert list(temporary.iterdir()) == []


@_as_root
@pytest.mark.parametrize("whose", ["", "words"])
def test_a_default_one_that_somebody_else_made_first_is_refused(temporary: Path, whose: str) -> None:
    ours = temporary / f"stormspark-logs-{user_name()}"
    (ours / whose).mkdir(parents=True)
    os.chown(ours / whose, _NOBODY, _NOBODY)
    with pytest.raises(UnsupportedEnvironmentError, match="belongs to nobody"):
        make_log_folder(None, "words")


def test_a_default_one_that_is_a_link_is_refused(temporary: Path, tmp_path: Path) -> None:
    folder_of_mode(tmp_path / "precious", 0o755)
    (temporary / f"stormspark-logs-{user_name()}").symlink_to(tmp_path / "precious")
    with pytest.raises(UnsupportedEnvironmentError, match="is a link"):
        make_log_folder(None, "words")
    assert mode(tmp_path / "precious") == 0o755 and not list((tmp_path / "precious").iterdir())


# -- what is no private folder -------------------------------------------------------------------------------------


def test_a_link_is_refused_also_one_to_a_good_folder(tmp_path: Path) -> None:
    (tmp_path / "good").mkdir(mode=0o700)
    link = tmp_path / "logs"
    link.symlink_to(tmp_path / "good")
    refused(link, "is a link")


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("")
    refused(tmp_path / "logs", "is not a folder")


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


def test_a_hard_link_in_place_of_a_file_is_neither_written_to_nor_cut(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "precious").chmod(0o644)
    os.link(tmp_path / "precious", tmp_path / "task.log")
    for flags in (os.O_WRONLY | os.O_CREAT | os.O_APPEND, os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
        with pytest.raises(UnsupportedEnvironmentError, match=r"task\.log has another name"):
            open_private(tmp_path / "task.log", flags)
    assert (tmp_path / "precious").read_text() == "precious" and mode(tmp_path / "precious") == 0o644


def test_a_file_of_ours_is_cut_where_that_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "task.log").write_text("before")
    with open(open_private(tmp_path / "task.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as file:
        file.write("now")
    assert (tmp_path / "task.log").read_text() == "now"


def test_what_others_can_write_to_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for before, fine in ((0o664, False), (0o646, False), (0o644, True)):
        (tmp_path / "file").chmod(before)
        if fine:
            os.close(open_private(tmp_path / "file", os.O_RDONLY))
        else:
            with pytest.raises(UnsupportedEnvironmentError, match=f"written to by others .mode {before:04o}"):
                open_private(tmp_path / "file", os.O_RDONLY)


def test_the_process_itself_reports_a_log_that_can_not_be_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What others have left in a folder for logs takes no worker down: `sys.stderr` may be that very log."""
    (tmp_path / "task.log").symlink_to(tmp_path / "elsewhere")
    own, handler = sys.stderr, PrivateLogFile(tmp_path / "task.log", delay=True, maxBytes=1000)
    monkeypatch.setattr(sys, "__stderr__", own)

    class Log:
        def write(self, text: str) -> None:
            raise AssertionError(f"{text} would be logged")

    monkeypatch.setattr(sys, "stderr", Log())
    handler.emit(logging.makeLogRecord({"msg": "a %s", "args": ("word",)}))
    monkeypatch.setattr(sys, "stderr", own)
    told = capsys.readouterr().err
    assert "task.log is a link" in told and "a word" in told and told.count("\n") == 1
    handler = PrivateLogFile(tmp_path / "other.log", delay=True)
    handler.emit(logging.makeLogRecord({"msg": "%d", "args": ("no number",)}))
    assert "no number" in capsys.readouterr().err, "what user code does wrong is told as ever"
    handler.close()


def test_a_pipe_or_a_device_in_place_of_a_file_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnsupportedEnvironmentError, match="is a link or a pipe"):
        open_private(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(UnsupportedEnvironmentError, match="is not a regular file"):
        open_private(tmp_path / "pipe")
    os.close(reader)
    with pytest.raises(UnsupportedEnvironmentError, match="is not a regular file"):
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
        match=f"nobody, but code that is read from there runs as {user_name()}",
    ):
        check_trusted(folder)


def test_the_name_of_a_user_is_not_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "somebody-else")
    monkeypatch.setenv("USER", "somebody-else")
    assert user_name() != "somebody-else"
    assert user_name(4_000_000_000) == "4000000000", "as in a container that has no entry for its user"


@pytest.mark.skipif(shutil.which("systemd-tmpfiles") is None, reason="this host has no systemd-tmpfiles")
def test_a_cleaner_of_temporary_folders_spares_what_is_held(tmp_path: Path) -> None:
    """A log that got no line for ten days would be removed, and later lines with it, although its topology runs."""
    for name in ("held", "free"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "count-0.log").write_text("a line")
        os.utime(tmp_path / name / "count-0.log", (0, 0))
    rules = tmp_path.with_suffix(".conf")
    rules.write_text(f"e {tmp_path} - - - 1s\n")
    held = [HeldFolder(tmp_path / "held") for _ in range(2)]

    def is_removed(name: str) -> bool:
        subprocess.run(["systemd-tmpfiles", "--clean", str(rules)], check=False)
        return not (tmp_path / name / "count-0.log").exists()

    wait_for(lambda: is_removed("free"))
    assert (tmp_path / "held" / "count-0.log").exists()
    for one in held:
        one.close()
    wait_for(lambda: is_removed("held"))
