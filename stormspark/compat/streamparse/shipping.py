"""Ships components to workers: pickles a component's class, and puts ``streamparse`` on the worker's module path.

A class that a module defines is pickled by reference, so the worker must find its module. Workers of a local Spark inherit the
module path. Workers of a cluster need the project's ``src`` (``spark-submit --py-files``) and stormspark itself. Wherever
stormspark is installed, the packages ``streamparse`` and ``pystorm`` are found, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cloudpickle

from stormspark.user_code import put_first

__all__ = ["on_path", "packed", "unpacked"]


def on_path() -> Path:
    """Return the folder that holds the packages ``streamparse`` and ``pystorm``."""
    return Path(__file__).parent.parent / "on_path" / "streamparse"


def packed(component: type) -> bytes:
    """Pickle the class; see `unpacked`."""
    data: bytes = cloudpickle.dumps(component)
    return data


def unpacked(data: bytes) -> Any:
    """Unpickle the class, whose module may import streamparse and pystorm."""
    put_first(on_path())
    return cloudpickle.loads(data)
