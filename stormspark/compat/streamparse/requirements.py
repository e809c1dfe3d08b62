"""Finds the file in a project's ``virtualenvs`` that requires a missing module: no virtualenv is made here (W12)."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["who_asks_for"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
#: Packages that stormspark itself provides.
_OURS = {"streamparse", "pystorm"}


def who_asks_for(module: str, folder: Path, topology: str) -> str:
    """Return a sentence on how to install ``module``, based on the files in ``folder``.

    ``topology`` is the name of the topology's file.
    """
    own = folder / f"{topology}.txt"
    files = sorted(folder.glob("*.txt"), key=lambda file: (file != own, file))
    wanted = {file: _requirements(file) for file in files}
    package = _normal(module.partition(".")[0])
    for file, lines in wanted.items():
        for line in lines:
            if _normal(line) == package:
                return f"{file} asks for {line}: install it where stormspark runs, no virtualenv is made (pip install -r {file})"
    others = [line for line in wanted.get(own, []) if _normal(line) not in _OURS]
    if others:
        return f"no file in {folder} names it; {own} asks for {', '.join(others)} (pip install -r {own})"
    return f"no file in {folder} asks for it; is it in the project's src, or in its neighbour's?"


def _requirements(file: Path) -> list[str]:
    """Return the packages that a requirements file names, as it writes them."""
    lines = (line.partition("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if _NAME.match(line)]


def _normal(requirement: str) -> str:
    """Return the name of a package as pip compares it.

    >>> _normal("My.Package==1.2"), _normal("redis>=2 ; python_version > '3'")
    ('my-package', 'redis')
    """
    name = _NAME.match(requirement)
    return re.sub(r"[-_.]+", "-", name[0]).lower() if name else ""
