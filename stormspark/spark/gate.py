"""The gate: the point at which the query's thread does nothing, so that the query can be stopped there.

``query.stop()`` interrupts whatever the query's thread is doing, and so would cut off a batch or a commit half-way. So stormspark
never stops a busy query. When a batch has failed or must not begin, the query's thread calls `Gate.wait` from inside
foreachBatch. There the thread sleeps *in the JVM*, and only then does the supervisor stop the query. The interrupt ends the sleep
with an ``InterruptedException``, which goes back through foreachBatch. This is the only exception from Python that Spark treats
as a clean end. So Spark reports and logs no error.

Spark does not commit a batch whose foreachBatch ends at the gate. Spark runs the batch again, with the same offsets, when
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
    """The error that ends a foreachBatch whose query has been stopped.

    Spark recognises a clean end by the message of the exception: the first line of `Py4JJavaError`, then anything, then the
    name of the Java exception. The original message also has a Java stack trace of hundreds of lines, on which Spark's
    regular expression overflows the stack of the query's thread. So this message repeats only the parts that Spark needs.
    """

    def __init__(self) -> None:
        super().__init__(
            "py4j.protocol.Py4JJavaError: An error occurred while calling sleep: "
            "java.lang.InterruptedException"
        )


class Gate:
    """The gate of one run of a query. The query's thread sets `reached`; the supervisor sets `opened` and stops the query."""

    def __init__(self, session: SparkSession) -> None:
        self._thread = session.sparkContext._jvm.java.lang.Thread  # type: ignore[union-attr]
        self.reached = threading.Event()
        self.opened = threading.Event()

    def wait(self) -> NoReturn:
        """Sleep until the query is stopped, then raise `GateOpenedError`. Only the thread of foreachBatch may call this."""
        self.reached.set()
        while not self.opened.is_set():
            # pyspark pins the Python callback to the JVM thread that called it, so the query's own thread sleeps here. Without
            # pinning (PYSPARK_PIN_THREAD=false) the interrupt misses the sleeping thread, and `opened` ends the sleep a bit
            # later.
            try:
                self._thread.sleep(_SLEEP_MS)
            except Py4JJavaError:
                break
        raise GateOpenedError from None


def _is_worth_logging(record: logging.LogRecord) -> bool:
    return not (record.exc_info and record.exc_info[0] is GateOpenedError)


# py4j logs every exception that leaves a callback as an error, with its traceback. `GateOpenedError` is no error.
logging.getLogger("py4j.clientserver").addFilter(_is_worth_logging)
