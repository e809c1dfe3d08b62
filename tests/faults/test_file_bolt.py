"""FileBolt under kill -9: what is acked is in the files that readers see, and no record there is half."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_SECS

pytestmark = [pytest.mark.faults, pytest.mark.slow]
ROOT = Path(__file__).parents[2]


def writer(folder: Path, last: int) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "tests.faults.file_writer",
        str(folder / "out"),
        str(folder / "acks"),
        str(last),
    ]
    return subprocess.Popen(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)})


def test_nothing_acked_is_missing_and_no_record_is_half(tmp_path: Path) -> None:
    """K10: killed at five moments; the life after them ends what they left."""
    acks = tmp_path / "acks"
    for _ in range(5):
        before = acks.stat().st_size if acks.exists() else 0
        with writer(tmp_path, 0) as process:
            until = time.monotonic() + 120
            while not acks.exists() or acks.stat().st_size < before + 10_000:
                assert process.poll() is None and time.monotonic() < until
                time.sleep(0.003)
            process.kill()
    left = [name.name for name in (tmp_path / "out").iterdir() if name.name.startswith("_")]
    assert left, "the kills came while files were open"
    with writer(tmp_path, 100) as process:
        assert process.wait(PATIENCE_SECS) == 0
    files = list((tmp_path / "out").iterdir())
    assert all(file.name.startswith("sink-") for file in files)
    lines = [line.split(",") for file in files for line in file.read_text().splitlines()]
    assert {len(line) for line in lines} == {3} and {line[2] for line in lines} == {"x" * 2000}
    written = {f"{process},{n}" for process, n, _ in lines}
    acked = set(acks.read_text().splitlines())
    assert len(acked) > 1000 and acked <= written
