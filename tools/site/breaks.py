"""Long names in tables may be broken after a dot or an underscore. Else one of them makes its column as wide as the page."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["pieces", "setup"]

#: Names up to this length stay in one piece.
_SHORT = 20


def setup(app: Any) -> dict[str, bool]:
    """Have Sphinx show each page here before it is written."""
    app.connect("doctree-resolved", _allow_breaks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def pieces(text: str) -> list[str]:
    """Return the pieces between which a text may be broken, beside those at its spaces.

    >>> pieces("set topology.message.timeout.secs")
    ['set topology.', 'message.', 'timeout.', 'secs']
    >>> pieces("see config.py")
    ['see config.py']
    """
    broken = re.sub(rf"\S{{{_SHORT + 1},}}", lambda word: re.sub(r"(?<=\w[._/])(?=\w)", "\0", word[0]), text)
    return broken.split("\0")


def _allow_breaks(_app: Any, doctree: Any, _page: str) -> None:
    from docutils.nodes import Text, entry, raw

    for cell in doctree.findall(entry):
        for text in list(cell.findall(Text)):
            parts = pieces(text.astext())
            if len(parts) > 1:
                broken = [one for part in parts for one in (raw("", "<wbr>", format="html"), Text(part))]
                text.parent.replace(text, broken[1:])
