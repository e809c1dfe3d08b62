"""Tells who has called ``os._exit``, which ends a process at once and leaves no traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from stormspark.user_line import CodePlace, is_ours, running_at

__all__ = ["tell_exits", "telling_exits"]


@contextmanager
def telling_exits(tell: Callable[[int, CodePlace], object]) -> Iterator[None]:
    """Do what `tell_exits` does while the ``with`` block lasts."""
    before = os._exit
    tell_exits(tell)
    try:
        yield
    finally:
        os._exit = before


def tell_exits(tell: Callable[[int, CodePlace], object]) -> None:
    """Call ``tell`` with the exit code and the user's line when user code calls ``os._exit`` in this process. Then it ends.

    Children that this process forks end as usual.
    """
    exits, pid = os._exit, os.getpid()

    def told(status: int) -> NoReturn:
        try:
            caller = sys._getframe(1)
            place = running_at(
                caller, caller.f_globals.get("__name__", "") if is_ours(caller.f_code.co_filename) else ""
            )
            if os.getpid() == pid and place is not None:
                tell(status, place)
        finally:
            exits(status)

    os._exit = told
