"""Detects which library a topology's file was written for."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Literal

__all__ = ["legacy_kind"]

_KINDS: dict[str, Literal["streamparse", "heronpy"]] = {
    "streamparse": "streamparse",
    "pystorm": "streamparse",
    "heronpy": "heronpy",
    "heron": "heronpy",
    "pyheron": "heronpy",
}


def legacy_kind(file: Path) -> Literal["streamparse", "heronpy"] | None:
    """Return the library that the file imports anywhere in its code. None if it imports neither, or can't be read as Python."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None  # whoever imports the file next gets the error
    for node in ast.walk(tree):
        names = (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
        for name in names:
            if (kind := _KINDS.get(name.partition(".")[0])) is not None:
                return kind
    return None
