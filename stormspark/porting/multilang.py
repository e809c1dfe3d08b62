"""Finds the children of Storm's multilang protocol: scripts that use Storm's ``storm.py``, and the components that start them.

A component with a child runs as it is if the script of its command is in the project.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from stormspark import multilang
from stormspark.porting.findings import ComponentFound, Findings, Place, TopologyFound
from stormspark.porting.hindrances import hindrance
from stormspark.porting.python_source import CHILDRENS_MODULE, PythonFile, PythonProject

__all__ = ["is_child", "is_library", "read_children", "report_children"]

_OF_STORM: Final = {"Bolt", "BasicBolt", "Spout", "emit", "ack", "log"}
#: Storm brings it along for every child. A later version of stormspark may, too.
_BROUGHT: Final = Path(multilang.__file__).parent / "libraries" / "storm.py"
_INTERPRETER: Final = re.compile(r"(python|pypy|node|nodejs|ruby|perl|php|bash|sh|lua|Rscript)[\d.]*")
#: Folders in which nobody keeps sources.
_NO_SOURCES: Final = {"node_modules", "site-packages", "__pycache__", "target", "build", "dist", ".git"}


def is_child(project: PythonProject, file: PythonFile) -> bool:
    """Return whether a file is a child in Python. If it has a ``storm.py`` beside it, that must look like Storm's."""
    if file.path.stem == CHILDRENS_MODULE or all(one.module != CHILDRENS_MODULE for one in file.modules):
        return False
    beside = file.path.parent / f"{CHILDRENS_MODULE}.py"
    return not beside.is_file() or _is_storms(beside)


def is_library(path: Path) -> bool:
    """Return whether a file is Storm's library for children. One for Python 2 needs no change: stormspark's takes its place."""
    return path.name == f"{CHILDRENS_MODULE}.py" and path.is_file() and _is_storms(path)


def _is_storms(path: Path) -> bool:
    """Return whether a file is Storm's library, in any of its versions, and not another file of this name."""
    text = path.read_text("utf-8", "replace")
    return sum(re.search(rf"^(def|class) {name}\b", text, re.M) is not None for name in _OF_STORM) >= 4


def read_children(
    project: PythonProject, files: Sequence[PythonFile], findings: Findings
) -> list[PythonFile]:
    """Return the children in Python. Report those whose ``storm.py`` is missing."""
    children = [file for file in files if is_child(project, file)]
    for file in children:
        if _library(project, file) is not None:
            continue
        line = next(one.line for one in file.modules if one.module == CHILDRENS_MODULE)
        brought = _BROUGHT.is_file()
        findings.report(
            "note" if brought else "change",
            f"{file.shown} imports storm: that is Storm's multilang library, which Storm puts beside each child, "
            f"and no package that pip installs",
            Place(file.shown, line),
            "stormspark brings one along, too"
            if brought
            else "put storm.py of Storm (storm-multilang/python) beside the script",
        )
    return children


def _library(project: PythonProject, file: PythonFile) -> Path | None:
    """Return the ``storm.py`` that a child imports: the one beside it, or another one in the project."""
    name = f"{CHILDRENS_MODULE}.py"
    candidates = [file.path.parent / name, *sorted(_named(project.root, name))]
    return next((one for one in candidates if one.is_file() and _is_storms(one)), None)


def report_children(project: PythonProject, children: Sequence[PythonFile], findings: Findings) -> None:
    """Report, for each component with a child, whether its script was found; and the children that nothing starts."""
    started: set[Path] = set()
    for topology in findings.topologies:
        for component in topology.components:
            if component.command:
                started |= set(_report_command(project, topology, component, findings))
    for file in children:
        if file.path in started:
            continue
        for name, base, line in _classes(file):
            kind = "Spout" if base == "Spout" else "Bolt"
            findings.report(
                "note",
                f"{file.shown} is a child for Storm's multilang protocol ({name} extends storm.{base}), and no topology "
                f"was found that starts it",
                Place(file.shown, line),
                f"it runs as the child of a Shell{kind}: "
                f'stormspark.multilang.Shell{kind}(["python3", "{file.path.name}"], [...]), see docs/multilang.md',
            )
            break


def _classes(file: PythonFile) -> Iterator[tuple[str, str, int]]:
    for node in ast.walk(file.tree):
        if isinstance(node, ast.ClassDef):
            for base in node.bases:
                name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
                if name in ("Bolt", "BasicBolt", "Spout"):
                    yield node.name, name, node.lineno


