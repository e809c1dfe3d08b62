"""Reads a Flux file together with the files that it includes, as one definition (K17)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from stormspark.errors import InvalidTopologyError, TopologyNotFoundError
from stormspark.flux.definition import Include, TopologyDefinition, read_topology
from stormspark.flux.document import parsed
from stormspark.flux.substitution import substituted

__all__ = ["read_file"]

_log = logging.getLogger("stormspark.flux")

_T = TypeVar("_T")


def read_file(
    file: Path, properties: Mapping[str, str], environment: Mapping[str, str] | None
) -> TopologyDefinition:
    """Read the definition in ``file``, and add the definitions of the files that it includes.

    If several files define the same thing, the definition in ``file`` wins, and then that of the file which is included first. An
    include with ``override: true`` replaces earlier definitions. The streams of all files are used. An included file's own
    includes, worker hooks and ``topologySource`` are ignored, with a warning.

    Raises `TopologyNotFoundError` if ``file`` does not exist, and `InvalidTopologyError` for a mistake in one of the files.
    """
    topology = _read(file, properties, environment)
    for include in topology.includes:
        included = _read(_found(include, file), properties, environment)
        _add(included, topology, include)
    return topology


def _read(
    file: Path, properties: Mapping[str, str], environment: Mapping[str, str] | None
) -> TopologyDefinition:
    if file.is_dir():
        msg = f"{file} is a folder; name a file in it"
        raise TopologyNotFoundError(msg)
    try:
        text = file.read_text("utf-8-sig")
    except FileNotFoundError as error:
        msg = f"{file} does not exist"
        raise TopologyNotFoundError(msg) from error
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{file} can't be read: {error}"
        raise InvalidTopologyError(msg) from error
    # The name is absolute, like the paths of Python files in errors. Errors in workers name the file, too, to say where a
    # component was declared.
    name = str(file.absolute())
    return read_topology(parsed(substituted(text, name, properties, environment), name), name)


def _found(include: Include, file: Path) -> Path:
    """Return the path of an included file.

    Storm looks for a resource on Java's class path. This function looks for it in the folder of the including file, in the
    folders above that folder, and in the working directory. Any other file is given by its path from the folder of the including
    file, or from the working directory.
    """
    here = file.resolve().parent
    if include.resource:
        name = include.file.lstrip("/")
        tried = [folder / name for folder in (here, *here.parents, Path.cwd())]
        above = f"in {here} or in the folders above it"
        places = above if Path.cwd() in (here, *here.parents) else f"{above}, or in {Path.cwd()}"
        places += ". Storm finds it in the topology's jar or in a library's: copy it from there"
    else:
        tried = [here / include.file, Path(include.file)]
        places = "at " + " or ".join(dict.fromkeys(str(path.absolute()) for path in tried))
    for path in tried:
        if path.is_file():
            return path
    msg = f"{include.where}: the included file {include.file!r} is not {places}"
    raise InvalidTopologyError(msg)


def _add(included: TopologyDefinition, topology: TopologyDefinition, include: Include) -> None:
    if included.name is not None and (topology.name is None or include.override):
        topology.name, topology.name_where = included.name, included.name_where
    for what, mine, added in (
        ("setting", topology.config, included.config),
        ("class name", topology.class_names, included.class_names),
    ):
        _merge(what, mine, added, include)
    _merge("component", topology.components, included.components, include)
    _merge("spout", topology.spouts, included.spouts, include)
    _merge("bolt", topology.bolts, included.bolts, include)
    topology.streams.extend(included.streams)
    for what, present in (
        ("includes", included.includes),
        ("workerHooks", included.worker_hooks),
        ("topologySource", included.source),
    ):
        if present:
            _log.warning(
                "%s: %s of an included file are ignored, as in Storm: move them to the file that includes it",
                included.file,
                what,
            )


def _merge(what: str, mine: dict[str, _T], added: Mapping[str, _T], include: Include) -> None:
    for key, value in added.items():
        if key not in mine or include.override:
            mine[key] = value
        else:
            _log.warning(
                "%s: the %s %r of %s is ignored, because it is defined already: override: true would replace it",
                include.where,
                what,
                key,
                include.file,
            )
