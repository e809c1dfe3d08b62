"""A connection between two processes of a topology. It carries whole messages over a socket file, TCP, or TLS on TCP.

It is like `multiprocessing.connection.Connection`, but has three more features: a deadline for each call, TLS, and an error if
the path between two hosts has gone silent. If a cable is pulled, or a firewall has forgotten a connection, neither side is
told. Without a check, a call would then wait for 15 minutes, which is Linux's limit, or for ever.

A silent path must not be confused with a slow process. While a connection is idle, the kernel's keep-alive probes find out
whether the path is silent. But while data is under way, the kernel sends no such probes. ``TCP_USER_TIMEOUT`` does not help,
because it also ends a connection to a busy process, which reads nothing although its kernel answers. So a waiting call asks the
kernel every few seconds (``TCP_INFO``) whether any data is unanswered, and when the last answer came.

One thread may receive while another thread sends. Only one thread may send at a time.
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

from stormspark.worker.host.forks import keep_from_children

__all__ = ["SILENCE_SECS", "Connection", "address_text", "has_hung_up", "local_host"]

#: The default of `stormspark.network.timeout.secs`.
SILENCE_SECS = 15.0

_LENGTH = struct.Struct("!Q")
#: A message of up to this size is sent in one piece with its length.
_SMALL_BYTES = 64 * 1024
_WANTS = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
#: The offsets of the probes, unacked and last_ack_recv fields in Linux's `struct tcp_info`. The last number is how many bytes
#: are read.
_PROBES_AT, _UNACKED_AT, _LAST_ACK_AT, _INFO_BYTES = 3, 24, 56, 104


class Connection:
    """A connection over a connected socket. Call `close` at the end.

    For TLS, ``sock`` is an `ssl.SSLSocket`, and `shake_hands` does its handshake. A path over TCP may be silent for
    ``silence_secs`` while an answer is due. Receiving raises `EOFError` if the other side has hung up between two messages. For
    any other trouble, all calls raise `OSError`. The `OSError` is a `TimeoutError` if `deadline` has passed, or if the path was
    silent for too long.
    """

    def __init__(self, sock: socket.socket, silence_secs: float = SILENCE_SECS) -> None:
        sock.setblocking(False)
        keep_from_children(sock)
        self._sock, self._tls = sock, isinstance(sock, ssl.SSLSocket)
        #: The deadline of all later calls, as a time of `time.monotonic`; None if there is no deadline.
        self.deadline: float | None = None
        # This lock is held during calls of the socket, because OpenSSL allows only one call at a time. These calls never wait.
        self._lock = threading.RLock()
        self._ahead = b""  # the byte that `poll` had to read to know that a message comes
        self._silence = silence_secs
        self._unanswered_since: float | None = None
        self._over_tcp = sock.family in (socket.AF_INET, socket.AF_INET6)
        if self._over_tcp:
            _keep_alive(sock, silence_secs)

    def shake_hands(self) -> None:
        """Do the TLS handshake. Do nothing if the connection has no TLS."""
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
        """Send an object, pickled, within ``timeout`` seconds. After a `TimeoutError` the connection is useless."""
        self.send_bytes(pickle.dumps(message, pickle.HIGHEST_PROTOCOL), timeout)

    def recv(self) -> Any:
        """Receive an object. The object is unpickled, so receive only from a side that has proved that it knows the key."""
        return pickle.loads(self.recv_bytes())

    def send_bytes(self, message: Any, timeout: float | None = None) -> None:
        """Send a message, which is any object with a buffer."""
        deadline = self._earlier(timeout)
        view = memoryview(message).cast("B")
        length = _LENGTH.pack(len(view))
        if len(view) <= _SMALL_BYTES:
            self._write(memoryview(length + view), deadline)
        else:
            self._write(memoryview(length), deadline)
            self._write(view, deadline)

    def recv_bytes(self, maxlength: int | None = None) -> bytes | bytearray:
        """Receive a message. Raises `OSError` if the message is longer than ``maxlength``."""
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
        """Return whether a message, or the end of the connection, comes within ``timeout`` seconds."""
        deadline = self._earlier(timeout)
        while not self._ahead:
            if not self._ready(select.POLLIN, deadline):
                return False
            if not self._tls:
                return True
            try:  # data may belong to TLS itself; only a byte that is read shows that a message comes
                with self._lock:
                    self._ahead = self._sock.recv(1)
            except _WANTS:
                continue
            except OSError:  # the path was cut, and the next receive raises the error
                return True
            return True
        return True

    def look_for_silence(self) -> None:
        """Raise `TimeoutError` if the path to another host has been silent for too long.

        Calls that wait do this by themselves. Whoever waits for several connections at once calls it every few seconds.
        """
        if self._over_tcp:
            self._look_for_silence()

    def hang_up(self) -> None:
        """End both directions. A call that waits in another thread returns with an error. `close` must still be called."""
        with contextlib.suppress(OSError):  # the connection has ended already
            # This is not the method of `ssl.SSLSocket`, because that drops TLS first. A call in another thread would then send
            # plain text and read cipher text.
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the descriptor, which ends the connection. If another thread waits in a call, `hang_up` has to come first."""
        with self._lock:  # no other thread is in a call of the socket now; see `hang_up`
            self._sock.close()

    def fileno(self) -> int:
        """Return the descriptor, for `multiprocessing.connection.wait`. The descriptor becomes readable when the next message
        comes.

        With TLS, too: a message begins with a record of its own, and OpenSSL takes one record at a time from the socket. So a
        received message leaves nothing of the next one in OpenSSL, where no descriptor would show it.
        """
        return self._sock.fileno()

    @property
    def socket(self) -> socket.socket:
        """The socket itself, for questions about its address and options."""
        return self._sock

    def __del__(self) -> None:
        # Close the connection, as `multiprocessing` does. A forwarder's connection has to end with its Spark task, even if the
        # task failed.
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
        """Fill ``view`` with received bytes. If ``between``, no message has begun yet, so the other side may hang up now."""
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
        """Wait until the socket is ready, or broken. Return false after the deadline."""
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
        """Raise `TimeoutError` if data that this side has sent was unanswered for too long."""
        last_ack = _unanswered(self._sock)
        if last_ack is None:
            self._unanswered_since = None
            return
        # The silence does not begin before the first look that found data unanswered. Before that look the connection may have
        # been idle for hours.
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
    """Return whether a call failed because the other side ended the connection. For example, a connection ends with the process
    of one side.

    Any other error means that the path between the two sides is broken.

    >>> has_hung_up(EOFError()), has_hung_up(ConnectionResetError()), has_hung_up(TimeoutError())
    (True, True, False)
    """
    ends = (EOFError, ConnectionResetError, BrokenPipeError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
    return isinstance(error, ends)


def local_host(connection: Connection) -> str | None:
    """Return the address of this side of a TCP connection; None if the connection uses a socket file."""
    sock = connection.socket
    return None if sock.family == socket.AF_UNIX else str(sock.getsockname()[0])


def address_text(sock: socket.socket) -> str:
    """Describe the other side of a socket, for people."""
    try:
        address = sock.getpeername()
    except OSError:
        return "the other side"
    return f"{address[0]} port {address[1]}" if isinstance(address, tuple) else "a process of this host"


def _keep_alive(sock: socket.socket, silence_secs: float) -> None:
    # A request is several small writes followed by a read. Nagle's algorithm would delay the last write by 40 ms.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        # The first of three probes is sent after half of the time. If no probe is answered, the connection ends after the whole
        # time.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, max(1, round(silence_secs / 2)))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(1, round(silence_secs / 6)))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)


def _unanswered(sock: socket.socket) -> float | None:
    """If data from this side is unanswered, return how many seconds ago the other side's kernel last answered; else return
    None.
    """
    if not hasattr(socket, "TCP_INFO"):
        return None
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    if len(info) < _LAST_ACK_AT + 4:
        return None
    (unacked,), (last_ack,) = (struct.unpack_from("=I", info, at) for at in (_UNACKED_AT, _LAST_ACK_AT))
    # Unanswered probes count, too. The kernel sends probes to a side that has no room to receive, and that side's kernel
    # answers them.
    return last_ack / 1000 if unacked or info[_PROBES_AT] else None
