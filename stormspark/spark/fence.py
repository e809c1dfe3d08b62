"""The fence around a checkpoint: only one driver uses it, on any file system.

    driver 1   writes its id into the control file                   checks the file before each commit: ends
    driver 2                          writes its id into the control file       goes on

A driver that starts writes its own id into the control file (`stormspark.checkpoint.control`). From then on, each check of an
earlier driver fails. A driver checks when an attempt begins, and when a batch has run, before Spark commits it. If another driver
takes over between a check and the commit, Spark itself lets only one of the two commit this batch.

If ``stormspark.checkpoint.in.use`` is "refuse", a driver does not take over from a driver that lives, whatever that one's setting
is. A driver on the same machine lives if its process does. Elsewhere it lives if its beats come: each driver counts in a file of
its own, on a thread of its own, because a start or an outage may hold up all others. Clocks are not compared.

YARN starts a failed driver again in cluster mode. Such a later attempt does not take over from a live driver of another
application: that one was submitted later, and has fenced off the first attempt. Otherwise the two applications would take the
checkpoint from each other until YARN gives one of them up.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from stormspark.checkpoint.control import (
    ControlFile,
    Driver,
    LocalControlFile,
    check_control,
    next_generation,
    read_control,
    usable,
)
from stormspark.errors import CheckpointError, FencedError
from stormspark.plan.physical import PhysicalPlan
from stormspark.spark.checkpoint_folder import local_path
from stormspark.worker.host.lifeline import is_alive, this_machine, this_process
from stormspark.worker.host.messages import ProcessId

__all__ = ["BEAT_SECS", "Fence", "Submission", "check_checkpoint", "submission_of", "this_machine"]

_log = logging.getLogger(__name__)

#: A driver shows this often that it lives.
BEAT_SECS = 5.0
#: A driver on another host is dead if no beat comes for so many seconds.
_DEAD_SECS = 3 * BEAT_SECS
_LOOK_SECS = 0.5


class Submission(NamedTuple):
    """An application whose driver the cluster starts again when it has failed, and the number of times it has started it."""

    application: str
    attempt: int


NO_ATTEMPTS = Submission("", 1)


class Fence:
    """The place of one driver in the order of the drivers of a checkpoint. To make it is to take the checkpoint.

    Raises `CheckpointError` if another driver lives and may not be taken over from, and in the cases of `next_generation`.
    Raises `FencedError` if this driver is a later attempt of its application, and a live driver of another application has the
    checkpoint. ``wait`` waits for some seconds; it returns true if nobody needs the answer any more.
    """

    def __init__(
        self,
        file: ControlFile,
        plan: PhysicalPlan,
        wait: Callable[[float], object] = time.sleep,
        *,
        submission: Submission = NO_ATTEMPTS,
    ) -> None:
        me = this_process()
        self._file, self._application = file, submission.application
        self._me = Driver(secrets.token_hex(8), me.host, me.pid, me.started)
        self._count = 0
        self._has_left, self._beating = threading.Event(), threading.Lock()
        with usable(file):
            former = self._last_driver(plan, wait, submission)
            #: How many drivers this checkpoint has seen before this one.
            self.generation = next_generation(file, plan, self._me, submission.application).generation
            self._beat()
            if former is not None:
                file.write_beat(former.id, None)

    def _last_driver(
        self, plan: PhysicalPlan, wait: Callable[[float], object], submission: Submission
    ) -> Driver | None:
        """Return the driver that has the checkpoint, unless that one lives and may not be taken over from."""
        seen: set[Driver] = set()
        while True:
            before = read_control(self._file)
            former = None if before is None else before.driver
            if before is None or former is None or former in seen:
                return former
            taken_over = submission.attempt > 1 and before.application != submission.application
            if not (taken_over or _refuses(plan)):
                return former
            if self._lives(former, wait):
                raise _taken_over(self._file, former) if taken_over else _in_use(self._file, former)
            # Another driver may have taken over meanwhile.
            seen.add(former)

    @property
    def driver(self) -> str:
        """The id of this driver in the control file."""
        return self._me.id

    def check(self) -> None:
        """Raise `FencedError` if another driver has taken over. Raises OSError if the control file can't be read."""
        control = read_control(self._file)
        if control is not None and control.driver != self._me:
            by = "a driver of an earlier version" if control.driver is None else str(control.driver)
            msg = (
                f"the checkpoint folder {self._file} belongs to another driver now: {by} has taken it over as generation "
                f"{control.generation}, and this one, {self._me}, was generation {self.generation}. It ends and commits nothing "
                f"more. Run one driver per checkpoint folder; with stormspark.checkpoint.in.use: refuse, a later one does not "
                f"start as long as the earlier one lives"
            )
            raise FencedError(msg)

    def begin_generation(self, plan: PhysicalPlan) -> None:
        """Begin another generation of the same driver, with another plan of its topology.

        Raises `FencedError` if another driver has taken over, and `CheckpointError`.
        """
        with usable(self._file):
            self.check()
            self.generation = next_generation(self._file, plan, self._me, self._application).generation

    def keep_beating(self) -> None:
        """Show from now on, until `leave`, that this driver lives."""
        threading.Thread(target=self._keep_beating, name="beats-of-the-driver", daemon=True).start()

    def _keep_beating(self) -> None:
        while not self._has_left.wait(BEAT_SECS):
            with contextlib.suppress(Exception):  # batches fail, too, and say so; or Spark has ended
                self._beat()

    def _beat(self) -> None:
        with self._beating:
            if self._has_left.is_set():
                return
            self._count += 1
            self._file.write_beat(self._me.id, f"{self._count} {this_machine()}".encode())

    def leave(self) -> None:
        """Say that this driver has ended."""
        self._has_left.set()
        with self._beating, contextlib.suppress(Exception):  # Spark may have ended
            self._file.write_beat(self._me.id, None)

    def _lives(self, former: Driver, wait: Callable[[float], object]) -> bool:
        first = self._file.read_beat(former.id)
        if first is None:
            return False
        if _is_here(former, first):
            return is_alive(_process(former))
        _log.info("the checkpoint %s was last used by %s: waiting whether it lives", self._file, former)
        for _ in range(round(_DEAD_SECS / _LOOK_SECS)):
            wait(_LOOK_SECS)
            if self._file.read_beat(former.id) not in (first, None):
                return True
        return False


