"""Connections between the processes of one topology: listened on, dialled, and proved to know the topology's
key.

Driver, Spark's Python processes and workers speak over `multiprocessing.connection.Connection`, which frames
messages. Sockets are made here rather than by its ``Listener``: that one shakes hands inside ``accept``, so
one silent stranger would lock everybody out, and it can't be closed while a thread waits in it. The handshake
is the standard one (HMAC of a challenge, both ways); nothing is unpickled before it has succeeded. The key is
random and lives as long as the driver does. Traffic is not encrypted, as Spark's own is not unless asked: TCP
is for networks that Spark's executors may trust.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import NamedTuple

__all__ = ["Door", "Endpoint", "dial", "peer_host", "remove_if_dead"]

_BACKLOG = 128
_HANDSHAKE_SECS = 10.0
_ALIVE_SECS = 1.0


class Endpoint(NamedTuple):
    """Where a process can be reached: a socket file for those on its host, and (host, port) for the others,
    if any.
    """

    unix: str
    tcp: tuple[str, int] | None = None


class Door:
    """Listens at an endpoint and hands each authenticated connection to ``serve``, in a thread of its own.

    ``host`` None means the socket file only. ``serve`` may raise `OSError` or `EOFError` when its peer goes
    away: that ends its connection and nothing else.
    """

    def __init__(
        self, unix: str, host: str | None, key: bytes, serve: Callable[[Connection], None], name: str
    ) -> None:
        self._key, self._serve, self._name = key, serve, name
        self._sockets = [_listening(socket.AF_UNIX, unix)]
        tcp = None
        if host is not None:
            self._sockets.append(_listening(socket.AF_INET, (host, 0)))
            tcp = (host, int(self._sockets[1].getsockname()[1]))
        self.endpoint = Endpoint(unix, tcp)
        for listening in self._sockets:
            threading.Thread(target=self._accept, args=(listening,), name=f"{name}-door", daemon=True).start()

    def close(self) -> None:
        """Take no new connections; those that are open stay."""
        for listening in self._sockets:
            # shutdown, not only close: a thread that waits in accept() holds the socket open and would never
            # hear of it
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            listening.close()
        with contextlib.suppress(OSError):
            os.unlink(self.endpoint.unix)

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                sock, _ = listening.accept()
            except OSError:
                if listening.fileno() < 0 or not _listens(listening):
                    return
                continue  # the peer was gone before we came to it, or there are too many open files for now
            threading.Thread(target=self._welcome, args=(sock,), name=self._name, daemon=True).start()

    def _welcome(self, sock: socket.socket) -> None:
        with _connection(sock) as connection, contextlib.suppress(OSError, EOFError, AuthenticationError):
            deliver_challenge(connection, self._key)
            answer_challenge(connection, self._key)
            self._serve(connection)


def dial(endpoint: Endpoint, key: bytes) -> Connection:
    """Connect to ``endpoint``: by its socket file if that is on this host, else by TCP.

    Raises `OSError` if nobody answers there, and `AuthenticationError` where the other side has another key.
    """
    # The file's name is random, so one that exists here is the one that is meant.
    if os.path.exists(endpoint.unix) or endpoint.tcp is None:
        sock = socket.socket(socket.AF_UNIX)
        address: str | tuple[str, int] = endpoint.unix
    else:
        sock = socket.socket(socket.AF_INET)
        address = endpoint.tcp
    try:
        sock.settimeout(_HANDSHAKE_SECS)
        sock.connect(address)
    except OSError:
        sock.close()
        raise
    connection = _connection(sock)
    try:
        answer_challenge(connection, key)
        deliver_challenge(connection, key)
    except EOFError as gone:
        connection.close()
        msg = f"{address} hung up during the handshake"
        raise ConnectionResetError(msg) from gone
    except BaseException:
        connection.close()
        raise
    return connection


def peer_host(connection: Connection) -> str | None:
    """The address that the other side of a TCP connection has; None for one on this host."""
    with socket.socket(fileno=os.dup(connection.fileno())) as sock:
        return str(sock.getpeername()[0]) if sock.family == socket.AF_INET else None


def remove_if_dead(endpoint: Endpoint) -> None:
    """Remove the socket file of a process that was killed."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(_ALIVE_SECS)
        try:
            sock.connect(endpoint.unix)
            # A process that is just being torn down still lets us in, for a moment; one that lives speaks first.
            if sock.recv(1):
                return
        except TimeoutError:
            return
        except OSError:
            pass
    with contextlib.suppress(OSError):
        os.unlink(endpoint.unix)


def _listening(family: socket.AddressFamily, address: str | tuple[str, int]) -> socket.socket:
    sock = socket.socket(family)
    sock.bind(address)
    sock.listen(_BACKLOG)
    return sock


def _listens(sock: socket.socket) -> bool:
    with contextlib.suppress(OSError):
        return bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    return False


def _connection(sock: socket.socket) -> Connection:
    sock.setblocking(True)
    if sock.family == socket.AF_INET:
        # A request is several small writes followed by a read: Nagle's algorithm would hold the last one back
        # for 40 ms.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return Connection(sock.detach())
