"""Compiles the tuple path where Cython and a C compiler are there; else it runs as it is. See ARCHITECTURE.md."""

from __future__ import annotations

import os

from setuptools import Extension, setup

COMPILED = (
    "stormspark/acker/tree.py",
    "stormspark/acker/ledger.py",
    "stormspark/api/tuples.py",
    "stormspark/grouping/key.py",
    "stormspark/grouping/text_index.py",
    "stormspark/worker/lanes.py",
    "stormspark/worker/verdicts.py",
    "stormspark/worker/outlets.py",
    "stormspark/worker/collectors.py",
    "stormspark/worker/execution.py",
)


def extensions() -> list[Extension]:
    """The modules to compile."""
    if os.environ.get("STORMSPARK_PURE"):
        return []
    from Cython.Build import cythonize

    return cythonize(
        [Extension(path[:-3].replace("/", "."), [path], extra_compile_args=["-O2"]) for path in COMPILED],
        compiler_directives={"language_level": 3, "annotation_typing": False, "binding": True},
        annotate=bool(os.environ.get("STORMSPARK_ANNOTATE")),
    )


setup(ext_modules=extensions())
