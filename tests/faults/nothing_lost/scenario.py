"""One run: a driver that is fed, hurt at random moments, and counted in the end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random

import psutil
from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.faults.nothing_lost.check import Effects, check_trees, committed_offsets, newest
from tests.faults.nothing_lost.driver import Plan, Status
from tests.faults.nothing_lost.private_disk import PrivateDisk
from tests.faults.nothing_lost.topology import SIDES
from tests.kafka_broker import KafkaBroker
from tests.waiting import PATIENCE_SECS, executor_processes, wait_until_gone, worker_processes

__all__ = ["Accounts", "Driver", "Inject", "Scale", "Scenario"]

ROOT = Path(__file__).parents[3]
PARTITIONS = 4
_TURN_SECS = 0.05
#: Without a new effect for so long, what is missing is taken for lost.
_PATIENCE_SECS = float(os.environ.get("FAULT_PATIENCE", "180"))


@dataclass(frozen=True)
class Scale:
    """How much a run does: messages of both topics together, and how often each fault is injected."""

    messages: int
    injections: int
    seed: int

    @classmethod
    def of_environment(cls) -> Scale:
        """What ``make soak`` asks for; without it, little."""
        return cls(
            int(os.environ.get("FAULT_MESSAGES", "2000")),
            int(os.environ.get("FAULT_INJECTIONS", "1")),
            int(os.environ.get("TEST_SEED", "1")),
        )


@dataclass
class Accounts:
    """What a run came to."""

    fault: str
    messages: int
    injected: list[str] = field(default_factory=list)
    recovery_secs: list[float] = field(default_factory=list)
    duplicates: int = 0
    lost: int = 0
    #: Some of what was lost.
    missing: list[str] = field(default_factory=list)
    emits: int = 0
    verdicts: int = 0
    #: Counters of all spouts and drivers that could still tell.
    counters: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def row(self) -> dict[str, object]:
        """A row of the table at the end of a run."""
        times = [f"{time:.1f}" for time in _three(self.recovery_secs)] or ["-"]
        return {
            "fault": self.fault,
            "injected": len(self.injected),
            "messages": f"{self.messages:,}",
            "duplicates": f"{self.duplicates:,}",
            "lost": self.lost,
            "recovery s, min / median / max": " / ".join(times),
            "run s": f"{self.seconds:.0f}",
        }

    def save(self, folder: Path) -> None:
        """One file a fault, for whoever puts runs together."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.fault}.json").write_text(json.dumps(asdict(self), indent=1))


def _three(values: list[float]) -> list[float]:
    return [min(values), statistics.median(values), max(values)] if values else []


