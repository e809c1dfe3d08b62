"""Dead letters: where a spout's task puts the rows of its source that it gives up.

- A `LetterLog` keeps them for the reports to the driver, which writes them into the topology's checkpoint.
- `DeadLetters` writes them at once, into a file of the task or into the task's log. This is for users who have named a folder
  (``stormspark.dead.letter.dir``), and for a local topology without files.

In a transaction, a row is given up only when the batch is prepared. Until then its letter is *noted*: a batch that is rolled back
drops its noted letters, because the rows come again.

The invariant of the log: **a letter stays in the log until its batch is committed, or its row comes again.** A worker learns that
a batch is committed when the next one begins. Until then, each attempt at the batch reports the letter. So the driver, which
writes the letters of a batch before it commits the batch, misses none.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from stormspark.api import TopologyContext
from stormspark.checkpoint.dead_letters import Letter
from stormspark.private_files import make_private, open_private
from stormspark.worker.sources.row_codec import decode, encode
from stormspark.worker.sources.rows import Row, RowKey

__all__ = ["DeadLetters", "GivenUp", "LetterLog", "LetterPlace", "letter_of"]

#: A report has about this many bytes of letters. If a log holds as many letters of one batch as `_MOST_BYTES`, it takes no more.
_REPORT_BYTES, _MOST_BYTES = 4 << 20, 64 << 20


class GivenUp(str):
    """The reason of a row that is given up, but whose letter has to wait. See `Row.unreadable`."""

    __slots__ = ()


class LetterPlace(Protocol):
    """Takes the dead letters of one task."""

    @property
    def has_room(self) -> bool:
        """Whether `add` may be called now."""

    def add(self, row: Row, reason: str) -> None:
        """Take the letter of a row that is given up now. Raises OSError if the letter can't be written."""

    def note(self, row: Row, reason: str) -> None:
        """Take the letter of a row that the transaction which runs gives up, if it is committed."""

    def settle(self) -> Iterator[str]:
        """Give up the rows of the noted letters, because the worker prepares the batch. Iterate over their reasons.

        Raises OSError.
        """

    def take_back(self) -> None:
        """Drop the noted letters, because the batch is rolled back."""


class DeadLetters:
    """The dead letters of one task. They are JSON lines in the task's own file in ``folder``, or lines in the task's log if
    there is no folder.

    A JSON line has the component, task, message id, reason and row. Values that JSON can't hold are written as their repr.
    """

    has_room = True

    def __init__(self, folder: str | None, context: TopologyContext) -> None:
        self._context = context
        self._noted: list[tuple[Row, str]] = []
        self._path: Path | None = None
        if folder is not None:
            self._path = make_private(folder) / f"{context.this_component_id}-{context.this_task_id}.jsonl"

    def add(self, row: Row, reason: str) -> None:
        """Write one dead letter."""
        if self._path is None:
            self._context.logger.error("dead letter %r: %s: %r", row.message_id, reason, row.values)
            return
        line = {
            "component": self._context.this_component_id,
            "task": self._context.this_task_id,
            "message_id": row.message_id,
            "reason": reason,
            "row": row.values,
        }
        with open(open_private(self._path), "a", encoding="utf-8") as file:
            file.write(json.dumps(line, default=repr) + "\n")

    def note(self, row: Row, reason: str) -> None:
        """See `LetterPlace`."""
        self._noted.append((row, reason))

    def settle(self) -> Iterator[str]:
        """See `LetterPlace`. If the commit fails, the same letters may be written again."""
        noted, self._noted = self._noted, []
        for row, reason in noted:
            self.add(row, reason)
            yield reason

    def take_back(self) -> None:
        """See `LetterPlace`."""
        self._noted.clear()


@dataclass(slots=True)
class _Kept:
    letter: Letter
    #: Whether the letter is dropped if the attempt at the batch is rolled back.
    of_attempt: bool
    #: The batch and the attempt in whose report the letter was last.
    sent: tuple[int, int] = (-1, -1)


