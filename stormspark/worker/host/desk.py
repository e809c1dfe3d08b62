"""The desk of a worker process. It takes in requests, lets each request run once, and answers a repeated request with the same
reply.

The invariant: **within one attempt, a request runs at most once, and every sender of the request gets the reply of that one
run.**

The invariant holds for these reasons. The key of a request is (batch, superstep, partition). The desk takes in a request only
with its end mark, so a sender that died half-way leaves nothing behind. The first request with a key creates an `Errand`. Later
requests with this key get the same errand and wait for it. One thread runs the errands, in the order in which they came. The desk
keeps a reply until a request of a later round, or of the next attempt, arrives. From then on nobody needs the earlier replies.
Spark starts the next batch only after it has committed the present one. The driver starts another round of the same batch only
after it has all reports of the previous round.

If a request ran twice, its tuples would be executed twice. Worse, Spark uses only one reply to a request, so the frames in the
other reply would be lost. So the desk never runs a request again, and refuses a request whose reply is gone. If the same key
comes with a different number of rows, an earlier superstep was computed twice, with two results. The desk refuses this request,
too. A Spark task of an attempt that has ended may still send requests, because Spark does not wait for the tasks of a failed job.
So the desk refuses every request of an attempt before the present one.

Storm has nothing of the kind, because its executors push messages to each other, and a message is lost with its connection. In
stormspark, Spark decides when its tasks run, and may run a task several times.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from stormspark.extras import pyarrow as pa
from stormspark.worker.host.messages import Request
from stormspark.worker.host.replies import Replies, RepliesStatistics

__all__ = ["Desk", "Errand", "RefusedError"]

#: A round is identified by its batch and its number in that batch. This value comes before all rounds.
_BEFORE_ALL = (-1, 0)


class RefusedError(Exception):
    """Raised if a request must not run. The message is the reason."""


class Errand:
    """One request on its way through the worker. ``batches`` is the request's input, and is empty once the request has run."""

    def __init__(self, request: Request, rows: int, batches: Sequence[pa.Buffer | bytes]) -> None:
        self.request = request
        self.rows = rows
        self.batches: Sequence[pa.Buffer | bytes] = batches
        #: Set once the request has run, failed or been dropped.
        self.done = threading.Event()
        #: Set once the reply was sent to a forwarder, or could not be sent.
        self.sent = threading.Event()
        self.error: str | None = None


class Desk:
    """The requests and replies of one worker process. Thread-safe.

    ``attempt`` is the attempt in which the process was started, and ``supersteps`` is the number of supersteps per round.
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
        """Take in a request that was received whole. Return its errand, and whether the errand is new and has to run.

        Raises `RefusedError` for a request that must not run.
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
        """Return the next errand to run, or None if there is none. Only the thread that runs errands may call this."""
        with self._lock:
            while self._queue:
                errand = self._queue.popleft()
                if not errand.done.is_set():  # a dropped errand is done already
                    return errand
        return None

    def finish(self, errand: Errand, messages: Sequence[pa.Buffer | bytes]) -> None:
        """Keep the reply of an errand that has run, and wake all threads that wait for the errand."""
        with self._lock:
            errand.batches = ()
            if not errand.done.is_set():
                self._replies.put(errand.request.key, messages)
                errand.done.set()

    def fail(self, errand: Errand, error: str) -> None:
        """Mark an errand as failed, and wake all threads that wait for the errand. A failed errand is not run again."""
        with self._lock:
            errand.batches = ()
            errand.error = errand.error or error
            errand.done.set()

    def reply(self, errand: Errand) -> tuple[int, Iterator[pa.Buffer | bytes]]:
        """Return the reply of an errand that is done. The reply is the number of its messages, and the messages.

        Raises `RefusedError` if the errand failed, or if the reply has been dropped meanwhile.
        """
        with self._lock:
            if (
                errand.error is None
                and errand.request.key in self._replies
                and self._attempt == errand.request.attempt
            ):
                return self._replies.count(errand.request.key), self._replies.messages(errand.request.key)
        raise RefusedError(errand.error or "the reply is not kept any more: a later round has begun")

    def statistics(self) -> RepliesStatistics:
        """Return how many replies are kept for repeated requests, in memory and on disk."""
        with self._lock:
            return self._replies.statistics()

    def validate(self) -> None:
        """Check every invariant. Raises `AssertionError` if one is broken."""
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
