"""How a component gets into a worker: as its class, by reference where it has a module, and with ``streamparse`` on the path.

Workers of a local Spark inherit the module path. Those of a cluster need the project's ``src`` (``spark-submit --py-files``) and
stormspark itself; where stormspark is, the packages ``streamparse`` and ``pystorm`` are found without more.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cloudpickle

from stormspark.user_code import put_first

__all__ = ["on_path", "packed", "unpacked"]


def on_path() -> Path:
    """The folder that holds the packages ``streamparse`` and ``pystorm``."""
    return Path(__file__).parent.parent / "on_path" / "streamparse"


def packed(component: type) -> bytes:
    """The class, to be sent; see `unpacked`."""
    data: bytes = cloudpickle.dumps(component)
    return data


def unpacked(data: bytes) -> Any:
    """The class; what its module imports of streamparse and pystorm is found."""
    put_first(on_path())
    return cloudpickle.loads(data)
