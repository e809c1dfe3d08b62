"""The packed Python environment of a user, such as ``venv-pack`` makes it, from the packages that are installed here.

What it has is what ``pip install stormspark[delta]`` brings, without Spark: a cluster has its own. As with pip, modules are
compiled: hosts that first have to compile pyarrow are late: Spark, which waits ten seconds for its Python on a driver's host.
"""

from __future__ import annotations

import compileall
import importlib.metadata
import shutil
import sys
import tarfile
from pathlib import Path

from packaging.requirements import Requirement

__all__ = ["add_pandas", "packed_environment", "zipped_stormspark"]

_ROOT = Path(__file__).parents[2]
_SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
_SPARKS = {"pyspark", "stormspark"}
#: What nobody runs: the tests of packages, and headers. Each executor unpacks the archive.
_LEFT_OUT = {"tests", "include", "src"}


def packed_environment(path: Path, *, with_stormspark: bool = True, with_pandas: bool = False) -> Path:
    """Write ``path``, a ``tar.gz``. Its Python is the one of the hosts' operating system. A driver needs pandas."""
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        python = tarfile.TarInfo("bin/python")
        python.type, python.linkname = tarfile.SYMTYPE, f"/usr/bin/python3.{sys.version_info.minor}"
        archive.addfile(python)
        config = path.with_name("pyvenv.cfg")
        config.write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
        archive.add(config, "pyvenv.cfg")
        for name in sorted(_needed() | (_needed("pandas") if with_pandas else set())):
            one = importlib.metadata.distribution(name)
            for file in one.files or ():
                outside = Path(str(one.locate_file(file)))
                if not {"..", *_LEFT_OUT} & {*file.parts} and outside.is_file():
                    archive.add(outside, f"{_SITE}/{file}")
        if with_stormspark:
            copy = path.with_name("copy") / "stormspark"
            shutil.copytree(
                _ROOT / "stormspark",
                copy,
                ignore=shutil.ignore_patterns("__pycache__", "*.so"),
                dirs_exist_ok=True,
            )
            compileall.compile_dir(copy, stripdir=str(copy.parent), quiet=1)
            archive.add(copy, f"{_SITE}/stormspark")
    return path


def zipped_stormspark(path: Path) -> Path:
    """Write ``path``, a zip of stormspark for ``--py-files``."""
    import zipfile

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted((_ROOT / "stormspark").rglob("*")):
            if file.is_file() and file.suffix not in (".pyc", ".so"):
                archive.write(file, file.relative_to(_ROOT))
    return path


def add_pandas(environment: Path) -> None:
    """Install what ``stormspark[pandas]`` has beside that: a driver needs it, and executors don't."""
    for name in sorted(_needed("pandas") - _needed()):
        one = importlib.metadata.distribution(name)
        for file in one.files or ():
            outside = Path(str(one.locate_file(file)))
            if not {"..", *_LEFT_OUT} & {*file.parts} and outside.is_file():
                (environment / _SITE / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(outside, environment / _SITE / file)


def _needed(extra: str = "delta") -> set[str]:
    """The distributions that stormspark requires with an extra, and those that these require."""
    found: set[str] = set()
    left, seen = [("stormspark", extra)], {("stormspark", extra)}
    while left:
        name, extra = left.pop()
        for text in importlib.metadata.requires(name) or ():
            wanted = Requirement(text)
            if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra}):
                continue
            if wanted.name not in _SPARKS:
                found.add(wanted.name)
            more = {(wanted.name, one) for one in ("", *wanted.extras)} - seen
            seen |= more
            left += [one for one in more if one[0] != "pyspark"]
    return found
