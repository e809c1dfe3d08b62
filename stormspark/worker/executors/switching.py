"""The switch interval of the Python interpreter, which is shorter while executors have threads or coroutines.

A thread whose call has returned needs the interpreter's lock to go on. A thread that computes gives this lock away only at the
end of Python's switch interval. This interval is 5 ms by default, which is long enough for a database to answer.
"""

from __future__ import annotations

import sys
import threading

__all__ = ["SwitchInterval", "switch_interval"]

#: The shorter interval, in seconds. With this interval, forty executors that sleep for 5 ms in each call make 2 % more calls
#: than with an interval of 5 ms. Even shorter intervals cost more time for switches than they save.
_SECONDS = 0.0005


class SwitchInterval:
    """The switch interval of this process. Workers of several topologies may share a process, so this object counts the workers
    that need the shorter interval.

    >>> interval = SwitchInterval()
    >>> interval.shorten(); sys.getswitchinterval()
    0.0005
    >>> interval.restore(); sys.getswitchinterval()
    0.005
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before = sys.getswitchinterval()

    def shorten(self) -> None:
        """Shorten the interval until `restore` has been called as often as this method."""
        with self._lock:
            if not self._users:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(_SECONDS, self._before))
            self._users += 1

    def restore(self) -> None:
        """Undo one call of `shorten`."""
        with self._lock:
            self._users -= 1
            if not self._users:
                sys.setswitchinterval(self._before)


#: The switch interval of this process.
switch_interval = SwitchInterval()
