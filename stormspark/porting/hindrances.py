"""Finds what keeps a file of a project from being imported: Python 2, or a missing module, in it or in a file that it needs."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from typing import Final, NamedTuple

from stormspark.porting.findings import Place
from stormspark.porting.python2 import GONE_MODULES, old_spellings
from stormspark.porting.python_source import CHILDRENS_MODULE, LIBRARIES, Import, PythonFile, PythonProject

__all__ = ["Hindrance", "hindrance", "missing_modules"]

#: Storm's library for children. One for Python 2 is replaced where the child starts.
_LIBRARY: Final = re.compile(r"^class (Bolt|BasicBolt|Spout)\b", re.MULTILINE)


class Hindrance(NamedTuple):
    """What keeps a file from being imported, and its line."""

    text: str
    place: Place


def hindrance(project: PythonProject, file: PythonFile, *, with_modules: bool = True) -> Hindrance | None:
    """Return the first hindrance in ``file``, and in the project's files that it imports, directly or indirectly.

    Imports that a file tries, or does without, do not count. If ``with_modules`` is false, missing modules do not count either.
    """
    to_do, seen = [file.path], {file.path}
    while to_do:
        path = to_do.pop(0)
        found = project.file(path)
        shown = project.shown(path)
        if found is None:
            place, text = project.errors[path.absolute()]
            return Hindrance(f"{shown}: {text}", place)
        if path.name == f"{CHILDRENS_MODULE}.py" and _LIBRARY.search(path.read_text("utf-8", "replace")):
            continue
        if path in project.old:
            return Hindrance(f"{shown} is Python 2", project.old[path][0])
        if (spelling := min(old_spellings(project, found), default=None)) is not None:
            return Hindrance(f"{shown} only works in Python 2: {spelling[1]}", Place(shown, spelling[0]))
        if with_modules:
            for one in missing_modules(project, found):
                if not one.optional:
                    return Hindrance(
                        f"{shown} imports {one.module}, which is not installed here", Place(shown, one.line)
                    )
        for further in project.imported(found):
            if further not in seen:
                seen.add(further)
                to_do.append(further)
    return None


def missing_modules(project: PythonProject, file: PythonFile) -> Iterator[Import]:
    """Yield the imports of a file that are neither in the project nor installed here.

    Modules that Python 2 alone has, and Storm's library for children, are left out.
    """
    for one in file.modules:
        top = one.module.partition(".")[0]
        known = {*LIBRARIES, *sys.stdlib_module_names, *GONE_MODULES, CHILDRENS_MODULE, ""}
        if top not in known and not project.has_module(top, file) and not _is_installed(top):
            yield one


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
