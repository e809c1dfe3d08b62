"""Imports users' files, calls functions in them, and finds the line that raised an error.

A file is imported under its own name. Its folder comes first on the module path. So the file can import the modules beside it, as
with ``python FILE``. Pickles name a component's class, such as ``word_count.Split``, and a worker process imports the file in the
same way. The folder is also added to ``PYTHONPATH``, which the processes of a local Spark inherit.

A file in a package is imported as a module of the package, as with ``python -m``: ``project/pkg/topology.py`` is ``pkg.topology``
if ``pkg`` has an ``__init__.py``. Then the package's *root*, the folder ``project``, comes first on the module path, before the
file's own folder. So the file can import ``pkg.bolts``, ``.bolts`` and ``bolts``.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.machinery
import importlib.util
import inspect
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from stormspark.errors import StormsparkError, TopologyNotFoundError
from stormspark.java_names import meant
from stormspark.likely_names import nearest
from stormspark.working_folder import about_relative_path

__all__ = [
    "ModulePlace",
    "add_line",
    "call",
    "import_file",
    "older_python",
    "other_module",
    "parsed",
    "place_of_module",
    "put_first",
    "raised",
    "search_here",
    "syntax_tree",
]

_PARSE_TRIES = 10
_parsing = threading.Lock()


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
_DRAFTED = (
    "this is written for an older Python, and stormspark runs Python 3: "
    "`stormspark port PROJECT --out DIR` drafts it in Python 3"
)


class ModulePlace(NamedTuple):
    """How a file is imported: as the module ``name``, which is found in the folder ``root``."""

    root: Path
    name: str

    @property
    def package(self) -> Path | None:
        """The folder of the outermost package; None if the file is in no package."""
        outermost, dot, _ = self.name.partition(".")
        return self.root / outermost if dot else None


def import_file(file: Path, project: Path | None = None, *, is_on_path: bool = False) -> ModuleType:
    """Import the module in ``file``. Errors point to a line in ``project``, which is the file's folder by default.

    ``is_on_path`` says that the caller has put the file's folder, and the root of its package, on the module path already.

    Raises `TopologyNotFoundError`, whose message has the error and the line that raised it. An error of this package is not
    changed, but gets that line as a note.
    """
    if not file.is_file():
        beside = [one.name for one in file.parent.glob("*.py")]
        problem = (
            "is a folder; name a file in it"
            if file.is_dir()
            else f"does not exist{nearest(file.name, beside)}"
        )
        msg = f"{file} {problem}"
        raise TopologyNotFoundError(msg)
    path = file.resolve()
    name = path.stem
    if path.suffix != ".py" or not name.isidentifier():
        msg = (
            f"{file} can't be imported, here or by a worker: rename it, for example to {_importable(name)}.py"
        )
        raise TopologyNotFoundError(msg)
    place, taken = _on_module_path(path, is_on_path=is_on_path)
    own_folder = path.parent if place.package is None else place.package
    project = own_folder if project is None else project.resolve()
    try:
        module = importlib.import_module(place.name)
    except SyntaxError as error:
        msg = f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}"
        raise _with_note(TopologyNotFoundError(msg), error) from error
    except StormsparkError as error:
        add_line(error, project)
        raise
    except (Exception, SystemExit) as error:
        msg = f"importing {file} raised {raised(error, project)}{taken}"
        raise _with_note(TopologyNotFoundError(msg), error) from error
    found = getattr(module, "__file__", None)
    if found is None or Path(found).resolve() != path:
        taken_by = found or "a module of Python itself"
        msg = f"{file} can't be imported: the name {place.name!r} is taken by {taken_by}; rename the file"
        raise TopologyNotFoundError(msg)
    return module


def _with_note(problem: TopologyNotFoundError, cause: BaseException) -> TopologyNotFoundError:
    if (hint := older_python(cause)) is not None:
        problem.add_note(f"  {hint}")
    return problem


def syntax_tree(
    source: bytes | str, file: str = "<unknown>", feature_version: tuple[int, int] | None = None
) -> ast.Module:
    """Do what ``ast.parse`` does, from any thread.

    Before Python 3.11.5, two threads that parse at a time may disturb each other: one of them gets a SystemError, "AST
    constructor recursion depth mismatch". The executors of a component begin side by side, so they take turns here; and if
    somebody else's thread parses just then, parsing is tried again.
    """
    for left in range(_PARSE_TRIES - 1, -1, -1):
        try:
            with _parsing:
                return ast.parse(source, file, feature_version=feature_version)
        except SystemError:
            if not left:
                raise
    raise AssertionError


def parsed(source: bytes | str, file: str = "<unknown>") -> ast.Module:
    """Parse a file with ``ast``. Python 2's ``except Empty, e:`` raises SyntaxError, with Python 3.14, too.

    Python 3.14 reads it as two classes of exceptions (PEP 758). It is Python 2 if nothing in the file is called ``e``.
    """
    tree = syntax_tree(source, file)
    try:
        syntax_tree(source, file, feature_version=(3, 13))
    except SyntaxError as error:
        for handler in ast.walk(tree):
            if (
                isinstance(handler, ast.ExceptHandler)
                and isinstance(handler.type, ast.Tuple)
                and len(handler.type.elts) == 2
                and isinstance(name := handler.type.elts[1], ast.Name)
                and not (hasattr(builtins, name.id) or name.id in _given(tree))
            ):
                msg = "multiple exception types must be parenthesized"
                line = source.splitlines()[name.lineno - 1]
                text = line if isinstance(line, str) else line.decode(errors="replace")
                raise SyntaxError(msg, (file, name.lineno, name.col_offset, text)) from error
    return tree


def _given(tree: ast.Module) -> set[str]:
    """Return the names that something in a file is given, at whatever place."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.arg):
            names.add(node.arg)
    return names


