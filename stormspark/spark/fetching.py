"""Watches how Spark's JVM fetches packages when it starts, and says in one sentence that it can't.

Ivy, which fetches them, tries each repository for each jar, and waits for minutes if a network swallows its packets. So this
module gives up if nothing has come for a while and no repository can be reached.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

from stormspark.config import DELTA_PACKAGE
from stormspark.errors import UnsupportedEnvironmentError

__all__ = ["PACKAGES", "Fetching", "missing_packages", "not_fetched", "not_kept"]

PACKAGES = "spark.jars.packages"

#: If nothing comes for this long, the repositories are tried, and each has so long to accept a connection. If one does, its
#: answer may take longer.
_SILENT_SECS, _CONNECT_SECS, _MOST_SILENT_SECS = 6.0, 2.0, 60.0
_LOOK_SECS = 0.5
_BEGINS = ":: resolving dependencies ::"
#: What Ivy says of the folder for jars, and how the JVM ends if it can't write there.
_CACHE = re.compile(r"^Ivy Default Cache set to: (.+)$", re.MULTILINE)
_NOT_WRITTEN = re.compile(r'^Exception in thread "main" java\.io\.\w+: (.+) \(([^()]+)\)$', re.MULTILINE)
_CENTRAL = "https://repo1.maven.org/maven2/"


class Fetching:
    """A JVM that may be fetching packages. ``reaches`` says whether a URL's host can be reached."""

    def __init__(
        self,
        settings: Mapping[str, str],
        log: Path,
        reaches: Callable[[str], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._log, self._clock = settings, log, clock
        self._reaches = reaches or _reaches
        self._since = log.stat().st_size if log.exists() else 0
        self._seen, self._seen_at, self._looked_at = (0, 0), clock(), float("-inf")
        self._tried = False  # whether repositories were tried since something came
        self._repositories = _repositories(settings)

    def look(self) -> None:
        """Raise `UnsupportedEnvironmentError` if nothing comes, and nothing can come."""
        now = self._clock()
        if now - self._looked_at < _LOOK_SECS:
            return
        self._looked_at = now
        said = self._said()
        seen = (len(said), _size(_cache_folder(self._settings, said)))
        if seen != self._seen or _BEGINS not in said:
            self._seen, self._seen_at = seen, now
            self._tried = False
        elif now - self._seen_at >= _MOST_SILENT_SECS:
            self._give_up(f"nothing has come for {_MOST_SILENT_SECS:.0f} s")
        elif now - self._seen_at >= _SILENT_SECS and not self._tried:
            self._tried = True
            if not (self._by_proxy() or any(map(self._reaches, self._repositories))):
                self._give_up(f"no connection to {' or '.join(self._repositories)}")

    def _give_up(self, why: str) -> NoReturn:
        raise UnsupportedEnvironmentError(missing_packages(self._settings[PACKAGES], why, self._log))

    def _said(self) -> str:
        return _read_from(self._log, self._since)

    def _by_proxy(self) -> bool:
        """Whether Java has a proxy, so that a connection from here says nothing. Other ways to set one are rare."""
        options = [self._settings.get("spark.driver.extraJavaOptions", "")]
        options += [os.environ.get(name, "") for name in ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS")]
        return any("proxyHost" in option or "useSystemProxies" in option for option in options)


def not_fetched(log: Path, since: int) -> str:
    r"""Return why packages could not be fetched, from the JVM's output after ``since``; an empty string if that was no problem.

    >>> import tempfile
    >>> log = Path(tempfile.mkdtemp(), "spark.log")
    >>> _ = log.write_text("\n".join(["  Server access error at url https://a/b (java.net.UnknownHostException: a)",
    ...     "RuntimeException: [unresolved dependency: a#b;1: not found]"]))
    >>> not_fetched(log, 0)
    'java.net.UnknownHostException: a'
    """
    said = _read_from(log, since)
    if "unresolved dependency" not in said and "download failed" not in said:
        return ""
    refused = re.findall(r"Server access [Ee]rror at url \S+ \((.+)\)", said)
    if refused:
        return str(refused[0])
    unknown = re.findall(r"Host (\S+) not found", said)
    if unknown:
        return f"there is no way to {unknown[0]}"
    missing = re.findall(r"(?:unresolved dependency|download failed): ([^\s\],]+)", said)
    return f"no repository has {', '.join(dict.fromkeys(one.rstrip(':') for one in missing))}"


def not_kept(log: Path, since: int) -> str:
    r"""Return what to do if fetched jars can't be written down, from the JVM's output after ``since``; else an empty string.

    >>> import tempfile
    >>> log = Path(tempfile.mkdtemp(), "spark.log")
    >>> _ = log.write_text("\n".join(["Ivy Default Cache set to: /r/.ivy2/cache",
    ...     'Exception in thread "main" java.io.FileNotFoundException: /r/.ivy2/cache/a (Read-only file system)']))
    >>> print(not_kept(log, 0))
    Spark can't keep the jars that it fetches in /r/.ivy2 (Read-only file system): give it another folder, -c spark.jars.ivy=DIR
    """
    said = _read_from(log, since)
    told, failed = _CACHE.search(said), _NOT_WRITTEN.search(said)
    folder = os.path.dirname(told[1].strip()) if told else ""
    if failed is None or not folder or not failed[1].startswith(f"{folder}/"):
        return ""
    return f"Spark can't keep the jars that it fetches in {folder} ({failed[2]}): give it another folder, -c spark.jars.ivy=DIR"


def missing_packages(packages: str, why: str, log: Path) -> str:
    """Return the message for ``packages`` that can't be fetched."""
    if packages == DELTA_PACKAGE:
        what, option = f"Delta ({packages})", "--delta"
    else:
        what, option = f"the packages {packages}", f"--packages {packages}"
    return (
        f"Spark can't fetch {what}, and this user has not fetched it before: {why}. Run this where there is a network: "
        f"stormspark jars {option} --to jars; then give --jars 'jars/*.jar' here. Read {log} for more"
    )


def _repositories(settings: Mapping[str, str]) -> list[str]:
    more = str(settings.get("spark.jars.repositories", "")).split(",")
    return [*filter(None, map(str.strip, more)), os.environ.get("DEFAULT_ARTIFACT_REPOSITORY") or _CENTRAL]


def _reaches(url: str) -> bool:
    parts = urlsplit(url)
    if not parts.hostname:
        return os.path.exists(parts.path)
    try:
        port = parts.port or (80 if parts.scheme == "http" else 443)
        socket.create_connection((parts.hostname, port), timeout=_CONNECT_SECS).close()
    except (OSError, ValueError):
        return False
    return True


def _cache_folder(settings: Mapping[str, str], said: str) -> Path | None:
    told = _CACHE.search(said)
    folder = settings.get("spark.jars.ivy") or (os.path.dirname(told[1].strip()) if told else None)
    return Path(folder) if folder else None


def _size(folder: Path | None) -> int:
    """Return the bytes below a folder, those of files that are still coming included."""
    size = 0
    for where, _, names in os.walk(folder) if folder is not None else ():
        for name in names:
            try:
                size += os.lstat(os.path.join(where, name)).st_size
            except OSError:
                continue
    return size


def _read_from(log: Path, since: int) -> str:
    try:
        with log.open("rb") as file:
            file.seek(since)
            return file.read().decode(errors="replace")
    except OSError:
        return ""
