"""Which modules are the tuple path, and whether they are compiled here.

    python -m stormspark.tuple_path

What runs once a tuple is a handful of modules. Each is plain Python, and works so; beside it lies a .pxd file with the C types of
its objects and variables, with which Cython makes an extension module of the same source.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["MODULES", "compiled"]

#: Each has a .pxd beside it, and says so in its first lines. So has `stormspark.spi.recycling`, whose .pxd is C for these.
MODULES = (
    "stormspark.acker.ledger",
    "stormspark.acker.tree",
    "stormspark.api.tuples",
    "stormspark.compat.streamparse.passage",
    "stormspark.grouping.key",
    "stormspark.grouping.text_index",
    "stormspark.worker.tuples.collectors",
    "stormspark.worker.tuples.columns",
    "stormspark.worker.tuples.execution",
    "stormspark.worker.tuples.lanes",
    "stormspark.worker.tuples.outlets",
    "stormspark.worker.tuples.verdicts",
)


def compiled() -> bool:
    """Whether all of the tuple path is compiled. It is all or nothing: half of it would be slower than none."""
    found = [spec.origin or "" for name in MODULES if (spec := find_spec(name)) is not None]
    return not any(origin.endswith(".py") for origin in found)


if __name__ == "__main__":
    sys.stdout.write(f"the tuple path is {'compiled' if compiled() else 'Python'}\n")
