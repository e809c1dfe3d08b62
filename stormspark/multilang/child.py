"""One child process: its pipes, its end, and whether it lives.

Who does what. The task's own thread writes and reads: there is no thread between a child and its task, since handing each
message from thread to thread costs more than the message. Writing never waits: what the pipe does not take stays in a buffer
until the child reads on, so a child that writes and one that we write to can't block each other.

An **attendant** thread a child does what must not wait for the task: it reads the child's stderr, so that a flood of it stops
nobody; it asks for signs of life, and kills a child that gives none; and it notices the child's end, and takes along all that
the child has forked, also where that holds the pipes open.

What counts as a sign of life (I13, W9): any message; one that nobody has read yet; and that the child reads its input. So a child
with a long queue, or one that we do not listen to, is not taken for stuck. Only one that owes an answer can be.
"""

from __future__ import annotations

import _thread
import contextlib
import fcntl
import os
import select
import shlex
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stormspark.errors import MultilangError
from stormspark.multilang.messages import Messages
from stormspark.multilang.reaper import kill_session, reaper

__all__ = ["Child"]

#: How much is read and written at once.
_CHUNK = 65536
#: What a pipe may hold, so that neither side has to stop while the other one does something else.
_PIPE = 4 * _CHUNK
#: How often a child is asked for a sign of life.
_BEAT_SECS = 1.0
#: How long a child that is told to end may take for it.
_GRACE_SECS = 1.0
#: A killed process is gone after this, unless the kernel holds it.
_GONE_SECS = 10.0
#: Lines of stderr that wait to be logged, and the last ones, which an error shows.
_MOST_LINES, _LAST_LINES, _LONGEST_LINE = 1000, 20, 2000


