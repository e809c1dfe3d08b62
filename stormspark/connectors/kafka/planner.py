"""Plans which ranges of offsets the tasks of a Kafka spout get next.

The planner collects the answers of Kafka and the progress of the tasks, and calls the functions that decide
(`stormspark.connectors.kafka.offsets`). Both engines use it. On Spark, the planner lives in the process of the data source, on
the driver's host, and Spark's checkpoint keeps its positions. The local engine calls the planner before each batch, and keeps
the positions in memory. There, only the group's commits outlive the topology.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stormspark.api import SourceProgress
from stormspark.connectors.kafka.brokers import Brokers, EndsWatch
from stormspark.connectors.kafka.config import (
    FirstPollOffsetStrategy,
    KafkaSpoutConfig,
    ProcessingGuarantee,
)
from stormspark.connectors.kafka.doubts import Changes, Doubts
from stormspark.connectors.kafka.offsets import (
    ASKED,
    Document,
    Partition,
    Positions,
    Range,
    allowance,
    as_document,
    as_positions,
    committable,
    first_position,
    name_of,
    ranges,
    share_out,
    topic_ids,
)
from stormspark.errors import InvalidTopologyError, StormsparkError

__all__ = ["KafkaPlanner", "PlannerSettings", "check_topics"]

#: A batch waits for at most this long until Kafka returns the ends of partitions, which usually takes some ms. After that, the
#: batch goes on without them.
_ENDS_SECS = 0.25
#: How long the check at the start waits for an answer, and how much longer if a broker has taken the connection.
_CHECK_SECS, _SLOW_SECS = 3.0, 7.0
#: If a commit has to come before a batch, the batch waits for the commit for at most this long.
_COMMIT_SECS = 5.0
#: A topology that stops tries to commit for this long. A broker that has just started needs some seconds until it takes commits.
_LAST_COMMIT_SECS = 30.0
#: A run that stops at the current ends waits for at most this long while it is in doubt what has happened to a log.
_SETTLE_SECS = 15.0
#: While a pattern has not matched any topic yet, the positions have this name in place of a topic. No topic can have this name.
_NO_TOPIC = "*"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlannerSettings:
    """The settings of a `KafkaSpoutConfig` that planning needs. Unlike translators, they can always be pickled."""

    client_conf: Mapping[str, Any] = field(repr=False)  # may hold passwords
    names: tuple[str, ...]
    pattern: re.Pattern[str] | None
    commits: bool
    guarantee: ProcessingGuarantee
    strategy: FirstPollOffsetStrategy
    start_timestamp: int | None
    commit_secs: float
    max_uncommitted: int
    refresh_secs: float
    limit: int | None
    #: An id that distinguishes the commits of this deployment from those of other deployments (K3).
    deployment: str
    #: What to do if a log was cut: "continue" at the log's end, or "fail".
    truncated_log: str = "continue"

    @classmethod
    def of(cls, config: KafkaSpoutConfig, deployment: str) -> PlannerSettings:
        """Return the planning settings of a configuration."""
        return cls(
            client_conf=config.client_conf,
            names=config.names,
            pattern=config.pattern,
            commits=config.group_id is not None,
            guarantee=config.processing_guarantee,
            strategy=config.first_poll_offset_strategy,
            start_timestamp=config.start_timestamp,  # type: ignore[arg-type]
            commit_secs=config.offset_commit_period_ms / 1000,
            max_uncommitted=config.max_uncommitted_offsets,
            refresh_secs=config.partition_refresh_period_ms / 1000,
            limit=config.max_offsets_per_trigger,
            deployment=deployment,
            truncated_log=config.truncated_log,
        )


@dataclass
class KafkaPlanner:
    """The planner of one Kafka spout.

    The planner can be pickled until it first connects to Kafka. It asks Kafka for the ends at most once per ``pause_secs``.
    """

    settings: PlannerSettings
    pause_secs: float = 0.0
    clock: Callable[[], float] = time.monotonic
    connect: Callable[[Mapping[str, Any]], Brokers] = Brokers

    _brokers: Brokers | None = field(default=None, init=False)
    _watch: EndsWatch | None = field(default=None, init=False)
    #: If the run stops at the ends that the partitions had when it began: these ends. An end before the partition's position has
    #: no effect.
    _target: Positions | None = field(default=None, init=False)
    #: The positions before which all messages are acked or given up, according to the tasks' last reports.
    _done: Positions | None = field(default=None, init=False)
    _waiting: int | None = field(default=None, init=False)
    _emitted: int = field(default=0, init=False)
    #: How many tuples the tasks may emit in the next batch, if backpressure limits them.
    _held_to: int | None = field(default=None, init=False)
    _handed_out: int = field(default=0, init=False)
    _planned: Document | None = field(default=None, init=False)
    _asked: int | None = field(default=None, init=False)
    _committed_at: float = field(default=-float("inf"), init=False)
    _doubts: Doubts = field(default_factory=Doubts, init=False)

    # -- what to hand out ------------------------------------------------------------------------------------

    def latest(self, start: Document) -> Document:
        """Return the positions at which a batch from ``start`` ends.

        These are ``start`` if Kafka can't be reached, or with AT_MOST_ONCE if Kafka does not take the commit before the batch.
        Raises `StormsparkError` if a log was cut and ``truncated_log`` is "fail".
        """
        from confluent_kafka import KafkaException

        try:
            end = self._after(start)
            until = time.monotonic() + _SETTLE_SECS
            while self._doubts and self._target is not None and end == start and time.monotonic() < until:
                time.sleep(_ENDS_SECS)  # otherwise a run that stops at the current ends would stop now
                end = self._after(start)
            if self.settings.guarantee is ProcessingGuarantee.AT_MOST_ONCE and end != start:
                self._commit(as_positions(end), wait_secs=_COMMIT_SECS)
        except KafkaException:  # the next batch tries again
            end = start
        self._planned = end
        self._handed_out = sum(found.size for found in ranges(start, end))
        return end

    def _after(self, start: Document) -> Document:
        watch = self._watching()
        ends, ids, counts, answer = watch.ask(_ENDS_SECS)
        commits_first = self.settings.guarantee is ProcessingGuarantee.AT_MOST_ONCE
        if not watch.known or (commits_first and not watch.reachable):
            return start
        known, target, done = topic_ids(start), self._target, self._done
        positions = as_positions(start)
        changes = self._doubts.look(
            positions, known, ends, ids, now=self.clock(), answer=answer, counts=counts
        )
        changes = self._only_lost(changes, positions)
        believed = {partition: end for partition, end in ends.items() if partition not in changes.held}
        if target is not None:  # the run wants everything, so `max_uncommitted` does not apply
            done = None
            believed = {p: min(end, target[p]) for p, end in believed.items() if p in target}
        after = share_out(
            positions, believed, limit=self._limit(), done=done, max_uncommitted=self.settings.max_uncommitted
        )
        new = [partition for partition in believed if partition not in positions]
        if new:
            first = self._first_positions(new, ends, came_later=bool(start))
            if not start and self._missing(first):
                return start
            after.update(first)
        after = self._moved(after, changes, ends)
        topics = self.settings.names or (() if after else (_NO_TOPIC,))
        return as_document(after, topics, self._ids(after, changes, ends, known, ids))

    def _missing(self, first: Positions) -> bool:
        """Whether Kafka has not yet answered for one of the existing partitions.

        If reading began without such a partition, the planner would later believe that the partition was added after the start.
        """
        settings, target = self.settings, self._target
        wanted = self._connected().partitions(settings.names, settings.pattern) if target is None else target
        silent = sorted(name_of(*partition) for partition in set(wanted) - first.keys())
        if silent:
            _log.warning(
                "reading begins when the leaders of all partitions have answered; still waiting for %s",
                ", ".join(silent[:10]),
            )
        return bool(silent)

    def _only_lost(self, changes: Changes, positions: Positions) -> Changes:
        """Return the changes, without those of partitions whose logs still have everything that was read.

        For such a log, Kafka reports the beginning of an open Kafka transaction as the end. The position lies beyond this end,
        because an earlier run read uncommitted messages. Such a partition waits until the Kafka transaction ends.
        """
        lower = {**changes.cut, **changes.unclear}
        if not lower:
            return changes
        there = self._connected().log_ends(lower)
        lost = {p for p in lower if there.get(p, positions[p]) < positions[p]}
        return changes._replace(
            cut={partition: end for partition, end in changes.cut.items() if partition in lost},
            unclear={partition: end for partition, end in changes.unclear.items() if partition in lost},
        )

    def _ids(
        self,
        after: Positions,
        changes: Changes,
        ends: Mapping[Partition, int],
        known: Mapping[str, str],
        ids: Mapping[str, str],
    ) -> dict[str, str]:
        """Return the topic ids that belong to the positions ``after``.

        A position beyond the end of its partition may belong to an older topic of the same name. If a topic has such a position,
        its new id is not recorded.
        """
        beyond = {
            partition.topic
            for partition, position in after.items()
            if ends.get(partition, position) < position
        }
        new = {topic: id for topic, id in ids.items() if topic not in beyond}
        unclear = {partition.topic for partition in changes.unclear}
        kept = {topic: id for topic, id in known.items() if topic not in unclear}
        return {**new, **kept, **changes.remade}

    def _moved(self, after: Positions, changes: Changes, ends: Mapping[Partition, int]) -> Positions:
        """Return the positions ``after`` a batch, moved where logs were cut or topics were made again.

        The batch that records a moved position hands out none of the partition's messages.
        """
        self._fail_if_configured(after, changes)
        lower, anew = {**changes.cut}, set(changes.remade)
        if self.settings.guarantee is ProcessingGuarantee.AT_MOST_ONCE:
            lower |= changes.unclear
        else:  # if the topic was made again, all its partitions were made again
            anew |= {partition.topic for partition in changes.unclear}
        moved = [p for p in after if p in lower or p.topic in anew]
        for partition in moved if self._done else ():
            assert self._done is not None
            self._done.pop(partition, None)  # this position belongs to the log before the change
        after = {partition: position for partition, position in after.items() if partition.topic not in anew}
        again = [partition for partition in ends if partition.topic in anew]
        return {**after, **lower, **(self._connected().earliest(again) if again else {})}

    def _fail_if_configured(self, after: Positions, changes: Changes) -> None:
        if self.settings.truncated_log != "fail" or not (changes.cut or changes.unclear):
            return
        partition, position = min({**changes.cut, **changes.unclear}.items())
        cause, instead = "was cut", f"reading continues at {position}"
        if partition in changes.unclear:
            cause = "was cut, or its topic was deleted and made again; only the topic's id could show which"
            if self.settings.guarantee is not ProcessingGuarantee.AT_MOST_ONCE:
                instead = "all partitions of the topic are read from their earliest offsets"
        msg = (
            f"the log of {name_of(*partition)} {cause}: it ended at {position}, but offsets up to {after[partition] - 1} had "
            f"been read. The topology stops because of truncated_log='fail'; with 'continue', {instead}"
        )
        raise StormsparkError(msg)

    def _limit(self) -> int | None:
        limits = [] if self.settings.limit is None else [self.settings.limit]
        if self._waiting is not None and self._target is None:
            limits.append(allowance(self._waiting, self._emitted, self._held_to))
        return min(limits, default=None)

    def _first_positions(
        self, partitions: Sequence[Partition], ends: Mapping[Partition, int], *, came_later: bool
    ) -> Positions:
        """Return the first positions of these partitions.

        They come from the strategy, except that partitions that were added later begin at their earliest offsets (K3).
        """
        settings, brokers = self.settings, self._connected()
        earliest = brokers.earliest(partitions)
        if came_later:
            return earliest
        committed = brokers.committed(partitions) if settings.commits else {}
        since: Positions = dict.fromkeys(partitions, -1)
        if settings.start_timestamp is not None and settings.strategy.endswith("TIMESTAMP"):
            since = brokers.at_timestamp(partitions, settings.start_timestamp)
        return {
            partition: first_position(
                settings.strategy,
                earliest=earliest[partition],
                latest=ends[partition],
                at_timestamp=at if (at := since[partition]) >= 0 else None,
                committed=committed.get(partition),
                deployment=settings.deployment,
            )
            for partition in partitions
            if partition in earliest and partition in since  # the next batch asks about the others again
        }

    def prepare_available_now(self) -> None:
        """Make the run stop at the current ends of the partitions. Raises `KafkaException` if Kafka does not answer."""
        brokers = self._connected()
        self._target = brokers.ends(brokers.partitions(self.settings.names, self.settings.pattern))

    def has_handed_out(self, end: Document) -> bool:
        """Return whether everything before the ends at which the run stops is handed out; true if the run has no such ends."""
        positions = as_positions(end)
        return all(
            positions.get(partition, 0) >= target for partition, target in (self._target or {}).items()
        )

    def ranges(self, start: Document, end: Document) -> list[Range]:
        """Return the ranges that a batch hands out. With AT_MOST_ONCE, a batch that runs again has none (K2)."""
        if self.settings.guarantee is ProcessingGuarantee.AT_MOST_ONCE and end != self._planned:
            return []
        return ranges(start, end)

    def known_ends(self, start: Document) -> Document:
        """Return the last known ends, for the lag that is shown to users."""
        return as_document({**as_positions(start), **(self._watch.ask(0).ends if self._watch else {})})

    # -- progress --------------------------------------------------------------------------------------------

    def observe(self, end: Document, progress: SourceProgress) -> None:
        """Learn how far the tasks have come after the batch that ended at ``end``. May be called again for the same batch.

        A low mark is a partition's lowest offset that a task has not done. Low marks are valid for the batch in which the tasks
        were asked for them. If the same marks were used after a later batch, messages that the later batch has opened would count
        as done. So marks carry a number (`ASKED`), and marks with the same number are used only once.
        """
        self._held_to = progress.limit
        if self._waiting is not None and self._handed_out:
            self._emitted = max(0, self._waiting + self._handed_out - progress.waiting)
        self._handed_out = 0
        self._waiting = progress.waiting
        marks = dict(progress.low_marks or {})
        asked = marks.pop(ASKED, None)
        if asked is not None and asked != self._asked:
            self._asked = asked
            self._done = committable(as_positions(end), marks)

    def commit(self, end: Document, *, now: bool = False) -> None:
        """If there is a group and its commit period is over, commit the positions before which all messages are done (K5).

        Unless the guarantee is AT_LEAST_ONCE, the positions are ``end``. With ``now``, commit at once, and wait up to half a
        minute until Kafka has taken the commit. If Kafka does not take it, log a warning.
        """
        from confluent_kafka import KafkaException

        settings = self.settings
        if not settings.commits or (not now and self.clock() - self._committed_at < settings.commit_secs):
            return
        done = (
            as_positions(end) if settings.guarantee is not ProcessingGuarantee.AT_LEAST_ONCE else self._done
        )
        if not done:
            return
        # Commit positions again even if they were committed before, because that commit may be lost, and Kafka forgets groups
        # that commit nothing for long.
        self._committed_at = self.clock()
        try:
            self._commit(done, wait_secs=_LAST_COMMIT_SECS if now else 0.0)
        except KafkaException as error:  # the next commit has these positions, too
            if now:
                _log.warning(
                    "Kafka at %s has not taken the last commit of group %r: %s. A run that begins at the group's offsets reads "
                    "again what came after the commit before it",
                    settings.client_conf.get("bootstrap.servers"),
                    settings.client_conf.get("group.id"),
                    error.args[0].str(),
                )

    def _commit(self, positions: Positions, *, wait_secs: float) -> None:
        if self.settings.commits:
            self._connected().commit(positions, self.settings.deployment, wait_secs=wait_secs)

    # -- connections -----------------------------------------------------------------------------------------

    def _connected(self) -> Brokers:
        if self._brokers is None:
            self._brokers = self.connect(self.settings.client_conf)
        return self._brokers

    def _watching(self) -> EndsWatch:
        if self._watch is None:
            brokers, settings = self._connected(), self.settings
            self._watch = EndsWatch(
                lambda: brokers.partitions(settings.names, settings.pattern),
                brokers.ends,
                brokers.topic_ids,
                refresh_secs=settings.refresh_secs,
                pause_secs=self.pause_secs,
                clock=self.clock,
            )
        return self._watch

    def close(self) -> None:
        """Close the connections to Kafka."""
        if self._watch is not None:
            self._watch.close()
        if self._brokers is not None:
            self._brokers.close()


def check_topics(config: KafkaSpoutConfig) -> None:
    """Check the servers and topics before a topology starts.

    Raises `InvalidTopologyError` for settings that can't work. Unless ``unknown_topic`` is "wait", it also raises this error if
    the servers don't answer or a topic does not exist.
    """
    brokers = Brokers(config.client_conf)
    try:
        if config.unknown_topic == "wait":
            return
        try:
            there = _partitions(config, brokers)
        except Exception as error:
            msg = f"Kafka at {brokers.servers} does not answer: {brokers.why(error)}. To wait for it, set unknown_topic='wait'"
            raise InvalidTopologyError(msg) from error
        missing = sorted(set(config.names) - {partition.topic for partition in there})
        if missing:
            msg = (
                f"Kafka at {brokers.servers} has no topic {', '.join(map(repr, missing))}: create it, or wait for it with "
                f"unknown_topic='wait'"
            )
            raise InvalidTopologyError(msg)
    finally:
        brokers.close()


def _partitions(config: KafkaSpoutConfig, brokers: Brokers) -> list[Partition]:
    try:
        return brokers.partitions(config.names, config.pattern, _CHECK_SECS)
    except Exception:
        if brokers.are_down():
            raise
        return brokers.partitions(config.names, config.pattern, _SLOW_SECS)
