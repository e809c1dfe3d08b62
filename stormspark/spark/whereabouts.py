"""Where a topology keeps its things, by its name: for commands that look at one which another process runs,
or ran.

``topology.json`` in a topology's log folder is written when it starts, and stays. It is found by name where
the log folder is the default one.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from stormspark.errors import TopologyNotAliveError
from stormspark.private_files import check_private, default_log_folder, make_private, open_private

__all__ = ["Whereabouts"]

_NAME = "topology.json"


@dataclass(frozen=True)
class Whereabouts:
    """``pid`` is the driver's."""

    topology: str
    checkpoint: str
    log_folder: str
    generation: int
    pid: int

    def write(self) -> None:
        """Leave word."""
        path = make_private(self.log_folder) / _NAME
        new = path.with_suffix(f".{os.getpid()}")
        with open(open_private(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w", encoding="utf-8") as file:
            file.write(json.dumps(asdict(self), indent=2) + "\n")
        new.replace(path)

    @classmethod
    def read(cls, topology: str) -> Whereabouts:
        """What the last topology of that name left; raises `TopologyNotAliveError` where there was none for
        this user on this host, and `UnsupportedEnvironmentError` where the folder or the file may be somebody else's.
        """
        path = _path(topology)
        try:
            check_private(path.parent.parent)
            check_private(path.parent)
            # It names a folder from which things are unpickled: nobody else may have written it, or left it here.
            with open(open_private(path, os.O_RDONLY), encoding="utf-8") as file:
                return cls(**json.load(file))
        except FileNotFoundError:
            known = sorted(file.parent.name for file in path.parent.parent.glob("*/topology.json"))
            others = f"; there are {', '.join(known)}" if known else ""
            msg = f"no topology {topology!r} was started on this host by this user{others}: say where it is, --checkpoint DIR"
            raise TopologyNotAliveError(msg) from None


def _path(topology: str) -> Path:
    return default_log_folder() / topology / _NAME
