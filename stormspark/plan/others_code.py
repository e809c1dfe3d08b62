"""Looks through the code of others that runs where a component emits: the groupings of its subscribers, and task hooks (A16, D13,
J21).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from stormspark.api.hook_classes import hook_class
from stormspark.errors import InvalidTopologyError
from stormspark.grouping import Grouping
from stormspark.waiting_code import WaitsValueError, waiting

__all__ = ["Found", "of_groupings", "of_hooks"]


class Found(NamedTuple):
    """What the search has found in the code of one grouping or of one hook. The strings begin with its name, or are empty."""

    #: Why the code may wait.
    may_wait: str
    #: What the code uses that is known to wait.
    known_to_wait: str


def of_groupings(subscribers: Iterable[tuple[str, Grouping]]) -> Iterator[Found]:
    """Look through the groupings by which bolts subscribe to a component. ``subscribers`` has the id of each bolt."""
    for bolt, grouping in subscribers:
        yield _found(f"the grouping of bolt {bolt!r}", *grouping.waiting)


def of_hooks(names: Iterable[str]) -> Iterator[Found]:
    """Look through the classes that ``topology.auto.task.hooks`` names. A class that can't be imported here may wait.

    Raises `InvalidTopologyError` if a class sets ``waits`` to anything but True, False or None.
    """
    for name in names:
        place = f"the task hook {name!r}"
        try:
            cls = hook_class(name)
        except (Exception, SystemExit) as error:
            yield _found(place, f"can't be imported here ({type(error).__name__})", "")
            continue
        try:
            yield _found(place, *waiting(cls))
        except WaitsValueError as error:
            msg = f"topology.auto.task.hooks names {name!r}: {error}"
            raise InvalidTopologyError(msg) from error


def _found(place: str, may_wait: str, known: str) -> Found:
    return Found(*(f"{place}: {one}" if one else "" for one in (may_wait, known)))
