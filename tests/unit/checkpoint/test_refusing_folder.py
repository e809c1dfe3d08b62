"""Folders on a mounted object store, which refuse renames, links, locks or appends: what works there, and what is told."""

from __future__ import annotations

import pytest

from tests.refusing_folder import EVERYTHING, build, run_in

pytestmark = pytest.mark.slow

CHECK = """
    import sys
    from pathlib import Path
    from stormspark.checkpoint.control import LocalControlFile, usable
    from stormspark.errors import StormsparkError
    file = LocalControlFile(Path(sys.argv[1], "flow"))
    try:
        with usable(file):
            file.try_out()
            file.write(b"1")
            file.write(b"2")
        print(file.read(), sorted(one.name for one in Path(sys.argv[1], "flow", "stormspark").iterdir()))
    except StormsparkError as error:
        print(error)
"""
LOGS = """
    import sys
    from pathlib import Path
    from stormspark.errors import StormsparkError
    from stormspark.private_files import claim_logs, drivers_log_folder
    folder = Path(sys.argv[1], "logs")
    try:
        print(drivers_log_folder(str(folder), "flow") == folder, claim_logs(str(folder), "flow") is not None)
    except StormsparkError as error:
        print(error)
    print(sorted(one.name for one in folder.iterdir() if one.name.startswith(".tried")))
"""
WHOLE = """
    import sys
    from pathlib import Path
    from stormspark.checkpoint.exclusive_files import write_whole
    path = Path(sys.argv[1], "1.json")
    write_whole(path, b"first", replace=False)
    try:
        write_whole(path, b"second", replace=False)
    except FileExistsError:
        print(path.read_text())
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    found = build(tmp_path_factory.mktemp("library"))
    if found is None:
        pytest.skip("needs Linux and a C compiler")
    return found


def test_the_folder_refuses(library, tmp_path):
    """Otherwise the other tests show nothing."""
    said = run_in(
        library,
        tmp_path,
        """
        import errno, fcntl, os, sys
        folder = sys.argv[1]
        for name in "ab":
            open(f"{folder}/{name}", "w").write("x")
        for act in (
            lambda: os.rename(f"{folder}/a", f"{folder}/c"),
            lambda: os.link(f"{folder}/a", f"{folder}/c"),
            lambda: open(f"{folder}/a", "a"),
            lambda: open(f"{folder}/a", "r+"),
            lambda: fcntl.flock(open(f"{folder}/a"), fcntl.LOCK_EX),
            lambda: fcntl.lockf(open(f"{folder}/new", "w"), fcntl.LOCK_EX),
            lambda: open(f"{folder}/b", "w").write("y"),
        ):
            try:
                act()
                print("done", end=" ")
            except OSError as error:
                print(errno.errorcode[error.errno], end=" ")
        """,
    )
    assert said == " ".join(["ENOTSUP"] * 4 + ["ENOLCK"] * 2 + ["done"])


@pytest.mark.parametrize("refuses", [EVERYTHING, "rename", "replace"])
def test_a_checkpoint_where_files_are_not_replaced_is_refused_at_the_start(library, tmp_path, refuses):
    said = run_in(library, tmp_path, CHECK, refuses)
    assert (
        "Its file system does not replace files, as mounts of object stores do not: give the URL of that place"
        in said
    )
    assert not list((tmp_path / "flow" / "stormspark").iterdir()), "nothing is left"


def test_a_checkpoint_needs_neither_links_nor_locks_nor_appends(library, tmp_path):
    assert run_in(library, tmp_path, CHECK, "link,lock,append,random") == "b'2' ['control.json']"


def test_a_file_is_written_once_without_links(library, tmp_path):
    assert run_in(library, tmp_path, WHOLE, "link,replace,lock,append,random") == "first"


@pytest.mark.parametrize(
    ("refuses", "words"),
    [
        ("append", "the folder for logs can't be used: [Errno 95] Operation not supported"),
        ("rename,link,lock,random", "True True"),
    ],
)
def test_a_folder_for_logs_has_to_take_appends(library, tmp_path, refuses, words):
    said, left = run_in(library, tmp_path, LOGS, refuses).splitlines()
    assert words in said and left == "[]"
