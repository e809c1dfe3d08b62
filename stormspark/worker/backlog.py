"""The backlog of a worker, in tuples and in bytes. If the backlog is too high, spouts must pause (W1)."""

from __future__ import annotations

from collections.abc import Mapping

from stormspark.backpressure import WaterMarks
from stormspark.config import Settings
from stormspark.wire.frames import FrameKind
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.departures import Departures
from stormspark.worker.wiring import Wiring

__all__ = ["Backlog"]


class Backlog:
    """The backlog of one worker. If ``sheds``, bolts drop or fail excess tuples. Then spouts do not pause for bolts' queues."""

    def __init__(self, settings: Settings, wiring: Wiring, departures: Departures, *, sheds: bool) -> None:
        self._bolts, self._vectorised = wiring.bolts, wiring.vectorised_bolts
        self._departures, self._sheds = departures, sheds
        self._tuple_marks = WaterMarks(*settings.worker_tuple_marks)
        self._byte_marks = WaterMarks(*settings.worker_byte_marks)
        #: For each bolt, the estimated bytes per tuple when its queue was weighed last. `_weighed` counts the weighings of all
        #: bolts.
        self._tuple_bytes: dict[int, int] = {}
        self._weighed = 0

    @property
    def waiting(self) -> int:
        """How many tuples wait in inboxes and lanes, plus everything that sealed frames hold (tuples, rows, acks)."""
        return sum(bolt.waiting for bolt in self._bolts) + self._departures.waiting

    def is_full(self) -> bool:
        """Return whether spouts must pause now.

        If bolts shed tuples that do not fit, spouts pause only for tuples that have to leave this worker.
        """
        departures = self._departures
        # Take the numbers that were noted when the lanes were last measured. Measuring all lanes each time would cost more than
        # sending their tuples.
        waiting, size = departures.sealed_count, departures.sealed_bytes
        waiting += sum(lanes.tuples for lanes in departures.lanes.values())
        size += sum(lanes.bytes for lanes in departures.lanes.values())
        waiting += sum(map(len, departures.batch_lanes.values()))
        if not self._sheds:
            behind = {bolt: count for bolt in self._bolts if (count := bolt.waiting)}
            if behind:
                waiting += sum(behind.values())
                size += self._queued_bytes(behind)
        if departures.batch_lanes or self._vectorised:
            # The rows of record batches are not objects, so only their bytes count.
            rows, bytes_of_rows = self._rows()
            waiting, size = waiting - rows, size + bytes_of_rows
        too_many = self._tuple_marks.observe(waiting)
        return self._byte_marks.observe(size) or too_many

    def _queued_bytes(self, behind: Mapping[BoltTask, int]) -> int:
        """Estimate how many bytes wait for bolts that are not vectorised. ``behind`` says how many tuples wait for each bolt."""
        bolts = [bolt for bolt in behind if bolt not in self._vectorised] if self._vectorised else [*behind]
        if not bolts:
            return 0
        # Weigh a tuple of one bolt per call, of a different bolt each time. Weighing tuples of all bolts would cost more than
        # executing them.
        self._weighed += 1
        one = bolts[self._weighed % len(bolts)]
        self._tuple_bytes[one.id] = one.queue.size_of_one()
        return sum(behind[bolt] * self._tuple_bytes.get(bolt.id, 0) for bolt in bolts)

    def _rows(self) -> tuple[int, int]:
        """Return how many rows of record batches wait, and how many bytes the rows have that are not in sealed frames.

        If bolts shed tuples, rows that wait for bolts are left out.
        """
        bolts = () if self._sheds else self._vectorised
        lanes = self._departures.batch_lanes.values()
        rows = sum(bolt.rows_waiting for bolt in bolts) + sum(map(len, lanes))
        sealed = sum(frame.count for frame in self._departures.sealed if frame.kind == FrameKind.BATCHES)
        size = sum(bolt.batch_bytes for bolt in bolts) + sum(one.bytes for one in lanes)
        return rows + sealed, size
