"""Reads ranges of offsets in a worker. Each task has one consumer for all its partitions. The consumer fetches ahead.

Kafka answers for several partitions at once. So messages of other partitions arrive too, and the reader keeps them until their
partitions are read. The messages of a partition arrive in order, and without gaps except those of Kafka's log itself: compacted
messages, aborted messages and transaction markers have offsets, but no consumer gets them. So the reader has all of a range when
a message beyond the range arrives, or when Kafka says that the partition ends.

**The reader never gives a consumer a second position for the same partition.** Otherwise the reader could mistake an answer to
the first request for one to the second. Then messages that this answer lacks would seem to be missing in the log. If reading has
to start over, because a batch runs again or retention has removed messages, the reader makes a new consumer. That is rare.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from stormspark.connectors.kafka.doubts import Patience

__all__ = ["Chunk", "RangeReader"]

_Key = tuple[str, int]
#: The reader keeps this much of a partition while it reads others. If more has been fetched, the partition is paused.
_KEEP_MESSAGES = 10_000
_KEEP_BYTES = 16 << 20
#: How many seconds pass between two warnings about a problem that lasts.
_WARN_SECS = 30.0
_WATERMARK_SECS = 0.2
#: If no message has come for `_DRY_SECS`, Kafka may have none. The reader then asks for the partition's end, and asks again every
#: `_ASK_AGAIN_SECS`.
_DRY_SECS = 2.0
_ASK_AGAIN_SECS = 0.25
#: After a request that was not answered, the reader asks nothing for this many seconds.
_AWAY_SECS = 2.0


#: topic, partition, offset, key, value, timestamp in ms or None, headers
Message = tuple[str, int, int, bytes | None, bytes | None, int | None, tuple[tuple[str, bytes | None], ...]]


class Chunk(NamedTuple):
    """Some messages of a range. The rest of the range begins at ``next``, which is the range's end if nothing is left."""

    messages: list[Message]
    next: int


class _Feed:
    """The fetched messages of one partition: all its messages from ``low`` up to, but not including, ``next``."""

    def __init__(self, key: _Key, low: int) -> None:
        self.topic, self.partition = key
        self.low = self.next = low
        self.messages: deque[Message] = deque()
        self.bytes = 0
        self.paused = False
        #: Whether the log no longer has the consumer's position, which is before or after all of its messages.
        self.lost = False

    def add(self, message: Any) -> None:
        offset, value = message.offset(), message.value()
        if offset < self.next:
            return
        kind, timestamp = message.timestamp()
        self.messages.append(
            (
                self.topic,
                self.partition,
                offset,
                message.key(),
                value,
                timestamp if kind else None,
                tuple(message.headers() or ()),
            )
        )
        if value:
            self.bytes += len(value)
        self.next = offset + 1

    def take(self, end: int, limit: int) -> Chunk:
        """Remove up to ``limit`` messages before ``end``. Return them, and the offset at which the rest begins."""
        messages = self.messages
        if messages and len(messages) <= limit and messages[-1][2] < end:
            taken = list(messages)
            messages.clear()
            self.bytes = 0
        else:
            taken = []
            while messages and len(taken) < limit and messages[0][2] < end:
                taken.append(message := messages.popleft())
                self.bytes -= len(message[4] or b"")
        self.low = min(messages[0][2] if messages else self.next, end)
        return Chunk(taken, self.low)

    @property
    def is_full(self) -> bool:
        return len(self.messages) >= _KEEP_MESSAGES or self.bytes >= _KEEP_BYTES


