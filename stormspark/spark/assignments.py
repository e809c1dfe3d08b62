"""The state of nimbus: which worker lives where. This module has no sockets, no threads and no clock; those are in `nimbus`.

The invariant: **an attempt sees only one life (incarnation) of each worker, or it fails.** A worker is started at most once in an
attempt. When a worker is lost, nimbus refuses every further question of this attempt. Only the next attempt may start the worker
again, as a new incarnation.

The reason: when a worker is lost, its work on the batch is gone, but frames of its trees may still be on their way. A successor
would not know these trees. So the driver runs the batch again from superstep 0, and nothing of the old attempt may reach a worker
in the new attempt. Nimbus refuses forwarders of the old attempt, and every worker refuses their requests
(`stormspark.worker.host.desk`).

In Storm, nimbus restarts a dead worker, and the other workers go on. Tuples to the dead worker are lost until it is back. Their
trees time out, and reliable spouts replay them. In stormspark, Spark would continue the batch as if nothing had been lost, so the
attempt has to fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from stormspark.worker.host.link import Endpoint
from stormspark.worker.host.messages import ProcessId, Refused, StartHere, There

__all__ = ["Assignments", "Seat", "SeatState"]


class SeatState(Enum):
    """A state in the life of a worker."""

    EMPTY = "no forwarder was asked to start it"
    PROMISED = "a forwarder was asked to start it"
    STARTING = "its process has connected"
    READY = "it takes requests"
    LOST = "it died or fell silent"


_PLACED = (SeatState.PROMISED, SeatState.STARTING, SeatState.READY)


@dataclass
class Seat:
    """The place of one worker. ``incarnation`` counts the worker's lives from 0, and is -1 before the first life."""

    state: SeatState = SeatState.EMPTY
    incarnation: int = -1
    process: ProcessId | None = None
    endpoint: Endpoint | None = None
    #: The Spark executor (its JVM) beside which the worker lives or will live, if that is known.
    executor: ProcessId | None = None


