"""Reads a folder or a file of a legacy project. It finds the files of each kind, and passes them to the module for this kind.

`read_project` runs no code of the project. `plan_each` runs such code, because it loads and plans each topology. Each topology
gets a process of its own, so that its code does not affect anything else.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from stormspark.compat.detection import kind_of
from stormspark.compat.topology_files import SKIPPED_FOLDERS
from stormspark.errors import TopologyNotFoundError
from stormspark.porting.clojure import read_clojure_files, report_those_that_run
from stormspark.porting.findings import Findings, Place, Statement, TopologyFound
from stormspark.porting.flux import is_flux, read_flux
from stormspark.porting.heronpy import read_heronpy
from stormspark.porting.hindrances import missing_modules
from stormspark.porting.java.python_text import python_name
from stormspark.porting.java.reading import ReadTopology, read_topologies, unreadable
from stormspark.porting.java.skeleton import skeleton
from stormspark.porting.java.source import JavaFile, JavaSources, java_parser, parse_file
from stormspark.porting.multilang import is_library, read_children, report_children
from stormspark.porting.petrel import read_petrel
from stormspark.porting.python2 import report_python2
from stormspark.porting.python_source import ORIGINALS, PythonFile, PythonProject
from stormspark.porting.streamparse import read_config, read_streamparse

__all__ = ["Progress", "Skeleton", "plan_each", "read_project"]

#: Larger files are not read, because nobody writes so much code by hand.
_LARGEST_BYTES: Final = 2_000_000
_PLANNING_SECS: Final = 120

_OF_STORM: Final = {"org.apache.storm", "backtype.storm", "org.apache.heron.api", "com.twitter.heron.api"}
_PARTS_OF_STORM: Final = """topology topology.base tuple task spout bolt testing drpc coordination grouping hooks windowing state
    streams utils generated transactional metric metric.api messaging""".split()

#: The name of a skeleton's Python file, and the content of the file.
Skeleton = tuple[str, str]

#: Called with what is read or planned now, before each file and each topology.
Progress: TypeAlias = Callable[[str], None]


def read_project(path: Path, progress: Progress = lambda text: None) -> tuple[Findings, list[Skeleton]]:
    """Read a folder or a file. Returns the findings, and a skeleton for each topology in Java or Clojure that can have one.

    Raises `TopologyNotFoundError` if the path does not exist, or has no file of a legacy topology. Raises
    `UnsupportedEnvironmentError` if there are Java files, but the parser for Java is not installed.
    """
    if not path.exists():
        msg = f"{path} does not exist"
        raise TopologyNotFoundError(msg)
    path = path.resolve()
    root = path if path.is_dir() else _root_of(path)
    findings = Findings(root.name or str(root))
    files = list(_files(root, findings)) if path.is_dir() else [path]
    by_kind: dict[str, list[Path]] = {}
    for file in files:
        by_kind.setdefault(file.suffix, []).append(file)
    skeletons: list[Skeleton] = []
    project = PythonProject(root)
    children = _read_python(project, by_kind.get(".py", []), findings, progress)
    _read_yaml(project, [*by_kind.get(".yaml", []), *by_kind.get(".yml", [])], findings)
    skeletons += read_clojure_files(project, by_kind.get(".clj", []), findings)
    if java := by_kind.get(".java", []):
        read = list(_read_java(project, path, java, findings, progress))
        skeletons += _written(read)
        findings.topologies += [one.found for one in read]
    report_children(project, children, findings)
    report_those_that_run(findings)
    if not findings.topologies:
        if not any(findings.files.values()):
            msg = (
                f"{path} has no file of streamparse, heronpy, Petrel, Flux, storm.py or Storm's Java: "
                f"name the project's folder"
            )
            raise TopologyNotFoundError(msg)
        findings.report("unread", "no topology was found in the files that were read")
    for topology in findings.topologies:
        topology.statements.append(
            Statement(
                "note",
                "whether it does the same as before was not checked",
                topology.place,
                "run both on the same input, and compare",
                grade="not checked",
            )
        )
    return findings, skeletons


def plan_each(findings: Findings, path: Path, progress: Progress = lambda text: None) -> None:
    """Load and plan each topology that is not in Java. This runs the project's code in other processes."""
    path = path.resolve()
    root = path if path.is_dir() else _root_of(path)
    planned = [one for one in findings.topologies if not one.front_end.startswith("java")]
    for number, topology in enumerate(planned, 1):
        progress(
            f"loading and planning topology {number:,} of {len(planned):,}: {topology.name}, {topology.place}"
        )
        file = root / topology.place.file
        named = (
            topology.front_end in ("streamparse", "heronpy")
            and topology.name.isidentifier()
            and topology.name != file.stem
        )
        function = topology.front_end == "petrel" and topology.name != file.parent.name
        of_class = (
            f":{topology.name}"
            if function or file.suffix == ".clj" or (named and _is_class(topology))
            else ""
        )
        done = _planned([f"{file}{of_class}", *_environment_of(file)])
        if done.returncode == 0:
            topology.plan = done.stdout.splitlines()[0] if done.stdout else ""
            topology.statements.append(
                Statement(
                    "runs", f"it can be loaded and planned: {topology.plan}", topology.place, grade="imported"
                )
            )
            _compare(topology, done.stdout)
        else:
            errors = " ".join(done.stderr.split())[:600]
            topology.statements.append(
                Statement(
                    "change",
                    f"it can't be loaded: {errors}",
                    topology.place,
                    "correct what the message names",
                    grade="imported",
                )
            )


