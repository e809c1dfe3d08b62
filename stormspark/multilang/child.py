"""One child process: its pipes, its signs of life, and its end.

The thread that runs the task also writes to the child and reads from it. No other thread is in between, because it would cost
more to pass each message from thread to thread than to write it. A write never blocks. Bytes that the pipe does not take stay in
a buffer until the child reads more of its input. So the worker and the child can't block each other.

Each child has one **attendant** thread, which does everything that must not wait for the task. The attendant reads the child's
stderr, so that the child never blocks when it writes there. The attendant asks for signs of life, and kills a child that gives
none. It notices the child's end. Then it kills all processes that the child has forked, even if they hold the pipes open.

There are three signs of life (I13, W9): the worker has read something from the child, something of the child waits to be read,
or the child has read some of its input. So a child that works through a long queue counts as alive, and so does a child whose
messages the worker has not read yet. Only a child that owes an answer can count as stuck.
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
from stormspark.multilang.childs_line import childs_line
from stormspark.multilang.messages import Messages
from stormspark.multilang.reaper import kill_session, reaper

__all__ = ["Child"]

#: How many bytes are read or written at once.
_CHUNK = 65536
#: How many bytes a pipe holds: enough that neither process has to stop while the other one is busy.
_PIPE = 4 * _CHUNK
#: Seconds between two requests for a sign of life.
_BEAT_SECS = 1.0
#: How many seconds a child may take to end after SIGTERM, or after it has closed its output.
_GRACE_SECS = 1.0
#: How many seconds to wait at most for the end of a killed process. The kernel may need longer.
_GONE_SECS = 10.0
#: How many lines of stderr may wait to be logged, how many of the last lines an error shows, and how long a line may be.
_MOST_LINES, _LAST_LINES, _LONGEST_LINE = 1000, 20, 2000


class Child:
    """A running child process.

    ``label`` names the child's task in errors. ``send_heartbeat`` asks the child for a sign of life. The attendant calls it once
    per second while the child owes no answer.

    Code that adds bytes to ``unsent`` must hold the ``lock``, because the attendant sends too. The next `flush` sends the bytes.

    The constructor raises `MultilangError` if the child can't be started.
    """

    def __init__(
        self,
        label: str,
        command: Sequence[str],
        folder: str,
        environment: Mapping[str, str],
        messages: Messages,
        timeout_secs: float,
        send_heartbeat: Callable[[], None] = lambda: None,
    ) -> None:
        self._label, self._command, self._folder = label, command, folder
        self._timeout, self._send_heartbeat = timeout_secs, send_heartbeat
        self.messages = messages
        self.lock = threading.Lock()
        #: The time of the oldest request that the child has not answered; None if it owes no answer.
        self.asked_at: float | None = None
        self._heard_at = time.monotonic()
        self._heard = False  # whether anything was read since the last `_beat`
        #: The bytes that wait to be sent.
        self.unsent = bytearray()
        # How many bytes were sent, and how many of these the child had read at the last `_beat`.
        self._sent = self._consumed = 0
        self._stderr = _Lines()
        self._killed_because: str | None = None
        self._ended = threading.Event()
        #: Whether the child has been killed or stopped, so that nothing can be sent any more.
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
            msg = f"{label}: its child can't be started: {self.shown_command} in {folder}: {error}"
            raise MultilangError(msg) from error
        reaps.add(self._process.pid)
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._input, self._output = self._process.stdin.fileno(), self._process.stdout.fileno()
        for file in (self._input, self._output, self._process.stderr.fileno()):
            os.set_blocking(file, False)
        for file in (self._input, self._output):
            # Not every system can change the size of a pipe, and the system may limit the size for the user.
            with contextlib.suppress(OSError, AttributeError):
                fcntl.fcntl(file, fcntl.F_SETPIPE_SZ, _PIPE)
        self._epoll = select.epoll()
        self._epoll.register(self._output, select.EPOLLIN)
        self._wants_to_write = False
        # Don't use threading.Thread, because the worker would take it for a thread of user code, which may call collectors.
        _thread.start_new_thread(self._attend, ())

    @property
    def pid(self) -> int:
        """The child's process id, which is also the id of its session."""
        return self._process.pid

    @property
    def shown_command(self) -> str:
        """The command as a user would type it."""
        return shlex.join(self._command)

    # -- the conversation ------------------------------------------------------------------------------------

    def fileno(self) -> int:
        """Return a file descriptor that becomes readable when the child has written something, or can take unsent bytes.

        Two calls may return different descriptors. Once the child is killed or stopped, this returns -1.
        """
        if self.closed:
            return -1
        return self._epoll.fileno() if self._wants_to_write else self._output

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the descriptor of `fileno` is readable, for at most ``seconds``."""
        if not self.closed:
            self._epoll.poll(seconds)

    def send(self, message: Any) -> None:
        """Send a message. Bytes that the pipe does not take stay in `unsent`. Raises the errors of `Messages.encode`."""
        self.write(self.messages.encode(message))

    def write(self, data: bytes) -> None:
        """Send bytes. Those that the pipe does not take stay in `unsent`."""
        with self.lock:
            if not self.unsent and not self.closed:  # this is the usual case
                try:
                    written = os.write(self._input, data)
                except OSError:
                    written = 0  # `flush` handles the error
                self._sent += written
                if written == len(data):
                    return
                data = data[written:]
            self.unsent += data
        self.flush()

    def flush(self) -> None:
        """Write as many of the unsent bytes as the pipe takes."""
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
            except OSError:  # the child has closed its input; its last messages, or its end, will show why
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
        """Return the messages that have arrived; None if nothing has arrived. Raises `MultilangError` if the child has ended."""
        data = self.receive()
        return None if data is None else self.messages.feed(data)

    def receive(self) -> bytes | None:
        """Return the bytes that have arrived; None if nothing has arrived. Raises `MultilangError` if the child has ended."""
        if self.closed:
            what = "has ended already"
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
        """Return the lines of stderr since the last call, and how many other lines were dropped."""
        return self._stderr.take()

    # -- its end ---------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Send SIGTERM, as Storm does. Wait a moment, so that the child can end by itself. Then `kill` it."""
        if not self.closed:
            with self.lock, contextlib.suppress(OSError):
                if not self._ended.is_set():
                    os.killpg(self.pid, signal.SIGTERM)
            self._ended.wait(_GRACE_SECS)
        self.kill()

    def kill(self) -> None:
        """Kill the child now, together with all processes that it has forked."""
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
        """Kill the child, which has closed its output, and all processes that it has forked. Return an error that says why."""
        if not self._ended.wait(_GRACE_SECS):
            return self.failed("closed its output, but did not end")
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
        """Kill the child, and return an error that says ``what`` it has done."""
        self.kill()
        last = self._stderr.last
        found = childs_line("\n".join(last))
        where = f" (at {found})" if found is not None else ""
        msg = f"{self._label}: its child ({self.shown_command}, pid {self.pid}, in {self._folder}) {what}{where}"
        if unfinished := self.messages.unfinished.strip():
            msg += f"\nthe beginning of its unfinished message: {unfinished}"
        if last:
            msg += "\nits last lines on stderr:\n" + "\n".join(f"  {line}" for line in last)
        return MultilangError(msg)

    # -- the attendant ---------------------------------------------------------------------------------------

    def _attend(self) -> None:
        """Attend to the child until it has ended. This runs in the attendant's thread."""
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
            # Kill the processes that the child has forked. This comes before the wait below, because after the wait another
            # process could get the child's process id.
            kill_session(self.pid)
            while self._stderr.read_from(stderr):
                pass
            self._process.wait()
            if exited is not None:
                os.close(exited)
            self._ended.set()
        reaper().remove(self.pid)

    def _beat(self) -> None:
        """If the child owes no answer, ask for a sign of life. If it owes one and gave no sign for too long, kill it."""
        self.flush()  # an earlier request may still be in `unsent`, because the task is busy with something else
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
                    f"{self._timeout:g}: raise it if a step of the child takes longer)"
                )
                kill_session(self.pid)
                return
        if asked_at is None:
            self._send_heartbeat()