@dataclass
class Assignments:
    """The places of all workers of a topology. It is not thread-safe: `Nimbus` calls it under its lock.

    >>> assignments = Assignments(workers=1)
    >>> assignments.locate(0, 0)
    StartHere(incarnation=0, replaces=None)
    >>> assignments.hello(0, 0, ProcessId("host", 7, 1))
    True
    >>> assignments.ready(0, 0, Endpoint("/socket"))
    >>> assignments.locate(0, 0)
    There(endpoint=Endpoint(unix='/socket', tcp=None), incarnation=0)
    >>> assignments.lost(0, 0, "killed")
    True
    >>> assignments.locate(0, 0)
    Refused(reason='worker 0 was lost: killed')
    >>> assignments.begin_attempt(1)
    >>> assignments.locate(1, 0)
    StartHere(incarnation=1, replaces=ProcessId(host='host', pid=7, started=1))
    """

    workers: int
    attempt: int = 0
    #: Why the attempt has failed, or None.
    broken: str | None = None
    #: Whether something outside of the topology made the attempt fail, such as a disk that may come back.
    broken_outside: bool = False
    #: Why the topology ends, or None. Once it is set, nimbus refuses all questions.
    ending: str | None = None
    seats: list[Seat] = field(default_factory=list)
    #: Whether all workers have been ready at the same time. Before that, no round of any attempt can have ended.
    has_begun: bool = False

    def __post_init__(self) -> None:
        self.seats = [Seat() for _ in range(self.workers)]

    def locate(self, attempt: int, worker: int) -> There | StartHere | Refused | None:
        """Return where a worker is, or the order to start it. None means that the worker is being started, so ask again."""
        refusal = self.refusal(attempt)
        if refusal is not None:
            return Refused(refusal)
        seat = self.seats[worker]
        if seat.state is SeatState.READY:
            assert seat.endpoint is not None
            return There(seat.endpoint, seat.incarnation)
        if seat.state is SeatState.EMPTY:
            replaces = seat.process
            seat.state, seat.incarnation, seat.process = SeatState.PROMISED, seat.incarnation + 1, None
            seat.executor = None
            return StartHere(seat.incarnation, replaces)
        return None

    def refusal(self, attempt: int) -> str | None:
        """Return why nimbus refuses questions of ``attempt``, or None if nimbus answers them."""
        if self.ending is not None:
            return self.ending
        if attempt != self.attempt:
            return f"attempt {attempt} has ended, {self.attempt} runs"
        return self.broken

    def waits_for(self) -> str:
        """Return the next step of the start that not all workers have taken, in words.

        >>> assignments = Assignments(workers=2)
        >>> assignments.waits_for()
        'Spark starts the query'
        >>> _ = assignments.locate(0, 0)
        >>> assignments.waits_for()
        'workers start, 0 of 2 are up'
        """
        states = [seat.state for seat in self.seats]
        up = sum(state in (SeatState.STARTING, SeatState.READY) for state in states)
        ready = states.count(SeatState.READY)
        if all(state is SeatState.EMPTY for state in states):
            return "Spark starts the query"
        if up < self.workers:
            return f"workers start, {up} of {self.workers} are up"
        if ready < self.workers:
            return f"components open, {ready} of {self.workers} workers are ready"
        return "the first batch runs"

    def missing(self) -> list[int]:
        """Return the workers that are to be started, but that no process is asked to start at the moment."""
        return [worker for worker, seat in enumerate(self.seats) if seat.state is SeatState.EMPTY]

    def deal(
        self, attempt: int, executors: Iterable[ProcessId]
    ) -> dict[ProcessId, list[tuple[int, StartHere]]]:
        """Distribute the missing workers over these Spark executors.

        Each worker goes to the Spark executor with the fewest workers. If several have equally few, the worker goes to the one
        whose host has the fewest workers. In this attempt, no other process is asked to start these workers, unless
        `promise_broken` is called.

        >>> a, b = ProcessId("host-a", 7, 1), ProcessId("host-b", 8, 1)
        >>> dealt = Assignments(workers=3).deal(0, [a, b])
        >>> [(executor.host, [worker for worker, _ in orders]) for executor, orders in dealt.items()]
        [('host-a', [0, 2]), ('host-b', [1])]
        """
        dealt: dict[ProcessId, list[tuple[int, StartHere]]] = {executor: [] for executor in executors}
        living = [seat.executor for seat in self.seats if seat.executor is not None and seat.state in _PLACED]
        on_executor = Counter(living)
        on_host = Counter(executor.host for executor in living)
        for worker in self.missing() if dealt else ():
            executor = min(dealt, key=lambda one: (on_executor[one], on_host[one.host]))
            answer = self.locate(attempt, worker)
            if not isinstance(answer, StartHere):
                break  # the attempt is over
            self.seats[worker].executor = executor
            dealt[executor].append((worker, answer))
            on_executor[executor] += 1
            on_host[executor.host] += 1
        return dealt

    def hello(
        self, worker: int, incarnation: int, process: ProcessId, executor: ProcessId | None = None
    ) -> bool:
        """Record that a process has started as this life of a worker. Return false if this process is not expected."""
        seat = self.seats[worker]
        if self.ending is not None or seat.incarnation != incarnation or seat.state is not SeatState.PROMISED:
            return False
        seat.state, seat.process, seat.executor = SeatState.STARTING, process, executor
        return True

    def ready(self, worker: int, incarnation: int, endpoint: Endpoint) -> None:
        """Record that the worker's tasks are open. If the worker has been given up meanwhile, nothing changes."""
        seat = self.seats[worker]
        if seat.incarnation == incarnation and seat.state is SeatState.STARTING:
            seat.state, seat.endpoint = SeatState.READY, endpoint
            self.has_begun |= all(one.state is SeatState.READY for one in self.seats)

    def promise_broken(self, worker: int, incarnation: int) -> None:
        """Record the end of a forwarder that was ordered to start a worker.

        If the worker's process has not started, another forwarder may start it.
        """
        seat = self.seats[worker]
        if seat.incarnation == incarnation and seat.state is SeatState.PROMISED:
            seat.state = SeatState.EMPTY

    def lost(self, worker: int, incarnation: int, reason: str, *, outside: bool = False) -> bool:
        """End this life of a worker, and with it the attempt. Return false if this life had ended already.

        ``outside`` says that the cause is not user code, but something outside of the topology, such as storage that can't be
        reached.
        """
        seat = self.seats[worker]
        if seat.incarnation != incarnation or seat.state in (SeatState.LOST, SeatState.EMPTY):
            return False
        seat.state, seat.endpoint = SeatState.LOST, None
        if self.broken is None:
            self.broken, self.broken_outside = f"worker {worker} was lost: {reason}", outside
        return True

    def is_current(self, worker: int, incarnation: int) -> bool:
        """Whether this is the worker's current life, and its process has connected and is not lost."""
        seat = self.seats[worker]
        return seat.incarnation == incarnation and seat.state in (SeatState.STARTING, SeatState.READY)

    def begin_attempt(self, attempt: int) -> None:
        """Let lost workers be started again, and refuse all questions of earlier attempts."""
        assert attempt > self.attempt, f"attempts only go up: {attempt} after {self.attempt}"
        self.attempt, self.broken, self.broken_outside = attempt, None, False
        for seat in self.seats:
            if seat.state is SeatState.LOST:
                seat.state = SeatState.EMPTY

    def end(self, reason: str) -> None:
        """Refuse everything from now on. If this is called again, the first reason stays."""
        self.ending = self.ending or reason

    def validate(self) -> None:
        """Check every invariant; raises `AssertionError`."""
        assert len(self.seats) == self.workers
        for seat in self.seats:
            assert (seat.endpoint is not None) == (seat.state is SeatState.READY), seat
            assert seat.state is not SeatState.LOST or self.broken is not None, (
                "a worker is lost, but the attempt continues"
            )
            assert seat.process is not None or seat.state not in (SeatState.STARTING, SeatState.READY), seat
            assert seat.incarnation >= 0 or seat.state is SeatState.EMPTY, seat
