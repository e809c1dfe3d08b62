"""The control file says which topology owns a checkpoint folder, and which generation the topology has reached.

``<checkpoint>/stormspark/control.json`` lies beside Spark's own checkpoint, ``<checkpoint>/spark``. A driver writes the file
atomically, and only then uses the new generation. If the driver dies in between, the generation is never used, which does no
harm. If a driver used a generation before it has written the file, the next driver could get the same generation. Then workers
could not distinguish the two drivers.

The file also names the driver that uses the checkpoint. If two drivers use it, the one that wrote the file last has it. The other
one finds that out when it reads the file again, and ends (`stormspark.spark.fence`). This needs no locks, which object stores do
not have.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from stormspark.errors import CheckpointError
from stormspark.plan.physical import PhysicalPlan

__all__ = [
    "Control",
    "ControlFile",
    "Driver",
    "LocalControlFile",
    "check_control",
    "next_generation",
    "read_control",
    "usable",
]

_FORMAT = 1

#: Error codes of a file system that can't do something at all, as opposed to a full disk or a missing permission.
_NEVER = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


@dataclass(frozen=True)
class Driver:
    """The driver that uses a checkpoint: a process on a host, and when it started, in the kernel's clock ticks.

    ``id`` is random, so that it also distinguishes two topologies of one process. Earlier versions can't read a file with further
    fields of the driver.
    """

    id: str
    host: str
    pid: int
    started: int

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@dataclass(frozen=True)
class Control:
    """The contents of the control file.

    ``components`` are the topology's component ids, sorted. ``sources`` are the ids of its source spouts, each with its class,
    in the order of their offsets in Spark's checkpoint. ``sources`` is None for a file that does not list them.

    ``application`` is the id of the driver's Spark application if the cluster starts the driver again when it has failed, as YARN
    does in cluster mode; otherwise it is empty.
    """

    topology: str
    generation: int
    components: tuple[str, ...]
    sources: tuple[tuple[str, str], ...] | None = None
    format: int = _FORMAT
    #: None in the files of earlier versions.
    driver: Driver | None = None
    application: str = ""


class ControlFile(Protocol):
    """The storage of the control file: a local folder, or any place to which Spark can write a checkpoint."""

    def read(self) -> bytes | None:
        """Return the file's bytes, or None if there is no file."""

    def write(self, data: bytes) -> None:
        """Replace the file, so that a reader sees either the whole old file or the whole new one."""

    def read_beat(self, driver: str) -> bytes | None:
        """Return what the driver with this id wrote last to show that it lives; None if it has ended in order."""

    def write_beat(self, driver: str, data: bytes | None) -> None:
        """Show that the driver with this id lives. None says that it has ended."""

    def __str__(self) -> str:
        """Return the name of the checkpoint folder, for messages."""


class LocalControlFile:
    """The control file of a checkpoint in a local folder. The folder is created if it does not exist."""

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint
        self._path = checkpoint / "stormspark" / "control.json"

    def read(self) -> bytes | None:
        """Return the file's bytes, or None if there is no file."""
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return None

    def write(self, data: bytes) -> None:
        """Replace the file. It is on disk when this returns."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Two drivers may write at the same time, so each has a new file of its own.
        new = self._path.with_suffix(f".{secrets.token_hex(4)}.new")
        with new.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)

    def try_out(self) -> None:
        """Raise OSError if this folder takes no new file, or can't replace one: mounts of some object stores can't."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new, other = (self._path.with_suffix(f".{secrets.token_hex(4)}.new") for _ in range(2))
        try:
            new.write_bytes(b"?")
            other.write_bytes(b"?")
            new.replace(other)
        finally:
            new.unlink(missing_ok=True)
            other.unlink(missing_ok=True)

    def read_beat(self, driver: str) -> bytes | None:
        """Return what a driver wrote last."""
        try:
            return self._beat(driver).read_bytes()
        except FileNotFoundError:
            return None

    def write_beat(self, driver: str, data: bytes | None) -> None:
        """Write the driver's file, or delete it."""
        if data is None:
            self._beat(driver).unlink(missing_ok=True)
        else:
            self._beat(driver).write_bytes(data)

    def _beat(self, driver: str) -> Path:
        return self._path.with_name(f"driver-{driver}")

    def __str__(self) -> str:
        return str(self._checkpoint)


