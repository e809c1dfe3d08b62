"""Watches a running topology, and ends it: after some time, when it is idle, or on Ctrl-C, SIGTERM or SIGHUP.

`watch` has no clock of its own while the topology runs. It reads from the statistics how long the topology has run, and leaves
the waiting to the topology. So the tests need no sleep.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

from stormspark.driver.slow_calls import LAST_BATCH_SECS
from stormspark.engine import RunningTopology
from stormspark.metrics import TopologyStatistics
from stormspark.plan.explain import counted
from stormspark.ui.progress import Progress, Speedometer
from stormspark.worker.busy import Busy
from stormspark.worker.executors.thread import STOP_SECS

__all__ = ["Ending", "Idleness", "InterruptedStartError", "Interrupts", "watch"]


class Ending(Enum):
    """Why a run is over."""

    BY_ITSELF = "ended by itself"
    TIME_UP = "its time is up"
    IDLE = "idle"
    INTERRUPTED = "interrupted"
    KILLED = "killed"


class Display(Protocol):
    """The display that `watch` writes to, such as `stormspark.ui.ProgressLine`."""

    def show(self, progress: Progress) -> None:
        """Show where the topology is now."""

    def say(self, text: str) -> None:
        """Print a line that stays."""


class InterruptedStartError(KeyboardInterrupt):
    """Raised by `Interrupts` where a signal arrives while a topology starts. ``number`` is the signal."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


#: Signals that follow each other within so many seconds count as one. For ``timeout`` sends a signal to the program and then to
#: its process group, and a shell and its supervisor may both pass on Ctrl-C.
ONE_SECS = 0.25
#: What the user does to end a topology at once, after each of the signals that stop it.
_AGAIN = {
    signal.SIGINT: "press Ctrl-C again",
    signal.SIGTERM: "send SIGTERM again",
    signal.SIGHUP: "send SIGTERM",
}


class Interrupts:
    """Counts SIGINT, SIGTERM and SIGHUP while its ``with`` block lasts. Meanwhile these signals have no other effect.

    Within `while_starting`, a signal also raises `InterruptedStartError`. The signals count even if this process was started with
    SIGINT ignored, as shells do for a program in the background. If it was started with SIGHUP ignored, as by ``nohup``, SIGHUP
    stays ignored. Otherwise SIGHUP counts as the first signal only, because several come from a terminal that closes. Only the
    main thread gets signals. In any other thread, `Interrupts` counts nothing and leaves the handlers as they are. ``clock``
    returns seconds.

    >>> with Interrupts() as interrupts:
    ...     signal.raise_signal(signal.SIGINT)
    >>> interrupts.count
    1
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.count = 0
        #: What the user does for a second signal like the last one.
        self.again = _AGAIN[signal.SIGINT]
        self._clock = clock
        self._last: float | None = None
        self._number = int(signal.SIGINT)
        self._starting = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _AGAIN:
                if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                    continue
                self._before[number] = signal.signal(number, self._received)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.restore()

    def restore(self) -> None:
        """Let the signals do again what they did before. The end of the ``with`` block then changes nothing."""
        while self._before:
            signal.signal(*self._before.popitem())

    @contextmanager
    def while_starting(self) -> Iterator[None]:
        """Make signals raise `InterruptedStartError` as long as this ``with`` block lasts.

        Whatever error ends the block after a signal, this method raises `InterruptedStartError` in its place, because code that
        is interrupted may raise anything.
        """
        self._starting = True
        try:
            if self.count:
                raise InterruptedStartError(self._number)
            yield
        except InterruptedStartError:
            raise
        except BaseException as error:
            if self.count:
                raise InterruptedStartError(self._number) from error
            raise
        finally:
            self._starting = False

    def _received(self, number: int, frame: FrameType | None) -> None:
        now = self._clock()
        if self._last is not None and (now - self._last < ONE_SECS or number == signal.SIGHUP):
            return
        self._last = now
        self.count += 1
        self._number = number
        self.again = _AGAIN[signal.Signals(number)]
        if self._starting:
            raise InterruptedStartError(number)


class Idleness:
    """Finds out when a topology has been idle for ``seconds``. Idle means that nothing was emitted, acked or failed, that nothing
    is queued, that no bolt was in a call or told to flush, and that no task waited for its restart or was started again, with its
    child process if it has one (W22). Calls for ticks of a bolt on threads do not count. Messages may be pending: their tuples
    are held by bolts, such as windows, or by calls of async bolts that flush at the end of the input.

    Counters change only when a round ends, so a topology in a long batch looks idle. Therefore the time of the first batch does
    not count, and two batches must end within the idle time. Spark looks for rows only when a batch begins, and for the first of
    these two it may have looked before.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.begin()

    def begin(self) -> None:
        """Count the idle time from now on."""
        self._moved = -1
        self._since = 0.0
        #: How many batches had ended when something moved.
        self._ended = 0

    def reached(self, statistics: TopologyStatistics) -> bool:
        """Note one more snapshot. Return true once the topology has been idle for long enough."""
        moved = statistics.flushes + sum(
            statistics.total(name) for name in ("emitted", "acked", "failed", "restarts")
        )
        busy = (
            statistics.total("queued")
            or statistics.total("down")
            or any(c.calls_under_way and not c.waiting_calls for c in statistics.components.values())
            or not statistics.batches
        )
        if busy or moved != self._moved:
            self._moved, self._since, self._ended = moved, statistics.seconds, statistics.batches_ended
            return False
        return (
            statistics.batches_ended > self._ended + 1 and statistics.seconds - self._since >= self._seconds
        )


