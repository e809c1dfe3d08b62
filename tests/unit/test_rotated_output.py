"""What processes print is bounded on disk, and their last words are there."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from stormspark.private_files import make_private
from stormspark.rotated_output import RotatedOutput


def written(path: Path) -> int:
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_private(tmp_path / "logs") / "worker-0.out"


def test_a_file_is_cut_and_its_end_kept_by_number(path: Path) -> None:
    output = RotatedOutput(path, 100, 2)
    descriptor = output.open()
    assert not output.rotate()
    for number in range(5):
        os.write(descriptor, b"%d" % number * 120)
        assert output.rotate() and not output.rotate()
        assert path.stat().st_size == 0, "the writer goes on at the new end, without a hole"
    os.write(descriptor, b"end")
    os.close(descriptor)
    names = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    assert names == {"worker-0.out": b"end", "worker-0.out.1": b"4" * 100, "worker-0.out.2": b"3" * 100}
    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}


def test_without_backups_it_is_cut_only(path: Path) -> None:
    output = RotatedOutput(path, 10, 0)
    os.write(descriptor := output.open(), b"x" * 100)
    os.close(descriptor)
    assert output.rotate() and [file.name for file in path.parent.iterdir()] == [path.name]


def test_several_rotate_one_file_at_the_same_time(path: Path) -> None:
    """As drivers of one user do with one spark.log: each line is somewhere, once, but for what fell into a cut."""
    lines, outputs = 4000, [RotatedOutput(path, 20_000, 100) for _ in range(4)]
    descriptor = outputs[0].open()
    ends = threading.Event()

    def rotate(output: RotatedOutput) -> None:
        while not ends.wait(
            0.002
        ):  # what is written while the file is copied and cut is lost, so not all the time
            output.rotate()

    threads = [threading.Thread(target=rotate, args=(output,)) for output in outputs]
    for thread in threads:
        thread.start()
    for number in range(lines):
        os.write(descriptor, b"line %06d\n" % number)
        while os.fstat(descriptor).st_size > 25_000:  # of a file that has grown further only the end is kept
            time.sleep(0.001)
    ends.set()
    for thread in threads:
        thread.join()
    os.close(descriptor)
    found = [
        line for file in path.parent.iterdir() for line in file.read_bytes().split(b"\n") if len(line) == 11
    ]
    assert len(found) == len(set(found)) and len(found) > 0.5 * lines
    assert b"\0" not in path.read_bytes()


_FLOOD = """
import ctypes, os, sys
for number in range(3000):
    os.write(1, b"x" * 9_999 + b"\\n")       # past Python's own stdout, as a library in C does
    if number == 1500:
        sys.stdin.readline()
os.write(2, b"last words")
ctypes.string_at(0)
"""


@pytest.mark.slow
def test_a_flood_is_bounded_and_the_last_words_of_a_crash_are_kept(path: Path) -> None:
    """30 MB of a process that then dies of a signal, in a file of 1 MB with one backup."""
    output = RotatedOutput(path, 1_000_000, 1)
    descriptor = output.open()
    with subprocess.Popen(
        [sys.executable, "-c", _FLOOD], stdin=subprocess.PIPE, stdout=descriptor, stderr=descriptor
    ) as process:
        os.close(descriptor)
        thread = output.watch(lambda: process.poll() is None)
        assert process.stdin is not None
        process.stdin.write(b"go on\n")
        process.stdin.close()
    thread.join()
    output.rotate()
    assert process.returncode < 0
    assert written(path) <= 2_000_000
    assert b"last words" in b"".join(file.read_bytes() for file in path.parent.iterdir())


@pytest.mark.slow
def test_the_watch_ends_with_who_writes_and_minds_no_folder_that_is_gone(path: Path) -> None:
    output, alive = RotatedOutput(path, 10, 1), threading.Event()
    asked: list[bool] = []

    def one_look() -> bool:
        asked.append(alive.is_set())
        return len(asked) < 2

    output.watch(one_look).join()
    assert len(asked) == 2 and not path.exists()
