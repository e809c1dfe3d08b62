"""Says so if Spark itself takes long to start: a driver on YARN waits for the cluster then, and Spark's log is silent."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["said_if_slow"]

_log = logging.getLogger(__name__)


@contextmanager
def said_if_slow(topology: str, patience_secs: float = 30.0) -> Iterator[None]:
    """Warn, once, if the block lasts longer than ``patience_secs``. The block starts Spark for a topology."""
    ended = threading.Event()

    def watch() -> None:
        if not ended.wait(patience_secs):
            _log.warning(
                "%s: Spark has not started within %g s. It may still be shipping files, or the cluster has no room for the "
                "application: look at the cluster's page (on YARN, `yarn application -list` shows ACCEPTED)",
                topology,
                patience_secs,
            )

    threading.Thread(target=watch, name="watch-spark-start", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
