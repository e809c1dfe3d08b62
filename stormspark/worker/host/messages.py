"""The messages between the processes of a topology. They are pickled, and sent over connections that `link` has authenticated.

The messages are listed by sender and receiver. An arrow in the right column leads from a message to its answer.

    forwarder -> worker     Request, then its Arrow batches as raw IPC bytes, then an empty message, then End
    worker -> forwarder     Reply, then `Reply.batches` raw IPC messages
    forwarder -> nimbus     Locate -> There | StartHere | Refused; Lost -> Refused; StartFailed -> Refused
    placing task -> nimbus  Offer -> Places | Refused
    worker -> nimbus        Hello -> Welcome | Refused; Sees; Ready or StartFailed; then Beat -> Orders, again and again;
                            Stirs; Fatal; Closed -> Orders
    nimbus -> worker        right after Welcome: Adopt, then StateRows; later: Orders, also without a Beat, and Adopt

A placing task is a Spark task that offers to start workers beside its Spark executor (`stormspark.spark.placement`).
"""

from __future__ import annotations

from typing import NamedTuple

from stormspark.worker.busy import Busy
from stormspark.worker.host.link import Endpoint
from stormspark.worker.round_orders import PLAIN_ORDERS, RoundOrders
from stormspark.worker.state.batch_state import StateAccess
from stormspark.worker.step import Step

__all__ = [
    "Adopt",
    "Beat",
    "Closed",
    "End",
    "Fatal",
    "Hello",
    "Locate",
    "Lost",
    "Offer",
    "Orders",
    "Places",
    "ProcessId",
    "Ready",
    "Refused",
    "Reply",
    "Request",
    "Sees",
    "StartFailed",
    "StartHere",
    "StateRows",
    "Stirs",
    "There",
    "Welcome",
]


class ProcessId(NamedTuple):
    """The identity of a process. ``started`` is in the kernel's clock ticks. It differs for a later process with the same pid."""

    host: str
    pid: int
    started: int


# ---- forwarder and worker ----------------------------------------------------------------------------------


class Request(NamedTuple):
    """A request to run one superstep for one Spark partition. ``reason`` says why the previous attempt ended."""

    generation: int
    incarnation: int
    batch: int
    attempt: int
    superstep: int
    partition: int
    reason: str = ""
    orders: RoundOrders = PLAIN_ORDERS

    @property
    def key(self) -> tuple[int, int, int]:
        """The key of the request. Two requests of one attempt with the same key are the same request."""
        return (self.batch, self.superstep, self.partition)

    @property
    def step(self) -> Step:
        """The step that the worker runs for this request."""
        return Step(self.batch, self.attempt, self.superstep, self.orders)


class End(NamedTuple):
    """The end mark of a request. It says how many Arrow batches and rows came before it. A request without an end mark does not
    run.
    """

    batches: int
    rows: int


class Reply(NamedTuple):
    """The reply to a request. If the superstep ran, ``error`` is None, and ``batches`` Arrow messages follow."""

    batches: int
    error: str | None = None


# ---- with nimbus -------------------------------------------------------------------------------------------


class Locate(NamedTuple):
    """A forwarder's question. It asks where worker ``worker`` runs in attempt ``attempt``."""

    attempt: int
    worker: int


class There(NamedTuple):
    """An answer to `Locate`. The worker runs at ``endpoint``."""

    endpoint: Endpoint
    incarnation: int


class StartHere(NamedTuple):
    """An answer to `Locate`. The worker runs nowhere, so the forwarder has to start it on the forwarder's own host.

    ``replaces`` is the process of an earlier incarnation of the worker. This process may still hang on that host, and has to be
    killed.
    """

    incarnation: int
    replaces: ProcessId | None


class Offer(NamedTuple):
    """An offer to start workers of attempt ``attempt`` beside the Spark executor whose JVM is ``executor``."""

    attempt: int
    executor: ProcessId


class Places(NamedTuple):
    """The answer to `Offer`. It lists the workers to start beside that Spark executor, each with its `StartHere`. The list may
    be empty.
    """

    orders: tuple[tuple[int, StartHere], ...]


class Refused(NamedTuple):
    """A rejection, for example because the attempt is over or the topology ends. ``reason`` is for people."""

    reason: str


