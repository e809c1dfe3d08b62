"""A scheduler of real threads, of which only one runs at a time; a seed decides which, and where it is interrupted.

The thread that holds the *token* runs. It passes the token on at *switch points*: every line, call and return in the files that
are watched, and wherever it has to wait. What these files use to wait is replaced by what this module has: `Lock`, `Event`,
`Condition`, the pipe of a bell, `Thread`. So no thread ever waits for anything but the token, and the same seed makes the same
run. Time is simulated: it goes on when a thread waits for it, at once if all others wait, too.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from hashlib import blake2b
from math import inf
from pathlib import Path
from random import Random
from threading import get_ident
from types import FrameType
from typing import Any

from stormspark.worker.foreign_calls import start_unwatched

__all__ = ["FoundError", "Primitives", "Scheduler"]

#: How many switch points a run may have, and how often in a row only one thread may run, each time because its time is up.
_MOST_STEPS = 400_000
_MOST_ALONE = 4000
#: How long a thread waits for the token, in real seconds. Only a real lock that the scheduler does not know takes so long.
_PATIENCE_SECS = 120.0
#: How many of the last switches a finding shows.
_SHOWN = 40


class FoundError(BaseException):
    """The run can't go on: nobody can run, or there is no end. It is no `Exception`, so that no handler for errors keeps it."""


class KilledError(BaseException):
    """Ends a thread, because the run is over."""


