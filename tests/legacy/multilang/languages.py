"""Children in several languages, in a folder as a topology's resources are; what a machine lacks is skipped, and says so."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.maven_jars import maven_jars

__all__ = ["CHILDREN", "OBEY", "SENTENCES", "SPLITTERS", "resources"]

CHILDREN = Path(__file__).parent / "children"
#: A bolt's child that does what its tuples say.
OBEY = [sys.executable, str(CHILDREN / "obey.py")]
#: By name: the command of a child that splits sentences, and what it needs.
SPLITTERS = {
    "storm.py": (["python3", "split_storm.py"], "storm.py"),
    "storm.js": (["node", "split_storm.js"], "storm.js"),
    "node": (["node", "split.js"], "node"),
    "c": (["./split"], "cc"),
}
#: Words in ASCII, without escapes: the child in C knows no more.
SENTENCES = [
    f"{subject} {verb} {thing} {number % 7}"
    for number, (subject, verb, thing) in enumerate(
        [
            ("the cow", "jumped over", "the moon"),
            ("an apple", "a day keeps", "the doctor away"),
            ("four score", "and", "seven"),
        ]
        * 40
    )
]


def resources(folder: Path, *needs: str) -> Path:
    """Put the children into ``folder``, with what is needed; skips the test where that can't be had."""
    shutil.copytree(CHILDREN, folder, dirs_exist_ok=True)
    for need in needs:
        if need in ("storm.py", "storm.js"):
            if need == "storm.js":
                _program("node")
            _storm_library(folder, need)
        elif need == "cc":
            compiler = _program("cc", "gcc")
            subprocess.run(
                [compiler, "-O1", "-o", folder / "split", folder / "split.c"], check=True, timeout=300
            )
        else:
            _program(need)
    return folder


def _program(*names: str) -> str:
    for name in names:
        if found := shutil.which(name):
            return found
    pytest.skip(f"no {' or '.join(names)} on the PATH")


def _storm_library(folder: Path, name: str) -> None:
    """Storm's own library, as its Maven artifact has it."""
    try:
        jars = maven_jars("multilang")
    except RuntimeError as error:
        pytest.skip(f"Storm's {name} can't be had: {error}")
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            if f"resources/{name}" in archive.namelist():
                (folder / name).write_bytes(archive.read(f"resources/{name}"))
                return
    pytest.skip(f"none of the jars has {name}: {jars}")