class Driver:
    """The driver's process, and all that belongs to it. ``prefix`` are words before the command: how to enter a namespace."""

    def __init__(self, plan: Plan, folder: Path, prefix: tuple[str, ...] = ()) -> None:
        self.plan, self.folder, self._prefix = plan, folder, prefix
        self._file = folder / "plan.json"
        self._output = folder / "output"
        self.process: psutil.Process | None = None
        self._popen: subprocess.Popen[bytes] | None = None
        self._lives: dict[int, Status] = {}

    def start(self) -> None:
        """Start it, and return at once."""
        self._file.write_text(json.dumps(asdict(self.plan)))
        # A short folder for sockets: that of pytest is too long for them.
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        command = [*self._prefix, sys.executable, "-m", "tests.faults.nothing_lost.driver", str(self._file)]
        with self._output.open("ab") as output:
            self._popen = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=output, stderr=output, stdin=subprocess.DEVNULL
            )
        self.process = psutil.Process(self._popen.pid)

    @property
    def ended(self) -> int | None:
        """The exit code, if it has ended."""
        return None if self._popen is None else self._popen.poll()

    @property
    def output(self) -> str:
        """What it has said, in all its lives; the last part."""
        return self._output.read_text(errors="replace")[-6000:] if self._output.exists() else ""

    def status(self) -> Status | None:
        """What it said last."""
        with contextlib.suppress(FileNotFoundError):
            status = Status(**json.loads((self.folder / "status.json").read_text()))
            self._lives[status.pid] = status
            return status
        return None

    def counters(self) -> Counter[str]:
        """The spouts' counters, added up over all lives of the driver, as far as they were told; gauges are the last one's."""
        total: Counter[str] = Counter()
        for status in self._lives.values():
            total.update({"pending": -total["pending"], "queued": -total["queued"]})
            total.update({"acker_batches": status.acker_batches, "dropped": status.dropped})
            for side in SIDES:
                total.update(status.counters.get(side, {}))
        return total

    def family(self) -> list[psutil.Process]:
        """All processes that it is, or has begotten, workers among them."""
        workers = list(worker_processes(self.plan.name).values())
        if self.process is None:
            return workers
        with contextlib.suppress(psutil.NoSuchProcess):
            return [self.process, *self.process.children(recursive=True), *workers]
        return workers

    def jvm(self) -> psutil.Process:
        """Spark's driver."""
        assert self.process is not None
        return next(one for one in self.process.children(recursive=True) if one.name() == "java")

    def executors(self) -> list[psutil.Process]:
        """The JVMs of executors of a local cluster."""
        assert self.process is not None
        return executor_processes(self.process)

    def kill(self, what: psutil.Process | None = None) -> None:
        """Kill -9 of one process, by default its Python, and wait until all of the rest has noticed."""
        family = self.family()
        with contextlib.suppress(psutil.NoSuchProcess):
            (what or family[0]).send_signal(signal.SIGKILL)
        assert self._popen is not None
        self._popen.wait(PATIENCE_SECS)
        wait_until_gone(family)

    def clear(self) -> None:
        """Leave nothing behind, whatever has happened."""
        for one in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        if self._popen is not None:
            self._popen.wait()


Inject = Callable[["Scenario", Random], str]


