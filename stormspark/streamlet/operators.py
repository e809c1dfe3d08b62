"""The classes that users subclass: sources and transform operators (G24).

Objects of these classes are pickled where the topology is built, and every task has a copy of its own. If they need something
that can't be pickled, such as a connection, create it in ``setup``.
"""

from __future__ import annotations

import glob
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import cycle
from typing import Any

from stormspark.api import Tuple
from stormspark.errors import InvalidTopologyError
from stormspark.streamlet.context import Context
from stormspark.user_line import user_line

__all__ = ["ArrayLooper", "Generator", "TextFileGenerator", "TransformOperator"]


class Generator(ABC):
    """A source that keeps state of its own between elements.

    >>> class Numbers(Generator):
    ...     def setup(self, context):
    ...         self.next, self.step = context.get_partition_index(), context.get_num_partitions()
    ...     def get(self):
    ...         self.next += self.step
    ...         return self.next - self.step
    """

    #: The logger. From the call of ``setup`` on, it writes to the task's own log.
    logger = logging.getLogger(__name__)

    @abstractmethod
    def setup(self, context: Context) -> None:
        """Called once in each task, before anything else."""

    @abstractmethod
    def get(self) -> Any:
        """Return the next element, or None if there is no element now. This must not block for long."""


class TransformOperator(ABC):
    """An operation that keeps state of its own between elements. It may emit any number of elements for each input.

    >>> class Changes(TransformOperator):
    ...     def setup(self, context):
    ...         self.context, self.last = context, None
    ...     def transform(self, tup):
    ...         (element,) = tup.values
    ...         if element != self.last:
    ...             self.last = element
    ...             self.context.emit(element)
    """

    #: The logger. From the call of ``setup`` on, it writes to the task's own log.
    logger = logging.getLogger(__name__)

    @abstractmethod
    def setup(self, context: Context) -> None:
        """Called once in each task, before anything else. Keep ``context``, because you need it to emit."""

    @abstractmethod
    def transform(self, tup: Tuple) -> None:
        """Process one tuple, whose only value is the element: ``tup.values[0]``."""


class ArrayLooper(Generator):
    """Emits the elements of an iterable again and again.

    With ``sleep``, it emits one element every ``sleep`` seconds. Otherwise it emits them as fast as they are processed.

    Raises `InvalidTopologyError` for an object that can't be iterated.
    """

    def __init__(self, user_iterable: Iterable[Any], sleep: float | None = None) -> None:
        if not isinstance(user_iterable, Iterable):
            msg = f"{user_line()}: an ArrayLooper must be given an iterable, got {user_iterable!r}"
            raise InvalidTopologyError(msg)
        self._user_iterable = user_iterable
        self._sleep = sleep

    def setup(self, context: Context) -> None:
        """Begin with the first element."""
        self._elements = cycle(self._user_iterable)
        self._due = time.monotonic() + (self._sleep or 0)

    def get(self) -> Any:
        """Return the next element if it is due, else None. Heron sleeps until it is due, but that would hold up other tasks."""
        if self._sleep is not None:
            now = time.monotonic()
            if now < self._due:
                return None
            self._due = max(self._due + self._sleep, now)
        return next(self._elements, None)


class TextFileGenerator(Generator):
    """Emits the lines of the files that match a pattern of `glob`, with their line ends. Each file is read by one task.

    The process that builds the topology looks up the names of the files. The tasks read the files.
    """

    def __init__(self, filepattern: str) -> None:
        self._files = sorted(glob.glob(filepattern))

    def setup(self, context: Context) -> None:
        """Choose this task's share of the files."""
        self._lines = _lines(self._files[context.get_partition_index() :: context.get_num_partitions()])

    def get(self) -> Any:
        """Return the next line; None after the last one."""
        return next(self._lines, None)


def _lines(files: list[str]) -> Iterator[str]:
    for file in files:
        with open(file, encoding="utf-8") as lines:
            yield from lines
