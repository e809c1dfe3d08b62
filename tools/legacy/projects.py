"""The topologies of a checkout, as `stormspark port` finds them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.legacy.processes import message, stormspark

__all__ = ["Candidate", "NotReadError", "candidates", "checkouts", "copied"]

_PORT_SECS = 120
#: What is not copied: a project's history, and environments of its own.
_LEFT_OUT = shutil.ignore_patterns(".git", "node_modules", ".venv", "venv", "__pycache__")
_KINDS = {
    "streamparse": "streamparse",
    "streamparse-clojure": "streamparse, Clojure",
    "heronpy": "heronpy",
    "heronpy-streamlet": "heronpy",
    "petrel": "Petrel",
    "flux": "Flux",
}
_OVER_MULTILANG = re.compile(r"multilang protocol|FluxShell")
#: What says that a file of Clojure is a topology of streamparse 1 or 2.
_PYTHON_SPECS = re.compile(r"\bpython-(spout|bolt)-spec\b")


class NotReadError(Exception):
    """`stormspark port` could not read the checkout."""


@dataclass
class Candidate:
    """A topology of a project: ``arguments`` are those of ``stormspark run``. Without them, ``why`` says why it can't be run."""

    name: str
    place: str
    kind: str
    arguments: list[str] = field(default_factory=list)
    why: str = ""


def checkouts(folder: Path) -> list[Path]:
    """Return the projects in ``folder``: each folder in it is one."""
    return sorted(one for one in folder.iterdir() if one.is_dir() and not one.name.startswith("."))


def copied(checkout: Path, into: Path) -> Path:
    """Copy a checkout, because its code may write into its own folder. Links are kept as links."""
    copy = into / checkout.name
    shutil.copytree(checkout, copy, symlinks=True, ignore=_LEFT_OUT)
    if (checkout / ".git").exists():
        (copy / ".git").mkdir()  # it marks the project's root
    return copy


def candidates(project: Path, home: Path) -> Iterator[Candidate]:
    """Yield the topologies of a project. For Java topologies, write the skeletons into the project's folder.

    Raises `NotReadError` if there is a bug in the reader.
    """
    done = stormspark(["port", str(project), "--json", "--out", str(project)], home, _PORT_SECS)
    try:
        found = json.loads(done.output)
    except ValueError:
        msg = f"stormspark port: {message(done.errors) or f'ended with {done.code}'}"
        raise NotReadError(msg) from None
    files = [one["place"]["file"] for one in found["topologies"]]
    for one in found["topologies"]:
        yield _candidate(project, one, alone=files.count(one["place"]["file"]) == 1)
    yield from _others(project, files)


def _candidate(project: Path, one: dict[str, Any], *, alone: bool) -> Candidate:
    front_end, place = one["front_end"], one["place"]
    shown = f"{place['file']}:{place['line']}"
    kind = _KINDS.get(front_end, "Java")
    said = " ".join(
        [each["text"] for each in one["statements"]] + [each["type_name"] or "" for each in one["components"]]
    )
    if kind in ("Java", "Flux") and _OVER_MULTILANG.search(said):
        kind += ", multilang"
    if kind.startswith("Java"):
        skeleton = one.get("skeleton")
        if not skeleton:
            return Candidate(one["name"], shown, kind, why=_first_change(one) or "no skeleton")
        return Candidate(one["name"], shown, kind, [str(_moved(project / skeleton, project, place["file"]))])
    file = project / place["file"]
    if kind.startswith("Flux"):
        return Candidate(one["name"], shown, kind, [str(file), *_properties(file)])
    default = front_end == "petrel" and one["name"] == file.parent.name  # its function create
    named = not alone and not default and (one["name"].isidentifier() or file.suffix == ".clj")
    return Candidate(one["name"], shown, kind, [f"{file}:{one['name']}" if named else str(file)])


def _moved(skeleton: Path, project: Path, java: str) -> Path:
    """Move a skeleton into the folder of its Maven project, because its children's scripts are searched from there."""
    for folder in (project / java).parents:
        if folder == project:
            break
        if (folder / "pom.xml").is_file() or (folder / "project.clj").is_file():
            return skeleton.replace(folder / skeleton.name)
    return skeleton


def _first_change(one: dict[str, Any]) -> str:
    return next((str(each["text"]) for each in one["statements"] if each["kind"] in ("change", "unread")), "")


def _properties(file: Path) -> list[str]:
    """Return the options for variables: the environment, and the file of properties beside it, if there is only one."""
    if "${" not in file.read_text(encoding="utf-8", errors="replace"):
        return []
    beside = sorted(file.parent.glob("*.properties"))
    return ["--env-filter", *(["--filter", str(beside[0])] if len(beside) == 1 else [])]


def _others(project: Path, known: list[str]) -> Iterator[Candidate]:
    """Yield topologies that `stormspark port` did not find: Clojure that it could not read, and Flux's with another suffix."""
    for file in sorted([*project.rglob("*.clj"), *project.rglob("*.flux")]):
        shown = file.relative_to(project).as_posix()
        if shown in known or not file.is_file():
            continue
        text = file.read_text(encoding="utf-8", errors="replace")
        if file.suffix == ".clj" and _PYTHON_SPECS.search(text):
            yield Candidate(file.stem, f"{shown}:1", "streamparse, Clojure", [str(file)])
        elif file.suffix == ".flux" and re.search(r"^(spouts|bolts|topologySource):", text, re.MULTILINE):
            yield Candidate(file.stem, f"{shown}:1", "Flux", [str(file), *_properties(file)])
