"""Loads a topology of Petrel from the file that has ``create(builder)``, with ``topology.yaml`` beside it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from stormspark.api import Topology
from stormspark.compat.petrel.builder import TopologyBuilder
from stormspark.compat.petrel.tasks import ON_PATH
from stormspark.errors import InvalidTopologyError, StormsparkError, TopologyNotFoundError
from stormspark.user_code import add_line, import_file, put_first, raised

__all__ = ["CONFIG_FILE", "DEFAULT_FUNCTION", "load"]

#: The function of Petrel's ``--definition``, by default.
DEFAULT_FUNCTION = "create"
#: The file of Petrel's ``--config``.
CONFIG_FILE = "topology.yaml"
_OF_PETREL = "petrel."
_PARALLELISM = "petrel.parallelism."


def load(file: Path | str, name: str | None = None) -> Topology:
    """Return the topology that the function ``name`` in ``file`` creates, by default ``create``.

    The topology is called after the file's folder, unless ``topology.yaml`` sets ``topology.name``. Keys of Petrel's own are
    left out of the configuration. ``petrel.parallelism.ID`` sets the parallelism of a component.

    Raises `TopologyNotFoundError` or `InvalidTopologyError`, with the user's line.
    """
    file = Path(file)
    put_first(file.resolve().parent)
    put_first(ON_PATH)
    module = import_file(file)
    function = getattr(module, name or DEFAULT_FUNCTION, None)
    if not callable(function):
        others = [
            each
            for each, value in vars(module).items()
            if inspect.isfunction(value) and value.__module__ == module.__name__ and each != "run"
        ]
        near = f"; its functions are {', '.join(others)}" if others else ""
        msg = (
            f"{file} has no function {name or DEFAULT_FUNCTION!r}{near}: name the file with create(builder), "
            f"as FILE or FILE:FUNCTION"
        )
        raise TopologyNotFoundError(msg)
    conf = _configuration(file.resolve().parent / CONFIG_FILE)
    parallelism = {
        key.removeprefix(_PARALLELISM): value for key, value in conf.items() if key.startswith(_PARALLELISM)
    }
    builder, folder = TopologyBuilder(), file.resolve().parent
    with _line_in(folder, f"{file}:{name or DEFAULT_FUNCTION}"):
        function(builder)
    if strange := sorted(parallelism.keys() - set(builder.ids)):
        known = ", ".join(map(repr, builder.ids)) or "none"
        msg = f"{CONFIG_FILE}: {_PARALLELISM}{strange[0]} names no component; the components are {known}"
        raise InvalidTopologyError(msg)
    own = {
        key: value for key, value in conf.items() if not key.startswith(_OF_PETREL) and key != "topology.name"
    }
    with _line_in(folder, f"{file}:{name or DEFAULT_FUNCTION}"):
        return builder.lowered(str(conf.get("topology.name") or folder.name), own, parallelism)


@contextmanager
def _line_in(folder: Path, called: str) -> Iterator[None]:
    """Let errors name the user's line. An error that is not one of this package becomes an `InvalidTopologyError`."""
    try:
        yield
    except StormsparkError as error:
        add_line(error, folder)
        raise
    except (Exception, SystemExit) as error:
        msg = f"{called} raised {raised(error, folder)}"
        raise InvalidTopologyError(msg) from error


def _configuration(file: Path) -> Mapping[str, Any]:
    if not file.is_file():
        return {}
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        msg = f"{file} can't be read: {error}"
        raise InvalidTopologyError(msg) from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        msg = f"{file} must have keys and values, as in topology.workers: 2"
        raise InvalidTopologyError(msg)
    return {str(key): value for key, value in content.items()}
