"""A file with a topology that does nothing, for commands that get the name of a file."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["write_topology"]

_TOPOLOGY = """
    from stormspark import Fields, Spout, TopologyBuilder

    class Numbers(Spout):
        def open(self, conf, context, collector): ...
        def next_tuple(self): ...
        def declare_output_fields(self, declarer): declarer.declare(Fields("n"))

    def build():
        builder = TopologyBuilder()
        builder.set_spout("numbers", Numbers(), {tasks})
        return builder.create_topology({name!r}, {conf!r})
"""


def write_topology(path: Path, name: str, conf: Mapping[str, Any], tasks: int = 1) -> str:
    """Write a topology whose spout has so many tasks, and return the path as text."""
    path.write_text(textwrap.dedent(_TOPOLOGY).format(tasks=tasks, name=name, conf=conf))
    return str(path)
