"""The bell that wakes up the worker's thread."""

from __future__ import annotations

import os

from stormspark.worker.executors.bell import Bell


def test_a_ring_that_is_written_late_is_forgotten_like_any_other() -> None:
    """Otherwise the worker's thread would find it again and again, and never sleep."""
    bell = Bell()
    bell.ring()
    bell.quiet()
    os.write(
        bell._write, b"!"
    )  # of a thread that had looked before the bell was rung by another one, and quiet again
    assert bell.wait(0)
    bell.quiet()
    assert not bell.wait(0)
    bell.close()
