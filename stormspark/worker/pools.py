"""Thread pools for user code. A call on such a pool that never returns does not keep the process from ending. What a call logs or
prints belongs to the task that has submitted the call.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import thread as standard
from typing import Any, TypeVar

from stormspark.worker.host.task_threads import carry

__all__ = ["SharedPool", "end_pool"]

_T = TypeVar("_T")


class SharedPool(ThreadPoolExecutor):
    """A pool that several tasks share."""

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """Submit a call, as code of the task that runs now."""
        return super().submit(carry(fn), *args, **kwargs)


def end_pool(pool: ThreadPoolExecutor) -> None:
    """End a pool, without waiting for the calls that run on it. Calls that have not begun are dropped.

    Python waits for all threads of all pools when it ends. There is no public way to except a thread from that.
    """
    pool.shutdown(wait=False, cancel_futures=True)
    for thread in pool._threads:
        getattr(standard, "_threads_queues", {}).pop(thread, None)
