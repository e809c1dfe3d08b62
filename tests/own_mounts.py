"""Mounts of a test's own, where they are allowed: disks that are full, read-only, or not the same for all."""

from __future__ import annotations

import subprocess
import tempfile

import pytest

__all__ = ["require_mounts", "require_network"]


def require_mounts() -> None:
    """Skip the test unless it may mount something that no other process sees."""
    with tempfile.TemporaryDirectory() as folder:
        why = _why_not("unshare", "-m", "mount", "-t", "tmpfs", "none", folder)
    if why is not None:
        pytest.skip(f"mounts of one's own are not allowed here: {why}")


def require_network() -> None:
    """Skip the test unless it may have a network of its own."""
    if (why := _why_not("unshare", "-n", "true")) is not None:
        pytest.skip(f"networks of one's own are not allowed here: {why}")


def _why_not(*command: str) -> str | None:
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except OSError as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"
