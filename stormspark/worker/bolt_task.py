"""The task of a bolt: it takes tuples from its inbox and executes them, one chunk at a time."""

from __future__ import annotations

import select
from collections.abc import Iterator, MutableMapping, Sequence
from itertools import chain, islice
from sys import getsizeof
from typing import Any
from weakref import WeakKeyDictionary

from stormspark.acker import Outcome, Verdict
from stormspark.api import (
    TICK_SOURCE,
    BasicBolt,
    Bolt,
    BoltAckInfo,
    BoltExecuteInfo,
    BoltFailInfo,
    TopologyContext,
    Tuple,
    WindowedBolt,
)
from stormspark.api.tuple_state import SETTLED
from stormspark.backpressure import BoltLoad
from stormspark.errors import FailedException, ReportedFailedException
from stormspark.spi import (
    AutoAckBolt,
    BatchAware,
    Given,
    KeepsOutside,
    Send,
    TransactionAttempt,
    WorksOutside,
)
from stormspark.worker.replays.recording_inputs import BatchBegins, BatchEnds, TaskInputs
from stormspark.worker.shedding import Shedding
from stormspark.worker.task import Task
from stormspark.worker.tuples.collectors import BasicCollector, BoltCollector
from stormspark.worker.tuples.edges import fail_roots
from stormspark.worker.tuples.execution import (
    ack_kept,
    execute_automatic,
    execute_basic,
    execute_kept,
    execute_outside,
    execute_plain,
)
from stormspark.worker.tuples.outlets import Delivery, Outlet
from stormspark.worker.tuples.weights import weight
from stormspark.worker.windows.window_state import WindowState
from stormspark.worker.windows.windowed_bolt import WindowedBoltExecutor

__all__ = ["BoltTask"]

#: How long a chunk should take, about: the worker looks at the deadline between chunks.
_CHUNK_SECONDS = 0.01
#: The most tuples in a chunk, and the tuples in one while the task does not know yet how slow they are.
_CHUNK_MOST = 1024
_CHUNK_FIRST = 16
#: Another thread cuts a chunk that takes longer than this: its tuples have suddenly become slow.
_CHUNK_LONGEST = 0.1
#: How many waiting tuples are weighed to estimate the size of all, and the bytes that each takes beside its values.
_SAMPLE = 8
_DELIVERY_BYTES = 2 * getsizeof(())
#: How long a replay waits, at most, before it looks again at a bolt that works outside.
_REPLAY_PATIENCE_SECS = 0.05
#: Above this mean each execute is timed alone. Below it a chunk is timed as a whole, which costs nothing per tuple.
_TIMED_ALONE = 50e-6


