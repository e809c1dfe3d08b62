"""A worker process: it hosts one `Worker` core, and keeps it alive from batch to batch.

The threads, and what each may do:

    main                the only thread that touches tasks: opens them, runs errands in turn, obeys orders, closes them
    one per connection  receives a whole request, waits for its errand, sends the reply; `Desk` is between these threads and
    main lifeline            sends heartbeats, receives orders from nimbus, watches the executor's JVM; so a long superstep
    does not
                        stop heartbeats

The start: the interpreter runs and its imports have worked -> it forks -> it sends Hello to nimbus, which sends the plan -> it
writes "up" for the process that started it -> it opens the tasks -> it sends Ready. An error on the way is reported to nimbus,
which stops the topology with that error, because it would happen again. A process that is killed on the way is a lost worker
like any other. Before "up" its silence shows that, after it the broken connection.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import queue
import shutil
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Sequence
from multiprocessing import AuthenticationError
from pathlib import Path
from typing import NoReturn

import pyarrow as pa

from stormspark.checkpoint.shared_folder import show_that_it_is_seen
from stormspark.errors import UnsupportedEnvironmentError
from stormspark.plan.physical import PhysicalPlan
from stormspark.private_files import is_private, make_log_folder, open_private
from stormspark.rotated_output import RotatedOutput
from stormspark.wire.frames import FRAME_SCHEMA, Frame, frames_from, frames_to_batch
from stormspark.worker.core import Worker
from stormspark.worker.host.addresses import Address
from stormspark.worker.host.connection import Connection, local_host
from stormspark.worker.host.descriptors import make_room
from stormspark.worker.host.desk import Desk, Errand, RefusedError
from stormspark.worker.host.garbage import GarbageBetweenBatches
from stormspark.worker.host.launch import UP, Launch, own_folder
from stormspark.worker.host.lifeline import Lifeline, this_process
from stormspark.worker.host.link import STRANGERS, Door, dial, remove_if_dead
from stormspark.worker.host.messages import (
    Adopt,
    Busy,
    End,
    Fatal,
    Hello,
    Orders,
    Ready,
    Refused,
    Reply,
    Request,
    Sees,
    StartFailed,
    StateRows,
    Stirs,
    Welcome,
)
from stormspark.worker.host.task_logs import TaskLogs, end_of_output
from stormspark.worker.state.batch_state import StateAccess

__all__ = ["WorkerProcess", "main"]

_log = logging.getLogger(__name__)

#: The frames of a reply are laid out as record batches of about this size, so that Spark never has to hold a huge one.
_MESSAGE_BYTES = 16 * 1024 * 1024
#: How long the garbage collector waits until a reply is sent. After that it runs anyway, because only the sender is stuck.
_SENT_SECS = 1.0
#: How long a process that fails to start waits for nimbus to take in why.
_LAST_WORDS_SECS = 5.0
#: The file for a worker's raw output, in the folder for logs.
_OUTPUT = "worker-{}.out"
#: How long a thread that receives a request or sends a reply waits for the interpreter, at most, while the main thread works.
#: Python's default is five times that.
_SWITCH_SECS = 0.001
#: How often an idle worker checks whether it is still idle. Storm's spouts wait for 1 ms (B12), each in a process of its own.
_LOOK_SECS = 0.01


def main() -> None:
    """Read a `Launch` from standard input, detach, and run the worker until nimbus ends it."""
    sys.setswitchinterval(_SWITCH_SECS)
    launch: Launch = pickle.load(sys.stdin.buffer)
    try:
        logs = make_log_folder(launch.log_folder, launch.topology)
    except (OSError, UnsupportedEnvironmentError) as error:
        sys.exit(f"the folder for logs can't be used on host {socket.gethostname()}: {error}")
    _detach()
    process = WorkerProcess(launch, logs)
    try:
        process.run()
    except BaseException:
        traceback.print_exc()
        process.end("it failed", code=1)


def _detach() -> None:
    """Leave the process that started this one: enter a new session, without a terminal, and be nobody's child."""
    if os.fork():
        os._exit(0)
    os.setsid()


