"""Loads a topology from a file of a streamparse project (A37)."""

from __future__ import annotations

import importlib.util
import logging
from pathlib import Path
from types import ModuleType

from stormspark.api.topology import Topology
from stormspark.compat.streamparse.lowering import lower
from stormspark.compat.streamparse.project_config import ProjectConfig, find_config
from stormspark.compat.streamparse.requirements import how_to_install
from stormspark.compat.streamparse.shipping import on_path
from stormspark.compat.streamparse.topology import TopologyType
from stormspark.errors import TopologyNotFoundError
from stormspark.user_code import import_file, put_first

__all__ = ["load", "project_folder"]

_log = logging.getLogger(__name__)

#: The setting that names the working directory of components (I3).
WORKING_FOLDER = "stormspark.working.dir"


def load(file: Path | str, name: str | None = None, *, environment: str | None = None) -> Topology:
    """Load the first topology in ``file``, or the topology class ``name`` in it.

    ``config.json`` is looked for in the file's folder and above it. The project's folder is the folder of ``config.json`` or, if
    there is none, the parent of the file's folder. Four folders are added to the module path, if they exist: the project's
    folder, the folder ``src`` in it, the folder ``src`` beside the file's folder, and stormspark's folder with the package
    ``streamparse``.

    Raises `TopologyNotFoundError` if there is no topology, or if the file can't be imported. The message has the user's line. If
    a module is missing, the message also has the requirements file that names the module. Raises `InvalidTopologyError` for a
    topology that can't run.
    """
    file = Path(file)
    config = find_config(file)
    topologies = file.resolve().parent
    project = _folder_of(config, file)
    folders = [project, topologies.parent / "src", project / "src"]
    for folder in (*folders, on_path()):  # the last folder becomes the first on the path
        if folder.is_dir():
            put_first(folder)
    module = _imported(file, project, config.content.get("virtualenv_specs"))
    if importlib.util.find_spec("flux_classes") is not None:
        importlib.import_module("flux_classes")
    cls, called = _chosen(module, file, name)
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


def _imported(file: Path, project: Path, virtualenvs: object) -> ModuleType:
    try:
        return import_file(file, project)
    except TopologyNotFoundError as error:
        cause = error.__cause__
        if isinstance(cause, ModuleNotFoundError) and cause.name:
            folder = project / (virtualenvs if isinstance(virtualenvs, str) else "virtualenvs")
            error.add_note(f"  {how_to_install(cause.name, folder, file.stem)}")
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