class LetterLog:
    """The letters of one task that may not be in the topology's checkpoint yet. It outlives the instances of the spout.

    >>> log = LetterLog("lines", 3)
    >>> log.add(Row((7, 0, 1), ("x",), 7), "no number")
    >>> [letter.row for letter in log.take(7, 0)], log.take(7, 0)
    (['["x"]'], ())
    >>> [letter.row for letter in log.take(7, 1)], log.take(8, 1)
    (['["x"]'], ())
    """

    def __init__(self, component: str, task: int, clock: Callable[[], float] = time.time) -> None:
        self._component, self._task, self._clock = component, task, clock
        self._kept: list[_Kept] = []
        #: How many bytes the letters have that are kept, and those that no report has had.
        self._bytes = self._unsent = 0
        self._noted: list[str] = []

    @property
    def has_room(self) -> bool:
        """See `LetterPlace`. There is room again after the next report, or in the next batch."""
        return self._unsent < _REPORT_BYTES and self._bytes < _MOST_BYTES

    def add(self, row: Row, reason: str) -> None:
        """See `LetterPlace`."""
        self._keep(row, reason, of_attempt=False)

    def note(self, row: Row, reason: str) -> None:
        """See `LetterPlace`."""
        self._keep(row, reason, of_attempt=True)
        self._noted.append(reason)

    def _keep(self, row: Row, reason: str, *, of_attempt: bool) -> None:
        letter = letter_of(self._component, self._task, row, reason, self._clock())
        self._kept.append(_Kept(letter, of_attempt))
        self._bytes += letter.size
        self._unsent += letter.size

    def settle(self) -> Iterator[str]:
        """See `LetterPlace`."""
        noted, self._noted = self._noted, []
        yield from noted

    def take_back(self) -> None:
        """See `LetterPlace`. Letters that were added stay, because their rows don't come again."""
        self._noted.clear()
        self._drop(lambda one: one.of_attempt)

    def forget_batch(self, batch: int) -> None:
        """Drop the letters of rows of this batch, because these rows come again."""
        self._drop(lambda one: one.letter.row_batch >= batch)

    @property
    def left(self) -> int:
        """How many letters have to be reported before a batch can be prepared, because one report can't have them all."""
        if self._unsent < 2 * _REPORT_BYTES:
            return 0
        return sum(one.sent == (-1, -1) for one in self._kept)

    def take(self, batch: int, attempt: int, *, whole: bool = True) -> tuple[Letter, ...]:
        """Return the letters for a report on ``batch``: those that this attempt has not reported, the oldest first.

        Unless ``whole``, return only as many as a report should have.
        """
        if not self._kept:
            return ()
        self._drop(lambda one: 0 <= one.sent[0] < batch)  # these batches are committed
        taken: list[Letter] = []
        size = 0
        for one in self._kept:
            if one.sent != (batch, attempt):
                if size >= _REPORT_BYTES and not whole:
                    break
                taken.append(one.letter)
                size += one.letter.size
                one.sent = batch, attempt
        self._unsent = self._count_unsent()
        return tuple(taken)

    def _drop(self, unneeded: Callable[[_Kept], bool]) -> None:
        self._kept = [one for one in self._kept if not unneeded(one)]
        self._bytes = sum(one.letter.size for one in self._kept)
        self._unsent = self._count_unsent()

    def _count_unsent(self) -> int:
        return sum(one.letter.size for one in self._kept if one.sent == (-1, -1))


def letter_of(component: str, task: int, row: Row, reason: str, when: float) -> Letter:
    """Return the letter of a row that is given up.

    >>> letter = letter_of("lines", 3, Row((7, 0, 1), ("x", None), 7), "no number", 0.0)
    >>> letter.message_id, letter.row, decode(letter.data).values
    ('[7, 0, 1]', '["x", null]', ('x', None))
    """
    return Letter(
        component,
        task,
        row.batch,
        _storable(repr(tuple(row.id)) if isinstance(row.id, RowKey) else repr(row.id)),
        _as_json(row.message_id),
        _storable(str(reason)),
        _as_json(row.values),
        when,
        _as_bytes(row),
    )


def _as_bytes(row: Row) -> bytes | None:
    """Encode a row, so that it can be emitted again. Return None if that is impossible."""
    if not (row.unreadable is None or isinstance(row.unreadable, GivenUp)):
        return None  # the values are not those of the source
    try:
        data = encode(row._replace(unreadable=None))
        decode(data)
    except Exception:  # a value that is none of Spark's
        return None
    return data


def _as_json(value: Any) -> str:
    try:
        return json.dumps(value, default=repr)
    except (
        TypeError,
        ValueError,
        RecursionError,
    ):  # a dict with other keys than strings, or an object in itself
        return json.dumps(f"{value!r:.10000}")


def _storable(text: str) -> str:
    """Replace what UTF-8 can't hold."""
    return text.encode("utf-8", "backslashreplace").decode()
