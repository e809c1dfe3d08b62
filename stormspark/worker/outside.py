"""A worker's wait for tuples that its bolts process outside of the worker; see `stormspark.spi.outside`."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterable

from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.current_call import CurrentCall
from stormspark.worker.departures import Departures

__all__ = ["OutsideWork", "Watch"]

#: How long the worker sleeps between two polls, so that more answers come.
_GATHER_SECONDS = 0.0003
#: For how long the worker takes in answers before it returns to its bolts. Each switch from bolts to answers costs time.
_TAKE_IN_SECONDS = 0.002
#: If a poll and its answers took less time than this, there were few answers. Then the worker sleeps before the next poll,
#: because each poll costs time. But it sleeps only if some bolt has at least `_ENOUGH` tuples in progress outside.
_SHORT_SECONDS = 0.00015
_ENOUGH = 32
#: If this many tuples wait for a bolt that has room for them, the worker returns to its bolts at once, since the bolt might run
#: out of work.
_WORTH_A_TURN = 25
#: For how long a superstep waits for answers if other workers wait for its tuples, and no tuple waits for an answer.
_PATIENCE_SECS = 0.002


class Watch:
    """Polls the file descriptors of the bolts that `set` named last."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._bolts: dict[int, BoltTask] = {}

    def set(self, bolts: Iterable[BoltTask]) -> None:
        """Poll these bolts from now on, except those without a file descriptor, and those whose error stops the topology."""
        files = {bolt.fileno(): bolt for bolt in bolts if bolt.fatal is None}
        files.pop(-1, None)
        if files != self._bolts:
            self._bolts = files
            self._poll = select.poll()
            for file in files:
                self._poll.register(file, select.POLLIN)

    def take_in(self, seconds: float, enter: Callable[[BoltTask], None]) -> int | None:
        """Process answers that have come already, or that come within ``seconds``.

        Returns how many tuples these answers settle; None if no answer came. ``enter`` is called with the bolt whose code runs.
        """
        came = self._poll.poll(seconds * 1000)
        if not came:
            return None
        done = 0
        for file, _ in came:
            bolt = self._bolts[file]
            enter(bolt)
            done += bolt.take_in()
        return done

    def gather(self, bolts: Iterable[BoltTask]) -> None:
        """Sleep, so that more answers gather before the next poll. Do not sleep if one of these bolts must answer somebody
        outside of the worker.
        """
        if not any(bolt.waits_for_answer for bolt in bolts):
            time.sleep(_GATHER_SECONDS)


class OutsideWork:
    """The bolts whose tuples are processed outside of the worker (`WorksOutside`). The worker waits for their answers.

    If ``shares_thread``, the topology's other workers run on the same thread, and stand still while this worker waits.
    """

    def __init__(
        self, clock: Callable[[], float], call: CurrentCall, departures: Departures, *, shares_thread: bool
    ) -> None:
        self._clock, self._call, self._departures = clock, call, departures
        self._watch = Watch()
        #: The bolts that are a `WorksOutside`; set once the bolts are prepared.
        self.bolts: list[BoltTask] = []
        self._shares_thread = shares_thread
        self._began_to_wait = 0.0
        #: Whether other workers get the tuples of this superstep once it is over, and not only in the next round.
        self._hands_out = False

    @property
    def at_work(self) -> int:
        """How many tuples are in progress outside of this process."""
        return sum(bolt.outside for bolt in self.bolts)

    @property
    def calls_under_way(self) -> int:
        """How many calls of async bolts, and of what runs in other processes, have not returned, or were not taken in yet.

        Each tuple that a child was given is such a call, unless the child has received it and holds it on purpose. A stop waits
        for no start of an instance.
        """
        return sum(bolt.outside for bolt in self.bolts if not (bolt.starts_on_loop and bolt.is_ending))

    @property
    def wants_answers(self) -> bool:
        """Whether tuples wait for a bolt that has no room. Such a bolt needs answers before it can take more tuples."""
        return any(bolt.waiting and not bolt.ready for bolt in self.bolts)

    def begin_superstep(self, *, hands_out: bool) -> None:
        """A superstep begins. ``hands_out`` is false if it is the last one of its round."""
        self._hands_out = hands_out
        self.begin_to_wait()

    def begin_to_wait(self) -> None:
        """Begin to wait. `wait_with_patience` counts its patience from this call."""
        self._began_to_wait = self._clock()

    def wait_with_patience(self, until: float) -> bool:
        """Wait as `wait` does, but give up after a moment if that keeps other workers waiting.

        Otherwise each superstep would last as long as its time allows while any call is under way, and what bolts emit would
        reach the other workers only then.
        """
        if self._departures.lanes and self._keeps_others_waiting():
            until = min(until, self._began_to_wait + _PATIENCE_SECS)
        return self.wait(until)

    def _keeps_others_waiting(self) -> bool:
        if any(bolt.in_transactions for bolt in self.bolts):
            # The batch waits for all calls anyway: best in the last superstep, in which all workers wait side by side.
            return self._hands_out and not self._shares_thread
        # If tuples wait for a bolt that needs answers first, the worker has more work than time.
        return self._shares_thread or not self.wants_answers

    def wait(self, until: float) -> bool:
        """Wait for answers from outside, and process them. Return false if no bolt has tuples outside, or if there is no time.

        The wait ends after some milliseconds, so that bolts can go on with the results. It ends earlier if all tuples are done,
        or if many tuples wait for a bolt that has room now. If some bolts must answer somebody outside of the worker, only
        these bolts are polled. The answers for the other bolts are processed later, all at once, which is cheaper.
        """
        busy = [bolt for bolt in self.bolts if bolt.outside and bolt.fatal is None]
        begun = now = self._clock()
        if not busy or now >= until:
            return False
        turn_ends = min(until, now + _TAKE_IN_SECONDS)
        watch, clock, enter = self._watch, self._clock, self._call.enter
        bolts = [bolt for bolt in busy if bolt.waits_for_answer] or busy
        watch.set(bolts)
        while now < turn_ends:
            done = watch.take_in(turn_ends - now, enter)
            if done is None:
                for bolt in busy:  # no answer came, so each bolt may check the state of its work outside
                    enter(bolt)
                    bolt.take_in()
                break
            if done:
                busy = [bolt for bolt in busy if bolt.outside and bolt.fatal is None]
                bolts = [bolt for bolt in busy if bolt.waits_for_answer] or busy
                if not bolts or any(bolt.ready >= _WORTH_A_TURN for bolt in self.bolts):
                    break
                watch.set(bolts)
            before, now = now, clock()
            if now - before < _SHORT_SECONDS and any(bolt.outside >= _ENOUGH for bolt in bolts):
                watch.gather(bolts)
                now = clock()
        waited = self._clock() - begun
        for bolt in self.bolts:
            self._departures.seal_full(bolt)
            if bolt.outside:
                bolt.waited(waited)
        enter(None)
        return True

    def take_in(self) -> None:
        """Process answers that have come already, without waiting."""
        self._watch.set(self.bolts)
        self._watch.take_in(0, self._call.enter)
        for bolt in self.bolts:
            self._departures.seal_full(bolt)
