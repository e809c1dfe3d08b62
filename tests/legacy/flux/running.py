"""``stormspark run`` and ``explain`` in a process of their own, as users start them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[3]


def stormspark(
    *arguments: object, env: Mapping[str, str] | None = None, timeout: float = 300.0
) -> subprocess.CompletedProcess[str]:
    """What the command line does and says."""
    return subprocess.run(
        [sys.executable, "-m", "stormspark.cli", *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | dict(env or {}),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
