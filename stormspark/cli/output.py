"""Where the commands print their tables."""

from __future__ import annotations

from rich.console import Console

__all__ = ["wide_enough"]


def wide_enough(console: Console, least: int = 200) -> Console:
    """A file or a pipe has no width: there it gets at least that, so that all columns are shown."""
    if not console.is_terminal:
        console.width = max(console.width, least)
    return console
