"""Thread pools for user code. A call on such a pool that never returns does not keep the process from ending."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import thread as standard

__all__ = ["end_pool"]


def end_pool(pool: ThreadPoolExecutor) -> None:
    """End a pool, without waiting for the calls that run on it. Calls that have not begun are dropped.

    Python waits for all threads of all pools when it ends. There is no public way to except a thread from that.
    """
    pool.shutdown(wait=False, cancel_futures=True)
    for thread in pool._threads:
        getattr(standard, "_threads_queues", {}).pop(thread, None)
