"""A worker process. It hosts one `Worker`, and keeps it alive from batch to batch.

The threads, and their work:

    main                the worker's thread: opens the tasks, runs errands in order, obeys orders, closes the tasks
    one per connection  receives a whole request, waits for its errand, sends the reply
    lifeline            sends heartbeats, receives orders from nimbus, watches the JVM of the Spark executor

The `Desk` passes requests from the threads of connections to the main thread. The lifeline has a thread of its own, so that a
long superstep does not stop heartbeats. The start has these steps:

1. The interpreter starts and imports its modules. Then the process forks (`watchman`).
2. The new process sends Hello to nimbus, and nimbus sends the plan (`introduce`).
3. The process writes "up", for the process that started it.
4. The process opens the tasks, and sends Ready.

From step 2 on, the process reports an error to nimbus. Nimbus stops the topology with that error if the next start would fail,
too. A worker whose process is killed during its start is a lost worker like any other. Before "up", the process that started
the worker notices the loss. After "up", nimbus notices it by the broken connection.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import queue
import sys
import threading
import traceback
from pathlib import Path
from typing import NoReturn

from stormspark.errors import UnsupportedEnvironmentError
from stormspark.plan.physical import PhysicalPlan
from stormspark.private_files import HeldFolder, make_log_folder
from stormspark.rotated_output import RotatedOutput
from stormspark.wire.frames import frames_from
from stormspark.worker.core import Worker
from stormspark.worker.host.connection import Connection
from stormspark.worker.host.descriptors import make_room
from stormspark.worker.host.desk import Desk, Errand, RefusedError
from stormspark.worker.host.frame_messages import messages_from, record_batches_in
from stormspark.worker.host.garbage import GarbageBetweenBatches
from stormspark.worker.host.introduction import (
    LAST_WORDS_SECS,
    Introduction,
    NotIntroducedError,
    introduce,
    unusable_logs,
)
from stormspark.worker.host.launch import Launch, remove_folders, worker_folder
from stormspark.worker.host.lifeline import Lifeline
from stormspark.worker.host.link import STRANGERS, Door
from stormspark.worker.host.logger_levels import LoggerLevels
from stormspark.worker.host.messages import (
    Adopt,
    Beat,
    Closed,
    End,
    Fatal,
    HeardOfCommit,
    Orders,
    Ready,
    Reply,
    Request,
    StartFailed,
    Stirs,
    Welcome,
)
from stormspark.worker.host.module_path import search_like_the_driver
from stormspark.worker.host.printing import end_of_output
from stormspark.worker.host.process_group import end_children
from stormspark.worker.host.task_logs import TaskLogs
from stormspark.worker.host.watchman import become_watched, exit_in_order

__all__ = ["WorkerProcess", "main"]

_log = logging.getLogger(__name__)

#: The garbage collector waits at most this long for a reply to be sent. Then it runs anyway, because only the thread that sends
#: the reply is stuck.
_SENT_SECS = 1.0
#: The file in the folder for logs that gets a worker's raw output.
_OUTPUT = "worker-{}.out"
#: While the main thread works, a thread that receives a request or sends a reply waits at most about this long for the
#: interpreter's lock. Python's default is five times as long.
_SWITCH_SECS = 0.001
#: How many seconds pass before an idle worker looks for work again. Storm calls an idle spout again after only 1 ms (B12).
_LOOK_SECS = 0.01


def main() -> None:
    """Read a `Launch` from standard input, detach, and run the worker until nimbus ends the process."""
    sys.setswitchinterval(_SWITCH_SECS)
    launch: Launch = pickle.load(sys.stdin.buffer)
    try:
        logs = make_log_folder(launch.log_folder, launch.topology)
    except (OSError, UnsupportedEnvironmentError) as error:
        sys.exit(unusable_logs(error))
    try:
        folder = worker_folder(launch)
    except UnsupportedEnvironmentError as error:
        sys.exit(str(error))
    become_watched(launch, logs / _OUTPUT.format(launch.worker), folder)
    process = WorkerProcess(launch, logs, folder)
    try:
        process.run()
    except BaseException:
        traceback.print_exc()
        process.end("it failed", code=1)


class WorkerProcess:
    """The process of one worker, from `run` to `end`."""

    def __init__(self, launch: Launch, logs: Path, folder: Path) -> None:
        self._launch, self._logs, self._pid = launch, logs, os.getpid()
        self._output = logs / _OUTPUT.format(launch.worker)
        self._folder, self._held = folder, HeldFolder(folder)
        self._bell: queue.SimpleQueue[Orders | Adopt | None] = queue.SimpleQueue()
        self._exit_ordered = threading.Event()
        self._attempt = launch.attempt
        self._active = True
        self._worker: Worker | None = None
        self._log_levels = LoggerLevels()
        self._looks = False  # whether the main thread looks for work while no batch comes
        self._coming: set[Connection] = set()  # the connections on which a request is arriving now
        self._desk: Desk
        self._lifeline: Lifeline
        self._garbage: GarbageBetweenBatches

    def run(self) -> NoReturn:
        """Say hello to nimbus, open the tasks, and then run requests and obey orders until nimbus ends the process."""
        door = self._start()
        self._garbage = GarbageBetweenBatches()
        self._lifeline.send(Ready(door.endpoint))
        self._work()

    def _start(self) -> Door:
        met = self._introduce()
        plan = self._read_plan(met.welcome)
        try:
            return self._open(plan, met)
        except BaseException as error:
            _log.exception("the worker can't start")
            # An `OSError` here does not come from user code, because an error of user code is a `ComponentError`.
            self._report_failed_start(error, outside=isinstance(error, OSError))
            self._leave("it could not start")

    def _open(self, plan: PhysicalPlan, met: Introduction) -> Door:
        """Open the log files, the tasks, and the door for requests."""
        launch, settings = self._launch, plan.settings
        logs = TaskLogs(
            self._logs,
            launch.worker,
            settings.log_level,
            settings.log_max_bytes,
            settings.log_backup_count,
        ).install()
        RotatedOutput(self._output, settings.log_max_bytes, settings.log_backup_count).watch()
        _log.info(
            "worker %d of %s, generation %d, incarnation %d",
            launch.worker,
            launch.topology,
            launch.generation,
            launch.incarnation,
        )
        make_room(plan.workers + 2 * STRANGERS, f"worker {launch.worker} of {plan.workers}")
        self._worker = Worker(
            plan,
            launch.worker,
            incarnation=launch.incarnation,
            logs=logs,
            storm_id=met.welcome.storm_id,
            state=met.state,
            side_by_side=True,
            reports_letters=True,
        )
        self._worker.open(self._active)
        if met.state is not None and met.state.handed:
            Path(met.state.handed).unlink()
        for adoption in met.adoptions:
            self._worker.adopt(adoption.task, adoption.rows, letters=adoption.letters)
        self._desk = Desk(
            launch.generation,
            launch.incarnation,
            launch.attempt,
            self._folder,
            settings.replies_memory_bytes,
            plan.last_superstep + 1,
        )
        requests = str(self._folder / "requests")
        return Door(requests, met.address, launch.key, self._serve, "request", launch.silence_secs)

    def end(self, reason: str, code: int = 0) -> NoReturn:
        """End the process at once, without ``close`` and ``cleanup``, and without waiting for other threads."""
        with contextlib.suppress(Exception):
            end_of_output(sys.stdout, sys.stderr)
            _log.info("the worker ends: %s", reason)
        remove_folders(self._folder, self._launch.nimbus)
        end_children()
        exit_in_order(code)

    # -- nimbus ----------------------------------------------------------------------------------------------

    def _introduce(self) -> Introduction:
        """Introduce this process to nimbus, and start the lifeline."""
        launch = self._launch
        try:
            met = introduce(launch, self._output, self._folder)
        except NotIntroducedError as error:
            self.end(str(error), error.code)
        self._active = met.welcome.active
        self._lifeline = Lifeline(
            met.link, launch.jvm, met.welcome.lease_secs, self._obey, self.end, self._beat, self._look
        )
        threading.Thread(target=self._lifeline.watch, name="lifeline", daemon=True).start()
        if met.sees is not None:
            self._lifeline.send(met.sees)
            if met.sees.problem:
                self._leave(f"it does not see the driver's folder: {met.sees.problem}")
        return met

    def _read_plan(self, welcome: Welcome) -> PhysicalPlan:
        search_like_the_driver(welcome.module_path, welcome.working_folder)
        try:
            plan: PhysicalPlan = pickle.loads(welcome.plan)
        except BaseException as error:
            self._report_failed_start(error)
            self._leave("the plan could not be read")
        return plan

    def _report_failed_start(self, error: BaseException, *, outside: bool = False) -> None:
        """Send nimbus ``error``, which is being handled now."""
        launch = self._launch
        self._lifeline.send(
            StartFailed(launch.worker, launch.incarnation, traceback.format_exc(), _pickled(error), outside)
        )

    def _obey(self, orders: Orders | Adopt) -> None:
        """Carry out orders. The lifeline calls this method, which passes orders for tasks on to the main thread."""
        if isinstance(orders, Adopt):
            self._bell.put(orders)
            return
        if orders.exit:
            self._exit_ordered.set()
            self.end("nimbus ordered it")
        if orders.stops and self._worker is not None:
            self._worker.limit_waiting()
        self._log_levels.apply(dict(orders.log_levels))
        if orders.close or orders.active != self._active:
            self._active = orders.active
            self._bell.put(orders)

    def _beat(self) -> Beat:
        """Return a heartbeat with the calls that the worker is in. The lifeline calls this."""
        worker = self._worker
        return Beat() if worker is None else Beat(worker.under_way.busy(), worker.under_way.some())

    def _look(self) -> None:
        """Let the worker check a call that takes long; see `UnderWay.look`. The lifeline calls this."""
        if self._worker is not None:
            self._worker.under_way.look()

    def _leave(self, reason: str, code: int = 1) -> NoReturn:
        """End the process once nimbus has read the last message and ordered the end, or after `LAST_WORDS_SECS`.

        Without this wait, the message could be lost on TCP.
        """
        self._exit_ordered.wait(LAST_WORDS_SECS)
        self.end(reason, code)

    # -- the main thread -------------------------------------------------------------------------------------

    def _work(self) -> NoReturn:
        assert self._worker is not None
        while True:
            orders = self._next()
            if orders is None:
                errand = self._desk.next()
                if errand is not None:
                    self._run(errand)
            elif isinstance(orders, Adopt):
                self._worker.adopt(orders.task, orders.rows, letters=orders.letters)
            elif orders.close:
                self._close(self._worker, orders.committed)
            else:
                self._worker.set_active(orders.active)

    def _close(self, worker: Worker, committed: int) -> NoReturn:
        """Close the tasks, and end the process. If nimbus has to know something, wait until it has read that."""
        report = worker.hear_of_last_commit(committed)
        if report is not None:
            self._lifeline.send(HeardOfCommit(report))  # now, because some last call may never return
        last_report = worker.close()
        not_returned = worker.services.not_returned
        if report is not None or last_report is not None or not_returned:
            self._lifeline.send(Closed(tuple(not_returned.values()), last_report))
            self._leave(
                "it was closed without some of its calls" if not_returned else "it was closed", code=0
            )
        self.end("it was closed")

    def _next(self) -> Orders | Adopt | None:
        """Wait for the next orders or rows, and return them. Return None if a request has come.

        Until a request comes, a worker that had more work than time goes on with its work. If all workers are idle, the driver
        may send no batch for a while. So a worker that was idle in the last round looks for work meanwhile, and tells nimbus when
        it finds some.
        """
        assert self._worker is not None
        while self._looks:
            with contextlib.suppress(queue.Empty):
                return self._bell.get(timeout=_LOOK_SECS)
            if self._worker.spare_time.stirs():
                self._looks = False
                self._lifeline.send(Stirs())
        while self._bell.empty() and not self._coming and self._worker.spare_time.fill_gap():
            pass
        return self._bell.get()

    def _run(self, errand: Errand) -> None:
        request = errand.request
        assert self._worker is not None
        self._looks = False
        try:
            if request.attempt > self._attempt:
                self._attempt = request.attempt
                self._worker.begin_attempt(request.reason, request.batch)
            frames = frames_from(record_batches_in(errand.batches))
            messages = messages_from(self._worker.run(request.step, frames))
            self._end_copy()
        except BaseException as error:
            self._end_copy()
            _log.exception("%s raised", request)
            text = traceback.format_exc()
            self._lifeline.send(Fatal(text, _pickled(error)))
            self._desk.fail(errand, text)
            return
        del frames  # frees the payloads before the wait for the reply
        self._desk.finish(errand, messages)
        if self._worker.plan.position(request.superstep) == self._worker.plan.last_superstep:
            errand.sent.wait(_SENT_SECS)
            self._garbage.collect()
            self._looks = self._worker.was_idle

    def _end_copy(self) -> None:
        """End this process if it is a copy of the worker, which user code has forked and not ended.

        Otherwise the copy would go on as a second worker.
        """
        if os.getpid() != self._pid:
            os._exit(1)

    # -- connections -----------------------------------------------------------------------------------------

    def _serve(self, connection: Connection) -> None:
        """Answer one forwarder, request after request, until it hangs up."""
        while True:
            request: Request = connection.recv()
            self._coming.add(connection)
            try:
                batches = []
                while batch := connection.recv_bytes():
                    batches.append(batch)
                end: End = connection.recv()
            finally:
                self._coming.discard(connection)
            try:
                if len(batches) != end.batches:
                    msg = f"{request} announced {end.batches} batches, {len(batches)} came"
                    raise RefusedError(msg)
                errand, new = self._desk.take(request, end.rows, batches)
                del batches
                if new:
                    self._bell.put(None)
                errand.done.wait()
                count, messages = self._desk.reply(errand)
            except RefusedError as refused:
                connection.send(Reply(0, str(refused)))
                continue
            try:
                connection.send(Reply(count))
                for message in messages:
                    connection.send_bytes(message)
            finally:
                errand.sent.set()


def _pickled(error: BaseException) -> bytes:
    """Pickle the error for the driver. Return no bytes if the error can't be pickled, or can't be unpickled again."""
    with contextlib.suppress(Exception):
        pickled = pickle.dumps(error)
        pickle.loads(pickled)
        return pickled
    return b""
