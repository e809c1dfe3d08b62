"""A folder that refuses what a mounted object store refuses, such as a volume of Databricks: renames, links, locks, appends.

A small library in C stands between a process and the kernel (`refusing.c`). It needs no rights, unlike a real FUSE.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

__all__ = ["EVERYTHING", "build", "run_in"]

#: What a volume of Databricks refuses, and some mounts of S3.
EVERYTHING = "rename,replace,link,lock,append,random"
_SOURCE = Path(__file__).parent / "refusing.c"


def build(into: Path) -> Path | None:
    """Compile the library. None if there is no C compiler."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None or sys.platform != "linux":
        return None
    library = into / "refusing.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, _SOURCE, "-ldl"], check=True)
    return library


def run_in(library: Path, folder: Path, program: str, refuses: str = EVERYTHING) -> str:
    """Run a Python program that may use the folder, and return what it prints. Raises if it fails."""
    environment = os.environ | {
        "LD_PRELOAD": str(library),
        "REFUSING_FOLDER": str(folder),
        "REFUSES": refuses,
    }
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