def _planned(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stormspark.cli", "explain", *arguments, "--format", "text"]
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_PLANNING_SECS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(
            command, 1, "", f"loading and planning it took more than {_PLANNING_SECS} s"
        )


def _compare(topology: TopologyFound, plan: str) -> None:
    """If the source and the plan have different components, report the components that only one of the two has."""
    if not topology.components:
        return
    planned = set(re.findall(r"^  (?:spout|bolt ) (\S+):", plan, re.MULTILINE))
    read = {component.id for component in topology.components if component.id is not None}
    if planned != read:
        topology.statements.append(
            Statement(
                "unread",
                f"the plan differs: only the plan has {_listed(planned - read)}, only the source has {_listed(read - planned)}",
                topology.place,
                grade="imported",
            )
        )


def _listed(ids: set[str]) -> str:
    return ", ".join(sorted(ids)) or "nothing"


def _is_class(topology: TopologyFound) -> bool:
    return topology.name[:1].isupper()


def _environment_of(file: Path) -> list[str]:
    """If the streamparse project has several environments, return the option ``--environment`` with the first of them."""
    config = next(
        (folder / "config.json" for folder in file.parents if (folder / "config.json").is_file()), None
    )
    if config is None:
        return []
    names = read_config(config, "config.json", Findings(""))
    return ["--environment", names[0]] if len(names) > 1 else []


# -- files -------------------------------------------------------------------------------------------------------


def _files(root: Path, findings: Findings) -> Iterator[Path]:
    def unreadable_folder(error: OSError) -> None:
        findings.report("unread", f"a folder can't be read: {error.strerror}", Place(str(error.filename), 1))

    for folder, names, files in os.walk(root, onerror=unreadable_folder):
        names[:] = sorted(
            name
            for name in names
            if name not in SKIPPED_FOLDERS
            and not name.startswith(".")
            and not _is_virtualenv(Path(folder, name))
        )
        for name in sorted(files):
            path = Path(folder, name)
            if path.suffix not in (".py", ".yaml", ".yml", ".java", ".clj"):
                continue
            try:
                size = path.stat().st_size
            except OSError as error:
                findings.report(
                    "unread", f"can't be read: {error.strerror}", Place(path.relative_to(root).as_posix(), 1)
                )
                continue
            if size > _LARGEST_BYTES:
                findings.report(
                    "unread",
                    f"skipped: the file has {size:,} bytes, and the limit is {_LARGEST_BYTES:,}",
                    Place(path.relative_to(root).as_posix(), 1),
                )
                continue
            yield path


def _is_virtualenv(folder: Path) -> bool:
    """Return whether a folder is a virtual environment. Those of Python 2 have no pyvenv.cfg."""
    marks = ("pyvenv.cfg", "bin/activate", "Scripts/activate", "Scripts/activate.bat")
    return any((folder / mark).exists() for mark in marks)


def _root_of(file: Path) -> Path:
    """Return the root folder of the project to which a file belongs.

    For a Java file, this is the root of its packages. For another file, it is the folder of the streamparse project, if the file
    belongs to one, and otherwise the file's own folder.
    """
    if file.suffix == ".java":
        try:
            package = re.search(
                r"^\s*package\s+([\w.]+)\s*;",
                file.read_text(encoding="utf-8", errors="replace"),
                re.MULTILINE,
            )
        except OSError:
            return file.parent
        depth = package[1].count(".") + 1 if package else 0
        return file.parents[depth] if len(file.parents) > depth else file.parent
    for folder in file.parents:
        if (folder / "config.json").is_file():
            return folder
    beside = file.parent.parent
    return beside if file.parent.name == "topologies" else file.parent


# -- readers -----------------------------------------------------------------------------------------------------


def _read_python(
    project: PythonProject, paths: list[Path], findings: Findings, progress: Progress
) -> list[PythonFile]:
    """Read the topologies in Python. Returns the scripts that are children of Storm's multilang protocol."""

    def tree_of(path: Path) -> ast.Module | None:
        file = project.file(path)  # of a file in Python 2, the tree of its draft
        return file.tree if file is not None else None

    kinds: dict[str, list[Path]] = {}
    files = []
    for number, path in enumerate(paths, 1):
        progress(f"reading Python file {number:,} of {len(paths):,}: {project.shown(path)}")
        if not _is_copy_of_library(path, project.root) and (file := project.file(path)) is not None:
            files.append(file)
    for file in files:
        if (kind := kind_of(file.path, file.tree, tree_of)) is not None:
            kinds.setdefault(kind, []).append(file.path)
    readers = {"streamparse": read_streamparse, "heronpy": read_heronpy, "petrel": read_petrel}
    for name, reader in readers.items():
        for path in kinds.get(name, []):
            found = project.file(path)
            assert found is not None
            findings.topologies += reader(project, found)
    findings.files |= {name: len(found) for name, found in kinds.items()}
    for place, what in project.errors.values():
        findings.report("unread", what, place, "repair the file: nothing of it was read")
    children = read_children(project, files, findings)
    if children:
        findings.files["multilang"] = len(children)
    mattering = [path for found in kinds.values() for path in found if not _deploys(project, path)]
    mattering += [file.path for file in children]
    if (project.errors or project.old) and not mattering:
        findings.files["python"] = len(project.errors) + len(project.old)
    if mattering or project.old:
        libraries = [file for file in files if is_library(file.path)]
        report_python2(project, [file for file in files if file not in libraries], findings, progress)
        for file in libraries:
            if file.path in project.old:
                place, _ = project.old[file.path]
                findings.report(
                    "note",
                    f"{file.shown} is Storm's library for Python 2: stormspark's takes its place",
                    place,
                )
        _report_missing_modules(project, mattering, findings)
    if "streamparse" in kinds:
        for config in sorted({one for path in kinds["streamparse"] for one in _configs(path, project.root)}):
            read_config(config, project.shown(config), findings)
    return children


def _deploys(project: PythonProject, path: Path) -> bool:
    """Return whether a file has what ``sparse submit`` calls, such as fabfile.py. No topology needs what it imports."""
    file = project.file(path)
    return file is not None and any(
        one.module.startswith(("streamparse.ext.fabric", "streamparse.ext.invoke")) for one in file.modules
    )


def _is_copy_of_library(path: Path, root: Path) -> bool:
    """Return whether a file belongs to a library that a front-end replaces, of which the project has a copy."""
    folders = [one for one in path.parents if one != root and one.is_relative_to(root)]
    return any(one.name in ORIGINALS and (one / "__init__.py").is_file() for one in folders)


def _configs(path: Path, root: Path) -> Iterator[Path]:
    for folder in path.parents:
        if (folder / "config.json").is_file():
            yield folder / "config.json"
            return
        if folder == root:
            return


def _report_missing_modules(project: PythonProject, paths: list[Path], findings: Findings) -> None:
    """Report the missing modules that the topologies and their components import, each at its line (W12).

    The report names the requirements file that has the module, if there is one.
    """
    reported: set[str] = set()
    for file in project.reached(paths):
        for one in missing_modules(project, file):
            top = one.module.partition(".")[0]
            if top in reported:
                continue
            reported.add(top)
            requirements = _requirements_with(top, file.path, project.root)
            todo = (
                f"pip install -r {project.shown(requirements)}"
                if requirements
                else "install it, or put it into the project: no requirements file names it"
            )
            text = f"the module {top} is not installed here, and stormspark makes no virtualenv"
            if one.optional:
                text, todo = f"the module {top} is not installed here; the file tries to do without it", ""
            findings.report("note" if one.optional else "change", text, Place(file.shown, one.line), todo)


def _requirements_with(module: str, path: Path, root: Path) -> Path | None:
    wanted = re.sub(r"[-_.]+", "-", module).lower()
    for folder in path.parents:
        for file in [
            *sorted((folder / "virtualenvs").glob("*.txt")),
            *sorted(folder.glob("*requirements*.txt")),
        ]:
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
                name = re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)", line)
                if name and re.sub(r"[-_.]+", "-", name[1]).lower() == wanted:
                    return file
        if folder == root:
            break
    return None


