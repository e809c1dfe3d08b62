"""Finds the folders of a topology by the topology's name, for commands that look at a topology of another process.

A topology writes ``topology.json`` into its log folder when it starts, and the file stays there. Commands find a topology by name
only if its log folder is the default one.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from stormspark.errors import TopologyNotAliveError
from stormspark.launcher import is_checkpoint
from stormspark.likely_names import nearest
from stormspark.private_files import check_private, default_log_folder, make_private, open_private

__all__ = ["Whereabouts", "checkpoint_of"]

_NAME = "topology.json"


@dataclass(frozen=True)
class Whereabouts:
    """The folders and the driver of a topology. ``pid`` is the driver's process id."""

    topology: str
    checkpoint: str
    log_folder: str
    generation: int
    pid: int

    def write(self) -> None:
        """Write ``topology.json``."""
        path = make_private(self.log_folder) / _NAME
        new = path.with_suffix(f".{os.getpid()}")
        with open(open_private(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w", encoding="utf-8") as file:
            file.write(json.dumps(asdict(self), indent=2) + "\n")
        new.replace(path)

    @classmethod
    def read(cls, topology: str) -> Whereabouts:
        """Read ``topology.json`` of the last topology of that name.

        Raises `TopologyNotAliveError` if this user has started no topology of that name on this host. Raises
        `UnsupportedEnvironmentError` if the folder or the file may belong to somebody else.
        """
        path = _path(topology)
        try:
            check_private(path.parent.parent)
            check_private(path.parent)
            # The file names a folder whose contents are unpickled, so nobody else may have written it.
            with open(open_private(path, os.O_RDONLY), encoding="utf-8") as file:
                return cls(**json.load(file))
        except FileNotFoundError:
            known = [file.parent.name for file in path.parent.parent.glob("*/topology.json")]
            meant = nearest(topology, known)
            msg = (
                f"this user has started no topology {topology!r} on this host: name its checkpoint folder in place of its "
                f"name{meant}"
            )
            raise TopologyNotAliveError(msg) from None


def checkpoint_of(topology: str) -> str:
    """Return the checkpoint of the last topology of that name, which may itself be a checkpoint. Raises as `Whereabouts.read`."""
    return topology if is_checkpoint(topology) else Whereabouts.read(topology).checkpoint


def _path(topology: str) -> Path:
    return default_log_folder() / topology / _NAME
