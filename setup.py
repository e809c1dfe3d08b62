"""Compiles the tuple path, where a C compiler is there; else it runs as the Python that it is. `pyproject.toml` has all the rest.

With STORMSPARK_PURE set nothing is compiled: that makes the wheel that works everywhere.
"""

from __future__ import annotations

import os
from pathlib import Path

from setuptools import Extension, setup

#: These .pxd files have C code for the compiled modules. The Python beside them is never compiled.
NEVER_COMPILED = {"edges", "recycling", "tuple_state"}
#: Each other module that has a .pxd beside it, which tells the compiler the types that its source leaves open.
SOURCES = sorted(
    path.with_suffix(".py").as_posix()
    for path in Path("stormspark").rglob("*.pxd")
    if path.stem not in NEVER_COMPILED
)


def extensions() -> list[Extension]:
    """The modules to compile."""
    if os.environ.get("STORMSPARK_PURE"):
        return []
    from Cython.Build import cythonize

    # The types are in the .pxd files alone: annotations say `Branch` also where a traced branch is welcome, whose count is a
    # property.
    directives = {"language_level": 3, "annotation_typing": False}
    modules = [Extension(source[:-3].replace("/", "."), [source], optional=True) for source in SOURCES]
    built: list[Extension] = cythonize(
        modules, compiler_directives=directives, build_dir="build/cython", quiet=True
    )
    return built


setup(ext_modules=extensions(), options={"build_ext": {"parallel": True}})
