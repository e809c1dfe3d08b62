"""Finds the scripts that a topology names in commands, and the component in a script of streamparse.

streamparse 0 ran scripts such as ``words.py``, with ``WordSpout().run()`` at its end, as commands. stormspark imports the script,
and runs its class in the worker like any other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

from stormspark.compat.detection import legacy_kind
from stormspark.multilang.scripts import script_of

__all__ = ["children_folder", "component_in"]


def children_folder(commands: Iterable[tuple[str, ...]], sources: Path) -> Path | None:
    """Return the folder in which commands run: ``sources`` if it has one of their scripts, or none of them has a script.

    Otherwise return None, and `stormspark.multilang` searches the folders for resources of the project.
    """
    scripts = [script.name for command in commands if command and (script := script_of(command)) is not None]
    return sources if not scripts or any((sources / one).is_file() for one in scripts) else None


def component_in(script: Path) -> str | None:
    """Return the name of the class whose instance a script of streamparse runs; None if this is no such script."""
    if script.suffix != ".py" or not script.stem.isidentifier() or legacy_kind(script) != "streamparse":
        return None
    names = [
        call.func.value.func.id
        for call in ast.walk(ast.parse(script.read_bytes()))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "run"
        and isinstance(call.func.value, ast.Call)
        and isinstance(call.func.value.func, ast.Name)
    ]
    return names[0] if len(set(names)) == 1 else None
