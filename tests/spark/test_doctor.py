"""``stormspark doctor --master``: it asks the executors of a real Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.own_mounts import require_mounts

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]


@pytest.mark.long
def test_executors_whose_clock_is_an_hour_ahead_and_that_do_not_share_a_folder(tmp_path: Path) -> None:
    """The executors' Python is a program that shifts the clock and hides the folder."""
    require_mounts()
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "sitecustomize.py").write_text(
        "import time\nnow = time.time\ntime.time = lambda: now() + 3600\n"
    )
    folder = tmp_path / "flow"
    folder.mkdir()
    python = tmp_path / "python"
    python.write_text(
        f"#!/bin/sh\nexec env PYTHONPATH={tmp_path / 'later'}:$PYTHONPATH unshare -m sh -c "
        f'\'mount -t tmpfs none {folder} && exec "$@"\' sh {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "stormspark",
            "doctor",
            "--master",
            "local-cluster[2,1,1024]",
            "--checkpoint",
            str(folder),
            "--json",
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    results = {one["check"]: one for one in json.loads(done.stdout) if one["status"] in {"failed", "warning"}}
    assert done.returncode == 1, done.stderr
    assert "ahead of the driver's" in results["clocks"]["found"]
    assert "does not see the folder" in results["checkpoint"]["found"]
    assert not list(folder.iterdir())
