"""The gate: how a query is ended, always at a point where its thread does nothing.

``query.stop()`` interrupts whatever the query's thread is at: in the middle of a batch that cuts the batch,
in the middle of a commit the commit. So nobody stops a running query here. Its thread comes to `Gate.wait`,
from inside foreachBatch, when a batch has failed or must not begin; there it sleeps *in the JVM*, and only
then it is stopped. The interrupt ends the sleep with an ``InterruptedException``, which goes back through
foreachBatch: that is the one exception from Python that Spark takes for a clean end, with no error and
nothing logged.

A batch whose foreachBatch ends at the gate is not committed: Spark runs it again, with the same offsets, when
the query is started from its checkpoint.
"""

from __future__ import annotations

import logging
import threading
from typing import NoReturn

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

__all__ = ["Gate", "GateOpenedError"]

_SLEEP_MS = 1000


class GateOpenedError(Exception):
    """Ends a foreachBatch whose query has been stopped.

    Spark knows a clean end by the text of the exception: `Py4JJavaError`'s first line, then anything, then
    the name of the Java exception. The original has a Java stack trace between and behind, hundreds of lines
    on which Spark's regular expression overflows the stack of the query's thread; so its words are said
    again, briefly.
    """

    def __init__(self) -> None:
        super().__init__(
            "py4j.protocol.Py4JJavaError: An error occurred while calling sleep: "
            "java.lang.InterruptedException"
        )


class Gate:
    """For one run of a query: `reached` is set by its thread, `opened` by whoever is about to stop it."""

    def __init__(self, session: SparkSession) -> None:
        self._thread = session.sparkContext._jvm.java.lang.Thread  # type: ignore[union-attr]
        self.reached = threading.Event()
        self.opened = threading.Event()

    def wait(self) -> NoReturn:
        """Sleep until the query is stopped, then raise `GateOpenedError`; for the thread of foreachBatch."""
        self.reached.set()
        while not self.opened.is_set():
            # Python's callback is pinned to the JVM thread that called it, so this is the query's own thread
            # that sleeps. Unpinned (PYSPARK_PIN_THREAD=false) the interrupt misses it, and `opened` ends it a
            # bit later.
            try:
                self._thread.sleep(_SLEEP_MS)
            except Py4JJavaError:
                break
        raise GateOpenedError from None


def _is_news(record: logging.LogRecord) -> bool:
    return not (record.exc_info and record.exc_info[0] is GateOpenedError)


# py4j logs every exception that leaves a callback as an error, with its traceback; this one is no error.
logging.getLogger("py4j.clientserver").addFilter(_is_news)