def read_control(file: ControlFile) -> Control | None:
    """Return what the control file says; None if there is none. Raises `CheckpointError` and OSError."""
    data = file.read()
    return None if data is None else _parsed(data, file)


def next_generation(
    file: ControlFile, plan: PhysicalPlan, driver: Driver | None = None, application: str = ""
) -> Control:
    """Begin a new generation of ``plan``'s topology in a checkpoint folder: read, check, count up, write.

    A topology counts as another one if it has another name than the topology that ran with this folder before, or if the two
    share no component. So an upgraded topology keeps its checkpoint. But its source spouts have to stay the same, because Spark's
    checkpoint lists their offsets by position. Raises `CheckpointError` if the folder belongs to another topology, if the source
    spouts differ, or if the file can't be read or written.
    """
    with usable(file):
        before = check_control(file, plan)
        components = tuple(sorted(plan.components))
        sources = tuple((source.id, source.kind_of_source) for source in plan.sources)
        generation = 0 if before is None else before.generation + 1
        control = Control(
            plan.topology, generation, components, sources, driver=driver, application=application
        )
        file.write(json.dumps(asdict(control), indent=2).encode() + b"\n")
    return control


def check_control(file: ControlFile, plan: PhysicalPlan) -> Control | None:
    """Return what the control file says; None if there is none. Raises `CheckpointError` if ``plan``'s topology can't go on from
    this checkpoint, and OSError.
    """
    before = read_control(file)
    if before is not None:
        _check_owner(before, plan.topology, tuple(sorted(plan.components)), file)
        _check_sources(before, plan, file)
    return before


@contextmanager
def usable(file: ControlFile) -> Iterator[None]:
    """Raise `CheckpointError` in place of an OSError: the checkpoint folder can't be read or written."""
    try:
        yield
    except OSError as error:
        msg = (
            f"the checkpoint folder {file} can't be used: {error}. It has to be a folder that this user can write to, on a disk "
            f"with space left"
        )
        if error.errno in _NEVER:
            msg = (
                f"the checkpoint folder {file} can't be used: {error}. Its file system does not replace files, as mounts of "
                f"object stores do not: give the URL of that place, such as s3a://bucket/checkpoint, or another folder"
            )
        raise CheckpointError(msg) from error


def _check_owner(before: Control, topology: str, components: tuple[str, ...], file: ControlFile) -> None:
    if before.topology != topology:
        msg = (
            f"the checkpoint folder {file} belongs to the topology {before.topology!r}, "
            f"not to {topology!r}: give another folder"
        )
        raise CheckpointError(msg)
    if not set(before.components) & set(components):
        msg = (
            f"the checkpoint folder {file} belongs to another topology called {topology!r}, with the "
            f"components {', '.join(before.components)} instead of {', '.join(components)}: give another folder"
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
            f"the checkpoint folder {file} has the offsets of other sources of {plan.topology!r}: {'; '.join(changes)}. "
            f"Spark keeps offsets by position, so its sources can't be added, removed or changed. Run the old topology to "
            f"its end (--trigger available-now), then begin with a new checkpoint folder: a KafkaSpout continues where its "
            f"group has committed. Everything else may change: bolts, groupings, parallelism and workers"  # K3
        )
        raise CheckpointError(msg)


def _driver(fields: dict[str, Any]) -> Driver:
    return Driver(**{field: fields[field] for field in Driver.__annotations__})


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
            None if fields.get("driver") is None else _driver(fields["driver"]),
            str(fields.get("application", "")),
        )
    except (ValueError, KeyError, TypeError) as error:
        msg = (
            f"stormspark/control.json in the checkpoint folder {file} is damaged ({error!r}): restore it from a copy, or give "
            f"another folder"
        )
        raise CheckpointError(msg) from error
    if control.format > _FORMAT:
        msg = (
            f"the checkpoint folder {file} was written by a newer stormspark "
            f"(format {control.format}, this one knows {_FORMAT}): use that version"
        )
        raise CheckpointError(msg)
    return control
