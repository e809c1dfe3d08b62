"""Ships components to workers: pickles a component's class, and puts ``streamparse`` on the worker's module path.

A class that a module defines is pickled by reference, so the worker must be able to import that module. Workers of a local Spark
inherit the module path. Workers of a cluster need the project's ``src`` (``spark-submit --py-files``), and stormspark must be
installed there. The packages ``streamparse`` and ``pystorm`` are part of stormspark.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cloudpickle

from stormspark.pickling import dumped
from stormspark.user_code import put_first

__all__ = ["on_path", "packed", "unpacked"]


def on_path() -> Path:
    """Return the folder that holds the packages ``streamparse`` and ``pystorm``."""
    return Path(__file__).parent.parent / "on_path" / "streamparse"


def packed(component: type) -> bytes:
    """Return the pickled class. `unpacked` unpickles it."""
    return dumped(component)


def unpacked(data: bytes) -> Any:
    """Unpickle the class. First put streamparse and pystorm on the module path, because the class's module may import them."""
    put_first(on_path())
    return cloudpickle.loads(data)
