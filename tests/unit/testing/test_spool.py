"""J25: records between processes of one host."""

import pickle
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark.errors import UnsupportedEnvironmentError
from stormspark.testing.spool import Spool


def copy_of(spool: Spool) -> Spool:
    """What a task in another process works with."""
    copy: Spool = pickle.loads(pickle.dumps(spool))
    return copy


def test_only_this_user_can_enter_the_folder():
    """Only the user can enter a spool's folder and the folder above it (J25)."""
    folder = Path(Spool().folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700


@pytest.mark.slow
@given(st.lists(st.lists(st.integers() | st.text() | st.none())))
def test_every_reader_reads_every_record_once_and_each_writers_in_order(batches):
    """Every reader reads each record once, and the records of each writer in order (J25)."""
    spool = Spool()
    writers = [copy_of(spool) for _ in range(2)]
    read = []
    for number, batch in enumerate(batches):
        for record in batch:
            writers[number % 2].append((number % 2, record))
        read += spool.read()
    for which in (0, 1):
        written = [r for number, batch in enumerate(batches) if number % 2 == which for r in batch]
        assert [record for writer, record in read if writer == which] == written
    assert spool.read() == []
    assert sorted(map(repr, copy_of(spool).read())) == sorted(map(repr, read))


def test_a_record_that_is_half_written_waits_for_its_end():
    """A record that is half written is read once its end is there (J25)."""
    spool = Spool()
    writer = copy_of(spool)
    writer.append("first")
    assert spool.read() == ["first"]
    writer.append("second")
    (file,) = Path(spool.folder).iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    assert spool.read() == []
    file.write_bytes(whole)
    assert spool.read() == ["second"]


def test_threads_may_append_to_the_same_spool():
    """Several threads may append to one spool (J25)."""
    spool = Spool()

    def append_all() -> None:
        for number in range(200):
            spool.append(number)

    threads = [threading.Thread(target=append_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(spool.read()) == sorted(list(range(200)) * 4)


def test_a_folder_that_is_not_there_is_named_with_what_needs_it():
    """J25: on another host, or after the test's end."""
    spool = Spool("/nowhere/at-all")
    assert not spool.is_reachable
    with pytest.raises(
        UnsupportedEnvironmentError, match=r"the feeder: the folder /nowhere/at-all can't be reached"
    ):
        spool.check("the feeder")
    with pytest.raises(UnsupportedEnvironmentError, match="/nowhere/at-all"):
        spool.append(1)
    assert spool.read() == []


@pytest.mark.slow
def test_folders_are_removed_when_the_process_that_made_them_ends():
    """The folders of spools are removed when their process ends (J25)."""
    code = """
from stormspark.testing.spool import Spool
one, other = Spool(), Spool()
one.append(1)
print(one.folder, other.folder)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    one, other = map(Path, done.stdout.split())
    assert one.parent == other.parent
    assert not one.parent.exists()