def watch(
    running: RunningTopology,
    display: Display,
    interrupts: Interrupts,
    *,
    seconds: float | None = None,
    until_idle: float | None = None,
    poll: float = 0.25,
) -> Ending:
    """Watch the topology until it has ended, or end it. Returns why it ended.

    1. Show the topology's progress every ``poll`` seconds, until one of these happens: it ends by itself; it has run for
       ``seconds``; it has been idle for ``until_idle`` seconds; the first interrupt arrives. When it is idle for the first time,
       end its input: then bolts flush what they hold, and the topology ends by itself, unless messages stay pending.
    2. If the topology still runs, say that it stops, and why. Let it stop at the end of its batch, and go on showing its
       progress.
    3. On a second interrupt, kill the topology. Name the calls of user code that are cut off. Wait some seconds for the end, if
       the engine needs that to tidy up. A third interrupt ends this wait.
    """
    speedometer = Speedometer()

    # Step 1.
    idleness = Idleness(until_idle) if until_idle is not None else None
    input_ended = False
    while True:
        ended = running.wait(0)
        statistics = running.statistics()
        display.show(speedometer.read(statistics, running.waits_for()))
        if ended and running.was_killed_by_command:
            return Ending.INTERRUPTED
        if ended:
            return Ending.IDLE if input_ended else Ending.BY_ITSELF
        if interrupts.count:
            reason, why, press = Ending.INTERRUPTED, "", interrupts.again
            break
        if seconds is not None and statistics.seconds >= seconds:
            reason, why, press = Ending.TIME_UP, f"{seconds:g} s are over: ", "press Ctrl-C twice"
            break
        idle = idleness is not None and idleness.reached(statistics)
        if idle and idleness is not None and not input_ended:
            input_ended = True
            display.say(
                f"idle for {until_idle:g} s: its input ends here; bolts flush what they hold, and it stops (press Ctrl-C to "
                f"stop it now)"
            )
            running.end_input()
            idleness.begin()
        elif idle and not statistics.total("pending"):
            reason, why, press = Ending.IDLE, f"idle for {until_idle:g} s: ", "press Ctrl-C twice"
            break
        running.wait(poll)
    display.say(
        f"{why}stopping; what is under way gets {STOP_SECS:g} s (a call on a worker's thread {LAST_BATCH_SECS:g} s), and then "
        f"close and cleanup get {running.close_secs:g} s ({press} to end at once)"
    )

    # Step 2. `stop` may block until the batch ends. So it has a thread of its own, and this thread goes on showing the progress.
    stopping = _Stopping(running.stop)
    while not (running.wait(poll) and stopping.returned(poll)):
        display.show(speedometer.read(running.statistics()))
        if interrupts.count > 1:
            # Step 3.
            display.say(_cut_off(running.calls_under_way()))
            _kill(running, interrupts)
            return Ending.KILLED
    return reason


#: How many seconds to wait for ``kill``, and then for the end of the topology. A call that does not return has no end.
_KILLED_BY_NOW, _ENDED_BY_NOW = 5.0, 0.3
#: How many calls that are cut off are named.
_NAMED = 5


def _cut_off(calls: Sequence[Busy]) -> str:
    """Say that the topology ends at once, and which calls are cut off."""
    named = [_named(busy) for busy in calls[:_NAMED]]
    left = sum(busy.calls for busy in calls[_NAMED:])
    more = [f"more calls: {left}"] if left else []
    cut = f"; this cuts off {'; '.join(named + more)}" if calls else ""
    return f"ending at once, without close and cleanup{cut}"


def _named(busy: Busy) -> str:
    if busy.tuples:
        return f"{busy.code}, with {counted(busy.tuples, 'tuple')} left"
    others = f" (and {counted(busy.others, 'other call')} of this task)" if busy.others else ""
    return f"{busy.code}, after {busy.seconds:.1f} s{others}"


def _kill(running: RunningTopology, interrupts: Interrupts) -> None:
    killing = _Stopping(running.kill)
    deadline = time.monotonic() + _KILLED_BY_NOW
    while not killing.returned(0.05):
        if time.monotonic() > deadline or interrupts.count > 2:
            return
    running.wait(_ENDED_BY_NOW)


class _Stopping:
    """A call of ``stop`` or ``kill`` in a thread of its own. If it raises, `returned` raises the exception."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._error: BaseException | None = None
        # A daemon thread, so that a stop that hangs does not keep this process alive after a kill.
        self._thread = threading.Thread(target=self._run, name="stormspark-stop", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._stop()
        except BaseException as error:
            self._error = error

    def returned(self, seconds: float) -> bool:
        """Wait up to ``seconds``, and return whether ``stop`` has returned."""
        self._thread.join(seconds)
        if self._error:
            raise self._error
        return not self._thread.is_alive()
