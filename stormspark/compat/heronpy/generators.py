"""heronpy's generators for streamlets: the lines of files, and a list for ever."""

from __future__ import annotations

import glob
import itertools
import time
from collections.abc import Iterable, Iterator
from typing import Any

from stormspark.streamlet import Generator

__all__ = ["ArrayLooper", "TextFileGenerator"]


class ArrayLooper(Generator):
    """Gives the items of an iterable, again and again; ``sleep`` is how many seconds it waits before each."""

    def __init__(self, user_iterable: Iterable[Any], sleep: float | None = None) -> None:
        super().__init__()
        if not isinstance(user_iterable, Iterable):
            msg = f"ArrayLooper must be passed an iterable, got {user_iterable!r} of type {type(user_iterable).__name__}"
            raise TypeError(msg)
        self._items = user_iterable
        self._sleep = sleep

    def setup(self, context: Any) -> None:
        """Begin with the first item."""
        self._cycle = itertools.cycle(self._items)

    def get(self) -> Any:
        """The next item."""
        if self._sleep is not None:
            time.sleep(self._sleep)
        return next(self._cycle)


class TextFileGenerator(Generator):
    """Gives the lines of the files that match ``filepattern``, with their ends; the files are shared out over the partitions.

    heronpy gives each file's lines last one first; here they come in their order.
    """

    def __init__(self, filepattern: str) -> None:
        super().__init__()
        self._files = sorted(glob.glob(filepattern))

    def setup(self, context: Any) -> None:
        """Take this partition's files."""
        mine = self._files[context.get_partition_index() :: context.get_num_partitions()]
        self._lines = self._read(mine)

    def get(self) -> str | None:
        """The next line; None at the end."""
        return next(self._lines, None)

    @staticmethod
    def _read(files: list[str]) -> Iterator[str]:
        for name in files:
            with open(name, encoding="utf-8") as file:
                yield from file
