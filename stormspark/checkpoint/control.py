"""The control file: whose checkpoint folder this is, and how many lives the topology has had.

``<checkpoint>/stormspark/control.json`` lies beside Spark's own checkpoint, ``<checkpoint>/spark``. It is
written, atomically, before what it says is used: a driver that dies between the two has burnt a generation,
which harms nothing; one that used a generation before it was written might share it with its successor, and
workers could not tell the two apart.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from stormspark.errors import CheckpointError
from stormspark.plan.physical import PhysicalPlan

__all__ = ["Control", "ControlFile", "LocalControlFile", "next_generation"]

_FORMAT = 1


@dataclass(frozen=True)
class Control:
    """What the file says. ``components`` are the topology's component ids, sorted; ``sources`` those that Spark reads for, each
    with its class, in the order of their offsets in Spark's checkpoint; None in files that do not say.
    """

    topology: str
    generation: int
    components: tuple[str, ...]
    sources: tuple[tuple[str, str], ...] | None = None
    format: int = _FORMAT


class ControlFile(Protocol):
    """Where the file is kept: a local folder, or whatever Spark can write a checkpoint to."""

    def read(self) -> bytes | None:
        """The file's bytes, or None where there is none."""

    def write(self, data: bytes) -> None:
        """Replace the file, so that a reader sees the old or the new one, whole."""

    def __str__(self) -> str:
        """The folder, for people."""


class LocalControlFile:
    """The control file of a checkpoint in a local folder, which is made if it is not there."""

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint
        self._path = checkpoint / "stormspark" / "control.json"

    def read(self) -> bytes | None:
        """The file's bytes, or None where there is none."""
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return None

    def write(self, data: bytes) -> None:
        """Replace the file and see to it that it is on disk."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_suffix(".new")
        with new.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)

    def __str__(self) -> str:
        return str(self._checkpoint)


def next_generation(file: ControlFile, plan: PhysicalPlan) -> Control:
    """Begin a new generation of ``plan``'s topology in a checkpoint folder: read, check, count up, write.

    Another topology is one of another name, or one that shares no component with what ran here: an upgraded
    topology keeps its checkpoint, as long as its source spouts are the same: Spark keeps their offsets by position. Raises
    `CheckpointError` where the folder is another topology's, where the sources differ, or where it can't be read or written.
    """
    try:
        data = file.read()
        before = None if data is None else _parsed(data, file)
        components = tuple(sorted(plan.components))
        if before is not None:
            _check_owner(before, plan.topology, components, file)
            _check_sources(before, plan, file)
        sources = tuple((source.id, source.kind_of_source) for source in plan.sources)
        generation = 0 if before is None else before.generation + 1
        control = Control(plan.topology, generation, components, sources)
        file.write(json.dumps(asdict(control), indent=2).encode() + b"\n")
    except OSError as error:
        msg = f"the checkpoint folder {file} can't be used: {error}"
        raise CheckpointError(msg) from error
    return control


def _check_owner(before: Control, topology: str, components: tuple[str, ...], file: ControlFile) -> None:
    if before.topology != topology:
        msg = (
            f"the checkpoint folder {file} belongs to the topology {before.topology!r}, "
            f"not to {topology!r}: give another"
        )
        raise CheckpointError(msg)
    if not set(before.components) & set(components):
        msg = (
            f"the checkpoint folder {file} belongs to another topology called {topology!r}, with the "
            f"components {', '.join(before.components)} instead of {', '.join(components)}: give another"
        )
        raise CheckpointError(msg)


def _check_sources(before: Control, plan: PhysicalPlan, file: ControlFile) -> None:
    if before.sources is None:
        return
    was, now = dict(before.sources), {source.id: source for source in plan.sources}
    changes = [f"spout {gone!r} ({was[gone]}) is gone" for gone in was if gone not in now]
    for name, source in now.items():
        if name not in was:
            changes.append(f"spout {name!r} ({source.kind_of_source}) is new ({source.declared_at})")
        elif was[name] != source.kind_of_source:
            changes.append(
                f"spout {name!r} was {was[name]} and is {source.kind_of_source} ({source.declared_at})"
            )
    if changes:
        msg = (
            f"the checkpoint folder {file} holds the offsets of other sources of {plan.topology!r}: {'; '.join(changes)}. "
            f"Spark keeps offsets by position, so sources can't come, go or change there. Work off the old topology "
            f"(--trigger available-now), then begin with a new checkpoint folder: a KafkaSpout goes on where its group has "
            f"committed (K3). All else, bolts, groupings, parallelism and workers, may change"
        )
        raise CheckpointError(msg)


def _parsed(data: bytes, file: ControlFile) -> Control:
    try:
        fields = json.loads(data)
        control = Control(
            str(fields["topology"]),
            int(fields["generation"]),
            tuple(fields["components"]),
            None
            if fields.get("sources") is None
            else tuple((str(id), str(kind)) for id, kind in fields["sources"]),
            int(fields["format"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        msg = f"stormspark/control.json in the checkpoint folder {file} is damaged: {error!r}"
        raise CheckpointError(msg) from error
    if control.format > _FORMAT:
        msg = (
            f"the checkpoint folder {file} was written by a newer stormspark "
            f"(format {control.format}, this one knows {_FORMAT})"
        )
        raise CheckpointError(msg)
    return control