class _Lines:
    """Lines of stderr, limited in number and length. One thread reads them from the pipe, and another thread logs them."""

    def __init__(self) -> None:
        self._rest = b""
        self._lines: deque[str] = deque()
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._dropped = 0

    def read_from(self, file: int) -> bool:
        """Read the bytes that have arrived. Returns false if none have arrived, or if the pipe has ended."""
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
        """Return the lines since the last call, and how many other lines were dropped."""
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        dropped, self._dropped = self._dropped, 0
        return lines, dropped

    @property
    def last(self) -> list[str]:
        """The last lines that the child has written, whether they were taken or not."""
        rest = self._rest[:_LONGEST_LINE].decode(errors="backslashreplace").strip()
        return [*self._last, rest][-_LAST_LINES:] if rest else list(self._last)


def _unread(file: int) -> int:
    """Return how many bytes of a pipe are not read yet."""
    try:
        return int(struct.unpack("i", fcntl.ioctl(file, termios.FIONREAD, b"\0\0\0\0"))[0])
    except OSError:
        return 0


def _pidfd(pid: int) -> int | None:
    """Return a file descriptor that is readable once the process has ended.

    Returns None if the kernel has no such descriptors. Without one, the attendant notices the end within a second.
    """
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _has_ended(pid: int) -> bool:
    """Return whether a child process has ended. This does not reap the process, so it stays a zombie."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # this process ignores SIGCHLD, so the kernel has reaped the child
        return True
