"""Connections between the processes of one topology. One side listens, the other dials, and both prove that they know the key.

The driver, Spark's Python processes and the workers communicate over `Connection`. The handshake is the standard one of
`multiprocessing` (HMAC of a challenge, both ways). Nothing is unpickled before the handshake has succeeded. If Spark encrypts,
TCP connections use TLS (`Key`), and the handshake runs inside TLS. This module uses sockets of its own instead of a standard
``Listener``. A ``Listener`` does its handshake inside ``accept``, so one silent stranger would lock everybody out. A
``Listener`` also can't be closed while a thread waits in ``accept``.

A *stranger* is a side that has not proved yet that it knows the key. On an open network a stranger may be anybody. A stranger has
`_HANDSHAKE_SECS` for the proof. A socket allows at most `STRANGERS` strangers, each in a thread of its own. While there are
this many, no more connections are accepted, and the oldest stranger is turned away once it has taken longer than a handshake
should need (`_PATIENCE_SECS`). So a dialler may be turned away through no fault of its own. The dialler tries again, with longer
and longer pauses, until its time is up.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable
from multiprocessing import AuthenticationError
from multiprocessing.connection import answer_challenge, deliver_challenge
from typing import NamedTuple

from stormspark.worker.host.addresses import Address, listen
from stormspark.worker.host.connection import SILENCE_SECS, Connection, address_text
from stormspark.worker.host.forks import keep_from_children
from stormspark.worker.host.key import Key

__all__ = ["STRANGERS", "Door", "Endpoint", "dial", "remove_if_dead"]

_log = logging.getLogger(__name__)

_BACKLOG = 1024
_HANDSHAKE_SECS = 10.0
#: How many strangers each socket allows at the same time.
STRANGERS = 64
#: The last message of the handshake. A dialler that has received this message is not turned away any more.
_COME_IN = b"in"
#: A stranger that has taken longer than this may have to make room for another stranger.
_PATIENCE_SECS = 1.0
#: The first pause of a dialler before it tries again, and the longest pause.
_FIRST_PAUSE_SECS, _LONGEST_PAUSE_SECS = 0.05, 1.0
_ALIVE_SECS = 1.0
#: The errors of `accept` that mean that this process or its host has no room for one more connection. The lack passes after a
#: while.
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
#: How long a `Door` waits for room for one more connection, and the least time between two warnings about this.
_ROOM_SECS, _LOG_SECS = 0.2, 60.0


class Endpoint(NamedTuple):
    """The address of a process: a socket file for processes on its host, and (host, port) for all other processes, if there are
    any.
    """

    unix: str
    tcp: tuple[str, int] | None = None


class Door:
    """A listening endpoint. It passes each authenticated connection to ``serve``, in a thread of its own.

    If ``address`` is None, the door listens only at the socket file. ``serve`` may raise `OSError` or `EOFError` when its peer
    goes away. Such an error ends only this connection. When ``serve`` returns, the connection is closed, unless ``serve`` returns
    true: then somebody else closes it.

    Raises `UnsupportedEnvironmentError` if no process can listen at that address.
    """

    def __init__(
        self,
        unix: str,
        address: Address | None,
        key: Key,
        serve: Callable[[Connection], bool | None],
        name: str,
        silence_secs: float = SILENCE_SECS,
    ) -> None:
        self._key, self._serve, self._name, self._silence = key, serve, name, silence_secs
        self._closed = threading.Event()
        self._sockets = [_listening_file(unix)]
        tcp = None
        if address is not None:
            try:
                self._sockets.append(listen(address))
            except BaseException:
                self.endpoint = Endpoint(unix)
                self.close()
                raise
            tcp = (address.host, int(self._sockets[1].getsockname()[1]))
        self.endpoint = Endpoint(unix, tcp)
        for listening in self._sockets:
            keep_from_children(listening)
            threading.Thread(target=self._accept, args=(listening,), name=f"{name}-door", daemon=True).start()

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed.is_set()

    def close(self) -> None:
        """Accept no new connections. Open connections stay open."""
        self._closed.set()
        for listening in self._sockets:
            # `close` is not enough: a thread that waits in accept() keeps the socket open, and would wait for ever
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            listening.close()
        with contextlib.suppress(OSError):
            os.unlink(self.endpoint.unix)

    def _accept(self, listening: socket.socket) -> None:
        strangers = _Strangers()
        logged_at = -_LOG_SECS
        while True:
            strangers.make_room()
            try:
                sock, _ = listening.accept()
            except OSError as error:
                if self._closed.is_set() or not _listens(listening):
                    return
                if error.errno in _NO_ROOM:
                    if time.monotonic() - logged_at >= _LOG_SECS:
                        logged_at = time.monotonic()
                        _log.warning("%s takes no new connections for now: %s", self._name, error)
                    self._closed.wait(_ROOM_SECS)
                continue  # otherwise the peer was gone before its connection was accepted
            with contextlib.suppress(OSError, RuntimeError):  # the peer is gone, or no thread starts
                self._let_prove(sock, strangers)

    def _let_prove(self, sock: socket.socket, strangers: _Strangers) -> None:
        try:
            if self._key.certificate and sock.family != socket.AF_UNIX:
                context = self._key.tls(listens=True)
                sock = context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
            connection = Connection(sock, self._silence)
            strangers.add(connection)
            thread = threading.Thread(target=self._welcome, args=(connection, strangers), name=self._name)
            thread.daemon = True
            try:
                thread.start()
            except BaseException:
                strangers.remove(connection)
                raise
        except BaseException:
            sock.close()
            raise

    def _welcome(self, connection: Connection, strangers: _Strangers) -> None:
        kept: bool | None = False
        try:
            try:
                proved = self._prove(connection)
            finally:
                in_time = strangers.remove(connection)
            if proved and in_time:
                connection.send_bytes(_COME_IN)
                connection.deadline = None
                kept = self._serve(connection)
        except (OSError, EOFError):
            pass
        finally:
            if not kept:
                connection.close()

    def _prove(self, connection: Connection) -> bool:
        """Do the handshake with a stranger. Return false if the stranger does not know the key, or uses another protocol."""
        connection.deadline = time.monotonic() + _HANDSHAKE_SECS
        # The standard handshake also raises errors that have no type of their own.
        with contextlib.suppress(Exception):
            connection.shake_hands()
            deliver_challenge(connection, self._key.secret)  # type: ignore[arg-type]
            answer_challenge(connection, self._key.secret)  # type: ignore[arg-type]
            return True
        return False


class _Strangers:
    """The strangers of one listening socket, oldest first. Their connections have not proved yet that they know the key."""

    def __init__(self) -> None:
        self._came: dict[Connection, float] = {}
        self._changed = threading.Condition()

    def make_room(self) -> None:
        """Wait until there is room for one more stranger. Turn the oldest stranger away if it has taken too long."""
        with self._changed:
            while len(self._came) >= STRANGERS:
                oldest, came = next(iter(self._came.items()))
                left = came + _PATIENCE_SECS - time.monotonic()
                if left > 0:
                    self._changed.wait(left)
                else:
                    del self._came[oldest]
                    oldest.hang_up()

    def add(self, connection: Connection) -> None:
        """Add a stranger."""
        with self._changed:
            self._came[connection] = time.monotonic()

    def remove(self, connection: Connection) -> bool:
        """Remove a stranger. Return false if the stranger was turned away meanwhile."""
        with self._changed:
            self._changed.notify()
            return self._came.pop(connection, None) is not None


def dial(endpoint: Endpoint, key: Key, silence_secs: float = SILENCE_SECS) -> Connection:
    """Connect to ``endpoint``, by its socket file if the file is on this host, or else by TCP.

    If the other side has no room or does not answer, try again for ``silence_secs``. Raises `OSError` if no process answers, or
    at once if no process listens at the endpoint. Raises `AuthenticationError` if the other side has a different key.
    """
    end = time.monotonic() + silence_secs
    pause = _FIRST_PAUSE_SECS
    while True:
        try:
            return _dial_once(endpoint, key, silence_secs, end)
        except ConnectionRefusedError:
            raise  # nobody listens
        except (ConnectionError, TimeoutError, BlockingIOError, ssl.SSLEOFError):
            if time.monotonic() + pause >= end:
                raise
        time.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(2 * pause, _LONGEST_PAUSE_SECS)


def _dial_once(endpoint: Endpoint, key: Key, silence_secs: float, end: float) -> Connection:
    left = max(0.1, end - time.monotonic())
    # The file's name is random, so a file of that name on this host is the right one.
    if os.path.exists(endpoint.unix) or endpoint.tcp is None:
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.settimeout(left)
            sock.connect(endpoint.unix)
        except BaseException:
            sock.close()
            raise
    else:
        sock = socket.create_connection(endpoint.tcp, min(left, _HANDSHAKE_SECS))
        if key.certificate:
            sock = key.tls(listens=False).wrap_socket(sock, do_handshake_on_connect=False)
    connection = Connection(sock, silence_secs)
    try:
        connection.deadline = min(end, time.monotonic() + _HANDSHAKE_SECS)
        connection.shake_hands()
        answer_challenge(connection, key.secret)  # type: ignore[arg-type]
        deliver_challenge(connection, key.secret)  # type: ignore[arg-type]
        connection.recv_bytes(len(_COME_IN))
        connection.deadline = None
    except EOFError as gone:
        msg = f"{address_text(sock)} hung up during the handshake"
        connection.close()
        raise ConnectionResetError(msg) from gone
    except AssertionError as strange:
        msg = f"{address_text(sock)} does not use stormspark's protocol"
        connection.close()
        raise AuthenticationError(msg) from strange
    except BaseException:
        connection.close()
        raise
    return connection


def remove_if_dead(endpoint: Endpoint) -> None:
    """Remove the socket file of a process, unless the process still lives. A killed process leaves its file behind."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(_ALIVE_SECS)
        try:
            sock.connect(endpoint.unix)
            # A process that is just ending still accepts connections for a moment. Only a living process sends the challenge.
            if sock.recv(1):
                return
        except (TimeoutError, BlockingIOError):  # other diallers wait to be accepted, so the process lives
            return
        except OSError:
            pass
    with contextlib.suppress(OSError):
        os.unlink(endpoint.unix)


def _listening_file(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(path)
    sock.listen(_BACKLOG)
    return sock


def _listens(sock: socket.socket) -> bool:
    with contextlib.suppress(OSError):
        return bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    return False