class Scenario:
    """A topology over two topics of ``broker``; ``plan`` says how it runs, ``scale`` how much."""

    def __init__(self, broker: KafkaBroker, driver: Driver, scale: Scale, fault: str) -> None:
        self.broker, self.driver, self.scale = broker, driver, scale
        self.random = Random(f"{scale.seed} {fault}")
        self.folder = driver.folder
        #: Spark's checkpoint as this process sees it.
        self.checkpoint = Path(driver.plan.checkpoint)
        self.disk: PrivateDisk | None = None
        self.effects = Effects(self.folder)
        self.accounts = Accounts(fault, scale.messages)
        self.pairs = scale.messages // len(SIDES)
        self.fed = 0
        self._may_feed = 0
        self._fed_at = 0.0
        self._payments: list[int] = []  # that are still to be fed
        #: Whether a fault is under way: then messages never run out, however long a slow machine takes over it. Otherwise
        #: nothing would be left for a bolt that is to raise, or to show that all goes on.
        self._hurting = False
        #: A driver that stops with an error is started again; how often that was.
        self.starts_again = False
        self.started_again = 0

    @property
    def topics(self) -> dict[str, str]:
        """By side."""
        return {side: f"{self.driver.plan.name}-{side}" for side in SIDES}

    # -- feeding ---------------------------------------------------------------------------------------------

    def feed(self, more: int) -> None:
        """The next orders, and the payments of those before, in another order: so the join always holds some."""
        orders = list(range(self.fed, min(self.fed + more, self.pairs)))
        payments, self._payments = self._payments, orders.copy()
        self.random.shuffle(payments)
        for topic, numbers in zip(self.topics.values(), (orders, payments), strict=True):
            # Most of them to one partition, and so to one task: work is uneven.
            most = len(numbers) * 3 // 4
            for part, partition in ((numbers[:most], 0), (numbers[most:], None)):
                if part:
                    self.broker.produce(topic, [b"%d" % n for n in part], partition=partition)
        self.fed += len(orders)

    def turn(self) -> None:
        """Feed a little, look at the driver, and rest."""
        self._feed_a_little()
        self.driver.status()
        if (code := self.driver.ended) is not None:
            if not self.starts_again:
                msg = f"the driver ended with {code}:\n{self.driver.output}"
                raise AssertionError(msg)
            wait_until_gone(self.driver.family())
            self.started_again += 1
            self.driver.start()
        time.sleep(_TURN_SECS)

    def _feed_a_little(self) -> None:
        """Feed something of what may be fed now, more of it at first, never nothing."""
        now = time.monotonic()
        if self.broker.pid is not None and now - self._fed_at > 2 * _TURN_SECS:
            self._fed_at = now
            if self._hurting and self.fed == self.pairs:
                self.pairs += 2
            self.feed(max(2, (self._may_feed - self.fed) // 20))

    def feed_until_driver_ends(self) -> None:
        """Feed until the driver has ended, and all that belongs to it: it has been told to kill itself in some batch."""
        family = self.driver.family()
        deadline = time.monotonic() + PATIENCE_SECS
        while self.driver.ended is None:
            assert time.monotonic() < deadline, f"the driver has not ended:\n{self.driver.output}"
            self._feed_a_little()
            self.driver.status()
            time.sleep(_TURN_SECS)
        wait_until_gone(family)

    def until(self, what: Callable[[], object], timeout: float, message: str) -> None:
        """Take turns until it is true."""
        deadline = time.monotonic() + timeout
        while not what():
            assert time.monotonic() < deadline, f"waited {timeout} s for {message}:\n{self.driver.output}"
            self.turn()

    def pause(self, seconds: float) -> None:
        """Take turns for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.turn()

    # -- the run ---------------------------------------------------------------------------------------------

    def batches(self) -> tuple[int, int]:
        """The newest batch that was begun, and the newest that was committed."""
        spark = self.checkpoint / "spark"
        return newest(spark / "offsets"), newest(spark / "commits")

    def run(self, injects: Sequence[Inject]) -> Accounts:
        """Feed it, hurt it in each of these ways, and count; with none it is its input that hurts."""
        began = time.monotonic()
        share = self.pairs // (len(injects) + 1)
        self._may_feed = share
        self.driver.start()
        # Then windows hold what earlier batches have read.
        self.until(
            lambda: self.effects.update() and self.batches()[1] > 0, PATIENCE_SECS, "effects and two batches"
        )
        for number, inject in enumerate(injects):
            self._may_feed = (number + 1) * share
            self.pause(self.random.uniform(0.3, 2.5))
            self._hurt(inject)
        self._may_feed = self.pairs
        while self.fed < self.pairs or self._payments:
            self.feed(self.pairs)
        self.accounts.messages = len(SIDES) * self.pairs
        self._complete()
        self._end()
        self.accounts.seconds = time.monotonic() - began
        return self.accounts

    def _hurt(self, inject: Inject) -> None:
        """Inject once; it has recovered when a batch that was begun after it is committed, and what was sent after it is seen."""
        batch, _ = self.batches()
        began = time.monotonic()
        self._hurting = True
        self.accounts.injected.append(inject(self, self.random))
        fed = self.fed

        def recovered() -> bool:
            self.effects.update()
            return self.batches()[1] > batch and self.effects.highest >= fed

        self.until(recovered, PATIENCE_SECS, f"a recovery from: {self.accounts.injected[-1]}")
        self._hurting = False
        self.accounts.recovery_secs.append(time.monotonic() - began)
        self._check_group()

    def _complete(self) -> None:
        """Wait until all effects are there and nothing is open; or until nothing new comes any more."""
        poison = frozenset(self.driver.plan.poison)
        wanted = len(SIDES) * self.pairs + self.pairs - len(poison)
        best, since = -1, time.monotonic()
        while True:
            self.effects.update()
            if self.effects.distinct > best:
                best, since = self.effects.distinct, time.monotonic()
            status = self.driver.status()
            done = self.effects.distinct == wanted and status is not None and status.quiet
            if done or time.monotonic() - since > _PATIENCE_SECS:
                break
            self.turn()
        unseen, unwindowed = self.effects.missing(range(self.pairs), poison)
        missing = unseen + [f"pair {n}" for n in unwindowed]
        self.accounts.lost, self.accounts.missing = len(missing), missing[:10]
        self.accounts.duplicates = self.effects.duplicates
        if status is None or not status.quiet:
            self.accounts.wrong.append(f"it is not quiet in the end: {status}")

    def _end(self) -> None:
        """Stop it; all accounts must balance, and no process be left."""
        if not self.accounts.lost and not self.accounts.wrong:
            self.until(self._group_is_at_the_end, PATIENCE_SECS, "the group to have committed all")
        family = self.driver.family()
        (self.folder / "stop").touch()
        deadline = time.monotonic() + PATIENCE_SECS
        while self.driver.ended is None:
            assert time.monotonic() < deadline, f"it does not stop:\n{self.driver.output}"
            time.sleep(_TURN_SECS)
        wrong = self.accounts.wrong
        if self.driver.ended != 0:
            wrong.append(f"the driver ended with {self.driver.ended}: {self.driver.output[-1000:]}")
        status = self.driver.status()
        self.accounts.counters = dict(self.driver.counters())
        if status is not None and status.error:
            wrong.append(f"it ended with {status.error}")
        self.accounts.emits, self.accounts.verdicts, trees = check_trees(self.folder)
        wrong += trees[:10]
        wrong += self._offsets()
        wait_until_gone(family)

    def _check_group(self) -> None:
        """What the consumer group has committed is done with."""
        poison = frozenset(self.driver.plan.poison)
        group = {topic: group_offsets(self.broker, topic) for topic in self.topics.values()}
        self.effects.update()
        for side, topic in self.topics.items():
            for message in self.broker.messages(topic):
                n = int(message.value() or b"")
                partition, offset = message.partition() or 0, message.offset() or 0
                if offset < group[topic].get(partition, 0) and not self.effects.has_all_of(side, n, poison):
                    self.accounts.wrong.append(
                        f"{topic}: {group[topic]} is committed, {partition}/{offset} is open"
                    )
                    return

    def _group_is_at_the_end(self) -> bool:
        return all(
            group_offsets(self.broker, topic) == end_offsets(self.broker, topic)
            for topic in self.topics.values()
        )

    def _offsets(self) -> list[str]:
        wanted = {topic: end_offsets(self.broker, topic) for topic in self.topics.values()}
        group = {topic: group_offsets(self.broker, topic) for topic in self.topics.values()}
        told = {"Spark": committed_offsets(self.checkpoint), "the group": group}
        return [
            f"{who} committed {found}, the topics end at {wanted}"
            for who, found in told.items()
            if found != wanted
        ]


def end_offsets(broker: KafkaBroker, topic: str) -> dict[int, int]:
    """By partition."""
    partitions = [TopicPartition(topic, p) for p in range(PARTITIONS)]
    return _ask(
        broker, "tests", lambda it: {one.partition: it.get_watermark_offsets(one, 5)[1] for one in partitions}
    )


def group_offsets(broker: KafkaBroker, topic: str) -> dict[int, int]:
    """What the spout's group, which is called as the topic, has committed of it, by partition."""
    partitions = [TopicPartition(topic, p) for p in range(PARTITIONS)]
    return _ask(
        broker,
        topic,
        lambda it: {
            one.partition: one.offset for one in it.committed(partitions, timeout=5) if one.offset >= 0
        },
    )


def _ask(broker: KafkaBroker, group: str, question: Callable[[Consumer], dict[int, int]]) -> dict[int, int]:
    """A broker that has just come back knows of groups a moment later."""
    until = time.monotonic() + 120
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    try:
        while True:
            try:
                return question(consumer)
            except KafkaException:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)
    finally:
        consumer.close()
