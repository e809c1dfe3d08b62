"""Lists the modules of the tuple path, and finds out whether they are compiled in this installation.

    python -m stormspark.tuple_path

The *tuple path* is the code that runs once per tuple, in the modules that `MODULES` lists. Each of them is plain Python and works
without compilation. A .pxd file beside each module has the C types of the module's objects and variables. With this file, Cython
makes an extension module from the same source.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["MODULES", "NEVER_COMPILED", "compiled"]

#: The compiled modules. Each of them has a .pxd beside it, and says so in its first lines.
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
    "stormspark.worker.tuples.spout_collector",
    "stormspark.worker.tuples.unpacking",
    "stormspark.worker.tuples.verdicts",
)
#: Modules that stay Python. Each has a .pxd file beside it, with C code that the compiled modules use instead of the Python code.
NEVER_COMPILED = (
    "stormspark.api.tuple_state",
    "stormspark.spi.recycling",
    "stormspark.worker.tuples.edges",
)


def compiled() -> bool:
    """Return whether the whole tuple path is compiled. A path that is compiled only in part is slower than plain Python."""
    found = [spec.origin or "" for name in MODULES if (spec := find_spec(name)) is not None]
    return not any(origin.endswith(".py") for origin in found)


if __name__ == "__main__":
    sys.stdout.write(f"the tuple path is {'compiled' if compiled() else 'Python'}\n")
