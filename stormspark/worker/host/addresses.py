"""The TCP address where a process listens, and the address by which others reach the process. The two differ behind NAT and in
containers.

Other processes reach a worker by the host name of the Spark executor beside it. Spark executors reach each other by their host
names, so these names are right in any cluster that works. `executor_hosts` finds both addresses on the command line of the
executor's JVM, or in its environment.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from stormspark.errors import UnsupportedEnvironmentError

__all__ = ["ANY_PORT", "Address", "Ports", "command_line", "executor_hosts", "listen", "without_brackets"]

_BACKLOG = 1024


class Ports(NamedTuple):
    """A range of ports. A process takes ``first``, or if that port is in use, the first free port of the next ``retries``
    ports.

    Spark does the same with ``spark.port.maxRetries``. If ``first`` is 0, the system chooses any free port. ``key`` is the name
    of the setting, for error messages.
    """

    first: int = 0
    retries: int = 16
    key: str = "port"


ANY_PORT = Ports()


class Address(NamedTuple):
    """The address of a process. Other processes dial ``host``.

    The process listens at ``bind``. Without ``bind`` it listens at ``host`` if its machine has that address, or else at all
    addresses of its machine.
    """

    host: str
    bind: str | None = None
    ports: Ports = ANY_PORT


def listen(address: Address) -> socket.socket:
    """Return a socket that listens at ``address``.

    If no process can listen there, raises `UnsupportedEnvironmentError`, with a message of one line.
    """
    wanted = address.bind or address.host
    for family, bind in (*_resolved(wanted), *(() if address.bind else _anywhere())):
        try:
            return _bound(family, bind, address.ports)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise _none_free(wanted, address.ports) from error
            if error.errno == errno.EACCES:
                msg = f"{wanted}, port {address.ports.first} ({address.ports.key}): {error.strerror}"
                raise UnsupportedEnvironmentError(msg) from error
    msg = (
        f"{wanted} is not an address of this host, so no process can listen there: set spark.driver.bindAddress or "
        f"SPARK_LOCAL_IP"
    )
    raise UnsupportedEnvironmentError(msg)


def executor_hosts(command: Sequence[str], environment: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return the host by which others reach the Spark executor with this command line, and the host where the executor listens.

    A host is None if neither the command line nor the environment names it.

    >>> executor_hosts(["java", "--hostname", "10.1.2.3", "--bind-address", "0.0.0.0"], {})
    ('10.1.2.3', '0.0.0.0')
    >>> executor_hosts(["java"], {"SPARK_LOCAL_IP": "[fd00::7]"})
    ('fd00::7', 'fd00::7')
    """
    options = dict(itertools.pairwise(command))
    local = environment.get("SPARK_LOCAL_IP")
    host = options.get("--hostname") or environment.get("SPARK_LOCAL_HOSTNAME") or local
    bind = options.get("--bind-address") or local
    return host and without_brackets(host), bind and without_brackets(bind)


def command_line(pid: int) -> list[str]:
    """Return the command line of a process as a list of words; an empty list if the command line can't be read."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
    return []


def without_brackets(host: str) -> str:
    """Return a host without the brackets that an IPv6 address has in a URL.

    >>> without_brackets("[::1]"), without_brackets("::1"), without_brackets("host")
    ('::1', '::1', 'host')
    """
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def _resolved(host: str) -> list[tuple[int, str]]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        return []
    return [(family, str(address[0])) for family, _, _, _, address in found]


def _anywhere() -> list[tuple[int, str]]:
    return [(socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0")]


def _bound(family: int, host: str, ports: Ports) -> socket.socket:
    for port in range(ports.first, ports.first + ports.retries + 1 if ports.first else 1):
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            if ports.first:  # so that a later process can take this fixed port at once
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6 and host == "::":
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            sock.bind((host, port))
            sock.listen(_BACKLOG)
            return sock
        except OSError as error:
            sock.close()
            if error.errno != errno.EADDRINUSE or port >= min(ports.first + ports.retries, 65535):
                raise
    raise AssertionError(ports)


def _none_free(host: str, ports: Ports) -> UnsupportedEnvironmentError:
    return UnsupportedEnvironmentError(
        f"no port of {ports.first} to {min(ports.first + ports.retries, 65535)} is free at {host}: set another "
        f"{ports.key}, or allow more ports (stormspark.port.max.retries)"
    )
