"""The Python environment that ``stormspark submit`` sends to a cluster: where it is, and whether a driver can run in it."""

from __future__ import annotations

import os
import re
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import click

from stormspark.cli.spark_options import local_path
from stormspark.hidden_secrets import without_secrets
from stormspark.launcher import is_url
from stormspark.working_folder import SHIPPED_PROJECT

__all__ = ["EnvironmentArchive", "environment_archive", "why_unfit"]

#: What Spark and YARN unpack. They copy any other file as it is.
_UNPACKED = (".tar.gz", ".tgz", ".tar", ".zip", ".jar")
#: The folder into which Spark unpacks it, if nothing else is said.
_NAME = "environment"
_PYTHON = "bin/python"
#: Where an environment has its packages. An egg is a folder between.
_PACKAGE = re.compile(r"(?:.+/)?(?:site|dist)-packages/(?:[^/]+\.egg/)?(\w+)/")
#: With this line in ``pyvenv.cfg``, packages may also come from the Python of the cluster.
_SYSTEM_TOO = re.compile(rb"^\s*include-system-site-packages\s*=\s*true\s*$", re.IGNORECASE | re.MULTILINE)


class EnvironmentArchive(NamedTuple):
    """The archive, as a path or a URL, and the name of the folder into which Spark unpacks it."""

    location: str
    name: str = _NAME

    @property
    def python(self) -> str:
        """The Python in it, as the driver on the cluster and the executors find it."""
        return f"./{self.name}/{_PYTHON}"

    @property
    def file(self) -> Path | None:
        """The file on this host; None if only Spark can open the archive."""
        path = local_path(self.location)
        return None if path is None else Path(path)


def environment_archive(
    context: click.Context, option: click.Parameter, given: str | None
) -> EnvironmentArchive | None:
    """Read what ``--environment-archive`` names: ``FILE``, ``FILE#NAME``, ``URL`` or ``URL#NAME``."""
    if given is None:
        return None
    location, mark, name = (given, "", "") if os.path.exists(given) else given.rpartition("#")
    if not mark or ("/" in name and not is_url(given)):  # a folder on the way may have # in its name
        location, mark, name = given, "", _NAME
    archive = EnvironmentArchive(location, name)
    msg = None
    if name == SHIPPED_PROJECT:
        msg = f"{name} is the folder in which executors have the project: give the environment another name, such as #env"
    elif mark and (re.fullmatch(r"[\w.-]+", name) is None or name in (".", "..")):
        msg = f"{name!r} is no name for the folder of an environment: give letters, digits, - and _ after the #, such as #env"
    elif (path := archive.file) is not None and not path.is_file():
        what = "is a folder" if path.is_dir() else "is no file" if path.exists() else "does not exist"
        msg = f"{location} {what} on this host, as seen from {os.getcwd()}: give an archive, made by venv-pack or conda-pack"
    elif not _path_of(location).lower().endswith(_UNPACKED):
        shown = without_secrets([location])[0]  # a URL may have a password or a key
        msg = f"Spark unpacks no {shown}, only {', '.join(_UNPACKED)}: pack the environment as one of these"
    elif is_url(location) and (wrong := re.search(r"[\s#]", location)) is not None:
        msg = f"a URL has no {wrong[0]!r} before the name of the folder: write {quote(wrong[0])}"
    if msg is not None:
        raise click.BadParameter(msg)
    return archive


def _path_of(location: str) -> str:
    return urlsplit(location).path if is_url(location) else location


@dataclass
class _Contents:
    """What was found among the names in an archive."""

    packages: set[str]
    pythons: list[str]
    system_too: bool = False


def why_unfit(archive: EnvironmentArchive, packages: Collection[str]) -> str | None:
    """Return why no driver and no worker could run in the environment, because it lacks a Python or one of these packages.

    None if it lacks nothing, or if only Spark can open the archive. This reads the names in it, until all are found. Packages
    that the Python of the cluster may add are not missed.
    """
    path = archive.file
    if path is None:
        return None
    try:
        found = _contents(path, set(packages))
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error) as error:
        return f"{path} can't be unpacked ({str(error) or type(error).__name__}): pack the environment again"
    if _PYTHON not in found.pythons:
        there = f", but {found.pythons[0]}" if found.pythons else ""
        return (
            f"{path} has no {_PYTHON}{there}: pack the environment with venv-pack or conda-pack, or what is in its folder, "
            f"without the folder"
        )
    lacking = [name for name in packages if name not in found.packages]
    if not lacking or found.system_too:
        return None
    return (
        f"the environment in {path} lacks {', '.join(lacking)}, which a topology needs on the cluster: install "
        f"{'it' if len(lacking) == 1 else 'them'} there, pip install 'stormspark[delta,pandas]', and pack it again"
    )


def _contents(path: Path, wanted: Collection[str]) -> _Contents:
    found = _Contents(set(), [])
    with closing(_names(path, found)) as names:
        for name in names:
            if (package := _PACKAGE.match(name)) is not None:
                found.packages.add(package[1])
            elif name == _PYTHON or name.endswith(f"/{_PYTHON}"):
                found.pythons.append(name)
            else:
                continue
            if _PYTHON in found.pythons and found.packages.issuperset(wanted):
                break
    return found


def _names(path: Path, found: _Contents) -> Generator[str]:
    """All names in an archive, in its order, without ``./`` before them."""
    if path.name.lower().endswith((".zip", ".jar")):
        with zipfile.ZipFile(path) as zipped:
            yield from zipped.namelist()
        return
    with tarfile.open(path, "r:" if path.suffix.lower() == ".tar" else "r:gz") as archive:
        for member in archive:
            name = member.name.removeprefix("./")
            if name == "pyvenv.cfg" and member.isreg() and (file := archive.extractfile(member)) is not None:
                found.system_too = _SYSTEM_TOO.search(file.read()) is not None
            yield f"{name}/" if member.isdir() else name
