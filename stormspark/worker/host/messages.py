"""What the processes of a topology say to each other; pickled, over connections that `link` has
authenticated.

    forwarder -> worker     Request, then its Arrow batches as raw IPC bytes, then an empty message, then End
    worker -> forwarder     Reply, then as many raw IPC messages as it says
    forwarder -> nimbus     Locate -> There | StartHere; Lost; StartFailed -> Refused: one answer to each
    placing task -> nimbus  Offer -> Places | Refused
    worker -> nimbus        Hello -> Welcome, Adopt, ...; Ready or StartFailed; then Beat -> Orders, again and again; Stirs
    nimbus -> worker        Orders, also unasked; Adopt; StateRows right after Welcome
"""

from __future__ import annotations

from typing import NamedTuple

from stormspark.worker.host.link import Endpoint
from stormspark.worker.round_orders import PLAIN_ORDERS, RoundOrders
from stormspark.worker.state.batch_state import StateAccess
from stormspark.worker.step import Step

__all__ = [
    "Adopt",
    "Beat",
    "Busy",
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
    """A process that can't be mistaken for a later one with the same pid: ``started`` is in the kernel's
    clock ticks.
    """

    host: str
    pid: int
    started: int


# ---- forwarder and worker ----------------------------------------------------------------------------------


class Request(NamedTuple):
    """Run one superstep for one partition; ``reason`` says why the attempt before this one ended."""

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
        """What makes two requests of one attempt the same one."""
        return (self.batch, self.superstep, self.partition)

    @property
    def step(self) -> Step:
        """What the worker's core runs for it."""
        return Step(self.batch, self.attempt, self.superstep, self.orders)


class End(NamedTuple):
    """The end mark of a request: how many Arrow batches and rows came before it. Without it nothing runs."""

    batches: int
    rows: int


class Reply(NamedTuple):
    """``error`` is None for a superstep that ran, whose ``batches`` Arrow messages follow."""

    batches: int
    error: str | None = None


# ---- with nimbus -------------------------------------------------------------------------------------------


class Locate(NamedTuple):
    """Where is worker ``worker`` in attempt ``attempt``?"""

    attempt: int
    worker: int


class There(NamedTuple):
    """It runs there."""

    endpoint: Endpoint
    incarnation: int


class StartHere(NamedTuple):
    """It runs nowhere: start it on your host. ``replaces`` is an earlier life of it that may hang there
    still.
    """

    incarnation: int
    replaces: ProcessId | None


class Offer(NamedTuple):
    """Workers of attempt ``attempt`` may be started beside this executor, named by its JVM."""

    attempt: int
    executor: ProcessId


class Places(NamedTuple):
    """The workers to start there, each with its order; none where others start them."""

    orders: tuple[tuple[int, StartHere], ...]


class Refused(NamedTuple):
    """No: the attempt is over, or the topology ends. ``reason`` is for people."""

    reason: str


class Lost(NamedTuple):
    """A forwarder could not reach this worker any more.

    ``outside``: because of the path to it, as far as one sees from there, and not because its process has ended.
    """

    worker: int
    incarnation: int
    reason: str
    outside: bool = False


class Hello(NamedTuple):
    """First words of a worker process, before it has a plan."""

    worker: int
    incarnation: int
    process: ProcessId
    #: The executor's JVM beside which it lives, if there is one.
    executor: ProcessId | None = None


class Welcome(NamedTuple):
    """The plan of the topology, pickled, for a worker that nimbus expects.

    ``module_path`` is the driver's ``sys.path``: where a module that Spark has not shipped may be found, if that
    folder is on the worker's host.
    """

    plan: bytes
    lease_secs: float
    module_path: tuple[str, ...]
    storm_id: str
    active: bool
    #: So many `Adopt` follow at once.
    adoptions: int = 0
    #: Where its tasks' state is; None for a topology without. If only the driver reaches that, `StateRows` follow.
    state: StateAccess | None = None
    #: Where it is to show that it sees the driver's folder (`stormspark.checkpoint.shared_folder`); "" where it need not.
    shared: str = ""


class StateRows(NamedTuple):
    """The next part of an Arrow stream with the state of a worker's tasks (`HandedState`); an empty one is its end."""

    data: bytes


class Sees(NamedTuple):
    """Whether the worker sees the driver's folder: what it has ``shown`` there, or the ``problem`` it had."""

    shown: str
    problem: str = ""


class Ready(NamedTuple):
    """All tasks are open; requests are taken there."""

    endpoint: Endpoint


class StartFailed(NamedTuple):
    """The worker can't start. ``error`` is the error itself, pickled, if that was possible, else empty.

    ``outside``: for lack of storage, memory or whatever else a host gives, so it may start later.
    """

    worker: int
    incarnation: int
    text: str
    error: bytes = b""
    outside: bool = False


class Fatal(NamedTuple):
    """A superstep raised: the topology can't go on."""

    text: str
    error: bytes = b""


class Busy(NamedTuple):
    """A worker has been in one call of a task's code for ``seconds``."""

    task: str
    seconds: float
    #: The call is one with which a worker begins: ``open``, ``prepare``, or it reads its state.
    opens: bool = False


class Beat(NamedTuple):
    """The worker process is alive, and what it is at."""

    busy: Busy | None = None


class Stirs(NamedTuple):
    """A worker that had nothing to do has something now: a batch should begin."""


class Adopt(NamedTuple):
    """Rows of a source spout's task that an earlier life of it left open: `Record` or None, and the encoded row, of each."""

    task: int
    rows: list[tuple[tuple[int, int, int] | None, bytes]]


class Orders(NamedTuple):
    """What nimbus wants of a worker; the whole of it each time, so that one lost message harms nothing."""

    active: bool = True
    close: bool = False
    exit: bool = False
    #: With ``close``: the batch that was committed last.
    committed: int = -1
