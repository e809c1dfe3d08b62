"""Loads a topology from a file of a streamparse project (A37)."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from stormspark.api.topology import Topology
from stormspark.compat.streamparse.clojure.lowering import ClassLoader, chosen_topology, topology_class
from stormspark.compat.streamparse.clojure.scripts import children_folder
from stormspark.compat.streamparse.clojure.topologies import read_clojure
from stormspark.compat.streamparse.clojure.values import ClojureError
from stormspark.compat.streamparse.lowering import lower, runs_a_command
from stormspark.compat.streamparse.project_config import Environment, ProjectConfig, find_config
from stormspark.compat.streamparse.requirements import how_to_install
from stormspark.compat.streamparse.shipping import on_path
from stormspark.compat.streamparse.topology import TopologyType
from stormspark.compat.topology_files import topology_files
from stormspark.errors import TopologyNotFoundError
from stormspark.user_code import import_file, older_python, other_module, put_first
from stormspark.working_folder import from_start

__all__ = ["load", "project_folder", "topology_file"]

_log = logging.getLogger(__name__)

#: The setting that names the working directory of components (I3).
WORKING_FOLDER = "stormspark.working.dir"
#: The options that ``sparse run`` and ``sparse submit`` of streamparse 1 and 2 give to each topology, unless others are set.
OPTIONS_OF_SPARSE = {"topology.max.spout.pending": 5000, "topology.message.timeout.secs": 60}


def load(
    file: Path | str,
    name: str | None = None,
    *,
    environment: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Topology:
    """Load the first topology in ``file``, or the topology class ``name`` in it.

    A file whose name ends with ``.clj`` is Clojure, for streamparse 1 and 2. Its last topology is loaded, or the one called
    ``name``. Its function gets ``options`` on top of the environment's. If ``file`` is a project's folder, see `topology_file`.

    ``config.json`` is looked for in the file's folder and above it. The project's folder is the folder of ``config.json`` or, if
    there is none, the parent of the file's folder. Four folders are added to the module path, if they exist: the project's
    folder, the folder ``src`` in it, the folder ``src`` beside the file's folder, and stormspark's folder with the package
    ``streamparse``.

    Raises `TopologyNotFoundError` if there is no topology, or if the file can't be imported. The message has the user's line. If
    a module is missing, the message also has the requirements file that names the module. Raises `InvalidTopologyError` for a
    topology that can't run.
    """
    file = Path(file)
    if file.is_dir():
        file = topology_file(file)
    config = find_config(file)
    topologies = file.resolve().parent
    project = _folder_of(config, file)
    folders = [project, topologies.parent / "src", project / "src"]
    for folder in (*folders, on_path()):  # the last folder becomes the first on the path
        if folder.is_dir():
            put_first(folder)
    sources = next((folder for folder in reversed(folders) if folder.is_dir()), project)
    virtualenvs = config.content.get("virtualenv_specs")
    requirements = project / (virtualenvs if isinstance(virtualenvs, str) else "virtualenvs")
    if file.suffix == ".clj":
        _import_flux_classes()
        return _in_clojure(file, name, config.environment(environment), options or {}, sources, requirements)
    module = _imported(file, project, requirements)
    _import_flux_classes()
    cls, called = _chosen(module, file, name)
    for spec in cls.specs:
        if (taken := other_module(getattr(spec.component_cls, "__module__", ""))) is not None:
            msg = f"{spec.declared_at}: {spec.called}: {taken}"
            raise TopologyNotFoundError(msg)
    chosen = config.environment(environment)
    chosen.warn()
    options = chosen.options(cls.config)
    shipped = _shipped(config, file)
    if shipped is not None:
        options = {WORKING_FOLDER: str(shipped), **options}
    return lower(cls, called, options, environment=chosen.name, folder=shipped or topologies)


def _shipped(config: ProjectConfig, file: Path) -> Path | None:
    """Return the folder whose files Storm puts into the working directory of components: the sources of the project.

    Return None for a file that belongs to no project.
    """
    project, topologies = _folder_of(config, file), file.resolve().parent
    for folder in (project / "src", topologies.parent / "src"):
        if folder.is_dir():
            return folder.resolve()
    return project if config.file is not None or topologies.name == "topologies" else None


def project_folder(file: Path) -> Path | None:
    """Return the folder of the project to which a topology's file belongs, in which ``sparse`` has to be called. None for a file
    that belongs to no project.
    """
    config = find_config(file)
    return None if _shipped(config, file) is None else _folder_of(config, file)


def _folder_of(config: ProjectConfig, file: Path) -> Path:
    return (config.file if config.file is not None else file.resolve().parent).parent.resolve()


def topology_file(project: Path, name: str | None = None) -> Path:
    """Return the file of a topology in a project's folder, as ``sparse run --name`` finds it.

    It is ``NAME.py`` or ``NAME.clj`` in the folder that ``topology_specs`` of ``config.json`` names, by default ``topologies``.
    Without a name it is the only such file. Raises `TopologyNotFoundError` if there is no such file, or a choice.
    """
    config = find_config(project / "a file")
    specs = config.content.get("topology_specs")
    root = config.file.parent if config.file is not None else project
    folder = root / (specs if isinstance(specs, str) and specs else "topologies")
    files = [
        one
        for suffix in (".py", ".clj")
        for one in sorted(folder.glob(f"*{suffix}"))
        if one.stem != "__init__"
    ]
    there = ", ".join(repr(one.stem) for one in files) or "none"
    if name is not None:
        files = [one for one in files if name in (one.stem, one.name)]
        if not files:
            msg = f"{folder} has no topology {name!r}; there are {there}"
            raise TopologyNotFoundError(msg)
        return files[0]
    if not files:
        of_project = f", and there is no topology in {folder}" if folder.is_dir() else ""
        found = topology_files(project)
        naming = f": {', '.join(map(str, found))}" if found else ""
        msg = f"{project} is a folder{of_project}; name a file in it{naming}"
        raise TopologyNotFoundError(msg)
    if len(files) > 1:
        msg = f"{project} has several topologies: choose one by --name: {there}"
        raise TopologyNotFoundError(msg)
    return files[0]


def _in_clojure(
    file: Path,
    name: str | None,
    environment: Environment,
    own: Mapping[str, Any],
    sources: Path,
    requirements: Path,
) -> Topology:
    if not file.is_file():
        msg = f"{file} does not exist"
        raise TopologyNotFoundError(msg)
    environment.warn()
    options = {**OPTIONS_OF_SPARSE, **environment.options(own)}
    try:
        read = read_clojure(file, options)
    except ClojureError as error:
        msg = f"{file}:{error.line}: {error.problem}"
        raise TopologyNotFoundError(msg) from error
    shipped = _shipped(find_config(file), file)
    if shipped is not None:
        options = {WORKING_FOLDER: str(shipped), **options}
    given = options.get(WORKING_FOLDER)
    working = Path(from_start(given)) if isinstance(given, str) and given else None
    loader = ClassLoader(
        sources,
        working if working is not None and working.is_dir() else shipped,
        lambda module: how_to_install(module, requirements, file.stem),
    )
    topology = chosen_topology(read, name)
    cls = topology_class(topology, file, loader)
    commands = [topology.specs[str(spec.name)].command for spec in cls.specs if runs_a_command(spec)]
    folder = children_folder(commands, sources)
    return lower(cls, topology.name, options, environment=environment.name, folder=folder)


def _import_flux_classes() -> None:
    """Import the project's ``flux_classes``, if there is one. It registers Python classes for Java classes."""
    if importlib.util.find_spec("flux_classes") is not None:
        importlib.import_module("flux_classes")