class Lost(NamedTuple):
    """A report of a forwarder that can't reach a worker any more.

    ``outside`` says that, as far as the forwarder can see, the path to the worker is broken, and the worker's process has not
    ended.
    """

    worker: int
    incarnation: int
    reason: str
    outside: bool = False


class Hello(NamedTuple):
    """The first message of a worker process, before it has a plan."""

    worker: int
    incarnation: int
    process: ProcessId
    #: The JVM of the Spark executor beside which the worker process runs, if there is one.
    executor: ProcessId | None = None


class Welcome(NamedTuple):
    """The answer to the `Hello` of a worker that nimbus expects, with the pickled plan of the topology.

    ``module_path`` is the driver's ``sys.path``. If one of its folders is also on the worker's host, the worker may find a
    module in it that Spark has not shipped.
    """

    plan: bytes
    lease_secs: float
    module_path: tuple[str, ...]
    storm_id: str
    active: bool
    #: How many `Adopt` messages follow immediately.
    adoptions: int = 0
    #: The location of the state of the worker's tasks; None for a topology without state. If only the driver can reach the
    #: state, `StateRows` messages follow after the `Adopt` messages.
    state: StateAccess | None = None
    #: The place at which the worker must prove that it sees the driver's folder (`stormspark.checkpoint.shared_folder`); "" if
    #: no proof is needed.
    shared: str = ""
    #: The working directory to go to, as the driver names it; None to stay.
    working_folder: str | None = None


class StateRows(NamedTuple):
    """The next part of an Arrow stream with the state of a worker's tasks (`HandedState`). An empty part ends the stream."""

    data: bytes


class Sees(NamedTuple):
    """A report that says whether the worker sees the driver's folder.

    ``shown`` is the name of the proof that the worker has written into the folder. ``problem`` is the worker's error, if there
    was one.
    """

    shown: str
    problem: str = ""


class Ready(NamedTuple):
    """A report that all tasks are open. The worker takes requests at ``endpoint``."""

    endpoint: Endpoint


class StartFailed(NamedTuple):
    """A report that the worker can't start. ``error`` is the pickled error. It is empty if the error can't be pickled.

    ``outside`` says that the host lacks storage, memory or another resource, so that a later start may succeed.
    """

    worker: int
    incarnation: int
    text: str
    error: bytes = b""
    outside: bool = False


class Fatal(NamedTuple):
    """A report that a superstep raised, so that the topology can't go on."""

    text: str
    error: bytes = b""


class Beat(NamedTuple):
    """A heartbeat of a worker process. It names the call that the worker is in.

    An end of the topology would cut off the ``calls``. See `UnderWay.some`.
    """

    busy: Busy | None = None
    calls: tuple[Busy, ...] = ()


class HeardOfCommit(NamedTuple):
    """A pickled report of a worker that has heard of the last commit, and is about to close its tasks."""

    report: bytes


class Closed(NamedTuple):
    """A report of a worker that has closed its tasks: the calls that had not returned by then, and a pickled report if a last
    call has raised an error.
    """

    not_returned: tuple[Busy, ...]
    report: bytes | None = None


class Stirs(NamedTuple):
    """A report that an idle worker has something to do now, so that a batch should begin."""


class Adopt(NamedTuple):
    """Rows that an earlier incarnation of a worker left open, for the task of a source spout. Each row is a pair: a `Record` or
    None, and the encoded row.
    """

    task: int
    rows: list[tuple[tuple[int, int, int] | None, bytes]]
    #: If the rows come from dead letters instead, the batch with which they come; else None.
    letters: int | None = None


class Orders(NamedTuple):
    """Nimbus's orders for a worker. Each message holds all current orders, so that the loss of one message does no harm."""

    active: bool = True
    close: bool = False
    exit: bool = False
    #: Whether the topology stops once its batch has ended. If so, the batch waits for calls only for a limited time
    #: (`Executors.limit_waiting`).
    stops: bool = False
    #: If ``close`` is true, the batch that was committed last; -1 if there is none, or if batches are not transactions.
    committed: int = -1
    #: The levels that commands have given to loggers (J22).
    log_levels: tuple[tuple[str, int], ...] = ()
