"""Finds the file in a project's ``virtualenvs`` that requires a missing module. stormspark makes no virtualenvs (W12)."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["OLDER_PYTHON", "how_to_install", "is_older_python"]

#: What to do about code for which `is_older_python` is true.
OLDER_PYTHON = (
    "this is written for an older Python, and stormspark runs Python 3: "
    "`stormspark port PROJECT --out DIR` drafts it in Python 3"
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
#: Packages that stormspark itself provides.
_OURS = {"streamparse", "pystorm"}
#: Modules of Python 2, with their names in Python 3.
_PYTHON_2 = {
    "BaseHTTPServer": "http.server",
    "ConfigParser": "configparser",
    "Cookie": "http.cookies",
    "HTMLParser": "html.parser",
    "Queue": "queue",
    "SocketServer": "socketserver",
    "StringIO": "io",
    "__builtin__": "builtins",
    "anydbm": "dbm",
    "cPickle": "pickle",
    "cStringIO": "io",
    "commands": "subprocess",
    "cookielib": "http.cookiejar",
    "httplib": "http.client",
    "thread": "_thread",
    "urllib2": "urllib.request",
    "urlparse": "urllib.parse",
    "xmlrpclib": "xmlrpc.client",
}
#: Code that is an error in today's Python 3, and was none in Python 2. ``async`` is a keyword since Python 3.7.
_STATEMENTS = re.compile(
    r"""^\s*(?:print\s+[^\s(=]|print\s*$|exec\s+["'\w]|raise\s+[\w.]+\s*,|except\s+[\w.()\s,]+,\s*\w+\s*:)|<>|`|\b0\d+L?\b|\b\d+L\b
    |\bur["']|\b(?:async|await)\s*=""",
    re.VERBOSE,
)


def how_to_install(module: str, folder: Path, topology: str) -> str:
    """Return a sentence on how to install ``module``, based on the files in ``folder``.

    ``topology`` is the name of the topology's file.
    """
    if module in _PYTHON_2:
        return f"{module} is a module of Python 2, and stormspark runs Python 3, which calls it {_PYTHON_2[module]}"
    own = folder / f"{topology}.txt"
    files = sorted(folder.glob("*.txt"), key=lambda file: (file != own, file))
    wanted = {file: _requirements(file) for file in files}
    package = _normal(module.partition(".")[0])
    for file, lines in wanted.items():
        for line in lines:
            if _normal(line) == package:
                return f"{file} requires {line}: run `pip install -r {file}` where stormspark runs, which makes no virtualenv"
    others = [line for line in wanted.get(own, []) if _normal(line) not in _OURS]
    if others:
        return f"no file in {folder} requires it; {own} requires {', '.join(others)} (pip install -r {own})"
    return f"no file in {folder} requires it; is it in the project's src, or in the src of another project?"


def is_older_python(error: SyntaxError) -> bool:
    """Return whether the reason for a syntax error is probably that the line was written for Python 2, or an early Python 3.

    >>> is_older_python(SyntaxError("invalid syntax", ("words.py", 3, 1, "except Empty, e:")))
    True
    """
    message = error.msg or ""
    if (
        isinstance(error, TabError)
        or "print" in message
        or "exec" in message
        or "multiple exception" in message
    ):
        return True
    return bool(_STATEMENTS.search(error.text or ""))


def _requirements(file: Path) -> list[str]:
    """Return the lines of a requirements file that name a package, with their versions and markers, but without comments."""
    lines = (line.partition("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if _NAME.match(line)]


def _normal(requirement: str) -> str:
    """Return a package's name in the form in which pip compares names.

    >>> _normal("My.Package==1.2"), _normal("redis>=2 ; python_version > '3'")
    ('my-package', 'redis')
    """
    name = _NAME.match(requirement)
    return re.sub(r"[-_.]+", "-", name[0]).lower() if name else ""