def _report_command(
    project: PythonProject, topology: TopologyFound, component: ComponentFound, findings: Findings
) -> Iterator[Path]:
    command = " ".join(component.command)
    script = _script(component.command)
    label = f"{component.label}, {component.type_name}"
    if script is None:
        program = component.command[0]
        if shutil.which(program) is None:
            topology.report(
                "note",
                f"{label}: its child is the program {program!r}, which was not found here: `{command}`",
                component.place,
                "each host with a worker needs it",
            )
        else:
            topology.report(
                "runs",
                f"{label}: its child process runs unchanged, over Storm's multilang protocol: `{command}`",
                component.place,
            )
        return
    beside = (project.root / topology.place.file).parent
    found = sorted(_found(project.root, script), key=lambda path: (_distance(path.parent, beside), path))
    if not found:
        topology.report(
            "change",
            f"{label}: the script of its child, {script}, was not found in the project: `{command}`",
            component.place,
            "put it into a folder resources beside the topology's file (docs/multilang.md)",
        )
        return
    yield from found
    where = project.shown(found[0])
    file = project.file(found[0]) if found[0].suffix == ".py" else None
    library = _library(project, file) if file is not None and is_child(project, file) else None
    own = library if not _BROUGHT.is_file() else None  # one for Python 2 is replaced where the child starts
    old = [
        one
        for one in (found[0], own)
        if one is not None and (project.shown(one) in findings.python3 or one in project.errors)
    ]
    if (
        file is not None
        and not old
        and is_child(project, file)
        and library is None
        and not _BROUGHT.is_file()
    ):
        topology.report(
            "note", f"{label}: its child, {where}, runs unchanged once storm.py is beside it", component.place
        )
        return
    if not old and file is not None:
        own_interpreter = "/" in component.command[0]  # which has modules of its own
        hindered = hindrance(project, file, with_modules=not own_interpreter)
        if hindered is not None:
            topology.report(
                "change",
                f"{label}: its child process, {where}, can't run as it is: {hindered.text}: `{command}`",
                hindered.place,
                "see what the project needs",
            )
            return
    topology.report(
        "change" if old else "runs",
        f"{label}: the Python of its child process is Python 2, {' and '.join(map(project.shown, old))}: `{command}`"
        if old
        else f"{label}: its child process, {where}, runs unchanged, over Storm's multilang protocol: `{command}`",
        component.place,
        "use the draft in Python 3, or name an interpreter of Python 2 in the command" if old else "",
    )
    if topology.skeleton or topology.front_end.startswith("java"):
        topology.report(
            "note",
            f"{label}: a worker looks for {script} in the folder resources beside the skeleton",
            component.place,
            f"copy {project.shown(found[0].parent)} there, as resources",
        )


def _script(command: Sequence[str]) -> str | None:
    """Return the script in a command; None if the command only has a program that each host must have.

    >>> _script(["python3", "-u", "split.py", "--fast"]), _script(["./count"]), _script(["node", "-e", "1"]), _script(["cat"])
    ('split.py', './count', None, None)
    """
    first, *rest = [word for one in command for word in one.split()]
    if not _INTERPRETER.fullmatch(first.rpartition("/")[2]):
        has_suffix = Path(first).suffix in (".py", ".js", ".rb", ".sh", ".pl", ".php")
        return first if has_suffix or first.startswith(("./", "../")) else None
    for word in rest:
        if word in ("-c", "-m", "-e", "--eval"):
            return None
        if not word.startswith("-"):
            return word
    return None


def _found(root: Path, script: str) -> Iterator[Path]:
    """Yield the files of the project that ``script`` may mean."""
    parts = [part for part in script.split("/") if part not in ("", ".", "..")]
    for path in _named(root, parts[-1]):
        if list(path.parts[-len(parts) :]) == parts:
            yield path


def _distance(one: Path, other: Path) -> int:
    """Return how many steps up and down lead from one folder to another."""
    shared = len(Path(os.path.commonpath([one, other])).parts)
    return len(one.parts) + len(other.parts) - 2 * shared


def _named(root: Path, name: str) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(one for one in folders if one not in _NO_SOURCES)
        if name in files:
            yield Path(folder, name)
