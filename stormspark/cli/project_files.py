"""Packs a project for a cluster: all its files for the driver and the executors, and its modules for Python."""

from __future__ import annotations

import os
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import IO, NamedTuple

import click

from stormspark.cli.load import FrontEndOptions, parse_target
from stormspark.cli.secret_files import is_secret, secrets_among
from stormspark.compat.detection import legacy_kind

__all__ = ["Packed", "pack", "project_of"]

#: Folders that a cluster has no use for. Those whose names begin with a dot are left out as well, and Python environments.
_LEFT_OUT = frozenset({"__pycache__", "node_modules", "spark-warehouse", "metastore_db"})
#: What tools for packages write, unless it is a package itself.
_BUILT = frozenset({"build", "dist"})
#: Why something is left out.
_LINK, _UNREADABLE = "folders that are links", "folders that this user can't read"
_OUTSIDE, _UNREADABLE_FILE = "links that lead out of the project", "files that this user can't read"
_NAME, _HIDDEN_SECRET = "names that are not UTF-8", "secrets whose names begin with a dot"
#: A project has source code and small resources. Whatever is larger belongs into storage that the cluster can read.
_MOST_BYTES = 200 * 1024 * 1024
#: The time in the archives, so that the same project gives the same archive.
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


class Packed(NamedTuple):
    """The archives of a project, and what was packed."""

    #: All files, for the working directory of the driver and of each executor.
    files: Path
    #: The modules, as Python finds them. None if the project has none.
    modules: Path | None
    files_packed: int
    bytes_packed: int
    #: Those of the packed files that look like secrets, as paths in the project; of a folder for secrets, its name.
    secrets: Sequence[str] = ()
    #: What was left out though it may be a part of the project: for each reason, paths in the project.
    left_out: Mapping[str, Sequence[Path]] = MappingProxyType({})


def project_of(text: str, front_end: FrontEndOptions) -> Path:
    """Return the folder of the project to which ``FILE[:NAME]`` belongs.

    That is the folder of ``config.json`` for streamparse. Otherwise it is the working directory if the file is in it, because
    paths in the topology begin there; else it is the file's folder.
    """
    file = parse_target(text).file
    if file.is_dir():
        return file.resolve()
    if front_end.name is None and legacy_kind(file) == "streamparse":
        from stormspark.compat.streamparse.project import project_folder

        if (folder := project_folder(file)) is not None:
            return folder.resolve()
    here, path = Path.cwd().resolve(), file.resolve()
    return here if path.is_relative_to(here) else path.parent


def pack(project: Path, into: Path) -> Packed:
    """Pack ``project`` into archives in the folder ``into``. The folders on the module path say where its modules are.

    Raises `click.UsageError` if the project is too large for that.
    """
    left_out: dict[str, list[Path]] = {}
    found = [(file, file.stat().st_size) for file in _files(project, {into.resolve()}, left_out)]
    size = sum(bytes_ for _, bytes_ in found)
    if size > _MOST_BYTES:
        largest = sorted(found, key=lambda one: -one[1])[:3]
        names = ", ".join(f"{file.relative_to(project)} ({bytes_ >> 20} MB)" for file, bytes_ in largest)
        msg = (
            f"the project {project} has {size >> 20} MB in {len(found)} files, too much to send with each submission; the "
            f"largest are {names}: name a smaller folder (--project), or put data where the cluster can read it"
        )
        raise click.UsageError(msg)
    files = [file for file, _ in found]
    everything = _archive(into / "project.zip", ((file, file.relative_to(project)) for file in files))
    modules: dict[Path, Path] = {}
    for root in _roots(project):
        for file in files:
            if file.suffix == ".py" and file.is_relative_to(root):
                modules.setdefault(file.relative_to(root), file)
    zipped = _archive(into / "modules.zip", ((file, name) for name, file in modules.items()))
    secrets = secrets_among(file.relative_to(project) for file in files)
    return Packed(everything, zipped if modules else None, len(files), size, secrets, left_out)


def _roots(project: Path) -> list[Path]:
    """Return the folders in the project that are on the module path, in that order. Loading the topology has put them there."""
    found = [Path(entry or os.curdir).resolve() for entry in sys.path]
    return [one for one in dict.fromkeys(found) if one.is_dir() and one.is_relative_to(project)]


def _files(project: Path, spared: set[Path], left_out: dict[str, list[Path]]) -> Iterator[Path]:
    """All files of the project. What is not shipped, though it may be a part of it, goes to ``left_out``, with the reason."""
    for folder, folders, names in os.walk(project):
        here = Path(folder)
        wanted = []
        for name in sorted(folders):
            path = here / name
            if name.startswith(".") and is_secret(name):
                left_out.setdefault(_HIDDEN_SECRET, []).append(path.relative_to(project))
            if name.startswith(".") or path.resolve() in spared:
                continue
            why = None if os.access(path, os.R_OK | os.X_OK) else _UNREADABLE
            if why is None and not _belongs(path):
                continue
            # A link may lead anywhere.
            why = why or (_LINK if path.is_symlink() else None if _is_utf_8(name) else _NAME)
            if why is None:
                wanted.append(name)
            else:
                left_out.setdefault(why, []).append(path.relative_to(project))
        folders[:] = wanted
        for name in sorted(names):
            file = here / name
            if file.suffix in (".pyc", ".log") or not file.is_file():
                continue
            if (why := _why_not_shipped(file, project)) is None:
                yield file
            elif why:
                left_out.setdefault(why, []).append(file.relative_to(project))


def _why_not_shipped(file: Path, project: Path) -> str | None:
    """Return why a file is left out; an empty string if nobody needs to know that; None if it is shipped."""
    if file.name.startswith("."):
        return _HIDDEN_SECRET if is_secret(file.name) else ""
    if not _is_utf_8(file.name):
        return _NAME
    if file.is_symlink():
        # Whoever made the link may not know that its file goes to other hosts, and the file may be anybody's.
        target, here = file.resolve(), project.resolve()
        if not target.is_relative_to(here):
            return _OUTSIDE
        parts = target.relative_to(here).parts
        if any(part.startswith(".") for part in parts) and any(map(is_secret, parts)):
            return _HIDDEN_SECRET
    return None if os.access(file, os.R_OK) else _UNREADABLE_FILE


def _is_utf_8(name: str) -> bool:
    """Whether an archive can have a file of this name. Linux allows any bytes there."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _belongs(folder: Path) -> bool:
    """Whether a folder is part of a project. A Python environment is not, nor is the checkpoint of a topology."""
    name = folder.name
    if name in _LEFT_OUT or name.endswith(".egg-info"):
        return False
    if name in _BUILT and not (folder / "__init__.py").exists():
        return False
    marks = ("pyvenv.cfg", "conda-meta/history", "stormspark/control.json")
    return not any((folder / mark).exists() for mark in marks)


def _archive(path: Path, entries: Iterable[tuple[Path, Path]]) -> Path:
    """Write an archive that only this user can read (mode 0600), in place of one that may be there."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with open(descriptor, "wb") as file:
            _write(file, entries)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    return path


def _write(file: IO[bytes], entries: Iterable[tuple[Path, Path]]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for source, name in sorted(entries, key=lambda one: one[1].as_posix()):
            entry = zipfile.ZipInfo(name.as_posix(), _LONG_AGO)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (
                source.stat().st_mode & 0o777
            ) << 16  # scripts of other languages stay executable
            archive.writestr(entry, source.read_bytes())
