"""Detects which library a topology's file was written for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

__all__ = ["LegacyKind", "kind_of", "legacy_kind"]

#: The libraries whose topologies a front-end of stormspark runs.
LegacyKind = Literal["streamparse", "heronpy", "petrel"]

_KINDS: dict[str, LegacyKind] = {
    "streamparse": "streamparse",
    "pystorm": "streamparse",
    "heronpy": "heronpy",
    "heron": "heronpy",
    "pyheron": "heronpy",
    "petrel": "petrel",
}


def legacy_kind(file: Path) -> LegacyKind | None:
    """Return the library that the file imports anywhere in its code. None if it imports none, or can't be read as Python.

    The file of a Petrel topology imports only the modules of its components, so these count for it too.
    """
    if file.suffix == ".clj":  # topologies of streamparse 1 and 2 are Clojure
        return "streamparse"
    tree = _tree(file)
    return None if tree is None else kind_of(file, tree)  # whoever imports the file next gets the error


def kind_of(
    file: Path, tree: ast.Module, tree_of: Callable[[Path], ast.Module | None] | None = None
) -> LegacyKind | None:
    """Return the library that a file imports, whose code is in ``tree``. ``tree_of`` returns the code of another file."""
    if (kind := _imported_kind(tree)) is not None:
        return kind
    return "petrel" if _creates_for_petrel(file, tree, tree_of or _tree) else None


def _creates_for_petrel(file: Path, tree: ast.Module, tree_of: Callable[[Path], ast.Module | None]) -> bool:
    """Return whether the file looks like the definition of a Petrel topology.

    Such a file has a function with one argument, the builder, whose ``setSpout`` or ``setBolt`` it calls. A module beside the
    file imports Petrel, or the file itself.
    """
    if not any(map(_takes_builder, tree.body)):
        return False
    beside = (file.parent / f"{name.partition('.')[0]}.py" for name in _imports(tree))
    trees = (tree_of(one) for one in beside if one.is_file())
    return any(_imported_kind(one) == "petrel" for one in (tree, *trees) if one is not None)


def _takes_builder(node: ast.stmt) -> bool:
    if not isinstance(node, ast.FunctionDef) or len(node.args.args) != 1:
        return False
    builder = node.args.args[0].arg
    return any(
        isinstance(one, ast.Attribute)
        and one.attr in ("setSpout", "setBolt")
        and isinstance(one.value, ast.Name)
        and one.value.id == builder
        for one in ast.walk(node)
    )


def _tree(file: Path) -> ast.Module | None:
    try:
        return ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


def _imported_kind(tree: ast.Module) -> LegacyKind | None:
    for name in _imports(tree):
        if (kind := _KINDS.get(name.partition(".")[0])) is not None:
            return kind
    return None


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module
