"""State that is dealt out to another number of tasks, while processes are killed: each key is in one place, and right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import stormspark
from stormspark.grouping.hashing import fields_task_index
from tests.faults.exactly_once.test_exactly_once import ALL
from tests.waiting import PATIENCE_SECS

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
#: Who is killed where, in the first batch in another shape; a worker's death is its driver's business.
SHAPES = [
    (None, 2, 2),
    ("worker.written", 5, 2),
    ("driver.before_commit", 3, 1),
    ("driver.committed", 4, 3),
    ("worker.before_commit", 2, 2),
]


def run(folder: Path, numbers: int, tasks: int, workers: int) -> int:
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(folder),
        "STORMSPARK_BARRIERS": str(folder / "barriers"),
    }
    arguments = [str(folder), str(numbers), str(tasks), str(workers)]
    with (folder / "output").open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.dealt_out_driver", *arguments],
            cwd=ROOT, env=environment, stdout=output, stderr=output,
        )  # fmt: skip
        children: list[psutil.Process] = []
        try:
            return process.wait(PATIENCE_SECS)
        finally:
            if process.poll() is None:
                children = [
                    *psutil.Process(process.pid).children(recursive=True),
                    psutil.Process(process.pid),
                ]
            for child in children:
                child.kill()


@pytest.mark.skipif(
    not ALL,
    reason="CI deals out in tests/spark/test_state.py, and kills in exactly_once; `make soak-exactly-once` does both at once",
)
def test_keys_are_in_one_place_whoever_dies(tmp_path: Path) -> None:
    """C36, C44: before the commit, after it, and in a worker; the next driver goes on from what is committed."""
    (tmp_path / "barriers").mkdir()
    for number, (barrier, tasks, workers) in enumerate(SHAPES, 1):
        armed = tmp_path / "barriers" / (barrier or "none")
        if barrier is not None:
            armed.touch()
        code = run(tmp_path, 100 * number, tasks, workers)
        if code < 0:
            assert barrier is not None and barrier.startswith("driver")
            code = run(tmp_path, 100 * number, tasks, workers)
        assert code == 0, (tmp_path / "output").read_text()[-6000:]
        assert not armed.exists(), f"nobody came by {barrier}"
        rows = stormspark.state(tmp_path / "checkpoint", "sums").to_dict("records")
        assert len(rows) == 10
        assert {row["key"]: (row["task"], row["value"]) for row in rows} == {
            key: (fields_task_index((key,), tasks), 10 * number) for key in range(10)
        }