class RangeReader:
    """The reader of one task. It logs on ``logger`` which messages retention has removed, and that brokers don't answer.

    ``report`` is called with messages that are gone because a log was cut or a topic was made again.
    """

    def __init__(
        self,
        conf: Mapping[str, Any],
        *,
        max_records: int = 500,
        wait_secs: float = 0.05,
        logger: logging.Logger | None = None,
        report: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._conf = {**conf, "error_cb": self._note_error}
        self._max_records, self._wait_secs = max_records, wait_secs
        self._log = logger or logging.getLogger(__name__)
        self._report = report or self._log.error
        self._clock = clock
        self._consumer: Any = None
        self._feeds: dict[_Key, _Feed] = {}
        self._dry_since: dict[_Key, float] = {}
        #: Partitions that seem to end before offsets that were handed out.
        self._ends_early = Patience[_Key]()
        #: For each partition: how often Kafka has returned its end, and when Kafka was last asked for it.
        self._asked: dict[_Key, tuple[int, float]] = {}
        self._ask_nobody_until = -float("inf")
        self._warned_at = -float("inf")
        self._why = "none"

    def read(self, topic: str, partition: int, start: int, end: int, limit: int) -> Chunk:
        """Return at most ``limit`` messages from ``start`` up to, but not including, ``end``.

        If none has been fetched, wait up to ``wait_secs`` for one. If the broker does not answer, there are no messages, ``next``
        is ``start``, and the reader logs a warning from time to time. If Kafka no longer has messages of the range, ``next``
        skips them, and the reader logs or reports which messages are gone.
        """
        key = (topic, partition)
        feed = self._feed(key, start)
        if not feed.messages and feed.next < end:
            self._fetch(feed)
        if feed.lost and not feed.messages:
            return Chunk([], self._look_for_the_rest(key, start, end))
        chunk = feed.take(end, limit)
        if chunk.next > start:
            self._dry_since.pop(key, None)
            self._ends_early.forget(key)
            return chunk
        self._warn_if_dry(key, start, end)
        if self._clock() - self._dry_since[key] >= _DRY_SECS:
            return Chunk([], self._give_up_the_rest(key, start, end))
        return chunk

    def listen(self) -> None:
        """Notice brokers that don't answer, even if nothing is read. Call this from time to time."""
        if self._consumer is not None:
            self._take(self._consumer.consume(self._max_records, 0.0))

    def close(self) -> None:
        """Close the consumer, and drop the fetched messages."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
        self._feeds.clear()

    # -- partitions ------------------------------------------------------------------------------------------

    def _feed(self, key: _Key, start: int) -> _Feed:
        from confluent_kafka import Consumer, TopicPartition

        feed = self._feeds.get(key)
        if feed is not None and feed.low <= start <= feed.next:
            if feed.low < start:
                feed.take(start, len(feed.messages))
            return feed
        if feed is not None:
            self.close()
        if self._consumer is None:
            self._consumer = Consumer(self._conf)
        self._consumer.incremental_assign([TopicPartition(*key, start)])
        feed = self._feeds[key] = _Feed(key, start)
        return feed

    def _fetch(self, wanted: _Feed) -> None:
        """Take messages of all partitions, until the wanted partition has some or the time is up."""
        until = self._clock() + self._wait_secs
        before = wanted.next
        while True:
            come = self._consumer.consume(self._max_records, 0.0)
            if not come:  # wait for one; a call that waits for many returns only when all have come
                come = self._consumer.consume(1, max(0.0, until - self._clock()))
                if come:
                    come += self._consumer.consume(self._max_records, 0.0)
            self._take(come)
            if wanted.next > before or wanted.lost or self._clock() >= until:
                return

    def _take(self, come: Iterable[Any]) -> None:
        feeds = self._feeds
        for message in come:
            feed = feeds.get((message.topic(), message.partition()))
            if message.error() is not None:
                self._note(message, feed)
            elif feed is not None:
                feed.add(message)
        self._switch([key for key, feed in feeds.items() if feed.is_full], True)
        self._switch([key for key, feed in feeds.items() if feed.paused and not feed.messages], False)

    def _note(self, event: Any, feed: _Feed | None) -> None:
        from confluent_kafka import KafkaError

        error = event.error()
        if error.code() == KafkaError._PARTITION_EOF:
            if feed is not None:
                feed.next = max(feed.next, event.offset())
        elif feed is not None and error.code() in (
            KafkaError._AUTO_OFFSET_RESET,
            KafkaError.OFFSET_OUT_OF_RANGE,
        ):
            feed.lost = True
        else:
            self._note_error(error)

    def _note_error(self, error: Any) -> None:
        from confluent_kafka import KafkaError

        self._why = error.str()
        if error.code() == KafkaError._ALL_BROKERS_DOWN and self._may_warn():
            self._log.warning("no broker of Kafka can be reached; the spout keeps trying: %s", self._why)

    def _may_warn(self) -> bool:
        now = self._clock()
        if now - self._warned_at < _WARN_SECS:
            return False
        self._warned_at = now
        return True

    def _switch(self, keys: list[_Key], paused: bool) -> None:
        from confluent_kafka import TopicPartition

        changed = [key for key in keys if self._feeds[key].paused != paused]
        if changed:
            partitions = [TopicPartition(*key) for key in changed]
            (self._consumer.pause if paused else self._consumer.resume)(partitions)
            for key in changed:
                self._feeds[key].paused = paused

    # -- trouble ---------------------------------------------------------------------------------------------

    def _look_for_the_rest(self, key: _Key, start: int, end: int) -> int:
        """Skip messages that Kafka no longer has (K5). Return the offset at which to read on."""
        marks = self._watermarks(key)
        if marks is None:
            self._warn_if_dry(key, start, end)
            return start
        low, high = marks
        if start > high:
            return self._give_up(key, start, end, high)
        self._ends_early.forget(key)
        self.close()
        if start >= low:
            return start
        there = min(low, end)
        self._log.warning(
            "%d messages of %s-%d, offsets %d to %d, are gone and count as acked: retention or compaction has removed them; "
            "the first offset that is left is %d",
            there - start,
            *key,
            start,
            there - 1,
            low,
        )
        return there

    def _give_up_the_rest(self, key: _Key, start: int, end: int) -> int:
        """After some time without messages, give up the range if the partition ends before it.

        Return the offset at which to read on.
        """
        marks = self._watermarks(key)
        if marks is not None and marks[1] <= start:
            return self._give_up(key, start, end, marks[1])
        if marks is not None:
            self._ends_early.forget(key)
        return start

    def _give_up(self, key: _Key, start: int, end: int, high: int) -> int:
        """Give up the range, and report it, once Kafka has said for some time that the partition ends at ``high``.

        Returns the offset at which to read on.
        """
        if not self._ends_early.is_sure(key, high, now=self._clock(), answer=self._asked[key][0]):
            return start
        self._ends_early.forget(key)
        self._dry_since.pop(key, None)
        if start > high:
            self.close()
        self._report(
            f"{end - start} messages of {key[0]}-{key[1]}, offsets {start} to {end - 1}, are gone and count as acked: a "
            f"batch was to read them, but the partition ends at {high} now. Its log was cut, by the election of a leader that "
            f"lacked them or by a disk failure, or its topic was deleted and made again"
        )
        return end

    def _watermarks(self, key: _Key) -> tuple[int, int] | None:
        """Return the first offset and the end of a partition. Return None if its leader does not answer.

        Return None also if the leader was asked just now, or if some other question has just gone unanswered.
        """
        from confluent_kafka import KafkaException, TopicPartition

        times, asked_at = self._asked.get(key, (0, -float("inf")))
        now = self._clock()
        if now - asked_at < _ASK_AGAIN_SECS or now < self._ask_nobody_until:
            return None
        self._asked[key] = (times, now)
        try:
            low, high = self._consumer.get_watermark_offsets(TopicPartition(*key), timeout=_WATERMARK_SECS)
        except KafkaException as error:
            self._note_error(error.args[0])
            self._ask_nobody_until = now + _AWAY_SECS  # each unanswered question blocks the task
            return None
        self._asked[key] = (times + 1, now)
        return int(low), int(high)

    def _warn_if_dry(self, key: _Key, start: int, end: int) -> None:
        now = self._clock()
        since = self._dry_since.setdefault(key, now)
        if now - since >= _WARN_SECS and self._may_warn():
            self._log.warning(
                "%s-%d: waiting for offsets %d to %d for %.0f s; the last error of Kafka: %s",
                *key,
                start,
                end - 1,
                now - since,
                self._why,
            )