def _sees(place: str) -> Sees:
    """Show that this host sees the driver's folder; see `Welcome.shared`."""
    try:
        return Sees(show_that_it_is_seen(place))
    except OSError as error:
        return Sees("", str(error))


def _report_up(output: Path) -> None:
    """Report "up" to the process that started this one, and close its pipes: nimbus knows this worker now.

    ``output`` receives what is written to the descriptors directly from now on; logs and prints have files of their own.
    """
    os.write(1, UP)
    null = os.open(os.devnull, os.O_RDONLY)
    log = open_private(output)
    for opened, standard in ((null, 0), (log, 1), (log, 2)):
        os.dup2(opened, standard)
    os.close(null)
    os.close(log)


class WorkerProcess:
    """The process of one worker, from `run` to `end`."""

    def __init__(self, launch: Launch, logs: Path) -> None:
        self._launch, self._logs = launch, logs
        # Beside nimbus's socket if that is on this host: the driver removes that whole folder when it ends, even if this
        # process was killed.
        shared = os.path.dirname(launch.nimbus.unix)
        self._folder = own_folder(f"worker-{launch.worker}-", shared if is_private(shared) else None)
        self._bell: queue.SimpleQueue[Orders | Adopt | None] = queue.SimpleQueue()
        self._told_to_exit = threading.Event()
        self._attempt = launch.attempt
        self._active = True
        self._storm_id = ""
        self._state: StateAccess | None = None
        self._address: Address | None = None  # by which other hosts reach this process
        self._worker: Worker | None = None
        self._adoptions: list[Adopt] = []  # received from the driver before the tasks are open
        self._looks = False  # whether main checks for work of its own while no batch comes
        self._coming: set[Connection] = set()  # the connections on which a request is arriving now
        self._desk: Desk
        self._lifeline: Lifeline
        self._garbage: GarbageBetweenBatches

    def run(self) -> NoReturn:
        """Say hello to nimbus, open the tasks, then run requests and orders until nimbus ends the process."""
        plan = self._introduce()
        launch = self._launch
        try:
            logs = TaskLogs(
                self._logs,
                launch.worker,
                plan.settings.log_level,
                plan.settings.log_max_bytes,
                plan.settings.log_backup_count,
            ).install()
            output = self._logs / _OUTPUT.format(launch.worker)
            RotatedOutput(output, plan.settings.log_max_bytes, plan.settings.log_backup_count).watch()
            _log.info(
                "worker %d of %s, generation %d, incarnation %d",
                launch.worker,
                *launch[0:2],
                launch.incarnation,
            )
            make_room(plan.workers + 2 * STRANGERS, f"worker {launch.worker} of {plan.workers}")
            self._worker = Worker(
                plan,
                launch.worker,
                incarnation=launch.incarnation,
                logs=logs,
                storm_id=self._storm_id,
                state=self._state,
            )
            self._worker.open(self._active)
            if self._state is not None and self._state.handed:
                Path(self._state.handed).unlink()
            for adoption in self._adoptions:
                self._worker.adopt(adoption.task, adoption.rows)
            self._adoptions.clear()
            self._desk = Desk(
                launch.generation,
                launch.incarnation,
                launch.attempt,
                self._folder,
                plan.settings.replies_memory_bytes,
                plan.last_superstep + 1,
            )
            requests = str(self._folder / "requests")
            door = Door(requests, self._address, launch.key, self._serve, "request", launch.silence_secs)
        except BaseException as error:
            _log.exception("the worker can't start")
            # An `OSError` is not user code's: errors of user code come as a `ComponentError`.
            outside = isinstance(error, OSError)
            self._lifeline.send(
                StartFailed(
                    launch.worker, launch.incarnation, traceback.format_exc(), _pickled(error), outside
                )
            )
            self._leave("it could not start")
        self._garbage = GarbageBetweenBatches()
        self._lifeline.send(Ready(door.endpoint))
        self._work()

    def end(self, reason: str, code: int = 0) -> NoReturn:
        """End the process at once: no ``close``, no ``cleanup``, no waiting for other threads."""
        with contextlib.suppress(Exception):
            end_of_output()
            _log.info("the worker ends: %s", reason)
        shutil.rmtree(self._folder, ignore_errors=True)
        nimbus = self._launch.nimbus
        remove_if_dead(nimbus)
        if not os.path.exists(nimbus.unix) and self._folder.parent == Path(nimbus.unix).parent:
            # The driver was killed and could not remove its folder, which nobody needs any more.
            shutil.rmtree(self._folder.parent, ignore_errors=True)
        _end_children()
        os._exit(code)

    # -- nimbus ----------------------------------------------------------------------------------------------

    def _introduce(self) -> PhysicalPlan:
        launch = self._launch
        try:
            link = dial(launch.nimbus, launch.key, launch.silence_secs)
            link.send(Hello(launch.worker, launch.incarnation, this_process(), launch.jvm))
            answer = link.recv()
        except (OSError, EOFError, AuthenticationError) as error:
            self.end(f"the driver is gone: {error}")
        if isinstance(answer, Refused):
            self.end(answer.reason)
        assert isinstance(answer, Welcome), answer
        try:
            _report_up(self._logs / _OUTPUT.format(launch.worker))
        except OSError as error:
            text = f"the folder for logs can't be used on host {socket.gethostname()}: {error}"
            with contextlib.suppress(OSError):
                link.send(StartFailed(launch.worker, launch.incarnation, text, outside=True))
                link.poll(_LAST_WORDS_SECS)  # until nimbus has taken it in, as in `_leave`
            self.end(text, code=1)
        if launch.nimbus.tcp is not None:
            # A worker that reached nimbus by its socket file is on the driver's host.
            host = launch.host or local_host(link) or launch.nimbus.tcp[0]
            self._address = Address(host, launch.bind, launch.ports)
        self._active, self._storm_id, self._state = answer.active, answer.storm_id, answer.state
        try:
            self._adoptions = [link.recv() for _ in range(answer.adoptions)]
            if self._state is not None and self._state.by_driver:
                self._state = self._state._replace(handed=str(self._take_state(link)))
        except (OSError, EOFError) as error:
            self.end(f"the driver is gone: {error}")
        sees = _sees(answer.shared) if answer.shared else None
        self._lifeline = Lifeline(
            link, launch.jvm, answer.lease_secs, self._obey, self.end, self._busy, self._look
        )
        threading.Thread(target=self._lifeline.watch, name="lifeline", daemon=True).start()
        if sees is not None:
            self._lifeline.send(sees)
            if sees.problem:
                self._leave(f"it does not see the driver's folder: {sees.problem}")
        # Behind this process's own path: modules that Spark has shipped come first.
        sys.path.extend(
            entry for entry in answer.module_path if entry not in sys.path and os.path.exists(entry)
        )
        try:
            plan: PhysicalPlan = pickle.loads(answer.plan)
        except BaseException as error:
            self._lifeline.send(
                StartFailed(launch.worker, launch.incarnation, traceback.format_exc(), _pickled(error))
            )
            self._leave("the plan could not be read")
        return plan

    def _take_state(self, link: Connection) -> Path:
        """Write the state that the driver sends to a file, because it may be more than memory holds."""
        path = self._folder / "state"
        with path.open("wb") as file:
            rows: StateRows = link.recv()
            while rows.data:
                file.write(rows.data)
                rows = link.recv()
        return path

    def _obey(self, orders: Orders | Adopt) -> None:
        """Carry out orders. The lifeline calls this; orders for tasks go on to the main thread."""
        if isinstance(orders, Adopt):
            self._bell.put(orders)
            return
        if orders.exit:
            self._told_to_exit.set()
            self.end("nimbus says so")
        if orders.close or orders.active != self._active:
            self._active = orders.active
            self._bell.put(orders)

    def _busy(self) -> Busy | None:
        """Return which call the worker is in. The lifeline calls this."""
        return self._worker.busy() if self._worker is not None else None

    def _look(self) -> None:
        """Look at a call that takes long. The lifeline calls this."""
        if self._worker is not None:
            self._worker.look()

    def _leave(self, reason: str) -> NoReturn:
        """End once nimbus has taken in the last message. On TCP that would otherwise be lost with the connection."""
        self._told_to_exit.wait(_LAST_WORDS_SECS)
        self.end(reason, code=1)

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
                self._worker.adopt(orders.task, orders.rows)
            elif orders.close:
                self._worker.close(orders.committed)
                self.end("it was closed")
            else:
                self._worker.set_active(orders.active)

    def _next(self) -> Orders | Adopt | None:
        """Wait for the next orders or rows, or for None: a request has come.

        Until a request comes, a worker that had more work than time goes on with it. If the workers are idle, the driver may
        send no batch for a while; then this checks for work, and reports to nimbus when there is some.
        """
        assert self._worker is not None
        if not self._looks:
            while self._bell.empty() and not self._coming and self._worker.fill_gap():
                pass
        while self._looks:
            with contextlib.suppress(queue.Empty):
                return self._bell.get(timeout=_LOOK_SECS)
            if self._worker.stirs():
                self._looks = False
                self._lifeline.send(Stirs())
        return self._bell.get()

    def _run(self, errand: Errand) -> None:
        request = errand.request
        assert self._worker is not None
        self._looks = False
        try:
            if request.attempt > self._attempt:
                self._attempt = request.attempt
                self._worker.begin_attempt(request.reason, request.batch)
            frames = frames_from(_batches(errand.batches))
            messages = list(_messages(self._worker.run(request.step, frames)))
        except BaseException as error:
            _log.exception("%s raised", request)
            text = traceback.format_exc()
            self._lifeline.send(Fatal(text, _pickled(error)))
            self._desk.fail(errand, text)
            return
        del frames  # frees the payloads before the wait for the reply
        self._desk.finish(errand, messages)
        if self._worker.plan.phase(request.superstep) == self._worker.plan.last_superstep:
            errand.sent.wait(_SENT_SECS)
            self._garbage.collect()
            self._looks = self._worker.was_idle

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