class Child:
    """A running child. ``who`` names its task in errors; ``asks`` is called once a second and has it asked for a sign of life.

    Who adds to ``unsent`` holds the ``lock``, since the attendant sends too; the next `flush` sends it.
    Raises `MultilangError` where it can't be started.
    """

    def __init__(
        self,
        who: str,
        command: Sequence[str],
        folder: str,
        environment: Mapping[str, str],
        messages: Messages,
        timeout_secs: float,
        asks: Callable[[], None] = lambda: None,
    ) -> None:
        self._who, self._command, self._folder = who, command, folder
        self._timeout, self._asks = timeout_secs, asks
        self.messages = messages
        self.lock = threading.Lock()
        #: When it was first asked something that it has not answered; None: it owes nothing.
        self.asked_at: float | None = None
        self._heard_at = time.monotonic()
        self._heard = False  # since the last beat
        #: What waits to be sent.
        self.unsent = bytearray()
        self._sent = self._consumed = 0  # bytes
        self._stderr = _Lines()
        self._killed_because: str | None = None
        self._ended = threading.Event()
        #: It has ended, and nothing can be said to it any more.
        self.closed = False
        reaps = reaper()
        self.pid_folder = tempfile.mkdtemp(dir=reaps.folder)
        try:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            shutil.rmtree(self.pid_folder, ignore_errors=True)
            msg = f"{who}: its child can't be started: {self.shown_command} in {folder}: {error}"
            raise MultilangError(msg) from error
        reaps.add(self._process.pid)
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._input, self._output = self._process.stdin.fileno(), self._process.stdout.fileno()
        for file in (self._input, self._output, self._process.stderr.fileno()):
            os.set_blocking(file, False)
        for file in (self._input, self._output):
            # Not everywhere, and not more than a user may have.
            with contextlib.suppress(OSError, AttributeError):
                fcntl.fcntl(file, fcntl.F_SETPIPE_SZ, _PIPE)
        self._epoll = select.epoll()
        self._epoll.register(self._output, select.EPOLLIN)
        self._wants_to_write = False
        # Not threading.Thread: the worker would think that user code has threads now, which call collectors.
        _thread.start_new_thread(self._attend, ())

    @property
    def pid(self) -> int:
        """Its process id, which is its session's too."""
        return self._process.pid

    @property
    def shown_command(self) -> str:
        """The command as one would type it."""
        return shlex.join(self._command)

    # -- the conversation ------------------------------------------------------------------------------------

    def fileno(self) -> int:
        """Readable when there is something to read, or when it takes what waits to be sent; not always the same one."""
        if self.closed:
            return -1
        return self._epoll.fileno() if self._wants_to_write else self._output

    def wait(self, seconds: float | None = None) -> None:
        """Wait until `fileno` is readable, or for so long."""
        if not self.closed:
            self._epoll.poll(seconds)

    def send(self, message: Any) -> None:
        """Send a message, as far as the pipe takes it; see `Messages.encode` for what that raises."""
        self.say(self.messages.encode(message))

    def say(self, data: bytes) -> None:
        """Send bytes, as far as the pipe takes them."""
        with self.lock:
            if not self.unsent and not self.closed:  # as it mostly is
                try:
                    written = os.write(self._input, data)
                except OSError:
                    written = 0  # `flush` finds out
                self._sent += written
                if written == len(data):
                    return
                data = data[written:]
            self.unsent += data
        self.flush()

    def flush(self) -> None:
        """Write what waits, as far as the pipe takes it."""
        if not self.unsent or self.closed:
            return
        with self.lock:
            try:
                while self.unsent:
                    written = os.write(self._input, self.unsent[:_CHUNK])
                    del self.unsent[:written]
                    self._sent += written
            except BlockingIOError:
                pass
            except OSError:  # it has closed its input: what it says last, or its end, will tell why
                self.unsent.clear()
            self._watch_input(bool(self.unsent))

    def _watch_input(self, wanted: bool) -> None:
        if wanted != self._wants_to_write:
            self._wants_to_write = wanted
            if wanted:
                self._epoll.register(self._input, select.EPOLLOUT)
            else:
                self._epoll.unregister(self._input)

    def read(self) -> list[Any] | None:
        """The messages that have come; None if nothing has. Raises `MultilangError` when it has ended."""
        data = self.receive()
        return None if data is None else self.messages.feed(data)

    def receive(self) -> bytes | None:
        """What has come, in bytes; None if nothing has. Raises `MultilangError` when it has ended."""
        if self.closed:
            what = "was asked after its end"
            raise self.failed(what)
        try:
            data = os.read(self._output, _CHUNK)
        except BlockingIOError:
            return None
        if not data:
            raise self.died()
        self._heard = True
        return data

    def take_lines(self) -> tuple[list[str], int]:
        """What it has written to stderr since the last call, and how many lines more there were."""
        return self._stderr.take()

    # -- its end ---------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ask it to end: SIGTERM, as Storm does, and the end of its input; then `kill`."""
        if not self.closed:
            with self.lock, contextlib.suppress(OSError):
                if not self._ended.is_set():
                    os.killpg(self.pid, signal.SIGTERM)
            self._ended.wait(_GRACE_SECS)
        self.kill()

    def kill(self) -> None:
        """End it now, with all that it has forked."""
        if self.closed:
            return
        with self.lock:
            if not self._ended.is_set():
                kill_session(self.pid)
        self._ended.wait(_GONE_SECS)
        with self.lock:
            self.closed = True
            self._epoll.close()
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
                assert pipe is not None
                with contextlib.suppress(OSError):
                    pipe.close()
        shutil.rmtree(self.pid_folder, ignore_errors=True)

    def died(self) -> MultilangError:
        """The error of a child that has closed its output; kills what is left of it."""
        if not self._ended.wait(_GRACE_SECS):
            return self.failed("closed its output and went on")
        if self._killed_because is not None:
            return self.failed(self._killed_because)
        code = self._process.returncode
        how = (
            f"was killed by {signal.Signals(-code).name}"
            if code and code < 0
            else f"ended with exit code {code}"
        )
        return self.failed(f"{how}")

    def failed(self, what: str) -> MultilangError:
        """The error to raise, for ``what`` it has done; kills it."""
        self.kill()
        msg = f"{self._who}: its child ({self.shown_command}, pid {self.pid}, in {self._folder}) {what}"
        if unfinished := self.messages.unfinished.strip():
            msg += f"\nwhat it has begun to say: {unfinished}"
        if last := self._stderr.last:
            msg += "\nwhat it said last on stderr:\n" + "\n".join(f"  {line}" for line in last)
        return MultilangError(msg)

    # -- the attendant ---------------------------------------------------------------------------------------

    def _attend(self) -> None:
        """Runs in a thread until the child has ended."""
        assert self._process.stderr is not None
        stderr, exited = self._process.stderr.fileno(), _pidfd(self.pid)
        poll = select.poll()
        poll.register(stderr, select.POLLIN)
        if exited is not None:
            poll.register(exited, select.POLLIN)
        next_beat = time.monotonic() + _BEAT_SECS
        while True:
            for file, _ in poll.poll(max(0.0, next_beat - time.monotonic()) * 1000):
                if file == stderr and not self._stderr.read_from(stderr):
                    poll.unregister(stderr)
            if _has_ended(self.pid):
                break
            if time.monotonic() >= next_beat:
                next_beat = time.monotonic() + _BEAT_SECS
                self._beat()
        with self.lock:
            kill_session(
                self.pid
            )  # what it has left behind; before it is waited for, so that the number is its own
            while self._stderr.read_from(stderr):
                pass
            self._process.wait()
            if exited is not None:
                os.close(exited)
            self._ended.set()
        reaper().remove(self.pid)

    def _beat(self) -> None:
        """Once a second: has it given a sign of life since it was asked for one?"""
        self.flush()  # the question may still wait here, and the task be elsewhere
        now = time.monotonic()
        with self.lock:
            if self.closed:
                return
            consumed = self._sent - _unread(self._input)
            if self._heard or consumed != self._consumed or _unread(self._output):
                self._heard, self._consumed, self._heard_at = False, consumed, now
            asked_at = self.asked_at
            silent = now - max(asked_at, self._heard_at) if asked_at is not None else 0.0
            if silent > self._timeout:
                self._killed_because = (
                    f"gave no sign of life for {silent:.0f} s and was killed (topology.subprocess.timeout.secs is "
                    f"{self._timeout:g}; nothing that it does may last so long without a word)"
                )
                kill_session(self.pid)
                return
        if asked_at is None:
            self._asks()