def _read_yaml(project: PythonProject, paths: list[Path], findings: Findings) -> None:
    for path in paths:
        try:
            text = path.read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            findings.report("unread", f"can't be read: {error}", Place(project.shown(path), 1))
            continue
        if is_flux(text):
            findings.files["flux"] = findings.files.get("flux", 0) + 1
            read_flux(project, path, findings)


def _read_java(
    project: PythonProject, path: Path, paths: list[Path], findings: Findings, progress: Progress
) -> Iterator[ReadTopology]:
    parser = java_parser()
    alone = path if path.is_file() else None
    if alone is not None:
        paths = [one for one in _files(project.root, Findings("")) if one.suffix == ".java"]
    files: list[JavaFile] = []
    for number, one in enumerate(paths, 1):
        progress(f"reading Java file {number:,} of {len(paths):,}: {project.shown(one)}")
        try:
            files.append(parse_file(parser, one, project.shown(one)))
        except OSError as error:
            findings.report("unread", f"can't be read: {error.strerror}", Place(project.shown(one), 1))
    findings.files["java"] = 1 if alone is not None else len(files)
    sources = JavaSources(_without_storm(files, findings))
    shown = project.shown(alone) if alone is not None else None
    findings.statements += [
        one for one in unreadable(sources) if shown is None or (one.place and one.place.file == shown)
    ]
    for read in read_topologies(sources):
        if shown is None or read.found.place.file == shown:
            yield read


