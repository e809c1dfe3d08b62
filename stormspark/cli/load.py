"""Finds the topology that ``FILE[:NAME]`` on a command line stands for, and the front-end that reads it."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

from stormspark.api.topology import Topology, TopologyBuilder
from stormspark.compat.detection import legacy_kind
from stormspark.compat.topology_files import topology_files
from stormspark.errors import TopologyNotFoundError
from stormspark.user_code import call, import_file
from stormspark.working_folder import working_in

__all__ = ["DEFAULT_NAME", "FrontEndOptions", "Target", "load_topology", "parse_target"]

#: The name that is looked up in a file if the command line gives none.
DEFAULT_NAME = "build"
#: How the names of Flux files end. Projects of StormCrawler have the last one.
_OF_FLUX = (".yaml", ".yml", ".flux")


class FrontEndOptions(NamedTuple):
    """Options that only some kinds of files have: an environment of streamparse (A39), substitutions of Flux (K19), and arguments
    of heronpy (A40).
    """

    environment: str | None = None
    filter_file: Path | None = None
    env_filter: bool = False
    #: The arguments of a heronpy script after the name of its topology.
    arguments: tuple[str, ...] = ()
    #: The name of a topology in a streamparse project, if the target is the project's folder.
    name: str | None = None
    #: The settings of the command line. A topology in Clojure gets them as options.
    conf: Mapping[str, Any] = MappingProxyType({})


class Target(NamedTuple):
    """The two parts of ``FILE[:NAME]``."""

    file: Path
    name: str

    def __str__(self) -> str:
        return f"{self.file}:{self.name}"


_NO_OPTIONS = FrontEndOptions()


def parse_target(text: str) -> Target:
    """Split ``FILE[:NAME]``. If what follows the last colon is no Python name, the colon belongs to the file.

    >>> parse_target("examples/word_count.py").name
    'build'
    >>> parse_target("examples/word_count.py:topology").name
    'topology'
    >>> parse_target("topologies/words.clj:word-count").name
    'word-count'
    """
    file, colon, name = text.rpartition(":")
    if colon and (name.isidentifier() or (file.endswith(".clj") and "/" not in name)):
        return Target(Path(file), name)
    return Target(Path(text), DEFAULT_NAME)


def load_topology(text: str, options: FrontEndOptions = _NO_OPTIONS) -> Topology:
    """Return the topology that ``FILE[:NAME]`` stands for.

    If the file is for streamparse, heronpy, Petrel or Flux, its front-end finds the topology. A folder is that of a streamparse
    project. Otherwise return the value of NAME, or the result of NAME if that is a function.

    Raises `TopologyNotFoundError` if there is no such topology; the message suggests other names of the file that look like a
    topology. If the user's code raises an error of this package, for example for a component that can't be pickled, that error is
    raised unchanged.
    """
    target = parse_target(text)
    only = _only_flux_file(target.file) if options.name is None else None
    if only is not None:
        target = Target(only, DEFAULT_NAME)
    if options.name is not None and target.file.is_file():
        msg = (
            f"{target.file} is a file, and --name {options.name!r} names a topology in the folder of a streamparse project: "
            f"give that folder, or leave --name out"
        )
        raise TopologyNotFoundError(msg)
    if target.file.is_dir() or options.name is not None:
        from stormspark.compat.streamparse.project import topology_file

        target = Target(topology_file(target.file, options.name), DEFAULT_NAME)
    if target.file.suffix in _OF_FLUX:
        from stormspark import flux  # here, because only Flux files need YAML

        return flux.load(target.file, filter_file=options.filter_file, env_filter=options.env_filter)
    named = None if target.name == DEFAULT_NAME else target.name
    given = _working_folder(options)
    if given is not None and target.file.is_file():
        target = Target(target.file.resolve(), target.name)
    match legacy_kind(target.file):
        case "streamparse":
            from stormspark.compat.streamparse.project import load, project_folder

            # `sparse` works only in the project's folder, so a topology's file may open files relative to that.
            folder = project_folder(target.file)
            elsewhere = None if Path.cwd() == folder or not target.file.is_file() else folder
            file = target.file if elsewhere is None else target.file.resolve()
            with working_in(elsewhere):
                return load(file, named, environment=options.environment, options=options.conf)
        case "heronpy":
            from stormspark.compat.heronpy import project

            with working_in(given):
                return project.load(target.file, named, options.arguments)
        case "petrel":
            from stormspark.compat import petrel

            with working_in(given):
                return petrel.load(target.file, named)
    with working_in(given):
        return _built(target)


def _only_flux_file(folder: Path) -> Path | None:
    """Return the topology in a folder if that is the only one that was found there, and a file of Flux."""
    found = topology_files(folder) if folder.is_dir() else []
    return found[0] if len(found) == 1 and found[0].suffix in _OF_FLUX else None


def _working_folder(options: FrontEndOptions) -> str | None:
    """Return the folder that the user has named as the working directory, if it is there. It holds for the code that makes the
    topology, too: that may open files by paths that begin there.
    """
    folder = options.conf.get("stormspark.working.dir")
    return folder if isinstance(folder, str) and os.path.isdir(folder) else None


def _built(target: Target) -> Topology:
    """Return the topology that is the value of the target's name, or the result of that function."""
    module = import_file(target.file)
    found = getattr(module, target.name, None)
    if found is None:
        msg = f"{target.file} has no {target.name!r}. {_suggestion(module, target)}"
        raise TopologyNotFoundError(msg)
    is_function = callable(found) and not isinstance(found, type)
    if is_function:
        found = call(found, str(target), target.file.resolve().parent)
    if isinstance(found, Topology):
        return found
    verb = "returns" if is_function else "is"
    if isinstance(found, TopologyBuilder):
        msg = f'{target} {verb} a TopologyBuilder: end it with .create_topology("a name")'
    else:
        msg = f"{target} {verb} {_described(found)}, not a Topology. {_suggestion(module, target)}"
    raise TopologyNotFoundError(msg)


def _suggestion(module: ModuleType, target: Target) -> str:
    """Return a sentence with the names in the file that the user may mean. If there are none, it says what the file needs."""
    names = [name for name in _candidates(module) if name != target.name]
    if not names:
        return f"It needs a function {target.name}() that returns TopologyBuilder().create_topology(...)."
    return f"Did you mean {' or '.join(f'{target.file}:{name}' for name in names)}?"


def _candidates(module: ModuleType) -> Iterator[str]:
    """Yield the names of a module's topologies, and of its own functions that need no arguments and may return a topology."""
    for name, value in vars(module).items():
        if name.startswith("_"):
            continue
        own_function = inspect.isfunction(value) and value.__module__ == module.__name__
        if isinstance(value, Topology) or (own_function and _may_give_topology(value)):
            yield name


def _may_give_topology(function: object) -> bool:
    assert callable(function)
    signature = inspect.signature(function)
    try:
        signature.bind()
    except TypeError:
        return False
    given = signature.return_annotation
    return given in (inspect.Signature.empty, Topology, "Topology", "stormspark.Topology")


def _described(value: object) -> str:
    if value is None:
        return "None (is a return missing?)"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"{value!r:.80} of type {type(value).__name__}"
