"""The base class of reporters, which send all metrics of a topology somewhere at regular times (J18)."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stormspark.errors import InvalidTopologyError
from stormspark.reporting.report import Report
from stormspark.worker.host.addresses import without_brackets

__all__ = ["REPORTERS", "Reporter", "ReporterSettings"]

REPORTERS = "topology.metrics.reporters"
_PERIOD, _UNITS = "report.period", "report.period.units"
_DEFAULT_PERIOD = 10
_SECONDS = {
    "MILLISECONDS": 0.001,
    "SECONDS": 1.0,
    "MINUTES": 60.0,
    "HOURS": 3600.0,
    "DAYS": 86_400.0,
}
#: Shorter periods would cost more than they show: most figures change once per batch.
_LEAST_SECS = 1.0


class Reporter(ABC):
    """A reporter of ``topology.metrics.reporters``. It lives in the driver, on a thread of its own, and may wait.

    If a method raises, the error is logged, and the next report comes all the same.

    >>> class Count(Reporter):
    ...     def report(self, report):
    ...         print(len(report.families), "families of", report.topology)
    """

    def prepare(self, settings: ReporterSettings, conf: Mapping[str, Any]) -> None:  # noqa: B027 - there may be nothing to do
        """Begin. ``settings`` is the entry in ``topology.metrics.reporters``, and ``conf`` the topology's configuration.

        Raises `InvalidTopologyError` for an entry that can't work. This is called before the topology starts.
        """

    @abstractmethod
    def report(self, report: Report) -> None:
        """Send a report."""

    def close(self) -> None:  # noqa: B027 - there may be nothing to do
        """End, after the last report."""


@dataclass(frozen=True)
class ReporterSettings:
    """An entry of ``topology.metrics.reporters``.

    >>> entry = {"class": "console", "report.period": 2, "report.period.units": "MINUTES"}
    >>> ReporterSettings.read(entry).period_secs
    120.0
    """

    name: str
    period_secs: float
    #: Which names are reported; None: all.
    pattern: re.Pattern[str] | None
    entry: Mapping[str, Any]

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> ReporterSettings:
        """Read an entry. Raises `InvalidTopologyError` for values that can't be."""
        name, period, units = (
            entry["class"],
            entry.get(_PERIOD, _DEFAULT_PERIOD),
            entry.get(_UNITS, "SECONDS"),
        )
        if str(units).upper() not in _SECONDS:
            msg = _wrong(name, _UNITS, f"one of {', '.join(_SECONDS)}", units)
            raise InvalidTopologyError(msg)
        if isinstance(period, bool) or not isinstance(period, int | float):
            msg = _wrong(name, _PERIOD, "a number", period)
            raise InvalidTopologyError(msg)
        seconds = period * _SECONDS[str(units).upper()]
        if not _LEAST_SECS <= seconds < float("inf"):
            msg = _wrong(name, _PERIOD, "at least a second", f"{period} {units}")
            raise InvalidTopologyError(msg)
        return cls(name, seconds, _pattern(name, entry.get("filter")), entry)

    def takes(self, name: str) -> bool:
        """Return whether a sample of this name is reported."""
        return self.pattern is None or self.pattern.fullmatch(name) is not None

    def wrong(self, key: str, words: str, got: Any) -> str:
        """Return the message about a value that can't be."""
        return _wrong(self.name, key, words, got)

    def get(self, key: str, default: Any, kind: type, words: str) -> Any:
        """Return a value of the entry, in ``words`` a value of a ``kind``. Raises `InvalidTopologyError` for any other."""
        value = self.entry.get(key)
        if value is None:
            return default
        if (kind is not bool and isinstance(value, bool)) or not isinstance(value, kind):
            msg = self.wrong(key, words, value)
            raise InvalidTopologyError(msg)
        return value

    def host_and_port(
        self, prefix: str, default_port: int, default_host: str | None = None
    ) -> tuple[str, int]:
        """Return ``PREFIX.host`` and ``PREFIX.port``. Raises `InvalidTopologyError` if there is no host."""
        host = self.get(f"{prefix}.host", default_host, str, "the name or the address of a host")
        port = self.get(f"{prefix}.port", default_port, int, "the number of a port")
        if not host:
            msg = self.wrong(f"{prefix}.host", "the name or the address of a host", host)
            raise InvalidTopologyError(msg)
        if not 0 < port <= 65535:
            msg = self.wrong(f"{prefix}.port", "the number of a port", port)
            raise InvalidTopologyError(msg)
        return without_brackets(host), port


def _pattern(name: str, chosen: Any) -> re.Pattern[str] | None:
    if chosen is None:
        return None
    text = chosen.get("expression") if isinstance(chosen, Mapping) else None
    if not isinstance(text, str):
        msg = _wrong(name, "filter", "a mapping with an expression", chosen)
        raise InvalidTopologyError(msg)
    try:
        return re.compile(text)
    except re.error as error:
        msg = _wrong(name, "filter", f"a regular expression ({error})", text)
        raise InvalidTopologyError(msg) from error


def _wrong(name: str, key: str, words: str, got: Any) -> str:
    return f"{REPORTERS}: {name!r}: {key} must be {words}, got {got!r}"