def _without_storm(files: list[JavaFile], findings: Findings) -> list[JavaFile]:
    """Leave out the files of Storm and Heron themselves, because the behaviour of their classes is known."""
    own = {
        one.package.removesuffix(".topology")
        for one in files
        for c in one.classes
        if c.name == "TopologyBuilder"
    }
    roots = own & _OF_STORM
    if not roots:
        return files
    inside = roots | {f"{root}.{part}" for root in roots for part in _PARTS_OF_STORM}
    findings.report("note", f"the sources of {', '.join(sorted(roots))} itself were left out")
    return [
        one
        for one in files
        if one.package not in inside and not one.package.startswith(tuple(f"{r}.trident" for r in roots))
    ]


def _written(read: list[ReadTopology]) -> list[Skeleton]:
    """Return a skeleton for each topology that can have one. Each is named after the class that builds the topology."""
    written: list[Skeleton] = []
    taken: set[str] = set()
    for one in read:
        if one.found.front_end not in ("java", "java-transactional") or not one.components:
            continue
        name = _free(python_name(one.owner.name if one.owner else one.found.name), taken)
        one.found.skeleton = f"{name}.py"
        written.append((one.found.skeleton, skeleton(one)))
    return written


def _free(name: str, taken: set[str]) -> str:
    # Python imports the skeleton by this name. So the name must not be that of a module that the skeleton or Python needs.
    wanted = (
        f"{name}_topology" if name in sys.stdlib_module_names or name in ("stormspark", "pyspark") else name
    )
    free, number = wanted, 2
    while free in taken:
        free, number = f"{wanted}_{number}", number + 1
    taken.add(free)
    return free