def _imported(file: Path, project: Path, requirements: Path) -> ModuleType:
    try:
        return import_file(file, project)
    except TopologyNotFoundError as error:
        cause = error.__cause__
        if isinstance(cause, ModuleNotFoundError) and cause.name and older_python(cause) is None:
            error.add_note(f"  {how_to_install(cause.name, requirements, file.stem)}")
        raise


def _chosen(module: ModuleType, file: Path, name: str | None) -> tuple[TopologyType, str]:
    """Return the topology's class and name.

    The first topology in the file is named after the file. The others are named after their classes.
    """
    classes = {
        attribute: value
        for attribute, value in vars(module).items()
        if isinstance(value, TopologyType) and value.specs  # not the base class itself
    }
    # streamparse takes the first class, even an imported one. This function prefers a class that the file itself defines.
    own = {
        attribute: cls for attribute, cls in classes.items() if cls.__module__ == module.__name__
    } or classes
    if name is not None:
        if name not in classes:
            msg = f"{file} has no topology {name!r}; {_listed(classes)}"
            raise TopologyNotFoundError(msg)
        return classes[name], file.stem if next(iter(own)) == name else name
    if not own:
        msg = f"{file} has no topology: it needs a class like `class WordCount(Topology): ...`, from streamparse"
        raise TopologyNotFoundError(msg)
    first, *others = own
    if others:
        _log.warning(
            "%s has several topologies, %s runs; for another one say %s:%s", file, first, file, others[0]
        )
    return own[first], file.stem


def _listed(classes: dict[str, TopologyType]) -> str:
    return f"there are {', '.join(map(repr, classes))}" if classes else "there is none in it"
