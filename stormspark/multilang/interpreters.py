"""Prepares the command of a child: its interpreter, Storm's library for its language, and Python 2 in its script (I3, I12)."""

from __future__ import annotations

import ast
import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path

from stormspark.multilang.scripts import Script
from stormspark.user_code import parsed, syntax_tree

__all__ = [
    "as_run",
    "libraries",
    "missing_program",
    "not_a_program",
    "old_library",
    "python_2",
    "runnable",
    "with_library",
    "with_own_library",
]

_CHECK_SECS = 20
_LONGEST_FIRST_LINE = 256
#: Files with these suffixes are scripts, and no compiled programs.
_SUFFIXES = frozenset({".py", ".js", ".rb", ".sh", ".pl", ".php", ".lua", ".R"})
_PYTHON = re.compile(r"(python|pypy)[\d.]*")
_PYTHON_2 = re.compile(r"python2[\d.]*")
_DRAFTS = "`stormspark port PROJECT --out DIR` drafts it"
#: What to do if a program is missing, by the beginning of its name.
_ADVICE = {
    "python2": f"Python 2 has ended: port the script ({_DRAFTS}), and write python3 in the command",
    "python": "install it, or write python3 in the command",
    "node": "install Node.js (apt-get install nodejs, or brew install node) on every host of the topology",
    "ruby": "install Ruby (apt-get install ruby, or brew install ruby) on every host of the topology",
    "php": "install PHP (apt-get install php-cli, or brew install php) on every host of the topology",
    "perl": "install Perl on every host of the topology",
    "streamparse_run": "its project is one of streamparse: run its topology file in Python, and not this file",
}
#: What Python 3 says about the syntax of Python 2.
_OF_PYTHON_2 = re.compile(
    r"Missing parentheses in call to '(print|exec)'|multiple exception types must be parenthesized|"
    r"leading zeros in decimal integer|invalid decimal literal|inconsistent use of tabs"
)
_LINES_OF_PYTHON_2 = re.compile(
    r"^\s*(print\s+[^\s=(]|print\s*>>|exec\s+[\"'\w]|raise\s+\w+\s*,|except\s+[\w.]+\s*,\s*\w+\s*:)|<>|`[^`]+`|\b0[0-7]+\b|\b\d+[lL]\b"
)
#: Storm's own library for Python 2: in Python 3, ``map`` is no list, and JSON has no form for it.
_ANCHORS_OF_PYTHON_2 = re.compile(r"\[[\"']anchors[\"']\]\s*=\s*map\(")
#: What Storm's own ``storm.py`` defines, in all of its versions.
_OF_STORM = ("def readTaskIds(", "def emitBolt(", "class BasicBolt(")
#: By language: how a script uses Storm's library, and the file of the library.
_USES_STORM = {
    "python": (re.compile(r"^\s*(import\s+storm\b(?!\.)|from\s+storm\s+import\b)", re.MULTILINE), "storm.py"),
    "node": (re.compile(r"""(require\(|from\s+)\s*["'](\.{1,2}/)*storm(\.js)?["']"""), "storm.js"),
    "ruby": (
        re.compile(r"""^\s*require(_relative)?[\s(]+["'](\./)?storm(\.rb)?["']""", re.MULTILINE),
        "storm.rb",
    ),
}


@cache
def libraries() -> Path:
    """Return the folder with Storm's libraries. If stormspark was imported from a zip file, they are unpacked."""
    folder = resources.files("stormspark.multilang").joinpath("libraries")
    if isinstance(folder, Path):
        return folder
    unpacked = Path(tempfile.mkdtemp(prefix="stormspark-libraries-"))
    atexit.register(shutil.rmtree, unpacked, ignore_errors=True)
    for file in folder.iterdir():
        if file.is_file():
            (unpacked / file.name).write_bytes(file.read_bytes())
    return unpacked


