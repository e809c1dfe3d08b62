"""Rows of dead letters that are emitted again, because somebody has ordered that (``stormspark dead-letters replay``).

The driver gives the rows to their tasks before the batch to which `LetterTable.assign` has assigned them. The rows count as rows
of the batch before: a worker that lives keeps them if the batch runs again, as it keeps all rows of earlier batches. A new
incarnation of a worker gets them again, as long as the batch is not committed. After the commit they are done, or the durable
acker or the state table has them.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

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
    """The rows of ``letters``, which are emitted again in ``batch``."""

    def __init__(self, plan: PhysicalPlan, batch: int, letters: Iterable[StoredLetter]) -> None:
        self.batch = batch
        #: The workers that don't have their rows yet.
        self._missing = set(range(plan.workers))
        self._by_task: dict[int, list[tuple[None, bytes]]] = {}
        self._worker_of = {task.id: task.worker for task in plan.tasks.values()}
        for one in letters:
            assert one.letter.data is not None, one.id
            row = decode(one.letter.data)
            row = row._replace(id=key_of_letter(row.id, batch, one.id), batch=batch - 1)
            tasks = plan.components[one.letter.component].tasks
            task = one.letter.task if one.letter.task in tasks else tasks[one.letter.task % len(tasks)]
            self._by_task.setdefault(task, []).append((None, encode(row)))
        if self._by_task:
            rows = sum(map(len, self._by_task.values()))
            _log.info("%d rows that were dead letters are emitted again in batch %d", rows, batch)

    def messages(self, lost: Collection[int], committed: int) -> dict[int, list[Adopt]]:
        """Return the messages for the workers that don't have their rows, ``lost`` workers among them, by worker.

        ``committed`` is the batch that was committed last.
        """
        self._missing.update(lost)
        if committed >= self.batch:
            self._by_task.clear()
        missing, self._missing = self._missing, set()
        found: dict[int, list[Adopt]] = {}
        for task, rows in self._by_task.items():
            worker = self._worker_of[task]
            if worker in missing:
                found.setdefault(worker, []).extend(
                    Adopt(task, list(rows[begin : begin + _ADOPT_ROWS]), letters=True)
                    for begin in range(0, len(rows), _ADOPT_ROWS)
                )
        # A worker puts each message in front of its other rows, so the first rows come in the last message.
        return {worker: messages[::-1] for worker, messages in found.items()}
