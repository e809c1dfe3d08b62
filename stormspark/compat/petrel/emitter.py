"""``petrel.emitter``: the classes that users of Petrel subclass."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, ClassVar

from stormspark.compat.petrel import storm

__all__ = ["BasicBolt", "Bolt", "EmitterBase", "Spout"]


class EmitterBase:
    """What ``create`` adds to the builder: it names the component's script, and declares its fields and its configuration."""

    DEFAULT_PYTHON: ClassVar[str] = f"python{sys.version_info.major}.{sys.version_info.minor}"

    def __init__(self, script: str | None = None) -> None:
        """Name the component's script, usually ``script=__file__``. Forks of Petrel take the module of the class by default."""
        stem = PurePath(script).stem if script else type(self).__module__.rpartition(".")[2]
        self.script = f"{stem}.py"
        self.execution_command = self.DEFAULT_PYTHON
        self._json: dict[str, Any] = {}
        super().__init__()

    def declareOutputFields(self) -> Sequence[str] | None:  # noqa: N802
        """Return the names of the fields of the default stream; the user's class overrides this."""
        raise NotImplementedError

    def getComponentConfiguration(self) -> Mapping[str, Any] | None:  # noqa: N802
        """Return the component's own configuration (A21)."""
        return self._json or None


class Spout(EmitterBase, storm.Spout):
    """Petrel's spout."""


class BasicBolt(EmitterBase, storm.BasicBolt):
    """Petrel's bolt that anchors and acks by itself."""


class Bolt(EmitterBase, storm.Bolt):
    """Petrel's bolt whose code anchors and acks."""