def runnable(command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return the command with this Python in place of ``python``, if the host has no ``python``."""
    program = command[0]
    if program == "python" and shutil.which(program, path=environment.get("PATH")) is None:
        return [sys.executable, *command[1:]]
    return list(command)


def missing_program(command: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """Return what is missing and what to do, if the host does not have the command's program; otherwise None."""
    program = command[0]
    if "/" in program or shutil.which(program, path=environment.get("PATH")) is not None:
        return None
    advice = next((what for start, what in _ADVICE.items() if program.startswith(start)), None)
    return f"there is no program {program!r} on this host: {advice or 'install it, or correct the command'}"


def not_a_program(script: Script, file: Path, environment: Mapping[str, str]) -> str | None:
    """Return why the host can't run ``file`` as a program, and what to do; None if it can, or if an interpreter is to run it."""
    if script.interpreter:
        return None
    if not os.access(file, os.X_OK):
        return f"{file} is not executable: chmod +x it, or write its interpreter before it in the command"
    first = _first_line(file)
    if not first.startswith(b"#!"):
        if file.suffix not in _SUFFIXES or not first:
            return None  # a compiled program
        return f"{file} does not begin with #! and its interpreter: write the interpreter before it in the command"
    shown = first.strip().decode(errors="replace")
    interpreter = _in_first_line(first)
    if interpreter is None or shutil.which(interpreter, path=environment.get("PATH")) is None:
        return f"{file} begins with {shown!r}, and this host does not have that program"
    if first.endswith(b"\r\n"):
        return f"{file} has line ends of Windows, which the first line may not have: convert it (dos2unix)"
    return None


def as_run(command: Sequence[str], script: Script, file: Path) -> tuple[list[str], Script]:
    """Return the command and the script with the interpreter that the first line of ``file`` names, if the script is the program.

    So ``./split.py`` is looked at like ``python3 split.py``.
    """
    interpreter = None if script.interpreter else _in_first_line(_first_line(file))
    if interpreter is None:
        return list(command), script
    return [interpreter, *command], Script(interpreter.rpartition("/")[2], script.name)


def _first_line(file: Path) -> bytes:
    try:
        with open(file, "rb") as opened:
            return opened.readline(_LONGEST_FIRST_LINE)
    except OSError:  # a program need not be readable
        return b""


def _in_first_line(first: bytes) -> str | None:
    r"""Return the interpreter that a first line names.

    >>> _in_first_line(b"#!/usr/bin/env -S python3 -u\n"), _in_first_line(b"#! /bin/sh -e\n"), _in_first_line(b"import storm")
    ('python3', '/bin/sh', None)
    """
    if not first.startswith(b"#!"):
        return None
    words = first[2:].decode(errors="replace").split()
    if words and words[0].rpartition("/")[2] == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[0] if words else None


def python_2(command: Sequence[str], script: Script, file: Path) -> str | None:
    """Return where ``file``, or a module beside it that it imports, has the syntax of Python 2; None if it is fine.

    A script that Python 2 is to run is not checked. If this Python can't compile the script, the command's own interpreter is
    asked, because it may be another version of Python.
    """
    if _PYTHON.fullmatch(script.interpreter) is None or _PYTHON_2.fullmatch(script.interpreter):
        return None
    old = old_library(command, script, file)
    for one in _with_imports(file):
        if old is not None and one.name == "storm.py":
            continue  # another one takes its place
        problem = _problem(one)
        if problem is not None and not _compiles(command[: command.index(script.name)], one):
            return (
                f"{problem}. {script.interpreter!r} on this host is Python 3, so port the script: {_DRAFTS}"
            )
    return None


def old_library(command: Sequence[str], script: Script, file: Path) -> str | None:
    """Return the line at which Storm's library beside ``file`` is for Python 2, if the script uses it and Python 3 runs it.

    Many projects have such an old ``storm.py``, though their own scripts run on both. stormspark's takes its place.
    """
    library = file.parent / "storm.py"
    if _PYTHON.fullmatch(script.interpreter) is None or _PYTHON_2.fullmatch(script.interpreter):
        return None
    if not library.is_file() or not all(name in _text(library) for name in _OF_STORM):
        return None
    problem = _problem(library)
    return None if problem is None or _compiles(command[: command.index(script.name)], library) else problem


def with_own_library(command: Sequence[str], script: Script) -> list[str]:
    """Return the command that runs the script with stormspark's ``storm.py`` in place of the one beside the script."""
    at = command.index(script.name)
    return [*command[:at], str(libraries() / "with_storm.py"), *command[at:]]


def with_library(script: Script, file: Path, environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the environment in which a script finds Storm's library, if the project does not have that library itself (K20)."""
    result = dict(environment)
    language = next((name for name in _USES_STORM if script.interpreter.startswith(name)), None)
    if language is None:
        return result
    uses, library = _USES_STORM[language]
    # Ruby takes "./storm" from the folder in which the child starts.
    beside = [file.parent, folder] if language == "ruby" else [file.parent]
    if any((one / library).is_file() for one in beside) or not uses.search(_text(file)):
        return result
    own = str(libraries())
    if language == "python":
        result["PYTHONPATH"] = _joined(environment.get("PYTHONPATH"), own)
    elif language == "ruby":
        result["RUBYLIB"] = _joined(environment.get("RUBYLIB"), own)
        result["RUBYOPT"] = f"{environment.get('RUBYOPT', '')} -rfor_ruby".strip()
    else:
        hook = str(Path(own, "for_node.js")).replace("\\", "\\\\").replace('"', '\\"')
        result["NODE_OPTIONS"] = f'{environment.get("NODE_OPTIONS", "")} --require "{hook}"'.strip()
    return result


def _joined(path: str | None, folder: str) -> str:
    return f"{path}{os.pathsep}{folder}" if path else folder


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _with_imports(file: Path) -> Iterator[Path]:
    """Yield the file, and the modules in its folder that it imports, and that these import."""
    waiting, seen = [file], {file}
    while waiting:
        one = waiting.pop(0)
        yield one
        try:
            tree = syntax_tree(one.read_bytes())
        except (SyntaxError, ValueError, OSError):
            continue
        names = [
            alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
        ]
        names += [
            node.module or ""
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and not node.level
        ]
        for name in names:
            module = file.parent / f"{name.replace('.', '/')}.py"
            if name and module not in seen and module.is_file():
                seen.add(module)
                waiting.append(module)


def _problem(file: Path) -> str | None:
    """Return the line of the file at which Python 3 does not understand it, and why; None if it does."""
    try:
        source = file.read_bytes()
        compile(source, str(file), "exec", dont_inherit=True)
        parsed(source)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        message = getattr(error, "msg", None) or str(error)
        lines = _text(file).splitlines()
        shown = lines[line - 1].strip() if line and line <= len(lines) else ""
        of_2 = _OF_PYTHON_2.search(message) or _LINES_OF_PYTHON_2.search(shown)
        what = "this is Python 2" if of_2 else "this is not Python 3"
        return f"{file}:{line or 1}: {what}: {shown!r:.120} ({message})"
    except OSError:
        return None
    if found := _ANCHORS_OF_PYTHON_2.search(text := _text(file)):
        line = text.count("\n", 0, found.start()) + 1
        return f"{file}:{line}: this is Storm's library for Python 2: under Python 3 an emit of a bolt fails here"
    return None


def _compiles_here(file: Path) -> bool:
    try:
        compile(file.read_bytes(), str(file), "exec", dont_inherit=True)
    except (SyntaxError, ValueError, OSError):
        return False
    return True


def _compiles(program: Sequence[str], file: Path) -> bool:
    """Return whether the command's own interpreter compiles the file, and is Python 2 if this Python compiles the file, too."""
    check = (
        "import sys; source = open(sys.argv[1], 'rb').read(); compile(source, sys.argv[1], 'exec'); "
        "sys.exit(sys.version_info[0] > 2 and bool(sys.argv[2:]))"
    )
    # What compiles here and is for Python 2 all the same, no Python 3 runs.
    of_2 = ["for Python 2"] if _compiles_here(file) else []
    words = [word for word in program if not word.startswith("-")]
    try:
        done = subprocess.run(
            [*words, "-c", check, str(file), *of_2],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_CHECK_SECS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