class BoltTask(Task):
    """One task of a `Bolt`, `BasicBolt` or `WindowedBolt`. ``inbox`` is a list that senders append to."""

    _first_call = "prepare"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.inbox: list[Delivery] = []
        self.bolt: Bolt | BasicBolt
        #: Deliveries taken out of the inbox; those from `_next` on still wait.
        self._taken: list[Delivery] = []
        self._next = 0
        # The tuples that the bolt holds. Weak, so that one that the bolt drops without ack or fail leaves nothing behind; its
        # tree times out. The value is when its chunk began, so that the story of a failed tree can name who held it, and
        # since when.
        self._held: MutableMapping[Tuple, float] = WeakKeyDictionary()
        self._begun = 0.0
        #: The deliveries that the running loop executes; `look` may shorten the list.
        self._piece: list[Delivery] = []
        self._mean = 0.0
        #: The tuple of a chunk that raised: its position in the chunk, and the tuple itself.
        self.position = -1
        self.current: Tuple | None = None
        self._collector: BoltCollector | None = None
        self._basic = BasicCollector(self, self._ledger)
        self._ticks = 0  # how many ticks wait
        self._reported = (0, 0.0, 0)
        #: Drops or rejects tuples above the high water marks; None where the strategy is only to slow down spouts.
        slows = self._settings.backpressure_strategy == "slow"
        self.shedding = None if slows else Shedding(self, self._ledger, self._settings)
        #: Whether batches are transactions: then an error aborts the batch, and the rollback takes back what the bolt holds
        #: (C44).
        self.in_transactions = False
        #: Records what the bolt is given; None unless inputs are recorded.
        self.inputs: TaskInputs | None = None
        self._done = 0  # all deliveries executed so far
        self._seen = (0, 0)  # at the last call of `not_reached`: how many waited, and `_done`
        #: The bolt under each interface that it implements; else None.
        self._outside: WorksOutside | None = None
        self._automatic: AutoAckBolt | None = None
        self._keeper: KeepsOutside | None = None

    def _begin(self, instance: Bolt | BasicBolt | WindowedBolt, context: TopologyContext) -> None:
        """Prepare the bolt, and start its ticks."""
        self._automatic = self._keeper = None
        self.connect()
        if self._settings.tick_freq_secs:
            self.set_timer(self._settings.tick_freq_secs, self._tick)
        if isinstance(instance, WindowedBolt):
            held = None if self.state is None else self.state.windows
            kept = (
                None
                if held is None
                else WindowState(held, f"{self.component.place} ({self.name})", self.abort)
            )
            instance = WindowedBoltExecutor(instance, kept)
        if self.state is not None:
            self.state.before(instance)
        if isinstance(instance, WorksOutside):
            self._held = {}  # the bolt holds every tuple anyway, and a weak dictionary takes three times as long
        if isinstance(instance, BasicBolt):
            self._collector = None
            instance.prepare(self._conf, context)
        else:
            self._collector = BoltCollector(self, self._ledger, self._held)
            if self._host.guarded:
                self.guard()
            instance.prepare(self._conf, context, self._collector)
        self.bolt = instance
        if isinstance(instance, AutoAckBolt):
            self._automatic = instance
            instance.connected(self._line)
        if isinstance(instance, KeepsOutside) and instance.keeps:
            self._keeper = instance
            instance.connected(self._sender, self._ack_kept)
        self._outside = instance if isinstance(instance, WorksOutside) else None
        if self.state is not None:
            self.state.after(instance, context=context, collector=self._collector, conf=self._conf)

    @property
    def instance(self) -> Bolt | BasicBolt | None:
        """The bolt; None before it is prepared."""
        return getattr(self, "bolt", None)

    def begin_batch(self, attempt: TransactionAttempt, announced: Any) -> None:
        """See `Task.begin_batch`."""
        if self.inputs is not None:
            self.inputs.note(BatchBegins(attempt, announced))
        super().begin_batch(attempt, announced)

    def end_batch(self) -> None:
        """Call the bolt's ``end_batch``: all tuples of the batch have been executed here (G6)."""
        assert isinstance(self.bolt, BatchAware)
        if self.inputs is not None:
            self.inputs.note(BatchEnds())
        try:
            self.bolt.end_batch(self._basic)
        except Exception as error:
            self._raised("finish_batch", error, None)

    def forget_tuples(self) -> None:
        """Drop all tuples that wait or are held: their batch runs again."""
        self.inbox.clear()  # not a new list, because senders hold this one
        self._taken, self._next, self._ticks = [], 0, 0
        for held in list(self._held):
            held.state = SETTLED
        self._held.clear()

    def _tick(self) -> None:
        """Queue a tick behind the tuples that wait already (C9)."""
        self.inbox.append(((self._settings.tick_freq_secs,), TICK_SOURCE, None))
        self._ticks += 1

    def connect(self) -> None:
        """Give the collector the current outlets."""
        self._basic.connect(guarded=self._host.guarded)
        if self._automatic is not None:
            self._automatic.connected(self._line)
        if self._keeper is not None:
            self._keeper.connected(self._sender, self._ack_kept)

    def _line(self, stream: str) -> Outlet | None:
        """See `AutoAckBolt.connected`."""
        return None if self._host.guarded else self.outlets.get(stream)

    def _sender(self, stream: str) -> Send | None:
        """See `KeepsOutside.connected`."""
        line = self._line(stream)
        return None if line is None else line.send

    def guard(self) -> None:
        """See `Task.guard`."""
        self.connect()
        if self._collector is not None:
            self._collector.guarded = True

    def stop(self) -> None:
        """Call ``cleanup``. Errors are reported, and stop nothing."""
        try:
            self.bolt.cleanup()
        except Exception as error:
            self.report_error(error)
        super().stop()

    @property
    def waiting(self) -> int:
        """How many tuples wait to be executed."""
        return len(self.inbox) + len(self._taken) - self._next

    @property
    def ready(self) -> int:
        """How many of the waiting tuples the bolt could execute now."""
        waiting, outside = self.waiting, self._outside
        return waiting if outside is None or not waiting else min(waiting, outside.room)

    # -- work outside of the worker ----------------------------------------------------------------------------

    @property
    def works_outside(self) -> bool:
        """Whether the worker has to wait for this bolt; see `WorksOutside`."""
        return self._outside is not None

    @property
    def outside(self) -> int:
        """How many executed tuples are still worked on outside."""
        return 0 if self._outside is None else self._outside.outside

    @property
    def asks(self) -> bool:
        """Whether the worker has to drain answers from outside at once."""
        return self._outside is not None and self._outside.asks

    def fileno(self) -> int:
        """Return the file descriptor that is readable when `take_in` has something to do; -1 if there is none."""
        return -1 if self._outside is None else self._outside.fileno()

    def take_in(self) -> int:
        """Process answers from outside. An error there counts as one in ``execute``.

        Returns how many tuples that settles; not 0 after an error, because the restart settles all that the bolt held.
        """
        assert self._outside is not None
        try:
            done = self._outside.take_in()
        except Exception as error:
            self._raised("what it has outside", error, None)
            return 1
        if done:
            self._raised_in_row = 0
        return done

    def _ack_kept(self, given: Sequence[Given]) -> None:
        """See `KeepsOutside.connected`."""
        ack_kept(given, self._ledger, self)

    def waited(self, seconds: float) -> None:
        """Count the time that the worker spent on nothing but waiting for this bolt, among others, as the cost of its tuples."""
        self.counters.latency.seconds += seconds

    # ----------------------------------------------------------------------------------------------------------

    def waiting_deliveries(self) -> Iterator[Delivery]:
        """Iterate over the tuples that wait to be executed, in order."""
        return chain(islice(self._taken, self._next, None), self.inbox)

    def not_reached(self) -> Iterator[Delivery]:
        """Iterate over the tuples that have waited here ever since the last call."""
        waiting, done = self._seen
        self._seen = (self.waiting, self._done)
        return islice(self.waiting_deliveries(), max(0, waiting - (self._done - done)))

    def held(self) -> list[tuple[Tuple, float]]:
        """Return the tuples that were executed and neither acked nor failed yet, each with the time since when."""
        if self._keeper is not None:
            return [(Tuple(*given), since) for given, since in self._keeper.kept() if given[2] is not None]
        return list(self._held.items())

    def load(self) -> BoltLoad:
        """Return what the bolt did since the last report, and what waits for it."""
        executed, seconds, shed = self.counters.executed, self.counters.latency.seconds, self.counters.shed
        before, self._reported = self._reported, (executed, seconds, shed)
        waiting = self.waiting + self.outside
        return BoltLoad(
            executed - before[0],
            seconds - before[1],
            waiting,
            waiting * self.size_of_one() if waiting else 0,
            shed - before[2],
        )

    def size_of_one(self) -> int:
        """Estimate the bytes of one waiting tuple: its values (`weight`), and what the queue needs to hold them.

        The estimate is a mean over a few tuples, spread evenly from the oldest to the newest.
        """
        taken, inbox, gone = self._taken, self.inbox, len(self._taken)
        waiting = range(self._next, gone + len(inbox))
        some = waiting[:: max(1, len(waiting) // _SAMPLE)]
        if not some:
            return _DELIVERY_BYTES
        values = (taken[at][0] if at < gone else inbox[at - gone][0] for at in some)
        return _DELIVERY_BYTES + sum(map(weight, values)) // len(some)

    def take_newest(self, most: int) -> list[Delivery]:
        """Take the newest ``most`` tuples out of the queue, in order; ticks among them stay (C9)."""
        newest: list[Delivery] = []
        for queue, first in ((self.inbox, 0), (self._taken, self._next)):
            cut = max(first, len(queue) - (most - len(newest)))
            end = queue[cut:]
            del queue[cut:]
            if self._ticks:
                queue.extend(delivery for delivery in end if delivery[1] is TICK_SOURCE)
                end = [delivery for delivery in end if delivery[1] is not TICK_SOURCE]
            newest = end + newest
        return newest

    def run(self) -> int:
        """Execute one chunk of the waiting tuples; return how many that were."""
        batch = self._take()
        if not batch:
            return 0
        clock = self._clock
        done = 0
        started = begun = clock()
        while done < len(batch) and self.fatal is None:
            self._begun = begun
            # A copy, because `look` may shorten it, and the rest of the chunk must not be lost.
            self._piece = piece = batch[done : done + 1] if self._mean > _TIMED_ALONE else batch[done:]
            step = self._execute(piece)
            now = clock()
            took = (now - begun) / step
            begun = now
            self.counters.latency.add(took, step)
            self.counters.executed += step - (self._ticks and self._ticks_among(batch[done : done + step]))
            self._mean = took if not self._mean else self._mean + (took - self._mean) * min(1.0, step / 64)
            done += step
            if self._mean > _TIMED_ALONE and now - started > _CHUNK_SECONDS:
                break  # the bolt has become slow: other bolts need their turn, and the superstep has to end
        self._done += done
        self._piece = []  # lets go of the executed tuples, because the next chunk may be far off
        if done < len(batch):  # put the rest back
            self._taken[self._next : self._next] = batch[done:]
        return done

    def look(self) -> bool:
        """Shorten a chunk that takes too long, so that it ends with the call that runs now; see `Task.look`.

        The loops read the length of their list before each tuple anyway, so this costs them nothing. The first item stays,
        because a loop that has just begun reads it.
        """
        piece = self._piece
        if self._clock() - self._begun > _CHUNK_LONGEST:
            del piece[1:]
        return False

    def _ticks_among(self, executed: list[Delivery]) -> int:
        """Return how many of these are ticks. Ticks are not counted as executed: counts are of users' tuples only (J15)."""
        ticks = sum(source is TICK_SOURCE for _, source, _ in executed)
        self._ticks -= ticks
        if self._collector is None:
            self.counters.acked -= ticks
        return ticks

    def _take(self) -> list[Delivery]:
        """Take the next chunk, in order.

        Its size keeps the chunk short, by the mean time per tuple. It is small as long as that mean is unknown.
        """
        if not self._mean:
            most = _CHUNK_FIRST
        elif self._mean * _CHUNK_MOST < _CHUNK_SECONDS:
            most = _CHUNK_MOST
        else:
            most = max(1, int(_CHUNK_SECONDS / self._mean))
        if self._outside is not None:
            most = min(most, self._outside.room)
            if most <= 0:
                return []
        if self._next >= len(self._taken):
            inbox = self.inbox
            if len(inbox) <= most:
                batch = inbox[:]
                inbox.clear()  # not a new list, because senders hold this one
                return batch
            self._taken, self._next = inbox[:], 0
            inbox.clear()
        batch = self._taken[self._next : self._next + most]
        self._next += len(batch)
        if self._next >= len(self._taken):
            self._taken, self._next = [], 0
        return batch

    def _execute(self, batch: list[Delivery]) -> int:
        """Execute tuples to the end of the chunk, or to the first that raises; return how many that were."""
        inputs = self.inputs
        if inputs is None:
            return self._execute_now(batch)
        inputs.begins(batch)
        executed = self._execute_now(batch)
        inputs.ended(executed)
        return executed

    def execute_one(self, delivery: Delivery) -> None:
        """Execute one tuple now, and wait until it is done outside, too; only for replays."""
        self._begun = self._clock()
        self._execute_now([delivery])
        while self.outside and self.fatal is None:
            waiting = select.poll()  # not select.select, which takes no descriptor above 1023
            waiting.register(self, select.POLLIN)
            waiting.poll(_REPLAY_PATIENCE_SECS * 1000)
            self.take_in()

    def _execute_now(self, batch: list[Delivery]) -> int:
        execute = self._execute_observed if self.hooks else self._unobserved
        try:
            executed = execute(batch)
        except Exception as error:
            if self.position and self._outside is None:  # the tuples before it went well
                self._raised_in_row = 0
            self._raised("execute", error, self.current)
            return self.position + 1
        if self._outside is None:
            self._raised_in_row = 0
        else:
            self._send()
        return executed

    def _send(self) -> None:
        """Let the bolt send the chunk outside. Its tuples are executed, but not done: `take_in` finds out when they are."""
        assert self._outside is not None
        try:
            self._outside.send()
        except Exception as error:
            self._raised("execute", error, None)

    def _unobserved(self, batch: list[Delivery]) -> int:
        """Run the loop for this kind of bolt; return how many tuples it executed."""
        execute: Any = self.bolt.execute
        if self._collector is None:
            return execute_basic(batch, execute, self._basic, self._ledger, self)
        if self._automatic is not None:
            return execute_automatic(
                batch, self._automatic, self._collector, self._held, self._begun, self._ledger, self
            )
        if self._keeper is not None:
            return execute_kept(batch[:], self._keeper, self._begun, self)
        loop = execute_plain if self._outside is None else execute_outside
        return loop(batch, execute, self._held, self._begun, self)

    def _execute_observed(self, batch: list[Delivery]) -> int:
        """Execute the tuples one by one, and call the hooks for each (J21)."""
        clock = self._clock
        position = -1
        for position, delivery in enumerate(batch):
            begun = clock()
            try:
                self._unobserved([delivery])
            except Exception:
                self.position = position
                raise
            values, source, roots = delivery
            tup = Tuple(values, source, roots)
            tup.state = SETTLED  # an error in a hook must not fail the tuple, which has been executed
            self.position, self.current = position, tup
            took = (clock() - begun) * 1000
            for hook in self.hooks:
                hook.bolt_execute(BoltExecuteInfo(tup, self.id, took))
                if self._collector is None:
                    hook.bolt_ack(BoltAckInfo(tup, self.id))
        return position + 1

    def tell_acked(self, tup: Tuple) -> None:
        """Call the hooks, because the collector has acked ``tup``."""
        for hook in self.hooks:
            hook.bolt_ack(BoltAckInfo(tup, self.id))

    def tell_failed(self, tup: Tuple) -> None:
        """Call the hooks, because the collector or an error in ``execute`` has failed ``tup``."""
        for hook in self.hooks:
            hook.bolt_fail(BoltFailInfo(tup, self.id))

    def raised(self, where: str, error: Exception) -> None:
        """Handle an error outside of ``execute``, such as in a timer's callback."""
        self._raised(where, error, None)

    def _raised(self, where: str, error: Exception, tup: Tuple | None) -> None:
        """Fail the tuple at hand, and restart the task, unless the error means only that the tuple failed (C5, W22)."""
        verdict = Verdict(
            Outcome.FAILED, f"{type(error).__name__}: {error}"[:1000], self.component.id, self.id
        )
        if tup is not None and tup.state != SETTLED:
            self.counters.failed += 1
            self._held.pop(tup, None)
            tup.state = SETTLED
            fail_roots(self._ledger, tup.roots, verdict)
            self.tell_failed(tup)
        if not isinstance(error, FailedException) or tup is None or tup.roots is None:
            self.abort(f"{where} raised {verdict.reason}")
        if isinstance(error, FailedException):
            if isinstance(error, ReportedFailedException) or tup is None:
                self.report_error(error)
            self._raised_in_row = 0
            return
        self.report_error(error)
        # Nobody can ack the tuples that the old instance held. In a transaction the rollback takes them back, so their rows
        # do not fail. But if the error came from outside, the held tuples are what the bolt was at work on, and they fail.
        theirs = not self.in_transactions or (tup is None and self._outside is not None)
        lost = Verdict(
            Outcome.FAILED,
            f"the task that held it was restarted after {verdict.reason}",
            self.component.id,
            self.id,
        )
        for held, _ in self.held():
            held.state = SETTLED
            self.counters.failed += 1
            if theirs:
                fail_roots(self._ledger, held.roots, lost)
            self.tell_failed(held)
        self._held.clear()
        self._restart(where, error)
