"""Hosts that do not share a folder, on one machine: Python processes of Spark's that see an empty disk in its place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

__all__ = ["python_without"]

_SCRIPT = """#!/bin/sh
exec unshare --user --map-root-user --mount sh -c 'mount -t tmpfs none "$0" && exec "$@"' {folder} {python} "$@"
"""


def python_without(folder: Path, where: Path) -> str:
    """A Python to be given to Spark, written to ``where``, for which ``folder`` is another one, and for workers that it starts.

    Skips the test where nobody may mount.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "seen").touch()
    where.write_text(_SCRIPT.format(folder=folder, python=sys.executable))
    where.chmod(0o755)
    look = [str(where), "-c", f"import os; print(os.listdir({str(folder)!r}))"]
    said = subprocess.run(look, capture_output=True, text=True, check=False, env=os.environ)
    (folder / "seen").unlink()
    if said.returncode:
        pytest.skip(f"a private mount is not allowed here: {said.stderr.strip()}")
    assert said.stdout.strip() == "[]", said.stdout
    return str(where)
