"""Commands for a topology on Spark that come through its checkpoint folder, in any place that Spark can write to."""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from stormspark.checkpoint.commands import FOLDER as COMMANDS
from stormspark.checkpoint.commands import CommandBox
from stormspark.checkpoint.control import ControlFile
from stormspark.checkpoint.dead_letters import LetterFiles
from stormspark.errors import CheckpointError
from stormspark.operations.checkpoint_client import THIS_TOPOLOGY
from stormspark.operations.server import Server
from stormspark.spark.checkpoint_folder import CheckpointFolder
from stormspark.spark.java_errors import in_words
from stormspark.spark.session import local_session

__all__ = ["command_box", "commands_at_url"]

#: How often the driver looks for commands, in seconds. A look at a local folder costs microseconds, and one at a URL a request.
_LOOK_SECS, _LOOK_AT_URL_SECS = 1.0, 5.0


def command_box(folder: CheckpointFolder, driver: str, server: Server, storm_id: str) -> CommandBox:
    """Look for commands for ``driver`` in a checkpoint folder from now on, and let the topology's server carry them out."""

    def call(method: str, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        return server.call(method, path.replace(THIS_TOPOLOGY, storm_id), body)

    if folder.local is not None:
        _make_folder(Path(folder.local))
    box = CommandBox(folder.commands(), driver, call)
    box.keep_looking(_LOOK_AT_URL_SECS if folder.local is None else _LOOK_SECS)
    return box


def _make_folder(checkpoint: Path) -> None:
    """Make the folder for commands, with the rights of the checkpoint folder. The first sender may be another user, in
    whose folder this driver could write no answer.
    """
    place = checkpoint / COMMANDS
    with contextlib.suppress(OSError):  # then there are no commands from other users
        if not place.is_dir():
            place.mkdir(parents=True)
            place.chmod(stat.S_IMODE(checkpoint.stat().st_mode))


def commands_at_url(url: str, conf: Mapping[str, Any]) -> tuple[ControlFile, LetterFiles]:
    """Return the control file of a checkpoint folder at a URL, and the files of its commands.

    Uses the active Spark session, or else a local one with the settings of ``conf``. Raises `CheckpointError` if the folder can't
    be read.
    """
    session = SparkSession.getActiveSession() or local_session(1, conf)
    try:
        folder = CheckpointFolder(session, url)
        return folder.control_file(), folder.commands()
    except (PySparkException, Py4JError, OSError) as error:
        msg = f"the checkpoint folder {url} can't be read: {in_words(error)}"
        raise CheckpointError(msg) from error