class _Thread:
    """A thread of a run."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.gate = threading.Lock()
        self.gate.acquire()
        #: What it waits for; None if it can run. It can also run once the time is ``until``.
        self.ready: Callable[[], bool] | None = None
        self.until = inf
        self.what = ""
        #: Where it was stopped: the file, the function and the line.
        self.place: tuple[str, str, int] = ("", "its start", 0)
        self.priority = 0.0
        self.ended = False

    def __str__(self) -> str:
        if self.ended:
            return f"{self.name}: has ended"
        waits = f"waits for {self.what}" if self.ready is not None else "can run"
        return f"{self.name}: {waits}, at {_text(self.place)}"


def _text(place: tuple[str, str, int]) -> str:
    file, function, line = place
    return f"{Path(file).stem}.{function}:{line}" if file else function


def _place(frame: FrameType) -> tuple[str, str, int]:
    return frame.f_code.co_filename, frame.f_code.co_name, frame.f_lineno


class Scheduler:
    """The scheduler of one run. The thread that makes it takes part as ``main``.

    ``files``: the files with switch points. ``opcodes``: each instruction is a switch point, too; so fine a switch is possible
    only without the interpreter's lock.
    """

    def __init__(
        self, seed: int, files: Iterable[str], *, main: str = "worker", opcodes: bool = False
    ) -> None:
        self._random = Random(seed)
        mood = Random(~seed)
        self._files, self._opcodes = frozenset(files), opcodes
        self.main = self.current = _Thread(main)
        self._ident = get_ident()
        self.threads = [self.main]
        self.now = 0.0
        #: How much time a look at the clock takes.
        self._tick = mood.choice((0.0, 0.0, 1e-6, 2e-5, 3e-4))
        #: How many switch points lie between two interruptions, on average.
        self._gap = mood.choice((1.5, 4.0, 12.0, 40.0, 150.0))
        #: Whether threads have priorities, which change at interruptions; if not, each thread that can run is as likely.
        self._by_priority = mood.random() < 0.3
        #: How likely the time of a thread is up while others can run.
        self._early = mood.choice((0.01, 0.03, 0.2))
        #: How likely an interrupted thread gets no turn for a while.
        self._slow = mood.choice((0.0, 0.02, 0.1, 0.3))
        self.main.priority = self._random.random()
        self.steps, self._left, self._alone = 0, 1, 0
        self._digest = blake2b(digest_size=8)
        self._last: deque[tuple[float, str, tuple[str, str, int], str]] = deque(maxlen=_SHOWN)
        self._failure: str | None = None
        self._killed = False
        #: What was found. The code under test may take the error that says so for one of its own, and go on.
        self.found = ""
        self._next_interruption()

    # -- the run -------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Watch the files, on the calling thread."""
        sys.settrace(self._on_call)

    def finish(self) -> None:
        """Let all other threads end. Raises `FoundError` if one can't."""
        self.block(
            "the end of all threads", lambda: all(one.ended or one is self.main for one in self.threads)
        )

    def end(self) -> None:
        """End all threads that are left, and the run."""
        sys.settrace(None)
        self._killed = True
        for thread in self.threads:
            if thread is not self.main and not thread.ended:
                self.current = thread
                thread.gate.release()
                self._wait_for_token(self.main)

    @property
    def digest(self) -> str:
        """A digest of the run: who ran when, and where each thread was interrupted."""
        return self._digest.hexdigest()

    def story(self) -> str:
        """Tell where all threads are, and what the last switches were."""
        threads = "\n".join(f"    {thread}" for thread in self.threads)
        switches = "\n".join(
            f"    {now:.4f} {name} stops at {_text(place)}; {following} goes on"
            for now, name, place, following in self._last
        )
        return f"  threads, after {self.steps} steps, at {self.now:.4f} s:\n{threads}\n  last switches:\n{switches}"

    def clock(self) -> float:
        """Return the time."""
        self.now += self._tick
        return self.now

    # -- switch points -------------------------------------------------------------------------------------------

    def _on_call(self, frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename not in self._files:
            return None
        if self._opcodes:
            frame.f_trace_opcodes = True
        return self._on_line(frame, event, arg)

    def _on_line(self, frame: FrameType, event: str, arg: Any) -> Any:
        self._left -= 1
        if self._left <= 0:
            self._interrupt(frame)
        return self._on_line

    def _interrupt(self, frame: FrameType) -> None:
        if self._killed:
            if self._left < -_MOST_STEPS:
                raise KilledError
            return
        me = self.current
        me.place = _place(frame)
        self._next_interruption()
        if self._by_priority:
            me.priority = min(thread.priority for thread in self.threads) - self._random.random()
        if self._random.random() < self._slow:
            self.sleep(self._random.choice((0.0005, 0.003, 0.01)))
        else:
            self._switch(me)

    def _next_interruption(self) -> None:
        self._left = 1 + int(self._random.expovariate(1 / self._gap))
        self.steps += self._left

    def pause(self) -> None:
        """Wait, as user code waits: not at all, while others do a few steps, or for some time."""
        how = self._random.random()
        if how < 0.35:
            return
        me = self.current
        if how < 0.75:
            for _ in range(self._random.choice((1, 1, 2, 5, 20))):
                self._switch(me)
        else:
            self.sleep(self._random.choice((0.0001, 0.001, 0.003, 0.01)))

    def sleep(self, seconds: float) -> None:
        """Wait for so long."""
        self.block("time", lambda: False, self.now + seconds)

    def block(self, what: str, ready: Callable[[], bool], until: float = inf) -> bool:
        """Wait until ``ready`` returns true, or until a time. Return whether it does."""
        if not ready():
            if self._killed:
                raise KilledError
            me = self.current
            frame: FrameType | None = sys._getframe(1)
            while frame is not None and frame.f_code.co_filename not in self._files:
                frame = frame.f_back
            if frame is not None:
                me.place = _place(frame)
            me.ready, me.until, me.what = ready, until, what
            self._switch(me)
            me.ready, me.until = None, inf
        return ready()

    def _switch(self, me: _Thread) -> None:
        """Let the thread go on that the seed wants, and wait until that is this one."""
        following = self._choose()
        if following is None:
            self._fail("nobody can run")
            following = self.main
        elif self.steps > _MOST_STEPS or self._alone > _MOST_ALONE:
            self._fail("there is no end")
            following = self.main
        if following is not me:
            self._last.append((self.now, me.name, me.place, following.name))
            self._digest.update(f"{self.now}{following.name}{me.place[2]}".encode())
            self.current = following
            following.gate.release()
            if me.ended:
                return
            self._wait_for_token(me)
        if me is self.main and self._failure is not None and not self._killed:
            self.found, self._failure = self._failure, None
            self._killed = True
            sys.settrace(None)
            raise FoundError(self.found)

    def _wait_for_token(self, me: _Thread) -> None:
        if not me.gate.acquire(timeout=_PATIENCE_SECS):
            msg = f"{me.name} waits for a real lock:\n{self.story()}"
            raise RuntimeError(msg)
        if self._killed and me is not self.main:
            raise KilledError

    def _choose(self) -> _Thread | None:
        can_run, timed = [], []
        for thread in self.threads:
            if thread.ended:
                continue
            if thread.ready is None or thread.until <= self.now or thread.ready():
                can_run.append(thread)
            elif thread.until < inf:
                timed.append(thread)
        if timed and (not can_run or self._random.random() < self._early):
            first = min(timed, key=lambda thread: thread.until)
            self.now = max(self.now, first.until)
            self._alone = self._alone + 1 if not can_run and first is self.main else 0
            return first
        if not can_run:
            return None
        self._alone = 0
        if self._by_priority:
            return max(can_run, key=lambda thread: thread.priority)
        return can_run[int(self._random.random() * len(can_run))]

    def _fail(self, what: str) -> None:
        if self._failure is None:
            self._failure = f"{what}\n{self.story()}"

    # -- threads ---------------------------------------------------------------------------------------------------

    def start(self, thread: threading.Thread, run: Callable[[], None], start: Callable[[Any], None]) -> None:
        """Start a thread that takes part. ``start`` really starts it."""
        one = _Thread(thread.name)
        one.priority = self._random.random()

        def body() -> None:
            try:
                self._wait_for_token(one)
                sys.settrace(self._on_call)
                run()
            except KilledError:
                pass
            except BaseException as error:
                self._fail(f"{one.name} ends with {type(error).__name__}: {error}")
            finally:
                sys.settrace(None)
                one.ended = True
                if self._killed:
                    self.current = self.main
                    self.main.gate.release()
                else:
                    self._switch(one)

        thread.run = body  # type: ignore[method-assign]
        self.threads.append(one)
        start(thread)


class Lock:
    """`threading.Lock`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._held = scheduler, False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Lock it."""
        if self._held and not blocking:
            return False
        until = self._scheduler.now + timeout if timeout >= 0 else inf
        if not self._scheduler.block("a lock", lambda: not self._held, until):
            return False
        self._held = True
        return True

    def release(self) -> None:
        """Unlock it."""
        if not self._held:
            raise RuntimeError("release unlocked lock")
        self._held = False

    def locked(self) -> bool:
        """Whether it is locked."""
        return self._held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Event:
    """`threading.Event`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._set, self._waiting = scheduler, False, list[list[bool]]()

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._set

    def set(self) -> None:
        """Set it."""
        self._set = True
        for told in self._waiting:
            told[0] = True
        self._waiting.clear()

    def clear(self) -> None:
        """Unset it."""
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it was set, even if it is unset again by then."""
        if self._set:
            return True
        until = inf if timeout is None else self._scheduler.now + timeout
        told = [False]
        self._waiting.append(told)
        return self._scheduler.block("an event", lambda: told[0], until)


class Condition:
    """`threading.Condition`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._lock, self._waiting = scheduler, Lock(scheduler), list[list[bool]]()

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for `notify_all`."""
        until = inf if timeout is None else self._scheduler.now + timeout
        told = [False]
        self._waiting.append(told)
        self._lock.release()
        try:
            return self._scheduler.block("a condition", lambda: told[0], until)
        finally:
            self._lock.acquire()

    def notify_all(self) -> None:
        """Let all that wait go on."""
        for told in self._waiting:
            told[0] = True
        self._waiting.clear()


class _Poll:
    def __init__(self, pipes: Pipes) -> None:
        self._pipes, self._files = pipes, list[int]()

    def register(self, file: int, events: int) -> None:
        self._files.append(file)

    def poll(self, milliseconds: float) -> list[tuple[int, int]]:
        scheduler, (file,) = self._pipes.scheduler, self._files
        until = scheduler.now + milliseconds / 1000
        ready = milliseconds and scheduler.block("a ring", lambda: self._pipes.bytes[file] > 0, until)
        return [(file, 1)] if ready or self._pipes.bytes[file] > 0 else []


class Pipes:
    """What a bell uses of `os` and `select`."""

    POLLIN = 1

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.bytes: dict[int, int] = {}

    def pipe(self) -> tuple[int, int]:
        """Make a pipe, both of whose ends are the same number."""
        file = 1_000_000 + len(self.bytes)
        self.bytes[file] = 0
        return file, file

    def set_blocking(self, file: int, blocking: bool) -> None:
        """Nothing blocks."""

    def write(self, file: int, data: bytes) -> None:
        """Write."""
        self.bytes[file] += len(data)

    def read(self, file: int, most: int) -> bytes:
        """Read; raises `BlockingIOError` if there is nothing."""
        if not self.bytes[file]:
            raise BlockingIOError
        size = min(most, self.bytes[file])
        self.bytes[file] -= size
        return b"!" * size

    def close(self, file: int) -> None:
        """Close one end."""

    def poll(self) -> _Poll:
        """Make a poll."""
        return _Poll(self)


class Primitives:
    """What takes the place of the module `threading` in the modules of a run."""

    get_ident = staticmethod(get_ident)

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def Lock(self) -> Lock:  # noqa: N802
        """`threading.Lock`."""
        return Lock(self._scheduler)

    def Event(self) -> Event:  # noqa: N802
        """`threading.Event`."""
        return Event(self._scheduler)

    def Condition(self) -> Condition:  # noqa: N802
        """`threading.Condition`."""
        return Condition(self._scheduler)

    Thread = threading.Thread

    def start(self, thread: threading.Thread) -> None:
        """Start a thread that takes part."""
        self._scheduler.start(thread, thread.run, start_unwatched)
