"""The driver's client of Kafka. It finds topics and the offsets of partitions, and reads and makes a group's commits."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from stormspark.connectors.kafka.offsets import Committed, Partition, Positions
from stormspark.errors import InvalidTopologyError

__all__ = ["Answer", "Brokers", "EndsWatch"]

#: How long a request to Kafka may take, in seconds. `EndsWatch` asks in a thread of its own, so batches don't wait that long.
_ANSWER_SECS = 5.0
_CLOSE_SECS = 1.0
#: The pause after a failed commit until the next try, in seconds.
_AGAIN_SECS = 0.1
#: The beginning of a commit's metadata. It distinguishes stormspark's commits from those of other programs.
_MARK = "stormspark:"


class Brokers:
    """A client of Kafka. It can't be pickled, so each process makes its own.

    Raises `InvalidTopologyError` for settings that librdkafka rejects. Requests that Kafka does not answer raise
    `KafkaException`.
    """

    def __init__(self, conf: Mapping[str, Any]) -> None:
        from confluent_kafka import Consumer, IsolationLevel, KafkaException
        from confluent_kafka.admin import AdminClient

        self.servers = str(conf["bootstrap.servers"])
        self._why: str | None = None  # librdkafka's message, which says why Kafka did not answer
        self._down = False
        with_callback = {**conf, "error_cb": self._note_error}
        self._committing = False
        self._commit_error: Any = None
        try:
            self._consumer = Consumer({**with_callback, "on_commit": self._on_commit})
        except KafkaException as error:
            msg = f"Kafka at {self.servers}: {error.args[0].str()}"
            raise InvalidTopologyError(msg) from error
        # An AdminClient is a producer inside, and a producer warns of settings that only consumers have.
        self._admin = AdminClient(
            {key: value for key, value in with_callback.items() if key not in _CONSUMER_ONLY}
        )
        uncommitted = conf.get("isolation.level") == "read_uncommitted"
        self._isolation = IsolationLevel.READ_UNCOMMITTED if uncommitted else IsolationLevel.READ_COMMITTED

    def _note_error(self, error: Any) -> None:
        from confluent_kafka import KafkaError

        self._why = error.str()
        self._down |= error.code() == KafkaError._ALL_BROKERS_DOWN

    def _on_commit(self, error: Any, partitions: list[Any]) -> None:
        self._committing = False
        self._commit_error = error or next((one.error for one in partitions if one.error), None)

    def are_down(self) -> bool:
        """Return whether there was a time at which no broker took a connection."""
        self._consumer.poll(0)  # runs `_note_error`
        return self._down

    def why(self, error: Exception) -> str:
        """Return the best available reason why Kafka did not answer."""
        self._consumer.poll(0)  # runs `_note_error` with the errors since the last poll
        return self._why or str(error.args[0].str() if hasattr(error.args[0], "str") else error)

    def partitions(
        self, names: Iterable[str], pattern: Any | None, timeout: float = _ANSWER_SECS
    ) -> list[Partition]:
        """Return the partitions of the topics in ``names``, or of all topics that match ``pattern``.

        The list is sorted. A topic that does not exist has no partitions.
        """
        if pattern is not None:
            topics = self._consumer.list_topics(timeout=timeout).topics
            names = [name for name in topics if pattern.fullmatch(name)]
        else:
            topics = {}
            for name in names:  # ask for each topic alone, because a server may have very many others
                topics.update(self._consumer.list_topics(name, timeout).topics)
        return sorted(Partition(name, number) for name in names for number in topics[name].partitions)

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the ids of topics.

        A topic is left out if it does not exist, if the brokers give topics no ids, or if this user may not see its id.
        """
        from confluent_kafka import KafkaException, TopicCollection

        names = sorted(set(topics))
        if not names:
            return {}
        found: dict[str, str] = {}
        answers = self._admin.describe_topics(TopicCollection(names), request_timeout=_ANSWER_SECS)
        for name, answer in answers.items():
            with contextlib.suppress(KafkaException):
                id = answer.result().topic_id
                if id.get_most_significant_bits() or id.get_least_significant_bits():
                    found[name] = str(id)
        return found

    def _offsets(
        self, partitions: Iterable[Partition], which: str, *timestamp: int, isolation: Any = None
    ) -> Positions:
        """Return, for each partition that answers, the offset that ``which`` names; -1 if the partition has no such offset.

        ``which`` is the name of a method of confluent-kafka's `OffsetSpec`, and ``timestamp`` is the method's argument. Raises
        `KafkaException` if no partition answers.
        """
        from confluent_kafka import KafkaException, TopicPartition, admin

        spec: Any = getattr(admin.OffsetSpec, which)(*timestamp)  # type: ignore[attr-defined]
        wanted = {TopicPartition(*partition): spec for partition in partitions}
        if not wanted:
            return {}
        answers = self._admin.list_offsets(
            wanted,
            isolation_level=self._isolation if isolation is None else isolation,
            request_timeout=_ANSWER_SECS,
        )
        found, errors = {}, []
        for partition, answer in answers.items():
            try:
                found[Partition(partition.topic, partition.partition)] = answer.result().offset
            except KafkaException as error:  # its topic is being made or deleted, or has got more partitions
                errors.append(error)
                self._admin.list_topics(partition.topic, _ANSWER_SECS)  # so that the topic is known next time
        if not found:
            raise errors[0]
        return found

    def ends(self, partitions: Iterable[Partition]) -> Positions:
        """Return the offsets up to which messages can be read.

        These offsets lie before any open Kafka transaction, unless the spout reads uncommitted messages.
        """
        return self._offsets(partitions, "latest")

    def log_ends(self, partitions: Iterable[Partition]) -> Positions:
        """Return the ends of the logs. Unlike those of `ends`, they lie after the messages of open Kafka transactions."""
        from confluent_kafka import IsolationLevel

        return self._offsets(partitions, "latest", isolation=IsolationLevel.READ_UNCOMMITTED)

    def earliest(self, partitions: Iterable[Partition]) -> Positions:
        """Return the offset of each partition's first message that retention has not removed."""
        return self._offsets(partitions, "earliest")

    def at_timestamp(self, partitions: Iterable[Partition], timestamp: int) -> Positions:
        """Return the offset of each partition's first message at or after the timestamp, or -1 if there is none."""
        return self._offsets(partitions, "for_timestamp", timestamp)

    def committed(self, partitions: Iterable[Partition]) -> dict[Partition, Committed]:
        """Return the offsets that the group has committed."""
        from confluent_kafka import TopicPartition

        wanted = [TopicPartition(*partition) for partition in partitions]
        return {
            Partition(found.topic, found.partition): Committed(
                found.offset, (found.metadata or "").removeprefix(_MARK)
            )
            for found in self._consumer.committed(wanted, timeout=_ANSWER_SECS)
            if found.offset >= 0
        }

    def commit(self, positions: Mapping[Partition, int], deployment: str, *, wait_secs: float = 0.0) -> None:
        """Commit positions for the group.

        With ``wait_secs``, wait at most this long until Kafka has taken the commit. If the group's coordinator can't be reached
        or has just moved, try again within this time. Raise `KafkaException` if Kafka has not taken the commit by then. Without
        ``wait_secs``, failures go unnoticed, and nothing is committed while another commit is under way.
        """
        from confluent_kafka import KafkaException, TopicPartition

        offsets = [
            TopicPartition(*partition, position, f"{_MARK}{deployment}")
            for partition, position in positions.items()
        ]
        if not offsets:
            return
        until = time.monotonic() + wait_secs
        error = self._commit_once(offsets, until)
        while wait_secs and error is not None:
            if error.code() not in _transient_errors() or time.monotonic() >= until:
                raise KafkaException(error)
            time.sleep(_AGAIN_SECS)
            error = self._commit_once(offsets, until)

    def _commit_once(self, offsets: list[Any], until: float) -> Any:
        """Wait for the answer to the previous commit, send this one, and wait for its answer.

        Return this commit's error, or None if Kafka has taken it. If an answer is missing at the time ``until``, the error is a
        timeout.
        """
        from confluent_kafka import KafkaError

        if self._is_answered(until):
            self._committing, self._commit_error = True, None
            self._consumer.commit(offsets=offsets, asynchronous=True)
            if self._is_answered(until):
                return self._commit_error
        return KafkaError(KafkaError._TIMED_OUT)

    def _is_answered(self, until: float) -> bool:
        """Whether no commit is under way. If one is, wait for its answer until the time ``until``."""
        self._consumer.poll(0)  # runs `_on_commit` if there is an answer
        while self._committing and time.monotonic() < until:
            self._consumer.poll(0.05)
        return not self._committing

    def close(self) -> None:
        """Close the connection. Don't wait for a commit that Kafka does not answer."""
        closing = threading.Thread(target=self._consumer.close, name="kafka-close", daemon=True)
        closing.start()
        closing.join(_CLOSE_SECS)


