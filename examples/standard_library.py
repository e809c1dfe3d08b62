"""Reads a real text that every machine with Python has: the source of Python's own standard library."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from itertools import count
from pathlib import Path

#: Folders of installed packages. They are inside of the library's folder, but are not part of the library.
_LEFT_OUT = {"site-packages", "dist-packages"}


def source_files(folder: str | Path | None = None) -> list[Path]:
    """Return all Python files of the standard library, or of another folder, always in the same order."""
    folder = Path(folder or sysconfig.get_paths()["stdlib"])
    return sorted(
        file for file in folder.rglob("*.py") if not _LEFT_OUT.intersection(file.relative_to(folder).parts)
    )


def lines(share: int = 0, of: int = 1, folder: str | Path | None = None) -> Iterator[tuple[int, str]]:
    """Yield lines that are not blank, with their numbers. If ``of`` readers share the text, each takes every ``of``-th line.

    >>> first, second = (next(lines(share, of=2)) for share in (0, 1))
    >>> first[0], second[0]
    (0, 1)
    """
    numbers = count()
    for file in source_files(folder):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.strip():
                number = next(numbers)
                if number % of == share:
                    yield number, line
