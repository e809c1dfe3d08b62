"""Prepares the console on which commands print their tables."""

from __future__ import annotations

from rich.console import Console

__all__ = ["wide_enough"]


def wide_enough(console: Console, least: int = 200) -> Console:
    """Give a console that writes to a file or pipe, which has no width, at least this width, so that it shows all columns."""
    if not console.is_terminal:
        console.width = max(console.width, least)
    return console
