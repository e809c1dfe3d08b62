"""Texts of users and their data, as a terminal may print them."""

from __future__ import annotations

import unicodedata

__all__ = ["printable"]


def printable(text: str) -> str:
    r"""Return a text in which letters that would do something to a terminal, or that no file can hold, are written as escapes.

    A tuple's values get into errors, and they may hold a sequence that colours or clears the terminal, or half of an emoji.

    >>> printable("a \x1b[31mred\x1b[0m \ud83d word")
    'a \\x1b[31mred\\x1b[0m \\ud83d word'
    """
    if text.isprintable():
        return text
    return "".join(one if _is_harmless(one) else one.encode("unicode_escape").decode() for one in text)


def _is_harmless(letter: str) -> bool:
    # Of the invisible letters, those that join emojis and letters of some languages belong to the text.
    return letter in "\n\t\u200c\u200d" or unicodedata.category(letter) not in ("Cc", "Cf", "Cs")
