"""Reading what another process is writing."""

from __future__ import annotations

from pathlib import Path

__all__ = ["whole_lines"]


def whole_lines(path: Path) -> list[str]:
    """The lines that a file has, without one that is only half there.

    Who reads while somebody appends sees what lies in the pages that are filled already: of a line over the end of a page,
    now and then, its beginning.
    """
    text = path.read_bytes()
    return text[: text.rfind(b"\n") + 1].decode().splitlines()
