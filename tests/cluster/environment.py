"""The packed Python environment of a user, such as ``venv-pack`` makes it, from the packages that are installed here.

What it has is what ``pip install stormspark`` brings, without Spark: a cluster has its own.
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
import tarfile
from pathlib import Path

__all__ = ["packed_environment", "zipped_stormspark"]

_ROOT = Path(__file__).parents[2]
_SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
_SPARKS = {"pyspark", "stormspark"}


def packed_environment(path: Path, *, with_stormspark: bool = True) -> Path:
    """Write ``path``, a ``tar.gz``. Its Python is the one of the hosts' operating system."""
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        python = tarfile.TarInfo("bin/python")
        python.type, python.linkname = tarfile.SYMTYPE, f"/usr/bin/python3.{sys.version_info.minor}"
        archive.addfile(python)
        config = path.with_name("pyvenv.cfg")
        config.write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
        archive.add(config, "pyvenv.cfg")
        for name in sorted(_needed()):
            one = importlib.metadata.distribution(name)
            for file in one.files or ():
                outside = Path(str(one.locate_file(file)))
                if ".." not in file.parts and file.suffix != ".pyc" and outside.is_file():
                    archive.add(outside, f"{_SITE}/{file}")
        if with_stormspark:
            archive.add(_ROOT / "stormspark", f"{_SITE}/stormspark", filter=_sources)
    return path


def zipped_stormspark(path: Path) -> Path:
    """Write ``path``, a zip of stormspark for ``--py-files``."""
    import zipfile

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted((_ROOT / "stormspark").rglob("*")):
            if file.is_file() and file.suffix not in (".pyc", ".so"):
                archive.write(file, file.relative_to(_ROOT))
    return path


def _sources(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if entry.name.endswith(("__pycache__", ".so")) else entry


def _needed() -> set[str]:
    """The distributions that stormspark requires, and those that these require."""
    found: set[str] = set()
    left = ["stormspark"]
    while left:
        for requirement in importlib.metadata.requires(left.pop()) or ():
            wanted, _, marker = requirement.partition(";")
            name = re.split(r"[\s<>=!~\[(]", wanted.strip(), maxsplit=1)[0].lower()
            if "extra" in marker or name in found or name in _SPARKS:
                continue
            try:
                importlib.metadata.distribution(name)
            except importlib.metadata.PackageNotFoundError:  # for another system
                continue
            found.add(name)
            left.append(name)
    return found
