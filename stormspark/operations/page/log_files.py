"""Reads the log files of a topology for its page: which there are, a piece of one, and lines with a text.

Only plain files that lie directly in the topology's own log folder are read, by names that the folder itself has listed. Links
are not followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stormspark.private_files import check_private

__all__ = ["UnknownLogError", "files", "matches", "piece"]

#: The most that one answer holds, in bytes.
_MOST_BYTES = 256 * 1024
#: How much of the end of each file is searched, in bytes, and how many lines are found at most.
_SEARCHED_BYTES = 8 * 1024 * 1024
_MOST_FOUND = 500
_LONGEST_LINE = 2000
_ENDINGS = (".log", ".out", ".err")


class UnknownLogError(Exception):
    """There is no log file of that name in the folder."""


def files(folder: str | None) -> list[dict[str, Any]]:
    """Return the log files in a folder, with their sizes in bytes and when they were written, in seconds since 1970.

    None has none, and so has a folder that is gone. Raises `UnsupportedEnvironmentError` if others can change the folder.
    """
    return [
        {"name": name, "bytes": status.st_size, "written": round(status.st_mtime, 1)}
        for name, status in sorted(_listed(folder))
    ]


def _listed(folder: str | None) -> Iterator[tuple[str, os.stat_result]]:
    if folder is None:
        return
    try:
        check_private(folder)
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for entry in entries:
        is_log = any(f"{ending}." in f"{entry.name}." for ending in _ENDINGS)
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            continue  # rotated away meanwhile
        if is_log and stat.S_ISREG(status.st_mode):
            yield entry.name, status


def _open(folder: str | None, name: str) -> int:
    if folder is None or name not in {one for one, _ in _listed(folder)}:
        msg = f"the log folder of this topology has no file {name!r}"
        raise UnknownLogError(msg)
    try:
        opened = os.open(Path(folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        msg = f"the log file {name!r} can't be read: {error.strerror}"
        raise UnknownLogError(msg) from error
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        msg = f"{name!r} is no log file"
        raise UnknownLogError(msg)
    return opened


def piece(folder: str | None, name: str, begin: int | None, file: int | None = None) -> dict[str, Any]:
    """Return a piece of a file: from a position on, or its end if ``begin`` is None.

    ``file`` is the number of the file that was read before. If another one has its name since, because it was rotated, the piece
    begins at the new one's start. Raises `UnknownLogError`.
    """
    opened = _open(folder, name)
    try:
        status = os.fstat(opened)
        size = status.st_size
        if begin is None or begin < 0:
            begin = max(0, size - _MOST_BYTES)
            cut = begin > 0
        else:
            cut = False
            if begin > size or (file is not None and file != status.st_ino):
                begin = 0
        data = os.pread(opened, _MOST_BYTES, begin)
    finally:
        os.close(opened)
    if cut and (line := data.find(b"\n")) >= 0:
        begin, data = begin + line + 1, data[line + 1 :]
    if begin + len(data) < size and (line := data.rfind(b"\n")) >= 0:
        data = data[: line + 1]  # no letter of several bytes is cut in two
    return {
        "name": name,
        "file": status.st_ino,
        "begin": begin,
        "end": begin + len(data),
        "bytes": size,
        "text": data.decode("utf-8", "replace"),
    }


def matches(folder: str | None, text: str, name: str | None = None) -> dict[str, Any]:
    """Return the lines that contain a text, whatever the case of its letters: in one file, or in all.

    Each comes with its file and the position of its start. Raises `UnknownLogError`.
    """
    names = [name] if name is not None else [one["name"] for one in files(folder)]
    wanted = text.casefold()
    found: list[dict[str, Any]] = []
    for one in names if wanted else []:
        try:
            opened = _open(folder, one)
        except UnknownLogError:
            if name is not None:
                raise
            continue
        with os.fdopen(opened, "rb") as file:
            position = max(0, os.fstat(file.fileno()).st_size - _SEARCHED_BYTES)
            file.seek(position)
            left = _SEARCHED_BYTES
            while left > 0 and (line := file.readline(left)):
                left -= len(line)
                letters = line.decode("utf-8", "replace").rstrip("\n")
                if wanted in letters.casefold():
                    found.append({"name": one, "begin": position, "line": letters[:_LONGEST_LINE]})
                    if len(found) >= _MOST_FOUND:
                        return {"lines": found, "more": True}
                position += len(line)
    return {"lines": found, "more": False}
