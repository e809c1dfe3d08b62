"""Measured tables in documents: each between two marks, so that the command that measures also writes it."""

from __future__ import annotations

from pathlib import Path

__all__ = ["write_between"]


def write_between(document: Path, begin: str, end: str, table: str) -> None:
    """Put ``table`` between the marks of the document; raises ValueError where it has no such marks."""
    before, rest = document.read_text().split(begin, 1)
    _, after = rest.split(end, 1)
    document.write_text(f"{before}{begin}\n{table}{end}{after}")
