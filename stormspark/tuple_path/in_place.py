"""What was compiled in a checkout, and from which sources: compiled modules lie beside their sources there.

Python takes an extension module before the source that lies beside it, also if that source is another by now. So whoever compiles
in place writes a *mark*: a file with the hashes of the sources, and of what was made from them. Each process compares the sources
with the mark when it imports stormspark, which takes a millisecond. If one differs, `Sources` leads to all the sources: what a
developer edits is what runs. Compiled modules without a mark are those of a wheel, which nobody edits. In a checkout, they were
brought from elsewhere, and nobody knows from which sources they are.

There is a mark for each Python, because each compiles for itself. A checkout may also be shared with a container or a host that
has another C library, under which the compiled modules have the same names and can't be loaded. So the mark says where they were
compiled, and elsewhere the sources run. ``setup.py`` loads this module as a file, before there is an
installation: it imports nothing but Python's own modules.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Sequence
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from typing import NamedTuple

__all__ = ["Sources", "begin", "compiled_names", "end", "is_set", "outdated", "why_outdated"]

_PACKAGE = "stormspark"
#: How this Python's compiled modules end, such as ``.cpython-311-x86_64-linux-gnu.so``.
_SUFFIX = EXTENSION_SUFFIXES[0]
_MARK = f"{_PACKAGE}/.compiled{_SUFFIX}.json"
#: Each compiled module is made from these, too.
_LIST, _RECIPE = f"{_PACKAGE}/tuple_path/__init__.py", "setup.py"
#: They lie beside the package in a checkout, and not where a wheel is installed.
_OF_A_CHECKOUT = (_RECIPE, "pyproject.toml")
#: What runs where compiled modules don't: a source, or what Python has made from it where there are no sources.
_LOADERS = ((SourceFileLoader, SOURCE_SUFFIXES), (SourcelessFileLoader, BYTECODE_SUFFIXES))


def is_set(value: str | None) -> bool:
    """Whether STORMSPARK_PURE says that nothing compiled should run.

    >>> [is_set(value) for value in ("1", "yes", "0", "", None)]
    [True, True, False, False, False]
    """
    return (value or "0").strip() != "0"


class Sources:
    """A finder of modules that leads from the names of the tuple path to their sources, past all compiled modules."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: object = None
    ) -> ModuleSpec | None:
        """Return the spec of a source; None for a module that is not in the tuple path."""
        if name not in self._names or not path or not all(os.path.isdir(folder) for folder in path):
            return None  # there are no compiled modules in an archive
        for folder in path:
            finder = FileFinder(folder, *_LOADERS)
            if (spec := finder.find_spec(name)) is not None:
                return spec
        msg = f"No module named {name!r}"  # a compiled module whose source is gone
        raise ModuleNotFoundError(msg, name=name)


class _Mark(NamedTuple):
    """What the sources were, and what was made from them. It is empty from the beginning of a compilation to its end."""

    sources: dict[str, str]
    compiled: dict[str, tuple[int, int, str]]
    #: For which C library and processor.
    system: str = ""


def why_outdated(checkout: Path) -> str | None:
    """Return why what was compiled in place must not run; None if it may, or if nothing was compiled in place."""
    mark = _read(checkout)
    if mark is None:
        brought = _brought(checkout)
        return f"{brought[0]} was not compiled in this checkout: make setup" if brought else None
    if not mark.sources:
        return "its compilation in this checkout has not ended: make setup"
    if mark.system != _system():
        return f"it was compiled for {mark.system or 'another system'}, and this is {_system()}: make setup"
    for file in _changed(checkout, mark):
        what = "edited" if (checkout / file).exists() else "removed"
        return f"{file} was {what} after it was compiled: make setup"
    for file, known in mark.compiled.items():
        if not _is_still(checkout / file, known):
            return f"{file} is not what was compiled in this checkout: make setup"
    return None


def compiled_names(checkout: Path) -> list[str]:
    """Return the modules that were compiled in place."""
    mark = _read(checkout)
    files = _brought(checkout) if mark is None else mark.compiled
    return [file.removesuffix(_SUFFIX).replace("/", ".") for file in files]


