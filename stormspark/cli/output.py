"""Prepares the console on which commands print their tables."""

from __future__ import annotations

from rich.console import Console

__all__ = ["wide_enough"]


def wide_enough(console: Console, least: int = 200) -> Console:
    """Make a console at least ``least`` characters wide if it writes to a file or pipe, so that it shows all columns."""
    if not console.is_terminal:
        console.width = max(console.width, least)
    return console
