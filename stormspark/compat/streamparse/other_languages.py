"""Makes components for those specs of streamparse that have no Python class, but a command or a Java class's name (A32)."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stormspark.api import Fields, StreamDeclaration
from stormspark.compat.streamparse.shipping import on_path
from stormspark.compat.streamparse.specs import ComponentSpec
from stormspark.errors import InvalidTopologyError
from stormspark.flux.class_names import class_named
from stormspark.user_code import raised

__all__ = ["NATIVE", "java_component", "java_object", "shell_component"]

#: What to do about a component that only Java can run.
NATIVE = "put a component of stormspark in its place: stormspark.compat.streamparse.native.native(component, inputs=...)"


def shell_component(spec: ComponentSpec, folder: Path | None) -> Any:
    """Return a component that runs the spec's command in ``folder``."""
    from stormspark.multilang import ShellBolt, ShellSpout

    shell = spec.component_object.shell
    assert shell is not None
    command = [shell.execution_command, *shlex.split(shell.script)]
    streams = {
        name: StreamDeclaration(name, Fields(info.output_fields), info.direct)
        for name, info in spec.outputs.items()
    }
    kind = ShellBolt if spec.kind == "bolt" else ShellSpout
    return kind(command, streams, env=_environment(), cwd=str(folder) if folder is not None else None)


def _environment() -> dict[str, str]:
    """Return the environment variables to set for a child process.

    They set the module path, without the folder with stormspark's own ``pystorm``, which can't talk over a pipe.
    """
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return {"PYTHONPATH": os.pathsep.join(one for one in path if one and Path(one) != on_path())}


def java_component(spec: ComponentSpec) -> Any:
    """Return the Python component that replaces the spec's Java class."""
    java = spec.component_object.java_object
    place = f"{spec.declared_at}: {spec.kind} {spec.name!r}"
    if java is None:
        msg = f"{place} is a serialized Java object, which Python can't run: {NATIVE}"
        raise InvalidTopologyError(msg)
    return java_object(java.full_class_name, java.args_list, place)


def java_object(class_name: str, arguments: Sequence[Any], place: str) -> Any:
    """Return the Python object that stands for a Java object. Raises `InvalidTopologyError`, which names ``place``."""
    try:
        made = class_named(class_name, place)
    except InvalidTopologyError as error:
        msg = f"{error}\n  In a streamparse project, flux_classes.py belongs in src/. Or {NATIVE}"
        raise InvalidTopologyError(msg) from error
    try:
        return made(*arguments)  # type: ignore[operator]
    except Exception as error:
        given = ", ".join(map(repr, arguments))
        msg = f"{place}: {class_name}({given}) raised {raised(error, Path(__file__).parent)}"
        raise InvalidTopologyError(msg) from error
