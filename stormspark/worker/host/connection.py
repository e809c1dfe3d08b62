"""A connection between two processes of a topology: whole messages over a socket file, TCP, or TLS on TCP.

It is `multiprocessing.connection.Connection` with what that one lacks: a deadline for each call, TLS, and an end where the
path between two hosts has gone silent. A cable that is pulled and a firewall that forgets send nothing, so without a look
of our own a call waits for Linux's 15 minutes, or for ever.

How silence is told from patience. Keep-alive probes an idle connection. While data is under way the kernel sends no such
probes, and ``TCP_USER_TIMEOUT`` is no help: it also ends a connection whose other side answers and does not read, as a
busy process does. So whoever waits asks the kernel every few seconds (``TCP_INFO``) whether something is unanswered, and when
the last answer came. A side that reads nothing still answers.

One thread may receive while others send, one at a time.
"""

from __future__ import annotations

import contextlib
import errno
import pickle
import select
import socket
import ssl
import struct
import threading
import time
from types import TracebackType
from typing import Any

__all__ = ["SILENCE_SECS", "Connection", "address_text", "has_hung_up", "local_host"]

#: The default of `stormspark.network.timeout.secs`.
SILENCE_SECS = 15.0

_LENGTH = struct.Struct("!Q")
#: Up to this size a message leaves in one piece with its length.
_SMALL_BYTES = 64 * 1024
_WANTS = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
#: Where `struct tcp_info` of Linux has what we ask for: probes; unacked; last_ack_recv.
_PROBES_AT, _UNACKED_AT, _LAST_ACK_AT, _INFO_BYTES = 3, 24, 56, 104


class Connection:
    """Made of a socket that is connected (and, for TLS, wrapped but not shaken hands); `close` it.

    ``silence_secs`` is how long a path over TCP may be silent while something is awaited of it. All calls raise `EOFError`
    where the other side has hung up between two messages, and `OSError` for any other trouble: `TimeoutError` after
    ``deadline`` (a time of `time.monotonic`) and after the silence.
    """

    def __init__(self, sock: socket.socket, silence_secs: float = SILENCE_SECS) -> None:
        sock.setblocking(False)
        self._sock, self._tls = sock, isinstance(sock, ssl.SSLSocket)
        #: Of each call that is made from now on.
        self.deadline: float | None = None
        self._lock = threading.RLock()  # held for calls that do not wait: OpenSSL wants one at a time
        self._ahead = b""  # what `poll` had to read to know that there is something
        self._silence = silence_secs
        self._unanswered_since: float | None = None
        self._over_tcp = sock.family in (socket.AF_INET, socket.AF_INET6)
        if self._over_tcp:
            _keep_alive(sock, silence_secs)

    def shake_hands(self) -> None:
        """Begin to speak TLS, where that is spoken."""
        while isinstance(self._sock, ssl.SSLSocket):
            try:
                with self._lock:
                    self._sock.do_handshake()
                return
            except ssl.SSLWantReadError:
                self._wait(select.POLLIN, self.deadline)
            except ssl.SSLWantWriteError:
                self._wait(select.POLLOUT, self.deadline)

    def send(self, message: object, timeout: float | None = None) -> None:
        """Send an object, pickled; in at most ``timeout`` seconds. After a `TimeoutError` the connection is of no use."""
        self.send_bytes(pickle.dumps(message, pickle.HIGHEST_PROTOCOL), timeout)

    def recv(self) -> Any:
        """Receive an object. It is unpickled, so ask only who has proved to know the key."""
        return pickle.loads(self.recv_bytes())

    def send_bytes(self, message: Any, timeout: float | None = None) -> None:
        """Send a message: anything that has a buffer."""
        deadline = self._earlier(timeout)
        view = memoryview(message).cast("B")
        length = _LENGTH.pack(len(view))
        if len(view) <= _SMALL_BYTES:
            self._write(memoryview(length + view), deadline)
        else:
            self._write(memoryview(length), deadline)
            self._write(view, deadline)

    def recv_bytes(self, maxlength: int | None = None) -> bytes | bytearray:
        """Receive a message. A longer one than ``maxlength`` is an `OSError`."""
        length = bytearray(_LENGTH.size)
        self._read(memoryview(length), between=True)
        (size,) = _LENGTH.unpack(length)
        if maxlength is not None and size > maxlength:
            msg = f"a message of {size} bytes where at most {maxlength} were expected"
            raise OSError(msg)
        message = bytearray(size)
        self._read(memoryview(message))
        return message if maxlength is None else bytes(message)

    def poll(self, timeout: float = 0.0) -> bool:
        """Whether a message, or the end, comes within ``timeout`` seconds."""
        deadline = self._earlier(timeout)
        while not self._ahead:
            if not self._ready(select.POLLIN, deadline):
                return False
            if not self._tls:
                return True
            try:  # what comes by TLS need not be ours
                with self._lock:
                    self._ahead = self._sock.recv(1)
            except _WANTS:
                continue
            except OSError:  # the end, of a path that was cut: whoever receives hears of it
                return True
            return True
        return True

    def hang_up(self) -> None:
        """End both directions; whoever waits in a call hears of it. `close` is still to be called."""
        with contextlib.suppress(OSError):  # it has ended already
            # Not the method of `ssl.SSLSocket`: that forgets TLS first, so that a call of another thread would send in plain text
            # and read cipher text.
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)

    def close(self) -> None:
        """Hang up, and let go of the descriptor."""
        with self._lock:  # between two calls, for the reason that `hang_up` has
            self._sock.close()

    def fileno(self) -> int:
        """The descriptor, for `multiprocessing.connection.wait`: between two messages it is readable when the next one comes."""
        return self._sock.fileno()

    @property
    def socket(self) -> socket.socket:
        """The socket itself, to look at."""
        return self._sock

    def __del__(self) -> None:
        # As the standard one does: a forwarder's goes with the task that gave up.
        if hasattr(self, "_sock"):
            self._sock.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- bytes -----------------------------------------------------------------------------------------------

    def _read(self, view: memoryview, between: bool = False) -> None:
        """Fill ``view``; ``between``: two messages, so that the other side may end here."""
        whole = len(view)
        while view:
            if self._ahead:
                count, view[:1], self._ahead = 1, self._ahead, b""
            else:
                try:
                    with self._lock:
                        count = self._sock.recv_into(view)
                except (BlockingIOError, ssl.SSLWantReadError):
                    self._wait(select.POLLIN, self.deadline)
                    continue
                except ssl.SSLWantWriteError:
                    self._wait(select.POLLOUT, self.deadline)
                    continue
                except TimeoutError as error:
                    raise self._silent() from error
            if not count:
                if between and len(view) == whole:
                    raise EOFError
                msg = "the other side hung up in the middle of a message"
                raise ConnectionResetError(msg)
            view = view[count:]

    def _write(self, view: memoryview, deadline: float | None) -> None:
        while view:
            try:
                with self._lock:
                    count = self._sock.send(view)
            except (BlockingIOError, ssl.SSLWantWriteError):
                self._wait(select.POLLOUT, deadline)
            except ssl.SSLWantReadError:
                self._wait(select.POLLIN, deadline)
            except TimeoutError as error:
                raise self._silent() from error
            else:
                view = view[count:]

    # -- time ------------------------------------------------------------------------------------------------

    def _earlier(self, timeout: float | None) -> float | None:
        if timeout is None:
            return self.deadline
        deadline = time.monotonic() + timeout
        return deadline if self.deadline is None else min(deadline, self.deadline)

    def _wait(self, events: int, deadline: float | None) -> None:
        if not self._ready(events, deadline):
            msg = f"{address_text(self._sock)} took too long"
            raise TimeoutError(msg)

    def _ready(self, events: int, deadline: float | None) -> bool:
        """Wait until the socket is ready, or broken; false after the deadline."""
        descriptor = self._sock.fileno()
        if descriptor < 0:
            raise OSError(errno.EBADF, "the connection is closed")
        waiting = select.poll()
        waiting.register(descriptor, events)
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            look = self._silence / 4 if self._over_tcp else None
            pause = min((secs for secs in (left, look) if secs is not None), default=None)
            if waiting.poll(None if pause is None else pause * 1000):
                return True
            if left is not None and pause == left:
                return False
            self._look_for_silence()

    def _look_for_silence(self) -> None:
        """Raise `TimeoutError` where what we sent has been unanswered for too long."""
        last_ack = _unanswered(self._sock)
        if last_ack is None:
            self._unanswered_since = None
            return
        # Never earlier than we first saw it: before that the connection may have been idle for hours.
        now = time.monotonic()
        since = now if self._unanswered_since is None else max(self._unanswered_since, now - last_ack)
        self._unanswered_since = since
        if now - since >= self._silence:
            raise self._silent()

    def _silent(self) -> TimeoutError:
        return TimeoutError(
            f"nothing came back from {address_text(self._sock)} for {self._silence:g} s (stormspark.network.timeout.secs): the "
            f"path to it is cut"
        )


