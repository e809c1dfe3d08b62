"""Imports users' files, calls functions in them, and finds the line that raised an error.

A file is imported under its own name. Its folder comes first on the module path. So the file can import the modules beside it, as
with ``python FILE``. Pickles name a component's class, such as ``word_count.Split``, and a worker process imports the file in the
same way. The folder is also added to ``PYTHONPATH``, which the processes of a local Spark inherit.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from stormspark.errors import StormsparkError, TopologyNotFoundError

__all__ = ["add_line", "call", "import_file", "put_first", "raised"]


def import_file(file: Path, project: Path | None = None, *, is_on_path: bool = False) -> ModuleType:
    """Import the module in ``file``. Errors point to a line in ``project``, which is the file's folder by default.

    ``is_on_path`` says that the caller has put the file's folder on the module path already.

    Raises `TopologyNotFoundError`, whose message has the error and the line that raised it. An error of this package is not
    changed, but gets that line as a note.
    """
    if not file.is_file():
        problem = "is a folder; name a file in it" if file.is_dir() else "does not exist"
        msg = f"{file} {problem}"
        raise TopologyNotFoundError(msg)
    path = file.resolve()
    name = path.stem
    if path.suffix != ".py" or not name.isidentifier():
        msg = (
            f"{file} can't be imported, here or by a worker: rename it, for example to {_importable(name)}.py"
        )
        raise TopologyNotFoundError(msg)
    if not is_on_path:
        put_first(path.parent)
    project = path.parent if project is None else project.resolve()
    if _is_part_of_a_package(path):
        root = next(folder for folder in path.parents if not (folder / "__init__.py").is_file())
        put_first(root)
        name = ".".join(path.relative_to(root).with_suffix("").parts)
    try:
        module = importlib.import_module(name)
    except SyntaxError as error:
        msg = f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}"
        raise TopologyNotFoundError(msg) from error
    except StormsparkError as error:
        add_line(error, project)
        raise
    except (Exception, SystemExit) as error:
        msg = f"importing {file} raised {raised(error, project)}"
        raise TopologyNotFoundError(msg) from error
    found = getattr(module, "__file__", None)
    if found is None or Path(found).resolve() != path:
        taken_by = found or "a module of Python itself"
        msg = f"{file} can't be imported: the name {name!r} is taken by {taken_by}; rename the file"
        raise TopologyNotFoundError(msg)
    return module


def _is_part_of_a_package(path: Path) -> bool:
    """Return whether the file can only be imported with its package: it is a ``__main__.py``, or has relative imports."""
    if not (path.parent / "__init__.py").is_file():
        return False
    if path.stem == "__main__":
        return True
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return False  # importing it raises the error
    return any(isinstance(node, ast.ImportFrom) and node.level > 0 for node in ast.walk(tree))


def put_first(folder: Path) -> None:
    """Let this process, and the processes that it starts, import the modules in ``folder``, before others of the same names."""
    sys.path[:] = [str(folder), *(one for one in sys.path if one != str(folder))]
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(folder), *(one for one in inherited if one not in ("", str(folder)))]
    )


def call(found: Callable[..., object], named: str, project: Path) -> object:
    """Call ``found`` without arguments and return its result. ``named`` is its name in messages.

    An error of this package is not changed. Every other error becomes a `TopologyNotFoundError`.
    """
    try:
        inspect.signature(found).bind()
    except TypeError as error:
        msg = f"{named} can't be called without arguments, {error}: give them defaults, or name another function"
        raise TopologyNotFoundError(msg) from error
    except ValueError:
        pass  # a function in C has no signature; calling it shows whether it takes no arguments
    try:
        return found()
    except StormsparkError as error:
        add_line(error, project)
        raise
    except (Exception, SystemExit) as error:
        msg = f"{named} raised {raised(error, project)}"
        raise TopologyNotFoundError(msg) from error


def raised(error: BaseException, folder: Path) -> str:
    """Return the last line of the error's message, followed by the line of code that raised it, if that line is known."""
    message = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    frame = _users_frame(error, folder)
    return f"{message}\n{_line(frame)}" if frame else message


def add_line(error: StormsparkError, folder: Path) -> None:
    """Add a note to an error of this package: the line that raised it. Add nothing if the message already names the line."""
    frame = _users_frame(error, folder)
    if frame and f"{frame.filename}:{frame.lineno}" not in str(error):
        error.add_note(_line(frame))


def _users_frame(error: BaseException, folder: Path) -> traceback.FrameSummary | None:
    """Return the error's innermost frame in the user's ``folder``. If there is none, return the innermost frame of all."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)] or frames
    return own[-1] if own else None


def _line(frame: traceback.FrameSummary) -> str:
    return f"  at {frame.filename}:{frame.lineno}, in {frame.name}: {frame.line}"


def _importable(stem: str) -> str:
    """Return a name close to ``stem`` that Python can import.

    >>> _importable("word-count"), _importable("1st")
    ('word_count', '_1st')
    """
    name = re.sub(r"\W", "_", stem)
    return name if name.isidentifier() else f"_{name}"
