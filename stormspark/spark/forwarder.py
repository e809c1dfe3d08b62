"""The forwarder: the Python function that runs in each `mapInArrow` stage and connects Spark's partitions with the workers.

Spark gives partition p of superstep k to any idle Python process. Spark may give the partition out again, for a retry, for a
speculative copy of the task, or when it recomputes a stage. A partition has the frames of one worker, or of several that share it
(`Attempt.workers_of`). Each worker is one long-lived process. The forwarder carries the partition's record batches to that worker
and the reply's record batches back, byte for byte, without Python work per frame. If workers share the partition, the forwarder
divides each record batch by worker, again without Python work per frame. It sends all workers their parts before it waits for
replies, so they run the superstep at the same time. Only rows of sources are first packed into frames in Python. The forwarder
keeps no state except a cache of connections.

The invariant: **however often Spark runs a task, a worker runs each request of an attempt once, completely, and only while that
attempt lasts.**

The invariant holds for these reasons. A request carries its generation, attempt, batch, superstep and partition, and the
incarnation of the worker that it is meant for. The worker's desk (`stormspark.worker.host.desk`) runs a request only after the
request's end mark has arrived. If the same request comes again, the desk sends the reply that it remembers. The driver fixes
generation and attempt in the query when it starts the query. So a task that is left over from an earlier query always names an
earlier attempt, and nimbus and every worker refuse its requests. If a worker can't be reached, the attempt ends. Before the
forwarder raises an error, it tells nimbus that the worker is lost. From then on nimbus refuses Spark's retries of the same task,
on any host, and does not start the worker again in this attempt.

If a worker were started again within one attempt, frames of its first incarnation would be lost or half delivered, and the
invariant would break. Hence the forwarder has no fallback. If anything is in doubt, the forwarder raises an error, the query
fails, and the driver starts the next attempt. The forwarder passes a reply's record batches on while they arrive. If the
connection breaks half-way, the task fails, and Spark drops the part of the reply that it has got.

Storm sends tuples straight from worker to worker. If the connection breaks, the tuples in it are lost. In stormspark, Spark's
shuffle is the exchange. So a frame takes four hops (worker -> forwarder -> shuffle -> forwarder -> worker), and each hop can be
repeated.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from multiprocessing import AuthenticationError
from multiprocessing.connection import wait
from typing import NoReturn

import pyarrow as pa
from pyspark import TaskContext

from stormspark.errors import UnsupportedEnvironmentError, WorkerLostError
from stormspark.wire.frames import FRAME_SCHEMA, Frame, FrameKind, frames_to_batch
from stormspark.worker.host.addresses import ANY_PORT, Ports, command_line, executor_hosts
from stormspark.worker.host.connection import SILENCE_SECS, has_hung_up
from stormspark.worker.host.descriptors import make_room
from stormspark.worker.host.key import Key
from stormspark.worker.host.launch import Launch, LaunchError, LaunchLostError, end_process, start
from stormspark.worker.host.lifeline import executor_jvm
from stormspark.worker.host.link import Endpoint, dial
from stormspark.worker.host.messages import (
    End,
    Locate,
    Lost,
    Offer,
    Places,
    Refused,
    Reply,
    Request,
    StartFailed,
    StartHere,
    There,
)
from stormspark.worker.round_orders import NO_EARLIER_ATTEMPTS, PLAIN_ORDERS, EarlierAttempts, RoundOrders

__all__ = ["Attempt", "forwarder", "orders_property", "source_forwarder", "start_offered"]

#: The name of Spark's local property through which the orders for a round reach the round's tasks.
_ORDERS = "stormspark.round.orders"

#: The forwarder packs rows of a source into frames of about this many rows or bytes.
_FRAME_ROWS = 4096
_FRAME_BYTES = 4 * 1024 * 1024
#: While a worker computes, the forwarder asks nimbus at this interval whether the attempt still lasts. It can't rely on the
#: worker to hang up, because a process that is stopped (SIGSTOP) never does.
_LOOK_UP_SECS = 5.0


@dataclass(frozen=True)
class Attempt:
    """What all forwarders of one attempt have to know.

    ``reason`` says why the previous attempt ended. ``supersteps`` is the number of supersteps per round. Each superstep has
    ``partitions`` partitions; 0 means one for each worker.
    """

    topology: str
    generation: int
    attempt: int
    reason: str
    workers: int
    supersteps: int
    nimbus: Endpoint
    key: Key
    #: The folder for the workers' logs. If None, each worker uses the default folder of its own user and host.
    log_folder: str | None
    start_timeout_secs: float
    #: The facts that earlier attempts have left for this attempt. They may be as large as a batch, and stay the same for the
    #: whole attempt. So they travel in the forwarder's closure, and not with each round. Spark sends the closure once to each
    #: Spark executor, and logs it nowhere.
    earlier: EarlierAttempts = NO_EARLIER_ATTEMPTS
    #: The ports on which workers listen for other hosts.
    ports: Ports = ANY_PORT
    #: How long a connection between two hosts may be silent.
    silence_secs: float = SILENCE_SECS
    partitions: int = 0
    #: Whether the driver runs no compiled modules on purpose: a variable of its environment that no other host has.
    sources: bool = False

    def workers_of(self, partition: int) -> range:
        """Return the workers whose frames are in a partition."""
        partitions = self.partitions or self.workers
        return range(partition % partitions, self.workers, partitions)


def forwarder(
    attempt: Attempt, superstep: int, *, name: str = "", ticks: bool = False
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function of superstep ``superstep`` for ``mapInArrow``.

    With ``ticks``, the function takes tick rows instead of frames: one row per partition, which starts the round there. Spark's
    UI shows ``name``. The function raises `WorkerLostError` if a worker is lost or the attempt is over.
    """

    def forward(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None, "a forwarder runs inside a Spark task"
        partition = task.partitionId()
        if ticks:
            # The worker needs nothing that a tick row says, so drop these rows.
            for _ in batches:
                pass
            batches = ()
        workers = attempt.workers_of(partition)
        if len(workers) == 1:
            route = _route(attempt, workers[0])
            yield from route.exchange(_request(attempt, route, task, superstep, workers[0]), batches)
            return
        _start_side_by_side(attempt, workers)
        routes = {worker: _route(attempt, worker) for worker in workers}
        requests = {w: _request(attempt, route, task, superstep, w) for w, route in routes.items()}
        yield from _exchange_side_by_side(routes, requests, batches)

    forward.__name__ = name or forward.__name__
    return forward


def source_forwarder(
    attempt: Attempt, tasks: Sequence[tuple[int, int]], partition_column: str | None, *, name: str = ""
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function of superstep 0 that sends the rows of a source to the spout's ``tasks``: pairs (task id, worker).

    All rows of a partition go to one task. The value of ``partition_column`` in the partition's first row chooses the task.
    Without such a column, the partition's number in Spark chooses it. Spark's UI shows ``name``.
    """

    def forward(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None, "a forwarder runs inside a Spark task"
        partition = context.partitionId()
        rows = iter(batch for batch in batches if batch.num_rows)
        first = next(rows, None)
        if first is None:
            return
        number = partition if partition_column is None else first.column(partition_column)[0].as_py()
        task, worker = tasks[number % len(tasks)]
        route = _route(attempt, worker)
        request = _request(attempt, route, context, 0, attempt.workers + partition)
        yield from route.exchange(request, _as_frames(chain([first], rows), worker, task, partition))

    forward.__name__ = name or forward.__name__
    return forward


def _request(attempt: Attempt, route: _Route, task: TaskContext, superstep: int, partition: int) -> Request:
    batch = int(task.getLocalProperty("streaming.sql.batchId") or -1)
    orders = _read_orders(task.getLocalProperty(_ORDERS))
    return Request(
        attempt.generation,
        route.incarnation,
        batch,
        attempt.attempt,
        orders.round * attempt.supersteps + superstep,
        partition,
        attempt.reason,
        replace(orders, earlier=attempt.earlier.of(batch)),
    )


def orders_property(orders: RoundOrders) -> tuple[str, str]:
    """Return the name and value of the local property that carries a round's orders to its tasks.

    The value leaves out `Attempt.earlier`, which travels in the forwarder's closure.
    """
    # Pickle is as safe here as the forwarder's closure, which reaches the tasks in the same way and is pickled, too.
    return _ORDERS, b64encode(pickle.dumps(replace(orders, earlier=NO_EARLIER_ATTEMPTS))).decode()


def _read_orders(value: str | None) -> RoundOrders:
    if value is None:
        return PLAIN_ORDERS
    orders: RoundOrders = pickle.loads(b64decode(value))
    return orders


def _as_frames(
    batches: Iterable[pa.RecordBatch], worker: int, task: int, partition: int
) -> Iterator[pa.RecordBatch]:
    """Pack Spark's record batches, which are small, into frames of about `_FRAME_ROWS` rows."""
    for group in _grouped(batches):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, group[0].schema) as stream:
            for batch in group:
                stream.write_batch(batch)
        rows = sum(batch.num_rows for batch in group)
        frame = Frame(worker, FrameKind.ROWS, task, partition, rows, sink.getvalue().to_pybytes())
        yield frames_to_batch([frame])


def _grouped(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    group: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        group.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _FRAME_ROWS or size >= _FRAME_BYTES:
            yield group
            group, rows, size = [], 0, 0
    if group:
        yield group


class _Nimbus:
    """The connection of this process to the nimbus of one generation of a topology.

    The process has only one such connection, however many workers it speaks to.
    """

    def __init__(self, attempt: Attempt) -> None:
        self._key, self._attempt = attempt.key, attempt
        self._asking = threading.Lock()
        try:
            self._connection = dial(attempt.nimbus, attempt.key, attempt.silence_secs)
        except (OSError, AuthenticationError) as error:
            msg = f"the driver can't be reached: {error}"
            raise WorkerLostError(msg) from error

    def ask(self, question: object) -> object:
        """Ask nimbus, and return its answer. Raises `WorkerLostError` if nimbus is gone."""
        with self._asking:
            return self._ask(question)

    def tell(self, message: object) -> None:
        """Tell nimbus something that the answer for which another thread waits may depend on. Raises `WorkerLostError`."""
        if self._asking.acquire(blocking=False):
            try:
                self._ask(message)
            finally:
                self._asking.release()
        else:
            with contextlib.closing(_Nimbus(self._attempt)) as other:
                other.ask(message)

    def _ask(self, question: object) -> object:
        try:
            self._connection.send(question)
            return self._connection.recv()
        except BaseException as error:
            self.close()  # the answer may still come, and would be taken for the answer to the next question
            if not isinstance(error, OSError | EOFError):
                raise
            msg = "the connection to the driver broke"
            raise WorkerLostError(msg) from error

    def is_gone(self) -> bool:
        """Whether nimbus has hung up.

        Nimbus sends nothing unasked, so if there is something to read, it is the end of the connection.
        """
        if self._asking.locked():
            return False
        try:
            return self._connection.poll(0)
        except OSError:
            return True

    def close(self) -> None:
        """Hang up. Another process may then start the workers that this process was asked to start."""
        if _nimbuses.get(self._key) is self:
            del _nimbuses[self._key]
        self._connection.hang_up()  # another thread may wait for an answer
        self._connection.close()


#: The connections of this process, each to the nimbus of one generation of a topology, by the generation's key.
_nimbuses: dict[Key, _Nimbus] = {}


def _nimbus_of(attempt: Attempt) -> _Nimbus:
    if attempt.key not in _nimbuses:
        for nimbus in [nimbus for nimbus in _nimbuses.values() if nimbus.is_gone()]:
            nimbus.close()
        _nimbuses[attempt.key] = _Nimbus(attempt)
    return _nimbuses[attempt.key]


class _Route:
    """The connection of this process to one worker, for one attempt."""

    def __init__(self, attempt: Attempt, worker: int) -> None:
        self.incarnation = -1
        self._attempt, self._worker = attempt, worker
        #: The request that is under way or was sent last, and how many record batches and rows of it were sent.
        self._request: Request
        self._sent = self._rows = 0
        there = self._locate()
        self.incarnation = there.incarnation
        try:
            make_room(
                attempt.workers - len(_routes),
                f"a Python process of Spark that connects to {attempt.workers} workers",
            )
            self._connection = dial(there.endpoint, attempt.key, attempt.silence_secs)
        except UnsupportedEnvironmentError as error:
            self._nimbus.ask(StartFailed(worker, self.incarnation, str(error)))
            raise
        except (OSError, AuthenticationError) as error:
            # Nimbus has just named this endpoint, so the worker is lost, or the path to it is broken.
            self._lost(f"it can't be reached: {error}", error, outside=True)

    @property
    def _nimbus(self) -> _Nimbus:
        return _nimbus_of(self._attempt)

    def exchange(self, request: Request, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Send a whole request, wait for the reply, and yield the reply's record batches as they arrive."""
        whole = False
        try:
            self.begin(request)
            for batch in batches:  # an error of this iterator is Spark's, not the worker's
                self.send(batch)
            self.send_end()
            while not self.has_reply(_LOOK_UP_SECS):
                self.look_up()
            yield from self.reply()
            whole = True
        finally:
            if not whole:
                # Something has raised, or Spark has stopped reading half-way. In the middle of an exchange, a connection can't
                # be used again.
                self.close()

    # -- the steps of an exchange ----------------------------------------------------------------------------

    def begin(self, request: Request) -> None:
        """Begin a request. Its record batches follow, and then its end mark."""
        self._request, self._sent, self._rows = request, 0, 0
        with self._unbroken():
            self._connection.send(request)

    def send(self, batch: pa.RecordBatch) -> None:
        """Send a record batch of the request."""
        with self._unbroken():
            self._connection.send_bytes(batch.serialize())
        self._sent += 1
        self._rows += batch.num_rows

    def send_end(self) -> None:
        """Send the end mark, so that the worker runs the request."""
        with self._unbroken():
            self._connection.send_bytes(b"")
            self._connection.send(End(self._sent, self._rows))

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when the reply comes."""
        return self._connection.fileno()

    def has_reply(self, timeout: float) -> bool:
        """Return whether the reply, or the end of the connection, comes within ``timeout`` seconds."""
        with self._unbroken():
            return self._connection.poll(timeout)

    def look_up(self) -> None:
        """Find out whether a worker that has not replied for a while may still do so. Raises `WorkerLostError`."""
        with self._unbroken():
            self._connection.look_for_silence()
        there = self._nimbus.ask(Locate(self._attempt.attempt, self._worker))
        if isinstance(there, Refused):
            raise WorkerLostError(there.reason)

    def reply(self) -> Iterator[pa.RecordBatch]:
        """Yield the reply's record batches as they arrive. Raises `WorkerLostError` if the worker has rejected the request."""
        with self._unbroken():
            reply: Reply = self._connection.recv()
        for _ in range(reply.batches):
            with self._unbroken():
                message = self._connection.recv_bytes()
            yield pa.ipc.read_record_batch(pa.py_buffer(message), FRAME_SCHEMA)
        if reply.error is not None:
            msg = f"worker {self._worker} rejected {self._request}: {reply.error}"
            raise WorkerLostError(msg)

    def is_over(self, now: Attempt) -> bool:
        """Whether nobody will use this route again, because its attempt has ended or its driver has hung up."""
        mine, nimbus = self._attempt, _nimbuses.get(self._attempt.key)
        return (mine.key == now.key and mine.attempt < now.attempt) or nimbus is None or nimbus.is_gone()

    def close(self) -> None:
        """Hang up, and forget this route."""
        name = _name(self._attempt, self._worker)
        if _routes.get(name) is self:
            del _routes[name]
        self._connection.close()

    @contextlib.contextmanager
    def _unbroken(self) -> Iterator[None]:
        request = self._request
        try:
            yield
        except (OSError, EOFError) as error:
            place = f"superstep {request.superstep} of batch {request.batch}"
            why = f": {error}" if str(error) else ""
            self._lost(f"its connection broke in {place}{why}", error, outside=not has_hung_up(error))

    def _locate(self) -> There:
        """Find the worker, and start it if nimbus orders that."""
        question = Locate(self._attempt.attempt, self._worker)
        answer = self._nimbus.ask(question)
        if isinstance(answer, StartHere):
            self.incarnation = answer.incarnation
            _start(self._attempt, self._worker, answer)
            answer = self._nimbus.ask(question)
        if isinstance(answer, Refused):
            raise WorkerLostError(answer.reason)
        assert isinstance(answer, There), answer
        return answer

    def _lost(self, reason: str, error: BaseException, *, outside: bool) -> NoReturn:
        _lost(self._attempt, self._worker, self.incarnation, reason, error, outside=outside)


def _exchange_side_by_side(
    routes: Mapping[int, _Route], requests: Mapping[int, Request], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Exchange the frames of one partition with several workers, which run the superstep at the same time.

    Yield the workers' replies in the order in which they come.
    """
    whole = False
    try:
        for worker, route in routes.items():
            route.begin(requests[worker])
        for batch in batches:
            for worker, part in _by_worker(batch):
                routes[worker].send(part)
        for route in routes.values():
            route.send_end()
        waiting = {route.fileno(): route for route in routes.values()}
        while waiting:
            ready = wait(list(waiting), _LOOK_UP_SECS)
            if not ready:
                for route in waiting.values():
                    route.look_up()
            for descriptor in list(waiting):
                # With TLS, what came may be no part of a message.
                if descriptor in ready and waiting[descriptor].has_reply(0):
                    yield from waiting.pop(descriptor).reply()
        whole = True
    finally:
        if not whole:
            for route in routes.values():  # see `_Route.exchange`
                route.close()


def _by_worker(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Divide frames by the workers that they go to, and keep their order for each worker.

    >>> from stormspark.wire import Frame, frames_to_batch
    >>> frames = frames_to_batch([Frame(5, 1, 0, 0, 1, b"a"), Frame(2, 1, 0, 1, 1, b"b"), Frame(5, 1, 0, 2, 1, b"c")])
    >>> [(worker, part.column("sequence").to_pylist()) for worker, part in _by_worker(frames)]
    [(2, [1]), (5, [0, 2])]
    """
    targets = batch.column(0).to_numpy()
    if not len(targets):
        return
    order = targets.argsort(kind="stable")
    ordered = targets[order]
    begins = [0, *((ordered[1:] != ordered[:-1]).nonzero()[0] + 1).tolist(), len(ordered)]
    if len(begins) > 2:  # more than one worker
        batch = batch.take(pa.array(order))
    for begin, end in pairwise(begins):
        yield int(ordered[begin]), batch.slice(begin, end - begin)


def _start_side_by_side(attempt: Attempt, workers: Iterable[int]) -> None:
    """Start those of the workers that nimbus wants to be started here, at the same time. One after the other, as `_route` starts
    them, each would first open its tasks.

    Each start begins at once. If another process starts a worker, nimbus answers only when that worker has opened its tasks, and
    meanwhile nimbus would give up those that it has ordered from here.
    """
    unknown = [worker for worker in workers if _name(attempt, worker) not in _routes]
    if not unknown:
        return
    starts = []
    with ThreadPoolExecutor(len(unknown)) as pool:
        for worker in unknown:
            answer = _nimbus_of(attempt).ask(Locate(attempt.attempt, worker))
            if isinstance(answer, StartHere):
                starts.append(pool.submit(_start, attempt, worker, answer))
    for ended in starts:
        ended.result()


def _start(attempt: Attempt, worker: int, order: StartHere) -> None:
    """Start a worker on this host, as nimbus has ordered. Raises `WorkerLostError`, `LaunchError` or `OSError`."""
    jvm = executor_jvm()
    if order.replaces is not None and jvm is not None and order.replaces.host == jvm.host:
        end_process(order.replaces)
    host, bind = executor_hosts(command_line(jvm.pid) if jvm is not None else (), os.environ)
    launch = Launch(
        topology=attempt.topology,
        generation=attempt.generation,
        attempt=attempt.attempt,
        worker=worker,
        incarnation=order.incarnation,
        nimbus=attempt.nimbus,
        key=attempt.key,
        jvm=jvm,
        log_folder=attempt.log_folder,
        host=host,
        bind=bind,
        ports=attempt.ports,
        silence_secs=attempt.silence_secs,
        sources=attempt.sources,
    )
    try:
        start(launch, attempt.start_timeout_secs)
    except (LaunchError, OSError) as error:
        _nimbus_of(attempt).tell(StartFailed(worker, order.incarnation, str(error), outside=True))
        raise
    except LaunchLostError as error:
        _lost(attempt, worker, order.incarnation, str(error), error)
    except BaseException:
        _nimbus_of(attempt).close()  # so that nimbus may order another process to start the worker
        raise


def _lost(
    attempt: Attempt,
    worker: int,
    incarnation: int,
    reason: str,
    error: BaseException,
    *,
    outside: bool = False,
) -> NoReturn:
    with contextlib.suppress(WorkerLostError):
        _nimbus_of(attempt).tell(Lost(worker, incarnation, reason, outside))
    msg = f"worker {worker} was lost in attempt {attempt.attempt}: {reason}"
    raise WorkerLostError(msg) from error


def start_offered(attempt: Attempt) -> list[tuple[int, Callable[[], None]]]:
    """Offer this Spark executor to nimbus. Wait until tasks on the other Spark executors have made offers, too.

    Return the workers that nimbus has given to this Spark executor, each with a function that starts it. Raises `WorkerLostError`
    if the attempt is over.
    """
    jvm = executor_jvm()
    if jvm is None:
        return []
    answer = _nimbus_of(attempt).ask(Offer(attempt.attempt, jvm))
    if isinstance(answer, Refused):
        raise WorkerLostError(answer.reason)
    assert isinstance(answer, Places), answer
    return [(worker, partial(_start, attempt, worker, order)) for worker, order in answer.orders]


#: The routes of this process. Spark uses the process for many tasks, but for one at a time, so no lock is needed.
_routes: dict[tuple[Key, int, int], _Route] = {}


def _name(attempt: Attempt, worker: int) -> tuple[Key, int, int]:
    # The key is random for each generation of each topology.
    return (attempt.key, attempt.attempt, worker)


def _route(attempt: Attempt, worker: int) -> _Route:
    name = _name(attempt, worker)
    if name not in _routes:
        for route in [route for route in _routes.values() if route.is_over(attempt)]:
            route.close()
        _routes[name] = _Route(attempt, worker)
        _freeze()
    return _routes[name]


def _freeze() -> None:
    """Keep the garbage collector from looking at the modules that this process has imported.

    pyspark's daemon runs a full collection after every task. The collection takes 20 to 40 ms while the next task waits, and
    nearly all of that time goes into looking at modules. This function first collects the present garbage, because the collector
    never looks at frozen objects again. Later objects are collected as usual.
    """
    gc.collect()
    gc.freeze()
