"""Which processes belong to this run of the tests."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.waiting import STARTED_BY, worker_processes


def _worker(number: int, started_by: str) -> subprocess.Popen[bytes]:
    """A process that looks like a worker's, and ends with its standard input."""
    looks_like = ["stormspark.worker", "run-twice", str(number)]
    return subprocess.Popen(
        [sys.executable, "-S", "-c", "input()", *looks_like],
        env={**os.environ, STARTED_BY: started_by},
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def test_workers_of_the_same_tests_in_another_run_are_not_found() -> None:
    """Two runs beside each other, without pytest-xdist, would count and kill each other's workers."""
    with _worker(0, os.environ[STARTED_BY]) as mine, _worker(0, "another run") as other:
        try:
            assert {worker: found.pid for worker, found in worker_processes("run-twice").items()} == {
                0: mine.pid
            }
        finally:
            mine.kill()
            other.kill()
