"""Compiles the tuple path, where a C compiler is there; else it runs as the Python that it is. `pyproject.toml` has all the rest.

With STORMSPARK_PURE set (to 1, say, and not to 0) nothing is compiled: that makes the wheel that works everywhere.

    python setup.py build_ext --inplace

compiles in a checkout, beside the sources, what is not compiled yet or was edited since. So does ``pip install -e .``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

CHECKOUT = Path(__file__).parent.resolve()
#: These .pxd files have C code for the compiled modules. The Python beside them is never compiled.
NEVER_COMPILED = {"edges", "recycling", "tuple_state"}
#: Each other module that has a .pxd beside it, which tells the compiler the types that its source leaves open.
SOURCES = sorted(
    path.with_suffix(".py").as_posix()
    for path in Path("stormspark").rglob("*.pxd")
    if path.stem not in NEVER_COMPILED
)
#: Who sets one of these may want what was not compiled in place: for another processor, or with other options.
FOR_COMPILERS = {
    "ARCHFLAGS",
    "CC",
    "CFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "SETUPTOOLS_EXT_SUFFIX",
    "_PYTHON_HOST_PLATFORM",
}


class BuildTuplePath(build_ext):
    """Compiles all of the tuple path or nothing, because a path that is compiled only in part is slower than plain Python."""

    failed: Sequence[str] = ()

    def run(self) -> None:
        """In place, or in the folder from which a wheel is made."""
        if not self.extensions:
            return
        if self.inplace:
            self.compile_in_place()
        elif not self.take_from_checkout():
            self.force = True
            super().run()

    def compile_in_place(self) -> None:
        """Compile what is not as its source is. Times of files don't count: a checkout or a copy may have any."""
        import fcntl

        in_place = load_in_place()
        names = [extension.name for extension in self.extensions]
        if not in_place.outdated(CHECKOUT, names):
            return
        lock = Path("build", "in-place.lock")
        lock.parent.mkdir(exist_ok=True)
        with lock.open("w") as locked:
            with contextlib.suppress(OSError):  # some network file systems have no locks: compile without one
                fcntl.flock(locked, fcntl.LOCK_EX)
            outdated = in_place.outdated(CHECKOUT, names)  # another process may have compiled them meanwhile
            if not outdated:
                return
            hashes = in_place.begin(CHECKOUT, names, outdated)
            self.extensions = [extension for extension in self.extensions if extension.name in outdated]
            self.force = True
            super().run()
            in_place.end(CHECKOUT, names, hashes)
        if self.failed and not self.editable_mode:
            raise CompileError(f"the compiler failed for {', '.join(self.failed)}")

    def take_from_checkout(self) -> bool:
        """Take what was compiled in place, if it is what would be compiled again."""
        in_place = load_in_place()
        names = [extension.name for extension in self.extensions]
        if FOR_COMPILERS & os.environ.keys() or in_place.outdated(CHECKOUT, names):
            return False
        self.remove_others()
        for extension in self.extensions:
            built = self.output(extension)
            built.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(built.relative_to(self.build_lib), built)
        return True

    def build_extensions(self) -> None:
        """Translate the modules to C, and compile that."""
        why_not = self.what_is_missing()
        if why_not is None:
            from Cython.Build import cythonize

            # The types are in the .pxd files alone: annotations say `Branch` also where a traced branch is welcome, whose count
            # is a property.
            directives = {"language_level": 3, "annotation_typing": False}
            print(f"compiling {len(self.extensions)} of {len(SOURCES)} modules of the tuple path", flush=True)
            made = cythonize(
                self.extensions,
                compiler_directives=directives,
                build_dir="build/cython",
                quiet=True,
                force=True,  # whatever the times of files say
            )
            sources = {extension.name: extension.sources for extension in made}
            for extension in self.extensions:
                extension.sources = sources[extension.name]
            self.remove_others()
            super().build_extensions()
            self.failed = [
                extension.name for extension in self.extensions if not self.output(extension).exists()
            ]
            why_not = f"the compiler failed for {', '.join(self.failed)}" if self.failed else None
        if why_not is not None:
            print(
                f"the tuple path stays Python, which acks a third as many tuples per second: {why_not}",
                flush=True,
            )
            for extension in self.extensions:
                self.output(extension).unlink(missing_ok=True)
            self.extensions = []

    def what_is_missing(self) -> str | None:
        """Return what has to be installed before anything can be compiled."""
        compiler = self.compiler.compiler_so[0]
        if shutil.which(compiler) is None:
            return f"there is no C compiler {compiler} (apt-get install gcc, or xcode-select --install)"
        folders = {
            sysconfig.get_path("include"),
            sysconfig.get_path("platinclude"),
            *self.compiler.include_dirs,
        }
        if not any(Path(folder, "Python.h").exists() for folder in folders):
            return f"this Python's header Python.h is not in {sysconfig.get_path('include')} (apt-get install python3-dev)"
        return None

    def remove_others(self) -> None:
        """Remove what was built before, because a wheel has all that is in its folder."""
        for file in Path(self.build_lib, "stormspark").rglob(f"*{sysconfig.get_config_var('EXT_SUFFIX')}"):
            file.unlink()

    def output(self, extension: Extension) -> Path:
        """Where a compiled module is built."""
        return Path(self.build_lib, self.get_ext_filename(extension.name))


def load_in_place() -> ModuleType:
    """The module of stormspark that knows what was compiled in place, without the rest of it, which needs other packages."""
    spec = spec_from_file_location("in_place", CHECKOUT / "stormspark" / "tuple_path" / "in_place.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def extensions() -> list[Extension]:
    """The modules to compile."""
    if load_in_place().is_set(os.environ.get("STORMSPARK_PURE")):
        return []
    return [Extension(source[:-3].replace("/", "."), [source], optional=True) for source in SOURCES]


setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": BuildTuplePath},
    options={"build_ext": {"parallel": True}},
)