def submission_of(session: SparkSession) -> Submission:
    """Return which attempt of which application runs here. Only YARN counts attempts, and only in cluster mode."""
    context: Any = session.sparkContext._jsc.sc()
    attempt = context.applicationAttemptId()
    return (
        Submission(str(context.applicationId()), int(attempt.get())) if attempt.isDefined() else NO_ATTEMPTS
    )


def check_checkpoint(checkpoint: str | Path | None, plan: PhysicalPlan) -> None:
    """Raise `CheckpointError` if a checkpoint in a local folder can't be used.

    Somebody who starts a driver should not have to wait for Spark's start to hear of this. All of it is checked again when the
    driver takes the checkpoint.
    """
    local = None if checkpoint is None else local_path(str(checkpoint))
    if local is None:
        return
    file = LocalControlFile(Path(local))
    with usable(file):
        before = check_control(file, plan)
        former = None if before is None else before.driver
        if _refuses(plan) and former is not None:
            beat = file.read_beat(former.id)
            if beat is not None and _is_here(former, beat) and is_alive(_process(former)):
                raise _in_use(file, former)
        file.try_out()


def _process(driver: Driver) -> ProcessId:
    return ProcessId(driver.host, driver.pid, driver.started)


def _refuses(plan: PhysicalPlan) -> bool:
    return plan.settings.checkpoint_in_use == "refuse"


def _is_here(former: Driver, beat: bytes) -> bool:
    """Whether this process can see the former driver's. Hosts may share a name, and containers on one host don't see one
    another's processes.
    """
    return (
        former.host == this_process().host
        and beat.decode(errors="replace").partition(" ")[2] == this_machine()
    )


def _in_use(file: ControlFile, former: Driver) -> CheckpointError:
    msg = (
        f"the checkpoint folder {file} is in use by another driver, {former}: stop that one first, or give another folder, or "
        f"set stormspark.checkpoint.in.use to take-over, and this one takes over"
    )
    return CheckpointError(msg)


def _taken_over(file: ControlFile, former: Driver) -> FencedError:
    msg = (
        f"the checkpoint folder {file} belongs to another driver now: {former} has taken it over from an earlier attempt of this "
        f"application, and lives. This attempt ends, and commits nothing. Run one driver per checkpoint folder; with "
        f"stormspark.checkpoint.in.use: refuse, a later one does not start as long as the earlier one lives"
    )
    return FencedError(msg)
