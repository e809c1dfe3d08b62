"""Finding a topology: what ``FILE[:NAME]`` on a command line stands for.

The file is imported under its own name with its folder first on the module path, as ``python FILE`` would
find its neighbours. So components are pickled by reference, as ``word_count.Split``, and a worker process
imports them the same way: the folder goes on ``PYTHONPATH`` too, which the processes of a local Spark
inherit.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from stormspark.api.topology import Topology, TopologyBuilder
from stormspark.errors import StormsparkError, TopologyNotFoundError

__all__ = ["DEFAULT_NAME", "Target", "load_topology", "parse_target"]

#: What is looked for in a file where the command line names nothing.
DEFAULT_NAME = "build"


class Target(NamedTuple):
    """``FILE[:NAME]`` taken apart."""

    file: Path
    name: str

    def __str__(self) -> str:
        return f"{self.file}:{self.name}"


def parse_target(text: str) -> Target:
    """Take ``FILE[:NAME]`` apart; a colon that no name follows belongs to the file.

    >>> parse_target("examples/word_count.py").name
    'build'
    >>> parse_target("examples/word_count.py:topology").name
    'topology'
    """
    file, colon, name = text.rpartition(":")
    if colon and name.isidentifier():
        return Target(Path(file), name)
    return Target(Path(text), DEFAULT_NAME)


def load_topology(text: str) -> Topology:
    """Import the file of ``FILE[:NAME]`` and get the topology that NAME is, or gives when it is called.

    Raises `TopologyNotFoundError` in a line or two, with what else in the file looks like a topology. An
    error of this package that the user's code raises (a component that can't be pickled, say) comes through
    as it is.
    """
    target = parse_target(text)
    module = _imported(target.file)
    found = getattr(module, target.name, None)
    if found is None:
        msg = f"{target.file} has no {target.name!r}. {_suggestion(module, target)}"
        raise TopologyNotFoundError(msg)
    if callable(found) and not isinstance(found, type):
        found = _called(found, target)
    if isinstance(found, Topology):
        return found
    if isinstance(found, TopologyBuilder):
        msg = f'{target} gives a TopologyBuilder: end it with .create_topology("a name")'
    else:
        msg = f"{target} gives {_described(found)}, no Topology. {_suggestion(module, target)}"
    raise TopologyNotFoundError(msg)


def _imported(file: Path) -> ModuleType:
    if not file.is_file():
        what = "is a folder; name a file in it" if file.is_dir() else "does not exist"
        msg = f"{file} {what}"
        raise TopologyNotFoundError(msg)
    path = file.resolve()
    name = path.stem
    if path.suffix != ".py" or not name.isidentifier():
        msg = f"{file} can't be imported, here or by a worker: call it something like {_importable(name)}.py"
        raise TopologyNotFoundError(msg)
    _put_first(path.parent)
    try:
        module = importlib.import_module(name)
    except SyntaxError as error:
        msg = f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}"
        raise TopologyNotFoundError(msg) from error
    except StormsparkError as error:
        _add_line(error, path.parent)
        raise
    except (Exception, SystemExit) as error:
        msg = f"importing {file} raised {_raised(error, path.parent)}"
        raise TopologyNotFoundError(msg) from error
    found = getattr(module, "__file__", None)
    if found is None or Path(found).resolve() != path:
        taken_by = found or "a module of Python itself"
        msg = f"{file} can't be imported: the name {name!r} is taken by {taken_by}; rename the file"
        raise TopologyNotFoundError(msg)
    return module


def _put_first(folder: Path) -> None:
    """Let this process and those it starts find the modules in ``folder``."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(folder) not in inherited:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), *inherited]))


def _called(found: object, target: Target) -> object:
    assert callable(found)
    try:
        inspect.signature(found).bind()
    except TypeError as error:
        msg = f"{target} can't be called without arguments, {error}: give them defaults, or name another"
        raise TopologyNotFoundError(msg) from error
    except ValueError:
        pass  # something written in C, which tells nothing of its arguments: calling it will
    try:
        return found()
    except StormsparkError as error:
        _add_line(error, target.file.resolve().parent)
        raise
    except (Exception, SystemExit) as error:
        msg = f"{target} raised {_raised(error, target.file.resolve().parent)}"
        raise TopologyNotFoundError(msg) from error


def _raised(error: BaseException, folder: Path) -> str:
    """The error, and the line it came from."""
    message = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    frame = _users_frame(error, folder)
    return f"{message}\n{_line(frame)}" if frame else message


def _add_line(error: StormsparkError, folder: Path) -> None:
    """Note the line that an error of ours came from, unless its text names it already."""
    frame = _users_frame(error, folder)
    if frame and f"{frame.filename}:{frame.lineno}" not in str(error):
        error.add_note(_line(frame))


def _users_frame(error: BaseException, folder: Path) -> traceback.FrameSummary | None:
    """The innermost line in the user's own folder; where there is none, the innermost of all."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)] or frames
    return own[-1] if own else None


def _line(frame: traceback.FrameSummary) -> str:
    return f"  at {frame.filename}:{frame.lineno}, in {frame.name}: {frame.line}"


def _suggestion(module: ModuleType, target: Target) -> str:
    """What else the file has that may be meant."""
    names = [name for name in _candidates(module) if name != target.name]
    if not names:
        return f"It needs a function {target.name}() that returns TopologyBuilder().create_topology(...)."
    return f"Did you mean {' or '.join(f'{target.file}:{name}' for name in names)}?"


def _candidates(module: ModuleType) -> Iterator[str]:
    """Names of a module's topologies, and of its own functions that need no arguments and may give one."""
    for name, value in vars(module).items():
        if name.startswith("_"):
            continue
        own_function = inspect.isfunction(value) and value.__module__ == module.__name__
        if isinstance(value, Topology) or (own_function and _may_give_topology(value)):
            yield name


def _may_give_topology(function: object) -> bool:
    assert callable(function)
    signature = inspect.signature(function)
    try:
        signature.bind()
    except TypeError:
        return False
    given = signature.return_annotation
    return given in (inspect.Signature.empty, Topology, "Topology", "stormspark.Topology")


def _importable(stem: str) -> str:
    """A name close to ``stem`` that Python can import.

    >>> _importable("word-count"), _importable("1st")
    ('word_count', '_1st')
    """
    name = re.sub(r"\W", "_", stem)
    return name if name.isidentifier() else f"_{name}"


def _described(value: object) -> str:
    if value is None:
        return "None (is a return missing?)"
    return f"{value!r:.80} of type {type(value).__name__}"