def has_hung_up(error: BaseException) -> bool:
    """Whether a call failed because the other side ended the connection, as a process does that ends. All else is the path's.

    >>> has_hung_up(EOFError()), has_hung_up(ConnectionResetError()), has_hung_up(TimeoutError())
    (True, True, False)
    """
    ends = (EOFError, ConnectionResetError, BrokenPipeError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
    return isinstance(error, ends)


def local_host(connection: Connection) -> str | None:
    """The address that this side of a TCP connection has; None for one on this host."""
    sock = connection.socket
    return None if sock.family == socket.AF_UNIX else str(sock.getsockname()[0])


def address_text(sock: socket.socket) -> str:
    """The other side of a socket, for people."""
    try:
        address = sock.getpeername()
    except OSError:
        return "the other side"
    return f"{address[0]} port {address[1]}" if isinstance(address, tuple) else "a process of this host"


def _keep_alive(sock: socket.socket, silence_secs: float) -> None:
    # A request is several small writes followed by a read: Nagle's algorithm would hold the last one back for 40 ms.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        # Half of the time idle, then three probes in the other half.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, max(1, round(silence_secs / 2)))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(1, round(silence_secs / 6)))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)


def _unanswered(sock: socket.socket) -> float | None:
    """Seconds since the other side's kernel answered last, if something that we sent is unanswered; else None."""
    if not hasattr(socket, "TCP_INFO"):
        return None
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    if len(info) < _LAST_ACK_AT + 4:
        return None
    (unacked,), (last_ack,) = (struct.unpack_from("=I", info, at) for at in (_UNACKED_AT, _LAST_ACK_AT))
    # Probes: of a side that has no room. They are answered as long as it is there.
    return last_ack / 1000 if unacked or info[_PROBES_AT] else None
