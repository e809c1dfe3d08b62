"""Rows of dead letters that are emitted again, because somebody has ordered that (``stormspark dead-letters replay``).

The driver gives the rows to their tasks at the start, each with the batch to which `LetterTable.assign` has assigned it. They
wait there until that batch begins. Then they count as rows of the batch before: a worker that lives keeps them if the batch runs
again, as it keeps all rows of earlier batches. A new incarnation of a worker gets them again, as long as their batch is not
committed. After the commit they are done, or the durable acker or the state table has them.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping

from stormspark.checkpoint.dead_letters import StoredLetter
from stormspark.plan.physical import PhysicalPlan
from stormspark.worker.host.messages import Adopt
from stormspark.worker.sources.row_codec import decode, encode
from stormspark.worker.sources.rows import key_of_letter

__all__ = ["LetterReplays"]

_log = logging.getLogger(__name__)

#: A message to a worker has at most this many rows.
_ADOPT_ROWS = 5000


class LetterReplays:
    """The rows of ``letters``, which are emitted again in the batches that are the keys."""

    def __init__(self, plan: PhysicalPlan, letters: Mapping[int, Iterable[StoredLetter]]) -> None:
        #: The workers that don't have their rows yet.
        self._missing = set(range(plan.workers))
        #: By batch and task.
        self._rows: dict[tuple[int, int], list[tuple[None, bytes]]] = {}
        self._worker_of = {task.id: task.worker for task in plan.tasks.values()}
        for batch, some in letters.items():
            for one in some:
                assert one.letter.data is not None, one.id
                row = decode(one.letter.data)
                row = row._replace(id=key_of_letter(row.id, batch, one.id), batch=batch - 1)
                tasks = plan.components[one.letter.component].tasks
                task = one.letter.task if one.letter.task in tasks else tasks[one.letter.task % len(tasks)]
                self._rows.setdefault((batch, task), []).append((None, encode(row)))
        if self._rows:
            rows = sum(map(len, self._rows.values()))
            batches = f"batch {min(letters)}" + (f" to {max(letters)}" if len(letters) > 1 else "")
            _log.info("%d rows that were dead letters are emitted again in %s", rows, batches)

    def messages(self, lost: Collection[int], committed: int) -> dict[int, list[Adopt]]:
        """Return the messages for the workers that don't have their rows, ``lost`` workers among them, by worker.

        ``committed`` is the batch that was committed last.
        """
        self._missing.update(lost)
        self._rows = {key: rows for key, rows in self._rows.items() if key[0] > committed}
        missing, self._missing = self._missing, set()
        found: dict[int, list[Adopt]] = {}
        for (batch, task), rows in self._rows.items():
            worker = self._worker_of[task]
            if worker in missing:
                found.setdefault(worker, []).extend(
                    Adopt(task, list(rows[begin : begin + _ADOPT_ROWS]), letters=batch)
                    for begin in range(0, len(rows), _ADOPT_ROWS)
                )
        return found