def _end_children() -> None:
    """Kill processes that user code has started and not ended. They are in this process's group, which `_detach` made."""
    group, me = os.getpgid(0), os.getpid()
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with contextlib.suppress(OSError):  # the process has ended meanwhile, or belongs to another user
            if pid != me and os.getpgid(pid) == group:
                os.kill(pid, signal.SIGKILL)


def _batches(messages: Sequence[pa.Buffer | bytes]) -> list[pa.RecordBatch]:
    return [pa.ipc.read_record_batch(pa.py_buffer(message), FRAME_SCHEMA) for message in messages]


def _messages(frames: Sequence[Frame]) -> list[pa.Buffer]:
    """Lay frames out as Arrow IPC messages of a bounded size; only a single larger frame may exceed it."""
    messages: list[pa.Buffer] = []
    begin = size = 0
    for position, frame in enumerate(frames):
        if size and size + len(frame.payload) > _MESSAGE_BYTES:
            messages.append(frames_to_batch(frames[begin:position]).serialize())
            begin, size = position, 0
        size += len(frame.payload)
    if begin < len(frames):
        messages.append(frames_to_batch(frames[begin:]).serialize())
    return messages


def _pickled(error: BaseException) -> bytes:
    """Pickle the error for the driver; return nothing if it can't be pickled, or could not be read there."""
    with contextlib.suppress(Exception):
        pickled = pickle.dumps(error)
        pickle.loads(pickled)
        return pickled
    return b""
