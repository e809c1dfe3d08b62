"""Errors of Spark's JVM in words: the cause, without the stack of Java's calls."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError, Py4JJavaError

__all__ = ["in_full", "in_one_line", "in_words", "without_frames"]

_TRACEBACK = "Traceback (most recent call last):"
_CAUSE = re.compile(r"^\s*(?:: |Caused by: )(?P<cause>.+)$", re.MULTILINE)
#: The traceback of Python code that Java has called ends with the error. A frame is indented, and the error is not.
_IN_PYTHON = re.compile(rf"{re.escape(_TRACEBACK)}\n(?:[ \t]+.*\n|\n)*(?P<error>\S.*)")
#: Spark's text about a query ends with the query's plan, which can be a hundred lines long. Before that, it has the traceback of
#: code that Java has called in the driver, such as a part of this package.
_IN_DRIVER = "An exception was raised by the Python Proxy. Return Message: "
_PYTHON_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
#: Spark writes such errors for its users: they say what is wrong, and the cause below them says less.
_FOR_USERS = re.compile(r"\[(?!STREAM_FAILED)[A-Z_]+(?:\.[A-Z_]+)*\] ")
_FRAME = re.compile(r"^\s+(?:at \S+\(.*\)|\.\.\. \d+ more)$\n?", re.MULTILINE)
#: The cause of "Cannot run program" has the system's error again, but not the program.
_ONLY_A_NUMBER = re.compile(r"^[\w.$]+: error=\d+, ")
#: Longer texts are cut.
_MOST_LETTERS = 4000


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


def in_full(error: BaseException) -> str:
    r"""Return the class and the whole text of an error, but of an error of Java only what is at its bottom. No text has frames of
    Java's stack.

    >>> in_full(ValueError("no number\n\tat x.Y(Z.java:7)\nat line 7\n"))
    'ValueError: no number\nat line 7'
    """
    if isinstance(error, Py4JError):
        return in_words(error)
    return without_frames(f"{type(error).__name__}: {error}")


def without_frames(text: str) -> str:
    """Return a text of Java without the frames of its stack. A long text is cut. If Python code of the driver raised the error,
    return the error and its line.
    """
    _, called, traceback = text.partition(_IN_DRIVER)
    raised = list(_IN_PYTHON.finditer(traceback)) if called else []
    if raised:
        frames = list(_PYTHON_FRAME.finditer(raised[-1][0]))
        place = f"at {frames[-1]['file']}:{frames[-1]['line']}, " if frames else ""
        return f"{raised[-1]['error'].strip()} ({place}in the driver)"
    text = _FRAME.sub("", text).strip()
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]} ..."


def in_one_line(text: str) -> str:
    r"""Return the first line of a text. If the text has a traceback of Python, the error at its end follows, unless the line
    has it.

    >>> in_one_line("batch 7: worker 0 could not start:\nTraceback (most recent call last):\n  File ...\nKeyError: 'a'")
    "batch 7: worker 0 could not start: KeyError: 'a'"
    """
    first = next(iter(text.splitlines()), "").removesuffix(_TRACEBACK)
    raised = list(_IN_PYTHON.finditer(text))
    error = raised[-1]["error"].strip() if raised else ""
    return first if error in first else f"{first.rstrip()} {error}"


def cause_in(text: str) -> str:
    r"""Return the last cause that a stack of Java names; an empty string if the text has none. If that is an error of Python code
    that Java has called, return the error without the traceback.

    >>> cause_in("An error occurred while calling o7.load.\n: java.lang.A: first\n\tat x.Y\nCaused by: java.io.B: last\n\tat z")
    'java.io.B: last'
    >>> cause_in(": java.lang.A: [NO_TABLE] There is no table t.\n\tat x.Y\nCaused by: java.io.B: last\n\tat z")
    'java.lang.A: [NO_TABLE] There is no table t. (caused by java.io.B: last)'
    >>> cause_in(': java.io.B: Cannot run program "./p": error=2, No file\n\tat x.Y\nCaused by: java.io.B: error=2, No file')
    'java.io.B: Cannot run program "./p": error=2, No file'
    >>> cause_in("Caused by: spark.E: \nError from python worker:\n  no such file\nPYTHONPATH was:\n  /a.zip\n\tat x.Y")
    'spark.E: Error from python worker: no such file'
    """
    causes = list(_CAUSE.finditer(text))
    if not causes:
        return ""
    if len(causes) > 1 and _ONLY_A_NUMBER.search(causes[-1]["cause"]):
        causes.pop()
    last = causes[-1]
    if _FOR_USERS.search(causes[0]["cause"]) and last is not causes[0]:
        return f"{causes[0]['cause'].strip()} (caused by {last['cause'].strip()})"
    in_python = _IN_PYTHON.search(text, last.start("cause"))
    return in_python["error"].strip() if in_python is not None else _with_what_follows(last, text)


def _with_what_follows(cause: re.Match[str], text: str) -> str:
    """Return a cause with the lines below it as long as what there is ends with a colon, because then it says nothing yet."""
    told = cause["cause"].strip()
    for line in text[cause.end() :].splitlines():
        if not told.endswith(":") or _FRAME.match(line):
            break
        told = f"{told} {line.strip()}".strip()
    return told
