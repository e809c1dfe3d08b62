"""Sends metrics to Graphite, in its plain text protocol: a line with a name, a value and a time for each sample."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

from stormspark.errors import InvalidTopologyError
from stormspark.reporting.report import Report
from stormspark.reporting.reporter import Reporter, ReporterSettings

__all__ = ["GraphiteReporter"]

_TIMEOUT_SECS = 10.0
#: What fits into a datagram on any network.
_DATAGRAM = 1400


class GraphiteReporter(Reporter):
    """Sends to ``graphite.host`` and ``graphite.port`` (2003), by ``graphite.transport`` (tcp or udp), names that begin with
    ``graphite.prefixed.with`` (Storm's ``GraphiteStormReporter``).
    """

    def prepare(self, settings: ReporterSettings, conf: Mapping[str, Any]) -> None:
        """Read where to send."""
        self._settings = settings
        self._address = settings.host_and_port("graphite", 2003)
        prefix = settings.get("graphite.prefixed.with", "", str, "a string")
        self._prefix = f"{prefix}." if prefix else ""
        transport = settings.get("graphite.transport", "tcp", str, "tcp or udp")
        if transport.lower() not in ("tcp", "udp"):
            msg = settings.wrong("graphite.transport", "tcp or udp", transport)
            raise InvalidTopologyError(msg)
        self._by_datagram = transport.lower() == "udp"

    def report(self, report: Report) -> None:
        """Send a line for each sample, over a connection of its own."""
        lines = [
            f"{self._prefix}{one.name} {one.value!r} {int(report.at)}\n".encode()
            for one in report.flat(self._settings.takes)
        ]
        if self._by_datagram:
            self._send_datagrams(lines)
            return
        with socket.create_connection(self._address, _TIMEOUT_SECS) as connection:
            connection.sendall(b"".join(lines))

    def _send_datagrams(self, lines: list[bytes]) -> None:
        family, *_, address = socket.getaddrinfo(*self._address, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as sender:
            packed = b""
            for line in lines:
                if packed and len(packed) + len(line) > _DATAGRAM:
                    sender.sendto(packed, address)
                    packed = b""
                packed += line
            if packed:
                sender.sendto(packed, address)