def outdated(checkout: Path, names: Collection[str]) -> list[str]:
    """Return those of the modules ``names`` that have to be compiled: all after an edit of a .pxd, which others may import."""
    mark = _read(checkout)
    if mark is None or not mark.sources or mark.system != _system():
        return list(names)
    changed = {*_changed(checkout, mark), *(set(_sources(checkout)) - set(mark.sources))}
    if changed - {_path_of(name, ".py") for name in names}:
        return list(names)
    return [
        name
        for name in names
        if _path_of(name, ".py") in changed
        or not _is_still(checkout / (file := _path_of(name, _SUFFIX)), mark.compiled.get(file))
    ]


def begin(checkout: Path, names: Iterable[str], outdated: Collection[str]) -> dict[str, str]:
    """Remove what is about to be compiled again, and what no module is compiled to. Return the hashes of the sources for `end`.

    From now until `end` the sources run, so no process gets some modules as they were and others as they will be.
    """
    hashes = {file: _hash_of(checkout / file) for file in _sources(checkout)}
    _write(checkout, _Mark({}, {}))
    kept = {_path_of(name, _SUFFIX) for name in names if name not in outdated}
    for file in (checkout / _PACKAGE).rglob(f"*{_SUFFIX}"):
        if file.relative_to(checkout).as_posix() not in kept:
            file.unlink()
    return hashes


def end(checkout: Path, names: Iterable[str], hashes: dict[str, str]) -> bool:
    """Write the mark, and return whether all modules are compiled.

    If one is not, remove the others, because a path that is compiled only in part is slower than plain Python.
    """
    files = {file: checkout / file for name in names for file in [_path_of(name, _SUFFIX)]}
    if not all(file.exists() for file in files.values()):
        for file in files.values():
            file.unlink(missing_ok=True)
        (checkout / _MARK).unlink()
        return False
    made = {name: (*_size_and_time(file), _hash_of(file)) for name, file in files.items()}
    _write(checkout, _Mark(hashes, made, _system()))
    return True


def _sources(checkout: Path) -> list[str]:
    types = sorted((checkout / _PACKAGE).rglob("*.pxd"))
    found = [file for declared in types for file in (declared.with_suffix(".py"), declared) if file.exists()]
    return [*(file.relative_to(checkout).as_posix() for file in found), _LIST, _RECIPE]


def _path_of(name: str, suffix: str) -> str:
    return name.replace(".", "/") + suffix


def _brought(checkout: Path) -> list[str]:
    """Return the compiled modules in a checkout that has no mark; none where a wheel is installed."""
    if not all((checkout / file).exists() for file in _OF_A_CHECKOUT):
        return []
    found = (checkout / _PACKAGE).rglob(f"*{_SUFFIX}")
    return sorted(file.relative_to(checkout).as_posix() for file in found)


def _changed(checkout: Path, mark: _Mark) -> list[str]:
    """Return the sources that have other contents. Their times say nothing: a checkout of the same commit has others."""
    return [file for file, known in mark.sources.items() if _hash_of(checkout / file) != known]


def _is_still(file: Path, known: tuple[int, int, str] | None) -> bool:
    """Return whether a compiled module is the one of the mark. It is large, so it is not read if it has the mark's time."""
    if known is None or not file.exists():
        return False
    return _size_and_time(file) == tuple(known[:2]) or _hash_of(file) == known[2]


def _size_and_time(file: Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_size, found.st_mtime_ns


def _hash_of(file: Path) -> str:
    """Return the hash of a file's contents; nothing for a file that is not there, or not for this user."""
    from hashlib import sha256

    try:
        return sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""


def _system() -> str:
    """Return what compiled modules are made for, and what their names don't say: such as ``x86_64 Linux, glibc 2.36``."""
    machine = os.uname()
    try:
        library = os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, OSError, ValueError):  # not glibc
        library = None
    return f"{machine.machine} {machine.sysname}{f', {library}' if library else ''}"


def _read(checkout: Path) -> _Mark | None:
    try:
        return _Mark(**json.loads((checkout / _MARK).read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):  # the latter in an archive
        return None
    except (OSError, ValueError, TypeError):
        return _Mark({}, {})


def _write(checkout: Path, mark: _Mark) -> None:
    """Write the mark in one step, because processes may read it meanwhile."""
    written = checkout / f"{_MARK}.new"
    written.write_text(json.dumps(mark._asdict()), encoding="utf-8")
    written.replace(checkout / _MARK)
