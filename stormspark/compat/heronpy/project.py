"""Runs a file that uses heronpy, as Heron's command line does: imports the file, then runs its code for ``__main__`` (A40, J6).

The code under ``if __name__ == "__main__"`` runs in the file's own module, and not in a module called ``__main__``. So the
classes of the file are pickled by reference. A worker that imports the file does not run the code that submits the topology.
But if a file submits a topology while it is imported, workers must not import the file, so its classes are pickled by value.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from weakref import WeakKeyDictionary

import cloudpickle

from stormspark.api import Topology
from stormspark.errors import InvalidTopologyError, StormsparkError, TopologyNotFoundError
from stormspark.streamlet.submission import capturing
from stormspark.user_code import add_line, import_file, place_of_module, put_first, raised

__all__ = ["ON_PATH", "load"]

#: The folder of the packages that have heronpy's own names.
ON_PATH = Path(__file__).parents[1] / "on_path" / "heronpy"

#: For each module, the topologies that it submitted when it was imported. Python imports a module only once.
_at_import: WeakKeyDictionary[ModuleType, list[Topology]] = WeakKeyDictionary()


def load(file: Path, name: str | None, arguments: Sequence[str] = ()) -> Topology:
    """Return the topology that ``file`` submits, or that it defines as a class.

    ``name`` is the topology's name, as for ``heron submit``, or the name of a class. The first command-line argument of the
    file's code is ``name``, or the file's name without ``.py`` if ``name`` is None; for
    ``__main__.py``, it is the name of its package. ``arguments`` follow.

    Raises `TopologyNotFoundError` or `InvalidTopologyError`. If the file's code raised an error, the message names its line.
    """
    path = file.resolve()
    put_first(ON_PATH)
    # ON_PATH is last, so it comes first on the path. Otherwise, in a clone of Heron's repository, Heron's own heronpy would win.
    for folder in (*_roots(path), path.parent, place_of_module(path).root, ON_PATH):
        put_first(folder)
    own_name = path.parent.name if path.stem == "__main__" else path.stem
    with _arguments([str(file), name or own_name, *arguments]):
        module = _imported(file)
        submitted = [*_at_import[module], *_run_guarded(module, path)]
    if submitted:
        return _chosen(submitted, name, file)
    return _defined(module, name, file)


@contextmanager
def _arguments(given: list[str]) -> Iterator[None]:
    before, sys.argv = sys.argv, given
    try:
        yield
    finally:
        sys.argv = before


def _roots(path: Path) -> list[Path]:
    """Return the folders above the file in which its imports are found.

    For example, ``examples.src.python.spout`` is found in the root folder of Heron's repository.
    """
    roots = []
    for name in _imported_names(path):
        spec = importlib.util.find_spec(name.partition(".")[0])
        # A package without an origin is a namespace package, which may have several folders.
        if spec is not None and spec.origin is not None:
            continue
        module = Path(*name.split("."))
        for folder in path.parents:
            if (folder / module).is_dir() or (folder / module).with_suffix(".py").is_file():
                roots.append(folder)
                break
    return roots


def _imported_names(path: Path) -> list[str]:
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []  # the file is imported next, and then Python raises the error
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(dict.fromkeys(alias.name for alias in node.names))
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found[node.module] = None
    return list(found)


def _imported(file: Path) -> ModuleType:
    with capturing() as submitted:
        module = import_file(file, is_on_path=True)
    if module not in _at_import:
        if submitted:
            cloudpickle.register_pickle_by_value(module)
            # Let the file submit again, because the first submission was pickled by reference.
            with capturing() as submitted:
                importlib.reload(module)
        _at_import[module] = submitted
    return module


def _run_guarded(module: ModuleType, path: Path) -> list[Topology]:
    tree = ast.parse(path.read_bytes())
    guarded: list[ast.stmt] = [
        node for node in tree.body if isinstance(node, ast.If) and _names_main(node.test)
    ]
    if not guarded:
        return []
    code = compile(ast.Module(guarded, []), str(path), "exec")
    name, module.__name__ = module.__name__, "__main__"
    with capturing() as submitted:
        try:
            exec(code, vars(module))
        except StormsparkError as error:
            add_line(error, path.parent)
            raise
        except SystemExit as error:
            if not submitted or error.code not in (None, 0):
                msg = (
                    f"{path} ended with exit code {error.code!r} and the arguments {sys.argv[1:]}; "
                    f"--arg A gives it one more\n{raised(error, path.parent)}"
                )
                raise TopologyNotFoundError(msg) from error
        except Exception as error:
            msg = f"{path} raised {raised(error, path.parent)}"
            raise InvalidTopologyError(msg) from error
        finally:
            module.__name__ = name
    return submitted


def _names_main(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(test))


def _chosen(submitted: list[Topology], name: str | None, file: Path) -> Topology:
    """Return the submitted topology called ``name``. If the file submits only one, that topology gets the name, as in Heron."""
    for topology in submitted:
        if topology.name == name:
            return topology
    if len(submitted) == 1:
        return submitted[0] if name is None else replace(submitted[0], name=name)
    names = " or ".join(f"{file}:{topology.name}" for topology in submitted)
    msg = f"{file} submits {len(submitted)} topologies, and none is named {name!r}: choose one, {names}"
    raise TopologyNotFoundError(msg)


def _defined(module: ModuleType, name: str | None, file: Path) -> Topology:
    from stormspark.compat.heronpy.topology import Topology as HeronTopology

    found = {
        one.__name__: one
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, HeronTopology) and one.__module__ == module.__name__
    }
    if name is not None and name in found:
        return found[name].lowered()
    if name is None and len(found) == 1:
        return next(iter(found.values())).lowered()
    if not found:
        msg = (
            f"{file} has no topology: it needs a class that inherits from heronpy.api.topology.Topology, or it must call "
            f"build_and_submit() of a TopologyBuilder"
        )
    else:
        names = " or ".join(f"{file}:{one}" for one in found)
        problem = f"has no topology {name!r}" if name is not None else f"has {len(found)} topologies"
        msg = f"{file} {problem}. Did you mean {names}?"
    raise TopologyNotFoundError(msg)
