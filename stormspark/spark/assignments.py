"""Who lives where: the state of nimbus, without its sockets, threads and clock.

The invariant: **an attempt sees one life of each worker, or it fails.** A worker is started at most once in
an attempt; once it is lost, everything that this attempt still asks is refused, and only the next attempt may
start it again, as a new incarnation.

Why so. What a lost worker held of a batch is gone: frames it had sent but Spark has not yet delivered would
meet a successor that never heard of their trees. So the batch is run again from superstep 0, and nothing of
the old attempt may reach a worker of the new one: forwarders of the old one are refused here, and requests of
the old one by every worker's desk.

Storm's nimbus restarts a dead worker behind the backs of the others, and tuples to it fall on the floor until
it is there; timeouts sort it out. Spark would go on with the batch as if nothing had been lost, so it has to
be told.
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
    """Where a worker is in its life."""

    EMPTY = "nobody has been asked to start it"
    PROMISED = "a forwarder was asked to start it"
    STARTING = "its process has said hello"
    READY = "it takes requests"
    LOST = "it died or fell silent"


_PLACED = (SeatState.PROMISED, SeatState.STARTING, SeatState.READY)


@dataclass
class Seat:
    """One worker's place. ``incarnation`` counts its lives, from 0; -1 before the first."""

    state: SeatState = SeatState.EMPTY
    incarnation: int = -1
    process: ProcessId | None = None
    endpoint: Endpoint | None = None
    #: The executor, by its JVM, beside which it lives or is to live, if that is known.
    executor: ProcessId | None = None


@dataclass
class Assignments:
    """Not thread-safe: `Nimbus` calls it under its lock.

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
    #: Whether that was something outside of the topology, which it is worth waiting for.
    broken_outside: bool = False
    #: Why the topology ends, or None: nothing is started or found any more.
    ending: str | None = None
    seats: list[Seat] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.seats = [Seat() for _ in range(self.workers)]

    def locate(self, attempt: int, worker: int) -> There | StartHere | Refused | None:
        """Where a worker is, or the order to start it; None: it is being started, ask again."""
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
        """Why somebody of ``attempt`` gets nothing any more, or None if all is well."""
        if self.ending is not None:
            return self.ending
        if attempt != self.attempt:
            return f"attempt {attempt} has ended, {self.attempt} runs"
        return self.broken

    def missing(self) -> list[int]:
        """The workers that nobody has been asked to start."""
        return [worker for worker, seat in enumerate(self.seats) if seat.state is SeatState.EMPTY]

    def deal(
        self, attempt: int, executors: Iterable[ProcessId]
    ) -> dict[ProcessId, list[tuple[int, StartHere]]]:
        """Deal the missing workers out over these executors: each to the one that has fewest, and of those to the one on whose
        host fewest are. Nobody may be asked to start them elsewhere until a promise is broken.

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
        """A process says that it is this life of a worker; false if nobody waits for it."""
        seat = self.seats[worker]
        if self.ending is not None or seat.incarnation != incarnation or seat.state is not SeatState.PROMISED:
            return False
        seat.state, seat.process, seat.executor = SeatState.STARTING, process, executor
        return True

    def ready(self, worker: int, incarnation: int, endpoint: Endpoint) -> None:
        """Its tasks are open. One that has been given up meanwhile is not heard."""
        seat = self.seats[worker]
        if seat.incarnation == incarnation and seat.state is SeatState.STARTING:
            seat.state, seat.endpoint = SeatState.READY, endpoint

    def promise_broken(self, worker: int, incarnation: int) -> None:
        """The forwarder that was to start a worker went away. If no process has come of it, another one may
        start it.
        """
        seat = self.seats[worker]
        if seat.incarnation == incarnation and seat.state is SeatState.PROMISED:
            seat.state = SeatState.EMPTY

    def lost(self, worker: int, incarnation: int, reason: str, *, outside: bool = False) -> bool:
        """This life of a worker is over, and with it the attempt; false if that is no news. ``outside``: of storage that is away,
        and of nothing that user code did.
        """
        seat = self.seats[worker]
        if seat.incarnation != incarnation or seat.state in (SeatState.LOST, SeatState.EMPTY):
            return False
        seat.state, seat.endpoint = SeatState.LOST, None
        if self.broken is None:
            self.broken, self.broken_outside = f"worker {worker} was lost: {reason}", outside
        return True

    def is_current(self, worker: int, incarnation: int) -> bool:
        """Whether this life of a worker is the one that counts."""
        seat = self.seats[worker]
        return seat.incarnation == incarnation and seat.state in (SeatState.STARTING, SeatState.READY)

    def begin_attempt(self, attempt: int) -> None:
        """Let lost workers be started again, and refuse whoever still speaks of an earlier attempt."""
        assert attempt > self.attempt, f"attempts only go up: {attempt} after {self.attempt}"
        self.attempt, self.broken, self.broken_outside = attempt, None, False
        for seat in self.seats:
            if seat.state is SeatState.LOST:
                seat.state = SeatState.EMPTY

    def end(self, reason: str) -> None:
        """Refuse everything from now on. The first reason stays."""
        self.ending = self.ending or reason

    def validate(self) -> None:
        """Check every invariant; raises `AssertionError`."""
        assert len(self.seats) == self.workers
        for seat in self.seats:
            assert (seat.endpoint is not None) == (seat.state is SeatState.READY), seat
            assert seat.state is not SeatState.LOST or self.broken is not None, (
                "a worker is lost, the attempt goes on"
            )
            assert seat.process is not None or seat.state not in (SeatState.STARTING, SeatState.READY), seat
            assert seat.incarnation >= 0 or seat.state is SeatState.EMPTY, seat
