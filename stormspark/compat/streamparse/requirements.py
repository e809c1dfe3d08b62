"""Finds the file in a project's ``virtualenvs`` that requires a missing module. stormspark makes no virtualenvs (W12)."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["how_to_install"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
#: Packages that stormspark itself provides.
_OURS = {"streamparse", "pystorm"}


def how_to_install(module: str, folder: Path, topology: str) -> str:
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
                return f"{file} requires {line}: run `pip install -r {file}` where stormspark runs, which makes no virtualenv"
    others = [line for line in wanted.get(own, []) if _normal(line) not in _OURS]
    if others:
        return f"no file in {folder} requires it; {own} requires {', '.join(others)} (pip install -r {own})"
    return (
        f"no file in {folder} requires it: install it where stormspark runs, unless it is the project's own: "
        "then it must be in the project's src"
    )


def _requirements(file: Path) -> list[str]:
    """Return the lines of a requirements file that name a package, with their versions and markers, but without comments."""
    lines = (line.partition("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if _NAME.match(line)]


def _normal(requirement: str) -> str:
    """Return a package's name in the form in which pip compares names.

    >>> _normal("My.Package==1.2"), _normal("redis>=2 ; python_version > '3'")
    ('my-package', 'redis')
    """
    name = _NAME.match(requirement)
    return re.sub(r"[-_.]+", "-", name[0]).lower() if name else ""
