"""Nimbus: the small server in the driver that knows where the workers are, and gives them their orders.

Nimbus does for one topology what Storm's nimbus and supervisors do for a cluster, except for the work that Spark does. A
forwarder asks nimbus where a worker is, and nimbus may order this forwarder to start that worker. A worker fetches the plan,
reports that it is ready, and sends heartbeats. Nimbus answers each heartbeat with the complete orders. So if an order is lost,
the worker gets it with the next answer.

Each process has one connection to nimbus. One condition variable guards all state. A connection's first message shows whether
a worker or a forwarder has opened the connection. With 200 workers and 200 of Spark's Python processes there are 400 connections.
Little happens on them: a worker sends something only every five seconds, and a forwarder only when it has a new worker to find,
or every five seconds while it waits for a reply. So a few threads serve all of them (`stormspark.spark.switchboard`). While a
worker starts, a question may take minutes to answer; its thread just waits.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import pickle
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from stormspark.checkpoint.redistribution import NotDealtOutError
from stormspark.checkpoint.shared_folder import SharedFolder
from stormspark.driver.slow_calls import LAST_BATCH_SECS, SlowCalls
from stormspark.errors import CheckpointError, FencedError, StormsparkError
from stormspark.operations.facts import WorkerPlace
from stormspark.spark.assignments import Assignments, SeatState
from stormspark.spark.java_errors import in_one_line
from stormspark.spark.switchboard import Switchboard
from stormspark.worker.busy import Busy
from stormspark.worker.host.addresses import Address
from stormspark.worker.host.connection import SILENCE_SECS, Connection, has_hung_up
from stormspark.worker.host.descriptors import make_room
from stormspark.worker.host.key import Key
from stormspark.worker.host.launch import end_process
from stormspark.worker.host.link import STRANGERS, Door, Endpoint
from stormspark.worker.host.messages import (
    Adopt,
    Beat,
    Closed,
    Fatal,
    HeardOfCommit,
    Hello,
    Locate,
    Lost,
    Offer,
    Orders,
    Places,
    ProcessId,
    Ready,
    Refused,
    Sees,
    StartFailed,
    StartHere,
    StateRows,
    Stirs,
    There,
    Welcome,
)
from stormspark.worker.host.watchman import how_it_ended, remove_old_reports, report_of
from stormspark.worker.state.batch_state import StateAccess

__all__ = ["Nimbus"]

_log = logging.getLogger(__name__)

#: How long nimbus tries to send orders. Orders are a few bytes, which the socket buffers. If the buffer has no room for them, the
#: worker has not read for a long time.
_SEND_SECS = 5.0


@dataclass
class _Link:
    """The connection to one incarnation of a worker."""

    worker: int
    incarnation: int
    process: ProcessId
    connection: Connection
    received_at: float
    slow_calls: SlowCalls
    #: The call that the worker was in at its last heartbeat.
    busy: Busy | None = None
    #: The calls that an end of the topology would have cut off at that time; see `UnderWay.some`.
    calls: tuple[Busy, ...] = ()
    executor: ProcessId | None = None
    #: Whether the worker's tasks are open, so that the worker takes requests.
    ready: bool = False
    sending: threading.Lock = field(default_factory=threading.Lock)
    #: When the worker's process connected, in seconds since 1970.
    since: float = field(default_factory=time.time)

    def send(self, message: object, timeout: float = _SEND_SECS) -> bool:
        """Send a message. Return whether the message was sent in time; if not, the link may be useless.

        The timeout is there because a worker that does not read must not block nimbus for ever. While nimbus sends a worker its
        state, the worker may miss orders. But the answer to its next message has the complete orders again.
        """
        if not self.sending.acquire(timeout=timeout):
            return False
        try:
            self.connection.send(message, timeout)
        except OSError:
            self.connection.hang_up()  # half of a message may be on its way
            return False
        finally:
            self.sending.release()
        return True


@dataclass
class _Gathering:
    """Collects offers to start workers, until enough have come or the deadline has passed. A Spark task makes each offer, for the
    Spark executor that runs the task.
    """

    expected: int
    tasks: int
    #: How long nimbus waits after the first offer. Before that there may be no Spark executor at all.
    patience_secs: float
    again: bool  # whether the driver sends the tasks again if they have not reached all Spark executors
    deadline: float = 0.0
    offered: int = 0  # how many tasks have made an offer; one Spark executor may run several
    #: The Spark executors that have made offers, in the order of the offers.
    offers: dict[ProcessId, None] = field(default_factory=dict)
    #: The orders that each Spark executor has not fetched yet. None while nimbus waits for more offers.
    dealt: dict[ProcessId, list[tuple[int, StartHere]]] | None = None

    @property
    def reached(self) -> bool:
        """Whether offers have come from all Spark executors."""
        return len(self.offers) >= self.expected

    @property
    def complete(self) -> bool:
        """Whether nimbus stops waiting, because all Spark executors have made offers, or because all tasks have.

        If two tasks run on one Spark executor, all tasks may have made offers, but not all Spark executors.
        """
        return self.reached or self.offered >= self.tasks


class Nimbus:
    """The server for the workers and forwarders of one topology in one generation. It serves until `close`.

    ``folder`` is a folder that only this user can enter. It holds the socket for processes on this host. ``address`` is the
    address at which other hosts reach this one. It is None if all of Spark runs on this host; then nimbus does not listen on the
    network. ``certificate`` encrypts the traffic over the network (`Key`). A connection over the network may be silent for
    ``silence_secs``. ``shared`` is the driver's folder that all workers must be able to see. ``tasks_of`` names the tasks of a
    worker, for people. ``is_first`` is false if the topology ran before it was laid out anew.

    Nimbus calls ``on_trouble``, from any thread, when the attempt or the topology can't continue; `broken` and `error` say
    why. It calls ``on_stir`` when a worker that had nothing to do has work again.
    """

    def __init__(
        self,
        plan: bytes,
        workers: int,
        *,
        folder: Path,
        address: Address | None,
        lease_secs: float,
        start_timeout_secs: float,
        on_trouble: Callable[[], None],
        on_stir: Callable[[], None] = lambda: None,
        storm_id: str = "topology-1",
        active: bool = True,
        stuck_secs: float = 10.0,
        stuck_timeout_secs: float = 0.0,
        prepare_timeout_secs: float = 0.0,
        state: Callable[[], StateAccess | None] = lambda: None,
        state_of: Callable[[int], Iterable[bytes]] = lambda worker: (),
        certificate: bytes = b"",
        silence_secs: float = SILENCE_SECS,
        shared: SharedFolder | None = None,
        working_folder: str | None = None,
        tasks_of: Callable[[int], str] = lambda worker: "",
        is_first: bool = True,
    ) -> None:
        # Each worker connects, and so does each of Spark's Python processes. Nothing reports how many of these there are (Spark's
        # default parallelism may be many times as large), so make room for as many as there are workers.
        make_room(2 * workers + 2 * STRANGERS, f"the driver of a topology with {workers} workers")
        self._plan = plan
        self._working_folder = working_folder
        self._module_path = tuple(os.path.abspath(entry) for entry in sys.path)
        self._lease, self._start_timeout = lease_secs, start_timeout_secs
        self._on_trouble, self._on_stir = on_trouble, on_stir
        self._changed = threading.Condition()
        self._assignments = Assignments(workers)
        self._links: dict[int, _Link] = {}
        self._forwarders: set[Connection] = set()
        self._not_returned: list[Busy] = []
        self._last_reports: list[bytes] = []
        self._adoptions: dict[int, list[Adopt]] = {}  # for workers that have not connected yet
        self._orders = Orders(active=active)
        self._storm_id, self._state, self._state_of = storm_id, state, state_of
        self._shared, self._tasks_of, self._is_first = shared, tasks_of, is_first
        self._stuck_secs, self._stuck_timeout = stuck_secs, stuck_timeout_secs
        self._prepare_timeout = prepare_timeout_secs
        self._stops_since: float | None = None  # when the topology was told to stop
        self._looked_at: float | None = None
        self._gathering: _Gathering | None = None
        self._error: BaseException | None = None
        self.key = Key.new(certificate)
        self._switchboard = Switchboard("nimbus", silence_secs)
        self._door = Door(str(folder / "nimbus"), address, self.key, self._serve, "nimbus", silence_secs)
        self.endpoint: Endpoint = self._door.endpoint

    # -- for the driver --------------------------------------------------------------------------------------

    @property
    def error(self) -> BaseException | None:
        """Why the topology has to stop, or None."""
        with self._changed:
            return self._error

    @property
    def broken(self) -> str | None:
        """Why the attempt has failed, or None."""
        with self._changed:
            return self._assignments.broken

    @property
    def broken_outside(self) -> bool:
        """Whether something outside of the topology made the attempt fail, such as a disk that may come back."""
        with self._changed:
            return self._assignments.broken_outside

    @property
    def has_begun(self) -> bool:
        """Whether all workers have been ready at the same time. Before that, no round can have ended."""
        with self._changed:
            return self._assignments.has_begun

    def begin_attempt(self, attempt: int) -> None:
        """Serve only forwarders of this attempt from now on, and let them start lost workers again."""
        with self._changed:
            self._assignments.begin_attempt(attempt)
            self._changed.notify_all()

    def lost_workers(self) -> set[int]:
        """Return the workers that were lost in this attempt."""
        with self._changed:
            return {
                worker for worker, seat in enumerate(self._assignments.seats) if seat.state is SeatState.LOST
            }

    def waits_for(self) -> str:
        """Return what a topology waits for whose first batch has not ended: the next step of the start that not all workers have
        taken.
        """
        with self._changed:
            return self._assignments.waits_for()

    def worker_places(self) -> list[WorkerPlace]:
        """Return where the workers are, in order. One that is not there has no host."""
        with self._changed:
            links = [self._links.get(worker) for worker in range(len(self._assignments.seats))]
        return [
            WorkerPlace(worker, "", 0, 0.0)
            if link is None
            else WorkerPlace(worker, link.process.host, link.process.pid, link.since)
            for worker, link in enumerate(links)
        ]

    def missing(self) -> int:
        """Return the number of workers that no process has been asked to start."""
        with self._changed:
            return len(self._assignments.missing())

    def gather(self, executors: int, tasks: int, patience_secs: float, *, again: bool = False) -> None:
        """Expect offers, and distribute the missing workers once enough offers have come.

        Offers for ``executors`` Spark executors, or of ``tasks`` Spark tasks, are enough. Nimbus waits for at most
        ``patience_secs`` after the first offer. ``again`` says that the driver will send the Spark tasks again if they reach
        fewer Spark executors within that time. In that case nimbus distributes no workers now.
        """
        with self._changed:
            self._gathering = _Gathering(executors, tasks, patience_secs, again)

    def gathered(self) -> None:
        """Expect no more offers."""
        with self._changed:
            self._gathering = None

    def places(self) -> str:
        """Return which worker lives where, as text for people."""
        with self._changed:
            places: dict[str, list[int]] = {}
            for worker, seat in enumerate(self._assignments.seats):
                where = seat.executor
                name = "elsewhere" if where is None else f"{where.host}/{where.pid}"
                places.setdefault(name, []).append(worker)
        return "; ".join(f"{', '.join(map(str, workers))} on {name}" for name, workers in places.items())

    def adopt(self, worker: int, messages: list[Adopt]) -> None:
        """Make a worker adopt rows: now if the worker is connected, otherwise when it connects.

        If the worker is not connected, these messages replace those that wait for it already.
        """
        with self._changed:
            link = self._links.get(worker)
            if link is None or not self._assignments.is_current(worker, link.incarnation):
                self._adoptions[worker] = messages
                return
        for message in messages:
            if not link.send(message, self._lease):
                link.connection.hang_up()  # this ends the attempt, and the next attempt hands the rows over again

    def look_for_silence(self) -> None:
        """Give up workers that have sent nothing for a whole lease.

        Call this at intervals that are shorter than a third of a lease. If this check runs late, this process was held up and
        could not listen either. So the delay does not count as silence. While a worker opens its tasks, it may be silent for the
        start timeout in addition, because imports may block its interpreter.
        """
        now = time.monotonic()
        with self._changed:
            if self._looked_at is not None and now - self._looked_at > self._lease / 3:
                for link in self._links.values():
                    link.received_at = max(
                        link.received_at, min(now, link.received_at + now - self._looked_at)
                    )
            self._looked_at = now
            silent = [
                (link, most)
                for link in self._links.values()
                if now - link.received_at > (most := self._lease + (0 if link.ready else self._start_timeout))
            ]
        for link, most in silent:
            self._lose(link.worker, link.incarnation, f"it was silent for {most:g} s")

    def activate(self, active: bool) -> None:
        """Activate or deactivate the spouts of all workers (B13)."""
        self._give(self._orders._replace(active=active))

    def set_log_levels(self, levels: Mapping[str, int]) -> None:
        """Give loggers of all workers these levels, also in workers that start later (J22)."""
        self._give(self._orders._replace(log_levels=tuple(levels.items())))

    def restart_workers(self, workers: Iterable[int]) -> None:
        """End these workers now, so that they start anew in the next attempt (J6)."""
        with self._changed:
            seats = self._assignments.seats  # there are others after a rebalance
            lives = [(worker, seats[worker].incarnation) for worker in workers if worker < len(seats)]
            links = dict(self._links)
        for worker, incarnation in lives:
            # Nobody's code has failed, so this does not count as a failure of its own.
            self._lose(worker, incarnation, "a command restarts it", outside=True)
            link = links.get(worker)
            if link is not None and link.process.host == socket.gethostname():
                end_process(link.process)

    def limit_waiting(self) -> None:
        """Tell the workers that the topology stops. Only the first call counts.

        From then on, batches wait only a few seconds for calls on executors' own threads.
        """
        if not self._orders.stops:
            self._stops_since = time.monotonic()
            self._give(self._orders._replace(stops=True))

    def calls(self) -> list[Busy]:
        """Return the calls that the workers were in at their last heartbeats, the longest first."""
        with self._changed:
            calls = [link.busy for link in self._links.values() if link.busy is not None]
        return sorted(calls, key=lambda busy: -busy.seconds)

    def all_calls(self) -> list[Busy]:
        """Return what an end of the topology would cut off, the most important first, as the last heartbeats have it."""
        with self._changed:
            calls = [busy for link in self._links.values() for busy in link.calls]
        return sorted(calls, key=lambda busy: busy.importance)

    @property
    def not_returned(self) -> list[Busy]:
        """The calls that had not returned when the workers had closed their tasks."""
        with self._changed:
            return [*self._not_returned]

    @property
    def last_reports(self) -> list[bytes]:
        """The pickled reports of workers that have heard of the last commit, and of those with errors at their close."""
        with self._changed:
            return [*self._last_reports]

    def close_workers(self, timeout: float, committed: int = -1) -> bool:
        """Order all workers to close their spouts, clean up their bolts and end.

        Return false if a worker has not ended after ``timeout``. ``committed`` is the last committed batch, if batches are
        transactions.
        """
        with self._changed:
            self._assignments.end("the topology stops")
            waited_for = {link.worker for link in self._links.values()}
            self._changed.notify_all()
        self._give(self._orders._replace(active=False, close=True, committed=committed))
        with self._changed:
            return self._changed.wait_for(lambda: waited_for <= self._gone(), timeout)

    def kill_workers(self) -> None:
        """End all worker processes now. Nimbus orders them to exit, and itself kills those on this host."""
        with self._changed:
            self._assignments.end("the topology was killed")
            links = list(self._links.values())
            self._changed.notify_all()
        self._give(self._orders._replace(exit=True))
        for link in links:
            if link.process.host == socket.gethostname():
                end_process(link.process)

    def close(self) -> None:
        """Take no more connections, and end the workers that are left.

        Spark keeps its Python processes for later queries. So hang up on them: otherwise each topology of a session would leave
        their connections behind, and their threads.
        """
        self._door.close()
        with self._changed:
            self._assignments.end("the topology has ended")
            links, forwarders = list(self._links.values()), list(self._forwarders)
            self._changed.notify_all()
            for connection in forwarders:  # none of them is closed meanwhile: `ended` needs the lock first
                connection.hang_up()
        for link in links:
            link.send(self._orders._replace(exit=True))
        self._switchboard.close()

    def validate(self) -> None:
        """Check every invariant; raises `AssertionError`."""
        with self._changed:
            self._assignments.validate()

    # -- connections -----------------------------------------------------------------------------------------

    def _serve(self, connection: Connection) -> bool:
        """Serve a new connection. Return whether the switchboard has it now, and closes it."""
        first = connection.recv()
        if isinstance(first, Hello):
            return self._serve_worker(connection, first)
        return self._serve_forwarder(connection, first)

    def _serve_forwarder(self, connection: Connection, first: Any) -> bool:
        #: The workers that this process was asked to start, and their incarnations.
        promised: dict[int, int] = {}
        with self._changed:
            if self._door.is_closed:
                return False
            self._forwarders.add(connection)

        def ended(error: BaseException) -> None:
            with self._changed:
                self._forwarders.discard(connection)
                for worker, incarnation in promised.items():
                    self._assignments.promise_broken(worker, incarnation)
                self._changed.notify_all()

        try:
            self._answer(connection, first, promised)
            self._switchboard.add(connection, partial(self._answer, connection, promised=promised), ended)
        except BaseException as error:
            ended(error)
            raise
        return True

    def _answer(self, connection: Connection, message: Any, promised: dict[int, int]) -> None:
        """Answer a forwarder's message."""
        if isinstance(message, Locate):
            answer = self._locate(message)
            if isinstance(answer, StartHere):
                promised[message.worker] = answer.incarnation
            elif isinstance(answer, There):
                promised.pop(message.worker, None)
            connection.send(answer)
        elif isinstance(message, Offer):
            places = self._offer(message)
            if isinstance(places, Places):
                promised.update((worker, order.incarnation) for worker, order in places.orders)
            connection.send(places)
        elif isinstance(message, Lost):
            self._lose_broken(message.worker, message.incarnation, message.reason, message.outside)
            connection.send(Refused(message.reason))
        elif isinstance(message, StartFailed):
            self._start_failed(message)
            connection.send(Refused(message.text))

    def _offer(self, offer: Offer) -> Places | Refused:
        """Wait until enough Spark executors have made offers. Return the workers to start beside the one that made this offer."""
        with self._changed:
            refusal = self._assignments.refusal(offer.attempt)
            gathering = self._gathering
            if refusal is not None:
                return Refused(refusal)
            if gathering is None:
                return Places(())
            if not gathering.offered:
                gathering.deadline = time.monotonic() + gathering.patience_secs
            gathering.offers.setdefault(offer.executor)
            gathering.offered += 1
            self._changed.notify_all()
            while gathering.dealt is None:
                left = gathering.deadline - time.monotonic()
                if gathering.complete or left <= 0 or self._assignments.refusal(offer.attempt):
                    vain = gathering.again and left > 0 and not gathering.reached
                    gathering.dealt = {} if vain else self._assignments.deal(offer.attempt, gathering.offers)
                    self._changed.notify_all()
                else:
                    self._changed.wait(left)
            return Places(tuple(gathering.dealt.pop(offer.executor, ())))

    def _locate(self, question: Locate) -> There | StartHere | Refused:
        with self._changed:
            answer = self._assignments.locate(question.attempt, question.worker)
            deadline = time.monotonic() + self._start_timeout
            while answer is None:
                # After its `Hello`, a worker sends heartbeats while it reads its state and opens its tasks. So these steps need
                # no deadline.
                comes = self._assignments.seats[question.worker].state is SeatState.STARTING
                left = deadline - time.monotonic()
                if left <= 0 and not comes:
                    break
                self._changed.wait(self._lease if comes else left)
                answer = self._assignments.locate(question.attempt, question.worker)
            incarnation = self._assignments.seats[question.worker].incarnation
        if answer is None:
            reason = f"its process did not connect within {self._start_timeout:g} s (stormspark.worker.start.timeout.secs)"
            self._lose(question.worker, incarnation, reason)
            return Refused(f"worker {question.worker} was lost: {reason}")
        return answer

    def _serve_worker(self, connection: Connection, hello: Hello) -> bool:
        link = _Link(
            hello.worker,
            hello.incarnation,
            hello.process,
            connection,
            time.monotonic(),
            SlowCalls(hello.worker, self._stuck_secs, limits_starts=True),
            executor=hello.executor,
        )
        with link.sending:  # no orders to this worker until it has been welcomed
            known = self._welcome(link)
        if not known:
            connection.send(Refused("the driver does not expect this worker"))
            return False
        try:
            self._switchboard.add(
                connection, partial(self._receive, link), partial(self._end_of_worker, link)
            )
        except BaseException as error:
            self._end_of_worker(link, error)
            raise
        return True

    def _end_of_worker(self, link: _Link, error: BaseException) -> None:
        """Give up a worker whose connection has ended."""
        reason, outside = "its process is gone", False
        if isinstance(error, OSError):
            reason, outside = f"its connection broke: {error}", not has_hung_up(error)
        with self._changed:
            current = self._links.get(link.worker) is link
            if current:
                del self._links[link.worker]
            self._changed.notify_all()
        if current:
            self._lose_broken(link.worker, link.incarnation, reason, outside)

    def _welcome(self, link: _Link) -> bool:
        """Give an expected worker its plan, its state, and the rows that earlier incarnations left open, before any orders.

        Return false if nobody expects this worker.
        """
        with self._changed:
            if not self._assignments.hello(link.worker, link.incarnation, link.process, link.executor):
                return False
            self._links[link.worker] = link
            adoptions = self._adoptions.pop(link.worker, [])
            active = self._orders.active
        remove_old_reports(self.endpoint)
        state = self._state()
        welcome = Welcome(
            self._plan,
            self._lease,
            self._module_path,
            self._storm_id,
            active,
            len(adoptions),
            state,
            "" if self._shared is None else self._shared.place,
            self._working_folder,
        )
        # If the worker's process has already ended, the caller's next `recv` finds that out.
        with contextlib.suppress(OSError):
            for message in (welcome, *adoptions):
                link.connection.send(message)
            if state is not None and state.by_driver:
                for part in itertools.chain(self._state_of(link.worker), (b"",)):
                    link.connection.send(StateRows(part))
                    link.received_at = time.monotonic()  # the worker reads, so it lives
        return True

    def _receive(self, link: _Link, message: object) -> None:
        link.received_at = time.monotonic()
        if isinstance(message, Beat):
            link.calls = message.calls
            self._look_at(link, message.busy)
            link.send(self._orders_of(link))
        elif isinstance(message, Ready):
            link.ready = True
            link.slow_calls.look_at(())  # all calls of the start have returned
            with self._changed:
                self._assignments.ready(link.worker, link.incarnation, message.endpoint)
                self._changed.notify_all()
            link.send(self._orders_of(link))
        elif isinstance(message, Sees):
            self._look_at_folder(link, message)
        elif isinstance(message, HeardOfCommit):
            with self._changed:
                self._last_reports.append(message.report)
        elif isinstance(message, Closed):
            with self._changed:
                self._not_returned += message.not_returned
                if message.report is not None:
                    self._last_reports.append(message.report)
            link.send(self._orders._replace(exit=True))
        elif isinstance(message, Stirs):
            self._on_stir()
        elif isinstance(message, Fatal):
            self._fail(_error(message.error, f"worker {link.worker} can't continue:\n{message.text}"))
        elif isinstance(message, StartFailed):
            self._start_failed(message)
            link.send(self._orders._replace(exit=True))

    def _look_at_folder(self, link: _Link, sees: Sees) -> None:
        """End the topology if a worker does not see the driver's folder, because the worker's files would be lost (W3).

        If an earlier attempt or layout has run, the reason may be storage that can't be reached now. Then only the attempt ends.
        """
        shared = self._shared
        problem = None if shared is None else sees.problem or shared.problem_with(sees.shown)
        if shared is None or problem is None:
            return
        error = shared.error(f"worker {link.worker} on {link.process.host}", problem)
        if self._starts_again and (sees.problem or shared.is_away()):
            self._lose(link.worker, link.incarnation, str(error), outside=True)
        else:
            self._fail(error)

    def _look_at(self, link: _Link, busy: Busy | None) -> None:
        """Warn about user code that does not return (B1). If this code holds up a batch for too long, give the worker up."""
        if busy is not None and not busy.alone:
            key = "prepare" if busy.opens else "stuck"
            most = self._prepare_timeout if busy.opens else self._stuck_timeout
            limit = f"stormspark.{key}.timeout.secs"
            if self._stops_since is not None and time.monotonic() - self._stops_since >= LAST_BATCH_SECS:
                most, limit = min(most or inf, LAST_BATCH_SECS), "the topology stops"
            if 0 < most <= busy.seconds:
                self._lose(
                    link.worker,
                    link.incarnation,
                    f"{busy.code} had not returned after {busy.seconds:.0f} s ({limit})",
                )
                if link.process.host == socket.gethostname():
                    end_process(link.process)
                return
        link.busy = busy
        link.slow_calls.look_at(() if busy is None else (busy,), stops=self._stops_since is not None)

    # -- changes ---------------------------------------------------------------------------------------------

    def _give(self, orders: Orders) -> None:
        with self._changed:
            self._orders = orders
            links = list(self._links.values())
        for link in links:
            link.send(self._orders_of(link))

    def _orders_of(self, link: _Link) -> Orders:
        with self._changed:
            current = self._assignments.is_current(link.worker, link.incarnation)
            return self._orders if current else self._orders._replace(exit=True)

    def _gone(self) -> set[int]:
        return {
            w
            for w, seat in enumerate(self._assignments.seats)
            if w not in self._links or seat.state is SeatState.LOST
        }

    def _lose(self, worker: int, incarnation: int, reason: str, *, outside: bool = False) -> None:
        with self._changed:
            ending = self._assignments.ending is not None
            is_new = self._assignments.lost(worker, incarnation, reason, outside=outside)
            link = self._links.get(worker)
            self._changed.notify_all()
        if not is_new:
            return
        # Nimbus has given this worker up. If its process still lives, the process has to exit, because only one incarnation of a
        # worker may run.
        delivered = (
            link is None or link.incarnation != incarnation or link.send(self._orders._replace(exit=True))
        )
        if link is not None and not delivered:
            link.connection.hang_up()
        if not ending:
            _log.warning("worker %d (incarnation %d) was lost: %s", worker, incarnation, in_one_line(reason))
            self._on_trouble()

    def _lose_broken(self, worker: int, incarnation: int, reason: str, outside: bool) -> None:
        """Give up a worker to which a connection has broken. If its process on this host has ended, say how."""
        with self._changed:
            known = self._assignments.is_current(worker, incarnation) and self._assignments.ending is None
            process = self._assignments.seats[worker].process
        if known and process is not None and process.host == socket.gethostname():
            how = how_it_ended(process, report_of(self.endpoint, process.pid), self._tasks_of(worker))
            if how is not None:
                reason, outside = how, False
        elif known and process is not None and not outside:
            # Its watchman has no way to this host.
            reason += f" (how it ended is at the end of worker-{worker}.out, in its folder for logs on {process.host})"
        self._lose(worker, incarnation, reason, outside=outside)

    @property
    def _starts_again(self) -> bool:
        """Whether an earlier attempt or layout has run.

        If so, storage and hosts have worked once, and a failure may mean that they can't be reached for a while.
        """
        with self._changed:
            return not self._is_first or self._assignments.attempt > 0

    def _start_failed(self, failed: StartFailed) -> None:
        error = _error(failed.error, f"worker {failed.worker} could not start:\n{failed.text}")
        outside = isinstance(error, CheckpointError) and not isinstance(error, FencedError | NotDealtOutError)
        if self._starts_again and (failed.outside or outside):
            self._lose(failed.worker, failed.incarnation, str(error), outside=True)
        else:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._error = self._error or error
            self._assignments.end(f"the topology failed: {error}")
            self._changed.notify_all()
        self._on_trouble()


def _error(pickled: bytes, text: str) -> BaseException:
    """Return the worker's own error if it is a `StormsparkError` that can be unpickled; otherwise an error with its message."""
    with contextlib.suppress(Exception):
        error = pickle.loads(pickled)
        if isinstance(error, StormsparkError):
            return error
    return StormsparkError(text)
