"""Finds the topologies in a folder, for somebody who has named the folder in place of a file."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from stormspark.compat.detection import legacy_kind

__all__ = ["SKIPPED_FOLDERS", "topology_files"]

#: Folders in which nobody keeps topologies.
SKIPPED_FOLDERS: Final = {
    "node_modules",
    "target",
    "build",
    "dist",
    "site-packages",
    "__pycache__",
    "_build",
    "_resources",
}
#: How many folders below the named one are searched, how many files are looked at, and how many are named.
_DEEPEST, _MOST_FILES, _MOST_NAMED = 5, 500, 8
_BUILDS: Final = re.compile(
    r"\bTopologyBuilder\b|^class \w+\(.*\bTopology\b.*\):|^def create\(builder\b", re.MULTILINE
)
_FLUX: Final = re.compile(r"^(?:spouts|bolts|includes|topologySource)\s*:", re.MULTILINE)
_CLOJURE: Final = re.compile(r"streamparse\.specs|storm\.clojure|(?:shell|python)-(?:bolt|spout)-spec")
_MARKS: Final = {
    ".yaml": _FLUX,
    ".yml": _FLUX,
    ".flux": _FLUX,
    ".clj": _CLOJURE,
    ".py": _BUILDS,
}


def topology_files(folder: Path) -> list[Path]:
    """Return files below a folder that look as if they had a topology, those of Flux first. Nothing is imported."""
    found: list[Path] = []
    looked_at = 0
    for name, folders, files in os.walk(folder):
        deep = len(Path(name).relative_to(folder).parts)
        folders[:] = (
            sorted(one for one in folders if one not in SKIPPED_FOLDERS and not one.startswith("."))
            if deep < _DEEPEST
            else []
        )
        for file in (Path(name, one) for one in sorted(files)):
            mark = _MARKS.get(file.suffix)
            if mark is None or looked_at >= _MOST_FILES:
                continue
            looked_at += 1
            if mark.search(_text(file)) and (file.suffix != ".py" or _is_topology(file)):
                found.append(file)
    found.sort(key=lambda file: (_order(file), len(file.parts)))
    return found[:_MOST_NAMED]


def _order(file: Path) -> int:
    """Return the place of a file's kind in the list: files of Flux, then those in Clojure, then those in Python."""
    return 0 if _MARKS[file.suffix] is _FLUX else 1 if file.suffix == ".clj" else 2


def _is_topology(file: Path) -> bool:
    """Return whether a file in Python makes a topology, by stormspark's own builder or by that of a library."""
    return legacy_kind(file) is not None or "stormspark" in _text(file)


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""
