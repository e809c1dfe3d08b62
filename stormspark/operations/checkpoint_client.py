"""Asks the driver of a topology through its checkpoint folder, where no connection leads to it (J1)."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from typing import Any

from stormspark.checkpoint import control
from stormspark.checkpoint.commands import Answer, answer_to, send_command, withdraw_command
from stormspark.checkpoint.control import Control, ControlFile, read_control
from stormspark.checkpoint.dead_letters import LetterFiles
from stormspark.errors import CheckpointError, TopologyNotAliveError
from stormspark.operations.client import Driver
from stormspark.worker.host.lifeline import is_alive, this_machine, this_process
from stormspark.worker.host.messages import ProcessId

__all__ = ["THIS_TOPOLOGY", "CheckpointClient"]

#: Stands for the id of the topology in the path of a call. The sender does not know the id.
THIS_TOPOLOGY = "{this}"
_LOOK_SECS = 0.2
#: A driver shows every five seconds that it lives (`stormspark.spark.fence`). On a storage that is slow it may be less often.
_DEAD_SECS = 20.0


class CheckpointClient(Driver):
    """The driver that uses a checkpoint folder, with the control file ``control_file`` and the commands ``files``.

    ``name`` is the topology's name or id, if somebody has given it. ``say`` gets lines while an answer is waited for, at most
    ``limit_secs``. Raises `TopologyNotAliveError` if no driver uses the folder.
    """

    def __init__(
        self,
        control_file: ControlFile,
        files: LetterFiles,
        name: str | None,
        *,
        say: Callable[[str], None],
        limit_secs: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._control, self._files, self._say, self._limit = control_file, files, say, limit_secs
        self._clock, self._sleep = clock, sleep
        found = self._read()
        self._driver = self._driver_of(found)
        self.name, self.id = found.topology, THIS_TOPOLOGY
        if name is not None and name != found.topology:
            if not re.fullmatch(re.escape(found.topology) + r"-\d+-\d+", name):
                msg = f"the checkpoint folder {control_file} belongs to the topology {found.topology!r}, and not to {name!r}"
                raise TopologyNotAliveError(msg)
            self.id = name  # the driver knows whether it is the id of this run

    def _read(self) -> Control:
        try:
            found = read_control(self._control)
        except OSError as error:
            msg = f"the checkpoint folder {self._control} can't be read: {error}"
            raise CheckpointError(msg) from error
        if found is None:
            msg = f"{self._control} is no checkpoint folder of a topology: it has no stormspark/control.json"
            raise TopologyNotAliveError(msg)
        return found

    def _driver_of(self, found: Control) -> control.Driver:
        """Return the driver that uses the folder. Raises `TopologyNotAliveError` if it has ended."""
        again = "run the topology again with this checkpoint, and it goes on"
        driver, beat = found.driver, None
        if driver is not None:
            beat = self._beat_of(driver)
        if driver is None or beat is None:
            msg = f"no driver uses the checkpoint folder {self._control}, because that of {found.topology!r} has ended: {again}"
            raise TopologyNotAliveError(msg)
        machine = beat.decode(errors="replace").partition(" ")[2]
        is_here = driver.host == this_process().host and machine == this_machine()
        if is_here and not is_alive(ProcessId(driver.host, driver.pid, driver.started)):
            msg = f"the driver of {found.topology!r}, {driver}, has ended without a word, as after kill -9: {again}"
            raise TopologyNotAliveError(msg)
        return driver

    def _beat_of(self, driver: control.Driver) -> bytes | None:
        try:
            return self._control.read_beat(driver.id)
        except OSError as error:
            msg = f"the checkpoint folder {self._control} can't be read: {error}"
            raise CheckpointError(msg) from error

    def send(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, Any]]:
        """See `Driver`."""
        try:
            sent = send_command(self._files, self._driver.id, method, path, body)
        except OSError as error:
            msg = f"the checkpoint folder {self._control} can't be written to: {error}. Commands need the right to write there"
            raise CheckpointError(msg) from error
        try:
            answer = self._waited_for(sent)
        except BaseException:  # also Ctrl-C: nobody expects that it still runs
            with contextlib.suppress(OSError):
                withdraw_command(self._files, sent)
            raise
        return answer.status, answer.body

    def _waited_for(self, sent: str) -> Answer:
        began = self._clock()
        beat, beat_at = self._beat_of(self._driver), began
        said_at = began
        while True:
            with contextlib.suppress(
                OSError, ValueError, KeyError, TypeError
            ):  # it may be half written, or away
                if (answer := answer_to(self._files, sent)) is not None:
                    return answer
            now = self._clock()
            if now - said_at >= 3.0:
                said_at = now
                self._say(f"waiting for {self._driver} to answer, for {now - began:.0f} s")
                latest = self._beat_of(self._driver)
                if latest is None:
                    msg = f"the driver, {self._driver}, has ended before it answered"
                    raise TopologyNotAliveError(msg)
                if latest != beat:
                    beat, beat_at = latest, now
            if now - beat_at >= _DEAD_SECS:
                msg = (
                    f"the driver, {self._driver}, has shown no sign of life for {now - beat_at:.0f} s: it was killed, or can't "
                    f"reach the checkpoint folder {self._control}. The command is withdrawn. If the driver is gone, run the "
                    f"topology again with this checkpoint, and it goes on"
                )
                raise TopologyNotAliveError(msg)
            if now - began >= self._limit:
                msg = (
                    f"the driver, {self._driver}, lives, but has not answered within {self._limit:g} s: the command is "
                    f"withdrawn, unless it runs already. `stormspark list` with the same --checkpoint shows the state; an "
                    f"earlier version of stormspark takes no commands there"
                )
                raise TopologyNotAliveError(msg)
            self._sleep(_LOOK_SECS)
