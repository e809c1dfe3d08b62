"""Lists the modules of the tuple path, finds out whether they are compiled, and decides which form of them runs.

    python -m stormspark.tuple_path

The *tuple path* is the code that runs once per tuple, in the modules that `MODULES` lists. Each of them is plain Python and works
without compilation. A .pxd file beside each module has the C types of the module's objects and variables. With this file, Cython
makes an extension module from the same source.

The sources run where nothing is compiled, where STORMSPARK_PURE is set in the environment (0 is as if it was not), and in a
checkout in which something was edited since it was compiled (`stormspark.tuple_path.in_place`). `stormspark` imports this module
before all others, because they may import the tuple path.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from stormspark.tuple_path import in_place

__all__ = ["MODULES", "NEVER_COMPILED", "PURE", "compiled", "wants_sources", "why_sources"]

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

#: The environment variable that keeps compiled modules from running, and ``setup.py`` from compiling.
PURE = "STORMSPARK_PURE"


def wants_sources() -> bool:
    """Return whether this process's environment says that nothing compiled should run."""
    return in_place.is_set(os.environ.get(PURE))


def compiled() -> bool:
    """Return whether the whole tuple path is compiled. A path that is compiled only in part is slower than plain Python."""
    found = [spec.origin or "" for name in MODULES if (spec := find_spec(name)) is not None]
    return not any(origin.endswith((".py", ".pyc")) for origin in found)


def why_sources() -> str | None:
    """Return why the sources run and no compiled modules, even if there are some; None if nothing keeps those from running."""
    return _WHY_SOURCES


_CHECKOUT = Path(__file__).parents[2]
_WHY_SOURCES = f"{PURE} is set" if wants_sources() else in_place.why_outdated(_CHECKOUT)
if _WHY_SOURCES is not None:
    sys.meta_path.insert(0, in_place.Sources({*MODULES, *in_place.compiled_names(_CHECKOUT)}))
