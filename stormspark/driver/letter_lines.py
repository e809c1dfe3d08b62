"""Where the driver writes dead letters: to the table in the checkpoint (`stormspark.checkpoint.dead_letters`), or to a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from stormspark.checkpoint.dead_letters import Letter
from stormspark.errors import CheckpointError
from stormspark.private_files import open_private

__all__ = ["LINES", "LetterLines", "LettersOfBatches"]

#: The name of the file with dead letters of a topology that has no checkpoint. It is in the topology's log folder.
LINES = "dead-letters.jsonl"


class LettersOfBatches(Protocol):
    """Takes the dead letters of a topology, batch by batch."""

    @property
    def place(self) -> str:
        """Where people find the letters."""

    def write(self, batch: int, letters: Sequence[Letter], *, transactions: bool) -> None:
        """Write the letters of a batch that is about to be committed. ``transactions`` says whether batches are transactions.

        Raises `CheckpointError` if the letters can't be written.
        """


class LetterLines:
    r"""Dead letters as lines of JSON in a file of the log folder, for a topology that has no checkpoint. The file only grows.

    >>> import tempfile
    >>> lines = LetterLines(tempfile.mkdtemp())
    >>> lines.write(7, [Letter("lines", 3, 7, "", "[7, 0, 1]", "no number", '["x"]', 0.0, None)], transactions=False)
    >>> line = json.loads(Path(lines.place).read_text())
    >>> line["time"], line["message_id"], line["reason"], line["row"]
    ('1970-01-01T00:00:00+00:00', [7, 0, 1], 'no number', ['x'])
    """

    def __init__(self, folder: str | Path) -> None:
        self.place = str(Path(folder, LINES))

    def write(self, batch: int, letters: Sequence[Letter], *, transactions: bool) -> None:
        """See `LettersOfBatches`. If the commit of the batch fails, its letters may be written again."""
        if not letters:
            return
        lines = [
            {
                "time": datetime.fromtimestamp(one.time, UTC).isoformat(),
                "batch": batch,
                "component": one.component,
                "task": one.task,
                "message_id": json.loads(one.message_id),
                "reason": one.reason,
                "row": json.loads(one.row),
            }
            for one in letters
        ]
        try:
            with open(open_private(self.place), "a", encoding="utf-8") as file:
                file.write("".join(json.dumps(line) + "\n" for line in lines))
        except OSError as error:
            msg = f"the dead letters can't be written to {self.place}: {error}"
            raise CheckpointError(msg) from error