class _Lines:
    """What comes on stderr, line by line; bounded, whatever comes. One thread reads, another takes."""

    def __init__(self) -> None:
        self._rest = b""
        self._lines: deque[str] = deque()
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._dropped = 0

    def read_from(self, file: int) -> bool:
        """Read what is there; false if there is nothing, or will be nothing more."""
        try:
            data = os.read(file, _CHUNK)
        except OSError:
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        if not data or len(self._rest) > _LONGEST_LINE:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            if not line.strip():
                continue
            text = line[:_LONGEST_LINE].decode(errors="backslashreplace").rstrip()
            self._last.append(text)
            if len(self._lines) < _MOST_LINES:
                self._lines.append(text)
            else:
                self._dropped += 1
        return bool(data)

    def take(self) -> tuple[list[str], int]:
        """The lines since the last call, and how many more there were."""
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        dropped, self._dropped = self._dropped, 0
        return lines, dropped

    @property
    def last(self) -> list[str]:
        """The last ones ever."""
        rest = self._rest[:_LONGEST_LINE].decode(errors="backslashreplace").strip()
        return [*self._last, rest][-_LAST_LINES:] if rest else list(self._last)


def _unread(file: int) -> int:
    """Bytes in a pipe."""
    try:
        return int(struct.unpack("i", fcntl.ioctl(file, termios.FIONREAD, b"\0\0\0\0"))[0])
    except OSError:
        return 0


def _pidfd(pid: int) -> int | None:
    """Readable once the process has ended; None where the kernel has none: then its end is noticed within a second."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _has_ended(pid: int) -> bool:
    """Whether a child is a zombie; it stays one."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # SIGCHLD is ignored here: the kernel has waited for it
        return True
