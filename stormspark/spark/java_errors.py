"""Errors of Spark's JVM in words: the cause, without the stack of Java's calls."""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError

__all__ = ["in_words"]

_CAUSE = re.compile(r"^\s*(?:: |Caused by: )(?P<cause>.+)$", re.MULTILINE)


def in_words(error: BaseException) -> str:
    r"""Return the error of Java that is at the bottom of ``error``, or else the first line of ``error``.

    >>> in_words(ValueError("no number\nat line 7"))
    'ValueError: no number'
    """
    try:
        text = str(error)
    except Exception:  # py4j asks the JVM for the text, and the JVM may be gone
        return f"{type(error).__name__} (Spark's JVM does not answer any more)"
    if isinstance(error, Py4JJavaError):
        return cause_in(text) or type(error).__name__
    lines = text.strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def cause_in(text: str) -> str:
    r"""Return the last cause that a stack of Java names; an empty string if the text has none.

    >>> cause_in("An error occurred while calling o7.load.\n: java.lang.A: first\n\tat x.Y\nCaused by: java.io.B: last\n\tat z")
    'java.io.B: last'
    """
    causes = _CAUSE.findall(text)
    return str(causes[-1]).strip() if causes else ""