def older_python(error: BaseException) -> str | None:
    """Return what to do if code failed probably because it was written for Python 2, or for an early Python 3; else None.

    >>> older_python(SyntaxError("invalid syntax", ("words.py", 3, 1, "except Empty, e:")))
    'this is written for an older Python, and stormspark runs Python 3: `stormspark port PROJECT --out DIR` drafts it in Python 3'
    >>> older_python(ModuleNotFoundError("No module named 'Queue'", name="Queue"))
    'Queue is a module of Python 2, and stormspark runs Python 3, which calls it queue'
    """
    if isinstance(error, SyntaxError):
        message = error.msg or ""
        is_old = isinstance(error, TabError) or any(
            word in message for word in ("print", "exec", "multiple exception")
        )
        return _DRAFTED if is_old or _STATEMENTS.search(error.text or "") else None
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return None
    if error.name in _PYTHON_2:
        return f"{error.name} is a module of Python 2, and stormspark runs Python 3, which calls it {_PYTHON_2[error.name]}"
    top = error.name.partition(".")[0]
    frames = [
        one for one in traceback.extract_tb(error.__traceback__) if not one.filename.startswith("<frozen ")
    ]
    folder = Path(frames[-1].filename).parent if frames else Path()
    beside = (folder / f"{top}.py").is_file() or (folder / top / "__init__.py").is_file()
    if frames and beside and (folder / "__init__.py").is_file():
        return (
            f"{top} is beside this file, where only Python 2 looks for it without being told: "
            f"write `from .{error.name} import ...`, or `from . import {top}`"
        )
    return None


def place_of_module(path: Path) -> ModulePlace:
    """Return how the file at the absolute ``path`` is imported.

    The root is the first folder above the file without an ``__init__.py``, as in pytest's import mode "prepend". If the file has
    relative imports, the folders that they need belong to the package, too.
    """
    folders: list[str] = []
    root = path.parent
    while (root / "__init__.py").is_file() and root.name.isidentifier():
        folders.insert(0, root.name)
        root = root.parent
    levels = _levels_of_relative_imports(path)
    while len(folders) < levels and root.name.isidentifier():
        folders.insert(0, root.name)
        root = root.parent
    stem = [] if path.stem == "__init__" and folders else [path.stem]
    return ModulePlace(root, ".".join([*folders, *stem]))


