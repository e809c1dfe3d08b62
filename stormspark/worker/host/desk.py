"""The desk of a worker process: takes requests in, lets each run once, and answers all who ask for the same.

The invariant: **within one attempt, a request runs at most once, and everybody who sends it gets that one
run's reply.**

Why it holds. A request is named by (batch, superstep, partition). It enters only with its end mark, so a
sender that died half-way leaves nothing behind. Whoever comes first with a key makes its `Errand`; all later
ones are given the same errand and wait for it. Errands are run by one thread, in the order in which they
came. The reply is kept until a request of a later round arrives: of the next batch, which Spark starts only
when this one is committed, or of the same one, where it is prolonged, which the driver starts only when it has
the last round's reports. From then on nobody needs the earlier replies again.

What breaks it. Running a request twice would execute tuples twice and, worse, send their frames once only: so
a request whose reply is gone is refused, never run again. The same key with other rows would mean that an
earlier superstep was computed twice with two outcomes: refused, loudly. A task of an attempt that has ended
may still knock (Spark does not wait for the tasks of a job that failed): attempts only go up here, and a
lower one is refused.

Storm has nothing of the kind: its executors push to each other and a message is lost with its connection.
Here Spark decides when a task runs, and may run it as often as it likes.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from stormspark.worker.host.messages import Request
from stormspark.worker.host.replies import Replies, RepliesStatistics

__all__ = ["Desk", "Errand", "RefusedError"]

#: A round is named by its batch and its number there.
_BEFORE_ALL = (-1, 0)


class RefusedError(Exception):
    """A request that must not run, with the reason in words."""


class Errand:
    """One request on its way through the worker. ``batches`` is its input until it has run."""

    def __init__(self, request: Request, rows: int, batches: Sequence[pa.Buffer | bytes]) -> None:
        self.request = request
        self.rows = rows
        self.batches: Sequence[pa.Buffer | bytes] = batches
        #: Set once it has run, failed or been dropped.
        self.done = threading.Event()
        #: Set when somebody has been sent the reply, or could not be.
        self.sent = threading.Event()
        self.error: str | None = None


class Desk:
    """Thread-safe. ``attempt`` is the one in which this process was started; ``incarnation`` its life of the
    worker; ``supersteps`` are those of a round.
    """

    def __init__(
        self,
        generation: int,
        incarnation: int,
        attempt: int,
        folder: Path,
        replies_memory_bytes: int,
        supersteps: int,
    ) -> None:
        self._generation, self._incarnation, self._supersteps = generation, incarnation, supersteps
        self._attempt, self._round = attempt, _BEFORE_ALL
        self._errands: dict[tuple[int, int, int], Errand] = {}
        self._queue: deque[Errand] = deque()
        self._replies = Replies(folder, replies_memory_bytes)
        self._lock = threading.Lock()

    def take(self, request: Request, rows: int, batches: Sequence[pa.Buffer | bytes]) -> tuple[Errand, bool]:
        """Take in a request that has been received whole: its errand, and whether it is a new one, to be run.

        Raises `RefusedError` for one that must not run.
        """
        with self._lock:
            self._check(request)
            if request.attempt > self._attempt:
                self._drop(f"attempt {request.attempt} has begun")
                self._attempt, self._round = request.attempt, _BEFORE_ALL
            if self._round_of(request) > self._round:
                self._round = self._round_of(request)
                batch, number = self._round
                self._drop(f"{f'round {number} of ' if number else ''}batch {batch} has begun")
            known = self._errands.get(request.key)
            if known is None:
                errand = self._errands[request.key] = Errand(request, rows, batches)
                self._queue.append(errand)
                return errand, True
            if known.rows != rows:
                msg = f"{request} came with {known.rows} rows before and comes with {rows} now"
                raise RefusedError(msg)
            return known, False

    def next(self) -> Errand | None:
        """The next errand to run, or None. To be called by the one thread that runs them."""
        with self._lock:
            while self._queue:
                errand = self._queue.popleft()
                if not errand.done.is_set():  # else its attempt ended while it waited
                    return errand
        return None

    def finish(self, errand: Errand, messages: Sequence[pa.Buffer | bytes]) -> None:
        """Keep the reply of an errand that ran, and let all who wait for it have it."""
        with self._lock:
            errand.batches = ()
            if not errand.done.is_set():
                self._replies.put(errand.request.key, messages)
                errand.done.set()

    def fail(self, errand: Errand, error: str) -> None:
        """Let all who wait for an errand hear that it raised. It is not run again."""
        with self._lock:
            errand.batches = ()
            errand.error = errand.error or error
            errand.done.set()

    def reply(self, errand: Errand) -> tuple[int, Iterator[pa.Buffer | bytes]]:
        """The number of messages of the reply of an errand that is done, and the messages.

        Raises `RefusedError` if it failed, or if the reply has been dropped since.
        """
        with self._lock:
            if (
                errand.error is None
                and errand.request.key in self._replies
                and self._attempt == errand.request.attempt
            ):
                return self._replies.count(errand.request.key), self._replies.messages(errand.request.key)
        raise RefusedError(errand.error or "the reply is not kept any more: its batch is committed")

    def statistics(self) -> RepliesStatistics:
        """What is kept for repetitions."""
        with self._lock:
            return self._replies.statistics()

    def validate(self) -> None:
        """Check every invariant; raises `AssertionError`."""
        with self._lock:
            self._replies.validate()
            rounds = {self._round_of(errand.request) for errand in self._errands.values()}
            assert rounds <= {self._round}, "an errand of another round is kept"
            assert all(e.request.attempt == self._attempt for e in self._errands.values()), (
                "an errand of another attempt"
            )
            for key, errand in self._errands.items():
                kept = errand.done.is_set() and errand.error is None
                assert kept == (key in self._replies), f"{key} is done without a reply, or has one too early"

    def _check(self, request: Request) -> None:
        if (request.generation, request.incarnation) != (self._generation, self._incarnation):
            msg = (
                f"this is incarnation {self._incarnation} in generation {self._generation}, "
                f"the request is for {request.incarnation} in {request.generation}"
            )
            raise RefusedError(msg)
        if request.attempt < self._attempt:
            msg = f"attempt {request.attempt} has ended, {self._attempt} runs"
            raise RefusedError(msg)
        asked = self._round_of(request)
        if request.attempt == self._attempt and asked < self._round:
            (batch, number), (now, now_number) = asked, self._round
            msg = f"batch {batch} is committed, {now} runs"
            if batch == now:
                msg = f"round {number} of batch {batch} has ended, round {now_number} runs"
            raise RefusedError(msg)

    def _round_of(self, request: Request) -> tuple[int, int]:
        return request.batch, request.superstep // self._supersteps

    def _drop(self, reason: str) -> None:
        for errand in self._errands.values():
            if not errand.done.is_set():
                errand.error = reason
                errand.done.set()
        self._errands.clear()
        self._queue.clear()
        self._replies.clear()
