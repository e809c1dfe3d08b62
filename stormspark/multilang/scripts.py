"""Finds the script of a child in the folders in which projects keep such scripts (I3, K20).

In Storm, the folder ``resources`` of the topology's jar is a child's working directory. Nobody builds a jar here. So the search
looks into the folders from which Maven and Leiningen would fill the jar, and into jars that stand in the project.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from stormspark.private_files import make_private
from stormspark.working_folder import from_start

__all__ = ["Found", "NotFound", "Script", "find", "script_of"]

#: The folders of a project that may become the jar's ``resources``, in the order of the search; the last is the folder itself.
LAYOUT = (
    "resources",
    "resources/resources",
    "multilang/resources",
    "multilang",
    "src/main/resources/resources",
    "src/main/multilang/resources",
    "src/main/multilang",
    "src/main/resources",
    "target/classes/resources",
    "",
)
#: The folders of a project in which its jars are.
_JARS = ("", "target", "build/libs", "lib")
#: A folder with one of these is the root of a project, and the search does not go further up.
_ROOTS = ("pom.xml", "build.gradle", "build.gradle.kts", "project.clj", "setup.py", "pyproject.toml", ".git")
#: If no folder above has such a file, the search ends after this many folders: it must not read a whole disk.
_MOST_FOLDERS = 6
_INTERPRETER = re.compile(r"(python|pypy|node|nodejs|ruby|perl|php|bash|sh|lua|Rscript)[\d.]*(\.exe)?")
#: Options whose value is the next word, and options after which there is no script.
_WITH_VALUE = frozenset({"-W", "-X", "-r", "--require", "-I", "-d", "--import"})
_NO_SCRIPT = frozenset({"-c", "-m", "-e", "--eval", "-p"})


class Script(NamedTuple):
    """The script of a command.

    ``interpreter`` is the name of the program that runs it, such as ``python3``, or "" if the script itself is the program.
    """

    interpreter: str
    name: str


class Found(NamedTuple):
    """The folder in which a child starts, and the file of its script."""

    folder: Path
    file: Path


class NotFound(NamedTuple):
    """The folders and jars that were searched for a script in vain."""

    script: str
    searched: list[str]

    def __str__(self) -> str:
        return f"{self.script!r} is in none of these, which were searched in this order: {', '.join(self.searched)}"


def script_of(command: Sequence[str]) -> Script | None:
    """Return the script that ``command`` runs, or None if it runs a program of the host, a module, or code in the command itself.

    >>> script_of(["python3", "-u", "bolts/split.py", "--fast"]), script_of(["./count"])
    (Script(interpreter='python3', name='bolts/split.py'), Script(interpreter='', name='./count'))
    >>> script_of(["/usr/bin/env", "node", "split.js"]), script_of(["python3", "-m", "split"]), script_of(["cat"])
    (Script(interpreter='node', name='split.js'), None, None)
    """
    program = command[0].rpartition("/")[2]
    if program == "env":
        rest = [word for word in command[1:] if "=" not in word and not word.startswith("-")]
        return script_of(rest) if rest else None
    if not _INTERPRETER.fullmatch(program):
        return Script("", command[0]) if "/" in command[0] else None
    words = iter(command[1:])
    for word in words:
        if word in _NO_SCRIPT:
            return None
        if word in _WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            return Script(program, word)
    return None


def find(script: str, beside: Path) -> Found | NotFound:
    """Search for ``script``, for a topology whose file is in the folder ``beside``.

    The search goes from ``beside`` up to the project's root. In each folder it looks into the folders of `LAYOUT`. Then it does
    the same in the worker's own folder. Jars are searched last.
    """
    searched: list[str] = []
    levels = list(_levels(beside))
    own = Path(os.path.abspath(from_start(".")))
    for folder in dict.fromkeys(
        [beside / "resources", own / "resources"]
        + [level / name for level in levels for name in LAYOUT]
        + [own]
    ):
        if (folder / script).is_file():
            return Found(folder.resolve(), folder / script)
        if folder.is_dir():
            searched.append(str(folder))
    for jar in _jars(levels):
        unpacked = _resources_of(jar, script)
        if unpacked is not None:
            return Found(unpacked, unpacked / script)
        searched.append(f"{jar} (resources/)")
    return NotFound(script, searched)


def _levels(beside: Path) -> Iterator[Path]:
    """Yield ``beside`` and the folders above it, up to the root of the project, but never the user's home folder or a root."""
    beside = beside.resolve()
    stop = {Path(beside.anchor), Path(os.path.expanduser("~")), Path(tempfile.gettempdir()).resolve()}
    levels = []
    for folder in [beside, *beside.parents][:_MOST_FOLDERS]:
        if folder in stop:
            break
        levels.append(folder)
        if any((folder / name).exists() for name in _ROOTS):
            # A module of a larger project may use the scripts of the project that it belongs to.
            parent = folder.parent
            if (folder / "pom.xml").exists() and (parent / "pom.xml").exists():
                continue
            break
    else:
        # No root is near: the folders further up belong to other things.
        levels = levels[:3]
    yield from levels or [beside]


def _jars(levels: Sequence[Path]) -> Iterator[Path]:
    """Yield the jars of a project; in each folder, the newest one first."""
    for level in levels:
        for name in _JARS:
            jars = [jar for jar in (level / name).glob("*.jar") if jar.is_file()]
            yield from sorted(jars, key=lambda jar: jar.stat().st_mtime, reverse=True)


def _resources_of(jar: Path, script: str) -> Path | None:
    """Unpack a jar's folder ``resources`` if it has ``script``, and return the unpacked folder. Only the user can read it.

    The next call with the same jar returns the same folder.
    """
    wanted = f"resources/{script.removeprefix('./')}"
    try:
        with zipfile.ZipFile(jar) as archive:
            if wanted not in archive.namelist():
                return None
            state = jar.stat()
            key = f"{jar.resolve()} {state.st_mtime_ns} {state.st_size}"
            base = Path(tempfile.gettempdir(), f"stormspark-{os.getuid()}", "jars")
            make_private(base.parent)
            make_private(base)
            folder = base / hashlib.sha256(key.encode()).hexdigest()[:24]
            if not folder.is_dir():
                _unpack(archive, base, folder)
    except (OSError, zipfile.BadZipFile):
        return None
    return folder / "resources"


def _unpack(archive: zipfile.ZipFile, base: Path, folder: Path) -> None:
    new = Path(tempfile.mkdtemp(dir=base))
    try:
        for entry in archive.infolist():
            if entry.filename.startswith("resources/"):
                file = Path(archive.extract(entry, new))
                if file.is_file():
                    file.chmod(
                        0o700
                    )  # jars do not say what is a program, and Storm makes all of these executable
        new.rename(folder)
    except OSError:
        shutil.rmtree(new, ignore_errors=True)
        if not folder.is_dir():  # another worker of this host may have been faster
            raise