def _transient_errors() -> set[int]:
    """Return the error codes of commits that may succeed when they are tried again.

    `KafkaError.retriable` does not help, because it is not set for errors of commits.
    """
    from confluent_kafka import KafkaError

    return {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._WAIT_COORD,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REQUEST_TIMED_OUT,
    }


_CONSUMER_ONLY = {
    "auto.offset.reset", "check.crcs", "client.rack", "enable.auto.commit", "enable.auto.offset.store", "enable.partition.eof",
    "fetch.error.backoff.ms", "fetch.max.bytes", "fetch.message.max.bytes", "fetch.min.bytes", "fetch.queue.backoff.ms",
    "fetch.wait.max.ms", "group.id", "isolation.level", "max.partition.fetch.bytes", "queued.max.messages.kbytes",
    "queued.min.messages",
}  # fmt: skip


class Answer(NamedTuple):
    """Kafka's last answer: the ends of partitions, and the ids of topics.

    If the answer lacks a partition, the partition's earlier end stays in ``ends``. So ``counts`` says, for each partition, how
    many answers have had its end so far. ``number`` is the number of all answers so far.
    """

    ends: Positions
    ids: dict[str, str]
    counts: dict[Partition, int]
    number: int


class EndsWatch:
    """Keeps the ends of all partitions, as of Kafka's last answer.

    The watch asks Kafka in a thread of its own, so that an outage blocks nobody. At a request, it also looks for new partitions
    if the last look was ``refresh_secs`` ago. It makes at most one request per ``pause_secs``.

    The watch first asks for the ends, and then for the topics' ids. A topic that is deleted and made again gets another id. So if
    a topic still has its former id, the ends belong to the former topic, and not to a new one of the same name.
    """

    def __init__(
        self,
        find: Callable[[], list[Partition]],
        ends: Callable[[list[Partition]], Positions],
        ids: Callable[[Iterable[str]], dict[str, str]] = lambda topics: {},
        *,
        refresh_secs: float,
        pause_secs: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._find, self._ends, self._ids = find, ends, ids
        self._refresh, self._pause, self._clock = refresh_secs, pause_secs, clock
        self._partitions: list[Partition] = []
        self._found_at = -float("inf")
        self._asked_at = -float("inf")
        self._wanted, self._answered = threading.Event(), threading.Event()
        self._closed = False
        self._failed: Exception | None = None
        #: Whether the last request was answered. True before the first request.
        self.reachable = True
        #: Whether any request has been answered.
        self.known = False
        self._last = Answer({}, {}, {}, 0)
        threading.Thread(target=self._ask_for_ever, name="kafka-ends", daemon=True).start()

    def ask(self, wait_secs: float) -> Answer:
        """Return the last answer that arrived. First request a new one, unless the last request is too recent or under way.

        Wait up to ``wait_secs`` for the new answer, unless Kafka did not answer the last request. If a request has failed for a
        reason that has nothing to do with Kafka, raise its error.
        """
        if self._asked_at + self._pause <= self._clock() and not self._wanted.is_set():
            self._asked_at = self._clock()
            self._answered.clear()
            self._wanted.set()
        if self.reachable and wait_secs:
            self._answered.wait(wait_secs)
        if self._failed is not None:
            raise self._failed
        return self._last

    def close(self) -> None:
        """Stop asking."""
        self._closed = True
        self._wanted.set()

    def _ask_for_ever(self) -> None:
        from confluent_kafka import KafkaException

        while True:
            self._wanted.wait()
            if self._closed:
                return
            try:
                self._ask()
            except KafkaException:
                self.reachable = False
                time.sleep(_AWAY_SECS)
            except Exception as error:  # Kafka did not cause this error, so `ask` raises it
                self._failed = error
            else:
                self.reachable = self.known = True
            self._wanted.clear()
            self._answered.set()

    def _ask(self) -> None:
        now = self._clock()
        if self._found_at + self._refresh <= now:
            self._partitions = self._find()
            self._found_at = now
        last, new = self._last, self._ends(self._partitions)
        ids = self._ids({partition.topic for partition in self._partitions})
        ends = {**last.ends, **new}
        counts = {**last.counts, **{partition: last.counts.get(partition, 0) + 1 for partition in new}}
        there = [partition for partition in self._partitions if partition in ends]
        self._last = Answer(
            {partition: ends[partition] for partition in there},
            ids,
            {partition: counts[partition] for partition in there},
            last.number + 1,
        )


#: How many seconds pass between two requests to a broker that does not answer.
_AWAY_SECS = 0.5
