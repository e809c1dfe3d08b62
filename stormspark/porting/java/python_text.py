"""Writes names and values as Python source code."""

from __future__ import annotations

import keyword
import re
from typing import Any

from stormspark.porting.findings import Place

__all__ = ["class_name", "in_docstring", "one_line", "python_name", "quoted", "short", "shown"]


def python_name(name: str) -> str:
    """Convert a Java name to the name of a Python variable or module.

    >>> python_name("windowLengthInSeconds"), python_name("RollingTopWords"), python_name("from"), python_name("a-b")
    ('window_length_in_seconds', 'rolling_top_words', 'from_', 'a_b')
    """
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    snake = re.sub(r"\W", "_", snake)
    if not snake or snake[0].isdigit():
        snake = f"_{snake}"
    return f"{snake}_" if keyword.iskeyword(snake) else snake


def short(place: Place) -> str:
    """Return the place without the folders of its file. The whole path is in the docstring of the skeleton's class."""
    return f"{place.file.rpartition('/')[2]}:{place.line}"


def quoted(value: str) -> str:
    """Return the string as a Python literal. It has the quotes that a formatter would choose."""
    shown = repr(value)
    return f'"{shown[1:-1]}"' if shown[0] == "'" and '"' not in value else shown


def shown(value: Any) -> str:
    """Return a plain value as a Python literal."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{shown(key)}: {shown(one)}" for key, one in value.items()) + "}"
    return repr(value)


def one_line(text: str) -> str:
    """Return the text without line breaks."""
    return " ".join(text.split())


def in_docstring(text: str) -> str:
    """Return the text in one line, without characters that could end a docstring."""
    return one_line(text).replace("\\", "/").replace('"', "'")


def class_name(name: str, otherwise: str) -> str:
    """Return a valid name for a Python class. If ``name`` alone is not valid, ``otherwise`` comes before it or replaces it.

    >>> class_name("my-bolt", "Component"), class_name("3rd", "Component")
    ('MyBolt', 'Component3rd')
    """
    words = re.sub(r"\W+", " ", name).split()
    joined = "".join(word[:1].upper() + word[1:] for word in words)
    if not joined or joined[0].isdigit():
        joined = otherwise + joined
    return joined if joined.isidentifier() and not keyword.iskeyword(joined) else otherwise
