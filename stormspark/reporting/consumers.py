"""Runs the metrics consumers of a topology, in the driver, each on a thread of its own (J17).

Storm runs a consumer as a bolt. Here its data points come to the driver with the reports of workers anyway, so a bolt would only
send them back to a worker, at the cost of another superstep. The topology never waits for a consumer.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from stormspark.api.metrics_consumer import MetricsConsumer, TaskInfo
from stormspark.metrics import DataPoint
from stormspark.plan.physical import PhysicalPlan
from stormspark.reporting.builtin import Buckets
from stormspark.reporting.consumer_context import ConsumerContext
from stormspark.reporting.consumer_settings import REGISTER, ConsumerSettings
from stormspark.reporting.measured import Measured
from stormspark.reporting.places import FIRST_PORT, Hosts
from stormspark.reporting.registered import class_of
from stormspark.reporting.throttled_log import ThrottledLog

__all__ = ["Consumer", "consumers_of"]

_log = logging.getLogger(__name__)

#: Storm's own consumer, by its name in Storm's packages, and without one.
STOCK = {
    f"{package}LoggingMetricsConsumer": "stormspark.reporting.logging_consumer:LoggingMetricsConsumer"
    for package in ("", "org.apache.storm.metric.", "org.apache.storm.metrics.")
}


def consumers_of(plan: PhysicalPlan) -> list[Consumer]:
    """Return the consumers that a topology registers. Raises `InvalidTopologyError` for one that can't be.

    A class of Java has no effect, and a warning says so.
    """
    found: list[Consumer] = []
    for entry in plan.conf.get(REGISTER) or ():
        settings = ConsumerSettings.read(entry)
        cls = class_of(settings.name, REGISTER, STOCK, MetricsConsumer)
        if cls is None:
            _log.warning(
                "%s names %s, which is no class of Python: its metrics are not sent; write it as a "
                "stormspark.MetricsConsumer, and register it as module:Class",
                REGISTER,
                settings.name,
            )
        else:
            found.append(Consumer(settings, cls, plan.settings.metrics_bucket_secs, plan.conf))
    return found


class Consumer:
    """One consumer. `begin`, then `take` and, if a test drives the clock, `step`; then `end` and `join`."""

    def __init__(
        self, settings: ConsumerSettings, cls: type, bucket_secs: float, conf: Mapping[str, Any]
    ) -> None:
        self._settings, self._class, self._secs, self._conf = settings, cls, bucket_secs, conf
        self._failures = ThrottledLog(f"metrics consumer {settings.name}")
        #: Rounds of users' data points that wait. A full queue forgets the oldest.
        self._waiting: deque[Sequence[DataPoint]] = deque(
            maxlen=settings.retained if settings.retained > 0 else None
        )
        self._wakes, self._ends = threading.Event(), threading.Event()
        self._consumer: MetricsConsumer | None = None
        self._thread: threading.Thread | None = None
        #: Whether it could not begin, so that nobody takes what waits for it.
        self._is_dead = False

    def begin(
        self,
        measured: Measured,
        hosts: Hosts,
        log_folder: str | None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Prepare the consumer. It has a thread, unless a test drives the ``clock``."""
        self._measured, self._hosts = measured, hosts
        self._clock, self._wall_clock = clock or time.monotonic, clock or time.time
        self._buckets = Buckets(measured, self._secs)
        self._next = self._clock() + self._secs
        self._context = ConsumerContext(
            measured.plan, measured.storm_id, f"__metrics_{self._settings.name}", log_folder
        )
        if clock is None:
            self._thread = threading.Thread(
                target=self._run, name=f"consumer {self._settings.name}", daemon=True
            )
            self._thread.start()
        else:
            self._prepare()

    def report_error(self, error: BaseException | str) -> None:
        """Log an error that the consumer has reported."""
        self._failures.failed(error)

    def take(self, points: Sequence[DataPoint]) -> None:
        """Take the data points of a round, without waiting."""
        if self._is_dead:
            return
        self._waiting.append(points)
        self._wakes.set()

    def step(self) -> None:
        """Hand on what has come, and read a bucket if it is time."""
        while self._waiting:
            self._hand_on_users(self._waiting.popleft())
        now = self._clock()
        if self._secs > 0 and now >= self._next:
            self._next = max(self._next + self._secs, now)
            self._hosts.look()
            for points in self._buckets.read(self._wall_clock()):
                self._hand_on(points)

    def end(self) -> None:
        """Begin to end: hand on what has come, and read the last bucket."""
        self._ends.set()
        self._wakes.set()
        if self._thread is None:
            self._end()

    def join(self, seconds: float) -> None:
        """Wait for the end, for a number of seconds at most."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        if not self._prepare():
            return
        while not self._ends.is_set():
            self._wakes.wait(max(0.0, self._next - self._clock()) if self._secs > 0 else None)
            self._wakes.clear()
            if not self._ends.is_set():
                try:
                    self.step()
                except Exception as error:  # the figures could not be read
                    self._failures.failed(error)
        self._end()

    def _prepare(self) -> bool:
        try:
            consumer = self._class()
            consumer.prepare(self._conf, self._settings.argument, self._context, self)
        except (Exception, SystemExit) as error:
            self._is_dead = True
            self._waiting.clear()
            self._failures.failed(f"it could not begin: {type(error).__name__}: {error}")
            return False
        self._consumer = consumer
        return True

    def _end(self) -> None:
        if self._consumer is None:
            return
        self._next = -float("inf")
        try:
            self.step()
            self._consumer.cleanup()
        except (Exception, SystemExit) as error:
            self._failures.failed(error)

    def _hand_on_users(self, points: Iterable[DataPoint]) -> None:
        self._hosts.look()
        for _, of_task in groupby(sorted(points, key=_of), key=_of):
            self._hand_on(list(of_task))

    def _hand_on(self, points: Sequence[DataPoint]) -> None:
        """Hand on the data points of one task at one time."""
        wanted = self._settings.wanted(points)
        if not wanted or self._consumer is None:
            return
        first = points[0]
        planned = self._measured.plan.tasks.get(first.task)
        worker = (
            planned.worker
            if planned is not None
            else next((int(one.value) for one in points if one.name == "worker"), 0)
        )
        info = TaskInfo(
            first.at_ms // 1000,
            self._hosts.of(worker),
            FIRST_PORT + worker,
            first.task,
            first.component,
            int(first.bucket_secs),
        )
        try:
            self._consumer.handle_data_points(info, wanted)
        except (
            Exception,
            SystemExit,
        ) as error:  # in a thread, exit would end the thread alone, without a word
            self._failures.failed(error)
        else:
            self._failures.worked()


def _of(point: DataPoint) -> tuple[int, int, float]:
    return point.task, point.at_ms, point.bucket_secs
