"""Finds out how many cores a Spark session offers to workers: the number of tasks that its Spark executors run at once.

Each superstep has one Spark task per worker, so this many workers can work at the same time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession

from stormspark.cores import cores_of_master
from stormspark.spark.executors import Executors

__all__ = ["session_cores"]

_log = logging.getLogger(__name__)

#: If nobody knows how many Spark executors will come, the driver waits until no new one has come for this long.
_SETTLED_SECS = 2.0
_LOOK_SECS = 0.1


def session_cores(spark: SparkSession, wait_secs: float) -> int:
    """Return how many cores the Spark executors of a classic session offer, counted in tasks at once.

    - ``local[N]`` offers N, and ``local-cluster[n,c,m]`` n x c.
    - On YARN and Kubernetes, the requested Spark executors count.
    - With dynamic allocation, the present Spark executors count, or those requested at the start if these are more, or one if
      there are none. Spark adds further Spark executors only while tasks wait for them, so these do not count.
    - On a standalone cluster, and anywhere else, only registered Spark executors count. The function waits for them to register,
      for ``wait_secs`` at most. If none has registered by then, it logs a warning and returns 1.

    If a task takes several cores (``spark.task.cpus``), these cores count as one.
    """
    executors, context = Executors(spark), spark.sparkContext
    local = cores_of_master(context.master, {"spark.task.cpus": context.getConf().get("spark.task.cpus")})
    if local is not None:
        return local
    requested = executors.requested_slots()
    if requested is not None:
        return requested
    wanted = executors.to_come()
    registered = _registered(lambda: [one.slots for one in executors.active()], wanted, wait_secs)
    if not registered:
        _log.warning(
            "no Spark executor has registered yet, so the topology gets one worker; set topology.workers to have more, or "
            "stormspark.executors.wait.secs (%g) to wait longer",
            wait_secs,
        )
    return max(1, sum(registered))


def _registered(look: Callable[[], Sequence[int]], wanted: int | None, wait_secs: float) -> Sequence[int]:
    """Wait for Spark executors, and return the number of slots of each, as ``look`` returns it.

    The wait ends when there are ``wanted`` Spark executors. If ``wanted`` is None, it ends when some have come, and no more have
    come for `_SETTLED_SECS`. It ends after ``wait_secs`` at the latest.
    """
    began = changed = time.monotonic()
    found = look()
    while True:
        now, before = time.monotonic(), len(found)
        found = look()
        changed = now if len(found) != before else changed
        settled = wanted is None and bool(found) and now - changed >= _SETTLED_SECS
        if settled or (wanted is not None and len(found) >= wanted) or now - began >= wait_secs:
            return found
        time.sleep(_LOOK_SECS)
