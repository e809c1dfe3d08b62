"""Commands that travel through a checkpoint folder, for a driver that no connection reaches (J1).

    <checkpoint>/stormspark/commands/command-<id>.json    what somebody asks of the driver
    <checkpoint>/stormspark/commands/answer-<id>.json     what the driver has answered

**Who may command.** Whoever may write to the folder: its rights are the rights.

**Once, and only for the driver that lives.** A command names the driver that it is for, by the random id in the control file
(`stormspark.checkpoint.control.Driver`). So a command that was left by a driver's end means nothing to the next driver,
which deletes it. A driver remembers the ids of the commands that it has run, also if their files can't be deleted. A file that
is no whole command is never run. One that can't be read now, because the storage is away, is read again later. Clocks are not
compared.

The command's sender waits for the answer and then deletes it. A sender that gives up deletes its command. The driver deletes
answers that nobody has fetched in ten minutes. A file of its own for each command means that two senders at once don't write over
each other's.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stormspark.checkpoint.dead_letters import LetterFiles

__all__ = ["FOLDER", "Answer", "Command", "CommandBox", "answer_to", "send_command", "withdraw_command"]

_log = logging.getLogger(__name__)

#: The folder in the checkpoint folder.
FOLDER = "stormspark/commands"
_FORMAT = 1
_COMMAND = re.compile(r"command-([0-9a-f]{16})\.json")
_ANSWER = re.compile(r"answer-[0-9a-f]{16}\.json")
#: A command has a path and perhaps some levels of loggers.
_MOST_BYTES = 200_000
#: A sender that lives fetches an answer within a second. In seconds.
_FETCHED_SECS = 600.0


@dataclass(frozen=True)
class Command:
    """A call of the REST API, for the driver with the id ``driver``."""

    id: str
    driver: str
    method: str
    path: str
    body: Any = None
    format: int = _FORMAT


@dataclass(frozen=True)
class Answer:
    """What the driver has answered: the status of HTTP, and an object."""

    status: int
    body: dict[str, Any]


class CommandBox:
    """The driver's side: runs the commands in ``files`` that are for ``driver``. See the module.

    ``call`` carries out a call: method, path, body. Making the box deletes what earlier drivers have left.

    >>> import tempfile, pathlib
    >>> from stormspark.checkpoint.dead_letters import LocalLetterFiles
    >>> files = LocalLetterFiles(pathlib.Path(tempfile.mkdtemp()))
    >>> box = CommandBox(files, "17ab", lambda method, path, body: (200, {"done": path}))
    >>> sent = send_command(files, "17ab", "POST", "topology/words/activate", None)
    >>> box.look()
    >>> answer_to(files, sent)
    Answer(status=200, body={'done': 'topology/words/activate'})
    >>> files.names()
    []
    """

    def __init__(
        self,
        files: LetterFiles,
        driver: str,
        call: Callable[[str, str, Any], tuple[int, dict[str, Any]]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files, self._driver, self._call, self._clock = files, driver, call, clock
        #: The files that were read. A listing may lack them for a while, as that of a mount that is away. So those that were run
        #: are forgotten only once they were deleted.
        self._seen: set[str] = set()
        self._ran: set[str] = set()
        self._deleted: set[str] = set()
        #: The files with answers, and when they were written.
        self._answered: dict[str, float] = {}
        self._closed = threading.Event()
        with contextlib.suppress(OSError):
            self._delete_old()

    def keep_looking(self, every_secs: float) -> None:
        """Look for commands from now on, on a thread of its own, until `close`. A call that hangs holds up commands alone."""
        threading.Thread(
            target=self._keep_looking, args=(every_secs,), name="commands from the checkpoint", daemon=True
        ).start()

    def close(self) -> None:
        """Look no more. Whoever waits for an answer sees that the driver has ended."""
        self._closed.set()

    def _keep_looking(self, every_secs: float) -> None:
        while not self._closed.wait(every_secs):
            try:
                self.look()
            except (
                Exception
            ) as error:  # the storage may be away, or Spark has ended; the next look may go well
                _log.debug("commands in the checkpoint can't be read: %s", error)

    def _delete_old(self) -> None:
        for name in self._files.names():
            with contextlib.suppress(OSError):
                command = self._read(name) if _COMMAND.fullmatch(name) else None
                if _ANSWER.fullmatch(name) or (command is not None and command.driver != self._driver):
                    self._files.delete(name)

    def _delete_unfetched(self) -> None:
        now = self._clock()
        for name in [name for name, at in self._answered.items() if now - at >= _FETCHED_SECS]:
            self._files.delete(name)
            del self._answered[name]

    def look(self) -> None:
        """Run the commands that are there. Raises OSError."""
        names = sorted(name for name in self._files.names() if _COMMAND.fullmatch(name))
        self._forget_all_but(names)
        for name in names:
            if name in self._seen or self._closed.is_set():
                continue
            try:
                command = self._read(name)
            except OSError:
                continue
            self._seen.add(name)  # before it runs: whatever happens, it runs once
            if command is not None and command.driver == self._driver:
                self._ran.add(name)
                self._run(command, name)
        self._delete_unfetched()

    def _run(self, command: Command, name: str) -> None:
        _log.info("a command came through the checkpoint: %s %s", command.method, command.path)
        try:
            status, body = self._call(command.method, command.path, command.body)
        except Exception as error:
            status, body = 500, {"errorMessage": f"{type(error).__name__}: {error}"}
        answer = json.dumps(asdict(Answer(status, body))).encode()
        answered = _answer_name(command.id)
        self._files.write(answered, answer, replace=True)
        self._answered[answered] = self._clock()
        self._files.delete(name)
        self._deleted.add(name)

    def _forget_all_but(self, names: Sequence[str]) -> None:
        self._ran -= self._deleted.difference(names)
        self._deleted &= self._ran
        self._seen &= self._ran.union(names)

    def _read(self, name: str) -> Command | None:
        """Return the command in a file; None for a file that is none, or has been withdrawn. Raises OSError."""
        try:
            data = self._files.read(name)
            if len(data) > _MOST_BYTES:
                return None
            command = Command(**json.loads(data))
        except (FileNotFoundError, ValueError, TypeError, RecursionError):
            return None
        parts = (command.id, command.driver, command.method, command.path)
        is_whole = all(isinstance(one, str) for one in parts) and command.format == _FORMAT
        return command if is_whole and name == _command_name(command.id) else None


def send_command(files: LetterFiles, driver: str, method: str, path: str, body: Any) -> str:
    """Write a command for a driver, and return the command's id. Raises OSError."""
    command = Command(secrets.token_hex(8), driver, method, path, body)
    files.write(_command_name(command.id), json.dumps(asdict(command)).encode(), replace=False)
    return command.id


def answer_to(files: LetterFiles, id: str) -> Answer | None:
    """Return the answer to a command, and delete it; None as long as there is none. Raises OSError."""
    name = _answer_name(id)
    try:
        fields = json.loads(files.read(name))
    except FileNotFoundError:
        return None
    with contextlib.suppress(OSError):
        files.delete(name)
    return Answer(int(fields["status"]), dict(fields["body"]))


def withdraw_command(files: LetterFiles, id: str) -> None:
    """Delete a command, so that it does not run later. Raises OSError."""
    files.delete(_command_name(id))


def _command_name(id: str) -> str:
    return f"command-{id}.json"


def _answer_name(id: str) -> str:
    return f"answer-{id}.json"