def _levels_of_relative_imports(path: Path) -> int:
    """Return how many packages the relative imports of a file need around it, such as 2 for ``from ..bolts import Split``."""
    try:
        tree = syntax_tree(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return 0  # the file is imported next, and then Python raises the error
    return max((node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)), default=0)


def _on_module_path(path: Path, *, is_on_path: bool) -> tuple[ModulePlace, str]:
    """Put the folders of a file on the module path, and return how the file is imported.

    If something else has the name of the file's package, the file is imported on its own. Then the second value says so, for the
    message of an error.
    """
    place, taken = place_of_module(path), ""
    if place.package is not None:
        name = place.package.name
        if name in sys.stdlib_module_names:  # everybody else needs Python's own module
            taken = "a module of Python itself"
        else:
            before, inherited = sys.path[:], os.environ.get("PYTHONPATH", "")
            if not is_on_path:
                put_first(place.root)
            taken = _taken_by(place.package)
            sys.path[:], os.environ["PYTHONPATH"] = before, inherited
        if taken:
            taken = f"\n  {path.name} is not imported as {place.name}, because {name!r} is {taken}: rename the folder {name}"
            place = ModulePlace(path.parent, path.stem)
    if is_on_path:
        return place, taken
    hides = place.package is not None and any(
        one.stem in sys.stdlib_module_names for one in path.parent.glob("*.py")
    )
    if not hides:
        put_first(path.parent)
    put_first(place.root)
    if hides:
        # A module in a package, such as `queue.py`, must not hide the one of Python. So the folder is searched last.
        sys.path[:] = [*(one for one in sys.path if one != str(path.parent)), str(path.parent)]
    return place, taken


def _taken_by(package: Path) -> str:
    """Return what Python finds under the name of a package, if that is not the package. Otherwise return an empty string."""
    spec = importlib.util.find_spec(package.name)
    if spec is None:
        return "nothing that Python can import"
    locations = [Path(location).resolve() for location in spec.submodule_search_locations or ()]
    return "" if package in locations else f"taken by {spec.origin or locations[0]}"


def other_module(name: str) -> str | None:
    """Return what is wrong if a module has been imported from another file than the one that an import would find today.

    So it is if a process has loaded another project before, which has a module of the same name. None if nothing is wrong.
    """
    top = name.partition(".")[0]
    loaded = getattr(sys.modules.get(top), "__file__", None)
    if loaded is None or top == "__main__":
        return None
    spec = importlib.machinery.PathFinder.find_spec(top)
    if (
        spec is None
        or not spec.has_location
        or spec.origin is None
        or Path(spec.origin).resolve() == Path(loaded).resolve()
    ):
        return None
    return (
        f"the module {top!r} of this project is {spec.origin}, but this process has already imported {loaded}: load each "
        f"project in a process of its own, or rename one of the modules"
    )


def search_here() -> None:
    """Let this program import the modules in the working directory, as ``python -m`` does.

    So the program ``stormspark`` finds the same modules as ``python -m stormspark``. Python itself puts the folder of the program
    on the module path, which has no modules for anybody.
    """
    if sys.flags.safe_path:
        return
    program = Path(sys.argv[0])
    if program.name == "stormspark" and sys.path and Path(sys.path[0]) == program.parent:
        del sys.path[0]
    here = os.getcwd()
    sys.path[:] = [here, *(one for one in sys.path if one not in ("", here))]


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
    """Return the last line of the error's message, followed by the line of code that raised it, if that line is known, and by
    what to do, if the error's own words do not say it.
    """
    message = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    if (question := meant(error)) and "Did you mean" not in message:
        message = f"{message}; {question}"
    frame = _users_frame(error, folder)
    lines = [message, *([_line(frame)] if frame else [])]
    if hint := about_relative_path(error):
        lines.append(f"  {hint}")
    return "\n".join(lines)


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
