"""Lets a file submit a topology to the command that is loading the file.

A file written for Heron ends with ``Runner().run(...)`` or ``build_and_submit()``. The command line runs such a file,
captures the topologies that it submits, and runs them on an engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from stormspark.api import Topology
from stormspark.errors import InvalidTopologyError
from stormspark.user_line import user_line

__all__ = ["capturing", "submit"]

_captured: ContextVar[list[Topology] | None] = ContextVar("captured topologies", default=None)


@contextmanager
def capturing() -> Iterator[list[Topology]]:
    """Collect the topologies that are submitted inside of the ``with`` block, in order.

    >>> with capturing() as submitted:
    ...     submit(Topology("demo", {}))
    >>> [topology.name for topology in submitted]
    ['demo']
    """
    submitted: list[Topology] = []
    token = _captured.set(submitted)
    try:
        yield submitted
    finally:
        _captured.reset(token)


def submit(topology: Topology) -> None:
    """Submit ``topology`` to the command that is loading the user's file. Without one, raises `InvalidTopologyError`."""
    submitted = _captured.get()
    if submitted is None:
        msg = (
            f"{user_line()}: topology {topology.name!r} is submitted, but no command runs it: run the file with "
            f"'stormspark run FILE'. In a notebook, stormspark.streamlet's builder.build(name, config) gives the topology"
        )
        raise InvalidTopologyError(msg)
    submitted.append(topology)
